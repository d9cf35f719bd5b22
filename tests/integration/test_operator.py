"""The real operator against a real API server: killed at every write, refused, repaired."""

from __future__ import annotations

import hashlib
import json
import ssl
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster.api import ApiError
from cluster.observe import CLUSTEROPERATOR, KUBESCHEDULER, SCHEDULER, until

from ..expect import condition_of
from ..seeds import SOAK, some_in_presubmit
from .harness import NAMESPACE, NODE
from .operator_world import CONFIG_MAPS, REPOSITORY, World, operator_world

NAME = f"op-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

# The operator owns singletons: these tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with operator_world(NAME, tmp_path_factory.mktemp("operator")) as found:
        yield found


@pytest.fixture(autouse=True)
def _rested(world: World) -> Iterator[None]:
    world.proxy.arm(0, lambda: None, after=False)
    world.proxy.refuse = lambda method, path: 0
    world.node.refusal = lambda pod: ""
    if world.operator.process is None or world.operator.process.poll() is not None:
        world.operator.start()
    world.rest()
    yield
    world.proxy.refuse = lambda method, path: 0


def _complete(world: World) -> None:
    """Revisions up to the latest are there, in order, whole, and say that they are ready.

    Five of them at least; older ones may be pruned.
    """
    maps = world.config_maps()
    prefix = "revision-status-"
    kept = sorted(int(name.removeprefix(prefix)) for name in maps if name.startswith(prefix))
    assert kept == list(range(kept[0], world.latest + 1))
    assert kept[0] <= max(1, world.latest - 4)
    for number in kept:
        status = maps[f"revision-status-{number}"]
        annotations = status["metadata"]["annotations"]
        assert annotations["operator.openshift.io/revision-ready"] == "true", number
        for part in ("config", "kube-scheduler-pod"):
            assert maps[f"{part}-{number}"]["immutable"], (part, number)
    assert f"revision-status-{world.latest + 1}" not in maps


# The operator remembers nothing, so a kill before a write finds what a kill after the one before it
# leaves: a normal run does without the first kind, `make soak` has both.
KILLED = ("after", "before") if SOAK else ("after",)
STRIDE = 4


@pytest.mark.parametrize("first", some_in_presubmit(range(1, STRIDE + 1), 1))
@pytest.mark.parametrize("moment", KILLED)
def test_a_rollout_ends_the_same_when_the_operator_is_killed_at_any_write(
    world: World, moment: str, first: int
) -> None:
    profiles = ("HighNodeUtilization", "NoScoring")
    killed = 0
    for number in range(first, 100, STRIDE):
        profile = next(name for name in profiles if name != world.profile())
        latest = world.latest
        world.proxy.arm(number, world.operator.kill, after=moment == "after")
        world.patch(SCHEDULER, {"profile": profile})
        until(
            partial(
                lambda latest: world.proxy.killed or (world.latest > latest and world.calm()),
                latest=latest,
            ),
            60,
            partial(lambda number: f"write {number}: {world.why()}", number=number),
        )
        if not world.proxy.killed:
            time.sleep(1.0)  # ClusterOperator is written last, after all that calm() looks at
        struck = world.proxy.disarm()
        if struck:
            killed += 1
            world.operator.start()
        until(
            partial(
                lambda profile, latest: (
                    world.profile() == profile and world.calm() and world.current > latest
                ),
                profile=profile,
                latest=latest,
            ),
            60,
            partial(
                lambda number: f"killed at write {number} ({world.proxy.writes}): {world.why()}",
                number=number,
            ),
        )
        assert world.latest == latest + 1, "exactly one revision for one edit"
        _complete(world)
        if not struck:
            break
        # A write that was killed may leave follow-ups; they must all be done now.
        writes = len(world.proxy.writes)
        time.sleep(0.5)
        assert len(world.proxy.writes) == writes or world.calm()
    else:
        pytest.fail("a rollout never ends")
    print(f"killed {killed} times; the writes of one rollout: {world.proxy.writes}")
    assert number > 8, f"a rollout has more writes than {world.proxy.writes}"


