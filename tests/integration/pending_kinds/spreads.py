"""Topology spread constraints."""

from __future__ import annotations

from .situation import HOST, NAMESPACE, SPREADING, ZONE, Situation
from .table import adds_node, kind


@kind("would break maxSkew 1 (topologySpreadConstraints); pods with app=web: 2 in x, 0 in y",
      f"use ScheduleAnyway for the spread over {ZONE}",
      lambda s: s.spread(ZONE, whenUnsatisfiable="ScheduleAnyway"),
      first="raise maxSkew to 3")  # fmt: skip
def a_spread_whose_other_zone_is_full(situation: Situation) -> None:
    situation.runs(0)
    situation.runs(1)
    situation.runs(2, "4", app="other")
    situation.spread(ZONE)


@kind("the node has no label rack, the topologyKey of a topologySpreadConstraint of the pod",
      "label the nodes: kubectl label node NODE rack=VALUE",
      lambda s: s.patch_node(1, {"metadata": {"labels": {"rack": "1"}}}))  # fmt: skip
def a_spread_over_a_label_that_no_node_has(situation: Situation) -> None:
    situation.spread("rack")


@kind(f"the node has no label {ZONE}, the topologyKey of a topologySpreadConstraint",
      f"label the nodes: kubectl label node {{}}-c {ZONE}=VALUE",
      lambda s: s.patch_node(2, {"metadata": {"labels": {ZONE: "new"}}}),
      first="remove minDomains")  # fmt: skip
def a_spread_with_one_node_without_the_label(situation: Situation) -> None:
    del situation.nodes[2]["metadata"]["labels"][ZONE]
    situation.runs(0)
    situation.spread(ZONE, minDomains=2)


def _any_disk_and_zone(situation: Situation) -> None:
    situation.spec.pop("nodeSelector")
    situation.spread(ZONE, whenUnsatisfiable="ScheduleAnyway")


@kind("demands the label disk=tape", "remove disk=tape from the nodeSelector, and use "
      f"ScheduleAnyway for the spread over {ZONE}", _any_disk_and_zone)  # fmt: skip
def a_spread_that_counts_no_node_before_the_selector_ends(situation: Situation) -> None:
    situation.runs(0)
    situation.runs(1)
    situation.nodes[2]["status"]["allocatable"] |= {"pods": "1"}
    situation.runs(2, app="other")
    situation.spec["nodeSelector"] = {"disk": "tape"}
    situation.spread(ZONE)


@kind("minDomains is 3 and 2 values count, so the minimum is 0", "set minDomains to 2",
      lambda s: s.spread(ZONE, minDomains=2))  # fmt: skip
def a_spread_over_more_zones_than_there_are(situation: Situation) -> None:
    situation.runs_everywhere()
    situation.spread(ZONE, minDomains=3)


@kind("y counts (nodeTaintsPolicy Ignore) although its nodes have the taint broken:NoSchedule",
      "set nodeTaintsPolicy to Honor", lambda s: s.spread(ZONE, nodeTaintsPolicy="Honor"),
      )  # fmt: skip
def a_spread_over_a_zone_whose_nodes_are_tainted(situation: Situation) -> None:
    situation.runs(0)
    situation.nodes[2]["spec"]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    situation.spread(ZONE)


@kind("y counts (nodeAffinityPolicy Ignore) although the pod's nodeSelector or node affinity "
      "excludes its nodes", "set nodeAffinityPolicy to Honor",
      lambda s: s.spread(ZONE, nodeAffinityPolicy="Honor"))  # fmt: skip
def a_spread_over_a_zone_that_the_selector_excludes(situation: Situation) -> None:
    situation.runs(0)
    situation.spec["nodeSelector"] = {ZONE: "x"}
    situation.spread(ZONE, nodeAffinityPolicy="Ignore")


@kind("pods with app=web: 2 in x, 0 in y", "add pod-template-hash to matchLabelKeys",
      lambda s: s.spread(ZONE, matchLabelKeys=["pod-template-hash"]))  # fmt: skip
