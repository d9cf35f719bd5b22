"""Rules about files and documents: whether kube-scheduler can read them at all."""

from __future__ import annotations

from typing import Final

from .rule import BOTH, ERRORS, WARNINGS, Rule, configuration, own, scheduler

RULES: Final = (
    Rule(
        "Syntax",
        "The file is neither YAML nor JSON that kube-scheduler can parse",
        "kube-scheduler exits before it reads any field. It parses YAML with Go's rules, which "
        "differ from those of other programs, and a file that begins with { as JSON.",
        "Correct the text at the reported position. Indent with spaces, close quotes and "
        "brackets, and quote text with a colon or a #.",
        BOTH,
        configuration("profiles: [{schedulerName: my-scheduler\n"),
    ),
    Rule(
        "NotStrict",
        "The document repeats a key or has another error that strict decoding rejects",
        "kube-scheduler decodes its configuration strictly, so a key that occurs twice keeps it "
        "from starting, even if both have the same value.",
        "Keep one of the two keys.",
        BOTH,
        configuration("parallelism: 8\nparallelism: 16\n"),
    ),
    Rule(
        "NoDocument",
        "The file has no document, or one that is not an object",
        "kube-scheduler needs an object with apiVersion and kind. An empty file, a file of "
        "comments, a list or a plain text is none.",
        "Write a KubeSchedulerConfiguration into the file, or remove the file from the command.",
        BOTH,
        "# profiles are to follow\n",
    ),
    Rule(
        "UnknownKind",
        "The document is not of a kind that can be checked",
        "The apiVersion or the kind is missing, misspelt, or belongs to another program. "
        "kube-scheduler reads only KubeSchedulerConfiguration; the operator reads its own kinds.",
        "Write the apiVersion and kind that the message names.",
        ERRORS,
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfig\n",
    ),
    Rule(
        "OldAPIVersion",
        "The document has an API version that kube-scheduler no longer reads",
        "Kubernetes 1.23 removed Policy, and 1.29 the last beta version of "
        "KubeSchedulerConfiguration. Fields and plugins changed as well, so another apiVersion "
        "alone is not enough.",
        "Run kubectl scheduler convert -f FILE, which writes the current version and lists every "
        "change.",
        ERRORS,
        "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
    ),
    Rule(
        "NeverRead",
        "kube-scheduler does not read this document",
        "kube-scheduler reads only the first document of its file and ignores all others without "
        "a message. If the first document is not a KubeSchedulerConfiguration, it exits.",
        "Give every configuration a file of its own, or combine the profiles in one document.",
        BOTH,
        configuration("---\n") + configuration("parallelism: 4\n"),
    ),
    Rule(
        "NotRead",
        "The operator does not use this object",
        "The object has no name, has the same name as another one, or is a second one of a kind "
        "of which a cluster has only one.",
        "Rename the object as the message describes, or remove it.",
        BOTH,
        scheduler("").replace("name: cluster", "name: mine"),
    ),
    Rule(
        "InvalidName",
        "A name has characters that Kubernetes does not allow",
        "The API server rejects an object, an annotation or a setting with this name.",
        "Use lowercase letters, digits and hyphens, beginning and ending with a letter or digit.",
        ERRORS,
        own("SchedulerProfile", "My_Profile", "schedulerName: mine"),
    ),
    Rule(
        "InvalidSuppression",
        "A comment that ignores a warning has no reason, or names an unknown rule",
        "The comment ignores nothing. The next reader of the file needs the reason more than the "
        "name of the rule.",
        "Write # kubectl-scheduler: ignore RULE: reason.",
        ERRORS,
        configuration("parallelism: 8  # kubectl-scheduler: ignore SampledTooFew\n"),
    ),
    Rule(
        "UnusedSuppression",
        "A comment or a flag ignores a warning that does not exist",
        "The warning was corrected, moved to another line, or is an error, which cannot be "
        "ignored. A comment that remains would hide the next warning of its kind.",
        "Remove the comment, or move it to the line of the finding.",
        WARNINGS,
        configuration(
            "# kubectl-scheduler: ignore SampledTooFew: a test of large clusters\n"
            "percentageOfNodesToScore: 50\n"
        ),
    ),
)
