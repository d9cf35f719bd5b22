from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ....base.findings import ERROR, WARNING, Severity

HOME: Final = "https://kube-scheduler-operator.dev"
PAGE: Final = f"{HOME}/docs/rules.md"

ERRORS: Final[tuple[Severity, ...]] = (ERROR,)
WARNINGS: Final[tuple[Severity, ...]] = (WARNING,)
BOTH: Final[tuple[Severity, ...]] = (ERROR, WARNING)


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason for findings."""

    name: str  # the CamelCase identifier that findings have as their reason
    title: str  # what is wrong, in a few words
    meaning: str  # what happens with such a configuration, and why
    fix: str
    severities: tuple[Severity, ...]  # of its findings, the usual severity first
    example: str  # the content of a file with such a finding
    second: str = ""  # the content of another file, if the finding needs two
    flags: tuple[str, ...] = ()  # flags of `validate` with which the example has the finding
    since: str = "0.1.0"  # the release of this program that introduced the rule

    @property
    def severity(self) -> Severity:
        return self.severities[0]

    @property
    def link(self) -> str:
        return f"{PAGE}#{self.name.lower()}"

    @property
    def examples(self) -> dict[str, str]:
        files = {"first.yaml": self.example, "second.yaml": self.second}
        return {name: text for name, text in files.items() if text}


def configuration(body: str) -> str:
    return (
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n"
        f"{body}"
    )


def profile(body: str) -> str:
    lines = body.splitlines()
    indented = [f"{'- ' if not index else '  '}{line}\n" for index, line in enumerate(lines)]
    return configuration("profiles:\n" + "".join(indented))


def extender(body: str) -> str:
    lines = ["urlPrefix: https://extender.example.com", *body.splitlines()]
    indented = [f"{'- ' if not index else '  '}{line}\n" for index, line in enumerate(lines)]
    return configuration("extenders:\n" + "".join(indented))


def custom_resource(api_version: str, kind: str, name: str, spec: str) -> str:
    indented = "".join(f"  {line}\n" for line in spec.splitlines())
    return (
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n"
        f"spec:{'' if spec else ' {}'}\n{indented}"
    )


def kube_scheduler(spec: str) -> str:
    return custom_resource("operator.openshift.io/v1", "KubeScheduler", "cluster", spec)


def scheduler(spec: str) -> str:
    return custom_resource("config.openshift.io/v1", "Scheduler", "cluster", spec)


def own(kind: str, name: str, spec: str) -> str:
    """Write an object of the operator's own API group."""
    return custom_resource("kube-scheduler-operator.dev/v1alpha1", kind, name, spec)
