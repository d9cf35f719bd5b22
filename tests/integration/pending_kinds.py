"""Kinds of Pending: what keeps a pod from all nodes, how it is named, and how it is repaired."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]

NAMESPACE: Final = "pending-kinds"
OTHER_NAMESPACE: Final = "pending-kinds-other"
ADDED: Final = "added-affinity"
"""A profile with an affinity of its own."""
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PRIORITIES: Final = {"pending-high": 1000, "pending-never": 900}
DRIVER: Final = "pending.example.com"
READY: Final = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
_STORAGE: Final = "/apis/storage.k8s.io/v1"
_DRA: Final = "/apis/resource.k8s.io/v1"

CONFIGURATION: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": ADDED,
            "pluginConfig": [
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            REQUIRED: {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {"key": "pool", "operator": "In", "values": ["batch"]}
                                        ]
                                    }
                                ]
                            }
                        }
                    },
                }
            ],
        },
    ],
}


@dataclass
class Situation:
    """Three nodes and a pod that fits on each of them; a kind of Pending changes something."""

    prefix: str  # of all cluster-scoped names; no other situation has it
    nodes: list[Object] = field(default_factory=list)  # with status
    # (path of the collection, object, its status), to create in this order
    objects: list[tuple[str, Object, Object]] = field(default_factory=list)
    running: list[Object] = field(default_factory=list)  # pods with a node
    waiting: Object = field(default_factory=dict)  # the pod that waits
    # (path, merge patch) of a repair
    patches: list[tuple[str, Object]] = field(default_factory=list)
    deletions: list[str] = field(default_factory=list)  # paths of a repair

    def __post_init__(self) -> None:
        for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
            self.node(name, zone)
        self.waiting = self.pod("waiting")

    def name(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def node(self, name: str, zone: str) -> None:
        amounts = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "20Gi", "pods": "10"}
        labels = {HOST: self.name(name), ZONE: zone, "disk": "ssd", "generation": "3"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [READY]}
        metadata = {"name": self.name(name), "labels": labels}
        self.nodes.append({"metadata": metadata, "spec": {}, "status": status})

    def every_node(self, **amounts: str) -> None:
        """Change what every node has."""
        for node in self.nodes:
            for key in ("capacity", "allocatable"):
                node["status"][key] = {**node["status"][key], **amounts}

    def pod(self, name: str, cpu: str = "100m", app: str = "web", **spec: Any) -> Object:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        return {
            "metadata": {
                "name": self.name(name),
                "namespace": NAMESPACE,
                "labels": {"app": app},
            },
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "containers": [container],
                **spec,
            },
        }

    def runs(self, node: int, cpu: str = "100m", app: str = "web", **spec: Any) -> Object:
        """A pod on a node."""
        made = self.pod(f"on-{node}-{len(self.running)}", cpu, app, **spec)
        made["spec"]["nodeName"] = self.nodes[node]["metadata"]["name"]
        self.running.append(made)
        return made

    def runs_everywhere(self, cpu: str = "100m", app: str = "web", **spec: Any) -> None:
        for number in range(len(self.nodes)):
            self.runs(number, cpu, app, **copy.deepcopy(spec))

    @property
    def spec(self) -> Object:
        found: Object = self.waiting["spec"]
        return found

    def requests(self, **amounts: str | None) -> None:
        """Change what the waiting pod requests; None removes a resource."""
        resources = self.spec["containers"][0]["resources"]
        for resource, amount in amounts.items():
            name = resource.replace("gpu", "example.com/gpu").replace("huge", "hugepages-2Mi")
            for key in ("requests", "limits"):
                if key == "limits" and "/" not in name and "-2Mi" not in name:
                    continue
                if amount is None:
                    resources[key].pop(name, None)
                else:
                    resources.setdefault(key, {})[name] = amount

    def taints(self, *taints: Object) -> None:
        for node in self.nodes:
            node["spec"]["taints"] = [*node["spec"].get("taints", ()), *taints]

    def affinity(self, kind: str, *terms: Object) -> None:
        if kind == "nodeAffinity":
            content: Object = {REQUIRED: {"nodeSelectorTerms": list(terms)}}
        else:
            content = {REQUIRED: list(terms)}
        self.spec["affinity"] = {kind: content}

    def spread(self, key: str, **fields: Any) -> None:
        rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
        self.spec["topologySpreadConstraints"] = [{**rule, **selector, **fields}]

    # --- storage and devices ----------------------------------------------------------------------

    def add(self, path: str, name: str, status: Object | None = None, **content: Any) -> Object:
        obj = {"metadata": {"name": self.name(name)}, **content}
        self.objects.append((path, obj, status or {}))
        return obj

    def uses_claim(self) -> None:
        claim = {"claimName": self.name("data")}
        self.spec["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]

    def claim(self, storage_class: str = "disk", mode: str = "ReadWriteOnce", **spec: Any) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
        content = {
            "accessModes": [mode],
            "storageClassName": self.name(storage_class),
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        }
        self.add(path, "data", spec=content)

    def storage_class(self, provisioner: str, mode: str) -> None:
        content: Object = {"provisioner": provisioner, "volumeBindingMode": mode}
        self.add(f"{_STORAGE}/storageclasses", "disk", **content)

    def volume(self, key: str, *values: str, mode: str = "ReadWriteOnce", **spec: Any) -> None:
        """A volume that can be used where a label of the node has one of these values."""
        reach = {"key": key, "operator": "In", "values": list(values)}
        content = {
            "accessModes": [mode],
            "storageClassName": self.name("disk"),
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/nowhere"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [reach]}]}},
            **spec,
        }
        self.add("/api/v1/persistentvolumes", "volume", spec=content)

    def reserved_volume(self, key: str, *values: str, mode: str = "ReadWriteOnce") -> None:
        """A volume for the claim `data`."""
        reference = {"namespace": NAMESPACE, "name": self.name("data")}
        self.volume(key, *values, mode=mode, claimRef=reference)

    def bound_claim(self, key: str, *values: str, mode: str = "ReadWriteOnce") -> None:
        """A claim that is bound to such a volume."""
        self.reserved_volume(key, *values, mode=mode)
        self.claim(mode=mode, volumeName=self.name("volume"))
        self.uses_claim()

    def devices(self, count: int, *nodes: int, claims: int = 1, create: bool = True) -> None:
        """Claims for `count` devices each; every one of `nodes` has one device."""
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        self.add(f"{_DRA}/deviceclasses", "gpu", spec={"selectors": [selector]})
        exactly = {
            "deviceClassName": self.name("gpu"),
            "allocationMode": "ExactCount",
            "count": count,
        }
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        path = f"{_DRA}/namespaces/{NAMESPACE}/resourceclaims"
        used = []
        for number in range(claims):
            name = f"gpu-{number}"
            if create:
                self.add(path, name, spec=spec)
            used.append({"name": name, "resourceClaimName": self.name(name)})
        for number in nodes:
            node = self.nodes[number]["metadata"]["name"]
            content = {
                "driver": DRIVER,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "d"}],
            }
            self.add(f"{_DRA}/resourceslices", f"slice-{number}", spec=content)
        self.spec["resourceClaims"] = used

    # --- repairs ----------------------------------------------------------------------------------

    def patch_node(self, number: int, patch: Object) -> None:
        self.patches.append((f"/api/v1/nodes/{self.nodes[number]['metadata']['name']}", patch))


Change = Callable[[Situation], None]


@dataclass(frozen=True)
class Kind:
    """A kind of Pending."""

    arrange: Change  # makes the pod wait
    cause: str  # a part of one cause, or of kube-scheduler's own words for it
    fix: str  # a part of a change that is named; empty: no change is expected
    repair: Change | None  # makes that change; None: nothing is repaired
    first: str = ""  # a part of the change that is named first; empty: `fix`


KINDS: dict[str, Kind] = {}


def kind(
    cause: str, fix: str = "", repair: Change | None = None, *, first: str = ""
) -> Callable[[Change], Change]:
    """Register a kind; `{}` stands for the prefix of the situation's names."""

    def register(arrange: Change) -> Change:
        KINDS[arrange.__name__.replace("_", " ").strip()] = Kind(arrange, cause, fix, repair, first)
        return arrange

    return register


