"""The pages of nodes, waiting Pods, why and what if, and the report, over recorded answers."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.cli.simulation.answer_text import answer_lines
from kube_scheduler_operator.cli.simulation.explanation_text import pod_lines, waiting_lines
from kube_scheduler_operator.cli.web import report, server
from kube_scheduler_operator.cli.web.node_views import CELLS, by_requests
from kube_scheduler_operator.cli.web.page import ConsoleCluster, Question
from kube_scheduler_operator.cli.web.pages import what_if
from kube_scheduler_operator.cli.web.pages.waiting import Groups
from kube_scheduler_operator.cli.web.pages.what_if import WhatIf
from kube_scheduler_operator.cli.web.registry import PAGES
from kube_scheduler_operator.cli.web.simulations import apart

from ....hostile import expect_harmless
from .conftest import Start, answered_by
from .conftest import recorded as recorded_pages
from .recorded import ANSWERS, CAUSES, HUGE_CAUSES, HUGE_NODES, UNSCHEDULABLE, WHAT_IF, hostile
from .test_pages import Elements
from .worlds import HEALTHY

CASES = [(page, case) for page, cases in ANSWERS.items() for case in cases]
TEXTS = [each for each in CASES if each[1] not in ("huge", "asked nothing")]
HUGE = 1024 * 1024


def words_of(html: str) -> str:
    """The text of a page, with one space between words."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


async def _page(start: Start, name: str, answer: Any) -> str:
    reader = await start(recorded_pages({name: answer}))
    status, html, _ = await reader.ask(f"/{name}")
    assert (status, "Not known:" in html) == (200, False)
    return html


@pytest.mark.parametrize(("name", "case"), CASES)
async def test_a_page_is_whole_and_bounded(start: Start, name: str, case: str) -> None:
    html = await _page(start, name, ANSWERS[name][case])
    assert len(html) < HUGE
    elements = Elements(html).found
    tags = [tag for tag, _ in elements]
    assert tags.count("caption") == tags.count("table")
    assert "style" not in tags
    for _, attributes in elements:
        assert "style" not in attributes
        assert not [key for key in attributes if key.startswith("on")]
    headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("name", "case"), [each for each in CASES if each[1] not in ("huge", "asked nothing")]
)
async def test_texts_of_strangers_are_shown_as_text(start: Start, name: str, case: str) -> None:
    html = await _page(start, name, hostile(ANSWERS[name][case]))
    expect_harmless(html)
    assert "<img" not in html
    assert "<script>" not in html
    assert ">49<" not in html


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("nodes", "kubectl scheduler nodes"),
        ("waiting", "kubectl scheduler pending"),
        ("causes", "kubectl scheduler pending"),
        ("why", "kubectl scheduler why api-1 -n shop --nodes 0"),
    ],
)
async def test_what_is_left_out_is_counted_with_the_command_that_shows_all(
    start: Start, name: str, command: str
) -> None:
    words = words_of(await _page(start, name, ANSWERS[name]["huge"]))
    assert re.search(rf"… and \d+ more [a-z ]+; this command shows all: {command}", words)


async def test_the_sentences_are_those_of_the_commands(start: Start) -> None:
    words = words_of(await _page(start, "why", ANSWERS["why"]["broken"]))
    for line in pod_lines(UNSCHEDULABLE, 50):
        for part in re.split(r"   \[|\] *$|^ *\* ", line):
            own = re.sub(r"^\d+ nodes? \(|\)$|:$", "", " ".join(part.split()))
            assert own in words, line
    words = words_of(await _page(start, "causes", CAUSES))
    for group in CAUSES.groups:
        assert group.cause in words
    assert "helps shop/web-0: request 4 of cpu instead of 9" in words
    assert "raise the quota" in words
    assert next(waiting_lines(CAUSES)) in words
    words = words_of(await _page(start, "what-if", WHAT_IF))
    assert WHAT_IF.answer is not None
    for line in answer_lines(WHAT_IF.answer, 50):
        assert " ".join(line.split()) in words


async def test_a_state_is_a_word_and_a_shape(start: Start) -> None:
    html = await _page(start, "nodes", ANSWERS["nodes"]["broken"])
    words = words_of(html)
    assert "1 not ready" in words
    assert "1 unschedulable" in words
    assert "worker-2: 130 %, unschedulable" in words
    assert html.count('class="mark"') == 2 * 2 + 2, "in both grids, and in the legend"
    assert "Measured load of nodes: 1 node at 50 % or more" in words
    assert "4 nodes not known" in words


async def test_missing_measurements_are_named(start: Start) -> None:
    answer = ANSWERS["nodes"]["broken"]
    bare = type(answer)(answer.at, answer.nodes[:2], answer.states, answer.partitions)
    words = words_of(await _page(start, "nodes", bare))
    assert "is not known: no node has a measurement." in words


def test_pods_without_a_node_are_grouped_by_what_their_objects_show() -> None:
    groups = Groups()
    condition = {"type": "PodScheduled", "status": "False", "message": "Insufficient\x1b[31m cpu"}
    for at in range(30):
        metadata = {"name": f"p{at}", "namespace": "ns", "creationTimestamp": f"2026-01-{30 - at}"}
        assert not groups({"metadata": metadata, "spec": {}, "status": {"conditions": [condition]}})
    gated = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"schedulingGates": True}}
    leaving = {"metadata": {"name": "x", "namespace": "ns", "deletionTimestamp": True}}
    groups(gated)
    groups(leaving)
    shown = groups.shown(unread=False)
    first, second = shown.groups
    assert (shown.total, first.count, first.cause, second.cause) == (
        31, 30, "unschedulable", "gated",
    )  # fmt: skip
    assert first.since == "2026-01-1"
    assert first.message == "Insufficient\\u001b[31m cpu"
    assert len(first.pods) == 20


