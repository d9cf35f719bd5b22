"""The inventory of an adopted static Pod: each field is kept, has an equivalent, or is reported.

The Pod is the mirror Pod in the API, in which the API server has set defaults. A field that is in
no table here cannot be kept: a field of a newer Kubernetes is reported instead of lost.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base import names
from ....base.environment import holds_credentials
from ....base.objects import Object, mapping
from ....base.platform import Platform
from ...model.pod_status import named
from ..node_pods import OWN_VOLUMES, STATIC_POD_RESOURCES
from .pod_settings import PROBES, PodSettings

_KUBELET_ANNOTATIONS: Final = "kubernetes.io/config."
"""The kubelet writes these on mirror Pods."""

_OWN_ANNOTATIONS: Final = ("kubectl.kubernetes.io/default-container",)
_OWN_PREFIXES: Final = (
    f"{names.PREFIX}/",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
)

_SPEC_IGNORED: Final = frozenset({
    "automountServiceAccountToken", "containers", "hostNetwork", "nodeName", "os",
    "preemptionPolicy", "priority", "schedulerName", "securityContext", "serviceAccount",
    "serviceAccountName", "tolerations", "volumes",
})  # fmt: skip
"""Fields without an effect on a static Pod, fields of mirror Pods, and fields handled elsewhere."""

_SPEC_KEPT: Final[Mapping[str, Any]] = {
    "dnsConfig": None,
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "hostAliases": None,
    "hostname": None,
    "priorityClassName": "system-node-critical",
    "runtimeClassName": None,
    "terminationGracePeriodSeconds": 30,
}
"""Fields of the spec that are kept as they are -> their value in kubeadm's manifest."""

_SPEC_DEFAULTS: Final[Mapping[str, Any]] = {"restartPolicy": "Always"}

_CONTAINER_IGNORED: Final = frozenset({
    "args", "command", "env", "image", "name", "ports", "resources", "securityContext",
    "terminationMessagePath", "terminationMessagePolicy", "volumeMounts", *PROBES,
})  # fmt: skip
"""Fields handled elsewhere. The operator needs the termination message for its reports."""

_CONTAINER_KEPT: Final[Mapping[str, Any]] = {"imagePullPolicy": "IfNotPresent"}

_STOCK_RESOURCES: Final = {"requests": {"cpu": "100m"}}
"""Of kubeadm's manifest; the operator's own request memory as well."""

_PROBE_PATHS: Final = ("/healthz", "/livez", "/readyz")
_PROBE_TIMES: Final[Mapping[str, Mapping[str, int]]] = {
    "startupProbe": {"timeoutSeconds": 15},
    "readinessProbe": {"failureThreshold": 3, "periodSeconds": 1, "timeoutSeconds": 15},
    "livenessProbe": {"failureThreshold": 8, "periodSeconds": 10, "timeoutSeconds": 15},
}
"""Times in kubeadm's manifest, to which the operator's are equivalent."""

_STARTUP_SECONDS: Final = 240
_INITIAL_DELAYS: Final = (0, 10)
_PROBE_KEYS: Final = frozenset({
    "failureThreshold", "httpGet", "initialDelaySeconds", "periodSeconds", "successThreshold",
    "terminationGracePeriodSeconds", "timeoutSeconds",
})  # fmt: skip

