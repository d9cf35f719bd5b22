"""Which pods are tried for an edit, and what of its effect is reported."""

from __future__ import annotations

from kube_scheduler_operator.simulate.edit_effect import EditEffect, alike

from .test_scenario import pod, world


def test_pods_that_were_made_for_a_node_are_not_tried() -> None:
    cluster = world(
        pod("web", "a"),
        pod("daemon", "a", "DaemonSet"),
        pod("guard", "a", "KubeScheduler"),
        pod("mirror", "a", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("waits"),
    )
    found = {name for group in alike(cluster, {"default-scheduler"}) for name in group.pods}
    assert found == {"default/web", "default/waits"}


def test_pods_that_differ_only_in_their_names_are_tried_once() -> None:
    cluster = world(pod("one", "a"), pod("two", "b"), pod("waits"))
    groups = alike(cluster, {"default-scheduler"})
    assert [(group.pods, bool(group.first["spec"].get("nodeName"))) for group in groups] == [
        (("default/one", "default/two"), True),
        (("default/waits",), False),
    ]


def test_what_is_lost_comes_first_in_the_report() -> None:
    effect = EditEffect(
        lost={"taint": ["a", "b", "c", "d"]}, newly_fitting=["e"], elsewhere=2, tried=9
    )
    assert list(effect.sentences()) == [
        "4 running pods could no longer be placed: taint (a, b, c, … and 1 more)",
        "1 waiting pod could be placed",
        "2 running pods could not be placed on their node again, but on others",
    ]
