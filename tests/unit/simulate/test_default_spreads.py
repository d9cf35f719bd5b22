"""The spread of a profile is counted by the Services and the controller of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.default_spreads import default_spread

from .test_pod_facts import NODES, ZONE, node, pod, world

Object = dict[str, Any]
PROFILE = {
    "schedulerName": "batch",
    "pluginConfig": [
        {
            "name": "PodTopologySpread",
            "args": {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
                ],
            },
        }
    ],
}


def of(kind: str, version: str, **selector: Any) -> Object:
    metadata = {"name": "web", "namespace": "shop"}
    spec = {"selector": selector}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("chooses", "counted"),
    [
        (of("Service", "v1", app="web"), True),
        (of("Service", "v1", app="other"), False),
        (of("ReplicaSet", "apps/v1", matchLabels={"app": "web"}), True),
        (of("ReplicationController", "v1", app="web"), False),
    ],
)
def test_the_counts_of_a_spread_that_a_profile_adds(chooses: Object, counted: bool) -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "controller": True}
    waiting = pod("new", metadata={"ownerReferences": [owner]})
    waiting["metadata"] |= {"name": "new", "namespace": "shop", "labels": {"app": "web"}}
    cluster = world(*NODES, node("d", ""), pod("1", "a"), pod("2", "a"), chooses)
    gates = Gates(Version.parse("v1.36.3"))
    fact = default_spread(waiting, cluster, PROFILE, "the rule", gates)
    breaks = f"the rule: one more pod in {ZONE} x would break maxSkew 1; pods with app=web: 2 in x"
    assert fact("a").startswith(breaks) is counted
    assert fact("b") == ""
    assert fact("d") == f"the rule: the node has no label {ZONE}, the topologyKey of one of them"