def _requests(**amounts: str | None) -> Change:
    return lambda situation: situation.requests(**amounts)


def _spec(**fields: Any) -> Change:
    return lambda situation: situation.spec.update(fields)


def _without(*fields: str) -> Change:
    def remove(situation: Situation) -> None:
        for name in fields:
            situation.spec.pop(name)

    return remove


def _tolerate(*keys: str) -> Change:
    return _spec(tolerations=[{"key": key, "operator": "Exists"} for key in keys])


# --- requests -------------------------------------------------------------------------------------


@kind("less than 3 of cpu is free", "request 2 of cpu instead of 3", _requests(cpu="2"))
def too_much_cpu_beside_others(situation: Situation) -> None:
    situation.runs_everywhere("2")
    situation.requests(cpu="3")


@kind("no node has 9 of cpu", "request 4 of cpu instead of 9", _requests(cpu="4"))
def more_cpu_than_any_node_has(situation: Situation) -> None:
    situation.requests(cpu="9")


@kind("less than 9Gi of memory", "request 8Gi of memory instead of 9Gi", _requests(memory="8Gi"))
def too_much_memory(situation: Situation) -> None:
    situation.requests(memory="9Gi")


@kind("of ephemeral-storage is free", "request 20Gi of ephemeral-storage instead of 30Gi",
      lambda s: s.spec["containers"][0]["resources"]["requests"].update(
          {"ephemeral-storage": "20Gi"}))  # fmt: skip
