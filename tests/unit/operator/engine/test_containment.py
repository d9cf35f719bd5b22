"""Whatever one object contains is that object's condition and no other object's delay."""

from __future__ import annotations

import base64
import json
import random
import re
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.images import EVERY_IMAGE
from kube_scheduler_operator.base.limits import DEPTH
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.errors import ApiError, ApiRequest, from_response
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Delete, Plan

from ....odd_json import nested
from ....odd_objects import FREE_FIELDS, FreeField, odd_spec, unlimited
from ....seeds import SEED, number
from ...conftest import CertificateFiles
from ...fake_cluster import FakeCluster

HISTORIES = number("KSO_ODD_OBJECTS", 30, soak=5_000)


class Cluster(FakeCluster):
    """One that can have objects of any depth; plans are executed and must be JSON.

    Attributes:
        refused: names of objects whose status the API server refuses.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()
        self.connection.faults.append(self._refuse)

    def reconcile(self) -> Plan:
        return reconcile(replace(self.snapshot(), write_errors=self.executor.write_errors))

    def _refuse(self, verb: str, ref: ObjectRef, subresource: str | None) -> ApiError | None:
        if ref.name not in self.refused or not subresource:
            return None
        status = {"kind": "Status", "message": "etcdserver: request is too large"}
        return from_response(ApiRequest(verb, ref.path), 500, status)

    def step(self) -> Plan:
        plan = self.reconcile()
        for actions in (plan.actions, plan.reports, *plan.write_sets.values()):
            for action in actions:
                if not isinstance(action, Delete):
                    # No API server returns an infinite number, and the client refuses to write it.
                    own = action.obj["metadata"]["name"] in ("odd", "cluster")
                    json.dumps(action.obj, allow_nan=own).encode()
        self.execute(plan)
        return plan

    def condition(self, resource: Resource, name: str, type_: str) -> Any:
        conditions = self.get(resource, name).get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == type_), {})

    def configuration(self) -> Any:
        config_map = self.get(CONFIG_MAPS, names.CONFIG, KUBEADM.target_namespace)
        return json.loads(config_map["data"][names.CONFIG_KEY])


@pytest.fixture(scope="module")
def settled() -> Cluster:
    cluster = Cluster()
    cluster.profile("good", percentageOfNodesToScore=10)
    cluster.profile("good-mine", "mine", percentageOfNodesToScore=10)
    cluster.secondary("mine")
    cluster.extender("good-url", url="http://10.0.0.7", verbs={"filter": "filter"})
    cluster.settle()
    return cluster


@pytest.fixture
def cluster(settled: Cluster) -> Cluster:
    """A cluster with one valid object of each kind."""
    cluster = Cluster()
    cluster.begin_as(settled)
    return cluster


def edit_others(cluster: Cluster, number: int) -> None:
    cluster.put(SCHEDULERS, "cluster", profile="HighNodeUtilization")
    cluster.profile("good", percentageOfNodesToScore=20 + number % 50)
    cluster.profile("good-mine", "mine", percentageOfNodesToScore=20 + number % 50)


def expect_others(cluster: Cluster, number: int, first: Plan) -> None:
    """All edits have arrived, and the first reconcile has accepted them."""
    written = {action.obj["metadata"]["name"] for action in first.reports}
    assert {"good", "good-mine"} <= written, "the next reconcile did not report the others"
    for name in ("good", "good-mine"):
        assert cluster.condition(SCHEDULER_PROFILES, name, names.ACCEPTED)["status"] == "True"
    for _ in range(4):
        cluster.step()
    spec = cluster.get(KUBE_SCHEDULERS, "cluster")["spec"]
    status = cluster.condition(KUBE_SCHEDULERS, "cluster", names.OVERRIDES_DEGRADED)["status"]
    if status == "False" and "profiles" in (spec.get("unsupportedConfigOverrides") or {}):
        return  # valid overrides may replace all profiles
    config = cluster.configuration()
    good = next(one for one in config["profiles"] if one["schedulerName"] == "good")
    assert good["percentageOfNodesToScore"] == 20 + number % 50
    default = next(o for o in config["profiles"] if o["schedulerName"] == "default-scheduler")
    assert "NodeResourcesFit" in json.dumps(default.get("pluginConfig")), "HighNodeUtilization"


def put(cluster: Cluster, field: FreeField, spec: Any) -> tuple[Resource, str]:
    name = "cluster" if field.resource == KUBE_SCHEDULERS else "odd"
    if field.resource == KUBE_SCHEDULERS:
        observed = cluster.get(KUBE_SCHEDULERS, "cluster")["spec"].get("observedConfig")
        spec = {**spec, **({"observedConfig": observed} if observed else {})}
    cluster.put(field.resource, name, **spec)
    return field.resource, name


BROKEN = {
    SCHEDULER_PROFILES: (names.ACCEPTED, "False"),
    SCHEDULER_EXTENDERS: (names.ACCEPTED, "False"),
    SECONDARY_SCHEDULERS: (names.DEGRADED, "True"),
    KUBE_SCHEDULERS: (names.OVERRIDES_DEGRADED, "True"),
    LOAD_POLICIES: (names.ACCEPTED, "False"),
}


@pytest.mark.parametrize("field", FREE_FIELDS, ids=lambda f: f"{f.resource.kind}:{f.path}")
@pytest.mark.parametrize("levels", [DEPTH + 1, 300, 600, 1_500, 5_000])
def test_a_value_that_is_nested_too_deep_is_the_condition_of_its_object(
    cluster: Cluster, field: FreeField, levels: int
) -> None:
    deep = unlimited(field.text(nested(levels)).replace('"@"', "1"))
    spec = {"unsupportedConfigOverrides": deep} if field.spec == "@" else deep
    if field.path in ("spec.sidecars[]", "spec.volumes[]"):
        item = spec["sidecars" if "sidecars" in spec else "volumes"][0]
        item |= {"name": "x", "image": "i"}
    resource, name = put(cluster, field, spec)
    edit_others(cluster, 1)
    first = cluster.step()
    assert first.failures == ()
    expect_others(cluster, 1, first)
    type_, status = BROKEN[resource]
    condition = cluster.condition(resource, name, type_)
    assert condition["status"] == status
    assert f"nested in more than {DEPTH} levels" in condition["message"]


@pytest.mark.timeout(600 if HISTORIES <= 1_000 else 0)
def test_any_value_in_any_free_field_delays_no_other_object(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(SEED)
    print(f"KSO_SEED={SEED}")
    for index in range(HISTORIES):
        odd = Cluster()
        odd.begin_as(cluster)
        field = rng.choice(FREE_FIELDS)
        text = odd_spec(rng, field)
        about = f"KSO_SEED={SEED}, value {index} in {field.resource.kind} {field.path}"
        try:
            put(odd, field, unlimited(text))
            edit_others(odd, index)
            first = odd.step()
            assert first.failures == ()
            expect_others(odd, index, first)
        except Exception as error:
            raise AssertionError(f"{about}: {text[:300]}") from error
    defects = [r for r in caplog.records if "Defect in the operator" in r.message]
    assert [r.getMessage() for r in defects] == []


# --- sizes ----------------------------------------------------------------------------------------


def large(size: int) -> Any:
    return [{"name": "Custom", "args": {"text": "x" * size}}]


def message(cluster: Cluster, name: str) -> str:
    return str(cluster.condition(SCHEDULER_PROFILES, name, names.ACCEPTED).get("message", ""))


def test_of_profiles_that_exceed_a_config_map_the_newest_is_refused(cluster: Cluster) -> None:
    cluster.profile("a", pluginConfig=large(400_000))
    cluster.profile("b", pluginConfig=large(400_000))
    cluster.settle()
    assert cluster.condition(SCHEDULER_PROFILES, "b", names.ACCEPTED)["status"] == "True"
    cluster.profile("c", pluginConfig=large(400_000))  # of the same age, and the last by name
    edit_others(cluster, 3)
    first = cluster.step()
    expect_others(cluster, 3, first)
    condition = cluster.condition(SCHEDULER_PROFILES, "c", names.ACCEPTED)
    assert (condition["status"], condition["reason"]) == ("False", "NotInUse")
    total = int(message(cluster, "c").partition("have ")[2].partition(" bytes")[0])
    assert 1_200_000 < total < 1_202_000
    assert "of 1048576" in message(cluster, "c")
    for name in ("a", "b"):
        assert cluster.condition(SCHEDULER_PROFILES, name, names.ACCEPTED)["status"] == "True"


def test_an_edit_that_makes_profiles_too_large_keeps_what_was_accepted(cluster: Cluster) -> None:
    for name in "abc":
        cluster.profile(name, pluginConfig=large(300_000))
    cluster.settle()
    cluster.profile("a", pluginConfig=large(500_000))  # the oldest by name
    edit_others(cluster, 4)
    first = cluster.step()
    expect_others(cluster, 4, first)
    condition = cluster.condition(SCHEDULER_PROFILES, "a", names.ACCEPTED)
    assert (condition["status"], condition["reason"]) == ("False", "LastAcceptedInUse")
    for name in "bc":
        assert cluster.condition(SCHEDULER_PROFILES, name, names.ACCEPTED)["status"] == "True"
    texts = {
        one["schedulerName"]: one["pluginConfig"][-1]["args"]["text"]
        for one in cluster.configuration()["profiles"]
        if one["schedulerName"] in "abc"
    }
    assert {name: len(text) for name, text in texts.items()} == dict.fromkeys("abc", 300_000)


def test_room_that_becomes_free_is_used_at_once(cluster: Cluster) -> None:
    for name in "abc":
        cluster.profile(name, pluginConfig=large(400_000))
    cluster.settle()
    assert cluster.condition(SCHEDULER_PROFILES, "c", names.ACCEPTED)["status"] == "False"
    cluster.remove(SCHEDULER_PROFILES, "a")
    cluster.settle()
    assert cluster.condition(SCHEDULER_PROFILES, "c", names.ACCEPTED)["status"] == "True"


def test_the_profiles_of_a_secondary_scheduler_have_the_same_limit(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        cluster.profile(name, "mine", pluginConfig=large(400_000))
    edit_others(cluster, 5)
    first = cluster.step()
    expect_others(cluster, 5, first)
    states = {
        name: cluster.condition(SCHEDULER_PROFILES, name, names.ACCEPTED)["status"]
        for name in "abc"
    }
    assert states == {"a": "True", "b": "True", "c": "False"}
    assert cluster.condition(SECONDARY_SCHEDULERS, "mine", names.DEGRADED)["status"] == "False"


def test_a_secondary_scheduler_whose_content_is_too_large_is_degraded(cluster: Cluster) -> None:
    cluster.allowed_images = EVERY_IMAGE
    args = {"text": "x" * 300_000}
    cluster.secondary("mine", profiles=[{"pluginConfig": [{"name": "C", "args": args}]}])
    sidecar = {"name": "s", "image": "i", "env": [{"name": "A", "value": "y" * 200_000}]}
    spec = cluster.get(SECONDARY_SCHEDULERS, "mine")["spec"]
    cluster.put(SECONDARY_SCHEDULERS, "mine", **{**spec, "image": "x/y", "sidecars": [sidecar]})
    for name in "abc":
        agent = {"policies": [{"name": "safe-overload", "arguments": {"x": "y" * 300_000}}]}
        cluster.extender(name, scheduler="mine", agent={**agent, "image": "x/z"})
    edit_others(cluster, 6)
    cluster.step()
    for _ in range(6):
        cluster.step()
    condition = cluster.condition(SECONDARY_SCHEDULERS, "mine", names.DEGRADED)
    assert condition["reason"] == "TooLarge"
    assert "the limit is 1048576" in condition["message"]
    for config_map in cluster.list(CONFIG_MAPS):
        assert sum(map(len, config_map.get("data", {}).values())) <= 1_048_576


def test_extenders_have_a_limit_of_their_own(
    cluster: Cluster, first_certificate: CertificateFiles
) -> None:
    pem = first_certificate.certificate.read_bytes()
    tls = {"caData": base64.b64encode(pem * (90_000 // len(pem))).decode()}
    for name in ("a", "b", "c"):
        cluster.extender(name, url="https://10.0.0.8", verbs={"filter": "f"}, tls=tls)
    edit_others(cluster, 7)
    first = cluster.step()
    expect_others(cluster, 7, first)
    states = {name: cluster.condition(SCHEDULER_EXTENDERS, name, names.ACCEPTED) for name in "abc"}
    assert [one["status"] for one in states.values()] == ["True", "True", "False"]
    assert "the limit is 262144" in states["c"]["message"]


def test_a_spec_above_its_limit_is_refused(cluster: Cluster) -> None:
    cluster.profile("odd", pluginConfig=large(600_000))
    edit_others(cluster, 8)
    first = cluster.step()
    expect_others(cluster, 8, first)
    assert "the limit is 524288" in message(cluster, "odd")


def test_overrides_with_thousands_of_keys_leave_room_in_the_status(cluster: Cluster) -> None:
    wide = {f"key-{index}": {"x" * 40: index} for index in range(5_000)}
    cluster.put(KUBE_SCHEDULERS, "cluster", unsupportedConfigOverrides=wide)
    for _ in range(3):
        cluster.step()
    status = cluster.get(KUBE_SCHEDULERS, "cluster")["status"]
    assert all(len(one.get("message", "")) < 8_300 for one in status["conditions"])
    text = cluster.condition(KUBE_SCHEDULERS, "cluster", names.OVERRIDES_DEGRADED)["message"]
    assert text.endswith(" more characters)")


def test_the_status_of_a_scheduler_with_hundreds_of_profiles_can_be_written(
    cluster: Cluster,
) -> None:
    for index in range(400):
        cluster.profile(f"team-{index}", "mine", percentageOfNodesToScore=10)
    for index in range(300):
        url = f"http://10.0.{index // 250}.{index % 250}"
        cluster.extender(f"url-{index}", scheduler="mine", url=url, verbs={"filter": "f"})
    for _ in range(4):
        cluster.step()
    status = cluster.get(SECONDARY_SCHEDULERS, "mine")["status"]
    assert len(status["profiles"]) == 402
    assert len(json.dumps(status)) < 400_000
    assert len(status["extenders"]) == 256, "as the schema allows"


def test_a_status_that_the_api_server_refuses_is_reported_by_kubescheduler(
    cluster: Cluster,
) -> None:
    cluster.refused.add("odd")
    cluster.profile("odd", percentageOfNodesToScore=15)
    edit_others(cluster, 10)
    first = cluster.step()
    expect_others(cluster, 10, first)
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.SCHEDULER_PROFILES_DEGRADED)
    assert (condition["status"], condition["reason"]) == ("True", "StatusRefused")
    assert condition["message"].startswith("SchedulerProfile/odd status: ")
    cluster.refused.clear()
    cluster.settle()
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.SCHEDULER_PROFILES_DEGRADED)
    assert condition["status"] == "False"


# --- overrides ------------------------------------------------------------------------------------


def test_while_overrides_have_an_error_those_of_the_last_revision_stay_in_use(
    cluster: Cluster,
) -> None:
    cluster.put(KUBE_SCHEDULERS, "cluster", unsupportedConfigOverrides={"parallelism": 7})
    cluster.settle()
    assert cluster.configuration()["parallelism"] == 7
    observed = cluster.get(KUBE_SCHEDULERS, "cluster")["spec"]["observedConfig"]
    wrong = {"parallelism": 0, "arguments": {"v": "3"}}
    cluster.put(
        KUBE_SCHEDULERS, "cluster", unsupportedConfigOverrides=wrong, observedConfig=observed
    )
    edit_others(cluster, 9)
    first = cluster.step()
    expect_others(cluster, 9, first)
    assert cluster.configuration()["parallelism"] == 7
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.OVERRIDES_DEGRADED)
    assert condition["status"] == "True"
    assert "spec.unsupportedConfigOverrides.parallelism: " in condition["message"]
    assert re.search(r"\(those of revision \d stay in use\)", condition["message"])
    cluster.settle()
    status = cluster.get(CONFIG_MAPS, "revision-status-3", KUBEADM.target_namespace)
    inputs = json.loads(status["data"]["inputs"])["kubescheduler"]
    assert inputs["unsupportedConfigOverrides"] == {"parallelism": 7}, "what undo would restore"
    cluster.put(
        KUBE_SCHEDULERS,
        "cluster",
        unsupportedConfigOverrides={"parallelism": 8},
        observedConfig=cluster.get(KUBE_SCHEDULERS, "cluster")["spec"]["observedConfig"],
    )
    cluster.settle()
    assert cluster.configuration()["parallelism"] == 8


def test_a_revision_that_has_begun_is_completed_while_overrides_have_an_error() -> None:
    fresh = Cluster()
    while "create ConfigMap revision-status-1" not in fresh.writes:
        fresh.step()
    status = fresh.get(CONFIG_MAPS, "revision-status-1", KUBEADM.target_namespace)
    assert status["metadata"]["annotations"][names.REVISION_READY_ANNOTATION] == "false"
    fresh.put(KUBE_SCHEDULERS, "cluster", unsupportedConfigOverrides={"parallelism": 0})
    fresh.settle()
    status = fresh.get(CONFIG_MAPS, "revision-status-1", KUBEADM.target_namespace)
    assert status["metadata"]["annotations"][names.REVISION_READY_ANNOTATION] == "true"


# --- fields with an error ---------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A field of KubeScheduler or Scheduler."""

    name: str
    good: Any  # an accepted value
    bad: Any  # one with an error
    path: str  # the path of the error
    shown: str  # what the configuration and the flags contain with `good`, and only then
    resource: Resource = KUBE_SCHEDULERS  # the kind
    condition: str = names.TARGET_CONFIG_DEGRADED  # the condition that reports the error


