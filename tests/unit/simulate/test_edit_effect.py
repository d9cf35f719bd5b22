"""Which pods are tried for an edit, and what of its effect is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.simulate import edit_effect, replicas
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.edit_effect import (
    AlikePods,
    EditEffect,
    Loss,
    alike,
    chosen,
    omitted_pods,
)
from kube_scheduler_operator.simulate.kinds import NAMES_ITS_NODE
from kube_scheduler_operator.simulate.replicas import Replicas
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.world import World

from ... import builders
from .test_scenario import pod, world


@pytest.fixture(autouse=True)
def known_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """No profile has a plugin that is not one of Kubernetes; a program shows that otherwise."""
    monkeypatch.setattr(replicas, "has_unknown_plugins", lambda _: False)


def _alike(cluster: World, profile: dict[str, Any] | None = None) -> list[AlikePods]:
    config = {"profiles": [profile]} if profile else default_configuration()
    options = RunOptions(Path("none"), config)
    return alike(cluster, {"default-scheduler"}, Replicas(cluster, options))


def test_pods_that_were_made_for_a_node_are_not_tried() -> None:
    cluster = world(
        pod("web", "a"),
        pod("daemon", "a", "DaemonSet"),
        pod("guard", "a", "KubeScheduler"),
        pod("mirror", "a", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("named", "a", managedFields=NAMES_ITS_NODE),
        pod("waits"),
    )
    found = {name for group in _alike(cluster) for name in group.pods}
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
    groups = _alike(cluster)
    assert {(group.pods, group.node) for group in groups} == {
        (("default/one", "default/three"), "a"),
        (("default/two",), "b"),
        (("default/waits",), ""),
    }
    assert len({group.kind for group in groups}) == 2


SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def _kinds(*pods: dict[str, Any], **profile: Any) -> list[tuple[str, ...]]:
    """The names of pods by kind; nodes a and b are in zones a and b, node c is in zone b."""
    nodes = [builders.node(name, labels={"zone": zone}) for name, zone in ("aa", "bb", "cb")]
    groups = _alike(world(*nodes, *pods), {"schedulerName": "default-scheduler", **profile})
    kinds: dict[bytes, list[str]] = {}
    for group in groups:
        kinds.setdefault(group.kind, []).extend(pod.rpartition("/")[2] for pod in group.pods)
    return [tuple(names) for names in kinds.values()]


def _everywhere(**spec: Any) -> list[dict[str, Any]]:
    pods = [pod(f"on-{where}", where) for where in "abc"]
    for each in pods:
        each["spec"] |= spec
    return pods


def test_pods_that_spread_are_a_kind_in_each_domain() -> None:
    by_zone = [("on-a",), ("on-b", "on-c")]
    assert _kinds(*_everywhere(topologySpreadConstraints=[SPREAD])) == by_zone
    softly = [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]
    assert len(_kinds(*_everywhere(topologySpreadConstraints=softly))) == 1
    term = {"topologyKey": "zone", "labelSelector": {}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    assert _kinds(*_everywhere(affinity={"podAntiAffinity": required})) == by_zone
    args = {"name": "PodTopologySpread", "args": {"defaultConstraints": [SPREAD]}}
    assert _kinds(*_everywhere(), pluginConfig=[args]) == by_zone


def test_pods_that_claim_devices_are_a_kind_on_each_node() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "one"}]
    assert _kinds(*_everywhere(resourceClaims=claims)) == [("on-a",), ("on-b",), ("on-c",)]


def test_one_of_the_pods_that_need_each_other_stands_for_all_of_a_kind() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    pods = _everywhere(affinity={"podAffinity": required})
    (group,) = _alike(world(*pods))
    assert group.pods == ("default/on-a", "default/on-b", "default/on-c")
    assert len(_alike(world(*_everywhere()))) == 3


def test_pods_that_terminate_are_not_tried() -> None:
    leaving, ending = pod("leaving", "a"), pod("ending")
    for each in (leaving, ending):
        each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = world(leaving, ending)
    assert _alike(cluster) == []
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
