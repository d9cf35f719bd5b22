"""Room on nodes: resources, the number of pods, host ports, and preemption."""

from __future__ import annotations

from typing import Any

from .situation import Object, Situation
from .table import kind, provides, requests


@kind("less than 3 of cpu is free", "request 2 of cpu instead of 3", requests(cpu="2"))
def too_much_cpu_beside_others(situation: Situation) -> None:
    situation.runs_everywhere("2")
    situation.requests(cpu="3")


@kind(
    "less than 9 of cpu is free, requested by container c; of all nodes with too little, ",
    "request 4 of cpu instead of 9",
    requests(cpu="4"),
)
def more_cpu_than_any_node_has(situation: Situation) -> None:
    situation.requests(cpu="9")


def _less_on_any_disk(situation: Situation) -> None:
    situation.requests(cpu="4")
    situation.spec.pop("nodeSelector")


@kind("less than 9 of cpu is free", "remove disk=tape from the nodeSelector, and request 4 of cpu "
      "instead of 9", _less_on_any_disk)  # fmt: skip
def more_cpu_than_any_node_has_and_a_label_that_none_has(situation: Situation) -> None:
    situation.requests(cpu="9")
    situation.spec["nodeSelector"] = {"disk": "tape"}


@kind("less than 9Gi of memory", "request 8Gi of memory instead of 9Gi", requests(memory="8Gi"))
def too_much_memory(situation: Situation) -> None:
    situation.requests(memory="9Gi")


@kind("of ephemeral-storage is free", "request 20Gi of ephemeral-storage instead of 30Gi",
      lambda s: s.spec["containers"][0]["resources"]["requests"].update(
          {"ephemeral-storage": "20Gi"}))  # fmt: skip
def too_much_ephemeral_storage(situation: Situation) -> None:
    requests = situation.spec["containers"][0]["resources"]["requests"]
    requests["ephemeral-storage"] = "30Gi"


@kind(
    "no node has example.com/gpu, of which 1 is requested by container c",
    "make the device plugin of example.com/gpu run",
    provides("example.com/gpu", "1"),
)
def a_resource_that_no_node_has(situation: Situation) -> None:
    situation.requests(gpu="1")


def _shared(situation: Situation) -> None:
    situation.requests(gpu=None)
    amounts = {"example.com/gpu.shared": "1"}
    situation.spec["containers"][0]["resources"].update(limits=amounts, requests=amounts)


@kind("no node has example.com/gpu, of which 1 is requested by container c",
      "request example.com/gpu.shared instead of example.com/gpu", _shared)  # fmt: skip
def a_resource_that_nodes_have_with_another_name(situation: Situation) -> None:
    situation.every_node(**{"example.com/gpu.shared": "16"})
    situation.requests(gpu="1")


@kind("of example.com/gpu is free", "request 1 of example.com/gpu instead of 2", requests(gpu="1"))
def more_of_a_resource_than_is_left(situation: Situation) -> None:
    situation.every_node(**{"example.com/gpu": "2"})
    situation.runs_everywhere()
    for pod in situation.running:
        amounts = {"cpu": "100m", "example.com/gpu": "1"}
        limits = {"example.com/gpu": "1"}
        pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": limits}
    situation.requests(gpu="2")


@kind("of hugepages-2Mi is free", "request 128Mi of hugepages-2Mi", requests(huge="128Mi"))
def too_many_huge_pages(situation: Situation) -> None:
    situation.every_node(**{"hugepages-2Mi": "128Mi"})
    situation.requests(huge="256Mi")


@kind("requested by init container init", "request 4 of cpu instead of 5",
      lambda s: s.spec["initContainers"][0]["resources"]["requests"].update(cpu="4"))  # fmt: skip
def an_init_container_that_needs_more(situation: Situation) -> None:
    container = {"name": "init", "image": "i", "resources": {"requests": {"cpu": "5"}}}
    situation.spec["initContainers"] = [container]


@kind("requested by the Pod (spec.resources)", "request 4 of cpu instead of 5",
      lambda s: s.spec["resources"]["requests"].update(cpu="4"))  # fmt: skip
def a_request_of_the_whole_pod(situation: Situation) -> None:
    situation.spec["resources"] = {"requests": {"cpu": "5"}}