@pytest.mark.presubmit
def test_a_settled_operator_writes_nothing(world: World) -> None:
    def has_written_nothing_for_two_seconds() -> bool:
        world.proxy.arm(0, lambda: None, after=False)
        time.sleep(2)
        return not world.proxy.writes

    # Old revisions are deleted after all that calm() looks at.
    until(has_written_nothing_for_two_seconds, 60, lambda: f"{world.proxy.writes} {world.why()}")
    time.sleep(8)
    assert world.proxy.writes == [], world.proxy.bodies


@pytest.mark.parametrize(
    "name",
    ["config", "kube-scheduler-pod", "config-{latest}", "kube-scheduler-pod-{latest}"],
)
def test_a_deleted_configmap_is_made_again(world: World, name: str) -> None:
    name = name.format(latest=world.latest)
    latest, before = world.latest, world.config_maps()[name]
    world.api.request("DELETE", f"{CONFIG_MAPS}/{name}")
    until(lambda: name in world.config_maps(), 60, f"{name} was not made again")
    again = world.config_maps()[name]
    assert again["data"] == before["data"]
    assert again["metadata"]["uid"] != before["metadata"]["uid"]
    time.sleep(1)
    assert world.latest == latest


def test_a_deleted_revision_status_of_the_latest_revision_is_made_again(world: World) -> None:
    latest = world.latest
    name = f"revision-status-{latest}"
    old = world.config_maps()[name]["metadata"]["uid"]
    world.api.request("DELETE", f"{CONFIG_MAPS}/{name}")

    def again() -> bool:
        maps = world.config_maps()
        owners = [
            owner["uid"]
            for part in ("config", "kube-scheduler-pod")
            for owner in maps.get(f"{part}-{latest}", {"metadata": {}})["metadata"].get(
                "ownerReferences", []
            )
        ]
        uid = maps.get(name, {"metadata": {"uid": old}})["metadata"]["uid"]
        return uid != old and owners == [uid, uid]

    until(again, 60, world.why)
    assert world.latest == latest
    until(world.calm, 60, world.why)


@pytest.mark.presubmit
def test_an_edited_configmap_is_corrected(world: World) -> None:
    latest = world.latest
    world.api.request("PATCH", f"{CONFIG_MAPS}/config", {"data": {"config.yaml": "{}"}})
    until(
        lambda: "kind" in world.config_maps()["config"]["data"]["config.yaml"], 60, "not corrected"
    )
    assert world.latest == latest


def test_a_removed_label_is_restored(world: World) -> None:
    label = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
    world.api.request("PATCH", f"{CONFIG_MAPS}/config", label)
    until(
        lambda: "labels" in world.config_maps().get("config", {}).get("metadata", {}),
        60,
        "the label is not back",
    )


def test_other_owned_objects_are_repaired(world: World) -> None:
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/installer-sa"
    world.api.request("DELETE", account)
    until(lambda: bool(world.api.request("GET", account)), 60, "installer-sa is not back")

    world.api.request("DELETE", CLUSTEROPERATOR)
    until(lambda: _available(world) == "True", 60, "ClusterOperator is not back")

    conditions: dict[str, Any] = {"status": {"conditions": []}}
    world.api.request("PATCH", f"{CLUSTEROPERATOR}/status", conditions)
    until(lambda: _available(world) == "True", 60, "ClusterOperator's conditions are not back")

    world.api.request("PATCH", f"{KUBESCHEDULER}/status", conditions)
    until(lambda: world.condition("StaticPodsAvailable")[0] == "True", 60, "no conditions")

    world.patch(KUBESCHEDULER, {"observedConfig": {"arguments": {"nonsense": "x"}}})
    until(
        lambda: not world.api.request("GET", KUBESCHEDULER)["spec"].get("observedConfig"),
        60,
        "observedConfig is not corrected",
    )


def _available(world: World) -> str:
    return condition_of(world.api.request("GET", CLUSTEROPERATOR), "Available")[0]


def test_a_deleted_kubescheduler_is_reported_and_its_successor_takes_over_what_runs(
    world: World,
) -> None:
    latest = world.latest
    world.api.request("DELETE", KUBESCHEDULER)

    def degraded() -> str:
        return condition_of(world.api.request("GET", CLUSTEROPERATOR), "Degraded")[2]

    until(lambda: "does not exist" in degraded(), 60, "the missing KubeScheduler is not reported")
    kubescheduler = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeScheduler",
        "metadata": {"name": "cluster"},
        "spec": {},
    }
    world.api.request("POST", KUBESCHEDULER.removesuffix("/cluster"), kubescheduler)
    until(world.calm, 60, world.why)
    assert (world.latest, world.current) == (latest, latest)