GATE = "AllAlpha"
FIELDS = [
    Field("featureGates", {GATE: True}, {"AllAlfa": True}, "spec.featureGates.AllAlfa", GATE),
    Field("featureGates", {GATE: True}, {GATE: False, "X": 1}, "spec.featureGates.X", f"{GATE}=tr"),
    Field("featureGates", {GATE: True}, [GATE], "spec.featureGates", GATE),
    Field(
        "tlsSecurityProfile",
        {"type": "Modern"},
        {"type": "Moderne"},
        "spec.tlsSecurityProfile.type",
        "--tls-min-version=VersionTLS13",
    ),
    Field(
        "tlsSecurityProfile",
        {"type": "Modern"},
        {"type": "Custom", "custom": {"minTLSVersion": "TLS13", "ciphers": []}},
        "spec.tlsSecurityProfile.custom.minTLSVersion",
        "--tls-min-version=VersionTLS13",
    ),
    Field("logLevel", "Trace", "Loud", "spec.logLevel", "-v=6"),
    Field("bindAddress", "10.0.0.9", "10.0.0.999", "spec.bindAddress", "=10.0.0.9"),
    Field("forceRedeploymentReason", "again", "x" * 5_000, "spec.forceRedeploymentReason", "again"),
    Field("forceRedeploymentReason", "again", {"a": 1}, "spec.forceRedeploymentReason", "again"),
    Field(
        "unsupportedConfigOverrides",
        {"parallelism": 7},
        {"parallelism": 0},
        "spec.unsupportedConfigOverrides.parallelism",
        '"parallelism":7',
        condition=names.OVERRIDES_DEGRADED,
    ),
    Field(
        "unsupportedConfigOverrides",
        {"arguments": {"feature-gates": f"{GATE}=true"}},
        {"arguments": {"feature-gates": "AllAlfa=true"}},
        "spec.unsupportedConfigOverrides.arguments.feature-gates",
        GATE,
        condition=names.OVERRIDES_DEGRADED,
    ),
    Field(
        "profile", "NoScoring", "NoScorin", "spec.profile", '"disabled":[{"name":"*"}]', SCHEDULERS
    ),
    Field(
        "profileCustomizations",
        {"dynamicResourceAllocation": ""},
        {"dynamicResourceAllocation": "On"},
        "spec.profileCustomizations.dynamicResourceAllocation",
        "",
        SCHEDULERS,
    ),
]


