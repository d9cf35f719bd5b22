"""k0s: spec.scheduler of a ClusterConfig.

Source: k0sproject/k0s 1.34, pkg/apis/k0s/v1beta1/clusterconfig_types.go (SchedulerSpec).
"""

from __future__ import annotations

from ....base.findings import Path
from ....base.objects import entries, mapping
from ....base.source.reader import Document
from .document_fields import at, value_of
from .flags import of_map, of_words
from .form import CommandLine, Contents
from .words import word_problems


def read(document: Document) -> Contents:
    """Read spec.scheduler of a ClusterConfig; its rawArgs come after its extraArgs."""
    value = value_of(document)
    path: Path = ("spec", "scheduler")
    spec = mapping(at(value, *map(str, path)))
    words = [
        (word, (*path, "rawArgs", index))
        for index, word in enumerate(entries(spec.get("rawArgs")))
        if isinstance(word, str)
    ]
    arguments = (*of_map(spec.get("extraArgs"), (*path, "extraArgs")), *of_words(words))
    problems = tuple(word_problems([("kube-scheduler", path), *words]))
    if not arguments and not problems:
        return Contents()
    command = CommandLine(
        "ClusterConfig of k0s",
        arguments,
        path,
        namespace="kube-system",
        given={"kubeconfig": "/var/lib/k0s/pki/scheduler.conf", "leader-elect": "true"},
    )
    return Contents(commands=(command,), problems=problems)
