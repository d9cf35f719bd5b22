"""The owners of the SecondaryScheduler that the operator makes: trees show it, nothing deletes it.

What a real garbage collector does is in tests/integration/test_managed.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.kube.resource import SECONDARY_SCHEDULERS
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Create, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ....builders import kubescheduler
from ....expect import expect_no_writes, writes
from ..engine.test_reconcile_managed import NAME, performed, settled, start, with_schedulers

OWNER = {
    "apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler", "name": "cluster",
    "uid": "uid-ks",
}  # fmt: skip
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "name": "secondaryschedulers.kube-scheduler-operator.dev", "uid": "uid-crd",
}  # fmt: skip
OTHER = {"apiVersion": "v1", "kind": "Namespace", "name": "team", "uid": "uid-team"}
TRACKED = {
    "labels": {
        "app.kubernetes.io/instance": "scheduling", "argocd.argoproj.io/instance": "scheduling",
        "kustomize.toolkit.fluxcd.io/name": "scheduling",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
    },
    "annotations": {"argocd.argoproj.io/tracking-id": "scheduling:x/KubeScheduler:/cluster"},
}  # fmt: skip


def cluster(**metadata: Any) -> Snapshot:
    obj = kubescheduler()
    given = {**obj, "metadata": {**obj["metadata"], "uid": "uid-ks", **metadata}}
    return start(kubescheduler=given, secondary_kind_uid="uid-crd")


def metadata_of(snapshot: Snapshot) -> Any:
    return snapshot.secondaries.schedulers[NAME]["metadata"]


def with_owners(snapshot: Snapshot, *owners: Any) -> Snapshot:
    obj = snapshot.secondaries.schedulers[NAME]
    metadata = {**obj["metadata"], "ownerReferences": list(owners)}
    return with_schedulers(snapshot, {**obj, "metadata": metadata})


def after(snapshot: Snapshot) -> Any:
    return metadata_of(performed(snapshot, reconcile(snapshot))).get("ownerReferences")


def test_it_is_made_with_both_owners_and_neither_controls_or_blocks() -> None:
    created = next(a for a in reconcile(cluster()).actions if isinstance(a, Create))
    assert created.obj["metadata"]["ownerReferences"] == [OWNER, DEFINITION]


def test_settled_owners_are_not_written_again() -> None:
    snapshot = settled(cluster())
    assert metadata_of(snapshot)["ownerReferences"] == [OWNER, DEFINITION]
    expect_no_writes(replace(reconcile(snapshot), write_sets={}))


def test_an_object_of_an_earlier_operator_gets_them_by_one_write_without_an_event() -> None:
    before = settled(replace(cluster(), secondary_kind_uid=""))
    assert "ownerReferences" not in metadata_of(before)
    plan = reconcile(replace(before, secondary_kind_uid="uid-crd"))
    (write,) = plan.actions
    assert isinstance(write, Replace)
    assert (write.resource, write.events) == (SECONDARY_SCHEDULERS, ())
    assert write.obj["spec"] == before.secondaries.schedulers[NAME]["spec"]


@pytest.mark.parametrize(
    ("found", "kind", "expected"),
    [
        ([OWNER, DEFINITION], "", [OWNER, DEFINITION]),
        ([OWNER], "", []),
        ([OWNER], "uid-crd", [OWNER, DEFINITION]),
        ([DEFINITION], "uid-crd", [OWNER, DEFINITION]),
        ([{**OWNER, "uid": "old"}, {**DEFINITION, "uid": "old"}], "uid-crd", [OWNER, DEFINITION]),
        ([OWNER, OTHER], "uid-crd", [OTHER, OWNER, DEFINITION]),
        ([OTHER], "", [OTHER]),
        ([{**OWNER, "apiVersion": "operator.openshift.io/v2"}], "uid-crd", [OWNER, DEFINITION]),
        ([{**OWNER, "apiVersion": "other/v1"}], "", [{**OWNER, "apiVersion": "other/v1"}]),
    ],
    ids=str,
)
def test_kubescheduler_is_never_the_only_owner(found: Any, kind: str, expected: Any) -> None:
    """Alone, it would take the scheduler with it; the owners of others stay."""
    snapshot = with_owners(settled(cluster()), *found)
    assert after(replace(snapshot, secondary_kind_uid=kind)) == expected


def test_while_kubescheduler_is_being_deleted_owners_stay_as_they_are() -> None:
    """The garbage collector removes the reference, which is not put back."""
    snapshot = with_owners(settled(cluster()), DEFINITION)
    leaving = cluster(deletionTimestamp="2026-01-01T00:00:00Z").kubescheduler
    assert after(replace(snapshot, kubescheduler=leaving)) == [DEFINITION]


def test_what_tools_mark_their_own_objects_with_is_copied_to_none() -> None:
    """Argo CD and Flux would take the copy for one that Git no longer has, and prune it."""
    snapshot = cluster(**TRACKED)
    for _ in range(6):
        plan = reconcile(snapshot)
        sets = [action for actions in plan.write_sets.values() for action in actions]
        made = [one for one in (*plan.actions, *sets) if isinstance(one, Create)]
        for action in made:
            text = str(action.obj)
            assert not [key for part in TRACKED.values() for key in part if key in text], text
        snapshot = performed(snapshot, plan)
    assert writes(reconcile(snapshot).actions) == []