def test_a_missing_scheduler_is_reported_and_nothing_is_touched(world: World) -> None:
    latest = world.latest
    world.api.request("DELETE", SCHEDULER)
    try:
        until(lambda: world.condition("TargetConfigControllerDegraded")[0] == "True", 60, "unsaid")
        message = world.condition("TargetConfigControllerDegraded")[1]
        assert 'Scheduler "cluster" does not exist' in message
        assert world.latest == latest
    finally:
        scheduler = {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Scheduler",
            "metadata": {"name": "cluster"},
            "spec": {},
        }
        world.api.request("POST", SCHEDULER.removesuffix("/cluster"), scheduler)
    until(world.calm, 60, world.why)


@pytest.mark.presubmit
@pytest.mark.parametrize(
    ("path", "spec", "message"),
    [
        (SCHEDULER, {"profile": "Turbo"}, 'Unsupported value: "Turbo"'),
        (KUBESCHEDULER, {"logLevel": "Loud"}, 'Unsupported value: "Loud"'),
        (KUBESCHEDULER, {"operatorLogLevel": 7}, "operatorLogLevel"),
        (KUBESCHEDULER, {"failedRevisionLimit": "many"}, "failedRevisionLimit"),
    ],
)
def test_the_api_server_refuses_what_the_schema_excludes(
    world: World, path: str, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApiError, match=message):
        world.patch(path, spec)


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"arguments": "x"}, "unsupportedConfigOverrides.arguments"),
        ({"arguments": {"v": {"deep": 1}}}, "unsupportedConfigOverrides.arguments.v"),
        ({"parallelism": "many"}, "parallelism"),
        ({"profiles": {}}, "profiles"),
        ({"nonsense": 1}, "nonsense"),
        ({"kind": "Policy"}, "kind"),
    ],
    ids=["arguments", "argument", "type", "list", "field", "kind"],
)
def test_malformed_overrides_are_reported_and_nothing_is_touched(
    world: World, overrides: dict[str, Any], path: str
) -> None:
    latest = world.latest
    world.patch(KUBESCHEDULER, {"unsupportedConfigOverrides": overrides})
    until(lambda: path in world.complains(), 60, f"no finding about {overrides}")
    assert world.latest == latest


@pytest.mark.presubmit
def test_a_refused_configuration_is_reported_with_the_schedulers_message(world: World) -> None:
    current = world.current
    sentence = 'E1121 10:02:03.0 1 run.go:72] "command failed" err="no such thing: \\"Nope\\""'
    world.node.refusal = lambda pod: sentence
    world.patch(SCHEDULER, {"profile": "NoScoring"})
    until(lambda: world.condition("PreflightDegraded")[0] == "True", 60, world.why)
    assert 'no such thing: "Nope"' in world.condition("PreflightDegraded")[1]
    assert world.current == current
    status = world.config_maps()[f"revision-status-{world.latest}"]["metadata"]["annotations"]
    assert status["kube-scheduler-operator.dev/outcome"] == "refused"
    world.node.refusal = lambda pod: ""
    world.patch(SCHEDULER, {"profile": "HighNodeUtilization"})
    until(lambda: world.calm() and world.current > current, 60, world.why)


@pytest.mark.presubmit
def test_missing_rights_are_reported_in_a_condition_until_they_are_granted(world: World) -> None:
    world.proxy.refuse = lambda method, path: (
        403 if method == "POST" and path.endswith("/configmaps") else 0
    )
    world.patch(SCHEDULER, {"profile": "HighNodeUtilization"})
    until(lambda: world.condition("InstallerControllerDegraded")[0] == "True", 60, world.why)
    message = world.condition("InstallerControllerDegraded")[1]
    assert "create" in message
    assert "configmaps" in message
    world.proxy.refuse = lambda method, path: 0
    until(lambda: world.calm() and world.profile() == "HighNodeUtilization", 60, world.why)
    until(lambda: world.condition("InstallerControllerDegraded")[0] == "False", 60, world.why)


