"""Helm values of charts of schedulers.

Sources: kubernetes-sigs/scheduler-plugins 0.34.7, manifests/install/charts/as-a-second-scheduler:
values.yaml and templates/configmap.yaml (one profile; plugins are listed at multiPoint).
volcano-sh/volcano v1.15.1, installer/helm/chart/volcano: values.yaml and templates/scheduler.yaml.
koordinator-sh/charts at a1963c5, versions/v1.8.0: values.yaml, templates/koord-scheduler.yaml and
koord-scheduler-config.yaml, which has the configuration; no value replaces it.
"""

from __future__ import annotations

from typing import Final

from ....base.findings import WARNING, Path, Problem, did_you_mean
from ....base.objects import mapping
from ....base.source.reader import Document
from ....base.source.tree import Position, SourceNode
from .config_map import CONFIG_MAP
from .document_fields import at, count, text, value_of
from .form import (
    CommandLine,
    CommandLineFlag,
    Contents,
    Form,
    Mount,
    Part,
    Text,
    listed,
    made_of,
    node_at,
    scalar,
)
from .volcano import PROGRAM as VC_SCHEDULER
from .workload import stock_version

_LABEL: Final = "Helm values of scheduler-plugins"
_PATHS: Final[tuple[tuple[Path, Path], ...]] = (
    (("profiles", 0, "plugins", "multiPoint"), ("plugins",)),
    (("profiles", 0, "pluginConfig"), ("pluginConfig",)),
    (("profiles", 0, "schedulerName"), ("scheduler", "name")),
    (("leaderElection", "resourceName"), ("scheduler", "name")),
    (("leaderElection",), ("scheduler",)),
    (("profiles",), ("scheduler",)),
)


def read(document: Document) -> Contents | None:
    """Read plugins.enabled, plugins.disabled and pluginConfig of the chart of scheduler-plugins."""
    value = value_of(document)
    if "kind" in value or not isinstance(at(value, "scheduler"), dict):
        return None
    if not ("plugins" in value or "pluginConfig" in value):
        return None
    name = node_at(document, ("scheduler", "name"))
    fields: dict[str, SourceNode] = {
        "schedulerName": name or scalar(document.root.position, "scheduler-plugins-scheduler")
    }
    enabled, disabled = (node_at(document, ("plugins", key)) for key in ("enabled", "disabled"))
    lists = {
        key: listed(node.position, [_named(item) for item in node.items])
        for key, node in (("enabled", enabled), ("disabled", disabled))
        if node is not None
    }
    position = document.root.position
    if lists:
        point = _plain(position, lists)
        fields["plugins"] = _plain(point.position, {"multiPoint": point})
    config = node_at(document, ("pluginConfig",))
    if config is not None:
        fields["pluginConfig"] = config
    profile = _plain(position, fields)
    elected = node_at(document, ("scheduler", "leaderElect"))
    election = _plain(
        position,
        {
            "leaderElect": elected or scalar(position, False),
            "resourceName": fields["schedulerName"],
            "resourceNamespace": scalar(position, "scheduler-plugins"),
        },
    )
    root = made_of(position, {"profiles": listed(position, [profile]), "leaderElection": election})
    image = text(at(value, "scheduler", "image"))
    command = CommandLine(
        _LABEL,
        at=("scheduler",),
        image=image,
        image_at=("scheduler", "image"),
        version=stock_version(image),
        account="scheduler-plugins-scheduler",
        replicas=count(at(value, "scheduler", "replicaCount")),
    )
    part = Part(root, _LABEL, _PATHS, command=0)
    return Contents(parts=(part,), commands=(command,))


def _named(node: SourceNode) -> SourceNode:
    """Return the entry of a plugin list for a name; the chart capitalizes its first letter."""
    name = node.data
    if isinstance(name, str):
        name = name[:1].upper() + name[1:]
    return _plain(node.position, {"name": SourceNode(node.position, name)})


def _plain(position: Position, fields: dict[str, SourceNode]) -> SourceNode:
    start = next(iter(fields.values())).position if fields else position
    data = {key: node.data for key, node in fields.items()}
    return SourceNode(start, data, {key: (node.position, node) for key, node in fields.items()})


SCHEDULER_PLUGINS: Final = Form(
    "Helm values of scheduler-plugins (`plugins.enabled`, `pluginConfig`)",
    "kubernetes-sigs/scheduler-plugins 0.34.7, manifests/install/charts",
    read,
)


_VOLCANO: Final = "Helm values of Volcano"
_OVERRIDE: Final[Path] = ("custom", "scheduler_config_override")
_VOLCANOS_FILE: Final = "volcano-scheduler.conf"
_VOLCANOS_MAP: Final = "RELEASE-scheduler-configmap"
"""Its name has the name of the Helm release."""


