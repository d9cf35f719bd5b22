from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....base.findings import ERROR, Severity
from ...language.versions import Version
from .desired import Desired


@dataclass(frozen=True, slots=True)
class ProviderFile:
    """A file or an object for the provider."""

    path: str  # its absolute path on control-plane nodes, or a file name without a directory
    use: str  # how the provider gets it, in one line
    content: Any


@dataclass(frozen=True, slots=True)
class ProviderFinding:
    """A setting that the provider does not support as it is."""

    reason: str  # a CamelCase identifier, for programs
    path: str  # the object and its field: `KubeScheduler/cluster spec.logLevel`
    message: str
    fix: str
    severity: Severity = ERROR  # if the provider's scheduler would differ from the desired one


@dataclass(frozen=True, slots=True)
class ProviderOutput:
    files: tuple[ProviderFile, ...]
    findings: tuple[ProviderFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderFormat:
    """The files and settings that a provider of clusters or an autoscaler supports."""

    name: str  # in `--for`
    source: str  # the document that defines the format, with its version
    # writes the files for a desired scheduler and a release of the provider (None: unknown)
    write: Callable[[Desired, Version | None], ProviderOutput]
    kubernetes_releases: bool = True  # whether its releases are those of Kubernetes
