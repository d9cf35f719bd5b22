"""Kinds in which a pod is not created, waits for its gate or its rollout, or is misplaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from .situation import HOST, OTHER_NAMESPACE, REQUIRED, Object, Situation
from .table import Change, expression, ignore, term

_NAMESPACED: Final = f"/api/v1/namespaces/{OTHER_NAMESPACE}"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


# --- pods that the API server refuses -------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """A kind of Deployment whose pods the API server refuses; in namespace OTHER_NAMESPACE."""

    cause: str
    fix: str
    # (path of the collection, object) before, and what helps: such an object or a merge patch
    objects: tuple[tuple[str, Object], ...] = ()
    repairs: tuple[tuple[str, Object], ...] = ()
    spec: Object = field(default_factory=dict)  # of the pods
    resources: Object = field(default_factory=dict)  # of their container


def _quota(name: str, hard: Object) -> tuple[str, Object]:
    return f"{_NAMESPACED}/resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard}}


def _raised(name: str, hard: Object) -> tuple[str, Object]:
    return f"{_NAMESPACED}/resourcequotas/{name}", {"spec": {"hard": hard}}


_ALL: Final = {"requests.cpu": "1", "limits.cpu": "1", "requests.memory": "1Gi"}
_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_RANGES: Final = f"{_NAMESPACED}/limitranges"
_LIMITS: Final = {"type": "Container", "max": {"cpu": "1"}}
REFUSALS: Final = {
    "a quota of pods": Refusal(
        "exceeded quota: pods, requested: pods=1",
        f"raise ResourceQuota {OTHER_NAMESPACE}/pods, or delete other pods",
        (_quota("pods", {"pods": "1"}),),
        (_raised("pods", {"pods": "5"}),),
    ),
    "a quota of cpu": Refusal(
        "exceeded quota: cpu, requested: requests.cpu=1",
        f"raise ResourceQuota {OTHER_NAMESPACE}/cpu, or request less",
        (_quota("cpu", {"requests.cpu": "1"}),),
        (_raised("cpu", {"requests.cpu": "5"}),),
        resources={"requests": {"cpu": "1"}},
    ),
    "a quota that demands requests and limits": Refusal(
        "failed quota: all: must specify limits.cpu for: c; requests.cpu for: c; requests.memory "
        "for: c",
        f"set limits.cpu of c, requests.cpu of c, requests.memory of c, as ResourceQuota "
        f"{OTHER_NAMESPACE}/all requires",
        (_quota("all", _ALL),),
        (_raised("all", dict.fromkeys(_ALL)),),
    ),
    "a limit of containers": Refusal(
        "maximum cpu usage per Container is 1, but limit is 2",
        "set the limit of cpu of the containers to at most 1, or change max.cpu of the LimitRange",
        ((_RANGES, {"metadata": {"name": "cpu"}, "spec": {"limits": [_LIMITS]}}),),
        ((f"{_RANGES}/cpu", {"spec": {"limits": [{**_LIMITS, "max": {"cpu": "2"}}]}}),),
        resources={"limits": {"cpu": "2"}},
    ),
    "a class of priority that does not exist": Refusal(
        "no PriorityClass with name pending-gone was found",
        "create PriorityClass pending-gone, or correct priorityClassName",
        repairs=(
            (
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {"metadata": {"name": "pending-gone"}, "value": 1},
            ),
        ),
        spec={"priorityClassName": "pending-gone"},
    ),
    "an account that does not exist": Refusal(
        'serviceaccount "gone" not found',
        f"create ServiceAccount {OTHER_NAMESPACE}/gone, or correct serviceAccountName",
        repairs=((f"{_NAMESPACED}/serviceaccounts", {"metadata": {"name": "gone"}}),),
        spec={"serviceAccountName": "gone"},
    ),
    "a network of the host that the namespace forbids": Refusal(
        'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)',
        "the label pod-security.kubernetes.io/enforce, which is baseline",
        objects=((_NAMESPACED, {"metadata": {"labels": {_ENFORCE: "baseline"}}}),),
        repairs=((_NAMESPACED, {"metadata": {"labels": {_ENFORCE: None}}}),),
        spec={"hostNetwork": True},
    ),
}  # fmt: skip


# --- rollouts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rollout:
    """A kind of Deployment whose new pod waits for one of its old pods, on three nodes."""

    cause: str
    spec: Object  # of the pods
    replicas: int = 3
    arrange: Change | None = None


def _container(**fields: Any) -> Object:
    return {"containers": [{"name": "c", "image": "i", **fields}]}


ROLLOUTS: Final = {
    "an anti-affinity per node": Rollout(
        "with app=rolled runs on node",
        {**_container(), "affinity": {"podAntiAffinity": {REQUIRED: [term("rolled", HOST)]}}},
    ),
    "a host port": Rollout(
        "uses the host port 8080/TCP of the node",
        _container(ports=[{"containerPort": 80, "hostPort": 8080}]),
    ),
    "requests of a whole node": Rollout(
        "less than 3 of cpu is free, requested by container c",
        _container(resources={"requests": {"cpu": "3"}}),
    ),
    "a volume for one pod alone": Rollout(
        "uses PersistentVolumeClaim {}-data, whose access mode is ReadWriteOncePod",
        _container(),
        1,
        lambda s: ignore(s.bound_claim(HOST, s.name("b"), mode="ReadWriteOncePod")),
    ),
}


# --- gates ----------------------------------------------------------------------------------------

GATES: Final = {
    "example.com/wait": "the gate example.com/wait is to be removed by a controller of example.com",
    "kueue.x-k8s.io/admission": "Kueue removes the gate kueue.x-k8s.io/admission: kubectl describe "
    "workloads.kueue.x-k8s.io -n pending-kinds",
    "wait": "the gate wait is to be removed by the client that has set it",
}
"""By name: who removes it."""


# --- misplacement ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Misplacement:
    """A pod that goes to node `a`, which has less room than the others, and what changes that."""

    arrange: Callable[[Situation], object]
    plugin: str  # that decides
    words: str  # what it scores by, a part of the sentence
    repair: Callable[[Situation], object]


def _image(situation: Situation) -> None:
    situation.spec["containers"][0]["image"] = "example.com/big:1"
    image = {"names": ["example.com/big:1"], "sizeBytes": 2 * 1024**3}
    situation.nodes[0]["status"]["images"] = [image]


def _without_images(situation: Situation) -> None:
    path = f"/api/v1/nodes/{situation.name('a')}/status"
    situation.patches.append((path, {"status": {"images": None}}))


def _prefers(situation: Situation) -> None:
    situation.nodes[0]["metadata"]["labels"]["disk"] = "fast"
    preference = {"weight": 100, "preference": expression("disk", "In", "fast")}
    situation.spec["affinity"] = {"nodeAffinity": {_PREFERRED: [preference]}}


def _prefers_pods(situation: Situation) -> None:
    situation.runs(0, app="db")
    preference = {"weight": 100, "podAffinityTerm": term("db", HOST)}
    situation.spec["affinity"] = {"podAffinity": {_PREFERRED: [preference]}}


def _tainted(situation: Situation) -> None:
    for node in situation.nodes[1:]:
        node["spec"]["taints"] = [{"key": "busy", "effect": "PreferNoSchedule"}]


def _untainted(situation: Situation) -> None:
    for number in (1, 2):
        situation.patch_node(number, {"spec": {"taints": []}})


def _spread(situation: Situation) -> None:
    for node in (1, 1, 2, 2):
        situation.runs(node)
    situation.spread(HOST, whenUnsatisfiable="ScheduleAnyway")


MISPLACEMENTS: Final = {
    "an image that one node has": Misplacement(
        _image, "ImageLocality", "the images that nodes report", _without_images
    ),
    "a preferred label": Misplacement(
        _prefers, "NodeAffinity", "the pod's preferred node affinity",
        lambda s: s.spec.pop("affinity"),
    ),
    "preferred neighbours": Misplacement(
        _prefers_pods, "InterPodAffinity", "the preferred pod affinity and anti-affinity",
        lambda s: s.spec.pop("affinity"),
    ),
    "taints that pods avoid": Misplacement(
        _tainted, "TaintToleration", "the taints of nodes with the effect PreferNoSchedule",
        _untainted,
    ),
    "a spread that is preferred": Misplacement(
        _spread, "PodTopologySpread", "constraints with ScheduleAnyway",
        lambda s: s.spec.pop("topologySpreadConstraints"),
    ),
}  # fmt: skip
