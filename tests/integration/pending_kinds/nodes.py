"""Labels and taints of nodes, and what a profile demands of them."""

from __future__ import annotations

from .situation import ADDED, HOST, READY, ZONE, Situation
from .table import adds_node, expression, kind, tolerate, with_spec, without


@kind("demands the label disk=tape, which no node has; nodes have ssd",
      "remove disk=tape from the nodeSelector", without("nodeSelector"),
      first="label a node: kubectl label node {}-")  # fmt: skip
def a_label_that_no_node_has(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disk": "tape"}


@kind("demands the label disk=tape", "remove disk=tape from the nodeSelector",
      with_spec(nodeSelector={ZONE: "y"}), first="label a node")  # fmt: skip
def one_of_two_labels_that_no_node_has(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disk": "tape", ZONE: "y"}


@kind(f"node affinity demands {ZONE} in z, which no node has; nodes have x, y",
      f"demand {ZONE}=x instead of z",
      lambda s: s.affinity("nodeAffinity", expression(ZONE, "In", "x")))  # fmt: skip
def a_zone_without_nodes(situation: Situation) -> None:
    situation.affinity("nodeAffinity", expression(ZONE, "In", "z"))


@kind(
    "node affinity demands disk not in ssd, and the node has disk=ssd",
    "remove disk not in ssd",
    without("affinity"),
)
def a_label_that_every_node_has(situation: Situation) -> None:
    situation.affinity("nodeAffinity", expression("disk", "NotIn", "ssd"))


@kind(
    "node affinity demands the label gpu, and no node has the label gpu",
    "remove the label gpu",
    without("affinity"),
)
def a_label_that_has_to_exist(situation: Situation) -> None:
    situation.affinity("nodeAffinity", expression("gpu", "Exists"))


@kind("demands generation greater than 5, and the node has generation=3", "remove generation "
      "greater than 5",
      without("affinity"))  # fmt: skip
def a_number_that_is_too_small(situation: Situation) -> None:
    situation.affinity("nodeAffinity", expression("generation", "Gt", "5"))


@kind("demands disk in tape or gpu in yes, and the node meets none of these terms", "remove the "
      "required node affinity",
      without("affinity"))  # fmt: skip
def two_terms_that_match_nothing(situation: Situation) -> None:
    terms = (expression("disk", "In", "tape"), expression("gpu", "In", "yes"))
    situation.affinity("nodeAffinity", *terms)


@kind(
    "demands metadata.name in gone, and no node has this name",
    "remove metadata.name in gone",
    without("affinity"),
)
def a_node_that_does_not_exist(situation: Situation) -> None:
    field_ = {"key": "metadata.name", "operator": "In", "values": ["gone"]}
    situation.affinity("nodeAffinity", {"matchFields": [field_]})


@kind("the profile added-affinity demands pool in batch of each pod",
      "with the label pool=batch: kubectl label node NODE pool=batch",
      adds_node("d", "x", pool="batch"))  # fmt: skip
def an_affinity_of_the_profile(situation: Situation) -> None:
    situation.spec["schedulerName"] = ADDED


@kind("the taint dedicated=team:NoSchedule", "tolerate dedicated=team:NoSchedule",
      tolerate("dedicated"))  # fmt: skip
def a_taint(situation: Situation) -> None:
    situation.taints({"key": "dedicated", "value": "team", "effect": "NoSchedule"})


@kind("the taint broken:NoExecute", "tolerate broken:NoExecute", tolerate("broken"))
def a_taint_that_evicts(situation: Situation) -> None:
    situation.taints({"key": "broken", "effect": "NoExecute"})


@kind("the cloud controller manager has not initialized the node",
      "make the cloud-controller-manager run, which removes the taint: kubectl get pods -A",
      lambda s: s.patch_node(0, {"spec": {"taints": []}}))  # fmt: skip
def nodes_that_no_cloud_provider_has_initialized(situation: Situation) -> None:
    key = "node.cloudprovider.kubernetes.io/uninitialized"
    situation.taints({"key": key, "value": "true", "effect": "NoSchedule"})


@kind("the taint dedicated=team:NoSchedule", "tolerate dedicated=team:NoSchedule",
      tolerate("dedicated"))  # fmt: skip
def a_toleration_with_another_value(situation: Situation) -> None:
    a_taint(situation)
    wrong = {"key": "dedicated", "operator": "Equal", "value": "other", "effect": "NoSchedule"}
    situation.spec["tolerations"] = [wrong]


@kind("the taint a:NoSchedule", "tolerate a:NoSchedule, and tolerate b:NoSchedule",
      tolerate("a", "b"))  # fmt: skip
def two_taints(situation: Situation) -> None:
    situation.taints(*({"key": key, "effect": "NoSchedule"} for key in "ab"))


@kind("the node is cordoned", "uncordon the node: kubectl uncordon {}-",
      lambda s: s.patch_node(0, {"spec": {"unschedulable": None}}))  # fmt: skip
def cordoned_nodes(situation: Situation) -> None:
    for node in situation.nodes:
        node["spec"]["unschedulable"] = True


@kind("demands the label disk=tape", "tolerate k:NoSchedule, and remove disk=tape",
      with_spec(tolerations=[{"operator": "Exists"}], nodeSelector={}))  # fmt: skip
def two_constraints_of_every_node(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disk": "tape"}
    situation.taints({"key": "k", "effect": "NoSchedule"})


@kind("the node has too little free disk space (DiskPressure)", "free disk space on the node: "
      "kubectl describe node {}-",
      lambda s: s.patches.append((f"/api/v1/nodes/{s.name('a')}/status",
                                  {"status": {"conditions": [READY]}})))  # fmt: skip
def nodes_with_disk_pressure(situation: Situation) -> None:
    situation.taints({"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"})
    for node in situation.nodes:
        node["status"]["conditions"] = [READY, {**READY, "type": "DiskPressure"}]


@kind("Cilium's agent is not ready on the node", "make the Pod of Cilium on the node Ready, "
      "which removes the taint: kubectl get pods -A",
      lambda s: s.patch_node(0, {"spec": {"taints": []}}))  # fmt: skip
def nodes_whose_network_plugin_has_not_started(situation: Situation) -> None:
    situation.taints({"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"})


@kind("the agent of ebs.csi.aws.com is not ready on the node",
      "make the Pod of ebs.csi.aws.com on the node Ready, which removes the taint: kubectl get "
      "pods -A --field-selector spec.nodeName={}-",
      lambda s: s.patch_node(0, {"spec": {"taints": []}}))  # fmt: skip
def nodes_whose_storage_driver_has_not_started(situation: Situation) -> None:
    situation.taints({"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"})


@kind("and no node has the label disktype; nodes have the label disk",
      "label a node: kubectl label node {}-",
      lambda s: s.patch_node(0, {"metadata": {"labels": {"disktype": "ssd"}}}))  # fmt: skip
def a_selector_with_a_misspelt_label(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disktype": "ssd"}


@kind("the pod's nodeSelector demands disk=tape, and the node has disk=ssd",
      "remove disk=tape from the nodeSelector", without("nodeSelector"),
      first="request 1 of cpu instead of 2")  # fmt: skip
def a_selector_for_a_full_node(situation: Situation) -> None:
    situation.nodes[0]["metadata"]["labels"]["disk"] = "tape"
    situation.runs(0, "3")
    situation.spec["nodeSelector"] = {"disk": "tape"}
    situation.requests(cpu="2")


def _condition(key: str, effect: str, situation: Situation) -> None:
    situation.taints({"key": key, "effect": effect})


def _untaint(situation: Situation) -> None:
    situation.patch_node(0, {"spec": {"taints": []}})


def _healthy(situation: Situation) -> None:
    path = f"/api/v1/nodes/{situation.name('a')}/status"
    situation.patches.append((path, {"status": {"conditions": [READY]}}))


def _all_report(situation: Situation, **condition: str) -> None:
    for node in situation.nodes:
        kept = [] if condition["type"] == "Ready" else [READY]
        node["status"]["conditions"] = [*kept, {**READY, **condition}]


@kind(
    "the kubelet of the node does not report",
    "make the kubelet Ready: kubectl describe node {}-",
    _healthy,
)
def nodes_that_are_not_reached(situation: Situation) -> None:
    _all_report(situation, type="Ready", status="Unknown")


@kind("(MemoryPressure)", "free memory on the node: kubectl describe node {}-", _healthy)
def nodes_with_memory_pressure(situation: Situation) -> None:
    _all_report(situation, type="MemoryPressure")


@kind("(PIDPressure)", "end processes on the node: kubectl describe node {}-", _healthy)
def nodes_with_too_many_processes(situation: Situation) -> None:
    _all_report(situation, type="PIDPressure")


@kind("the network of the node is not configured", "make the network plugin of the node run, "
      "which removes the taint: kubectl get pods -A",
      _healthy)  # fmt: skip
def nodes_without_a_network(situation: Situation) -> None:
    _all_report(situation, type="NetworkUnavailable")


@kind("an administrator has marked the node as out of service", "remove the taint once", _untaint)
def nodes_out_of_service(situation: Situation) -> None:
    _condition("node.kubernetes.io/out-of-service", "NoExecute", situation)


@kind(
    "the cloud provider reports that the machine of the node is shut down",
    "start the machine: kubectl get node {}-",
    _untaint,
)
def nodes_that_are_shut_down(situation: Situation) -> None:
    _condition("node.cloudprovider.kubernetes.io/shutdown", "NoSchedule", situation)


@kind("Karpenter has not registered the node", "see why Karpenter does not register the node",
      _untaint)  # fmt: skip
def nodes_that_karpenter_has_not_registered(situation: Situation) -> None:
    _condition("karpenter.sh/unregistered", "NoExecute", situation)


@kind("cluster-autoscaler is about to remove the node", "add a node", lambda s: s.node("d", "x"))
def nodes_that_the_autoscaler_removes(situation: Situation) -> None:
    _condition("ToBeDeletedByClusterAutoscaler", "NoSchedule", situation)


@kind(
    "the taint node-role.kubernetes.io/control-plane:NoSchedule of the control plane",
    "add a node without this taint, a worker",
    adds_node("d", "x"),
)
def nodes_of_the_control_plane(situation: Situation) -> None:
    _condition("node-role.kubernetes.io/control-plane", "NoSchedule", situation)


@kind("the taint node-role.kubernetes.io/control-plane:NoSchedule of the control plane",
      "tolerate node-role.kubernetes.io/control-plane:NoSchedule",
      tolerate("node-role.kubernetes.io/control-plane"))  # fmt: skip
def a_pod_of_the_control_plane_without_its_toleration(situation: Situation) -> None:
    key = "node-role.kubernetes.io/control-plane"
    situation.nodes[0]["metadata"]["labels"][key] = ""
    situation.nodes[0]["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"}]
    situation.spec["nodeSelector"] = {key: ""}


def _reports_again(situation: Situation) -> None:
    _untaint(situation)
    path = f"/api/v1/nodes/{situation.name('a')}/status"
    situation.patches.append((path, {"status": {"conditions": [READY]}}))


@kind("the kubelet of the node does not report: taint", "make the kubelet Ready", _reports_again)
def a_volume_on_a_node_whose_kubelet_is_silent(situation: Situation) -> None:
    key = "node.kubernetes.io/unreachable"
    situation.bound_claim(HOST, situation.name("a"))
    node = situation.nodes[0]
    node["spec"]["taints"] = [{"key": key, "effect": e} for e in ("NoSchedule", "NoExecute")]
    silent = {"status": "Unknown", "message": "Kubelet stopped posting node status."}
    node["status"]["conditions"] = [{**READY, **silent}]


@kind("its toleration of dedicated is for the effect NoExecute", "tolerate dedicated=team",
      tolerate("dedicated"))  # fmt: skip
def a_toleration_with_another_effect(situation: Situation) -> None:
    situation.taints({"key": "dedicated", "value": "team", "effect": "NoSchedule"})
    situation.spec["tolerations"] = [
        {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}
    ]


@kind("the taint nvidia.com/gpu=present:NoSchedule", "tolerate nvidia.com/gpu=present:NoSchedule",
      tolerate("nvidia.com/gpu"))  # fmt: skip
def nodes_that_are_kept_for_devices(situation: Situation) -> None:
    situation.taints({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"})


@kind(
    "the pod's nodeSelector demands disk=tape, and the node has disk=ssd",
    "remove disk=tape from the nodeSelector",
    with_spec(nodeSelector={ZONE: "y"}),
)
def two_labels_that_no_node_has_together(situation: Situation) -> None:
    situation.nodes[0]["metadata"]["labels"]["disk"] = "tape"
    situation.spec["nodeSelector"] = {"disk": "tape", ZONE: "y"}


@kind("demands the label kubernetes.io/arch=arm64, which no node has; nodes have amd64",
      "add a node with the label kubernetes.io/arch=arm64",
      adds_node("d", "x", **{"kubernetes.io/arch": "arm64"}))  # fmt: skip
def an_architecture_that_no_node_has(situation: Situation) -> None:
    for node in situation.nodes:
        node["metadata"]["labels"]["kubernetes.io/arch"] = "amd64"
    situation.spec["nodeSelector"] = {"kubernetes.io/arch": "arm64"}


@kind("the pod's nodeSelector demands the label topology.kubernetes.io/zone=z, which no node has; "
      "nodes have x, y", "demand topology.kubernetes.io/zone=x instead of z",
      with_spec(nodeSelector={ZONE: "x"}))  # fmt: skip
def a_selector_for_a_zone_without_nodes(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {ZONE: "z"}


@kind(
    "demands generation less than 2, and the node has generation=3",
    "remove generation less than 2",
    without("affinity"),
)
def a_number_that_is_too_large(situation: Situation) -> None:
    situation.affinity("nodeAffinity", expression("generation", "Lt", "2"))


@kind(
    "demands no label disk, and the node has disk=ssd",
    "remove the demand for no label disk",
    without("affinity"),
)
def a_label_that_may_not_exist(situation: Situation) -> None:
    situation.affinity("nodeAffinity", expression("disk", "DoesNotExist"))


@kind("the node is cordoned", "uncordon the node: kubectl uncordon {}-",
      lambda s: s.patch_node(2, {"spec": {"unschedulable": None}}))  # fmt: skip
def full_nodes_beside_a_cordoned_one(situation: Situation) -> None:
    situation.runs(0, "4")
    situation.runs(1, "4")
    situation.nodes[2]["spec"]["unschedulable"] = True
