"""What a real API server makes of the kind SecondaryScheduler, and what kubectl shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .conftest import ApiServer, RefusedError
from .test_crds import SINCE, Kind

pytestmark = pytest.mark.presubmit

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC: dict[str, Any] = {"namespace": "kube-system"}


@pytest.fixture
def secondaries(api_server: ApiServer) -> Iterator[Kind]:
    kind = Kind(api_server, "SecondaryScheduler")
    yield kind
    kind.remove()


def test_a_namespace_is_enough(secondaries: Kind) -> None:
    name = secondaries.create(SPEC)
    assert secondaries.get(name)["spec"] == {"namespace": "kube-system", "replicas": 2}


def test_everything_at_once(secondaries: Kind) -> None:
    spec = {
        **SPEC,
        "image": "registry.example/scheduler:v1",
        "command": ["/bin/kube-scheduler"],
        "replicas": 3,
        "logLevel": "Debug",
        "config": {
            "parallelism": 8,
            "percentageOfNodesToScore": 50,
            "podInitialBackoffSeconds": 2,
            "podMaxBackoffSeconds": 20,
            "delayCacheUntilActive": True,
            "clientConnection": {"qps": 20.5, "burst": 40},
            "leaderElection": {"leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "4s"},
            "extenders": [{"urlPrefix": "http://localhost:8888", "filterVerb": "filter"}],
        },
        "profiles": [
            {
                "schedulerName": "a",
                "plugins": {"score": {"disabled": [{"name": "*"}]}},
                "pluginConfig": [
                    {"name": "NodeAffinity", "args": {"addedAffinity": {"any": ["thing"]}}}
                ],
            },
        ],
        "featureGates": {"AllBeta": False},
        "extraArguments": {"profiling": "false"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"any": "thing"}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
        "resources": {"requests": {"cpu": 1, "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
        "priorityClassName": "system-node-critical",
        "imagePullSecrets": [{"name": "pull"}],
        "sidecars": [{"name": "extender", "image": "extender:1", "ports": [{"containerPort": 1}]}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "forceRedeploymentReason": "again",
    }
    assert secondaries.get(secondaries.create(spec))["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({}, "spec.namespace", id="no namespace"),
        pytest.param({"replicas": 0}, "spec.replicas", id="no replicas"),
        pytest.param({"namespace": "Kube_System"}, "spec.namespace", id="no namespace's name"),
        pytest.param({"logLevel": "Loud"}, "spec.logLevel", id="log level"),
        pytest.param(
            {"config": {"leaderElection": {"resourceName": "kube-scheduler"}}},
            "resourceName",
            id="another Lease",
        ),
        pytest.param(
            {"config": {"clientConnection": {"kubeconfig": "/x"}}}, "kubeconfig", id="kubeconfig"
        ),
        pytest.param({"config": {"profiles": []}}, "profiles", id="profiles in config"),
        pytest.param({"extraArguments": {"--v": "3"}}, "without dashes", id="dashes"),
        pytest.param(
            {"extraArguments": {"leader-elect": "false"}},
            "use spec.config.leaderElection",
            id="election",
        ),
        pytest.param({"extraArguments": {"config": "/x"}}, "are the operator's", id="own flags"),
        pytest.param(
            {"sidecars": [{"name": "preflight", "image": "x"}]}, "use another name", id="sidecar"
        ),
        pytest.param({"volumes": [{"name": "config"}]}, "use another name", id="volume"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(
    secondaries: Kind, spec: dict[str, Any], message: str
) -> None:
    whole = {**SPEC, **spec} if spec else {}
    with pytest.raises(RefusedError, match=message):
        secondaries.create(whole)


@pytest.mark.parametrize(
    "name",
    [
        "kube-scheduler", "default-scheduler", "kube-scheduler-operator",
        "kube-scheduler-operator-lock", "installer-sa", "with.dots", "1-digit-first", "a" * 41,
    ],
)  # fmt: skip
@pytest.mark.presubmit
def test_names_that_are_taken_or_would_not_do_are_refused(secondaries: Kind, name: str) -> None:
    with pytest.raises(RefusedError, match=r"metadata\.name"):
        secondaries.create(SPEC, name)


def test_the_namespace_stays(secondaries: Kind) -> None:
    name = secondaries.create(SPEC)
    obj = secondaries.get(name)
    obj["spec"]["namespace"] = "default"
    with pytest.raises(RefusedError, match="delete the SecondaryScheduler and create it again"):
        secondaries.server.request("PUT", f"{secondaries.path}/{name}", obj)


def test_kubectl_shows_how_it_does(secondaries: Kind) -> None:
    name = secondaries.create(SPEC)
    conditions = [
        {"type": type_, "status": status, "lastTransitionTime": SINCE}
        for type_, status in (
            ("Available", "True"),
            ("Progressing", "False"),
            ("Degraded", "False"),
        )
    ]
    plugins = {"score": [{"name": "ImageLocality", "weight": 1}]}
    status = {
        "conditions": conditions,
        "replicas": 2,
        "readyReplicas": 2,
        "selector": "a=b",
        "configHash": "abc",
        "image": "registry.example/scheduler:v1",
        "running": [
            {"configHash": "abc", "image": "registry.example/scheduler:v1", "readyReplicas": 1},
            {"configHash": "old", "image": "registry.example/scheduler:v0", "readyReplicas": 1},
        ],
        "leaseHolder": "x-1_y",
        "history": [{"hash": "abc", "outcome": "installed", "time": SINCE}],
        "profiles": [{"schedulerName": "x", "plugins": plugins}],
    }
    secondaries.set_status(name, status)
    assert secondaries.get(name)["status"] == status
    row = secondaries.row(name, "-o", "wide")
    assert {key: value for key, value in row.items() if key not in ("AGE", "MESSAGE")} == {
        "NAME": name,
        "NAMESPACE": "kube-system",
        "REPLICAS": "2",
        "PODS": "2",
        "READY": "",
        "REASON": "",
        "AVAILABLE": "True",
        "PROGRESSING": "False",
        "DEGRADED": "False",
        "CONFIG": "abc",
        "LEADER": "x-1_y",
        "IMAGE": "registry.example/scheduler:v1",
        "ASSIGNED": "",
    }


@pytest.mark.presubmit
def test_it_can_be_scaled(secondaries: Kind) -> None:
    name = secondaries.create(SPEC)
    resource = "secondaryschedulers.kube-scheduler-operator.dev"
    secondaries.server.kubectl("scale", resource, name, "--replicas=4")
    assert secondaries.get(name)["spec"]["replicas"] == 4
