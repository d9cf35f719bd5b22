"""The tenant's hands, and what must stay as it is for others."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cluster import images
from cluster.api import Api, ApiError
from cluster.observe import OPERATOR_NAMESPACE, until
from kube_scheduler_operator.base import names

from ..conftest import CONFIG_MAPS, SECONDARY_SCHEDULERS, Cluster

TENANT: Final = "tenant"
OF_OTHERS: Final = "shop"
SCHEDULER: Final = "my-scheduler"
DEFAULT: Final = "default-scheduler"
USER: Final = f"system:serviceaccount:{TENANT}:default"
GROUPS: Final = (
    "system:serviceaccounts", f"system:serviceaccounts:{TENANT}", "system:authenticated",
)  # fmt: skip
OWN_IMAGE: Final = "localhost/kube-scheduler-operator:dev"
"""An image that every node has, with an interpreter."""
FORGED: Final = "FORGED"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"

_CONNECT: Final = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 4).close()
    print("OPEN")
except OSError as error:
    print("CLOSED", error)
"""
_REQUEST: Final = """
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=4, context=context).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError as error:
    print("CLOSED", error)
"""
_SECURE: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A Pod that every level of Pod Security admits; `metadata` and `container` are extended."""
    metadata, container = spec.pop("metadata", {}), spec.pop("container", {})
    main = {"name": "main", "image": images.PAUSE, "securityContext": _SECURE, **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [main], "terminationGracePeriodSeconds": 0, **spec},
    }


@dataclass
class Tenant:
    """A user with the ClusterRole `edit` in one namespace and nothing else."""

    cluster: Cluster
    api: Api = field(init=False)

    def __post_init__(self) -> None:
        self.api = Api(self.cluster.sandbox, USER, GROUPS)
        binding = {
            "metadata": {"name": "tenant"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": TENANT}],
        }  # fmt: skip
        self.cluster.api.create(f"{RBAC}/namespaces/{TENANT}/rolebindings", binding)
        until(self._may_write, 30, "the tenant has no right yet")

    def create(self, plural: str, obj: Mapping[str, Any], group: str = "/api/v1") -> dict[str, Any]:
        """Create an object in the tenant's namespace.

        Raises:
            ApiError: the API server refuses it.
        """
        return self.api.request("POST", f"{group}/namespaces/{TENANT}/{plural}", dict(obj))

    def event(self, number: int, scheduler: str, host: str, about: Mapping[str, Any]) -> None:
        """An Event as the scheduler of a schedulerName writes it for a binding."""
        metadata = about["metadata"]
        event = {
            "metadata": {"name": f"forged-{number}"},
            "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
            "type": "Normal",
            "reason": "Scheduled",
            "action": "Binding",
            "reportingController": scheduler,
            "reportingInstance": f"{scheduler}-{host}",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": TENANT,
                "name": metadata["name"],
                "uid": metadata.get("uid", "no-such-pod"),
            },
        }
        self.create("events", event, "/apis/events.k8s.io/v1")

    def bound_pod(self, name: str) -> dict[str, Any]:
        """A Pod of its own that the real scheduler has bound."""
        self.create("pods", pod(name))
        path = f"/api/v1/namespaces/{TENANT}/pods/{name}"
        until(
            lambda: self.api.request("GET", path)["spec"].get("nodeName"),
            60,
            f"{name} was not bound",
        )
        return self.api.request("GET", path)

    def reaches(self, address: str, port: int) -> bool:
        """Whether a Pod of the tenant can connect to an address."""
        return self._run(_CONNECT, address, str(port)).startswith("OPEN")

    def status_of(self, url: str) -> str:
        """The HTTP status that a Pod of the tenant receives; CLOSED if it cannot connect."""
        return self._run(_REQUEST, url).partition(" ")[0].strip()

    def leave(self) -> None:
        """Delete everything that the tenant made, as the cluster's administrator."""
        api = self.cluster.api
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        for group, plural in (
            ("/apis/apps/v1", "deployments"), ("/apis/batch/v1", "jobs"),
            ("/apis/policy/v1", "poddisruptionbudgets"),
            ("/apis/networking.k8s.io/v1", "networkpolicies"), ("/api/v1", "pods"),
            ("/api/v1", "configmaps"), ("/api/v1", "events"), ("/api/v1", "secrets"),
            ("/api/v1", "services"),
        ):  # fmt: skip
            api.request("DELETE", f"{group}/namespaces/{TENANT}/{plural}", options)
        pods = f"/api/v1/namespaces/{TENANT}/pods"
        until(lambda: not api.request("GET", pods)["items"], 60, "Pods of the tenant are left")

    def _run(self, program: str, *arguments: str) -> str:
        """The output of a program in a Pod of the tenant on a worker."""
        name = f"probe-{time.monotonic_ns()}"
        command = ["python3", "-c", program, *arguments]
        container = {"image": OWN_IMAGE, "command": command}
        self.create("pods", pod(name, container=container, restartPolicy="Never"))
        path = f"/api/v1/namespaces/{TENANT}/pods/{name}"
        ended = ("Succeeded", "Failed")
        until(
            lambda: self.api.request("GET", path).get("status", {}).get("phase") in ended,
            90,
            lambda: f"{name} does not end: {self.api.request('GET', path).get('status')}",
        )
        return self.api.text("GET", f"{path}/log")

    def _may_write(self) -> bool:
        """The API server takes up a binding some time after it stored it."""
        self.api.request("POST", f"/api/v1/namespaces/{TENANT}/pods?dryRun=All", pod("probe"))
        return True


