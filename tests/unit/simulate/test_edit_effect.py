"""Which pods are tried for an edit, and what of its effect is reported."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.simulate import edit_effect
from kube_scheduler_operator.simulate.edit_effect import (
    AlikePods,
    EditEffect,
    Loss,
    alike,
    chosen,
    omitted_pods,
)
from kube_scheduler_operator.simulate.kinds import NAMES_ITS_NODE

from .test_scenario import pod, world


def test_pods_that_were_made_for_a_node_are_not_tried() -> None:
    cluster = world(
        pod("web", "a"),
        pod("daemon", "a", "DaemonSet"),
        pod("guard", "a", "KubeScheduler"),
        pod("mirror", "a", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("named", "a", managedFields=NAMES_ITS_NODE),
        pod("waits"),
    )
    found = {name for group in alike(cluster, {"default-scheduler"}) for name in group.pods}
    assert found == {"default/web", "default/waits"}


def test_pods_that_are_not_tried_are_named() -> None:
    gated, other = pod("gated"), pod("other")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    other["spec"]["schedulerName"] = "batch"
    cluster = world(pod("web", "a"), pod("daemon", "a", "DaemonSet"), gated, other)
    effect = EditEffect(tried=1, omitted=omitted_pods(cluster, {"default-scheduler"}))
    assert list(effect.omissions()) == [
        "not tried: 1 pod of DaemonSets or without a scheduler (default/daemon), 1 pod of other "
        "schedulers (default/other), 1 pod with scheduling gates (default/gated)"
    ]
    assert effect.is_known
    assert list(EditEffect(tried=1).omissions()) == []


def test_pods_of_one_node_that_differ_only_in_their_names_are_tried_once() -> None:
    cluster = world(pod("one", "a"), pod("two", "b"), pod("three", "a"), pod("waits"))
    groups = alike(cluster, {"default-scheduler"})
    assert {(group.pods, group.node) for group in groups} == {
        (("default/one", "default/three"), "a"),
        (("default/two",), "b"),
        (("default/waits",), ""),
    }
    assert len({group.kind for group in groups}) == 2


def test_pods_that_keep_apart_are_a_kind_on_each_node() -> None:
    pods = [pod("one", "a"), pod("two", "b")]
    for each in pods:
        rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        each["spec"]["topologySpreadConstraints"] = [rule]
    assert len({group.kind for group in alike(world(*pods), {"default-scheduler"})}) == 2


def test_pods_that_terminate_are_not_tried() -> None:
    leaving, ending = pod("leaving", "a"), pod("ending")
    for each in (leaving, ending):
        each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = world(leaving, ending)
    assert alike(cluster, {"default-scheduler"}) == []
    assert omitted_pods(cluster, {"default-scheduler"}) == {
        "being deleted": ["default/leaving", "default/ending"]
    }


def test_a_reason_of_a_tenant_leaves_room_for_the_others() -> None:
    effect = EditEffect(
        lost=[Loss("x" * 100_000, ["tenant/a", "tenant/b"]), Loss("taint", ["shop/c"])]
    )
    first, second = effect.sentences()
    assert len(first) < 400
    assert second == "1 running pod could no longer be placed: taint (shop/c)"


def test_what_is_lost_comes_first_in_the_report() -> None:
    effect = EditEffect(
        lost=[Loss("taint", ["a", "b", "c", "d"])],
        newly_fitting=["e"],
        elsewhere=["f", "g"],
        tried=9,
    )
    assert list(effect.sentences()) == [
        "4 running pods could no longer be placed: taint (a, b, c, … and 1 more)",
        "1 waiting pod could be placed",
        "2 running pods could not be placed on their node again, but on others (f, g)",
    ]


def kinds(namespace: str, *sizes: int) -> list[AlikePods]:
    """Kinds of pods of a namespace, with these numbers of pods."""
    return [
        AlikePods(
            tuple(f"{namespace}/{kind}-{at}" for at in range(size)),
            {"metadata": {"namespace": namespace}, "spec": {}},
            b"%d" % kind,
        )
        for kind, size in enumerate(sizes)
    ]


def test_a_namespace_with_many_kinds_crowds_out_no_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edit_effect, "MOST_KINDS", 4)
    groups = sorted(
        [*kinds("tenant", *[9] * 20), *kinds("shop", 3, 2), *kinds("bank", 1)],
        key=lambda group: -len(group.pods),
    )
    tried, others = chosen(groups)
    assert [(group.namespace, len(group.pods)) for group in tried] == [
        ("tenant", 9),
        ("shop", 3),
        ("bank", 1),
        ("tenant", 9),
    ]
    assert {group.namespace for group in others} == {"tenant", "shop"}
    assert len(tried) + len(others) == len(groups)


@pytest.mark.parametrize(
    ("effect", "sentence"),
    [
        (
            EditEffect(tried=5, unplaced=["a/b"]),
            "1 running pod without a place today may lose nodes to the edit (a/b)",
        ),
        (
            EditEffect(tried=5, left_out={"shop": 1, "tenant": 30}),
            "31 pods were not tried, because there are more than 2000 kinds of them "
            "(by namespace: tenant: 30, shop: 1)",
        ),
        (
            EditEffect(tried=5, changed=["the plugins of profile x at permit"]),
            "no simulation tries the plugins of profile x at permit",
        ),
    ],
    ids=["unplaced", "left out", "not tried"],
)
def test_what_was_not_tried_is_not_known(effect: EditEffect, sentence: str) -> None:
    assert (effect.is_known, effect.worse) == (False, False)
    tried = effect.tried - len(effect.unplaced)
    assert list(effect.sentences()) == [
        f"each of {tried} pods can be placed, or cannot, as today",
        sentence,
    ]
    assert EditEffect(tried=5).is_known


@pytest.mark.parametrize(
    ("tried", "sentence"),
    [
        (0, "there is no pod to place"),
        (1, "1 pod can be placed, or cannot, as with v1.35.4"),
        (2, "each of 2 pods can be placed, or cannot, as with v1.35.4"),
    ],
)
def test_an_upgrade_that_changes_nothing_has_its_own_words(tried: int, sentence: str) -> None:
    effect = EditEffect(tried=tried)
    assert list(effect.sentences("with v1.35.4", "the upgrade")) == [sentence]
