"""The objects for an adopted configuration replace it, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.effective_plugins import effective_plugins
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.node.config_reader.report import ConfigReport
from kube_scheduler_operator.operator.controlplane.adoption.adopted import adopted
from kube_scheduler_operator.operator.controlplane.adoption.config_files import answered_readers
from kube_scheduler_operator.operator.controlplane.adoption.preview import adopted_objects
from kube_scheduler_operator.operator.controlplane.desired import desired_content
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .....adopted_files import FILES
from .....builders import operand_pod, scheduler
from .....customised import CONFIGURATION, with_config_file
from .test_adopted import cluster, on, revision

GATES = Gates(Version(1, 35, 4), {})


def stock(file: Mapping[str, Any], profile: str = "", **objects: Any) -> Snapshot:
    """A cluster whose scheduler reads a file, with objects."""
    spec = {"profile": profile} if profile else {}
    snapshot = cluster({"a": with_config_file(on("a"))}, scheduler=scheduler(**spec), **objects)
    readers = answered_readers(snapshot, {"a": ConfigReport(dict(file))})
    return cluster(
        {"a": with_config_file(on("a"))},
        scheduler=scheduler(**spec),
        config_reader_pods=readers,
        **objects,
    )


def effective(snapshot: Snapshot) -> dict[str, Any]:
    content, findings = desired_content(snapshot)
    assert content is not None, findings
    found = json.loads(content.parts[names.CONFIG][names.CONFIG_KEY])
    assert isinstance(found, dict)
    return found


def applied(objects: tuple[dict[str, Any], ...]) -> dict[str, dict[str, Any]]:
    """The objects as a snapshot has them."""
    kinds = {"SchedulerProfile": "scheduler_profiles", "SchedulerExtender": "scheduler_extenders"}
    found: dict[str, dict[str, Any]] = {"scheduler_profiles": {}, "scheduler_extenders": {}}
    for one in objects:
        metadata = {**one["metadata"], "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
        found[kinds[one["kind"]]][metadata["name"]] = {**one, "metadata": metadata}
    return found


def by_effect(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without what has no effect: the order of profiles, defaults of extenders."""
    profiles = {
        one.get("schedulerName", "default-scheduler"): (
            effective_plugins(one, GATES),
            sorted(json.dumps(each, sort_keys=True) for each in one.get("pluginConfig", ())),
        )
        for one in config.get("profiles") or [{}]
    }
    extenders = [
        {"httpTimeout": "5s", "ignorable": False, "nodeCacheCapable": False, **one}
        for one in config.get("extenders", ())
    ]
    for one in extenders:
        if "prioritizeVerb" not in one:
            one.pop("weight", None)
    return {**config, "profiles": profiles, "extenders": extenders}


@pytest.mark.parametrize("profile", ["", "HighNodeUtilization", "NoScoring"])
@pytest.mark.parametrize("name", FILES)
def test_the_configuration_is_equal_in_effect_with_the_objects(name: str, profile: str) -> None:
    before = stock(FILES[name], profile)
    config = effective(before)
    made = adopted_objects(adopted(before).config, config)
    after = effective(stock(FILES[name], profile, **applied(made.objects)))
    then, now = by_effect(config), by_effect(after)
    if "default-scheduler" not in then["profiles"]:
        assert any("default-scheduler added" in change.what for change in made.changes)
        del now["profiles"]["default-scheduler"]
    assert now == then
    if name != "no profiles":
        assert made.objects


def test_a_deleted_object_brings_the_adopted_profile_back() -> None:
    before = stock(CONFIGURATION)
    objects = adopted_objects(adopted(before).config, effective(before)).objects
    edited: Any = applied(objects)
    edited["scheduler_profiles"]["second"]["spec"] = {"base": "NoScoring"}
    assert by_effect(effective(stock(CONFIGURATION, **edited))) != by_effect(effective(before))
    assert by_effect(effective(stock(CONFIGURATION))) == by_effect(effective(before))


def test_they_replace_the_record_of_a_cluster_that_is_adopted_already() -> None:
    record = adopted(stock(FILES["extenders"])).record
    maps = revision(1, record)
    snapshot = cluster({"a": operand_pod("a", 1)}, config_maps=maps)
    config = effective(snapshot)
    made = adopted_objects(adopted(snapshot).config, config)
    assert [one["kind"] for one in made.objects].count("SchedulerExtender") == 2
    after = cluster({"a": operand_pod("a", 1)}, config_maps=maps, **applied(made.objects))
    assert by_effect(effective(after)) == by_effect(config)


def test_other_fields_stay_adopted() -> None:
    before = stock(CONFIGURATION)
    made = adopted_objects(adopted(before).config, effective(before))
    assert made.remaining == (
        "clientConnection", "leaderElection", "parallelism", "percentageOfNodesToScore",
    )  # fmt: skip
    assert made.changes == ()


def test_without_profiles_and_extenders_there_is_no_object() -> None:
    assert adopted_objects({"parallelism": 8}, {"profiles": [{}]}).objects == ()
