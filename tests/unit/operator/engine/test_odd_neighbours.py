"""Objects that the operator reads and that other clients may change: their contents stop nothing.

Only what an API server accepts for these kinds: any text in labels, annotations and data, and JSON
of any depth in texts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    LEASES,
    NODES,
    PODS,
    SCHEDULER_PROFILES,
)
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Plan

from ....builders import installer_pod, installer_status, node, operand_pod, terminated
from ....odd_json import KEYS, TEXTS, nested, odd_json
from ....odd_objects import unlimited
from ....seeds import SEED, number
from ...fake_cluster import FakeCluster

NUMBER = number("KSO_ODD_OBJECTS", 60, soak=5_000)
TARGET = KUBEADM.target_namespace


def text(rng: random.Random) -> str:
    """Any text, often JSON."""
    if rng.random() < 0.5:
        return rng.choice(TEXTS)
    return odd_json(rng).encode("utf-8", "replace").decode()


def texts(rng: random.Random, *keys: str) -> dict[str, str]:
    chosen = [*keys, *rng.sample(KEYS, 2)]
    return {key: text(rng) for key in chosen if rng.random() < 0.8}


class Cluster(FakeCluster):
    def reconcile(self) -> Plan:
        return reconcile(self.snapshot())


def placed(obj: Any, namespace: str) -> Any:
    return {**obj, "metadata": {"uid": "u", **obj["metadata"], "namespace": namespace}}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.keep(NODES, node("a", created="2026-01-01T00:00:00Z", uid="0" * 36))
    labels = {"node-role.kubernetes.io/control-plane": ""}
    cluster.change(NODES, "a", None, labels=labels)
    mirror = placed(operand_pod("a"), "kube-system")
    cluster.keep(PODS, mirror)
    cluster.change(PODS, "kube-scheduler-a", "kube-system", labels=dict(KUBEADM.static_pod_labels))
    lease = {"holderIdentity": "a_x", "renewTime": "2026-01-01T00:00:00.000000Z"}
    metadata = {"name": "kube-scheduler", "namespace": "kube-system"}
    cluster.keep(LEASES, {"metadata": metadata, "spec": lease})
    cluster.profile("good", percentageOfNodesToScore=10)
    cluster.secondary("mine")
    for _ in range(12):
        cluster.step()
    return cluster


def _node(cluster: Cluster, rng: random.Random) -> None:
    cluster.change(
        NODES, "a", None, labels=texts(rng, "kubernetes.io/hostname"), annotations=texts(rng)
    )
    conditions = [{"type": text(rng), "status": text(rng), "lastTransitionTime": text(rng)}]
    cluster.change(NODES, "a", None, status={"conditions": conditions})


def _mirror(cluster: Cluster, rng: random.Random) -> None:
    keys = (names.CONTENT_HASH_ANNOTATION, "kubernetes.io/config.hash")
    cluster.change(
        PODS, "kube-scheduler-a", "kube-system", labels={names.REVISION_LABEL: _label(rng)}
    )
    cluster.change(PODS, "kube-scheduler-a", "kube-system", annotations=texts(rng, *keys))
    state = terminated(1, text(rng))
    status = {"containerStatuses": [{"name": names.OPERAND, "state": state, "lastState": state}]}
    cluster.change(PODS, "kube-scheduler-a", "kube-system", status=status)


def _installer(cluster: Cluster, rng: random.Random) -> None:
    status = installer_status(
        "Succeeded", terminated(0, text(rng)), terminated(rng.choice((0, 1)), text(rng))
    )
    pod = placed(installer_pod("a", 1, status), TARGET)
    cluster.keep(PODS, pod)
    cluster.change(PODS, pod["metadata"]["name"], TARGET, annotations=texts(rng))


def _revision(cluster: Cluster, rng: random.Random) -> None:
    name = rng.choice(("revision-status-1", "config-1", "kube-scheduler-pod-1"))
    keys = ("inputs", "hash", "reason", "revision", names.CONFIG_KEY, names.POD_KEY)
    annotations = (
        names.OUTCOME_MESSAGE_ANNOTATION,
        names.OUTCOME_TIME_ANNOTATION,
        names.QUARANTINED_HASH_ANNOTATION,
    )
    cluster.change(
        CONFIG_MAPS, name, TARGET, data=texts(rng, *keys), annotations=texts(rng, *annotations)
    )


def _target(cluster: Cluster, rng: random.Random) -> None:
    name, key = rng.choice(((names.CONFIG, names.CONFIG_KEY), (names.POD, names.POD_KEY)))
    cluster.change(CONFIG_MAPS, name, TARGET, data={key: text(rng), **texts(rng)})


def _secondary(cluster: Cluster, rng: random.Random) -> None:
    for config_map in cluster.list(CONFIG_MAPS):
        if names.SECONDARY_LABEL in (config_map["metadata"].get("labels") or {}):
            name = config_map["metadata"]["name"]
            keys = (names.CONFIG_KEY, names.POD_KEY)
            cluster.change(CONFIG_MAPS, name, TARGET, data=texts(rng, *keys))


def _load_state(cluster: Cluster, rng: random.Random) -> None:
    keys = (names.LOAD_STATE_KEY, names.LOAD_WRITTEN_KEY)
    labels = {names.LOAD_LABEL: "default"}
    metadata = {"name": names.LOAD_STATE, "namespace": TARGET, "labels": labels}
    cluster.keep(CONFIG_MAPS, {"metadata": metadata, "data": texts(rng, *keys)})


def _lease(cluster: Cluster, rng: random.Random) -> None:
    spec = {
        "holderIdentity": text(rng),
        "leaseDurationSeconds": rng.choice((0, 1, 2**31 - 1)),
        "renewTime": rng.choice(("0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z")),
        "leaseTransitions": 2**31 - 1,
    }
    cluster.change(LEASES, "kube-scheduler", "kube-system", spec=spec)


def _cluster_operator(cluster: Cluster, rng: random.Random) -> None:
    condition = {
        "type": _label(rng),
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "conditions": [{**condition, "reason": text(rng), "message": text(rng)}],
        "versions": [{"name": text(rng), "version": text(rng)}],
        "relatedObjects": [{"group": text(rng), "resource": text(rng), "name": text(rng)}],
        "extension": unlimited(nested(rng.choice((3, 600, 5_000)))),
    }
    cluster.change(
        CLUSTER_OPERATORS, names.CLUSTEROPERATOR, None, status=status, annotations=texts(rng)
    )


def _label(rng: random.Random) -> str:
    return rng.choice(("", "x", "-1", "01", "1e3", "1.5", "0x1", "NaN", "a_b", "1-2"))


NEIGHBOURS: tuple[Callable[[Cluster, random.Random], None], ...] = (
    _node, _mirror, _installer, _revision, _target, _secondary, _load_state, _lease,
    _cluster_operator,
)  # fmt: skip


@pytest.mark.timeout(600 if NUMBER <= 1_000 else 0)
@pytest.mark.parametrize("change", NEIGHBOURS, ids=lambda one: one.__name__.strip("_"))
def test_odd_contents_of_an_object_that_others_change_stop_nothing(
    cluster: Cluster,
    change: Callable[[Cluster, random.Random], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    print(f"KSO_SEED={SEED}")
    rng = random.Random(f"{SEED} {change.__name__}")
    for index in range(NUMBER // len(NEIGHBOURS)):
        odd = Cluster()
        odd.begin_as(cluster)
        change(odd, rng)
        odd.profile("good", percentageOfNodesToScore=20)
        about = f"KSO_SEED={SEED}, change {index} of {change.__name__}"
        try:
            for _ in range(3):
                plan = odd.step()
                assert plan.failures == ()
        except Exception as error:
            raise AssertionError(about) from error
        status = odd.get(SCHEDULER_PROFILES, "good")["status"]
        assert status["accepted"] == {"percentageOfNodesToScore": 20}, about
    assert [r.getMessage() for r in caplog.records if "Defect in the operator" in r.message] == []
