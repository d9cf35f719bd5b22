"""The examples at the end of each command's help; a test parses every one of them."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "": (
        ("check --pre", "may I install the operator here?"),
        ("status", "what is the state, and what to do next?"),
        ("why my-pod -n my-namespace", "why does this pod wait?"),
    ),
    "check": (
        ("check --pre", "before an installation"),
        ("check --pre -f install.yaml --as jane", "your manifests, for another user"),
        ("check", "of an installed operator"),
        ("check --schedule -n default", "also schedule a pod through every profile"),
        ("check -o json --strict", "for a pipeline: warnings fail as well"),
        ("check --upgrade 1.37", "what would an upgrade of Kubernetes change?"),
    ),
    "completion": (
        ("completion bash > /etc/bash_completion.d/kubectl-scheduler", "for all users"),
        ("completion zsh > ~/.zfunc/_kubectl-scheduler", "a directory of $fpath"),
        ("completion fish > ~/.config/fish/completions/kubectl-scheduler.fish", "for fish"),
    ),
    "status": (
        ("status", "problems first, then what to do"),
        ("status --verbose", "with the scheduler of every node"),
        ("status -w", "again whenever it changes"),
        ("status --all-contexts", "of every cluster of the kubeconfig"),
        ("status -o json", "for a program"),
    ),
    "console": (
        ("console", "print the address of the pages"),
        ("console --context prod --port 8023", "of another cluster, at an address that stays"),
    ),
    "report": (
        ("report > scheduler.html", "all pages as one file, to attach to a ticket"),
        ("report --profile HighNodeUtilization > scheduler.html", "and what that would change"),
    ),
    "version": (
        ("version", "of this program, the operator, the API server and the schedulers"),
        ("version --client", "of this program, without a cluster"),
    ),
    "schema": (
        ("schema --kubernetes-version 1.37", "of KubeSchedulerConfiguration"),
        ("schema --write schemas", "of all kinds, for an editor"),
    ),
    "history": (
        ("history", "all revisions and what each one changed"),
        ("history --scheduler batch", "of a SecondaryScheduler"),
    ),
    "diff": (
        ("diff", "what the newest revision changed"),
        ("diff 3 5 -o words", "from revision 3 to 5, in words"),
        ("diff -f new.yaml --placements", "what a file would change, also for pods"),
    ),
    "plugins": (
        ("plugins", "of the running scheduler"),
        ("plugins -f config.yaml --profile packed", "of one profile in a file"),
    ),
    "why": (
        ("why my-pod", "in the namespace default"),
        ("why my-namespace/my-pod -o json", "for a program"),
        ("why my-pod --from-files must-gather/", "from files, without the cluster"),
    ),
    "pending": (
        ("pending", "all waiting pods by cause"),
        ("pending -n my-namespace", "of one namespace"),
        ("pending --context eu,us -w", "of two clusters, again whenever it changes"),
    ),
    "nodes": (
        ("nodes", "what each node has free, the worst first"),
        ("nodes --fits cpu=500m,memory=1Gi", "how many such pods fit on each node?"),
        ("nodes --sort load --nodes 0", "all nodes, the highest measured load first"),
    ),
    "simulate": (
        ("simulate -f deployment.yaml --replicas 20", "where would 20 pods go?"),
        ("simulate -f deployment.yaml --max", "how many fit?"),
        ("simulate --drain node-1", "where would the pods of a node go?"),
    ),
    "rollout": (
        ("rollout watch", "follow a rollout to its end"),
        ("rollout undo", "return to the settings before the last edit"),
    ),
    "rollout watch": (
        ("rollout watch --timeout 300", "give up after five minutes"),
        ("rollout watch --scheduler batch", "of a SecondaryScheduler"),
    ),
    "rollout undo": (
        ("rollout undo --dry-run", "show what would change"),
        ("rollout undo --to-revision 3 --yes", "without a question"),
    ),
    "pprof": (
        ("pprof heap -o heap.pb.gz", "memory of the leader"),
        ("pprof profile --seconds 30 --node cp-1 -o cpu.pb.gz", "CPU of the scheduler of a node"),
    ),
    "dump-cache": (
        ("dump-cache", "the leader's cache and queue, compared with the API"),
        ("dump-cache --node cp-1", "of another scheduler"),
    ),
    "must-gather": (("must-gather --dest /tmp/report", "for a bug report"),),
    "compose": (
        ("compose -f objects.yaml", "the effective configuration"),
        ("compose -f objects.yaml --for aks", "for a provider"),
    ),
    "validate": (("validate -f config.yaml", "errors and risky settings of a file"),),
    "convert": (
        ("convert -f old.yaml", "to the current version"),
        ("convert -f old.yaml --to second", "to a SecondaryScheduler"),
    ),
    "adopt": (
        ("adopt --dry-run", "what becomes of each setting"),
        ("adopt --dry-run -f cp-1=kube-scheduler.yaml", "with a file of a node"),
    ),
}
"""Command, and subcommand if there is one -> (arguments after `kubectl scheduler`, what for)."""