def test_the_operator_logs_and_survives_an_expired_token_and_an_unreachable_api(
    world: World,
) -> None:
    latest = world.latest
    world.proxy.refuse = lambda method, path: 401
    until(lambda: "401 Unauthorized" in world.operator.text(), 60, "an expired token is not logged")
    assert "rejects the token" in world.operator.text()
    world.proxy.refuse = lambda method, path: 503
    until(lambda: "503" in world.operator.text(), 60, "an unreachable API is not logged")
    world.proxy.refuse = lambda method, path: 0
    world.patch(SCHEDULER, {"profile": "HighNodeUtilization"})
    until(lambda: world.calm() and world.latest == latest + 1, 90, world.why)


@pytest.mark.presubmit
def test_an_operator_that_loses_its_lease_leads_again_in_the_same_process(world: World) -> None:
    process, lost = world.operator.process, world.operator.text().count("lost leadership")
    world.proxy.refuse = lambda method, path: 503 if "/leases" in path else 0
    until(lambda: world.operator.text().count("lost leadership") > lost, 60, world.why)
    seen = len(world.proxy.writes)
    world.patch(SCHEDULER, {"profile": "NoScoring"})
    time.sleep(5)
    assert world.proxy.writes[seen:] == [], "it does not lead"
    world.proxy.refuse = lambda method, path: 0
    until(lambda: world.calm() and world.profile() == "NoScoring", 90, world.why)
    assert process is not None
    assert (world.operator.process, process.poll()) == (process, None)


@pytest.mark.presubmit
def test_a_clean_stop_frees_the_lease_at_once(world: World) -> None:
    assert world.operator.stop() == 0
    lease = (
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kube-scheduler-operator-lock"
    )
    assert not world.api.request("GET", lease)["spec"].get("holderIdentity")


def test_the_operator_log_level_follows_its_field(world: World) -> None:
    world.patch(KUBESCHEDULER, {"operatorLogLevel": "Debug"})
    events = f"/api/v1/namespaces/{NAMESPACE}/events"

    def reported() -> bool:
        items = world.api.request("GET", events)["items"]
        return any(item["reason"] == "OperatorLogLevelChange" for item in items)

    until(reported, 60, "no event about the log level")
    world.patch(KUBESCHEDULER, {"operatorLogLevel": "Normal"})


def test_the_operators_port_follows_the_tls_profile_of_kubescheduler(world: World) -> None:
    """As the schedulers do, and without a restart."""
    tls12, process = ssl.TLSVersion.TLSv1_2, world.operator.process
    assert world.operator.speaks(tls12)
    for profile, speaks in (({"type": "Modern", "modern": {}}, False), (None, True)):
        world.patch(KUBESCHEDULER, {"tlsSecurityProfile": profile})
        until(
            partial(lambda speaks: world.operator.speaks(tls12) is speaks, speaks=speaks),
            60,
            str(profile),
        )
        assert world.operator.speaks(ssl.TLSVersion.TLSv1_3)
    assert process is not None
    assert process.poll() is None
    world.rest()


@pytest.mark.presubmit
def test_the_api_shows_one_moving_node_at_a_time(world: World) -> None:
    entries = world.status["nodeStatuses"]
    assert [entry["nodeName"] for entry in entries] == [NODE]
    assert entries[0]["nodeUID"]


