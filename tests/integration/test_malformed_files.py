"""Objects of files with values of other types: an error names the field."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from ..seeds import SEED, number

COUNT = number("KSO_MALFORMED_OBJECTS", 40, soak=800)
VALUES = ("text", 5, True, None, ["x"], [None], {"a": 1})
SELECTED = {"labelSelector": {"matchLabels": {"app": "a"}}}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"disk": "ssd"}},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
EXPRESSION = {"key": "disk", "operator": "In", "values": ["hdd"]}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waiting", "namespace": "default", "labels": {"app": "a"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {"requests": {"cpu": "1"}},
                "ports": [{"hostPort": 80, "containerPort": 80}],
            }
        ],
        "nodeSelector": {"disk": "hdd"},
        "tolerations": [{"key": "other", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [EXPRESSION]}]
                }
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{**SELECTED, "topologyKey": "z"}]
            },
        },
        "topologySpreadConstraints": [
            {**SELECTED, "maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}],
    },
    "status": {"phase": "Pending"},
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"},
    "status": {"phase": "Pending"},
}
OBJECTS: list[dict[str, Any]] = [NODE, POD, CLAIM]

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def asked(place: tuple[Any, ...], value: Any, *command: str) -> tuple[int, str]:
        objects = copy.deepcopy(OBJECTS)
        holder: Any = objects
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
        path = tmp_path / "objects.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        files = ("--from-files", str(path), "--kube-scheduler", str(kube_scheduler_binary))
        code = kubectl_plugin([*command, *files])
        return code, capsys.readouterr().err

    return asked


@pytest.mark.parametrize(
    ("place", "value", "field"),
    [
        ((1, "spec", "tolerations", 0), ["x"], "spec.tolerations"),
        ((0, "spec", "taints", 0), True, "spec.taints"),
        ((0, "metadata", "labels", "disk"), None, "Node n: metadata.labels.disk is null"),
        ((1, "spec", "tolerations"), [None], "Pod default/waiting: spec.tolerations[0] is null"),
        ((1, "spec", "topologySpreadConstraints", 0, "maxSkew"), "1", "maxSkew"),
        ((1, "metadata", "namespace"), 5, "metadata.namespace is not a text"),
        ((0, "metadata"), "x", "Node: metadata is not an object"),
        ((2, "spec", "storageClassName"), {"a": 1}, "storageClassName"),
    ],
)
def test_the_error_names_the_field(
    run: Run, place: tuple[Any, ...], value: Any, field: str
) -> None:
    code, error = run(place, value, "why", "waiting")
    assert code in (1, 2)
    assert field in error
    assert error.startswith("error: ")


def test_the_error_of_runs_that_fail_at_the_same_time_names_the_field(run: Run) -> None:
    place = (1, "spec", "priority")
    assert run(place, "high", "simulate") == (
        2,
        "error: kube-scheduler cannot decode a Pod: json: cannot unmarshal string into Go struct "
        "field PodSpec.items.spec.priority of type int32; correct that field\n",
    )


@pytest.mark.timeout(600, func_only=True)
def test_no_value_of_another_type_is_a_fault_of_the_command(run: Run) -> None:
    every = [
        (place, value)
        for place, value in itertools.product(_places(OBJECTS), VALUES)
        if len(place) > 1 and place[1] not in ("apiVersion", "kind")
    ]
    for place, value in random.Random(SEED).sample(every, min(COUNT, len(every))):
        for command in (("why", "waiting"), ("pending",), ("simulate", "--repeat", "2")):
            code, error = run(place, value, *command)  # any fault would be raised here
            assert code in (0, 1, 2), (place, value)
            is_answer = code == 0 or (command[0] == "simulate" and code == 1)  # it does not fit
            assert bool(error) != is_answer or error.startswith("note: "), (place, value, error)


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    items: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from _places(item, (*place, key))