def too_much_ephemeral_storage(situation: Situation) -> None:
    requests = situation.spec["containers"][0]["resources"]["requests"]
    requests["ephemeral-storage"] = "30Gi"


@kind("of example.com/gpu is free", "request no example.com/gpu", _requests(gpu=None))
def a_resource_that_no_node_has(situation: Situation) -> None:
    situation.requests(gpu="1")


@kind("of example.com/gpu is free", "request 1 of example.com/gpu instead of 2", _requests(gpu="1"))
def more_of_a_resource_than_is_left(situation: Situation) -> None:
    situation.every_node(**{"example.com/gpu": "2"})
    situation.runs_everywhere()
    for pod in situation.running:
        amounts = {"cpu": "100m", "example.com/gpu": "1"}
        limits = {"example.com/gpu": "1"}
        pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": limits}
    situation.requests(gpu="2")


@kind("of hugepages-2Mi is free", "request 128Mi of hugepages-2Mi", _requests(huge="128Mi"))
def too_many_huge_pages(situation: Situation) -> None:
    situation.every_node(**{"hugepages-2Mi": "128Mi"})
    situation.requests(huge="256Mi")


@kind("less than 5 of cpu is free", "request 4 of cpu instead of 5",
      lambda s: s.spec["initContainers"][0]["resources"]["requests"].update(cpu="4"))  # fmt: skip
def an_init_container_that_needs_more(situation: Situation) -> None:
    container = {"name": "init", "image": "i", "resources": {"requests": {"cpu": "5"}}}
    situation.spec["initContainers"] = [container]


@kind("less than 5 of cpu is free", "request 4 of cpu instead of 5",
      lambda s: s.spec["resources"]["requests"].update(cpu="4"))  # fmt: skip
def a_request_of_the_whole_pod(situation: Situation) -> None:
    situation.spec["resources"] = {"requests": {"cpu": "5"}}


@kind("Too many pods", "add a node like {}-a and 1 other", lambda s: s.node("d", "x"))
def no_room_for_another_pod(situation: Situation) -> None:
    situation.every_node(pods="1")
    situation.runs_everywhere()