def edit(cluster: Cluster, resource: Resource, **fields: Any) -> None:
    """Change these fields; None removes one. The others stay, as with `kubectl patch`."""
    spec = {**cluster.get(resource, "cluster")["spec"], **fields}
    cluster.put(resource, "cluster", **{k: v for k, v in spec.items() if v is not None})


def effective(cluster: Cluster) -> str:
    """The configuration and the Pod of the target, as text."""
    data = [
        cluster.get(CONFIG_MAPS, name, KUBEADM.target_namespace)["data"]
        for name in (names.CONFIG, names.POD)
    ]
    return "".join(text for one in data for text in one.values())


def newest_inputs(cluster: Cluster) -> Any:
    """What users had set for the newest revision."""
    found = [
        one
        for one in cluster.list(CONFIG_MAPS)
        if one["metadata"]["name"].startswith(names.REVISION_STATUS)
    ]
    newest = max(found, key=lambda one: int(one["metadata"]["name"].rpartition("-")[2]))
    return json.loads(newest["data"]["inputs"])


def expect_error(cluster: Cluster, field: Field, note: str) -> None:
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", field.condition)
    assert condition["status"] == "True"
    assert field.path in condition["message"]
    assert note in condition["message"]


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.path)
def test_a_field_with_an_error_is_its_condition_and_the_accepted_value_stays(field: Field) -> None:
    cluster = Cluster()
    cluster.profile("good", percentageOfNodesToScore=10)
    cluster.profile("good-mine", "mine", percentageOfNodesToScore=10)
    cluster.secondary("mine")
    edit(cluster, field.resource, **{field.name: field.good})
    cluster.settle()
    assert field.shown in effective(cluster)
    recorded = newest_inputs(cluster)[
        "scheduler" if field.resource == SCHEDULERS else "kubescheduler"
    ]
    edit(cluster, field.resource, **{field.name: field.bad})
    edit(cluster, KUBE_SCHEDULERS, **({"logLevel": "Debug"} if field.name != "logLevel" else {}))
    cluster.profile("good", percentageOfNodesToScore=29)
    cluster.profile("good-mine", "mine", percentageOfNodesToScore=29)
    if field.resource != SCHEDULERS:
        cluster.put(SCHEDULERS, "cluster", profile="HighNodeUtilization")
    first = cluster.step()
    if field.resource != SCHEDULERS:
        expect_others(cluster, 9, first)
    cluster.settle()
    assert '"percentageOfNodesToScore":29' in effective(cluster)
    assert field.shown in effective(cluster)
    if field.name != "logLevel":
        assert "-v=4" in effective(cluster)
    expect_error(cluster, field, "stay")
    after = newest_inputs(cluster)["scheduler" if field.resource == SCHEDULERS else "kubescheduler"]
    assert after[field.name] == recorded[field.name] == field.good, "what undo would restore"
    edit(cluster, field.resource, **{field.name: None})
    cluster.settle()
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", field.condition)
    assert condition["status"] == "False"
    assert not field.shown or field.shown not in effective(cluster)


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.path)
def test_the_first_revision_is_made_without_a_field_that_has_an_error(field: Field) -> None:
    cluster, plain = Cluster(), Cluster()
    plain.settle()
    edit(cluster, field.resource, **{field.name: field.bad})
    for _ in range(12):
        cluster.step()
    assert effective(cluster) == effective(plain)
    expect_error(cluster, field, "(not used: it stays unset, as in revision 1)")
    edit(cluster, field.resource, **{field.name: field.good})
    cluster.settle()
    assert field.shown in effective(cluster)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("managementState", "unmanaged", "(Managed is in effect)"),
        ("operatorLogLevel", "debug", 'did you mean "Debug"? (Normal is in effect)'),
        ("failedRevisionLimit", "many", "not a whole number"),
        ("succeededRevisionLimit", [3], "not a whole number"),
    ],
)
def test_a_setting_of_the_operator_with_an_error_is_its_condition(
    cluster: Cluster, name: str, value: Any, shown: str
) -> None:
    edit(cluster, KUBE_SCHEDULERS, **{name: value})
    edit_profile(cluster, 30)
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.TARGET_CONFIG_DEGRADED)
    assert condition["status"] == "True"
    assert condition["message"].startswith(f"spec.{name}: ")
    assert shown in condition["message"]