@kind(
    "Too many pods", "add a node like {}-a (one of 2 nodes of its kind)", lambda s: s.node("d", "x")
)
def no_room_for_another_pod(situation: Situation) -> None:
    situation.every_node(pods="1")
    situation.runs_everywhere()


@kind("1 of 1 pods run on the node (allocatable pods)", "add a node",
      lambda s: s.node("d", "y"))  # fmt: skip
def nodes_that_are_full_of_pods(situation: Situation) -> None:
    situation.every_node(pods="1")
    situation.runs_everywhere()


@kind("pod pending-kinds/{}-on-0-0 uses the host port 8080/TCP", "remove the hostPort 8080/TCP",
      lambda s: s.spec["containers"][0].pop("ports") and None, first="add a node")  # fmt: skip
def a_host_port_that_is_used(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in (*situation.running, situation.waiting):
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]


@kind("uses the host port 9033/TCP", "use another port than 9033/TCP, or no hostNetwork",
      lambda s: s.spec["containers"][0]["ports"][0].update(containerPort=9034, hostPort=9034),
      first="add a node")  # fmt: skip
def a_port_of_the_host_network_that_is_used(situation: Situation) -> None:
    """The API server writes the hostPort."""
    situation.runs_everywhere()
    for pod in (*situation.running, situation.waiting):
        pod["spec"]["hostNetwork"] = True
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 9033}]


@kind("uses the host port 53/UDP", "remove the hostPort 53/UDP",
      lambda s: s.spec["containers"][0]["ports"].pop() and None, first="add a node")  # fmt: skip
def one_of_two_host_ports_that_is_used(situation: Situation) -> None:
    situation.runs_everywhere()
    udp = {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}
    for pod in situation.running:
        pod["spec"]["containers"][0]["ports"] = [udp]
    tcp = {"containerPort": 80, "hostPort": 8080}
    situation.spec["containers"][0]["ports"] = [tcp, udp]


@kind("less than 3 of cpu is free", "request 2 of cpu instead of 3", requests(cpu="2"))
def a_priority_that_may_not_preempt(situation: Situation) -> None:
    situation.runs_everywhere("2")
    situation.requests(cpu="3")
    situation.spec["priorityClassName"] = "pending-never"


def _container(name: str, cpu: str, **fields: Any) -> Object:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **fields}


@kind("less than 5 of cpu is free, requested by init container load (3), sidecar proxy (2)",
      "request 2 of cpu instead of 3 in init container load", lambda s: s.spec["initContainers"][1][
          "resources"]["requests"].update(cpu="2"))  # fmt: skip
def a_sidecar_beside_an_init_container(situation: Situation) -> None:
    situation.spec["initContainers"] = [
        _container("proxy", "2", restartPolicy="Always"), _container("load", "3")
    ]  # fmt: skip


@kind("less than 3 of cpu is free, requested by sidecar proxy (2900m), container c (100m)",
      "request 1900m of cpu instead of 2900m in sidecar proxy",
      lambda s: s.spec["initContainers"][0]["resources"]["requests"].update(
          cpu="1900m"))  # fmt: skip
def a_sidecar_that_asks_for_most(situation: Situation) -> None:
    situation.runs_everywhere("2")
    situation.spec["initContainers"] = [_container("proxy", "2900m", restartPolicy="Always")]


@kind("requested by container big (2), container small (1)",
      "request 1 of cpu instead of 2 in container big",
      lambda s: s.spec["containers"][1]["resources"]["requests"].update(cpu="1"))  # fmt: skip
def two_containers_that_ask_for_too_much_together(situation: Situation) -> None:
    situation.runs_everywhere("2")
    situation.spec["containers"] = [_container("small", "1"), _container("big", "2")]