@pytest.mark.presubmit
def test_scheduler_profiles_are_accepted_rejected_and_deleted_and_their_kind_is_optional(
    world: World,
) -> None:
    good = {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}}
    bad = {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}}
    profiles = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerprofiles"
    body = {"apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "SchedulerProfile"}

    def served() -> list[str]:
        name = f"config-{world.wanted}"  # read first: its copies are older than its number
        config = json.loads(world.config_maps()[name]["data"]["config.yaml"])
        return [profile["schedulerName"] for profile in config.get("profiles", ())]

    def accepted(name: str) -> str:
        return condition_of(world.api.request("GET", f"{profiles}/{name}"), "Accepted")[1]

    try:
        world.api.request("POST", profiles, {**body, "metadata": {"name": "team"}, "spec": good})
        until(lambda: "team" in served() and world.calm(), 60, world.why)
        assert served() == ["default-scheduler", "team"]
        assert accepted("team") == "Accepted"
        latest = world.latest
        world.patch(f"{profiles}/team", bad)
        until(lambda: accepted("team") == "LastAcceptedInUse", 60, world.why)
        until(lambda: world.condition("SchedulerProfilesDegraded")[0] == "True", 60, world.why)
        assert (
            "SchedulerProfile/team spec.plugins.score"
            in (world.condition("SchedulerProfilesDegraded")[1])
        )
        world.proxy.arm(0, lambda: None, after=False)
        time.sleep(3.0)
        # A slow machine deletes what is left of old revisions only now.
        writes = [one for one in world.proxy.writes if not one.startswith("DELETE ")]
        assert (writes, world.latest) == ([], latest)
    finally:
        world.api.request("DELETE", f"{profiles}/team")
    until(lambda: served() == [] and world.calm(), 60, world.why)

    # The kind is not installed any more: an operator that starts now works without it.
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = "schedulerprofiles.kube-scheduler-operator.dev"
    definition = world.api.request("GET", f"{definitions}/{name}")
    world.operator.kill()
    world.api.request("DELETE", f"{definitions}/{name}")
    try:
        world.operator.start()
        until(lambda: "KindNotServed" in json.dumps(world.status), 60, world.why)
        world.patch(SCHEDULER, {"profile": "NoScoring"})
        until(lambda: world.profile() == "NoScoring" and world.calm(), 60, world.why)
    finally:
        metadata = {key: definition["metadata"][key] for key in ("name", "labels")}
        kind = {key: definition[key] for key in ("apiVersion", "kind", "spec")}
        world.api.request("POST", definitions, {**kind, "metadata": metadata})
    until(lambda: "KindNotServed" not in json.dumps(world.status), 60, world.why)
    world.api.request("POST", profiles, {**body, "metadata": {"name": "team"}, "spec": good})
    until(lambda: "team" in served() and world.calm(), 60, world.why)
    world.api.request("DELETE", f"{profiles}/team")
    until(lambda: "team" not in served() and world.calm(), 60, world.why)


LARGEST = 2**63 - 1
MIRROR = f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{NODE}"


@pytest.mark.parametrize("number", [99, LARGEST])
def test_a_label_of_the_mirror_pod_makes_no_revision(world: World, number: int) -> None:
    latest = world.latest
    label = {"metadata": {"labels": {"revision": str(number)}}}
    world.api.request("PATCH", MIRROR, label)
    world.patch(SCHEDULER, {"profile": "NoScoring"})
    until(lambda: world.profile() == "NoScoring" and world.calm(), 60, world.why)
    assert world.latest == latest + 1
    assert not world.condition("InstallerControllerDegraded")[1], "nothing was refused"


@pytest.mark.presubmit
@pytest.mark.parametrize("number", [99_999, LARGEST])
def test_a_forged_revision_status_makes_no_revision(world: World, number: int) -> None:
    latest, name = world.latest, f"revision-status-{number}"
    metadata = {
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": "kube-scheduler-operator"},
        "annotations": {"operator.openshift.io/revision-ready": "true"},
    }
    world.api.request("POST", CONFIG_MAPS, {"metadata": metadata, "data": {"hash": "x"}})
    try:
        until(lambda: name in world.condition("RevisionControllerDegraded")[1], 60, world.why)
        world.patch(SCHEDULER, {"profile": "NoScoring"})
        until(lambda: world.profile() == "NoScoring" and world.calm(), 60, world.why)
        assert world.latest == latest + 1
    finally:
        world.api.request("DELETE", f"{CONFIG_MAPS}/{name}")
    until(lambda: world.condition("RevisionControllerDegraded")[0] == "False", 60, world.why)


def test_the_api_server_refuses_a_revision_number_that_cannot_be(world: World) -> None:
    for status in (
        {"latestAvailableRevision": LARGEST},
        {"latestAvailableRevision": 2**31},
        {"nodeStatuses": [{"nodeName": NODE, "currentRevision": 2**31}]},
    ):
        with pytest.raises(ApiError) as refusal:
            world.api.request("PATCH", f"{KUBESCHEDULER}/status", {"status": status})
        assert refusal.value.code == 422
