"""The format of a provider: a name, its source, and a function that writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...base.findings import Severity
from ...schedulerconfig.versions import Version
from .desired import Desired


@dataclass(frozen=True, slots=True)
class ProviderFile:
    """A file or an object that the provider takes.

    Attributes:
        path: its absolute path on control-plane nodes, or a file name without a directory.
        use: how the provider gets it, in one line.
        content: the document.
    """

    path: str
    use: str
    content: Any


@dataclass(frozen=True, slots=True)
class ProviderFinding:
    """A setting that the provider does not take as it is.

    Attributes:
        reason: a CamelCase identifier, for programs.
        path: the object and its field: `KubeScheduler/cluster spec.logLevel`.
        message: what is wrong.
        fix: how to fix it.
        severity: "error" if the provider's scheduler would differ from the desired one.
    """

    reason: str
    path: str
    message: str
    fix: str
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class ProviderOutput:
    """What a provider takes, and what it does not."""

    files: tuple[ProviderFile, ...]
    findings: tuple[ProviderFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderFormat:
    """What a provider of clusters or an autoscaler takes.

    Attributes:
        name: its name in `--for`.
        source: the document that defines the format, with its version.
        write: its files for a desired scheduler and a release of the provider (None: unknown).
        kubernetes_releases: whether its releases are those of Kubernetes; otherwise its own.
    """

    name: str
    source: str
    write: Callable[[Desired, Version | None], ProviderOutput]
    kubernetes_releases: bool = True
