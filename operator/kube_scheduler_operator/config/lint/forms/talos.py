"""Talos: cluster.scheduler of a machine configuration, and the document KubeSchedulerConfig.

Sources: siderolabs/talos at ad88231, pkg/machinery/config/types/v1alpha1/v1alpha1_types.go
(SchedulerConfig, which the JSON schema of 1.14 no longer has) and types/k8s/scheduler.go. Talos
sets apiVersion, kind and the kubeconfig itself and refuses --config (internal/app/machined/pkg/
controllers/k8s).
"""

from __future__ import annotations

from typing import Final

from ....base.findings import Path, Problem
from ....base.source.reader import Document
from .document_fields import at, text, value_of, version_of_image
from .flags import of_map
from .form import CommandLine, Contents, Part, host_mounts, node_at, with_type

DENIED: Final = (
    "config", "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig",
)  # fmt: skip
"""Flags that Talos does not let users set."""


def read(document: Document) -> Contents | None:
    """Read the scheduler of a machine configuration or a patch of one."""
    value = value_of(document)
    if value.get("kind") == "KubeSchedulerConfig" and value.get("apiVersion") == "v1alpha1":
        return _scheduler(document, (), "KubeSchedulerConfig")
    if "kind" in value or not isinstance(at(value, "cluster", "scheduler"), dict):
        return None
    return _scheduler(document, ("cluster", "scheduler"), "machine configuration of Talos")


def _scheduler(document: Document, path: Path, label: str) -> Contents:
    value = at(value_of(document), *map(str, path))
    image = text(at(value, "image"))
    version = version_of_image(image)
    arguments = tuple(of_map(at(value, "extraArgs"), (*path, "extraArgs")))
    problems = tuple(
        Problem(
            "NotAllowed",
            flag.path,
            f"Talos sets --{flag.name} itself and does not accept it here",
            "remove it, and write the configuration to config"
            if flag.name == "config"
            else "remove it",
        )
        for flag in arguments
        if flag.name in DENIED
    )
    command = CommandLine(
        label=label,
        arguments=tuple(flag for flag in arguments if flag.name not in DENIED),
        at=(*path, "extraArgs"),
        mounts=tuple(host_mounts(at(value, "extraVolumes"), path)),
        image=image,
        version=version,
        namespace="kube-system",
        given={"config": "/system/config/kubernetes/kube-scheduler/scheduler-config.yaml"},
    )
    parts: tuple[Part, ...] = ()
    node = node_at(document, (*path, "config"))
    if node is not None:
        at_config: Path = (*path, "config")
        parts = (Part(with_type(node), label, (((), at_config),), version=version, command=0),)
    return Contents(parts=parts, commands=(command,), problems=problems)
