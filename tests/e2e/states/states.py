"""States of a cluster, each with what is true in it and a way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from cluster.observe import OPERATOR_NAMESPACE, SCHEDULER, until
from kube_scheduler_operator.base import names

from ...consistency import OUTDATED, Truth
from ..conftest import (
    DEPLOYMENT,
)
from ..faults import hung
from .world import DEFAULT, LATE, PACKED, World

RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEFT_BINDING = f"{RBAC}/clusterrolebindings/left-behind"

Break = Callable[[World], AbstractContextManager[None]]


@dataclass(frozen=True)
class State(Truth):
    """What happens to the cluster, and what is true then."""

    breaks: Break = lambda _: nullcontext()
    # the types of KubeScheduler's conditions that are not as in a healthy cluster
    conditions: tuple[str, ...] = ()
    settled: bool = True  # `rollout watch` succeeds for the control plane's scheduler
    outcome: str = "installed"  # of the newest revision
    available: str = "True"  # of the ClusterOperator


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


BOTH: Final = (DEFAULT, PACKED)

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
    "a setting has no effect": State(
        breaks=edited(SCHEDULER, defaultNodeSelector="type=user"),
        conditions=(names.INEFFECTIVE_SETTINGS,),
        checks=("conditions",), text="spec.defaultNodeSelector", is_warning=True,
    ),
}  # fmt: skip
