"""The parts of `hack/new-version` that read Go sources and compare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import releases
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import (
    NEWEST,
    NEWEST_RELEASE,
    PRE_RELEASES,
    listable_plugins,
)
from kube_scheduler_operator.config.language.schema import POINTS
from versions import places
from versions.configurations import configuration_differences
from versions.differences import (
    default_differences,
    different,
    gate_differences,
    plugin_differences,
    state_differences,
    structs,
)

from ..configurations.generate import configurations


@dataclass
class FakeReader:
    """A kube-scheduler with these plugins and their extension points."""

    plugins: dict[str, set[str]]
    minor: int = NEWEST.minor
    completed: str = ""

    def read(self, content: bytes) -> tuple[str, str]:
        config = yaml.safe_load(content)
        if "profiles" not in config:
            return self.completed, "" if self.completed else "no configuration"
        ((point, plugin_set),) = config["profiles"][0]["plugins"].items()
        name = plugin_set["enabled"][0]["name"]
        if name not in self.plugins:
            return "", f'{point} plugin "{name}" does not exist'
        found = point in self.plugins[name]
        return ("{}", "") if found else ("", f'plugin "{name}" does not extend {point} plugin')


def on_record() -> dict[str, set[str]]:
    known = listable_plugins(NEWEST)
    return {name: set(plugin.points_at(NEWEST.minor)) for name, plugin in known.items()}


def test_the_fields_of_go_types_are_read(tmp_path: Path) -> None:
    (tmp_path / "config/v1").mkdir(parents=True)
    (tmp_path / "config/v1/types.go").write_text(
        'type Plugins struct {\n\t// A comment.\n\tFilter PluginSet `json:"filter,omitempty"`\n'
        '\tmetav1.TypeMeta `json:",inline"`\n}\n\ntype Other struct {\n\tA int `json:"a"`\n}\n'
    )
    assert structs(tmp_path) == {"Plugins": {"filter"}, "Other": {"a"}}


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [("a[1].b", 2, 3)]),
        ({"a": [1]}, {"a": [1, 2]}, [("a", [1], [1, 2])]),
        ({"a": 1}, {}, [("a", 1, None)]),
    ],
)
def test_the_deepest_values_that_differ_are_found(
    theirs: Any, ours: Any, expected: list[tuple[str, Any, Any]]
) -> None:
    assert list(different(theirs, ours)) == expected


@pytest.mark.parametrize(
    ("name", "points", "message"),
    [
        ("NewOne", {"filter"}, "plugin NewOne was added, at filter:"),
        ("NodeName", None, "plugin NodeName was removed:"),
        ("NodeName", {"preFilter", "filter", "queueSort"}, "plugin NodeName implements queueSort:"),
        ("NodeName", {"preFilter"}, "plugin NodeName no longer implements filter:"),
    ],
)
def test_a_plugin_that_differs_is_reported(
    tmp_path: Path, name: str, points: set[str] | None, message: str
) -> None:
    names = tmp_path / "pkg/scheduler/framework/plugins/names/names.go"
    names.parent.mkdir(parents=True)
    names.write_text('const (\n\tNewOne = "NewOne"\n\tNodeName = "NodeName"\n)\n')
    plugins = {**on_record(), name: points or set()}
    if points is None:
        del plugins[name]
    reader: Any = FakeReader(plugins)
    (line,) = plugin_differences(reader, tmp_path, set(POINTS), NEWEST.minor)
    assert line.startswith(message)


def test_a_rejected_empty_configuration_is_reported() -> None:
    reader: Any = FakeReader({})
    assert list(default_differences(reader, NEWEST.minor)) == [
        "an empty configuration is rejected: no configuration"
    ]


def test_a_gate_that_is_not_in_the_table_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "pkg/scheduler/apis/config/v1/default_plugins.go"
    file.parent.mkdir(parents=True)
    file.write_text(
        "Enabled(features.GenericWorkload)\nEnabled(features.TopologyAwareWorkloadScheduling)\n"
        "Enabled(features.NewGate)\n"
    )
    (line,) = gate_differences(NEWEST.minor, tmp_path)
    assert line.startswith("gate NewGate decides on default plugins:")


def test_a_gate_whose_state_changed_is_reported() -> None:
    (line,) = (each for each in state_differences(37, 36) if "StorageCapacityScoring" in each)
    assert line.startswith("gate StorageCapacityScoring was off and is on: ")
    assert any("gate GangScheduling was off and is absent" in e for e in state_differences(37, 36))
    assert list(state_differences(37, 37)) == []


@dataclass
class AcceptingReader:
    """A kube-scheduler that accepts everything except files with one text."""

    rejected: str
    minor: int = NEWEST.minor

    def read(self, content: bytes) -> tuple[str, str]:
        return ("", "no such plugin") if self.rejected in content.decode() else ("{}", "")


def test_a_configuration_that_a_release_reads_in_another_way_is_reported() -> None:
    reader: Any = AcceptingReader("ImageLocality")
    found = list(configuration_differences(reader, NEWEST.minor))
    group = "a field misspelt"
    shown = [line for line in found if line.startswith(f'configuration "{group}: ')]
    assert len(shown) == 3
    assert all("valid, on record: " in line or ": no such plugin, " in line for line in shown)
    (more,) = (line for line in found if line.startswith(f'configurations "{group}": '))
    count = sum(made.group == group for made in configurations(NEWEST.minor))
    assert 0 < int(more.split(": ")[1].split()[0]) <= count - 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Kubernetes 1.29 to 1.23 are on record", ['a.md:2 has "1.29 to 1.23"']),
        ("an upgrade from 1.22 to 1.23", []),
        ("1.19 to 1.24, and 1.19 to 1.230", []),
    ],
)
def test_a_text_that_names_an_older_span_of_versions_is_reported(
    text: str, found: list[str]
) -> None:
    assert list(places.spans("a.md", f"\n{text}\n", 24)) == found


def test_a_release_that_is_nowhere_on_record_is_missing_in_every_list() -> None:
    missing = list(places.lists("v1.99.1"))
    assert [line.rpartition(": ")[2] for line in missing] == [
        "operator/kube_scheduler_operator/config/language/plugins/in_tree_plugins.py",
        "operator/kube_scheduler_operator/config/language/flags.py",
        "hack/cluster/releases.py",
        "tests/configurations/page.py",
        "hack/record-extender 1.99",
    ]
    for version in (*releases.PINNED.values(), *releases.PRE_RELEASES.values()):
        assert list(places.lists(version)) == []


def test_a_pre_release_is_named_where_the_rules_are_until_there_is_a_release() -> None:
    where = "operator/kube_scheduler_operator/config/language/plugins/in_tree_plugins.py"
    assert f"PRE_RELEASES lacks 1.99: {where}" in list(places.lists("v1.99.0-beta.1"))
    for minor, version in releases.PRE_RELEASES.items():
        assert str(PRE_RELEASES[minor]) == version
        assert f"PRE_RELEASES has 1.{minor}: {where}" in list(places.lists(f"v1.{minor}.0"))


def test_no_text_of_the_repository_ends_before_the_newest_version() -> None:
    assert list(places.texts(NEWEST_RELEASE.minor)) == []
