"""Affinity and anti-affinity to pods."""

from __future__ import annotations

from .situation import HOST, NAMESPACE, OTHER_NAMESPACE, REQUIRED, ZONE, Situation
from .table import adds_node, kind, requests, runs, term, without


@kind("pod pending-kinds/{}-on-0-0 with app=web runs on node {}-a, which the pod's "
      "anti-affinity forbids",
      "remove the pod anti-affinity to pods with app=web", without("affinity"),
      first="add a node")  # fmt: skip
def an_anti_affinity(situation: Situation) -> None:
    situation.runs_everywhere()
    situation.affinity("podAntiAffinity", term("web", HOST))


@kind(f"no pod with app=db in namespace pending-kinds runs in {ZONE} y, which the pod's "
      "affinity demands; none runs anywhere",
      "run a pod with app=db in namespace pending-kinds", runs(0, "db"))  # fmt: skip
def an_affinity_to_pods_that_do_not_run(situation: Situation) -> None:
    situation.affinity("podAffinity", term("db", ZONE))


@kind("pods with these labels run in namespace pending-kinds-other",
      "add pending-kinds-other to the namespaces of the pod affinity",
      lambda s: s.affinity(
          "podAffinity", term("db", ZONE, namespaces=[OTHER_NAMESPACE])))  # fmt: skip
def an_affinity_to_pods_of_another_namespace(situation: Situation) -> None:
    situation.runs(2, app="db")["metadata"]["namespace"] = OTHER_NAMESPACE
    situation.affinity("podAffinity", term("db", ZONE))


@kind("less than 2 of cpu is free", "request 1 of cpu instead of 2", requests(cpu="1"))
def an_affinity_to_a_pod_on_a_full_node(situation: Situation) -> None:
    situation.runs(0, "3", app="db")
    situation.affinity("podAffinity", term("db", HOST))
    situation.requests(cpu="2")


@kind("pod pending-kinds/{}-on-0-0 runs on node {}-a and has anti-affinity to pods with "
      "app=web", "change the label app=web",
      lambda s: s.waiting["metadata"]["labels"].update(app="new"), first="add a node")  # fmt: skip
def an_anti_affinity_of_running_pods(situation: Situation) -> None:
    situation.runs_everywhere(affinity={"podAntiAffinity": {REQUIRED: [term("web", HOST)]}})


@kind("with app=web runs on node",
      "add pod-template-hash to matchLabelKeys of the pod anti-affinity",
      lambda s: s.affinity("podAntiAffinity",
                           term("web", HOST, matchLabelKeys=["pod-template-hash"])))  # fmt: skip