# --- nodes ----------------------------------------------------------------------------------------


@kind("demands the label disk=tape, which no node has; nodes have ssd",
      "remove disk=tape from the nodeSelector", _without("nodeSelector"),
      first="label a node: kubectl label node NODE disk=tape")  # fmt: skip
def a_label_that_no_node_has(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disk": "tape"}


@kind("demands the label disk=tape", "remove disk=tape from the nodeSelector",
      _spec(nodeSelector={ZONE: "y"}), first="label a node")  # fmt: skip
def one_of_two_labels_that_no_node_has(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disk": "tape", ZONE: "y"}


def _expression(key: str, operator: str, *values: str) -> Object:
    content: Object = {"key": key, "operator": operator}
    return {"matchExpressions": [content | ({"values": list(values)} if values else {})]}


@kind(f"node affinity demands {ZONE} in z", f"remove {ZONE} in z", _without("affinity"))
def a_zone_without_nodes(situation: Situation) -> None:
    situation.affinity("nodeAffinity", _expression(ZONE, "In", "z"))


@kind("node affinity demands disk not in ssd", "remove disk not in ssd", _without("affinity"))
def a_label_that_every_node_has(situation: Situation) -> None:
    situation.affinity("nodeAffinity", _expression("disk", "NotIn", "ssd"))


@kind("node affinity demands the label gpu", "remove the label gpu", _without("affinity"))
def a_label_that_has_to_exist(situation: Situation) -> None:
    situation.affinity("nodeAffinity", _expression("gpu", "Exists"))


@kind("demands generation greater than 5", "remove generation greater than 5",
      _without("affinity"))  # fmt: skip
def a_number_that_is_too_small(situation: Situation) -> None:
    situation.affinity("nodeAffinity", _expression("generation", "Gt", "5"))


@kind("demands disk in tape or gpu in yes", "remove the required node affinity",
      _without("affinity"))  # fmt: skip
def two_terms_that_match_nothing(situation: Situation) -> None:
    terms = (_expression("disk", "In", "tape"), _expression("gpu", "In", "yes"))
    situation.affinity("nodeAffinity", *terms)


@kind("demands metadata.name in gone", "remove metadata.name in gone", _without("affinity"))
def a_node_that_does_not_exist(situation: Situation) -> None:
    field_ = {"key": "metadata.name", "operator": "In", "values": ["gone"]}
    situation.affinity("nodeAffinity", {"matchFields": [field_]})


@kind("didn't match scheduler-enforced node affinity")
def an_affinity_of_the_profile(situation: Situation) -> None:
    situation.spec["schedulerName"] = ADDED


@kind("the taint dedicated=team:NoSchedule", "tolerate dedicated=team:NoSchedule",
      _tolerate("dedicated"))  # fmt: skip
def a_taint(situation: Situation) -> None:
    situation.taints({"key": "dedicated", "value": "team", "effect": "NoSchedule"})


@kind("the taint broken:NoExecute", "tolerate broken:NoExecute", _tolerate("broken"))
def a_taint_that_evicts(situation: Situation) -> None:
    situation.taints({"key": "broken", "effect": "NoExecute"})


@kind("the cloud controller manager has not initialized the node",
      "make the cloud-controller-manager run",
      lambda s: s.patch_node(0, {"spec": {"taints": []}}))  # fmt: skip
def nodes_that_no_cloud_provider_has_initialized(situation: Situation) -> None:
    key = "node.cloudprovider.kubernetes.io/uninitialized"
    situation.taints({"key": key, "value": "true", "effect": "NoSchedule"})


@kind("the taint dedicated=team:NoSchedule", "tolerate dedicated=team:NoSchedule",
      _tolerate("dedicated"))  # fmt: skip
def a_toleration_with_another_value(situation: Situation) -> None:
    a_taint(situation)
    wrong = {"key": "dedicated", "operator": "Equal", "value": "other", "effect": "NoSchedule"}
    situation.spec["tolerations"] = [wrong]


@kind("the taint a:NoSchedule", "tolerate a:NoSchedule, and tolerate b:NoSchedule",
      _tolerate("a", "b"))  # fmt: skip
def two_taints(situation: Situation) -> None:
    situation.taints(*({"key": key, "effect": "NoSchedule"} for key in "ab"))


@kind("the node is cordoned", "uncordon the node",
      lambda s: s.patch_node(0, {"spec": {"unschedulable": None}}))  # fmt: skip
def cordoned_nodes(situation: Situation) -> None:
    for node in situation.nodes:
        node["spec"]["unschedulable"] = True


@kind("demands the label disk=tape", "tolerate k:NoSchedule, and remove disk=tape",
      _spec(tolerations=[{"operator": "Exists"}], nodeSelector={}))  # fmt: skip
def two_constraints_of_every_node(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disk": "tape"}
    situation.taints({"key": "k", "effect": "NoSchedule"})


@kind("pod pending-kinds/{}-on-0-0 uses the host port 8080/TCP", "remove the hostPort 8080/TCP",
      lambda s: s.spec["containers"][0].pop("ports") and None, first="add a node")  # fmt: skip
def a_host_port_that_is_used(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in (*situation.running, situation.waiting):
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]


@kind("uses the host port 53/UDP", "remove the hostPort 53/UDP",
      lambda s: s.spec["containers"][0]["ports"].pop() and None, first="add a node")  # fmt: skip
def one_of_two_host_ports_that_is_used(situation: Situation) -> None:
    situation.runs_everywhere()
    udp = {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}
    for pod in situation.running:
        pod["spec"]["containers"][0]["ports"] = [udp]
    tcp = {"containerPort": 80, "hostPort": 8080}
    situation.spec["containers"][0]["ports"] = [tcp, udp]


# --- other pods -----------------------------------------------------------------------------------


def _term(app: str, key: str, **fields: Any) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **fields}


@kind(f"pod pending-kinds/{{}}-on-0-0 with app=web runs in {HOST} {{}}-a (pod anti-affinity)",
      "remove the pod anti-affinity to pods with app=web", _without("affinity"),
      first="add a node")  # fmt: skip
def an_anti_affinity(situation: Situation) -> None:
    situation.runs_everywhere()
    situation.affinity("podAntiAffinity", _term("web", HOST))


@kind(f"no pod with app=db in namespace pending-kinds runs in {ZONE} y (pod affinity), nor else",
      "remove the pod affinity to pods with app=db", _without("affinity"))  # fmt: skip
def an_affinity_to_pods_that_do_not_run(situation: Situation) -> None:
    situation.affinity("podAffinity", _term("db", ZONE))


@kind(
    "pods with these labels run in namespace pending-kinds-other",
    "remove the pod affinity to pods with app=db",
    lambda s: s.affinity("podAffinity", _term("db", ZONE, namespaces=[OTHER_NAMESPACE])),
)
def an_affinity_to_pods_of_another_namespace(situation: Situation) -> None:
    situation.runs(2, app="db")["metadata"]["namespace"] = OTHER_NAMESPACE
    situation.affinity("podAffinity", _term("db", ZONE))


@kind("less than 2 of cpu is free", "request 1 of cpu instead of 2", _requests(cpu="1"))
def an_affinity_to_a_pod_on_a_full_node(situation: Situation) -> None:
    situation.runs(0, "3", app="db")
    situation.affinity("podAffinity", _term("db", HOST))
    situation.requests(cpu="2")


@kind("a pod there has anti-affinity to pods with app=web", "change the label app=web",
      lambda s: s.waiting["metadata"]["labels"].update(app="new"), first="add a node")  # fmt: skip
def an_anti_affinity_of_running_pods(situation: Situation) -> None:
    situation.runs_everywhere(affinity={"podAntiAffinity": {REQUIRED: [_term("web", HOST)]}})


@kind("would break maxSkew 1; pods with app=web: 2 in x, 0 in y",
      f"use ScheduleAnyway for the spread over {ZONE}",
      lambda s: s.spread(ZONE, whenUnsatisfiable="ScheduleAnyway"),
      first="raise maxSkew to 3")  # fmt: skip
def a_spread_whose_other_zone_is_full(situation: Situation) -> None:
    situation.runs(0)
    situation.runs(1)
    situation.runs(2, "4", app="other")
    situation.spread(ZONE)


@kind("the node has no label rack", "use ScheduleAnyway for the spread over rack",
      lambda s: s.spread("rack", whenUnsatisfiable="ScheduleAnyway"))  # fmt: skip
def a_spread_over_a_label_that_no_node_has(situation: Situation) -> None:
    situation.spread("rack")


@kind("minDomains is 3 and 2 values count, so the minimum is 0", "set minDomains to 2",
      lambda s: s.spread(ZONE, minDomains=2))  # fmt: skip
def a_spread_over_more_zones_than_there_are(situation: Situation) -> None:
    situation.runs_everywhere()
    situation.spread(ZONE, minDomains=3)


@kind("less than 3 of cpu is free", "request 2 of cpu instead of 3", _requests(cpu="2"))
def a_priority_that_may_not_preempt(situation: Situation) -> None:
    situation.runs_everywhere("2")
    situation.requests(cpu="3")
    situation.spec["priorityClassName"] = "pending-never"


@kind("y counts (nodeTaintsPolicy Ignore) although its nodes have the taint broken:NoSchedule",
      "set nodeTaintsPolicy to Honor", lambda s: s.spread(ZONE, nodeTaintsPolicy="Honor"),
      )  # fmt: skip
def a_spread_over_a_zone_whose_nodes_are_tainted(situation: Situation) -> None:
    situation.runs(0)
    situation.nodes[2]["spec"]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    situation.spread(ZONE)


@kind("pods with app=web: 1 in x, 0 in y", "set nodeAffinityPolicy to Honor",
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


@kind("with app=web runs in", "add pod-template-hash to matchLabelKeys of the pod anti-affinity",
      lambda s: s.affinity("podAntiAffinity",
                           _term("web", HOST, matchLabelKeys=["pod-template-hash"])))  # fmt: skip
def an_anti_affinity_to_pods_of_the_old_template(situation: Situation) -> None:
    situation.runs_everywhere()
    for pod in situation.running:
        pod["metadata"]["labels"]["pod-template-hash"] = "old"
    situation.waiting["metadata"]["labels"]["pod-template-hash"] = "new"
    situation.affinity("podAntiAffinity", _term("web", HOST))


@kind("the node has no label rack, the topologyKey of the pod affinity",
      "remove the pod affinity", _without("affinity"), first="add a node")  # fmt: skip
def an_affinity_per_a_label_that_the_pods_node_lacks(situation: Situation) -> None:
    situation.nodes[2]["metadata"]["labels"]["rack"] = "1"
    situation.runs(2, "4", app="db")
    situation.affinity("podAffinity", _term("db", "rack"))


@kind(f"in namespace pending-kinds runs in {ZONE} x (pod affinity); some run in y",
      "request 1 of cpu instead of 2", _requests(cpu="1"))  # fmt: skip
def an_affinity_to_pods_of_a_zone_with_little_room(situation: Situation) -> None:
    situation.runs(2, "3", app="db")
    situation.affinity("podAffinity", _term("db", ZONE))
    situation.requests(cpu="2")


@kind("pods with these labels run in namespace pending-kinds-other", "remove the pod affinity",
      _without("affinity"))  # fmt: skip
def an_affinity_to_chosen_namespaces_without_such_pods(situation: Situation) -> None:
    situation.runs(2, app="db")["metadata"]["namespace"] = OTHER_NAMESPACE
    chosen = {"matchLabels": {"team": "none"}}
    situation.affinity("podAffinity", _term("db", ZONE, namespaceSelector=chosen))


# --- the node of a pod --------------------------------------------------------------------------


@kind("1 of 1 pods run on the node (allocatable pods)", "add a node",
      lambda s: s.node("d", "y"))  # fmt: skip
def nodes_that_are_full_of_pods(situation: Situation) -> None:
    situation.every_node(pods="1")
    situation.runs_everywhere()


@kind("the node has too little free disk space (DiskPressure)", "free disk space on the node",
      lambda s: s.patches.append((f"/api/v1/nodes/{s.name('a')}/status",
                                  {"status": {"conditions": [READY]}})))  # fmt: skip
def nodes_with_disk_pressure(situation: Situation) -> None:
    situation.taints({"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"})
    for node in situation.nodes:
        node["status"]["conditions"] = [READY, {**READY, "type": "DiskPressure"}]


@kind("Cilium's agent is not ready on the node", "make the Pod of Cilium on the node Ready",
      lambda s: s.patch_node(0, {"spec": {"taints": []}}))  # fmt: skip
def nodes_whose_network_plugin_has_not_started(situation: Situation) -> None:
    situation.taints({"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"})


@kind("the agent of ebs.csi.aws.com is not ready on the node",
      "make the Pod of ebs.csi.aws.com on the node Ready",
      lambda s: s.patch_node(0, {"spec": {"taints": []}}))  # fmt: skip
def nodes_whose_storage_driver_has_not_started(situation: Situation) -> None:
    situation.taints({"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"})


@kind("and no node has the label disktype; nodes have the label disk",
      "label a node: kubectl label node NODE disktype=ssd",
      lambda s: s.patch_node(0, {"metadata": {"labels": {"disktype": "ssd"}}}))  # fmt: skip
def a_selector_with_a_misspelt_label(situation: Situation) -> None:
    situation.spec["nodeSelector"] = {"disktype": "ssd"}


@kind("the pod's nodeSelector demands disk=tape, and the node has disk=ssd",
      "remove disk=tape from the nodeSelector", _without("nodeSelector"),
      first="request 1 of cpu instead of 2")  # fmt: skip
def a_selector_for_a_full_node(situation: Situation) -> None:
    situation.nodes[0]["metadata"]["labels"]["disk"] = "tape"
    situation.runs(0, "3")
    situation.spec["nodeSelector"] = {"disk": "tape"}
    situation.requests(cpu="2")


# --- volumes --------------------------------------------------------------------------------------


@kind("PersistentVolumeClaim {}-data does not exist", "create PersistentVolumeClaim {}-data",
      lambda s: s.bound_claim(HOST, s.name("a")))  # fmt: skip
def a_claim_that_does_not_exist(situation: Situation) -> None:
    situation.uses_claim()


@kind("waits for a volume of disk.example.com", "make disk.example.com provide a volume",
      lambda s: s.reserved_volume(HOST, s.name("a")))  # fmt: skip
def a_claim_that_waits_for_its_volume(situation: Situation) -> None:
    situation.storage_class("disk.example.com", "Immediate")
    situation.claim()
    situation.uses_claim()


@kind("StorageClass {}-gone, which does not exist", "create StorageClass {}-gone")
def a_storage_class_that_does_not_exist(situation: Situation) -> None:
    situation.claim("gone")
    situation.uses_claim()


@kind("no free PersistentVolume of StorageClass {}-disk", "create a PersistentVolume for",
      lambda s: s.volume(HOST, s.name("b")))  # fmt: skip
def a_claim_without_a_volume_and_a_provisioner(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.claim()
    situation.uses_claim()


@kind("no free PersistentVolume of StorageClass {}-disk", "request 1 of cpu instead of 2",
      _requests(cpu="1"), first="create a PersistentVolume")  # fmt: skip
def the_only_free_volume_is_on_a_full_node(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.volume(HOST, situation.name("a"))
    situation.claim()
    situation.uses_claim()
    situation.runs(0, "3", app="other")
    situation.requests(cpu="2")


@kind("the volume {}-volume of PersistentVolumeClaim {}-data demands",
      "request 1 of cpu instead of 2", _requests(cpu="1"))  # fmt: skip
def a_volume_on_a_full_node(situation: Situation) -> None:
    situation.bound_claim(HOST, situation.name("a"))
    situation.runs(0, "3", app="other")
    situation.requests(cpu="2")


@kind("the volume {}-volume of", "remove the volume data", _without("volumes"))
def a_volume_on_a_node_that_is_gone(situation: Situation) -> None:
    situation.bound_claim(HOST, "gone")


@kind("the volume {}-volume of", f"remove {ZONE}=y from the nodeSelector", _without("nodeSelector"))
def a_volume_in_another_zone(situation: Situation) -> None:
    situation.bound_claim(ZONE, "x")
    situation.spec["nodeSelector"] = {ZONE: "y"}


def _delete_the_first(situation: Situation) -> None:
    metadata = situation.running[0]["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    situation.deletions.append(path)
    # kube-scheduler tries the same pod again after half a minute, and a new one at once.
    situation.waiting["metadata"]["labels"]["new"] = "yes"


@kind("uses PersistentVolumeClaim {}-data, whose access mode is ReadWriteOncePod",
      "delete pod {}-on-1-0", _delete_the_first)  # fmt: skip
def a_volume_for_one_pod_alone(situation: Situation) -> None:
    situation.bound_claim(HOST, situation.name("b"), mode="ReadWriteOncePod")
    situation.runs(1, volumes=situation.spec["volumes"])


# --- devices --------------------------------------------------------------------------------------


@kind("the node has 1 device of driver pending.example.com (DeviceClass {}-gpu), and request r of "
      "ResourceClaim {}-gpu-0 wants 2", "remove the resource claim gpu-0",
      _without("resourceClaims"), first="request 1 device instead of 2")  # fmt: skip
def more_devices_than_any_node_has(situation: Situation) -> None:
    situation.devices(2, 0, 1)


@kind("no ResourceSlice has a device for the node, which ResourceClaim {}-gpu-0 requests",
      "remove the resource claim gpu-0", _without("resourceClaims"))  # fmt: skip
def a_device_class_without_devices(situation: Situation) -> None:
    situation.devices(1)


@kind("ResourceClaim {}-gpu-0 does not exist", "create ResourceClaim {}-gpu-0",
      lambda s: s.devices(1, 0))  # fmt: skip
def a_resource_claim_that_does_not_exist(situation: Situation) -> None:
    situation.devices(1, 0, create=False)
    situation.objects.clear()


@kind("cannot allocate all claims", "remove the resource claim gpu-",
      lambda s: s.spec["resourceClaims"].pop() and None)  # fmt: skip
def two_claims_for_one_device(situation: Situation) -> None:
    situation.devices(1, 0, claims=2)


@kind("that the node has free, the selectors or constraints of request r of ResourceClaim {}-gpu-0",
      "remove the resource claim gpu-0", _without("resourceClaims"),
      first="correct the selector device.attributes")  # fmt: skip
def a_device_that_lacks_an_attribute(situation: Situation) -> None:
    situation.devices(1, 0)
    wanted = f"device.attributes['{DRIVER}'].memory == 'large'"
    (claim,) = (obj for path, obj, _ in situation.objects if path.endswith("resourceclaims"))
    exactly = claim["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": wanted}}]
    (part,) = (obj for path, obj, _ in situation.objects if path.endswith("resourceslices"))
    part["spec"]["devices"][0]["attributes"] = {"memory": {"string": "small"}}


@kind("the node is cordoned", "uncordon the node",
      lambda s: s.patch_node(0, {"spec": {"unschedulable": None}}))  # fmt: skip
def devices_on_a_cordoned_node(situation: Situation) -> None:
    situation.devices(1, 0)
    situation.nodes[0]["spec"]["unschedulable"] = True
