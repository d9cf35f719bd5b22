"""One answer per context: none delays or hides another, and the exit code is the worst."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.cli.answers.status import read_status
from kube_scheduler_operator.cli.cluster import answers
from kube_scheduler_operator.cli.cluster.connection import ClusterConnection
from kube_scheduler_operator.cli.commands import status
from kube_scheduler_operator.kube.resource import SCHEDULERS

from ..commands.test_status import healthy
from ..conftest import Cluster, Done


@dataclass
class Contexts:
    """A cluster in a kubeconfig with further contexts."""

    cluster: Cluster
    silent: str  # the address of a server that never responds

    def write(self, *names: str) -> None:
        url = self.cluster.api.url
        servers = {"silent": self.silent, "gone": "http://127.0.0.1:9"}
        hangs = {"exec": {"apiVersion": _EXEC, "command": "sleep", "args": ["3"]}}
        users = {"expired": {"token": "bad"}, "plugin": hangs}
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": names[0],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": name}} for name in names
            ],
            "clusters": [
                {"name": name, "cluster": {"server": servers.get(name, url)}} for name in names
            ],
            "users": [{"name": name, "user": users.get(name, {"token": "good"})} for name in names],
        }
        self.cluster.kubeconfig.write_text(yaml.safe_dump(document))

    async def run(self, *arguments: str) -> Done:
        return await self.cluster.run(*arguments)


class _EndedError(BaseException):
    """The end of a watch in a thread, which no signal reaches."""


_EXEC = "client.authentication.k8s.io/v1"


@pytest.fixture
async def contexts(cluster: Cluster) -> AsyncIterator[Contexts]:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    healthy(cluster)
    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield Contexts(cluster, f"http://127.0.0.1:{port}")
    server.close()


async def test_each_answer_is_below_the_name_of_its_context(contexts: Contexts) -> None:
    contexts.write("a", "b", "c")
    one = (await contexts.run("status", "--context", "a")).out
    done = await contexts.run("status", "--context", "a, c")
    assert (done.code, done.err) == (0, "")
    indented = "".join(f"  {line}\n" if line else "\n" for line in one.split("\n")[:-1])
    for name in "ac":
        assert f"Context {name}\n{indented}\n" in done.out
    assert done.out.endswith("2 contexts; exit code 0: a, c\n")
    document = json.loads((await contexts.run("status", "--all-contexts", "-o", "json")).out)
    assert list(document) == ["a", "b", "c"]
    assert document["a"] == document["b"]
    assert document["a"] == json.loads((await contexts.run("status", "-o", "json")).out)


async def test_contexts_without_an_answer_neither_delay_nor_hide_the_others(
    contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "REACH", 0.5)
    contexts.write("gone", "silent", "expired", "plugin", "good")
    begun = time.monotonic()
    done = await contexts.run("status", "--all-contexts")
    assert time.monotonic() - begun < 20
    assert done.code == 1
    for name, part in (
        ("gone", "Connection refused"),
        ("silent", "get /version"),
        ("expired", "401"),
        ("plugin", "the credentials were not loaded within 0.5 s"),
    ):
        after = done.out.partition(f"Context {name}\n  error: ")[2].partition("\n")[0]
        assert part in after, done.out
    assert "Context good\n  Scheduler  Available=True" in done.out
    assert "exit code 0: good; no answer: gone, silent, expired, plugin\n" in done.out
    document = json.loads((await contexts.run("status", "--all-contexts", "-o", "json")).out)
    assert document["good"]["healthy"]
    assert list(document["gone"]) == ["error"]


async def test_what_one_api_server_sends_ends_no_other_answer(
    contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts.write("odd", "good")
    read = read_status

    async def odd(api: Any, platform: Any, **flags: Any) -> Any:
        if (await api.credentials.access()).context == "odd":
            raise KeyError("\x1b[31mmetadata")
        return await read(api, platform, **flags)

    monkeypatch.setattr(status, "read_status", odd)
    done = await contexts.run("status", "--all-contexts")
    assert "Context odd\n  error: not known: KeyError: " in done.out
    assert "\x1b" not in done.out
    assert "Context good\n  Scheduler  Available=True" in done.out


async def test_a_name_of_a_context_forges_no_exit_code(contexts: Contexts) -> None:
    contexts.write("x; exit code 0: y", "a")
    done = await contexts.run("status", "--all-contexts")
    assert done.out.endswith('2 contexts; exit code 0: "x; exit code 0: y", a\n')


async def test_a_context_that_stops_responding_ends(
    contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts.write("a", "b")
    question = answers.ClusterQuestion(_never, seconds=lambda _args: 0.2)
    done = await _asked(contexts, question, monkeypatch)
    assert done.code == 1
    assert done.out.count("error: no answer within 0.2 s") == 2


async def test_a_bounded_number_is_asked_at_once(
    contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts.write(*"abcde")
    now = most = 0

    async def ask(_connection: ClusterConnection) -> answers.ClusterAnswer:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.05)
        now -= 1
        return answers.ClusterAnswer({}, "")

    done = await _asked(contexts, answers.ClusterQuestion(ask, at_once=2), monkeypatch)
    assert (done.code, most) == (0, 2)


async def _never(_connection: ClusterConnection) -> answers.ClusterAnswer:
    await asyncio.sleep(60)
    raise AssertionError


async def _asked(
    contexts: Contexts, question: answers.ClusterQuestion, monkeypatch: pytest.MonkeyPatch
) -> Done:
    from kube_scheduler_operator.cli.commands import status

    monkeypatch.setattr(status, "ClusterQuestion", lambda *_, **__: question)
    return await contexts.run("status", "--all-contexts")


async def test_remarks_name_their_context(contexts: Contexts) -> None:
    contexts.write("a", "b")
    contexts.cluster.api.fail(403, path="/schedulerprofiles", times=None)
    done = await contexts.run("status", "--all-contexts")
    notes = sorted(done.err.splitlines())
    assert [note.partition("note:")[0] for note in notes] == ["context a: ", "context b: "]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--context", "a,x,y"), '--context: context "x" does not exist; the contexts are a, b'),
        (("--context", "a,"), '"a," has an empty name'),
        (("--context", "a", "--all-contexts"), "cannot be combined with --context"),
    ],
)
@pytest.mark.parametrize("command", ["status", "pending", "check"])
async def test_a_wrong_choice(
    contexts: Contexts, command: str, arguments: tuple[str, ...], part: str
) -> None:
    contexts.write("a", "b")
    done = await contexts.run(command, *arguments)
    assert done.code == 2
    assert part in done.err
    assert contexts.cluster.api.seen == []


async def test_one_context_that_does_not_exist_is_answered_with_those_that_do(
    contexts: Contexts,
) -> None:
    contexts.write("a", "b")
    done = await contexts.run("history", "--context", "x")
    assert done.code == 1
    assert 'context "x" does not exist; the contexts are a, b' in done.err


async def test_a_name_with_a_comma_is_one_context(contexts: Contexts) -> None:
    contexts.write("a,b", "b")
    done = await contexts.run("status", "--context", "a,b")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Scheduler ")


async def test_what_an_answer_quotes_cannot_look_like_a_context(contexts: Contexts) -> None:
    contexts.write("a", "b")
    scheduler = {"metadata": {"name": "cluster"}, "spec": {"profile": "x\nContext forged\n\x1b[2J"}}
    contexts.cluster.put(SCHEDULERS, scheduler)
    done = await contexts.run("status", "--all-contexts")
    headings = sorted(line for line in done.out.splitlines() if line.startswith("Context"))
    assert headings == ["Context a", "Context b"]
    assert "\x1b" not in done.out


async def test_watch_prints_the_context_that_changed(
    contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "INTERVAL", 0.01)
    contexts.write("a", "b")
    asked = 0

    async def ask(_connection: ClusterConnection) -> answers.ClusterAnswer:
        nonlocal asked
        asked += 1
        if asked > 8:
            raise _EndedError
        return answers.ClusterAnswer({"n": asked // 4}, f"answer {asked // 4}")

    monkeypatch.setattr(
        "kube_scheduler_operator.cli.commands.status.ClusterQuestion",
        lambda *_, **__: answers.ClusterQuestion(ask, "the state"),
    )
    with pytest.raises(BaseExceptionGroup):
        await contexts.run("status", "--all-contexts", "-w")
    out = contexts.cluster.capsys.readouterr().out
    assert "context a: the state has changed" in out
    assert out.count("answer 0") == 2
    assert out.count("answer 1") == 2


def test_a_watch_works_a_fifth_of_the_time() -> None:
    assert answers.pause_after(0.1) == answers.INTERVAL
    assert answers.pause_after(30.0) == 120.0