_POD_SECURITY: Final[Mapping[str, Any]] = {
    "appArmorProfile": None,
    "seLinuxOptions": None,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_SECURITY: Final[Mapping[str, Any]] = {
    "appArmorProfile": None,
    "seLinuxOptions": None,
    "seccompProfile": None,
}
_STRICTER: Final[Mapping[str, Sequence[Any]]] = {
    "allowPrivilegeEscalation": (True, False),
    "privileged": (False,),
    "procMount": ("Default",),
    "readOnlyRootFilesystem": (True, False),
    "runAsGroup": (0,),
    "runAsNonRoot": (False,),
    "runAsUser": (0,),
}
"""Values to which the operator's security context is equivalent, or stricter without a loss."""

_NEEDED_CAPABILITIES: Final = frozenset({"NET_BIND_SERVICE", "CAP_NET_BIND_SERVICE"})

_VOLUMES: Final = ("emptyDir", "hostPath", "downwardAPI")
"""Kinds of volumes that a static Pod can have."""

_NOTED_REFERENCES: Final = ("fieldRef", "resourceFieldRef")


@dataclass(frozen=True, slots=True)
class NotKept:
    """A setting of an adopted Pod that a Pod of the operator cannot have."""

    name: str  # the setting: `initContainers`, `env.TOKEN` …
    message: str  # why, and the way to keep its effect; without values


@dataclass(frozen=True, slots=True)
class Inventory:
    """What an adopted static Pod has beyond its flags."""

    settings: PodSettings
    not_kept: tuple[NotKept, ...] = ()


def take_inventory(pod: Object, platform: Platform) -> Inventory:
    """Every setting of a scheduler's Pod that differs from what kubeadm writes."""
    spec, lost = mapping(pod.get("spec")), list[NotKept]()
    containers = [mapping(container) for container in spec.get("containers") or ()]
    container = named(containers, names.OPERAND)
    for other in containers:
        if other is not container:
            what = "runs a second container; make it a Pod of its own, such as a SchedulerExtender"
            lost.append(NotKept(f"containers.{other.get('name')}", what))
    volumes, mounts = _volumes(spec, container, platform, lost)
    pod_fields = {
        **_kept(spec, _SPEC_KEPT),
        **_group("securityContext", _security(spec, _POD_SECURITY, "pod.", lost)),
        **_group("volumes", volumes),
    }
    if "priorityClassName" in pod_fields and isinstance(spec.get("priority"), int):
        pod_fields["priority"] = spec["priority"]
    fields = {
        **_kept(container, _CONTAINER_KEPT),
        **_group("env", _environment(container, platform, lost)),
        **_group("resources", _resources(container, lost)),
        **_group("securityContext", _security(container, _CONTAINER_SECURITY, "", lost)),
        **_group("volumeMounts", mounts),
        **_group("ports", _ports(container)),
        **{name: times for name in PROBES if (times := _probe(container, name, lost))},
    }
    lost += _unknown(spec, (_SPEC_IGNORED, _SPEC_KEPT, _SPEC_DEFAULTS), _SPEC_DEFAULTS, "pod.")
    lost += _unknown(container, (_CONTAINER_IGNORED, _CONTAINER_KEPT), {}, "")
    lost += _command(container)
    metadata = mapping(pod.get("metadata"))
    settings = PodSettings(
        _annotations(metadata, platform), _labels(metadata, platform), pod_fields, fields
    )
    return Inventory(settings, tuple(sorted(set(lost), key=lambda not_kept: not_kept.name)))


def _group(name: str, value: Any) -> dict[str, Any]:
    return {name: value} if value else {}


def _kept(fields: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: fields[name]
        for name, usual in known.items()
        if fields.get(name) not in (None, "", [], {}, usual)
    }


def _unknown(
    fields: Mapping[str, Any],
    known: Sequence[Any],
    defaults: Mapping[str, Any],
    scope: str,
) -> Iterator[NotKept]:
    """Fields that are in no table, unless they are unset or have their default."""
    for name, value in sorted(fields.items()):
        usual = name in defaults and value == defaults[name]
        if usual or value in (None, "", False, [], {}):
            continue
        if any(name in table for table in known) and name not in defaults:
            continue
        message = "is not a setting of the operator's static Pod; remove it from the manifest"
        yield NotKept(f"{scope}{name}", message)


def _annotations(metadata: Mapping[str, Any], platform: Platform) -> dict[str, str]:
    own = {name for name, _ in platform.static_pod_annotations}
    return {
        name: str(value)
        for name, value in sorted(mapping(metadata.get("annotations")).items())
        if name not in own
        and name not in _OWN_ANNOTATIONS
        and not name.startswith((_KUBELET_ANNOTATIONS, *_OWN_PREFIXES))
    }


def _labels(metadata: Mapping[str, Any], platform: Platform) -> dict[str, str]:
    own = {names.REVISION_LABEL, "app", *(name for name, _ in platform.static_pod_labels)}
    kept = {}
    for name, value in sorted(mapping(metadata.get("labels")).items()):
        # Any client can label a mirror Pod; the operator's own labels are set by it.
        if name not in own and not name.startswith(_OWN_PREFIXES):
            kept[name] = str(value)
    return kept


def _environment(
    container: Mapping[str, Any], platform: Platform, lost: list[NotKept]
) -> list[dict[str, Any]]:
    kept = []
    for variable in map(mapping, container.get("env") or ()):
        name = str(variable.get("name") or "")
        if name in platform.stock_environment:
            continue
        source = mapping(variable.get("valueFrom"))
        if holds_credentials(name, str(variable.get("value") or "")):
            message = (
                "has credentials in the manifest, which are not copied into the API; have its "
                "target accept the node without them, or name a file, and remove it"
            )
            lost.append(NotKept(f"env.{name}", message))
        elif source and not source.keys() <= set(_NOTED_REFERENCES):
            message = "refers to what a static Pod cannot read; set its value instead"
            lost.append(NotKept(f"env.{name}", message))
        else:
            kept.append(dict(variable))
    return kept


def _resources(container: Mapping[str, Any], lost: list[NotKept]) -> dict[str, Any]:
    resources = {k: v for k, v in mapping(container.get("resources")).items() if v}
    if resources.pop("claims", None):
        lost.append(NotKept("resources.claims", "a static Pod cannot have claims; remove them"))
    return {} if resources == _STOCK_RESOURCES else resources


def _ports(container: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ports under another name than kubeadm's; with the host's network, a port is only a name."""
    return [
        {key: value for key, value in port.items() if key != "hostPort"}
        for port in map(mapping, container.get("ports") or ())
        if port.get("name") not in (None, "", "probe-port")
    ]


def _security(
    fields: Mapping[str, Any], known: Mapping[str, Any], scope: str, lost: list[NotKept]
) -> dict[str, Any]:
    context = mapping(fields.get("securityContext"))
    kept = _kept(context, known)
    for name, value in sorted(context.items()):
        if name in known or value in (None, "", [], {}) or value in _STRICTER.get(name, ()):
            continue
        if name == "capabilities":
            added = frozenset(mapping(value).get("add") or ())
            if added <= _NEEDED_CAPABILITIES:
                if added:
                    kept["capabilities"] = {"add": sorted(added), "drop": ["ALL"]}
                continue
        message = (
            "the operator's scheduler runs as root without capabilities, as kubeadm's does by "
            "default, and is never privileged; remove it from the manifest"
        )
        lost.append(NotKept(f"{scope}securityContext.{name}", message))
    return kept


def _probe(container: Mapping[str, Any], name: str, lost: list[NotKept]) -> dict[str, Any]:
    """The times of a probe that differ from kubeadm's."""
    probe = mapping(container.get(name))
    if not probe:
        return {}
    get = mapping(probe.get("httpGet"))
    odd = probe.keys() - _PROBE_KEYS
    plain = str(get.get("scheme") or "") == "HTTPS" and get.get("path") in _PROBE_PATHS
    if odd or not plain or get.get("httpHeaders"):
        message = (
            f"does something else than GET {', '.join(_PROBE_PATHS)} over HTTPS; only its times "
            "can be kept: remove the rest from the manifest"
        )
        lost.append(NotKept(name, message))
        return {}
    times = {key: value for key, value in probe.items() if key != "httpGet" and value is not None}
    if wrong := sorted(key for key, value in times.items() if type(value) is not int):
        lost.append(NotKept(f"{name}.{wrong[0]}", "is not a whole number; correct the manifest"))
        return {}
    kept = {
        key: times[key]
        for key, usual in _PROBE_TIMES[name].items()
        if times.get(key, usual) != usual
    }
    if name == "startupProbe":
        seconds = (times.get("failureThreshold") or 3) * (times.get("periodSeconds") or 10)
        if seconds != _STARTUP_SECONDS:
            # The operator's period is one second, so that a start is noticed at once.
            kept["failureThreshold"] = seconds
    if times.get("initialDelaySeconds", 0) not in _INITIAL_DELAYS:
        kept["initialDelaySeconds"] = times["initialDelaySeconds"]
    if times.get("terminationGracePeriodSeconds"):
        kept["terminationGracePeriodSeconds"] = times["terminationGracePeriodSeconds"]
    return kept


def _volumes(
    spec: Mapping[str, Any],
    container: Mapping[str, Any],
    platform: Platform,
    lost: list[NotKept],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(volumes, mounts) other than the platform's; a volume without a mount has no effect."""
    known = {str(volume.get("name")): mapping(volume) for volume in spec.get("volumes") or ()}
    volumes: dict[str, dict[str, Any]] = {}
    mounts = []
    for mount in map(mapping, container.get("volumeMounts") or ()):
        name, at = str(mount.get("name")), posixpath.normpath(str(mount.get("mountPath")))
        volume = known.get(name, {})
        path = posixpath.normpath(str(mapping(volume.get("hostPath")).get("path") or "."))
        if _is_platforms(path, at, platform):
            continue
        if not any(kind in volume for kind in _VOLUMES):
            message = "is of a kind that a static Pod cannot have; use a file of the node"
            lost.append(NotKept(f"volumes.{name}", message))
            continue
        own = (STATIC_POD_RESOURCES, platform.scheduler_kubeconfig, *platform.kubeconfig_files)
        if at in own or f"{STATIC_POD_RESOURCES}/".startswith(f"{at.rstrip('/')}/"):
            message = (
                f"its mount at {at} would hide the operator's files; mount only what is needed"
            )
            lost.append(NotKept(f"volumes.{name}", message))
            continue
        kept = f"adopted-{name}" if name.startswith(OWN_VOLUMES) else name
        volumes[kept] = {**volume, "name": kept}
        mounts.append({**mount, "name": kept})
    ordered = [volumes[name] for name in sorted(volumes)]
    return ordered, sorted(mounts, key=lambda mount: str(mount["mountPath"]))


def _is_platforms(path: str, at: str, platform: Platform) -> bool:
    if path in (platform.scheduler_kubeconfig, *platform.kubeconfig_files) and path == at:
        return True
    return any(f"{path}/".startswith(f"{own}/") for own in platform.stock_host_paths)


def _command(container: Mapping[str, Any]) -> Iterator[NotKept]:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if words and not words[0].startswith("-") and posixpath.basename(words[0]) != names.OPERAND:
        message = (
            "starts kube-scheduler through another program; call kube-scheduler itself, with flags"
        )
        yield NotKept("command", message)