def a_spread_that_counts_pods_of_the_old_template(situation: Situation) -> None:
    for node in (0, 1):
        situation.runs(node)["metadata"]["labels"]["pod-template-hash"] = "old"
    situation.runs(2, "4", app="other")
    situation.waiting["metadata"]["labels"]["pod-template-hash"] = "new"
    situation.spread(ZONE)


@kind("the pod itself has other labels", "raise maxSkew to 2", lambda s: s.spread(
      ZONE, labelSelector={"matchLabels": {"app": "other"}}, maxSkew=2))  # fmt: skip
def a_spread_whose_selector_does_not_match_the_pod(situation: Situation) -> None:
    situation.runs(0, app="other")
    situation.runs(1, app="other")
    situation.runs(2, "4", app="full")
    situation.spread(ZONE, labelSelector={"matchLabels": {"app": "other"}})


@kind("pods with app=web: 1 in {}-a, 0 in {}-b", "raise maxSkew to 2",
      lambda s: s.spread(HOST, maxSkew=2))  # fmt: skip
def a_spread_over_nodes_of_which_one_is_full(situation: Situation) -> None:
    situation.runs(0)
    situation.runs(2)
    situation.runs(1, "4", app="full")
    situation.spread(HOST)


@kind("minDomains is 3 and 2 values count, so the minimum is 0", "set minDomains to 2",
      lambda s: s.spread(ZONE, minDomains=2, nodeTaintsPolicy="Honor"))  # fmt: skip
def a_spread_whose_third_zone_is_tainted(situation: Situation) -> None:
    situation.node("d", "z")
    situation.nodes[3]["spec"]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    situation.runs(0)
    situation.runs(2)
    situation.spread(ZONE, minDomains=3, nodeTaintsPolicy="Honor")


@kind("the node is cordoned", "uncordon the node: kubectl uncordon {}-",
      lambda s: s.patch_node(2, {"spec": {"unschedulable": None}}))  # fmt: skip
def a_spread_whose_other_zone_is_cordoned(situation: Situation) -> None:
    situation.runs(0)
    situation.nodes[2]["spec"]["unschedulable"] = True
    situation.spread(ZONE)


@kind(f"one more pod in {ZONE} x would break maxSkew 1 (topologySpreadConstraints); pods with "
      "app=web: 2 in x, 1 in y",
      "raise maxSkew to 2",
      lambda s: s.spec["topologySpreadConstraints"][0].update(maxSkew=2))  # fmt: skip
def two_spreads_that_exclude_each_other(situation: Situation) -> None:
    situation.runs(2)
    situation.runs(0)
    situation.runs(0)
    situation.runs(1, "4", app="full")
    situation.spread(ZONE)
    first = situation.spec["topologySpreadConstraints"]
    situation.spread(HOST)
    situation.spec["topologySpreadConstraints"] += first


@kind("the node has no label rack, the topologyKey of a topologySpreadConstraint of the pod",
      "label the nodes: kubectl label node NODE rack=VALUE",
      lambda s: s.patch_node(1, {"metadata": {"labels": {"rack": "2"}}}))  # fmt: skip
def a_spread_over_a_label_that_free_nodes_lack(situation: Situation) -> None:
    situation.nodes[0]["metadata"]["labels"]["rack"] = "1"
    situation.runs(0, "4", app="full")
    situation.spread("rack")


@kind(
    f"the profile {SPREADING} spreads the pods of a workload: maxSkew 1 over {ZONE} "
    "(defaultConstraints of PodTopologySpread)",
    "add a node like {}-c",
    adds_node("d", "y"),
)
def a_spread_of_the_profile(situation: Situation) -> None:
    situation.runs(0)
    situation.runs(1)
    situation.runs(2, "4", app="full")
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    situation.add(f"/api/v1/namespaces/{NAMESPACE}/services", "web", spec=spec)
    situation.spec["schedulerName"] = SPREADING


@kind("pods with app=web: 1 in {}-a, 0 in {}-b, 0 in {}-c", "raise maxSkew to 2",
      lambda s: s.spread(HOST, maxSkew=2))  # fmt: skip
def a_spread_over_nodes_of_one_zone(situation: Situation) -> None:
    situation.runs(0)
    situation.runs(1, "4", app="full")
    situation.runs(2, "4", app="full")
    situation.requests(cpu="1")
    situation.spread(HOST)
