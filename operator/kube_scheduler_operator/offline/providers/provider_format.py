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
    """A file or an object that the provider takes."""

    path: str  # its absolute path on control-plane nodes, or a file name without a directory
    use: str  # how the provider gets it, in one line
    content: Any  # the document


@dataclass(frozen=True, slots=True)
class ProviderFinding:
    """A setting that the provider does not take as it is."""

    reason: str  # a CamelCase identifier, for programs
    path: str  # the object and its field: `KubeScheduler/cluster spec.logLevel`
    message: str  # what is wrong
    fix: str  # how to fix it
    # "error" if the provider's scheduler would differ from the desired one
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class ProviderOutput:
    """What a provider takes, and what it does not."""

    files: tuple[ProviderFile, ...]
    findings: tuple[ProviderFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderFormat:
    """What a provider of clusters or an autoscaler takes."""

    name: str  # its name in `--for`
    source: str  # the document that defines the format, with its version
    # its files for a desired scheduler and a release of the provider (None: unknown)
    write: Callable[[Desired, Version | None], ProviderOutput]
    # whether its releases are those of Kubernetes; otherwise its own
    kubernetes_releases: bool = True
