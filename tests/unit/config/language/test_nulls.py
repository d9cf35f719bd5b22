"""Null anywhere in the overrides: handled as kube-scheduler does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from kube_scheduler_operator.base.go_values import OBJECT_LISTS, without_nulls
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language import schema
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.plugin_origins import profile_tables
from kube_scheduler_operator.config.language.schema import List, Map, Struct
from kube_scheduler_operator.config.language.versions import Version

from ....control_plane_inputs import inputs_of

TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
FULL: dict[str, Any] = {
    "parallelism": 4,
    "leaderElection": {"leaderElect": True},
    "clientConnection": {"qps": 5},
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "ImageLocality", "weight": 3}],
                    "disabled": [{"name": "NodeName"}],
                },
                "score": {"enabled": [{"name": "NodeResourcesFit"}], "disabled": [{"name": "*"}]},
                "filter": {"disabled": [{"name": "NodePorts"}]},
            },
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "ignoredResources": ["example.com/x"],
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        },
                    },
                },
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [TERM]
                            }
                        }
                    },
                },
            ],
        },
        {"schedulerName": "b"},
    ],
    "extenders": [
        {
            "urlPrefix": "http://x",
            "filterVerb": "f",
            "prioritizeVerb": "p",
            "weight": 2,
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            "tlsConfig": {"insecure": True},
        }
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document where a null can stand, the end of each list included."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))
        yield (*path, len(value))


def with_null(path: tuple[Any, ...]) -> dict[str, Any]:
    document = copy.deepcopy(FULL)
    owner: Any = document
    for key in path[:-1]:
        owner = owner[key]
    if isinstance(owner, list) and path[-1] == len(owner):
        owner.append(None)
    else:
        owner[path[-1]] = None
    return document


@pytest.mark.parametrize("path", list(places(FULL)), ids=lambda path: ".".join(map(str, path)))
def test_a_null_in_the_overrides_is_reported_or_accepted_and_never_fails_a_reconcile(
    path: tuple[Any, ...],
) -> None:
    spec = {"spec": {"unsupportedConfigOverrides": with_null(path)}}
    made = compose(inputs_of(KUBEADM, Version(1, 35), {"spec": {}}, spec))
    if not any(finding.blocking for finding in made.findings):
        assert made.config is not None
        assert profile_tables(made.config, (), Gates(Version(1, 35), {}))


def test_entries_of_lists_of_objects_stay_and_are_empty() -> None:
    document = {"profiles": [None, {"schedulerName": None}], "ignoredResources": [None]}
    assert without_nulls(document) == {"profiles": [{}, {}], "ignoredResources": [None]}


def test_all_lists_of_objects_are_known() -> None:
    """The schema has the same lists, and no list of strings has one of their names."""
    objects: set[str] = set()
    others: set[str] = set()
    seen: set[int] = set()

    def walk(type_: Any) -> None:
        if isinstance(type_, Struct):
            if id(type_) in seen:
                return
            seen.add(id(type_))
            for name, field in type_.fields.items():
                if isinstance(field, List):
                    (objects if isinstance(field.item, Struct) else others).add(name)
                walk(field)
        elif isinstance(type_, List | Map):
            walk(type_.item)

    for value in vars(schema).values():
        walk(value)
        for item in value.values() if isinstance(value, dict) else ():
            walk(item)
    assert objects == OBJECT_LISTS
    assert not others & OBJECT_LISTS