def edit_profile(cluster: Cluster, percentage: int) -> None:
    """Edit a SchedulerProfile and expect that the edit takes effect."""
    cluster.profile("good", percentageOfNodesToScore=percentage)
    cluster.settle()
    assert f'"percentageOfNodesToScore":{percentage}' in effective(cluster)


def test_flags_in_observed_config_that_have_an_error_are_replaced(cluster: Cluster) -> None:
    good = {"arguments": {"permit-port-sharing": ["true"]}}
    edit(cluster, KUBE_SCHEDULERS, observedConfig=good)
    cluster.settle()
    assert "--permit-port-sharing=true" in effective(cluster)
    edit(cluster, KUBE_SCHEDULERS, observedConfig={"arguments": {"permit-port": ["1"]}})
    edit_profile(cluster, 31)
    assert "--permit-port-sharing=true" in effective(cluster)
    observed = cluster.get(KUBE_SCHEDULERS, "cluster")["spec"]["observedConfig"]
    assert observed["arguments"] == good["arguments"]
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.CONFIG_OBSERVATION_DEGRADED)
    assert condition["status"] == "False", "the error is gone"


def test_without_a_scheduler_object_its_last_accepted_fields_stay(cluster: Cluster) -> None:
    cluster.put(SCHEDULERS, "cluster", profile="NoScoring")
    cluster.settle()
    cluster.remove(SCHEDULERS, "cluster")
    edit_profile(cluster, 32)
    assert '"disabled":[{"name":"*"}]' in effective(cluster)
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.TARGET_CONFIG_DEGRADED)
    assert condition["reason"] == "SchedulerNotFound"