async def test_an_answer_beside_the_server_can_be_cancelled() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    task = asyncio.create_task(apart(work))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


# --- the report -----------------------------------------------------------------------------------


def _cluster() -> ConsoleCluster:
    args = argparse.Namespace(kubeconfig=None, context="prod", as_user="", as_groups=[], as_uid="")
    api: Any = None
    return ConsoleCluster(api, KUBEADM, args)


def _pages(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
    world = {**HEALTHY, **{name: next(iter(cases.values())) for name, cases in ANSWERS.items()}}
    monkeypatch.setattr(report, "PAGES", recorded_pages({**world, **answers}))


async def test_a_report_is_one_file_that_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _pages(monkeypatch, causes=CAUSES, **{"what-if": WHAT_IF})
    html, unknown = await report.report(_cluster(), "prod", "HighNodeUtilization")
    assert unknown == []
    elements = Elements(html).found
    tags = [tag for tag, _ in elements]
    assert not {"script", "link", "img", "iframe", "form"} & {*tags}
    assert (tags.count("h1"), tags.count("style")) == (1, 1)
    for _, attributes in elements:
        assert "style" not in attributes
        assert str(attributes.get("href") or "#").startswith("#")
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {str(attributes["href"])[1:] for tag, attributes in elements if tag == "a"}
    assert links <= {*ids}
    words = words_of(html)
    for title in ("Now", "Nodes", "Causes of waiting", "Why shop/web-0 waits", "What if"):
        assert title in words
    assert "kubectl scheduler why web-0 -n shop --context=prod" in words
    assert "Compare two revisions" not in words, "a heading of a form that a file does not have"


async def test_a_report_of_a_huge_cluster_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = {name: cases["huge"] for name, cases in ANSWERS.items() if name != "why"}
    _pages(monkeypatch, **huge)
    html, _ = await report.report(_cluster(), "prod", "")
    assert len(html) < report.LARGEST
    monkeypatch.setattr(report, "LARGEST", 100_000)
    html, unknown = await report.report(_cluster(), "prod", "")
    assert len(html) < 200_000
    assert any(line.startswith("Nodes: left out:") for line in unknown)


async def test_a_report_names_what_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused() -> Any:
        raise CommandError("no kube-scheduler was found: name one with --kube-scheduler PATH")

    world = {**HEALTHY, "nodes": ANSWERS["nodes"]["healthy"], "causes": HUGE_CAUSES}
    pages = [
        answered_by(page, refused) if page.name == "causes" else page
        for page in recorded_pages(world)
    ]
    monkeypatch.setattr(report, "PAGES", pages)
    html, unknown = await report.report(_cluster(), "prod", "")
    assert "name one with --kube-scheduler PATH" in words_of(html)
    assert unknown == [
        "Causes of waiting: no kube-scheduler was found: name one with --kube-scheduler PATH"
    ]


def test_every_page_has_recorded_answers() -> None:
    assert {*ANSWERS} <= {page.name for page in PAGES}


async def test_a_first_answer_is_replaced_by_the_whole_one(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.05)
    ready = asyncio.Event()
    page = what_if.PAGE
    whole = WHAT_IF
    assert whole.answer is not None
    one_run = replace(whole, answer=replace(whole.answer, repeat=1))

    async def first(_cluster: ConsoleCluster, _question: Question) -> WhatIf:
        return one_run

    async def answer() -> WhatIf:
        await ready.wait()
        return whole

    query = f"?profile={whole.profile}"
    reader = await start((replace(answered_by(page, answer), first=first),))
    _, html, _ = await reader.ask(f"/what-if{query}")
    assert "The figures are those of one run" in html
    assert "--repeat 1" in html
    assert "A newer answer is being computed" in html
    (again,) = re.findall(r'hx-get="(/fragments/what-if[^"]+)"', html)
    again = unescape(again)
    status, html, _ = await reader.ask(again)
    assert (status, html) == (204, "")  # nothing changed yet

    everything = asyncio.create_task(reader.ask(f"/api/v1/what-if{query}"))
    await asyncio.sleep(0.05)
    ready.set()
    status, text, _ = await everything
    assert (status, json.loads(text)["answer"]["repeat"]) == (200, 3)
    status, html, _ = await reader.ask(again)
    assert status == 200
    assert "The column now is the cluster as it is" in html
    assert "being computed" not in html


def test_each_zone_of_a_large_cluster_has_cells() -> None:
    drawn = by_requests(HUGE_NODES)
    cells = [len(zone.cells) for zone in drawn.zones]
    assert sum(cells) == CELLS
    assert max(cells) - min(cells) <= len(cells)
    assert drawn.left_out == len(HUGE_NODES.nodes) - CELLS


@pytest.mark.parametrize("name", ["why", "what-if"])
async def test_a_page_that_was_asked_nothing_has_no_time(start: Start, name: str) -> None:
    html = await _page(start, name, ANSWERS[name]["asked nothing"])
    assert "Reload" not in html
    asked = next(case for case in ANSWERS[name] if case != "asked nothing")
    assert "Reload" in await _page(start, name, ANSWERS[name][asked])