@kind(
    "no node has hugepages-1Gi, of which 1Gi is requested by container c",
    "reserve huge pages of 1Gi on a node",
    provides("hugepages-1Gi", "1Gi"),
)
def huge_pages_of_a_size_that_no_node_has(situation: Situation) -> None:
    situation.every_node(**{"hugepages-2Mi": "128Mi"})
    amounts = {"hugepages-1Gi": "1Gi", "memory": "1Gi"}
    situation.spec["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}


@kind("of hugepages-2Mi is free", "request 64Mi of hugepages-2Mi", requests(huge="64Mi"))
def huge_pages_that_another_pod_uses(situation: Situation) -> None:
    situation.every_node(**{"hugepages-2Mi": "128Mi"})
    situation.runs_everywhere()
    for pod in situation.running:
        amounts = {"hugepages-2Mi": "64Mi", "memory": "64Mi"}
        pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    situation.requests(huge="128Mi")


@kind("less than 9 of cpu is free", "request 4 of cpu instead of 9",
      lambda s: s.spec["containers"][0].update(resources={"limits": {"cpu": "4"}}))  # fmt: skip
def a_limit_that_is_the_request(situation: Situation) -> None:
    situation.spec["containers"][0]["resources"] = {"limits": {"cpu": "9"}}


@kind("less than 3 of cpu is free", "request 2 of cpu", requests(cpu="2"))
def cpu_on_one_node_and_memory_on_others(situation: Situation) -> None:
    situation.runs(0, "2")
    for number in (1, 2):
        pod = situation.runs(number)
        pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "8Gi"
    situation.requests(cpu="3", memory="1Gi")


@kind("less than 3Gi of ephemeral-storage is free", "request 2Gi of ephemeral-storage",
      lambda s: s.spec["containers"][0]["resources"]["requests"].update(
          {"ephemeral-storage": "2Gi"}))  # fmt: skip
def ephemeral_storage_that_others_use(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in (*situation.running, situation.waiting):
        amount = "3Gi" if pod is situation.waiting else "18Gi"
        pod["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = amount


@kind("less than 3900m of cpu is free", "request 3500m of cpu instead of 3900m",
      requests(cpu="3500m"))  # fmt: skip
def cpu_that_nodes_reserve_for_the_system(situation: Situation) -> None:
    for node in situation.nodes:
        node["status"]["allocatable"] = {**node["status"]["allocatable"], "cpu": "3500m"}
    situation.requests(cpu="3900m")


@kind("of memory is free", "request 6.9Gi of memory instead of 8Gi", requests(memory="6.9Gi"))
def an_amount_without_a_round_form(situation: Situation) -> None:
    situation.every_node(memory="7450000000")
    situation.requests(memory="8Gi")


@kind("less than 3 of cpu is free", "let the controller of finalizer example.com/hold finish",
      lambda s: s.patches.append(
          (s.path_of(s.running[0]), {"metadata": {"finalizers": None}})))  # fmt: skip
def room_that_a_terminating_pod_holds(situation: Situation) -> None:
    situation.nodes[1:] = []
    pod = situation.runs(0, "3")
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    situation.requests(cpu="3")
    situation.terminating.append(situation.path_of(pod))


@kind("less than 2 of cpu is free", "request 1 of cpu instead of 2", requests(cpu="1"))
def pods_of_a_higher_priority_on_all_nodes(situation: Situation) -> None:
    situation.runs_everywhere("3", priorityClassName="pending-high")
    situation.requests(cpu="2")


@kind("uses the host port 8080/TCP", "add a node", lambda s: s.node("d", "y"))
def a_port_of_the_network_of_the_host(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in (*situation.running, situation.waiting):
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 8080}]
        pod["spec"]["hostNetwork"] = True


@kind("uses the host port 9100/TCP", "add a node", lambda s: s.node("d", "y"))
def a_host_port_on_every_address(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in situation.running:
        port = {"containerPort": 9100, "hostPort": 9100, "hostIP": "127.0.0.1"}
        pod["spec"]["containers"][0]["ports"] = [port]
    situation.spec["containers"][0]["ports"] = [{"containerPort": 9100, "hostPort": 9100}]


@kind("uses the host port 7000/TCP", "request 1 of cpu", requests(cpu="1"), first="request 1")
def a_host_port_on_one_node_and_little_room_on_others(situation: Situation) -> None:
    port = {"containerPort": 7000, "hostPort": 7000}
    situation.runs(0)["spec"]["containers"][0]["ports"] = [port]
    situation.runs(1, "3")
    situation.runs(2, "3")
    situation.spec["containers"][0]["ports"] = [port]
    situation.requests(cpu="2")