def test_settings_that_are_valid_only_together_stay_together(cluster: Cluster) -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    arguments = {"name": "VolumeBinding", "args": {"shape": shape}}
    overrides = {"profiles": [{"pluginConfig": [arguments]}]}
    gates = {"StorageCapacityScoring": True}
    edit(cluster, KUBE_SCHEDULERS, featureGates=gates, unsupportedConfigOverrides=overrides)
    cluster.settle()
    edit(cluster, KUBE_SCHEDULERS, featureGates={})
    edit_profile(cluster, 33)
    assert "StorageCapacityScoring=true" in effective(cluster)
    assert '"shape"' in effective(cluster)
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.OVERRIDES_DEGRADED)
    assert re.search(r"\(all settings of revision \d stay in use\)", condition["message"])


def test_another_kube_scheduler_waits_for_settings_that_it_does_not_have(cluster: Cluster) -> None:
    edit(cluster, KUBE_SCHEDULERS, featureGates={"SchedulerAsyncPreemption": True})
    cluster.settle()
    old = cluster.image
    cluster.image = "registry.k8s.io/kube-scheduler:v1.30.14"  # without that gate
    edit_profile(cluster, 34)
    assert old in effective(cluster)
    condition = cluster.condition(KUBE_SCHEDULERS, "cluster", names.TARGET_CONFIG_DEGRADED)
    assert condition["status"] == "True"
    assert "spec.featureGates.SchedulerAsyncPreemption" in condition["message"]
    assert f"; the schedulers stay at {old} until this is corrected)" in condition["message"]
    edit(cluster, KUBE_SCHEDULERS, featureGates=None)
    cluster.settle()
    assert cluster.image in effective(cluster)


