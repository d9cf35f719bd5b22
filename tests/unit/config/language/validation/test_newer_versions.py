"""Versions of Kubernetes that are newer than the tables: the rules of the newest one apply."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import WARNING, format_path
from kube_scheduler_operator.config.language.feature_gates import Gates, has_gate
from kube_scheduler_operator.config.language.plugins.effective_plugins import effective_plugins
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import (
    NEWEST,
    NEWEST_RELEASE,
    PRE_RELEASES,
)
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.validation.newer_versions import newer_version_note
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings.configuration import standalone_warnings

from .....configurations.by_hand import args, plugins
from .....configurations.generate import configurations
from .....configurations.model import typed

NEXT = Version(1, NEWEST.minor + 1)
NEXT_TARGET = Target(Gates(NEXT))
NAMES = {"UnknownField", "UnknownPlugin", "WrongExtensionPoint"}


@pytest.mark.parametrize(
    ("config", "path", "begins"),
    [
        ({"parallel": 1}, "parallel", f'kube-scheduler {NEWEST.short} has no field "parallel" '),
        (
            args("VolumeBinding", newField=1),
            "profiles[0].pluginConfig[0].args.newField",
            f'kube-scheduler {NEWEST.short} has no field "newField" ',
        ),
        (
            plugins("score", "ImageLocalty"),
            "profiles[0].plugins.score.enabled[0].name",
            f'kube-scheduler {NEWEST.short} has no plugin "ImageLocalty"; '
            'did you mean "ImageLocality"? Ignore this if ',
        ),
        (
            plugins("filter", "ImageLocality"),
            "profiles[0].plugins.filter.enabled[0].name",
            'plugin "ImageLocality" does not implement filter; list it at score',
        ),
    ],
)
def test_a_name_that_may_be_new_is_a_warning(
    config: dict[str, Any], path: str, begins: str
) -> None:
    config = typed(config)
    assert validate_config(config, NEXT_TARGET) == []
    (warning,) = (each for each in standalone_warnings(config, NEXT_TARGET) if each.reason in NAMES)
    assert (format_path(warning.path), warning.severity) == (path, WARNING)
    assert warning.sentence.startswith(begins)
    assert warning.sentence.endswith(f"gnore this if Kubernetes {NEXT.short} added it")
    assert validate_config(config, Target(Gates(NEWEST))) != []


@pytest.mark.parametrize(
    "config",
    [
        {"parallelism": -1},
        args("NodeResourcesFit", scoringStrategy={"type": "Nope"}),
        plugins("multiPoint", disabled=("*",)),
        plugins("bind", disabled=("*",)),
    ],
)
def test_every_other_rule_of_the_newest_version_applies(config: dict[str, Any]) -> None:
    config = typed(config)
    found, known = (
        [(each.reason, each.path) for each in validate_config(config, target)]
        for target in (NEXT_TARGET, Target(Gates(NEWEST)))
    )
    assert found == known != []


def test_two_thousand_configurations_are_read_as_by_the_newest_version() -> None:
    accepted = 0
    for made in configurations(NEWEST.minor):
        newest, following = (Target(Gates(version, made.gates)) for version in (NEWEST, NEXT))
        known, problems = (
            [(each.reason, each.path) for each in validate_config(made.config, target)]
            for target in (newest, following)
        )
        if all(reason not in NAMES for reason, _ in known):
            assert problems == known, made.name
        else:  # arguments of plugins that were removed are still an error
            assert {each for each in problems if each[0] in NAMES} <= set(known), made.name
            accepted += not problems
    assert accepted > 200


def test_the_default_plugins_are_those_of_the_newest_version() -> None:
    points = [effective_plugins({}, Gates(version)).points for version in (NEWEST, NEXT)]
    assert points[0] == points[1]
    assert points[0]["filter"]


def test_only_a_version_newer_than_the_releases_has_a_note() -> None:
    assert newer_version_note(NEWEST_RELEASE) == newer_version_note(Version(1, 20)) == ""
    note = newer_version_note(NEXT)
    assert note.startswith(
        f"Kubernetes {NEXT.short} is newer than the versions on record (1.29 to "
    )
    assert f"so the rules of {NEWEST.short} apply" in note


@pytest.mark.parametrize(("minor", "compared"), PRE_RELEASES.items())
def test_a_version_without_a_release_names_the_pre_release(minor: int, compared: Version) -> None:
    assert compared.pre
    assert compared.minor == minor
    assert newer_version_note(Version(1, minor)) == (
        f"the rules of 1.{minor} are those of the pre-release {compared}, not of a release, which "
        "may differ"
    )
    assert has_gate(Version(1, minor), "AddedWithTheRelease") is None
    assert has_gate(Version(1, minor), "VolumeCapacityPriority") is False


def test_recorded_versions_have_no_such_warnings() -> None:
    config = typed(plugins("score", "ImageLocality"))
    assert standalone_warnings(config, Target(Gates(NEWEST))) == []
