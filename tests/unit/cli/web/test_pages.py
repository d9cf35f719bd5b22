"""The pages over recorded answers: healthy, broken, slow and written by strangers."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import validate as validate_openapi

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.field_types import document_of
from kube_scheduler_operator.cli.answers.status import StatusProblem
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.cli.web import server
from kube_scheduler_operator.cli.web.openapi import openapi_document
from kube_scheduler_operator.cli.web.pages.extenders import of_status
from kube_scheduler_operator.cli.web.registry import PAGES

from ....hostile import STORED, expect_harmless
from .conftest import Start, answered_by, recorded
from .worlds import BROKEN, BROKEN_STATUS, HEALTHY

ROOT = Path(__file__).parents[4]
VENDORED = ROOT / "bindata" / "console"
WORLDS = {"healthy": HEALTHY, "broken": BROKEN}
OWN = [page for page in PAGES if page.name in HEALTHY]
NAMES = [page.name for page in OWN]
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'>{{ 7 * 7 }}"


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def stranger(value: Any, text: str) -> Any:
    """The answer with `text` at the end of every text that it has."""
    if isinstance(value, str):
        return value + text
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: stranger(getattr(value, f.name), text) for f in fields(value)}
        return replace(value, **changed)
    if isinstance(value, Mapping):
        return {key: stranger(item, text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [stranger(item, text) for item in value]
    return value


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_page_is_whole_and_has_no_script_or_style_in_it(
    start: Start, name: str, world: str
) -> None:
    reader = await start(recorded(WORLDS[world]))
    status, html, headers = await reader.ask(f"/{name}")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "Not known:" not in html
    elements = Elements(html).found
    tags = [tag for tag, _ in elements]
    assert [tags.count(tag) for tag in ("h1", "main", "nav", "header", "footer")] == [1] * 5
    for tag, attributes in elements:
        assert tag != "style"
        assert "style" not in attributes
        assert not [key for key in attributes if key.startswith("on")]
        if tag == "script":
            assert str(attributes["src"]).startswith("/static/")
    headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))


async def test_problems_come_first_with_what_to_do(start: Start) -> None:
    reader = await start(recorded(BROKEN))
    _, html, _ = await reader.ask("/now")
    assert html.index("2 problems") < html.index("NodeInstallerDegraded") < html.index("Scheduler<")
    assert "What to do:</strong> kubectl scheduler rollout undo" in html
    assert "Profile" in html
    _, html, _ = await (await start(recorded(HEALTHY))).ask("/now")
    assert "no problem is known" in html


async def test_a_lane_has_its_state_in_words(start: Start) -> None:
    reader = await start(recorded(BROKEN))
    _, html, _ = await reader.ask("/rollout")
    lanes = html[: html.index("</ol>")].split('<li class="lane')[1:]
    words = [re.findall(r"</svg> (.+?)</span>", lane) for lane in lanes]
    assert words == [["at the target"], ["moving"], ["failed"]]
    assert "waits for the kubelet to let go of the old Pod" in html


@pytest.mark.parametrize("name", NAMES)
async def test_texts_of_strangers_are_shown_as_text(start: Start, name: str) -> None:
    keep = {"rollout": {"outcome": BROKEN["rollout"].outcome}}.get(name, {})
    answer = replace(stranger(BROKEN[name], MARKUP + STORED), **keep)
    reader = await start(recorded({name: answer}))
    _, html, _ = await reader.ask(f"/{name}")
    assert "Not known:" not in html
    assert "<img" not in html
    assert "<script>" not in html
    assert "{{ 7 * 7 }}" in html
    expect_harmless(html)


async def test_long_texts_and_long_lists_are_bounded(start: Start) -> None:
    nodes = [replace(BROKEN_STATUS.nodes[0], node=f"n-{number}") for number in range(5000)]
    problems = [replace(one, message="x" * 1_000_000) for one in BROKEN_STATUS.problems]
    answer = replace(BROKEN_STATUS, nodes=nodes, problems=problems)
    reader = await start(recorded({"now": answer}))
    _, html, _ = await reader.ask("/now")
    assert len(html) < 1_000_000
    assert "4500 more nodes are not shown; the JSON has all." in html


async def test_commands_to_copy_are_quoted_and_name_the_context(start: Start) -> None:
    reader = await start(recorded(HEALTHY), context="a b'$(id)", as_user="jane")
    _, html, _ = await reader.ask("/rollout")
    quoted = "kubectl scheduler rollout undo '--context=a b'\"'\"'$(id)' --as=jane"
    escaped = quoted.replace("'", "&#39;").replace('"', "&#34;")
    assert escaped in html


async def test_one_computation_answers_many_readers(start: Start) -> None:
    asked = 0

    async def answer() -> Any:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.05)
        return HEALTHY["now"]

    reader = await start((answered_by(PAGES[0], answer),))
    answers = await asyncio.gather(*(reader.ask("/now") for _ in range(10)))
    answers.append(await reader.ask("/api/v1/now"))
    assert {status for status, _, _ in answers} == {200}
    assert asked == 1


async def test_a_slow_answer_holds_up_no_page(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.05)
    ready = asyncio.Event()

    async def answer() -> Any:
        await ready.wait()
        return HEALTHY["extenders"]

    page = next(page for page in PAGES if page.name == "extenders")
    reader = await start((replace(answered_by(page, answer), limit=5.0),))
    _, html, _ = await reader.ask("/extenders")
    assert "The answer is being computed" in html
    assert 'hx-get="/fragments/extenders"' in html
    ready.set()
    await asyncio.sleep(0.05)
    _, html, _ = await reader.ask("/extenders")
    assert "https://127.0.0.1:10290/load" in html


async def test_what_is_not_known_is_a_sentence(start: Start) -> None:
    async def refused() -> Any:
        raise CommandError("no permission to list pods <b>")

    async def never() -> Any:
        await asyncio.sleep(60)

    async def defect() -> Any:
        raise TypeError("<b>")

    for answer, sentence in (
        (refused, "no permission to list pods &lt;b&gt;"),
        (never, "no answer within 0.05 seconds"),
        (defect, "TypeError: &lt;b&gt;"),
    ):
        reader = await start((replace(answered_by(PAGES[0], answer), limit=0.05),))
        status, html, _ = await reader.ask("/now")
        assert (status, sentence in html) == (200, True)
        status, text, _ = await reader.ask("/api/v1/now")
        assert (status, [*json.loads(text)]) == (503, ["error"])


async def test_an_answer_without_a_form_in_json_is_a_sentence(start: Start) -> None:
    async def answer() -> Any:
        return object()

    reader = await start((answered_by(PAGES[0], answer),))
    status, text, headers = await reader.ask("/api/v1/now")
    assert (status, "TypeError" in json.loads(text)["error"]) == (500, True)
    assert "Content-Security-Policy" in headers
    status, html, _ = await reader.ask("/now")
    assert (status, "Not known:" in html) == (200, True)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/now?x=1", "unknown parameter &#34;x&#34;; parameters: none"),
        ("/compare?old=<b>", "old is not valid: the number of a revision"),
        (f"/compare?old={'1' * 600}", "old has more than 512 characters"),
        ("/rollout?scheduler=A", "scheduler is not valid"),
    ],
)
async def test_an_address_that_is_not_valid_is_named(
    start: Start, path: str, sentence: str
) -> None:
    status, html, _ = await (await start(recorded(HEALTHY))).ask(path)
    assert (status, sentence in html) == (400, True)


@pytest.mark.parametrize("path", ["/none", "/static/../console.css", "/static/vendored.json"])
async def test_other_paths_have_no_page(start: Start, path: str) -> None:
    assert (await (await start(recorded(HEALTHY))).ask(path))[0] == 404


async def test_a_live_page_sends_what_changes(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LIVE_INTERVAL", 0.01)
    world = dict(HEALTHY)
    pages = tuple(replace(page, fresh=0.0) for page in recorded(world))
    reader = await start(pages)
    _, html, _ = await reader.ask("/rollout")
    connect = re.findall(r'sse-connect="(.+?)"', html)[0]
    own = {"Authorization": f"Bearer {reader.console.guard.token}"}
    async with reader.session.get(reader.url + connect, headers=own) as response:
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        await asyncio.sleep(0.05)  # nothing is sent: the page shows it already
        world["rollout"] = BROKEN["rollout"]
        lines = [(await response.content.readline()).decode() for _ in range(2)]
    assert lines[0] == "event: answer\n"
    assert lines[1].startswith("data: ")


async def test_a_further_live_page_takes_the_place_of_the_oldest(start: Start) -> None:
    """A browser has six connections for all tabs: live pages must not use up all of them."""
    reader = await start(recorded(HEALTHY))
    own = {"Authorization": f"Bearer {reader.console.guard.token}"}
    async with AsyncExitStack() as stack:
        pages = [
            await stack.enter_async_context(
                reader.session.get(f"{reader.url}/events/now", headers=own)
            )
            for _ in range(server.LIVE_PAGES + 1)
        ]
        answers = [(await page.content.readuntil(b"\n\n")).decode() for page in pages]
        assert [answer[:14] for answer in answers] == ["event: answer\n"] * len(pages)
        async with asyncio.timeout(5):  # the oldest is asked to connect again later
            assert await pages[0].content.read() == b"retry: 10000\n\n"
        assert [page.content.at_eof() for page in pages[1:]] == [False] * server.LIVE_PAGES
        again = own | {"Last-Event-ID": answers[0].rpartition("id: ")[2].strip()}
        async with reader.session.get(f"{reader.url}/events/now", headers=again) as page:
            with pytest.raises(TimeoutError):  # it shows this version already
                await asyncio.wait_for(page.content.readline(), 0.2)


async def test_a_live_page_that_was_left_has_no_place(start: Start) -> None:
    reader = await start(recorded(HEALTHY))
    own = {"Authorization": f"Bearer {reader.console.guard.token}"}
    async with reader.session.get(f"{reader.url}/events/now", headers=own) as page:
        await page.content.readline()
        assert len(reader.console._live) == 1
        page.close()
    async with asyncio.timeout(1):
        while reader.console._live:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_the_openapi_document_is_valid() -> None:
    document = json.loads(json.dumps(openapi_document(PAGES)))
    validate_openapi(document)
    assert [*document["paths"]] == [f"/api/v1/{page.name}" for page in PAGES]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", NAMES)
async def test_answers_have_the_form_of_the_openapi_document(
    start: Start, name: str, world: str
) -> None:
    reader = await start(recorded(WORLDS[world]))
    status, text, headers = await reader.ask(f"/api/v1/{name}")
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    answer = json.loads(text)
    assert answer == json.loads(json.dumps(document_of(WORLDS[world][name])))
    served = json.loads((await reader.ask("/api/v1/openapi.json"))[1])
    ok = served["paths"][f"/api/v1/{name}"]["get"]["responses"]["200"]
    schema = ok["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**schema, "components": served["components"]}).validate(answer)


def test_vendored_scripts_are_those_of_their_packages() -> None:
    known = json.loads((VENDORED / "vendored.json").read_text())
    assert {*known} == {path.name for path in VENDORED.glob("*.min.js")}
    for name, entry in known.items():
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == entry["sha256"]
        assert "BSD" in (VENDORED / entry["licenceFile"]).read_text()


async def test_cells_have_the_titles_of_their_columns(start: Start) -> None:
    """Narrow windows show a row as a paragraph."""
    reader = await start(recorded(BROKEN))
    _, html, _ = await reader.ask("/now")
    table = html[html.index("<tbody>") : html.index("</tbody>")]
    labels = re.findall(r'<t[hd] data-label="(.*?)"', table)
    titles = ["Node", "State", "Revision", "Target", "Restarts", "Leader", "Image"]
    assert labels == titles * len(BROKEN_STATUS.nodes)


async def test_commands_of_hints_can_be_copied(start: Start) -> None:
    hint = "see kubectl scheduler status --verbose; kubectl scheduler rollout undo reverts the edit"
    answer = replace(
        BROKEN_STATUS, problems=[replace(one, hint=hint) for one in BROKEN_STATUS.problems[:1]]
    )
    reader = await start(recorded({"now": answer}), context="prod")
    _, html, _ = await reader.ask("/now")
    problem = html[html.index('id="problems"') : html.index(">Then<")]
    assert re.findall("<code>(.*?)</code>", problem) == [
        "kubectl scheduler status --verbose --context=prod",
        "kubectl scheduler rollout undo --context=prod",
    ]


async def test_a_page_that_another_one_leads_to_is_shown_as_a_part_of_it(start: Start) -> None:
    reader = await start(recorded(HEALTHY))
    _, html, _ = await reader.ask("/compare")
    assert '<a href="/rollout" aria-current="true">' in html


async def test_a_changed_flag_is_not_the_head_of_a_file(start: Start) -> None:
    _, html, _ = await (await start(recorded(BROKEN))).ask("/compare")
    lines = re.findall(r'<span class="(\w+)">(.*?)</span>', html)
    assert {("same", "--- revision-2/flags"), ("same", "+++ revision-3/flags")} <= {*lines}
    assert {("removed", "---v=2"), ("added", "+--v=3")} <= {*lines}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
async def test_no_page_shows_the_end_of_a_line_as_a_letter(
    start: Start, world: dict[str, Any]
) -> None:
    reader = await start(recorded(world))
    for name in NAMES:
        _, html, _ = await reader.ask(f"/{name}")
        assert "\\n" not in html, name


async def test_the_settings_of_the_operator_are_shown(start: Start) -> None:
    _, html, _ = await (await start(recorded(BROKEN))).ask("/now")
    assert "sets pods.priorityClass; placementCheck Hold" in html


async def test_objects_that_the_reader_may_not_see_are_not_called_absent(start: Start) -> None:
    problem = StatusProblem(names.LOAD_POLICIES_DEGRADED, "NoData", "0 of 5 nodes", "wait")
    notes = [
        "SchedulerExtenders are not shown: no permission to list schedulerextenders",
        "LoadPolicies are not shown: no permission to list loadpolicies",
    ]
    status = replace(
        BROKEN_STATUS,
        scheduler_extenders=(),
        load_policies=(),
        notes=notes,
        problems=[*BROKEN_STATUS.problems, problem],
    )
    _, html, _ = await (await start(recorded({"extenders": of_status(status)}))).ask("/extenders")
    assert "exists" not in html
    assert html.count("</svg> Not known</span>: ") == 2
    assert "0 of 5 nodes" in html, "problems with these kinds come first"
    assert "NodeInstallerDegraded" not in html


async def test_a_failed_rollout_has_what_to_do(start: Start) -> None:
    failed = replace(BROKEN["rollout"], outcome="failed")
    _, html, _ = await (await start(recorded({"rollout": failed}))).ask("/rollout")
    assert '<a href="#undo">undo it</a>' in html
    assert html.count('id="undo"') == 1
