"""What was observed of an OpenShift's scheduler, as facts that can be compared. Pure.

Names of nodes, revisions and random suffixes become NODE, N and ID, so that two clusters compare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]

NAMESPACE = "openshift-kube-scheduler"
OURS = ("kube-scheduler-operator", "cert-syncer")
"""Components whose events are the operator's; the others are Kubernetes' own."""

NOT_COMPARED = {
    ("ConfigMap", "kube-root-ca.crt"),  # in every namespace of Kubernetes
    ("ServiceAccount", "default"),
}
_NOT_COMPARED_KEYS = re.compile(
    r"kubernetes\.io/(config\.|metadata\.name)|deprecated\.daemonset\.|kubectl\.kubernetes\.io/last"
)


def facts(observed: Object) -> dict[str, dict[str, str]]:
    """All facts.

    Args:
        observed: `node` and `release`, both names; `kubescheduler`, `clusteroperator`, `scheduler`,
            `namespace`, `columns` (of printer columns) and `objects` of the target namespace at
            rest after an edit; `during` the edit's rollout: pairs of the conditions of
            KubeScheduler and ClusterOperator; `events` of that time.
    """
    objects: Sequence[Object] = observed["objects"]
    say = _Plain(observed["node"])
    revision = int(observed["kubescheduler"]["status"]["latestAvailableRevision"])
    config = _named(objects, "ConfigMap", f"config-{revision}")["data"]["config.yaml"]
    # Not the mirror pod, to which the kubelet and the API server have added what they always add.
    pod = json.loads(
        _named(objects, "ConfigMap", f"kube-scheduler-pod-{revision}")["data"]["pod.yaml"]
    )
    conditions = observed["kubescheduler"]["status"]["conditions"]
    return {
        "KubeScheduler: condition types": {one["type"]: "yes" for one in conditions},
        "KubeScheduler: status and reason at rest": _states(conditions),
        "KubeScheduler: messages at rest": _messages(conditions, say),
        "KubeScheduler: fields": _fields(observed["kubescheduler"]),
        "ClusterOperator": _cluster_operator(
            observed["clusteroperator"], observed["release"], observed["columns"], say
        ),
        "While the edit rolls out": _during(observed["during"], say),
        f"Objects in {NAMESPACE}": _names(objects, say),
        "Labels and annotations": _metadata([observed["namespace"], *objects], say),
        "Keys of ConfigMaps": _keys(objects, say),
        "Static pod": _static_pod(pod),
        "Flags of kube-scheduler": _flags(pod),
        "Configuration of kube-scheduler": _configuration(config),
        "Installer pod": _installer(objects, revision, say),
        "Events of the rollout": dict.fromkeys(_events(observed["events"], say), "yes"),
        "Events of the rollout: messages": _events(observed["events"], say),
        "Events of the rollout: about": _involved(observed["events"]),
    }


class _Plain:
    """Texts without what differs from cluster to cluster."""

    def __init__(self, node: str) -> None:
        self._node = re.compile(rf"(?<![\w.]){re.escape(node)}(?![\w.])")

    def __call__(self, text: str) -> str:
        text = self._node.sub("NODE", text)
        text = re.sub(r"(revision[- ])\d+", r"\1N", text)
        text = re.sub(r"(-> revision |: )\d+( -> )", r"\1N\2", text)
        return re.sub(r"\d+\.\d+ s", "N s", text)

    def name(self, kind: str, name: str) -> str:
        """The name of an object."""
        name = self._node.sub("NODE", name)
        if kind in ("ConfigMap", "Secret"):
            name = re.sub(r"-\d+$", "-N", name)
        if kind == "Pod":
            name = re.sub(r"^(installer|revision-pruner)-\d+-", r"\1-N-", name)
            name = re.sub(r"^(kube-scheduler-cert-syncer)-\w{5}$", r"\1-ID", name)
        return name


# --- conditions -------------------------------------------------------------------------------
def _state(condition: Object) -> str:
    return f"{condition['status']}, {condition.get('reason') or 'no reason'}"


def _states(conditions: Iterable[Object]) -> dict[str, str]:
    return {one["type"]: _state(one) for one in conditions}


def _messages(conditions: Iterable[Object], say: _Plain) -> dict[str, str]:
    return {one["type"]: say(one["message"]) for one in conditions if one.get("message")}


def _fields(kubescheduler: Object) -> dict[str, str]:
    status = kubescheduler["status"]
    found = {f"status.{name}": "yes" for name in status}
    for entry in status.get("nodeStatuses") or ():
        found |= {f"status.nodeStatuses.{name}": "yes" for name in entry}
    observed = (kubescheduler.get("spec") or {}).get("observedConfig") or {}
    found |= {f"spec.observedConfig.{path}": text for path, text in _flat(observed).items()}
    return found


def _cluster_operator(
    found: Object, release: str, columns: Sequence[str], say: _Plain
) -> dict[str, str]:
    status = found["status"]
    facts = {f"{one['type']} at rest": _state(one) for one in status["conditions"]}
    facts |= {
        f"message of {kind} at rest": text
        for kind, text in _messages(status["conditions"], say).items()
    }
    facts |= {
        f"version of {one['name']}": _version(one["version"], release)
        for one in status.get("versions") or ()
    }
    for one in status.get("relatedObjects") or ():
        group = f".{one['group']}" if one.get("group") else ""
        where = f" in {one['namespace']}" if one.get("namespace") else ""
        facts[f"related: {one['resource']}{group}/{one['name']}{where}"] = "yes"
    facts["printer columns"] = ", ".join(columns)
    return facts


def _version(found: str, release: str) -> str:
    if found == release:
        return "the release's"
    return "kube-scheduler's" + (", without v" if found[:1].isdigit() else "")


def _during(pairs: Iterable[Sequence[Sequence[Object]]], say: _Plain) -> dict[str, str]:
    """The states of the conditions, sorted, and the messages during the rollout."""
    states: dict[str, set[str]] = {}
    messages: dict[str, str] = {}
    for kubescheduler, cluster_operator in pairs:
        for one in kubescheduler:
            if one["type"] in ("NodeInstallerProgressing", "StaticPodsAvailable"):
                states.setdefault(one["type"], set()).add(_state(one))
            if one["type"] == "NodeInstallerProgressing" and one["status"] == "True":
                messages.setdefault(one["type"], say(one.get("message", "")))
        for one in cluster_operator:
            states.setdefault(f"ClusterOperator {one['type']}", set()).add(_state(one))
    found = {kind: "\n".join(sorted(seen)) for kind, seen in states.items()}
    return found | {f"first message of {kind}": text for kind, text in messages.items()}


# --- objects ----------------------------------------------------------------------------------
def _named(objects: Iterable[Object], kind: str, name: str) -> Object:
    for one in objects:
        if (one["kind"], one["metadata"]["name"]) == (kind, name):
            return one
    raise KeyError(f"there is no {kind} {name}")


def _compared(objects: Iterable[Object]) -> list[Object]:
    return [one for one in objects if (one["kind"], one["metadata"]["name"]) not in NOT_COMPARED]


def _names(objects: Iterable[Object], say: _Plain) -> dict[str, str]:
    found = {
        f"{o['kind']} {say.name(o['kind'], o['metadata']['name'])}" for o in _compared(objects)
    }
    return dict.fromkeys(sorted(found), "yes")


def _metadata(objects: Iterable[Object], say: _Plain) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for one in _compared(objects):
        kind, metadata = one["kind"], one["metadata"]
        name = f"{kind} {say.name(kind, metadata['name'])}"
        for what in ("label", "annotation"):
            for key, value in (metadata.get(f"{what}s") or {}).items():
                if not _NOT_COMPARED_KEYS.search(key):
                    found.setdefault(f"{name}: {what} {key}", set()).add(_value(key, value, say))
    return {item: "\n".join(sorted(values)) for item, values in sorted(found.items())}


def _value(key: str, value: str, say: _Plain) -> str:
    if re.search(r"hash|time|generation", key):
        return "ID"
    return "N" if value.isdecimal() and "revision" in key else say(value)


def _keys(objects: Iterable[Object], say: _Plain) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for one in _compared(objects):
        if one["kind"] == "ConfigMap":
            name = say.name("ConfigMap", one["metadata"]["name"])
            found.setdefault(name, set()).update(one.get("data") or {})
    return {
        name: ", ".join(sorted(keys))
        for name, keys in sorted(found.items())
        if not name.endswith("-N") or name == "revision-status-N"  # a copy has its source's
    }


# --- pods -------------------------------------------------------------------------------------
def _static_pod(pod: Object) -> dict[str, str]:
    spec = pod["spec"]
    containers = {one["name"]: one for one in spec["containers"]}
    main = containers["kube-scheduler"]
    security = main.get("securityContext") or {}
    found = {
        "host network": str(spec.get("hostNetwork", False)).lower(),
        "priority": f"{spec.get('priority')} {spec.get('priorityClassName')}",
        "tolerations": "; ".join(_toleration(one) for one in spec.get("tolerations") or ()),
        "init containers": _list(one["name"] for one in spec.get("initContainers") or ()),
        "containers": _list(sorted(containers)),
        "volumes": _list(sorted(one["name"] for one in spec.get("volumes") or ())),
        "command": " ".join(main.get("command") or ()),
        "ports": _list(str(one["containerPort"]) for one in main.get("ports") or ()),
        "requests": _list(
            f"{name} {amount}"
            for name, amount in sorted((main["resources"].get("requests") or {}).items())
        ),
        "mounts": _list(sorted(one["mountPath"] for one in main.get("volumeMounts") or ())),
        "root file system": "read-only" if security.get("readOnlyRootFilesystem") else "writable",
        "capabilities dropped": _list((security.get("capabilities") or {}).get("drop") or ()),
        "image pull policy": main.get("imagePullPolicy", ""),
        "termination message policy": main.get("terminationMessagePolicy", ""),
    }
    return found | {f"{kind} probe": _probe(main.get(f"{kind}Probe")) for kind in _PROBES}


_PROBES = ("startup", "readiness", "liveness")


def _toleration(found: Object) -> str:
    return " ".join(str(found[key]) for key in ("key", "operator", "effect") if found.get(key))


def _probe(probe: Object | None) -> str:
    if probe is None:
        return "none"
    get = probe["httpGet"]
    delay, period = probe.get("initialDelaySeconds", 0), probe.get("periodSeconds", 10)
    where = f"{get.get('scheme', 'HTTP')} /{get['path'].lstrip('/')} of port {get['port']}"
    return f"{where}, first after {delay} s, every {period} s"


def _list(items: Iterable[str]) -> str:
    return ", ".join(items) or "none"


def _flags(pod: Object) -> dict[str, str]:
    main = next(one for one in pod["spec"]["containers"] if one["name"] == "kube-scheduler")
    found: dict[str, str] = {}
    for argument in main.get("args") or ():
        name, _, value = argument.partition("=")
        found[name] = value.replace(",", "\n") if value.count(",") else value
    return found | {"order": " ".join(found)}


def _configuration(text: str) -> dict[str, str]:
    config = json.loads(text)
    found = _flat({key: value for key, value in config.items() if key != "profiles"})
    for number, profile in enumerate(config.get("profiles") or ()):
        plugins = profile.get("plugins") or {}
        set_ = {point: value for point, value in plugins.items() if value}
        unset = sorted(point for point, value in plugins.items() if not value)
        found |= _flat({**profile, "plugins": set_}, f"profiles.{number}")
        found[f"profiles.{number}.plugins: extension points without a value"] = _list(unset)
    return found


def _flat(value: Any, path: str = "") -> dict[str, str]:
    """The leaves by their paths; a list of plain values is a leaf."""
    if isinstance(value, Mapping) and value:
        parts = {f"{path}.{key}".lstrip("."): below for key, below in value.items()}
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        parts = {f"{path}.{number}": below for number, below in enumerate(value)}
    elif isinstance(value, list):
        return {path: "\n".join(str(one) for one in value)}
    else:
        return {path: value if isinstance(value, str) else json.dumps(value)}
    return {
        below: text for place, found in parts.items() for below, text in _flat(found, place).items()
    }


def _installer(objects: Iterable[Object], revision: int, say: _Plain) -> dict[str, str]:
    prefix = f"installer-{revision}-"
    pod = next(
        one
        for one in objects
        if one["kind"] == "Pod" and one["metadata"]["name"].startswith(prefix)
    )
    spec, owners = pod["spec"], pod["metadata"].get("ownerReferences") or ()
    privileged = [
        one["name"]
        for one in spec["containers"]
        if (one.get("securityContext") or {}).get("privileged")
    ]
    token = spec.get("automountServiceAccountToken", True)
    return {
        "containers": _list(sorted(one["name"] for one in spec["containers"])),
        "service account": spec.get("serviceAccountName", ""),
        "its token": "mounted" if token else "not mounted",
        "privileged containers": _list(privileged),
        "restart policy": spec.get("restartPolicy", ""),
        "owner": _list(f"{one['kind']} {say.name(one['kind'], one['name'])}" for one in owners),
        "paths of the node": _list(
            sorted(
                one["hostPath"]["path"] for one in spec.get("volumes") or () if "hostPath" in one
            )
        ),
    }


# --- events -----------------------------------------------------------------------------------
def _ours(events: Iterable[Object]) -> list[Object]:
    return [one for one in events if (one.get("source") or {}).get("component") in OURS]


def _events(events: Iterable[Object], say: _Plain) -> dict[str, str]:
    """The first message of every reason."""
    found: dict[str, str] = {}
    for one in _ours(events):
        found.setdefault(one["reason"], say(one["message"]))
    return found


def _involved(events: Iterable[Object]) -> dict[str, str]:
    """The subjects of the operator's own events, without the names of pods."""
    about = {
        one["involvedObject"]["kind"]: one["involvedObject"]["name"]
        for one in _ours(events)
        if one["involvedObject"]["kind"] != "Pod"
    }
    return {"involved object": _list(f"{kind} {name}" for kind, name in sorted(about.items()))}