def read_volcano(document: Document) -> Contents | None:
    """Read custom.scheduler_config_override, which the chart writes into its ConfigMap."""
    value = value_of(document)
    override = at(value, *map(str, _OVERRIDE))
    if "kind" in value or not isinstance(override, str):
        return None
    config = CommandLineFlag("scheduler-conf", f"/volcano.scheduler/{_VOLCANOS_FILE}", _OVERRIDE)
    command = CommandLine(
        _VOLCANO,
        (config,),
        at=_OVERRIDE,
        mounts=(Mount("/volcano.scheduler", CONFIG_MAP, _VOLCANOS_MAP, at=_OVERRIDE),),
        account=_VOLCANO,
        program=VC_SCHEDULER,
    )
    content = Text(
        _OVERRIDE, override, _VOLCANO, CONFIG_MAP, "", _VOLCANOS_MAP, _VOLCANOS_FILE, required=True
    )
    return Contents(texts=(content,), commands=(command,))


VOLCANO: Final = Form(
    "Helm values of Volcano (`custom.scheduler_config_override`)",
    "volcano-sh/volcano v1.15.1, installer/helm/chart/volcano",
    read_volcano,
)


_KOORDINATOR: Final = "Helm values of Koordinator"
_KOORD_SCHEDULER: Final = "koord-scheduler"
_DEVICE_SHARE: Final[Path] = ("scheduler", "deviceShare")
_MODELS: Final = "gpuShareUnsupportedModels"
NOT_READ: Final = "NotRead"
_OF_KOORDINATOR: Final[tuple[tuple[Path, Path], ...]] = (
    (("profiles", 0, "pluginConfig", 0, "args"), _DEVICE_SHARE),
    (("profiles",), _DEVICE_SHARE),
    (("leaderElection",), ("scheduler",)),
)


def is_koordinator(value: object) -> bool:
    repository = text(at(value, "scheduler", "image", "repository"))
    return at(value, "kind") is None and repository.rpartition("/")[2] == _KOORD_SCHEDULER


def read_koordinator(document: Document) -> Contents | None:
    """Read scheduler.featureGates, and DeviceShare's arguments in scheduler.deviceShare."""
    value = value_of(document)
    if not is_koordinator(value):
        return None
    gates = at(value, "scheduler", "featureGates")
    shares = node_at(document, (*_DEVICE_SHARE, _MODELS))
    problems = tuple(
        Problem(
            NOT_READ,
            (*_DEVICE_SHARE, key),
            f"the chart reads only {_MODELS} here and ignores {key}",
            did_you_mean(key, (_MODELS,)).removeprefix("; ") or "remove it",
            WARNING,
        )
        for key in map(str, mapping(at(value, *map(str, _DEVICE_SHARE))))
        if key != _MODELS
    )
    if not gates and shares is None:
        return Contents(problems=problems)
    path: Path = ("scheduler", "featureGates")
    image = at(value, "scheduler", "image")
    command = CommandLine(
        _KOORDINATOR,
        (CommandLineFlag("feature-gates", str(gates), path),) if gates else (),
        at=("scheduler",),
        image=f"{text(at(image, 'repository'))}:{text(at(image, 'tag'))}".rstrip(":"),
        image_at=("scheduler", "image", "tag"),
        account=_KOORD_SCHEDULER,
        replicas=count(at(value, "scheduler", "replicas")),
        given={"config": "/config/koord-scheduler.config"},
    )
    if shares is None:
        return Contents(commands=(command,), problems=problems)
    arguments = _plain(shares.position, {_MODELS: shares})
    position = shares.position
    name = scalar(position, "DeviceShare")
    enabled = listed(position, [_plain(position, {"name": name})])
    point = _plain(position, {"multiPoint": _plain(position, {"enabled": enabled})})
    fields = {
        "schedulerName": scalar(position, _KOORD_SCHEDULER),
        "plugins": point,
        "pluginConfig": listed(position, [_plain(position, {"name": name, "args": arguments})]),
    }
    election = {"resourceName": scalar(position, _KOORD_SCHEDULER)}
    root = made_of(
        position,
        {
            "profiles": listed(position, [_plain(position, fields)]),
            "leaderElection": _plain(position, election),
        },
    )
    part = Part(root, _KOORDINATOR, _OF_KOORDINATOR, command=0)
    return Contents(parts=(part,), commands=(command,), problems=problems)


KOORDINATOR: Final = Form(
    "Helm values of Koordinator (`scheduler.featureGates`, `scheduler.deviceShare`)",
    "koordinator-sh/charts at a1963c5, versions/v1.8.0",
    read_koordinator,
)
