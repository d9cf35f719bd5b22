"""What a rule of `validate` is, and how the examples of rules are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...base.findings import ERROR, WARNING, Severity

HOME: Final = "https://kube-scheduler-operator.dev"
PAGE: Final = f"{HOME}/docs/rules.md"

ERRORS: Final[tuple[Severity, ...]] = (ERROR,)
WARNINGS: Final[tuple[Severity, ...]] = (WARNING,)
BOTH: Final[tuple[Severity, ...]] = (ERROR, WARNING)


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason of findings."""

    name: str  # the CamelCase identifier that findings have as their reason
    title: str  # what is wrong, in a few words
    meaning: str  # what happens with such a configuration, and why
    fix: str  # how to correct it
    severities: tuple[Severity, ...]  # what its findings can be, the usual severity first
    example: str  # the content of a file with such a finding
    second: str = ""  # of another file, if it takes two
    flags: tuple[str, ...] = ()  # flags of `validate` with which the example has the finding
    since: str = "0.1.0"  # the release of this program that introduced the rule

    @property
    def severity(self) -> Severity:
        """The usual severity."""
        return self.severities[0]

    @property
    def link(self) -> str:
        """The rule in the documentation."""
        return f"{PAGE}#{self.name.lower()}"

    @property
    def examples(self) -> dict[str, str]:
        """The files of the example, by name."""
        files = {"first.yaml": self.example, "second.yaml": self.second}
        return {name: text for name, text in files.items() if text}


def configuration(body: str) -> str:
    """A KubeSchedulerConfiguration with these fields."""
    return (
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n"
        f"{body}"
    )


def profile(body: str) -> str:
    """A KubeSchedulerConfiguration with one profile, of these fields."""
    lines = body.splitlines()
    indented = [f"{'- ' if not index else '  '}{line}\n" for index, line in enumerate(lines)]
    return configuration("profiles:\n" + "".join(indented))


def extender(body: str) -> str:
    """A KubeSchedulerConfiguration with one extender, of these fields."""
    lines = ["urlPrefix: https://extender.example.com", *body.splitlines()]
    indented = [f"{'- ' if not index else '  '}{line}\n" for index, line in enumerate(lines)]
    return configuration("extenders:\n" + "".join(indented))


def custom_resource(api_version: str, kind: str, name: str, spec: str) -> str:
    """An object of the operator; `spec` has its fields."""
    indented = "".join(f"  {line}\n" for line in spec.splitlines())
    return (
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n"
        f"spec:{'' if spec else ' {}'}\n{indented}"
    )


def kube_scheduler(spec: str) -> str:
    """KubeScheduler `cluster`."""
    return custom_resource("operator.openshift.io/v1", "KubeScheduler", "cluster", spec)


def scheduler(spec: str) -> str:
    """Scheduler `cluster`."""
    return custom_resource("config.openshift.io/v1", "Scheduler", "cluster", spec)


def own(kind: str, name: str, spec: str) -> str:
    """An object of the operator's own API group."""
    return custom_resource("kube-scheduler-operator.dev/v1alpha1", kind, name, spec)