def an_anti_affinity_to_pods_of_the_old_template(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in situation.running:
        pod["metadata"]["labels"]["pod-template-hash"] = "old"
    situation.waiting["metadata"]["labels"]["pod-template-hash"] = "new"
    situation.affinity("podAntiAffinity", term("web", HOST))


@kind("the node has no label rack, the topologyKey of the pod affinity",
      "label the nodes: kubectl label node NODE rack=VALUE",
      lambda s: s.patch_node(1, {"metadata": {"labels": {"rack": "1"}}}))  # fmt: skip
def an_affinity_per_a_label_that_the_pods_node_lacks(situation: Situation) -> None:
    situation.nodes[2]["metadata"]["labels"]["rack"] = "1"
    situation.runs(2, "4", app="db")
    situation.affinity("podAffinity", term("db", "rack"))


@kind(f"in namespace pending-kinds runs in {ZONE} x, which the pod's affinity demands; some "
      "run in y", "request 1 of cpu instead of 2", requests(cpu="1"))  # fmt: skip
def an_affinity_to_pods_of_a_zone_with_little_room(situation: Situation) -> None:
    situation.runs(2, "3", app="db")
    situation.affinity("podAffinity", term("db", ZONE))
    situation.requests(cpu="2")


@kind("no pod with app=db in namespaces with team=none",
      "add pending-kinds-other to the namespaces of the pod affinity",
      lambda s: s.affinity(
          "podAffinity", term("db", ZONE, namespaces=[OTHER_NAMESPACE])))  # fmt: skip
def an_affinity_to_chosen_namespaces_without_such_pods(situation: Situation) -> None:
    situation.runs(2, app="db")["metadata"]["namespace"] = OTHER_NAMESPACE
    chosen = {"matchLabels": {"team": "none"}}
    situation.affinity("podAffinity", term("db", ZONE, namespaceSelector=chosen))


@kind(
    "pod pending-kinds/{}-on-0-0 has these labels and has no node itself",
    "give pod pending-kinds/{}-on-0-0 a node first",
    runs(1, "db"),
)
def an_affinity_to_a_pod_that_waits_itself(situation: Situation) -> None:
    pod = situation.runs(0, app="db", nodeSelector={"disk": "none"})
    del pod["spec"]["nodeName"]
    situation.affinity("podAffinity", term("db", ZONE))


@kind(
    f"with app=web runs in {ZONE} x, which the pod's anti-affinity forbids",
    f"add a node with another value of {ZONE}",
    adds_node("d", "z"),
)
def an_anti_affinity_in_every_zone(situation: Situation) -> None:
    situation.runs(0)
    situation.runs(2)
    situation.affinity("podAntiAffinity", term("web", ZONE))


@kind(f"no pod with app=cache in namespace pending-kinds runs in {ZONE} x, which the pod's "
      "affinity demands; some run in y", "remove the pod affinity to pods with app=cache",
      lambda s: s.affinity("podAffinity", term("db", ZONE)))  # fmt: skip
def two_affinities_that_no_zone_meets_together(situation: Situation) -> None:
    situation.runs(0, app="db")
    situation.runs(2, app="cache")
    situation.affinity("podAffinity", term("db", ZONE), term("cache", ZONE))


@kind(
    "pod pending-kinds-other/{}-on-1-1 runs on node {}-b and has anti-affinity to pods with "
    "app=web",
    "add a node like",
    adds_node("d", "x"),
    retried_late_since=37,
)
def an_anti_affinity_of_pods_of_another_namespace(situation: Situation) -> None:
    rule = term("web", HOST, namespaces=[NAMESPACE])
    situation.runs_everywhere(app="lonely", affinity={"podAntiAffinity": {REQUIRED: [rule]}})
    for pod in situation.running:
        pod["metadata"]["namespace"] = OTHER_NAMESPACE


@kind("with any labels runs on node", "add a node like", adds_node("d", "x"))
def an_anti_affinity_to_every_pod(situation: Situation) -> None:
    situation.runs_everywhere(app="other")
    situation.affinity("podAntiAffinity", {"labelSelector": {}, "topologyKey": HOST})


@kind("with app=db runs on node {}-a, which the pod's anti-affinity forbids",
      "remove the pod affinity to pods with app=db",
      lambda s: s.affinity("podAntiAffinity", term("db", HOST)))  # fmt: skip
def an_affinity_and_an_anti_affinity_that_exclude_each_other(situation: Situation) -> None:
    situation.runs(0, app="db")
    situation.spec["affinity"] = {
        "podAffinity": {REQUIRED: [term("db", HOST)]},
        "podAntiAffinity": {REQUIRED: [term("db", HOST)]},
    }


@kind(
    "no pod with app=db,version=2 in namespace pending-kinds",
    "run a pod with app=db,version=2 in namespace pending-kinds",
    runs(0, "db", version="2"),
)
def an_affinity_to_pods_of_its_own_version(situation: Situation) -> None:
    situation.runs(0, app="db")["metadata"]["labels"]["version"] = "1"
    situation.waiting["metadata"]["labels"]["version"] = "2"
    situation.affinity("podAffinity", term("db", ZONE, matchLabelKeys=["version"]))


@kind("with app=web,tenant notin (b) runs on node", "add a node like", adds_node("d", "x"))
def an_anti_affinity_to_pods_of_other_tenants(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in situation.running:
        pod["metadata"]["labels"]["tenant"] = "a"
    situation.waiting["metadata"]["labels"]["tenant"] = "b"
    rule = term("web", HOST, mismatchLabelKeys=["tenant"])
    situation.affinity("podAntiAffinity", rule)