def test_a_withdrawn_edit_does_not_come_back(cluster: Cluster) -> None:
    edit(cluster, KUBE_SCHEDULERS, logLevel="Debug")
    cluster.settle()
    edit(cluster, KUBE_SCHEDULERS, logLevel="Trace")
    cluster.settle()
    mark = {names.OUTCOME_ANNOTATION: names.OUTCOME_WITHDRAWN}
    namespace = KUBEADM.target_namespace
    cluster.change(CONFIG_MAPS, "revision-status-3", namespace, annotations=mark)
    edit(cluster, KUBE_SCHEDULERS, logLevel="Loud")
    edit_profile(cluster, 35)
    assert "-v=4" in effective(cluster)


def test_without_a_record_of_what_was_accepted_nothing_is_replaced(cluster: Cluster) -> None:
    edit(cluster, KUBE_SCHEDULERS, logLevel="Debug")
    cluster.settle()
    before = effective(cluster)
    status = cluster.get(CONFIG_MAPS, "revision-status-2", KUBEADM.target_namespace)
    data = {"hash": status["data"]["hash"]}
    cluster.change(CONFIG_MAPS, "revision-status-2", KUBEADM.target_namespace, data=data)
    edit(cluster, KUBE_SCHEDULERS, logLevel="Loud")
    cluster.profile("good", percentageOfNodesToScore=36)
    for _ in range(6):
        cluster.step()
    assert effective(cluster) == before


