"""Helm values of charts of schedulers.

Sources: kubernetes-sigs/scheduler-plugins 0.34.7, manifests/install/charts/as-a-second-scheduler:
values.yaml and templates/configmap.yaml (one profile; plugins are listed at multiPoint).
volcano-sh/volcano v1.15.1, installer/helm/chart/volcano: values.yaml and templates/scheduler.yaml.
argoproj/argo-cd v3.2, pkg/apis/application/v1alpha1/types.go (ApplicationSourceHelm), and
k3s-io/helm-controller v0.16, pkg/apis/helm.cattle.io/v1/types.go: values of a chart as a text.
koordinator-sh/charts at a1963c5, versions/v1.8.0: values.yaml, templates/koord-scheduler.yaml and
koord-scheduler-config.yaml, which has the configuration; no value replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import WARNING, Path, Problem, did_you_mean
from ....base.objects import entries, mapping
from ....base.source.reader import Document
from ....base.source.tree import SourceNode
from ...language.plugins.known_schedulers import owners_of
from .document_fields import at, count, group_kind, label_of, objects, text, value_of
from .embedded import CONFIG_MAP
from .form import (
    CommandLine,
    CommandLineFlag,
    Contents,
    Mount,
    Part,
    Text,
    assembled,
    node_at,
    with_type,
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


_PRODUCT: Final = "scheduler-plugins"
_IMAGE: Final = "registry.k8s.io/scheduler-plugins/kube-scheduler"
"""The image of the chart; its tag is the chart's version."""
_PLUGINS: Final[Mapping[str, tuple[str, ...]]] = {
    "enabled": (
        "Coscheduling", "CapacityScheduling", "NodeResourceTopologyMatch",
        "NodeResourcesAllocatable",
    ),
    "disabled": ("PrioritySort",),
}  # fmt: skip
"""The lists of the chart, for those that the values do not have."""
_VALUES: Final = frozenset({"scheduler", "controller", "plugins", "pluginConfig", "global"})
_HELM_RELEASE: Final = ("helm.toolkit.fluxcd.io", "HelmRelease")
_HELM_CHARTS: Final = (("helm.cattle.io", "HelmChart"), ("helm.cattle.io", "HelmChartConfig"))
_APPLICATIONS: Final[Mapping[tuple[str, str], Path]] = {
    ("argoproj.io", "Application"): ("spec",),
    ("argoproj.io", "ApplicationSet"): ("spec", "template", "spec"),
}
"""(API group, kind) -> the spec of the Application that it has."""


def _values_objects(document: Document) -> Iterator[Path]:
    """Yield where a document has values of a chart as an object: a file of values is one itself."""
    kind = group_kind(value_of(document))
    if kind == _HELM_RELEASE:
        yield ("spec", "values")
    elif kind in _APPLICATIONS:
        yield from ((*path, "valuesObject") for path in _helm_of_application(document))
    else:
        yield ()


def _helm_of_application(document: Document) -> Iterator[Path]:
    whole = value_of(document)
    spec = _APPLICATIONS[group_kind(whole)]
    yield (*spec, "source", "helm")
    for index, _ in objects(at(whole, *spec, "sources")):
        yield (*spec, "sources", index, "helm")


def read_values_texts(document: Document) -> Contents | None:
    """Read the values of a chart that an Application or k3s' HelmChart has as a text."""
    whole = value_of(document)
    kind = group_kind(whole)
    paths: list[Path] = []
    if kind in _HELM_CHARTS:
        paths.append(("spec", "valuesContent"))
    elif kind in _APPLICATIONS:
        paths += ((*path, "values") for path in _helm_of_application(document))
    written = ((path, text(document.data(path))) for path in paths)
    owner = label_of(whole)
    texts = tuple(Text(path, values, owner) for path, values in written if values)
    return Contents(texts=texts) if texts else None


def read_scheduler_plugins(document: Document) -> Contents | None:
    """Read plugins.enabled, plugins.disabled and pluginConfig of the chart of scheduler-plugins.

    The values are a file, or part of an object that installs the chart.
    """
    for root in _values_objects(document):
        value = mapping(document.data(root))
        if _is_of_scheduler_plugins(value):
            return _of_scheduler_plugins(document, root, value)
    return None