State = dict[str, Any]

SETTLED: Final = 15.0
"""Seconds without a change."""


@dataclass
class Others:
    """What belongs to others than the tenant."""

    cluster: Cluster
    placed: int = 0  # Pods so far

    def settle(self) -> None:
        """Wait until nothing has changed for a while: earlier contents are deleted last."""
        last, since = self.state(), time.monotonic()

        def unchanged() -> bool:
            nonlocal last, since
            time.sleep(2)
            now = self.state()
            if changes(last, now):
                last, since = now, time.monotonic()
            return time.monotonic() - since > SETTLED

        until(unchanged, 180, "others do not settle")

    def state(self) -> State:
        """What is observed of others: conditions, revisions, programs and configurations."""
        return {**self._conditions(), **self._programs(), **self._configurations()}

    def place(self, scheduler: str) -> str:
        """Create a Pod of others, and return the node that a scheduler chooses for it."""
        self.placed += 1
        name = f"web-{self.placed}"
        preference = {
            "matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [self.preferred]}
            ]
        }
        term = {"weight": 100, "preference": preference}
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
        pods = f"/api/v1/namespaces/{OF_OTHERS}/pods"
        self.cluster.api.request(
            "POST", pods, pod(name, schedulerName=scheduler, affinity=affinity)
        )
        path = f"{pods}/{name}"
        try:
            until(
                lambda: self.cluster.api.request("GET", path)["spec"].get("nodeName"),
                20,
                lambda: f"a Pod of others waits: {self.cluster.api.request('GET', path)['status']}",
            )
            return str(self.cluster.api.request("GET", path)["spec"]["nodeName"])
        finally:
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            self.cluster.api.request("DELETE", path, options)

    @property
    def preferred(self) -> str:
        """The node that Pods of others prefer."""
        return self.cluster.sandbox.nodes[-1].name

    def pods_of(self, selector: str) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods?labelSelector="
        quoted = selector.replace("=", "%3D").replace("/", "%2F")
        return list(self.cluster.api.request("GET", path + quoted)["items"])

    def _conditions(self) -> State:
        secondary = self.cluster.api.request("GET", f"{SECONDARY_SCHEDULERS}/{SCHEDULER}")
        state: State = {
            "revision": (self.cluster.latest, self.cluster.current),
            f"content of {SCHEDULER}": secondary["status"].get("configHash"),
        }
        for owner, status in (
            ("KubeScheduler", self.cluster.status), (SCHEDULER, secondary["status"]),
        ):  # fmt: skip
            for condition in status.get("conditions", []):
                key = f"{owner} {condition['type']}"
                state[key] = (condition["status"], condition.get("reason", ""))
        return state

    def _programs(self) -> State:
        """Which images run on which node, of the control plane and of the operator."""
        state: State = {}
        for namespace in ("kube-system", OPERATOR_NAMESPACE):
            pods = self.cluster.api.request("GET", f"/api/v1/namespaces/{namespace}/pods")
            for item in pods["items"]:
                if (item["metadata"].get("labels") or {}).get("app") == names.INSTALLER:
                    continue  # it comes and goes
                containers = item["spec"]["containers"]
                state[f"pod {namespace}/{item['metadata']['name']}"] = (
                    item["spec"].get("nodeName", ""),
                    json.dumps([(c["image"], c.get("command"), c.get("args")) for c in containers]),
                )
        return state

    def _configurations(self) -> State:
        items = self.cluster.api.request("GET", CONFIG_MAPS)["items"]
        return {
            f"configmap {item['metadata']['name']}": json.dumps(item.get("data"), sort_keys=True)
            for item in items
        }


def changes(before: State, after: State, about: Collection[str] = ()) -> State:
    """What differs, except conditions that state what is true of the tenant's own Pods."""
    return {
        key: (before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and key.partition(" ")[2] not in about
    }


def refused(error: ApiError) -> bool:
    """Whether the API server refused a request, for whatever reason it names."""
    return error.code in (400, 401, 403, 404, 409, 422)
