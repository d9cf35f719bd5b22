"""A question and its world get to another process whole, and nothing else does."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator import __version__
from kube_scheduler_operator.base.field_types import hints_of
from kube_scheduler_operator.simulate import questions
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.diagnosis import Cause, Decision, Diagnosis, Group, Score
from kube_scheduler_operator.simulate.edits import Edit
from kube_scheduler_operator.simulate.fix import Fix
from kube_scheduler_operator.simulate.kinds import PODS
from kube_scheduler_operator.simulate.pending import waiting_groups
from kube_scheduler_operator.simulate.process import SimulationError
from kube_scheduler_operator.simulate.questions import (
    NO_BINARY,
    QUESTIONS,
    read_answer,
    read_request,
    request,
    to_json,
)
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.why import explain
from kube_scheduler_operator.simulate.world import World

OPTIONS = RunOptions(
    NO_BINARY,
    default_configuration(),
    ("--feature-gates=A=true",),
    7.5,
    ({"schedulerName": "x"},),
    scores=True,
    probes=frozenset({"p", "q"}),
)
HIDDEN = "hunter2"


def world() -> World:
    found = World(notes=["a note"], version="v1.35.4")
    container = {
        "name": "c",
        "image": "i",
        "args": [HIDDEN],
        "command": [HIDDEN],
        "env": [{"name": "PASSWORD", "value": HIDDEN}],
        "envFrom": [{"secretRef": {"name": HIDDEN}}],
    }
    for name, node in (("waiting", None), ("running", "n")):
        found.add(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "shop", "annotations": {"note": HIDDEN}},
                "spec": {
                    "containers": [container],
                    "nodeName": node,
                    "volumes": [
                        {"name": "s", "secret": {"secretName": HIDDEN}},
                        {"name": "m", "configMap": {"name": HIDDEN}},
                    ],
                },
            }
        )
    for kind in ("Secret", "ConfigMap"):
        assert not found.add(
            {
                "apiVersion": "v1",
                "kind": kind,
                "metadata": {"name": "s", "namespace": "shop"},
                "data": {"k": HIDDEN},
            }
        )
    found.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    found.complete()
    return found


def pieces(content: bytes, size: int = 7) -> list[bytes]:
    return [content[at : at + size] for at in range(0, len(content), size)]


def test_question_world_and_options_come_back_equal() -> None:
    sent = world()
    pod = sent.get(PODS, "waiting", "shop")
    asked = read_request(pieces(request(explain, sent, OPTIONS, {"pod": pod})))
    assert (asked.question, asked.arguments) == (explain, {"pod": pod})
    assert asked.world == sent
    same = replace(asked.options, flags=tuple(asked.options.flags))
    assert replace(same, profiles=tuple(same.profiles)) == OPTIONS


def test_nothing_that_scheduling_does_not_read_is_sent() -> None:
    sent = world()
    pod = sent.get(PODS, "waiting", "shop")
    content = zlib.decompress(request(explain, sent, OPTIONS, {"pod": pod}), 31)
    assert b"running" in content
    assert HIDDEN.encode() not in content
    assert b"PASSWORD" not in content


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_annotations_for_its_json(name: str) -> None:
    hints = hints_of(QUESTIONS[name])
    assert hints.keys() >= {"world", "options", "return"}
    assert Any not in hints.values()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"question": "oracle"}, "the question 'oracle' is unknown"),
        ({"arguments": {"depth": 3}}, "the question 'explain' has no argument 'depth'"),
        ({"arguments": {"world": {}}}, "the question 'explain' has no argument 'world'"),
        ({"arguments": {"pod": 3}}, "pod: this must be an object"),
        ({"options": {"config": 3}}, "options.config: this must be an object"),
        ({"question": "oracle", "version": "9.9"}, "the command is version 9.9: use the same"),
    ],
)
def test_a_question_of_another_version_is_refused(changed: dict[str, Any], message: str) -> None:
    head = {
        "version": __version__,
        "question": "explain",
        "arguments": {},
        "options": {"config": {}},
        "world": {"notes": [], "annotations": False, "version": ""},
    }
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    content = compressor.compress(to_json(head | changed)) + compressor.flush()
    with pytest.raises(ValueError, match=r".") as raised:
        read_request([content])
    assert message in str(raised.value)


def test_a_damaged_request_is_refused() -> None:
    content = request(waiting_groups, world(), OPTIONS, {})
    for damaged in (content[:-9], b"", content[:20] + b"\0\0\0\0" + content[24:]):
        with pytest.raises(ValueError, match=r"the request is (damaged|not complete)"):
            read_request([damaged])


def test_an_answer_comes_back_equal() -> None:
    found = Diagnosis(
        "shop/waiting",
        "default-scheduler",
        ["default-scheduler"],
        groups=[Group(("a",), (Cause("too small", ("Insufficient cpu",)),))],
        fixes=[Fix("request less", ("a",), 2, 1, patch=(Edit("Pod shop/a", "spec.x", "2", 1),))],
        decision=Decision("a", best=("a",)),
        scores={"a": Score(3, {"P": 3})},
    )
    assert read_answer(explain, b'    {"answer":%b}' % to_json(found)) == found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"error":"it ended"}', "it ended"),
        (b"<html>", "the answer cannot be read"),
        (b"[]", "there is neither an answer nor an error"),
        (b'{"answer":{"pod":3}}', "answer.pod: this must be a string"),
    ],
)
def test_an_answer_that_is_none_is_an_error(content: bytes, message: str) -> None:
    with pytest.raises(SimulationError) as raised:
        read_answer(explain, content)
    assert message in str(raised.value)


async def test_an_answer_comes_from_the_program_of_the_other_process() -> None:
    seen: dict[str, Any] = {}

    async def ask(world: World, options: RunOptions, pod: str) -> list[str]:
        seen.update(binary=options.binary, version=world.version)
        return [pod]

    asked = questions.Asked(ask, {"pod": "p"}, world(), OPTIONS)
    assert await asked.answer(Path("/there")) == b'["p"]'
    assert seen == {"binary": Path("/there"), "version": "v1.35.4"}