def _of_scheduler_plugins(document: Document, root: Path, value: Mapping[str, Any]) -> Contents:
    position = document.position(root)
    profile: dict[str, Any] = {
        "schedulerName": node_at(document, (*root, "scheduler", "name"))
        or "scheduler-plugins-scheduler"
    }
    lists = {}
    for key, default in _PLUGINS.items():
        node = node_at(document, (*root, "plugins", key)) or assembled([*default], position)
        lists[key] = assembled([_named(item) for item in node.items], node.position)
    profile["plugins"] = {"multiPoint": lists}
    config = node_at(document, (*root, "pluginConfig"))
    if config is not None:
        profile["pluginConfig"] = config
    election = {
        "leaderElect": node_at(document, (*root, "scheduler", "leaderElect")) or False,
        "resourceName": profile["schedulerName"],
        "resourceNamespace": "scheduler-plugins",
    }
    node = with_type(assembled({"profiles": [profile], "leaderElection": election}, position))
    image = text(at(value, "scheduler", "image")) or _IMAGE
    command = CommandLine(
        _LABEL,
        at=(*root, "scheduler"),
        image=image,
        image_at=(*root, "scheduler", "image"),
        version=stock_version(image),
        account="scheduler-plugins-scheduler",
        replicas=count(at(value, "scheduler", "replicaCount")),
    )
    paths = tuple((inner, (*root, *outer)) for inner, outer in _PATHS)
    part = Part(node, _LABEL, paths, command=0)
    return Contents(parts=(part,), commands=(command,))


def _is_of_scheduler_plugins(value: Mapping[str, Any]) -> bool:
    """Report whether these are values of its chart, also if they set nothing of `scheduler`.

    Other charts have plugins.enabled as well, with names of other plugins.
    """
    if "kind" in value or not ("plugins" in value or "pluginConfig" in value):
        return False
    if isinstance(value.get("scheduler"), dict):
        return True
    names = [name for key in ("enabled", "disabled") for name in entries(at(value, "plugins", key))]
    return value.keys() <= _VALUES and any(
        _PRODUCT in owners_of(_capitalized(name)) for name in names if isinstance(name, str)
    )


def _capitalized(name: str) -> str:
    return name[:1].upper() + name[1:]


def _named(node: SourceNode) -> SourceNode:
    """Return the entry of a plugin list for a name; the chart capitalizes its first letter."""
    name = node.data
    if isinstance(name, str):
        name = _capitalized(name)
    return assembled({"name": name}, node.position)


_VOLCANO: Final = "Helm values of Volcano"
_OVERRIDE: Final[Path] = ("custom", "scheduler_config_override")
_VOLCANOS_FILE: Final = "volcano-scheduler.conf"
_VOLCANOS_MAP: Final = "RELEASE-scheduler-configmap"
"""Its name has the name of the Helm release."""


def read_volcano(document: Document) -> Contents | None:
    """Read custom.scheduler_config_override, which the chart writes into its ConfigMap."""
    value = value_of(document)
    override = at(value, *_OVERRIDE)
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


_KOORDINATOR: Final = "Helm values of Koordinator"
_KOORD_SCHEDULER: Final = "koord-scheduler"
_DEVICE_SHARE: Final[Path] = ("scheduler", "deviceShare")
_MODELS: Final = "gpuShareUnsupportedModels"
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
    problems = tuple(_ignored_keys(mapping(at(value, *_DEVICE_SHARE))))
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
    profile = {
        "schedulerName": _KOORD_SCHEDULER,
        "plugins": {"multiPoint": {"enabled": [{"name": "DeviceShare"}]}},
        "pluginConfig": [{"name": "DeviceShare", "args": {_MODELS: shares}}],
    }
    election = {"resourceName": _KOORD_SCHEDULER}
    config = {"profiles": [profile], "leaderElection": election}
    root = with_type(assembled(config, shares.position))
    part = Part(root, _KOORDINATOR, _OF_KOORDINATOR, command=0)
    return Contents(parts=(part,), commands=(command,), problems=problems)


def _ignored_keys(device_share: Mapping[str, Any]) -> Iterator[Problem]:
    for key in map(str, device_share):
        if key != _MODELS:
            message = f"the chart reads only {_MODELS} here and ignores {key}"
            fix = did_you_mean(key, (_MODELS,)).removeprefix("; ") or "remove it"
            yield Problem("NotRead", (*_DEVICE_SHARE, key), message, fix, WARNING)
