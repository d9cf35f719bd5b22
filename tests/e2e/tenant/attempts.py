"""What a tenant tries: a table of attempts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cluster.observe import KUBESCHEDULER, OPERATOR_NAMESPACE
from cluster.observe import SCHEDULER as PROFILE
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM

from ..conftest import (
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)
from .world import DEFAULT, FORGED, OF_OTHERS, OWN_IMAGE, SCHEDULER, TENANT, Others, Tenant, pod

Act = Callable[[Tenant, Others], None]

FORBIDDEN: Final = "is forbidden"
WITHOUT_SCHEDULER: Final = frozenset({names.PODS_WITHOUT_SCHEDULER})
OWN: Final = dict(names.OWN_LABELS)
ROLE: Final = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
GROUP: Final = "kube-scheduler-operator.dev/v1alpha1"


@dataclass(frozen=True)
class Attempt:
    """One attempt. What must stay true for others is the same for all: see test_attempts.py."""

    name: str  # what the tenant wants
    act: Act  # what it does, with its own rights
    # a part of the API server's answer if it refuses; empty: it accepts, and nothing comes of it
    refused: str = ""
    # conditions that may change, because they state what is true of the tenant's own Pods
    about: frozenset[str] = frozenset()


# --- false evidence ---------------------------------------------------------------------------


def one_event(tenant: Tenant, others: Others) -> None:
    tenant.event(1, DEFAULT, FORGED, {"metadata": {"name": "no-such-pod"}})


def an_event_of_a_bound_pod(tenant: Tenant, others: Others) -> None:
    bound = tenant.bound_pod("mine")
    tenant.event(1, DEFAULT, FORGED, bound)
    tenant.event(2, SCHEDULER, FORGED, bound)


def two_hundred_events(tenant: Tenant, others: Others) -> None:
    bound = tenant.bound_pod("mine")
    for number in range(200):
        tenant.event(number, DEFAULT, f"{FORGED}-{number}", bound)


def an_event_in_another_namespace(tenant: Tenant, others: Others) -> None:
    event = {
        "metadata": {"name": "forged", "namespace": OF_OTHERS},
        "involvedObject": {"kind": "Pod", "namespace": OF_OTHERS, "name": "web-1"},
        "reason": "Scheduled",
    }
    tenant.api.request("POST", f"/api/v1/namespaces/{OF_OTHERS}/events", event)


def labelled_pod(**labels: str) -> Act:
    def act(tenant: Tenant, others: Others) -> None:
        tenant.create("pods", pod("forged", metadata={"labels": labels}))

    return act


def a_mirror_pod(tenant: Tenant, others: Others) -> None:
    node = others.cluster.node.name
    metadata = {
        "labels": {**dict(KUBEADM.static_pod_labels), names.REVISION_LABEL: "999999"},
        "annotations": {
            "kubernetes.io/config.mirror": FORGED,
            "kubernetes.io/config.source": "file",
            "kubernetes.io/config.hash": FORGED,
        },
    }
    scheduler = {"name": "kube-scheduler", "image": OWN_IMAGE, "command": ["sleep", "9"]}
    made = pod(f"kube-scheduler-{node}", metadata=metadata, container=scheduler, nodeName=node)
    tenant.create("pods", made)


def a_pod_in_kube_system(tenant: Tenant, others: Others) -> None:
    made = pod(f"kube-scheduler-{others.preferred}", metadata={
        "labels": dict(KUBEADM.static_pod_labels)})  # fmt: skip
    tenant.api.request("POST", "/api/v1/namespaces/kube-system/pods", made)


def config_map(name: str, labels: Mapping[str, str], **data: str) -> Act:
    def act(tenant: Tenant, others: Others) -> None:
        metadata = {"name": name, "labels": dict(labels)}
        tenant.create("configmaps", {"metadata": metadata, "data": data})

    return act


def an_operator_of_ones_own(tenant: Tenant, others: Others) -> None:
    labels = {"app.kubernetes.io/name": names.PROGRAM, **OWN}
    container = {
        "image": OWN_IMAGE,
        "command": ["sleep", "3600"],
        "args": [],
    }
    template = pod("x", container=container)
    template["metadata"] = {"labels": labels}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": names.PROGRAM, "labels": labels}
    tenant.create("deployments", {"metadata": metadata, "spec": spec}, "/apis/apps/v1")


def a_scheduler_of_ones_own(tenant: Tenant, others: Others) -> None:
    labels = {"app": names.SECONDARY, names.SECONDARY_LABEL: SCHEDULER, **OWN}
    template = pod("x", container={"name": names.OPERAND, "image": OWN_IMAGE,
                                   "command": ["sleep", "3600"]})  # fmt: skip
    template["metadata"] = {"labels": labels}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": SCHEDULER, "labels": labels}
    tenant.create("deployments", {"metadata": metadata, "spec": spec}, "/apis/apps/v1")


def a_service_of_the_operators_name(tenant: Tenant, others: Others) -> None:
    spec = {"selector": {"app": "x"}, "ports": [{"port": 443, "targetPort": 8443}]}
    for name in (names.PROGRAM, names.WEBHOOK):
        tenant.create("services", {"metadata": {"name": name, "labels": OWN}, "spec": spec})


# --- rights that the tenant does not have -----------------------------------------------------


def request(method: str, path: str, body: Mapping[str, Any] | None = None) -> Act:
    def act(tenant: Tenant, others: Others) -> None:
        tenant.api.request(method, path, dict(body) if body is not None else None)

    return act


def kind(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": GROUP, "kind": name, "metadata": {"name": "forged"}, "spec": spec}


def binding(tenant: Tenant, others: Others) -> None:
    made = pod("mine", schedulerName="no-scheduler")
    tenant.create("pods", made)
    target = {"apiVersion": "v1", "kind": "Node", "name": others.cluster.node.name}
    body = {"metadata": {"name": "mine"}, "target": target}
    tenant.create("pods/mine/binding", body)


def status_of_a_pod(tenant: Tenant, others: Others) -> None:
    tenant.create("pods", pod("mine", schedulerName="no-scheduler"))
    condition = {"type": "PodScheduled", "status": "True"}
    path = f"/api/v1/namespaces/{TENANT}/pods/mine/status"
    tenant.api.request("PATCH", path, {"status": {"conditions": [condition]}})


def load_of_a_node(tenant: Tenant, others: Others) -> None:
    patch = {"metadata": {"annotations": {names.LOAD_ANNOTATION: "{}"}}}
    tenant.api.request("PATCH", f"/api/v1/nodes/{others.preferred}", patch)


def role_of_a_scheduler(tenant: Tenant, others: Others) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:kube-scheduler"}  # fmt: skip
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": TENANT}
    body = {"metadata": {"name": "forged"}, "roleRef": role, "subjects": [subject]}
    tenant.create("rolebindings", body, "/apis/rbac.authorization.k8s.io/v1")


# --- Pods that could be in the way ------------------------------------------------------------


def many_pods_without_a_scheduler(tenant: Tenant, others: Others) -> None:
    for number in range(100):
        tenant.create("pods", pod(f"p-{number}", schedulerName=f"{FORGED.lower()}-{number}"))


def many_pods_without_a_node(tenant: Tenant, others: Others) -> None:
    resources = {"resources": {"requests": {"cpu": "1000"}}}
    for number in range(100):
        scheduler = (DEFAULT, SCHEDULER)[number % 2]
        tenant.create("pods", pod(f"p-{number}", container=resources, schedulerName=scheduler))


def a_pod_of_the_others_scheduler(tenant: Tenant, others: Others) -> None:
    tenant.create("pods", pod("mine", schedulerName=SCHEDULER))


def pods_with_megabytes(tenant: Tenant, others: Others) -> None:
    for number in range(20):
        notes = {"example.com/note": "x" * 200_000}
        tenant.create("pods", pod(f"p-{number}", metadata={"annotations": notes},
                                  schedulerName="x" * 100_000))  # fmt: skip


def pods_with_thousands_of_resources(tenant: Tenant, others: Others) -> None:
    """Agents, annotators and simulations read each of them."""
    amounts = {f"example.com/{number:05}": "1" for number in range(5000)}
    resources = {"resources": {"requests": amounts, "limits": amounts}}
    for number in range(5):
        bound = {"nodeName": others.preferred} if number % 2 else {}
        tenant.create("pods", pod(f"p-{number}", container=resources, **bound))


def pods_on_the_control_plane(tenant: Tenant, others: Others) -> None:
    node = others.cluster.node.name
    tenant.create("pods", pod("bound", nodeName=node, tolerations=[ROLE]))
    tenant.create("pods", pod("placed", nodeSelector={ROLE["key"]: ""}, tolerations=[ROLE]))


def a_port_of_the_node(tenant: Tenant, others: Others) -> None:
    container = {"ports": [{"containerPort": 10259, "hostPort": 10259}]}
    tenant.create("pods", pod("mine", container=container, tolerations=[ROLE]))


def the_network_of_the_node(tenant: Tenant, others: Others) -> None:
    node = others.cluster.node.name
    tenant.create("pods", pod("mine", hostNetwork=True, nodeName=node, tolerations=[ROLE]))


def the_account_of_the_scheduler(tenant: Tenant, others: Others) -> None:
    """A ServiceAccount of another namespace has no meaning in this one."""
    tenant.create("pods", pod("mine", serviceAccountName=SCHEDULER))


def pods_that_are_never_assigned(tenant: Tenant, others: Others) -> None:
    labels = {names.ASSIGN_LABEL: names.ASSIGN_NEVER}
    tenant.create("pods", pod("mine", metadata={"labels": labels}))


def values_learned_from_a_config_map(tenant: Tenant, others: Others) -> None:
    tenant.create("configmaps", {"metadata": {"name": "rl-state"}, "data": {"state": FORGED}})


def a_budget_over_everything(tenant: Tenant, others: Others) -> None:
    spec = {"minAvailable": "100%", "selector": {}}
    body = {"metadata": {"name": "forged", "labels": OWN}, "spec": spec}
    tenant.create("poddisruptionbudgets", body, "/apis/policy/v1")


def a_policy_that_isolates(tenant: Tenant, others: Others) -> None:
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    body = {"metadata": {"name": "default-deny-all", "labels": OWN}, "spec": spec}
    tenant.create("networkpolicies", body, "/apis/networking.k8s.io/v1")


# --- connections ------------------------------------------------------------------------------


def _address(others: Others, selector: str) -> str:
    item = next(item for item in others.pods_of(selector) if item["status"].get("podIP"))
    return str(item["status"]["podIP"])


def ask_an_agent(tenant: Tenant, others: Others) -> None:
    extender = others.cluster.api.request("GET", f"{SCHEDULER_EXTENDERS}/safe")
    port = int(extender["status"]["agent"]["port"])
    address = _address(others, f"{names.SECONDARY_LABEL}={SCHEDULER}")
    assert not tenant.reaches(address, port), "it listens at 127.0.0.1 only"
    assert not tenant.reaches(address, port + 10000), "the NetworkPolicy lets nothing in"


def ask_the_scheduler(tenant: Tenant, others: Others) -> None:
    address = _address(others, f"{names.SECONDARY_LABEL}={SCHEDULER}")
    for path in ("metrics", "configz", "debug/pprof/"):
        assert tenant.status_of(f"https://{address}:10259/{path}") in ("401", "403", "404")


def ask_the_operator(tenant: Tenant, others: Others) -> None:
    address = _address(others, f"app.kubernetes.io/name={names.PROGRAM}")
    assert tenant.status_of(f"https://{address}:8443/metrics") in ("401", "403")


def ask_the_control_planes_scheduler(tenant: Tenant, others: Others) -> None:
    (node,) = (
        address["address"]
        for address in others.cluster.api.request(
            "GET", f"/api/v1/nodes/{others.cluster.node.name}"
        )["status"]["addresses"]
        if address["type"] == "InternalIP"
    )
    answer = tenant.status_of(f"https://{node}:10259/metrics")
    assert answer in ("401", "403", "CLOSED"), answer


ATTEMPTS: Final = (
    Attempt("an Event about no Pod reports an unmanaged scheduler", one_event),
    Attempt("Events about a bound Pod report an unmanaged scheduler", an_event_of_a_bound_pod),
    Attempt("two hundred Events report two hundred schedulers", two_hundred_events),
    Attempt("an Event in the namespace of others", an_event_in_another_namespace, FORBIDDEN),
    Attempt("a mirror Pod of the scheduler with another revision", a_mirror_pod),
    Attempt("a scheduler's Pod in kube-system", a_pod_in_kube_system, FORBIDDEN),
    Attempt("an installer's result", labelled_pod(app=names.INSTALLER, **OWN)),
    Attempt("a guard's report", labelled_pod(app=names.GUARD, **OWN)),
    Attempt(
        "an agent's Pod",
        labelled_pod(app=names.SECONDARY, **{names.SECONDARY_LABEL: SCHEDULER}),
    ),
    Attempt("a Pod of the operator", labelled_pod(**{"app.kubernetes.io/name": names.PROGRAM})),
    Attempt(
        "a revision",
        config_map("revision-status-999", {**OWN, names.REVISION_LABEL: "999"}, revision="999"),
    ),
    Attempt("the target configuration", config_map(names.CONFIG, OWN, **{"config.yaml": "{}"})),
    Attempt("the platform", config_map(names.PLATFORM_RECORD, OWN, platform="openshift")),
    Attempt(
        "the content of a scheduler",
        config_map(
            f"{SCHEDULER}-config-0",
            {**OWN, names.SECONDARY_LABEL: SCHEDULER},
            **{"config.yaml": json.dumps({"profiles": [{"schedulerName": DEFAULT}]})},
        ),
    ),
    Attempt("an operator of its own", an_operator_of_ones_own),
    Attempt("a scheduler of its own", a_scheduler_of_ones_own),
    Attempt("a Service of the operator's name", a_service_of_the_operators_name),
    Attempt("learned values of others", values_learned_from_a_config_map),
    Attempt(
        "a SchedulerProfile",
        request("POST", SCHEDULER_PROFILES, kind("SchedulerProfile", schedulerName=DEFAULT)),
        FORBIDDEN,
    ),
    Attempt(
        "a SchedulerExtender",
        request("POST", SCHEDULER_EXTENDERS, kind("SchedulerExtender", url="http://192.0.2.1/x")),
        FORBIDDEN,
    ),
    Attempt(
        "a SecondaryScheduler",
        request("POST", SECONDARY_SCHEDULERS, kind("SecondaryScheduler", namespace=TENANT)),
        FORBIDDEN,
    ),
    Attempt("a LoadPolicy", request("POST", LOAD_POLICIES, kind("LoadPolicy")), FORBIDDEN),
    Attempt(
        "an approval",
        request("POST", OPERATOR_SETTINGS, kind("OperatorSettings", placementCheck={})),
        FORBIDDEN,
    ),
    Attempt(
        "another profile for all",
        request("PATCH", PROFILE, {"spec": {"profile": "NoScoring"}}),
        FORBIDDEN,
    ),
    Attempt(
        "no operator any more",
        request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Removed"}}),
        FORBIDDEN,
    ),
    Attempt("a binding", binding, FORBIDDEN, WITHOUT_SCHEDULER),
    Attempt("the status of a Pod", status_of_a_pod, FORBIDDEN, WITHOUT_SCHEDULER),
    Attempt("the load of a node", load_of_a_node, FORBIDDEN),
    Attempt("the role of a scheduler", role_of_a_scheduler, FORBIDDEN),
    Attempt(
        "the Secrets of the operator",
        request("GET", f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/secrets"),
        FORBIDDEN,
    ),
    Attempt(
        "the Pods of others", request("GET", f"/api/v1/namespaces/{OF_OTHERS}/pods"), FORBIDDEN
    ),
    Attempt(
        "a token of the operator",
        request(
            "POST",
            f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/serviceaccounts/{names.PROGRAM}/token",
            {"spec": {}},
        ),
        FORBIDDEN,
    ),
    Attempt(
        "a Pod beside the operator",
        request("POST", f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods", pod("mine")),
        FORBIDDEN,
    ),
    Attempt("a port of the scheduler's node", a_port_of_the_node, "hostPort"),
    Attempt("the network of the scheduler's node", the_network_of_the_node, "host namespaces"),
    Attempt("the account of a scheduler", the_account_of_the_scheduler, "not found"),
    Attempt(
        "a hundred names that no scheduler serves",
        many_pods_without_a_scheduler,
        about=WITHOUT_SCHEDULER,
    ),
    Attempt("a hundred Pods that fit on no node", many_pods_without_a_node),
    Attempt("a Pod of the scheduler of others", a_pod_of_the_others_scheduler),
    Attempt("Pods with megabytes", pods_with_megabytes, about=WITHOUT_SCHEDULER),
    Attempt("Pods with thousands of resources", pods_with_thousands_of_resources),
    Attempt("Pods on the control plane's node", pods_on_the_control_plane),
    Attempt("Pods that are never assigned", pods_that_are_never_assigned),
    Attempt("a budget over everything", a_budget_over_everything),
    Attempt("a NetworkPolicy that isolates", a_policy_that_isolates),
    Attempt("answers and decisions of an agent", ask_an_agent),
    Attempt("the endpoints of a scheduler", ask_the_scheduler),
    Attempt("the metrics of the operator", ask_the_operator),
    Attempt("the metrics of the control plane's scheduler", ask_the_control_planes_scheduler),
)
"""At least forty."""
