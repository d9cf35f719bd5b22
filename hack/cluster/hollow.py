"""Nodes that exist in the API alone: as large as those of kubelets, without a machine.

For a sandbox without nodes (`up --nodes 0`). Its controller manager does not wait for heartbeats,
so hollow nodes stay Ready while they exist, and cost nothing. kube-scheduler cannot distinguish
them from real ones; pods that it binds to them stay Pending.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cluster.api import Api, Object

Item = TypeVar("Item")
Result = TypeVar("Result")

LABEL = "kube-scheduler-operator.dev/hollow"
CONNECTIONS = 8
"""Requests at a time: what two cores can make use of."""

_NODES = "/api/v1/nodes"
_ADDRESSES = IPv4Address("127.64.0.0")
"""Nodes' addresses begin here: loopback, so one process can play what listens on all of them."""
_IMAGES = 30
"""A kubelet reports up to 50 (nodeStatusMaxImages); a node in use has that many."""
_MACHINES = ((4, 16), (8, 32), (16, 64))
"""Cores and GiB of the kinds of machines; a node's number selects one."""
_ZONES = "abc"


def create(
    api: Api,
    count: int,
    *,
    annotations: Callable[[int], Mapping[str, str]] = lambda _: {},
    connections: int = CONNECTIONS,
) -> list[str]:
    """Create that many nodes and return their names.

    Args:
        api: of a sandbox without nodes of its own.
        count: how many.
        annotations: what each one's annotations are, by its number from 0.
        connections: how many requests are made at a time.

    Raises:
        ApiError: One was refused.
    """

    def make(number: int) -> str:
        made = node(number)
        made["metadata"]["annotations"] |= annotations(number)
        name: str = made["metadata"]["name"]
        api.request("POST", _NODES, made)
        # The API server taints whatever registers; the controller that takes that back is off.
        api.request("PATCH", f"{_NODES}/{name}", {"spec": {"taints": None}})
        return name

    return in_parallel(make, range(count), connections)


def annotate(
    api: Api, annotations: Mapping[str, Mapping[str, str]], connections: int = CONNECTIONS
) -> None:
    """Give nodes, by name, further annotations."""
    in_parallel(
        lambda one: api.request(
            "PATCH", f"{_NODES}/{one[0]}", {"metadata": {"annotations": dict(one[1])}}
        ),
        annotations.items(),
        connections,
    )


def remove(api: Api) -> None:
    """Delete all hollow nodes."""
    api.request("DELETE", f"{_NODES}?labelSelector={LABEL}")


def name_of(number: int) -> str:
    """The name of a node, by its number from 0."""
    return f"hollow-{number:05}"


def address_of(number: int) -> str:
    """Its InternalIP, which is an address of this machine."""
    return str(_ADDRESSES + 1 + number)


def node(number: int) -> Object:
    """A Node as a kubelet of Kubernetes 1.35 reports it, some 8 kB of JSON."""
    name = name_of(number)
    cores, memory = _MACHINES[number % len(_MACHINES)]
    zone = f"region-1{_ZONES[number % len(_ZONES)]}"
    machine = f"standard-{cores}"
    labels = {
        LABEL: "",
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": machine,
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": "region-1",
        "failure-domain.beta.kubernetes.io/zone": zone,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine,
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": zone,
    }
    annotations = {
        "csi.volume.kubernetes.io/nodeid": json.dumps({"csi.example.com": f"i-{_hex(name, 17)}"}),
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"providerID": f"example:///{zone}/i-{_hex(name, 17)}"},
        "status": _status(number, cores, memory),
    }


def _status(number: int, cores: int, memory: int) -> Object:
    """What a kubelet fills in; memory in GiB, of which it keeps one and its thresholds back."""
    name, kibibytes = name_of(number), memory * 1024 * 1024
    devices = {"ephemeral-storage": "104845292Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    capacity = {"cpu": str(cores), "memory": f"{kibibytes}Ki", "pods": "110", **devices}
    return {
        "capacity": capacity,
        "allocatable": {
            **capacity,
            "cpu": f"{cores * 1000 - 80}m",
            "memory": f"{kibibytes - 1024 * 1024 - 102400}Ki",
            "ephemeral-storage": "95551679124",
        },
        "conditions": _conditions(),
        "addresses": [
            {"type": "InternalIP", "address": address_of(number)},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": _uuid(f"boot {name}"),
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.48-amd64",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.35.4",
            "machineID": _hex(f"machine {name}", 32),
            "operatingSystem": "linux",
            "osImage": "Debian GNU/Linux 13 (trixie)",
            "systemUUID": _uuid(f"system {name}"),
        },
        "images": [_image(number, which) for which in range(_IMAGES)],
    }


def _conditions() -> list[Object]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    reported = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "sufficient PID available"),
        ("Ready", "True", "KubeletReady", "posting ready status"),
    )
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"kubelet {'is' if kind == 'Ready' else 'has'} {message}",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status, reason, message in reported
    ]


def _image(number: int, which: int) -> Object:
    """Most images are on all nodes, the last third on some."""
    group = number % 7 if which >= _IMAGES * 2 // 3 else 0
    repository = f"registry.example.com/team-{which % 6}/application-{which:02}"
    digest = _hex(f"{repository} {group}", 64)
    size = 20_000_000 + int(digest[:7], 16)  # up to 288 MB
    return {
        "names": [f"{repository}@sha256:{digest}", f"{repository}:v1.{group}.{which}"],
        "sizeBytes": size,
    }


def _hex(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _uuid(text: str) -> str:
    digest = _hex(text, 32)
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def in_parallel(
    work: Callable[[Item], Result], items: Iterable[Item], connections: int = CONNECTIONS
) -> list[Result]:
    """Do something with each item, several at a time; the first error ends it."""
    with ThreadPoolExecutor(connections) as pool:  # an Api keeps a connection for each thread
        return list(pool.map(work, items))
