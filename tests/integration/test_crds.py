"""What a real API server makes of the CustomResourceDefinitions, and what kubectl shows."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import RefusedError

pytestmark = pytest.mark.presubmit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import ApiServer

GROUPS = {
    "Scheduler": "config.openshift.io/v1",
    "ClusterOperator": "config.openshift.io/v1",
    "KubeScheduler": "operator.openshift.io/v1",
    "SchedulerProfile": "kube-scheduler-operator.dev/v1alpha1",
    "SecondaryScheduler": "kube-scheduler-operator.dev/v1alpha1",
    "LoadPolicy": "kube-scheduler-operator.dev/v1alpha1",
    "OperatorSettings": "kube-scheduler-operator.dev/v1alpha1",
}
SINCE = "2026-01-01T00:00:00Z"


class Kind:
    """Objects of one kind, removed after the test."""

    def __init__(self, server: ApiServer, kind: str) -> None:
        self.server, self.kind = server, kind
        ending = {"y": "ies", "s": "s"}.get(kind[-1], f"{kind[-1]}s")
        self.plural = kind.lower()[:-1] + ending
        self.path = f"/apis/{GROUPS[kind]}/{self.plural}"
        self.created: list[str] = []

    def create(self, spec: dict[str, Any] | None, name: str = "", **more: Any) -> str:
        name = name or f"test-{uuid.uuid4().hex[:8]}"
        obj: dict[str, Any] = {
            "apiVersion": GROUPS[self.kind],
            "kind": self.kind,
            "metadata": {"name": name},
            **more,
        }
        if spec is not None:
            obj["spec"] = spec
        self.server.request("POST", f"{self.path}?fieldValidation=Strict", obj)
        self.created.append(name)
        return name

    def get(self, name: str) -> dict[str, Any]:
        return self.server.request("GET", f"{self.path}/{name}")

    def set_status(self, name: str, status: dict[str, Any]) -> None:
        """PUT the whole status, so that what is not mentioned is gone."""
        obj = self.get(name) | {"status": status}
        self.server.request("PUT", f"{self.path}/{name}/status", obj)

    def row(self, name: str, *options: str) -> dict[str, str]:
        """The line of `kubectl get`, by column."""
        resource = f"{self.plural}.{GROUPS[self.kind].partition('/')[0]}"
        header, line = self.server.kubectl("get", resource, name, *options).splitlines()
        starts = [
            i for i, c in enumerate(header) if c != " " and (i == 0 or header[i - 2 : i] == "  ")
        ]
        bounds = list(zip(starts, [*starts[1:], None], strict=True))
        return {header[a:b].strip(): line[a:b].strip() for a, b in bounds}

    def remove(self) -> None:
        for name in self.created:
            self.server.request("DELETE", f"{self.path}/{name}")


@pytest.fixture
def schedulers(api_server: ApiServer) -> Iterator[Kind]:
    kind = Kind(api_server, "Scheduler")
    yield kind
    kind.remove()


@pytest.fixture
def kube_schedulers(api_server: ApiServer) -> Iterator[Kind]:
    kind = Kind(api_server, "KubeScheduler")
    yield kind
    kind.remove()


@pytest.fixture
def cluster_operators(api_server: ApiServer) -> Iterator[Kind]:
    kind = Kind(api_server, "ClusterOperator")
    yield kind
    kind.remove()


# --- spec -------------------------------------------------------------------------------------


def test_empty_spec_of_a_kube_scheduler_gets_its_defaults_and_nothing_else(
    kube_schedulers: Kind,
) -> None:
    name = kube_schedulers.create({})
    assert kube_schedulers.get(name)["spec"] == {
        "managementState": "Managed",
        "logLevel": "Normal",
        "operatorLogLevel": "Normal",
    }


def test_empty_spec_of_a_scheduler_stays_empty(schedulers: Kind) -> None:
    assert schedulers.get(schedulers.create({}))["spec"] == {}


CUSTOM = {"minTLSVersion": "VersionTLS12", "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"]}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"managementState": state}, id=state)
        for state in ("Managed", "Force", "Unmanaged", "Removed")
    ]
    + [
        pytest.param({"logLevel": "", "operatorLogLevel": "TraceAll"}, id="log-levels"),
        pytest.param({"unsupportedConfigOverrides": None, "observedConfig": None}, id="null"),
        pytest.param({"failedRevisionLimit": -1, "succeededRevisionLimit": 0}, id="limits"),
        pytest.param({"bindAddress": "0.0.0.0"}, id="bind-address"),
        pytest.param({"featureGates": {"AllAlpha": False, "AllBeta": True}}, id="feature-gates"),
        pytest.param({"tlsSecurityProfile": {"type": "Modern", "modern": {}}}, id="tls"),
        pytest.param({"tlsSecurityProfile": {"type": "Custom", "custom": CUSTOM}}, id="custom-tls"),
    ],
)
def test_kube_scheduler_accepts(kube_schedulers: Kind, spec: dict[str, Any]) -> None:
    actual = kube_schedulers.get(kube_schedulers.create(spec))["spec"]
    assert {k: actual.get(k) for k in spec} == spec


def test_free_form_configuration_is_kept_whole(kube_schedulers: Kind) -> None:
    spec = {
        "unsupportedConfigOverrides": {"arguments": {"v": ["9"]}, "x": {"y": [1, None, {"z": 1}]}},
        "observedConfig": {"servingInfo": {"cipherSuites": ["a"]}},
    }
    actual = kube_schedulers.get(kube_schedulers.create(spec))["spec"]
    defaults = {"logLevel": "Normal", "managementState": "Managed", "operatorLogLevel": "Normal"}
    assert actual == spec | defaults


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"managementState": "Paused"}, "spec.managementState", id="state"),
        pytest.param({"logLevel": "Loud"}, "spec.logLevel", id="log-level"),
        pytest.param({"operatorLogLevel": "Loud"}, "spec.operatorLogLevel", id="operator-level"),
        pytest.param({"failedRevisionLimit": "5"}, "spec.failedRevisionLimit", id="not-a-number"),
        pytest.param({"observedConfig": "text"}, "spec.observedConfig", id="not-an-object"),
        pytest.param({"featureGates": {"A": "true"}}, "spec.featureGates", id="not-a-boolean"),
        pytest.param({"tlsSecurityProfile": {}}, "type", id="tls-without-type"),
        pytest.param({"tlsSecurityProfile": {"type": "New"}}, "spec.tlsSecurityProfile", id="tls"),
        pytest.param({"tlsSecurityProfile": {"type": "Custom"}}, "type Custom needs", id="custom"),
        pytest.param(
            {"tlsSecurityProfile": {"type": "Old", "custom": CUSTOM}},
            "custom is only for type Custom",
            id="custom-for-another-type",
        ),
    ],
)
def test_kube_scheduler_refuses(kube_schedulers: Kind, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        kube_schedulers.create(spec)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"profile": p}, id=p or "empty")
        for p in ("", "LowNodeUtilization", "HighNodeUtilization", "NoScoring")
    ]
    + [
        pytest.param(
            {
                "policy": {"name": "p"},
                "profileCustomizations": {"dynamicResourceAllocation": "Enabled"},
                "defaultNodeSelector": "type=user-node,region=east",
                "mastersSchedulable": True,
            },
            id="everything-else",
        )
    ],
)
def test_scheduler_accepts(schedulers: Kind, spec: dict[str, Any]) -> None:
    assert schedulers.get(schedulers.create(spec))["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"profile": "Fast"}, "spec.profile", id="profile"),
        pytest.param({"policy": {}}, "spec.policy.name", id="policy-without-name"),
        pytest.param(
            {"profileCustomizations": {"dynamicResourceAllocation": "Maybe"}},
            "dynamicResourceAllocation",
            id="customization",
        ),
        pytest.param({"mastersSchedulable": "yes"}, "spec.mastersSchedulable", id="not-a-bool"),
        pytest.param({"profil": "NoScoring"}, 'unknown field "spec.profil"', id="misspelled"),
    ],
)
def test_scheduler_refuses(schedulers: Kind, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        schedulers.create(spec)


@pytest.mark.parametrize("kind", GROUPS)
def test_spec_is_required(api_server: ApiServer, kind: str) -> None:
    with pytest.raises(RefusedError, match="spec: Required value"):
        Kind(api_server, kind).create(None)


def test_status_is_a_subresource(kube_schedulers: Kind) -> None:
    name = kube_schedulers.create({}, status={"latestAvailableRevision": 3})
    assert "status" not in kube_schedulers.get(name)


# --- status: the rules of revisions -----------------------------------------------------------


def node(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"nodeName": name, **fields}


@pytest.fixture
def installed(kube_schedulers: Kind) -> str:
    """A KubeScheduler whose node "a" runs revision 3 of 4 and whose node "b" has none yet."""
    name = kube_schedulers.create({})
    kube_schedulers.set_status(name, {"nodeStatuses": [node("a"), node("b")]})
    kube_schedulers.set_status(
        name,
        {
            "latestAvailableRevision": 4,
            "nodeStatuses": [node("a", currentRevision=3), node("b")],
        },
    )
    return name


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"latestAvailableRevision": 4}, id="nodes-gone"),
        pytest.param(
            {"latestAvailableRevision": 5, "nodeStatuses": [node("a", currentRevision=4)]},
            id="both-increase",
        ),
        pytest.param(
            {"nodeStatuses": [node("a", currentRevision=3, targetRevision=4), node("b")]},
            id="one-target",
        ),
        pytest.param(
            {
                "nodeStatuses": [
                    node("a", currentRevision=3, targetRevision=0),
                    node("b", targetRevision=4),
                ]
            },
            id="zero-is-no-target",
        ),
        pytest.param(
            {
                "nodeStatuses": [
                    node(
                        "a",
                        currentRevision=3,
                        nodeUID="3f0a3cf0-6f0e-4a57-9d3a-0b1c2d3e4f50",
                        lastFailedRevision=4,
                        lastFailedTime=SINCE,
                        lastFailedReason="OperandFailedFallback",
                        lastFailedCount=1,
                        lastFallbackCount=1,
                        lastFailedRevisionErrors=["it crashed"],
                    )
                ]
            },
            id="every-field",
        ),
    ],
)
def test_status_accepts(kube_schedulers: Kind, installed: str, status: dict[str, Any]) -> None:
    kube_schedulers.set_status(installed, status)
    assert kube_schedulers.get(installed)["status"] == status


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param({"latestAvailableRevision": 3}, "must only increase", id="latest-decreases"),
        pytest.param(
            {"nodeStatuses": [node("a", currentRevision=2)]},
            "must only increase",
            id="current-decreases",
        ),
        pytest.param({"nodeStatuses": [node("a")]}, "cannot be unset once set", id="unset"),
        pytest.param(
            {"nodeStatuses": [node("a", currentRevision=3), node("c", currentRevision=4)]},
            "cannot be set when the node status is created",
            id="current-at-creation",
        ),
        pytest.param(
            {"nodeStatuses": [node("a", currentRevision=3), node("c", targetRevision=4)]},
            "cannot be set when the node status is created",
            id="target-at-creation",
        ),
        pytest.param(
            {
                "nodeStatuses": [
                    node("a", currentRevision=3, targetRevision=4),
                    node("b", targetRevision=4),
                ]
            },
            "no more than 1 node status may have a nonzero targetRevision",
            id="two-targets",
        ),
        pytest.param(
            {"nodeStatuses": [node("a", currentRevision=3), node("a", currentRevision=3)]},
            "Duplicate value",
            id="same-node-twice",
        ),
        pytest.param(
            {"nodeStatuses": [node("a", currentRevision=3, nodeUID="not-a-uid")]},
            "nodeUID",
            id="uid",
        ),
        pytest.param(
            {"conditions": [{"type": "-X", "status": "True", "lastTransitionTime": SINCE}]},
            r"status.conditions\[0\].type",
            id="condition-type",
        ),
        pytest.param(
            {"conditions": [{"type": "X", "status": "Yes", "lastTransitionTime": SINCE}]},
            r"status.conditions\[0\].status",
            id="condition-status",
        ),
        pytest.param(
            {"conditions": [{"type": "X", "status": "True"}]},
            "lastTransitionTime: Required value",
            id="condition-without-time",
        ),
    ],
)
def test_status_refuses(
    kube_schedulers: Kind, installed: str, status: dict[str, Any], message: str
) -> None:
    before = kube_schedulers.get(installed)["status"]
    with pytest.raises(RefusedError, match=message):
        kube_schedulers.set_status(installed, status)
    assert kube_schedulers.get(installed)["status"] == before


def test_many_nodes_fit_into_the_rules_cost_limit(kube_schedulers: Kind) -> None:
    name = kube_schedulers.create({})
    nodes = [f"control-plane-{i}" for i in range(50)]
    kube_schedulers.set_status(name, {"nodeStatuses": [node(n) for n in nodes]})
    full = [node(n, currentRevision=1) for n in nodes]
    kube_schedulers.set_status(name, {"nodeStatuses": full})
    assert kube_schedulers.get(name)["status"]["nodeStatuses"] == full


# --- what kubectl shows -----------------------------------------------------------------------


def condition(type_: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "message": message, "lastTransitionTime": SINCE}


def test_kubectl_get_scheduler(schedulers: Kind) -> None:
    row = schedulers.row(schedulers.create({"profile": "NoScoring", "policy": {"name": "old"}}))
    assert row["PROFILE"] == "NoScoring"
    assert row["POLICY"] == "old"
    assert list(row) == ["NAME", "PROFILE", "POLICY", "AGE"]


@pytest.mark.presubmit
def test_kubectl_get_kube_scheduler(kube_schedulers: Kind) -> None:
    name = kube_schedulers.create({"logLevel": "Debug"})
    status = {
        "latestAvailableRevision": 7,
        "conditions": [
            condition("StaticPodsAvailable", "True"),
            condition("NodeInstallerProgressing", "False", "3 nodes are at revision 7"),
            condition("PreflightDegraded", "True"),
            condition("NodeInstallerDegraded", "False"),
            condition("StaticPodsDegraded", "Unknown"),
        ],
    }
    kube_schedulers.set_status(name, status)
    row = kube_schedulers.row(name)
    age = row.pop("AGE")
    assert age.endswith("s")
    assert row == {
        "NAME": name,
        "MANAGEMENT": "Managed",
        "LATEST REVISION": "7",
        "AVAILABLE": "True",
        "PROGRESSING": "False",
        "PREFLIGHT DEGRADED": "True",
        "INSTALLER DEGRADED": "False",
        "PODS DEGRADED": "Unknown",
    }
    wide = kube_schedulers.row(name, "-o", "wide")
    assert (wide["LOG LEVEL"], wide["NODES"]) == ("Debug", "3 nodes are at revision 7")


def test_kubectl_get_cluster_operator(cluster_operators: Kind, api_server: ApiServer) -> None:
    name = cluster_operators.create({})
    status = {
        "conditions": [
            condition("Available", "True"),
            condition("Degraded", "True", "NodeInstallerDegraded: no space left"),
            condition("Progressing", "False"),
        ],
        "versions": [
            {"name": "kube-scheduler", "version": "v1.35.4"},
            {"name": "operator", "version": "0.1.0"},
        ],
        "relatedObjects": [{"group": "", "resource": "namespaces", "name": "kube-system"}],
        "extension": {"anything": [1]},
    }
    cluster_operators.set_status(name, status)
    assert cluster_operators.get(name)["status"] == status
    row = cluster_operators.row(name)
    assert row.pop("SINCE")
    assert row == {
        "NAME": name,
        "VERSION": "0.1.0",
        "AVAILABLE": "True",
        "PROGRESSING": "False",
        "DEGRADED": "True",
        "MESSAGE": "NodeInstallerDegraded: no space left",
    }
    assert name in api_server.kubectl("get", "co", "-o", "name")


def test_category_lists_kube_schedulers(kube_schedulers: Kind, api_server: ApiServer) -> None:
    name = kube_schedulers.create({})
    assert name in api_server.kubectl("get", "coreoperators", "-o", "name")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("kubescheduler.spec.logLevel", ["-v=2", "-v=10", "Normal", "new revision"]),
        ("kubescheduler.spec.operatorLogLevel", ["-v=8", "at once"]),
        ("kubescheduler.spec.managementState", ["Unmanaged", "Removed"]),
        ("kubescheduler.status.nodeStatuses.currentRevision", ["never decreases"]),
        ("scheduler.spec.profile", ["MostAllocated", "NoScoring"]),
    ],
)
def test_kubectl_explain_is_worth_reading(
    api_server: ApiServer, field: str, message: list[str]
) -> None:
    kind = field.partition(".")[0]
    version = GROUPS["KubeScheduler" if kind == "kubescheduler" else "Scheduler"]
    text = " ".join(api_server.kubectl("explain", field, f"--api-version={version}").split())
    assert [phrase for phrase in message if phrase not in text] == []


def test_definitions_have_no_structural_complaints(api_server: ApiServer) -> None:
    # Other tests make and delete definitions of their own meanwhile.
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    selector = "labelSelector=app.kubernetes.io%2Fpart-of%3Dkube-scheduler-operator"
    listed = api_server.request("GET", f"{path}?{selector}")
    assert {crd["spec"]["names"]["kind"] for crd in listed["items"]} == {
        *GROUPS,
        "SchedulerExtender",
    }
    for crd in listed["items"]:
        conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        assert conditions["NamesAccepted"] == conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"
