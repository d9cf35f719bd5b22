"""States of a cluster, each with what is true in it and a way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from cluster import lifecycle, nodes
from cluster.observe import KUBESCHEDULER, OPERATOR_NAMESPACE, SCHEDULER, until
from kube_scheduler_operator.base import names

from ...consistency import OUTDATED, Truth
from ..conftest import (
    CONFIG_MAPS,
    DEPLOYMENT,
    LOAD_POLICIES,
    MANIFEST,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
)
from ..faults import dead, hung
from .world import DEFAULT, LATE, OURS, PACKED, World

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HOOK = f"{ADMISSION}/mutatingwebhookconfigurations/{names.ASSIGNMENT}"
SERVICE = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/{names.WEBHOOK}"
OURS_DEPLOYMENT = f"/apis/apps/v1/namespaces/{OPERATOR_NAMESPACE}/deployments/{PACKED}"
LEFT_BINDING = f"{RBAC}/clusterrolebindings/left-behind"
NOWHERE = "registry.k8s.io/kube-scheduler:v1.35.99"
GONE = f"localhost/{names.PROGRAM}:gone"

Break = Callable[[World], AbstractContextManager[None]]


@dataclass(frozen=True)
class State(Truth):
    """What happens to the cluster, and what is true then."""

    breaks: Break = lambda _: nullcontext()
    # the types of KubeScheduler's conditions that are not as in a healthy cluster
    conditions: tuple[str, ...] = ()
    settled: bool = True  # `rollout watch` succeeds for the control plane's scheduler
    outcome: str = "installed"  # of the newest revision; empty: no revision exists
    available: str = "True"  # of the ClusterOperator
    diff: int = 0  # exit code of `diff` from what runs to the objects: 1 for differences, 2: no
    # revision of the operator runs
    drifts: bool = False  # whether the node runs something else than its revision
    valid: bool = True  # whether `validate` accepts the objects
    dumps: bool = True  # whether the leader's cache can be dumped


def both(*breaks: Break) -> Break:
    """One after the other; what was broken last is mended first."""

    @contextmanager
    def broken(world: World) -> Iterator[None]:
        with ExitStack() as stack:
            for break_ in breaks:
                stack.enter_context(break_(world))
            yield

    return broken


# --- the operator -----------------------------------------------------------------------------


@contextmanager
def scaled_to_zero(world: World) -> Iterator[None]:
    scale = f"{DEPLOYMENT}/scale"
    world.api.request("PATCH", scale, {"spec": {"replicas": 0}})
    try:
        until(lambda: not world.operators, LATE, "the operator does not end")
        yield
    finally:
        world.api.request("PATCH", scale, {"spec": {"replicas": 1}})


@contextmanager
def operator_hangs(world: World) -> Iterator[None]:
    with hung(world.operator_pids):
        yield


@contextmanager
def account_is_administrator(world: World) -> Iterator[None]:
    account = {
        "kind": "ServiceAccount",
        "name": names.PROGRAM,
        "namespace": OPERATOR_NAMESPACE,
    }
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": "left-behind"}, "roleRef": role, "subjects": [account]}
    world.api.request("POST", f"{RBAC}/clusterrolebindings", body)
    try:
        yield
    finally:
        world.api.request("DELETE", LEFT_BINDING)


# --- the control plane's scheduler ------------------------------------------------------------


@contextmanager
def scheduler_crashes(world: World) -> Iterator[None]:
    world.make_revision_old()  # the revision is not the reason
    try:
        with dead(world.scheduler_pids):
            yield
    finally:
        # The kubelet waits longer after each crash, until it is restarted.
        nodes.kill_kubelet(world.sandbox, world.node)
        lifecycle.start_node(world.sandbox, world.node)


@contextmanager
def scheduler_hangs(world: World) -> Iterator[None]:
    with hung(world.scheduler_pids):
        yield


@contextmanager
def no_manifest(world: World) -> Iterator[None]:
    world.on_node("mv", MANIFEST, "/etc/kubernetes/away.yaml")
    try:
        yield
    finally:
        world.on_node("sh", "-c", f"[ -e {MANIFEST} ] || mv /etc/kubernetes/away.yaml {MANIFEST}")


@contextmanager
def edited_manifest(world: World) -> Iterator[None]:
    before = world.on_node("cat", MANIFEST)
    world.on_node("sed", "-i", "s/-v=2/-v=4/", MANIFEST)
    try:
        yield
    finally:
        if world.on_node("cat", MANIFEST) != before:
            world.on_node("sed", "-i", "s/-v=4/-v=2/", MANIFEST)


def managed_as(state: str) -> Break:
    @contextmanager
    def broken(world: World) -> Iterator[None]:
        world.renew_guard()
        world.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": state}})
        try:
            until(lambda: world.cluster_operator("Available")[0] == "Unknown", LATE, "no effect")
            yield
        finally:
            world.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Managed"}})

    return broken


def edited(path: str, **spec: Any) -> Break:
    """Fields of an object's spec, which are unset again."""

    @contextmanager
    def broken(world: World) -> Iterator[None]:
        world.api.request("PATCH", path, {"spec": spec})
        try:
            yield
        finally:
            world.api.request("PATCH", path, {"spec": dict.fromkeys(spec)})

    return broken