def test_nodes_with_revisions_that_the_api_has_lost_do_not_lose_settings(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(cluster, KUBE_SCHEDULERS, logLevel="Debug")
    cluster.settle()
    before = effective(cluster)
    found = [o["metadata"]["name"] for o in cluster.list(CONFIG_MAPS)]
    for name in found:
        if name.startswith(names.REVISION_STATUS):
            cluster.remove(CONFIG_MAPS, name, KUBEADM.target_namespace)
    # The mirror Pod of a scheduler that the operator has installed.
    pod = {"metadata": {"name": "kube-scheduler-a", "labels": {names.REVISION_LABEL: "2"}}}
    pod["spec"] = {"nodeName": "a"}
    monkeypatch.setattr(
        cluster,
        "snapshot",
        lambda: replace(type(cluster).snapshot(cluster), operand_pods={"a": pod}),
    )
    edit(cluster, KUBE_SCHEDULERS, logLevel="Loud")
    for _ in range(6):
        cluster.step()
    assert effective(cluster) == before


# --- more overrides -------------------------------------------------------------------------------


def test_a_spec_that_is_not_known_completely_is_not_written(cluster: Cluster) -> None:
    deep = unlimited(f'{{"a":{nested(600)}}}')
    observed = cluster.get(KUBE_SCHEDULERS, "cluster")["spec"]["observedConfig"]
    cluster.put(
        KUBE_SCHEDULERS, "cluster", unsupportedConfigOverrides=deep, observedConfig=observed
    )
    cluster.profile("good", percentageOfNodesToScore=30)
    specs = []
    for _ in range(4):
        plan = cluster.step()
        specs += [
            one
            for one in plan.actions
            if one.resource == KUBE_SCHEDULERS and not getattr(one, "subresource", None)
        ]
    assert specs == []
    good = [o for o in cluster.configuration()["profiles"] if o["schedulerName"] == "good"]
    assert good[0]["percentageOfNodesToScore"] == 30
    cluster.put(KUBE_SCHEDULERS, "cluster", observedConfig=observed)
    cluster.settle()
    observed = cluster.get(KUBE_SCHEDULERS, "cluster")["spec"]["observedConfig"]
    good = [o for o in observed["profiles"] if o["schedulerName"] == "good"]
    assert good[0]["percentageOfNodesToScore"] == 30
