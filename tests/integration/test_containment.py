"""Objects with any content in a real API server: no other object waits for them.

The operator is the ServiceAccount that deploy/kubeadm makes. Batches of odd objects are written,
and then a Scheduler and a SchedulerProfile are edited, which must arrive within DELAY.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.api import ApiError
from cluster.observe import KUBESCHEDULER, SCHEDULER
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.json_text import read_json
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, Resource

from ..odd_json import nested
from ..odd_objects import FREE_FIELDS, FreeField, odd_spec
from ..seeds import SEED, number
from .harness import PlayedNode
from .played_cluster import CORE, GROUP, PlayedCluster, brought_up

VALUES = number("KSO_ODD_OBJECTS", 200, soak=200)
BATCH = 20
DELAY = 15.0
"""Seconds until an edit of another object has arrived, also on a machine that others use."""

PROFILES = f"{GROUP}/schedulerprofiles"
MERGED = "?fieldValidation=Ignore"

pytestmark = pytest.mark.timeout(900, func_only=True)


class World(PlayedCluster):
    """The cluster of these tests."""

    kind, objects, label = "SchedulerProfile", PROFILES, "none"
    makes = ()

    def condition_at(self, path: str, type_: str) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self.api.text("GET", path))
        conditions = found.get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == type_), {})

    def configuration(self) -> dict[str, Any]:
        try:
            config_map = self.api.request("GET", f"{CORE}/configmaps/config")
        except ApiError:
            return {}
        found: dict[str, Any] = json.loads(config_map["data"]["config.yaml"])
        return found

    def has_revision(self) -> bool:
        status = self.api.request("GET", KUBESCHEDULER).get("status", {})
        return bool(status.get("latestAvailableRevision"))

    def edit(self, number: int) -> float:
        """Edit a Scheduler and a SchedulerProfile; returns when both have arrived, in seconds.

        How long the operator takes to start again is not part of it: then another edit is measured.
        """
        process = self.operator.process
        profile = ("HighNodeUtilization", "LowNodeUtilization")[number % 2]
        share = 10 + number % 80
        began = time.monotonic()
        self.api.request("PATCH", SCHEDULER, {"spec": {"profile": profile}})
        spec = {"percentageOfNodesToScore": share}
        self.api.request("PATCH", f"{PROFILES}/good", {"spec": spec})

        def arrived() -> bool:
            profiles = self.configuration().get("profiles") or ()
            good = [one for one in profiles if one["schedulerName"] == "good"]
            first = [one for one in profiles if one["schedulerName"] == "default-scheduler"]
            high = "NodeResourcesBalancedAllocation" in json.dumps(first)
            return [one.get("percentageOfNodesToScore") for one in good] == [share] and high == (
                profile == "HighNodeUtilization"
            )

        self.wait(arrived, 60, f"edit {number} has not arrived")
        if self.operator.process is process:
            return time.monotonic() - began
        return self.edit(number + 41)  # neither value is that of `number`


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "cn", tmp_path_factory.mktemp("operator")) as found:
        node = PlayedNode(found.sandbox)
        node.start()
        try:
            metadata = {"name": "good"}
            found.api.request("POST", PROFILES, {**of(PROFILES), "metadata": metadata, "spec": {}})
            found.start()
            found.edit(0)
            found.wait(found.has_revision)
            yield found
        finally:
            node.stop()


def of(path: str) -> dict[str, str]:
    kinds = {
        "schedulerprofiles": "SchedulerProfile",
        "schedulerextenders": "SchedulerExtender",
        "secondaryschedulers": "SecondaryScheduler",
    }
    version = path.removeprefix("/apis/").rpartition("/")[0]
    return {"apiVersion": version, "kind": kinds[path.rpartition("/")[2]]}


def path_of(resource: Resource) -> str:
    return f"{GROUP}/{resource.plural}"


def write(world: World, field: FreeField, name: str, spec: str) -> str:
    """Write an odd object: the path if the API server takes it, otherwise its refusal."""
    try:
        if field.resource == KUBE_SCHEDULERS:
            world.api.text("PATCH", KUBESCHEDULER + MERGED, f'{{"spec":{spec}}}')
            return KUBESCHEDULER
        path = path_of(field.resource)
        head = json.dumps({**of(path), "metadata": {"name": name}})
        world.api.text("POST", path + MERGED, f'{head[:-1]},"spec":{spec}}}')
    except ApiError as error:
        if error.code >= 500 and "too large" not in str(error):
            raise
        return ""
    return f"{path}/{name}"


WITHOUT_HTTP2 = {"ciphers": ["ECDHE-RSA-CHACHA20-POLY1305"], "minTLSVersion": "VersionTLS12"}
FIELDS = [
    {"featureGates": {"NoSuchGate": True}},
    {"featureGates": {"SchedulerQueueingHints": False}},  # locked
    {"tlsSecurityProfile": {"type": "Custom", "custom": WITHOUT_HTTP2}},
    {"bindAddress": "10.0.0.999"},
    {"unsupportedConfigOverrides": {"parallelism": 0}},
    {"unsupportedConfigOverrides": {"arguments": {"no-such-flag": "1"}}},
    {"observedConfig": {"arguments": {"no-such-flag": ["1"]}}},
]


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_a_field_with_an_error_delays_no_edit_of_another_object(
    world: World, fields: dict[str, Any]
) -> None:
    (name,) = fields
    world.api.text("PATCH", KUBESCHEDULER, {"spec": fields})
    try:
        assert world.edit(FIELDS.index(fields) + 10) < DELAY
        overrides = name == "unsupportedConfigOverrides"
        type_ = names.OVERRIDES_DEGRADED if overrides else names.TARGET_CONFIG_DEGRADED

        def reported() -> bool:
            condition = world.condition_at(KUBESCHEDULER, type_)
            if name == "observedConfig":  # the operator owns it and has written it again
                return bool(condition["status"] == "False")
            message = str(condition.get("message"))  # a False condition has no message
            return bool(condition["status"] == "True") and message.startswith(f"spec.{name}")

        # The status is written after the configuration.
        world.wait(reported, 60, lambda: world.condition_at(KUBESCHEDULER, type_))
    finally:
        world.api.text("PATCH", KUBESCHEDULER, {"spec": {name: None}})


SETTINGS = f"{GROUP}/operatorsettings"


def test_operator_settings_with_an_error_delay_no_edit_and_keep_what_was_accepted(
    world: World,
) -> None:
    own = f"{SETTINGS}/{names.CLUSTER}"

    def environment() -> list[str]:
        config_map = world.api.request("GET", f"{CORE}/configmaps/{names.POD}")
        pod = json.loads(config_map["data"][names.POD_KEY])
        return [one["name"] for one in pod["spec"]["containers"][0].get("env", ())]

    def write(variable: str, value: str) -> None:
        spec = {"pods": {"env": [{"name": variable, "value": value}]}}
        world.api.request("PATCH", own, {"spec": spec})

    def arrives(*variables: str) -> None:
        world.wait(lambda: environment() == [*variables], 60, environment)

    body = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "OperatorSettings",
        "metadata": {"name": names.CLUSTER},
        "spec": {"pods": {"env": [{"name": "API_TOKEN", "value": "hunter2"}]}},
    }  # fmt: skip
    latest = number_of_revisions(world)
    world.api.request("POST", SETTINGS, body)
    try:
        assert world.edit(30) < DELAY
        reported(world, own)
        assert world.condition_at(own, "Accepted")["reason"] == "NotInUse"
        assert "spec.pods.env[0].value" in world.condition_at(own, "Accepted")["message"]
        assert "hunter2" not in json.dumps(world.api.request("GET", KUBESCHEDULER))
        write("GOGC", "80")
        arrives("GOGC")
        world.wait(lambda: world.condition_at(own, "Accepted")["status"] == "True")
        world.wait(lambda: number_of_revisions(world) > latest, 60, "no revision")
        write("API_TOKEN", "hunter2")
        assert world.edit(31) < DELAY
        world.wait(
            lambda: world.condition_at(own, "Accepted")["reason"] == "LastAcceptedInUse",
            60,
            lambda: world.condition_at(own, "Accepted"),
        )
        assert environment() == ["GOGC"]
        condition = names.OPERATOR_SETTINGS_DEGRADED
        world.wait(  # KubeScheduler gets its conditions after the object
            lambda: world.condition_at(KUBESCHEDULER, condition)["status"] == "True",
            60,
            lambda: world.condition_at(KUBESCHEDULER, condition),
        )
    finally:
        world.api.request("DELETE", own)
    arrives()


def number_of_revisions(world: World) -> int:
    status = world.api.request("GET", KUBESCHEDULER).get("status", {})
    return int(status.get("latestAvailableRevision", 0))


def clear(world: World, paths: list[str]) -> None:
    world.api.text("PATCH", KUBESCHEDULER, {"spec": {"unsupportedConfigOverrides": None}})
    for path in paths:
        if path != KUBESCHEDULER:
            world.api.text("DELETE", path)


def test_no_value_in_a_free_field_delays_an_edit_of_another_object(world: World) -> None:
    print(f"KSO_SEED={SEED}")
    rng = random.Random(SEED)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for batch in range(0, VALUES, BATCH):
        written = []
        for index in range(batch, batch + BATCH):
            fields = FREE_FIELDS if index == batch else FREE_FIELDS[:-2]
            field = FREE_FIELDS[-1] if index == batch else rng.choice(fields)
            spec = odd_spec(rng, field)
            if field is FREE_FIELDS[-1]:  # valid overrides may replace all profiles
                spec = spec.replace('{"profiles":', '{"leaderElection":', 1)
            path = write(world, field, f"odd-{index}", spec)
            outcomes["taken" if path else "refused"] += 1
            written += [path] if path else []
        slowest = max(slowest, world.edit(batch + 1))
        for path in written:
            if path != KUBESCHEDULER:
                reported(world, path)
        clear(world, written)
    print(f"{dict(outcomes)}, slowest edit {slowest:.2f} s")
    assert outcomes["taken"] > VALUES / 2
    assert slowest < DELAY
    assert "Defect in the operator" not in world.operator.text()


def reported(world: World, path: str) -> None:
    """Wait until the object has a condition of its own."""

    def has_condition() -> bool:
        return bool(
            world.condition_at(path, "Accepted").get("status")
            or world.condition_at(path, "Degraded").get("status")
        )

    world.wait(has_condition, 60, f"{path} has no condition")


@pytest.mark.parametrize("levels", [600, 1_500, 5_000])
def test_an_operator_that_starts_reads_lists_with_objects_of_any_depth(
    world: World, levels: int
) -> None:
    written = []
    for index, field in enumerate(FREE_FIELDS[:-2]):
        text = field.text(nested(levels))
        if field.path in ("spec.sidecars[]", "spec.volumes[]"):
            text = text.replace('{"a":', '{"name":"x","image":"i","a":', 1)
        written += [write(world, field, f"deep-{index}", text)]
    taken = [path for path in written if path]
    assert len(taken) > len(written) / 2
    world.operator.kill()
    world.start()
    assert world.edit(levels) < DELAY
    for path in taken:
        reported(world, path)
        found = world.condition_at(path, "Accepted") or world.condition_at(path, "Degraded")
        assert "nested in more than 64 levels" in found["message"]
    clear(world, taken)


def test_of_profiles_that_exceed_a_config_map_only_the_newest_waits(world: World) -> None:
    paths = []
    for name in ("large-a", "large-b", "large-c"):
        args = {"name": "Custom", "args": {"text": "x" * 400_000}}
        body = {**of(PROFILES), "metadata": {"name": name}, "spec": {"pluginConfig": [args]}}
        world.api.request("POST", PROFILES, body)
        paths.append(f"{PROFILES}/{name}")
        reported(world, paths[-1])
    assert world.edit(91) < DELAY
    found = [world.condition_at(path, "Accepted") for path in paths]
    assert [one["status"] for one in found] == ["True", "True", "False"]
    assert "of 1048576" in found[2]["message"]
    names = {one["schedulerName"] for one in world.configuration()["profiles"]}
    assert {"large-a", "large-b", "good"} <= names
    assert "Too long" not in world.operator.text()
    world.api.request("DELETE", paths[0])
    world.wait(lambda: world.condition_at(paths[2], "Accepted")["status"] == "True", 60, "no room")
    clear(world, paths[1:])