# --- the SecondaryScheduler -------------------------------------------------------------------


@contextmanager
def no_deployment(world: World) -> Iterator[None]:
    world.api.request("DELETE", OURS_DEPLOYMENT)
    until(lambda: not world.packed_pids(), LATE, "its Pods stay")
    yield


@contextmanager
def secondary_hangs(world: World) -> Iterator[None]:
    with hung(world.packed_pids):
        yield


@contextmanager
def no_config_map(world: World) -> Iterator[None]:
    found = world.api.request("GET", CONFIG_MAPS)["items"]
    for item in found:
        if item["metadata"]["name"].startswith(f"{PACKED}-config-"):
            world.api.request("DELETE", f"{CONFIG_MAPS}/{item['metadata']['name']}")
    yield


@contextmanager
def no_webhook(world: World) -> Iterator[None]:
    world.api.request("DELETE", HOOK)
    try:
        yield
    finally:
        world.install_webhook()


@contextmanager
def no_service(world: World) -> Iterator[None]:
    world.api.request("DELETE", SERVICE)
    try:
        yield
    finally:
        world.install_webhook()


# --- other objects ----------------------------------------------------------------------------


def created(path: str, kind: str, name: str, **spec: Any) -> Break:
    """One of the operator's objects."""

    @contextmanager
    def broken(world: World) -> Iterator[None]:
        body = {
            "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        world.api.request("POST", path, body)
        try:
            yield
        finally:
            world.api.request("DELETE", f"{path}/{name}")

    return broken


def only_in(pool: str) -> dict[str, Any]:
    """Overrides with which Pods fit on nodes of a pool only."""
    term = {"matchExpressions": [{"key": f"example.com/{pool}", "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {"name": "NodeAffinity", "args": {"addedAffinity": required}}
    return {"profiles": [{"schedulerName": DEFAULT, "pluginConfig": [affinity]}]}


@contextmanager
def gate(world: World) -> Iterator[None]:
    check = {"mode": "Gate", "timeoutSeconds": 300}
    with created(OPERATOR_SETTINGS, "OperatorSettings", names.CLUSTER, placementCheck=check)(world):

        def is_on() -> bool:
            return world.condition(names.PLACEMENT_CHECK_PROGRESSING)[0] == "False"

        until(is_on, LATE, "the check is not on")
        yield


PROFILES = (SCHEDULER_PROFILES, "SchedulerProfile")
EXTENDERS = (SCHEDULER_EXTENDERS, "SchedulerExtender")
BOTH: Final = (DEFAULT, PACKED)
NO_SCHEDULER = (names.STATIC_PODS_AVAILABLE, names.STATIC_PODS_DEGRADED)

STATES: dict[str, State] = {
    "healthy": State(),
    "the operator is scaled to 0": State(
        breaks=scaled_to_zero, observes=False, assigns=False, checks=OUTDATED,
        text="is scaled to 0",
    ),
    "the operator hangs": State(
        breaks=operator_hangs, observes=False, assigns=False, checks=OUTDATED,
        text="has not renewed it",
    ),
    "the operator's account is an administrator": State(
        breaks=account_is_administrator, checks=("operator-rights",), text="left-behind",
    ),
    "the scheduler crashes": State(
        breaks=scheduler_crashes, idle={DEFAULT}, conditions=NO_SCHEDULER, available="False",
        checks=("conditions", "schedulers"), text="no scheduler",
    ),
    "the scheduler hangs": State(
        breaks=scheduler_hangs, idle={DEFAULT}, conditions=NO_SCHEDULER, available="False",
        checks=("conditions", "schedulers"), text="no scheduler pod is Ready",
    ),
    "the operator has stopped, and the scheduler's manifest is deleted": State(
        breaks=both(scaled_to_zero, no_manifest), observes=False, idle={DEFAULT}, assigns=False,
        checks=(*OUTDATED, "schedulers"), text="has no scheduler Pod",
    ),
    "Unmanaged": State(
        breaks=managed_as("Unmanaged"), settled=False, available="Unknown",
        checks=("conditions",), text="Unmanaged", is_warning=True,
    ),
    "Unmanaged, and the manifest is edited": State(
        breaks=both(managed_as("Unmanaged"), edited_manifest), settled=False, available="Unknown",
        conditions=(names.HAND_EDITS,), drifts=True,
        checks=("conditions",), text=f"{MANIFEST} changed", is_warning=True,
    ),
    "Unmanaged, and the manifest is deleted": State(
        breaks=both(managed_as("Unmanaged"), no_manifest), settled=False,
        idle={DEFAULT}, conditions=(names.HAND_EDITS, names.STATIC_PODS_AVAILABLE),
        available="Unknown", drifts=True,
        checks=("conditions", "schedulers"), text=f"{MANIFEST} was deleted",
    ),
    "Removed": State(
        breaks=managed_as("Removed"), available="Unknown", diff=2, dumps=False, outcome="",
        checks=("conditions",), text="Removed", is_warning=True,
    ),
    "a revision is refused": State(
        breaks=edited(
            KUBESCHEDULER,
            unsupportedConfigOverrides={"arguments": {"bind-address": "203.0.113.77"}},
        ),
        conditions=(names.NODE_INSTALLER_DEGRADED, names.OVERRIDES_UPGRADEABLE),
        checks=("conditions", "revisions"), settled=False, outcome="failed", text="203.0.113.77",
        diff=1,
    ),
    "an edit is held": State(
        breaks=both(gate, edited(KUBESCHEDULER, unsupportedConfigOverrides=only_in("held"))),
        conditions=(names.OVERRIDES_UPGRADEABLE, names.PLACEMENT_CHECK_PROGRESSING),
        checks=("conditions",), settled=False, text="the edit is held", is_warning=True, diff=1,
    ),
    "a setting has no effect": State(
        breaks=edited(SCHEDULER, defaultNodeSelector="type=user"),
        conditions=(names.INEFFECTIVE_SETTINGS,),
        checks=("conditions",), text="spec.defaultNodeSelector", is_warning=True,
    ),
    "a profile is invalid": State(
        valid=False,
        breaks=created(*PROFILES, "bad", plugins={"score": {"enabled": [{"name": "Nope"}]}}),
        conditions=(names.SCHEDULER_PROFILES_DEGRADED,), settled=False,
        checks=("conditions", "objects"), text="Nope",
    ),
    "a profile names no scheduler": State(
        breaks=created(*PROFILES, "lost", scheduler="nowhere"),
        conditions=(names.SCHEDULER_PROFILES_DEGRADED,), settled=False,
        checks=("conditions", "objects"), text="nowhere",
    ),
    "an extender's image is not allowed": State(
        breaks=created(
            *EXTENDERS, "slow", agent={"image": NOWHERE, "policies": [{"name": "safe-overload"}]},
        ),
        conditions=(names.SCHEDULER_EXTENDERS_DEGRADED,),
        checks=("conditions", "objects"), settled=False, text=NOWHERE,
    ),
    "an extender's agents cannot start": State(
        breaks=created(
            *EXTENDERS, "slow", agent={"image": GONE, "policies": [{"name": "safe-overload"}]},
        ),
        conditions=(names.SCHEDULER_EXTENDERS_DEGRADED,), diff=1,
        checks=("conditions", "objects", "images"), settled=False, text=GONE,
    ),
    "no load is known": State(
        breaks=created(
            LOAD_POLICIES, "LoadPolicy", "measured",
            source={"type": "Prometheus", "prometheus": {"url": "http://203.0.113.77:9090"}},
        ),
        conditions=(names.LOAD_POLICIES_DEGRADED,),
        checks=("conditions", "objects"), text="203.0.113.77",
    ),
    "the secondary scheduler's image cannot be pulled": State(
        breaks=edited(OURS, image=NOWHERE), ready=False,
        conditions=(names.SECONDARY_DEGRADED,),
        checks=("conditions", "objects", "images"), text=NOWHERE,
    ),
    "the secondary scheduler hangs": State(
        breaks=secondary_hangs, idle={PACKED}, down={PACKED}, assigns=False, ready=False,
        conditions=(names.SECONDARY_DEGRADED,),
        checks=("conditions", "objects"), text=f"{OPERATOR_NAMESPACE}/{PACKED}",
    ),
    "the operator has stopped, and the secondary scheduler's Deployment is deleted": State(
        breaks=both(scaled_to_zero, no_deployment), observes=False, idle={PACKED}, down={PACKED},
        assigns=False, checks=OUTDATED, text="has no Deployment",
    ),
    "the operator has stopped, and the secondary scheduler's ConfigMap is lost": State(
        breaks=both(scaled_to_zero, no_config_map), observes=False, assigns=False, down={PACKED},
        checks=OUTDATED, text=f"no ConfigMap {OPERATOR_NAMESPACE}/{PACKED}-config-",
    ),
    "the webhook is deleted": State(breaks=no_webhook, assigns=False, text="MutatingWebhook"),
    "the webhook's Service is deleted": State(
        breaks=no_service, assigns=False, text="has no Service"
    ),
}  # fmt: skip
