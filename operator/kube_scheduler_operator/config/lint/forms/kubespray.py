"""Kubespray: group variables that become flags and the file of kube-scheduler.

Source: kubernetes-sigs/kubespray at 0128a2c, roles/kubernetes/control-plane: defaults/main/
kube-scheduler.yml, templates/kubescheduler-config.yaml.j2 and kubeadm-config.v1beta4.yaml.j2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....base.findings import Path
from ....base.objects import mapping
from ....base.source.reader import Document
from ....base.source.tree import SourceNode
from .document_fields import value_of, version_of
from .flags import of_map
from .form import CommandLine, Contents, Part, assembled, node_at, with_type

_ARGUMENTS: Final = ("kube_kubeadm_scheduler_extra_args", "kube_scheduler_extra_args")
_FIELDS: Final = {
    "kube_scheduler_profiles": "profiles",
    "kube_scheduler_extenders": "extenders",
    "kube_scheduler_client_conn_extra_opts": "clientConnection",
    "kube_scheduler_leader_elect_extra_opts": "leaderElection",
}
_MORE: Final = "kube_scheduler_config_extra_opts"
_LABEL: Final = "Kubespray's group variables"
_KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"


def read(document: Document) -> Contents | None:
    value = value_of(document)
    if "kind" in value or not any(key in value for key in (*_ARGUMENTS, *_FIELDS, _MORE)):
        return None
    version = version_of(value.get("kube_version"))
    arguments = [flag for key in _ARGUMENTS for flag in of_map(value.get(key), (key,))]
    command = CommandLine(
        _LABEL,
        tuple(arguments),
        (_ARGUMENTS[0],),
        version=version,
        namespace="kube-system",
        given={"config": "/etc/kubernetes/kubescheduler-config.yaml", "kubeconfig": _KUBECONFIG},
    )
    fields: dict[str, SourceNode] = {}
    paths: dict[str, Path] = {}
    for key, name in _FIELDS.items():
        node = node_at(document, (key,))
        if node is not None and node.data:
            fields[name], paths[name] = node, (key,)
    more = node_at(document, (_MORE,))
    for name in mapping(more.data) if more is not None else ():
        node = node_at(document, (_MORE, name))
        if node is not None:
            fields[str(name)], paths[str(name)] = node, (_MORE, name)
    at = document.root.position
    fields.setdefault("clientConnection", assembled({"kubeconfig": _KUBECONFIG}, at))
    parts: tuple[Part, ...] = ()
    if paths:
        root = with_type(replace(assembled(fields, at), position=at))
        outer = tuple(((name,), path) for name, path in paths.items())
        parts = (Part(root, _LABEL, outer, version=version, command=0),)
    return Contents(parts=parts, commands=(command,) if arguments or parts else ())
