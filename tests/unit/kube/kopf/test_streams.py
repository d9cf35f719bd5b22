"""The streams, settings and login that kopf is given, and the private names of kopf they need."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import importlib
import inspect
import itertools
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import watching
from kopf._cogs.structs.references import Resource as KopfResource
from kopf._core.reactor import queueing

from kube_scheduler_operator.base.backoff import Backoff
from kube_scheduler_operator.kube.api import LeftOut
from kube_scheduler_operator.kube.credentials import Access, Credentials
from kube_scheduler_operator.kube.errors import CredentialsError
from kube_scheduler_operator.kube.kopf import imports, settings, streams
from kube_scheduler_operator.kube.oversized import LEFT_OUT, identity
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, PODS, Stream, WatchSpec

QUICK = settings.Tuning(relist=Backoff((0.001,)))


def listed(name: str, uid: str, kind: str | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ops", "uid": uid, "resourceVersion": "7"}
    return {"type": kind, "object": {"metadata": metadata, "data": {"big": "x"}}}


def shorter(events: list[Any]) -> list[Any]:
    return [
        event
        if isinstance(event, watching.Bookmark)
        else (event["type"], event["object"]["metadata"]["uid"])
        for event in events
    ]


async def streamed(
    monkeypatch: pytest.MonkeyPatch, rounds: list[list[Any]], count: int, **table: Any
) -> list[Any]:
    """The first `count` events for these `rounds` of kopf's stream."""
    remaining = iter(rounds)

    async def infinite_watch(**_: Any) -> AsyncIterator[Any]:
        for event in next(remaining):
            if isinstance(event, Exception):
                raise event
            yield event

    monkeypatch.setattr(streams, "infinite_watch", infinite_watch)
    made = streams.Streams(
        [WatchSpec(CONFIG_MAPS, "ops")],
        tuning=QUICK,
        listed=table.get("listed", lambda _: None),
        failed=table.get("failed", lambda *_: None),
    )
    out: list[Any] = []
    stream: Any = made.watch(
        settings=kopf.OperatorSettings(),
        resource=dataclasses.replace(CONFIG_MAPS),
        namespace="ops",
    )
    async with aclosing(stream) as events, asyncio.timeout(2):
        async for event in events:
            out.append(event)
            if len(out) == count:
                return out
    return out


LISTED = watching.Bookmark.LISTED


async def test_deletion_of_a_replaced_object_comes_before_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = await streamed(
        monkeypatch,
        [[listed("a", "old"), LISTED], [listed("a", "new"), LISTED]],
        5,
    )
    assert shorter(out) == [(None, "old"), LISTED, ("DELETED", "old"), (None, "new"), LISTED]


async def test_deletions_of_vanished_objects_come_before_the_bookmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = await streamed(
        monkeypatch,
        [[listed("a", "1"), listed("b", "2"), LISTED], [listed("b", "2"), LISTED]],
        6,
    )
    assert shorter(out)[3:] == [(None, "2"), ("DELETED", "1"), LISTED]


async def test_an_object_that_a_list_leaves_out_is_deleted_when_a_list_lacks_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = listed("a", "1")
    large["object"] = {**identity(LeftOut("ConfigMap", "ops", "a", "1", "a size"))}
    out = await streamed(monkeypatch, [[listed("a", "1"), LISTED], [large, LISTED], [LISTED]], 6)
    assert shorter(out)[2:] == [("DELETED", "1"), LISTED, ("DELETED", "1"), LISTED]
    assert [LEFT_OUT in event["object"] for event in (out[2], out[4])] == [True, False]


async def test_incomplete_list_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [listed("a", "1"), OSError("broken")]
    out = await streamed(
        monkeypatch,
        [[listed("a", "1"), listed("b", "2"), LISTED], broken, [listed("b", "2"), LISTED]],
        7,
    )
    assert shorter(out)[3:] == [(None, "1"), (None, "2"), ("DELETED", "1"), LISTED]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
async def test_a_stream_that_is_closed_beside_its_sources_is_not_requested_again(
    monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    """kopf drops streams unclosed; the loop closes all generators that are garbage side by side."""
    requests: list[int] = []
    failures: list[Exception] = []
    generators: list[AsyncGenerator[Any, None]] = []

    async def infinite_watch(**_: Any) -> AsyncIterator[Any]:
        requests.append(1)
        yield LISTED
        await asyncio.Event().wait()

    monkeypatch.setattr(streams, "infinite_watch", infinite_watch)
    made = streams.Streams(
        [WatchSpec(CONFIG_MAPS, "ops")],
        tuning=QUICK,
        listed=lambda _: None,
        failed=lambda _, error: failures.append(error),
    )
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=generators.append)
    try:
        stream = made.watch(settings=kopf.OperatorSettings(), resource=CONFIG_MAPS, namespace="ops")
        assert await anext(stream) is LISTED
    finally:
        sys.set_asyncgen_hooks(*before)
    closing = [asyncio.create_task(generators[index].aclose()) for index in order]
    _, unfinished = await asyncio.wait(closing, timeout=1)
    assert (len(requests), failures, unfinished) == (1, [], set())


async def test_object_that_the_watch_deleted_is_not_deleted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = await streamed(
        monkeypatch,
        [[listed("a", "1"), LISTED, listed("a", "1", "DELETED")], [LISTED]],
        4,
    )
    assert shorter(out) == [(None, "1"), LISTED, ("DELETED", "1"), LISTED]


async def test_late_deletion_of_a_replaced_object_does_not_hide_that_of_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = await streamed(
        monkeypatch,
        [[LISTED, listed("a", "new", "ADDED"), listed("a", "old", "DELETED")], [LISTED]],
        5,
    )
    assert shorter(out)[3:] == [("DELETED", "new"), LISTED]


async def test_stream_counts_as_listed_after_the_events_of_its_list_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marks: list[Stream] = []
    out = await streamed(
        monkeypatch,
        [[listed("a", "1"), LISTED, listed("a", "1", "MODIFIED")]],
        3,
        listed=marks.append,
    )
    assert marks == []
    out[0][streams.TICKET].settle()
    assert marks == [Stream(CONFIG_MAPS, "ops")]
    assert streams.TICKET not in out[2]


async def test_undeclared_streams_stay_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "infinite_watch", lambda **_: pytest.fail("sent a request"))
    made = streams.Streams(
        [WatchSpec(CONFIG_MAPS, "ops")],
        tuning=QUICK,
        listed=lambda _: None,
        failed=lambda *_: None,
    )
    for resource, namespace in [(CONFIG_MAPS, "kube-system"), (PODS, "ops"), (PODS, None)]:
        stream: Any = made.watch(
            settings=kopf.OperatorSettings(), resource=resource, namespace=namespace
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(aiter(stream))


REMEDY = (
    "kopf has changed a private name that kube/kopf uses. Either pin kopf>=1.45.2,<1.46 in "
    "pyproject.toml, or adapt kube/kopf/imports.py and kube/kopf/streams.py to: {}"
)


def test_kopf_looks_up_its_stream_generator_in_the_module_where_it_is_replaced() -> None:
    change = REMEDY.format("_core.reactor.queueing.watcher calls _cogs.clients.watching")
    source = inspect.getsource(queueing.watcher)
    assert "watching.infinite_watch(" in source, change
    assert "watching.Bookmark" in source, change
    assert vars(queueing)["watching"] is watching, change


def test_stream_generator_of_kopf_can_run_one_round() -> None:
    change = REMEDY.format("_cogs.clients.watching.infinite_watch and Bookmark")
    parameters = {"settings", "resource", "namespace", "operator_paused", "_iterations"}
    assert set(inspect.signature(imports.infinite_watch).parameters) == parameters, change
    assert inspect.isasyncgenfunction(imports.infinite_watch), change
    assert [mark.name for mark in watching.Bookmark] == ["LISTED"], change


@pytest.mark.parametrize("name", imports.LOGGERS.values())
def test_logger_of_kopf_exists_under_the_name_that_is_silenced(name: Any) -> None:
    change = REMEDY.format(f"the logger of the module {name}")
    source = inspect.getsource(importlib.import_module(name))
    assert "logger = logging.getLogger(__name__)" in source, change


def test_warnings_that_are_silenced_are_still_those_of_kopf() -> None:
    sources = {
        name: inspect.getsource(importlib.import_module(logger))
        for name, logger in imports.LOGGERS.items()
    }
    change = REMEDY.format("the messages of these loggers; remove the entry from LOGGERS")
    assert "logger.warning" in sources["watching"], change
    assert "Unresolved resources cannot be served" in sources["kinds"], change
    assert "OS signals are ignored" in sources["running"], change


def test_changed_kopf_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def infinite_watch(*, settings: Any, kind: Any) -> AsyncIterator[Any]:
        yield None

    monkeypatch.setattr(imports, "infinite_watch", infinite_watch)
    with pytest.raises(RuntimeError, match="pin kopf"):
        streams.install(streams.Streams([], tuning=QUICK, listed=print, failed=print))


def test_other_operators_in_the_process_use_the_original_stream_generator() -> None:
    made = streams.Streams([], tuning=QUICK, listed=print, failed=print)
    contextvars.copy_context().run(streams.install, made)
    assert watching.infinite_watch is streams._dispatch
    stream: Any = watching.infinite_watch(
        settings=kopf.OperatorSettings(), resource=None, namespace=None
    )
    assert stream.ag_code is imports.infinite_watch.__code__


def test_each_stream_has_the_selectors_of_its_watch() -> None:
    watch = WatchSpec(PODS, "ops", label_selector="a=b", field_selector="metadata.name=x")
    base = kopf.OperatorSettings()
    settings.configure(base, QUICK)
    narrowed = streams._narrowed(base, watch, watch.label_selector)
    pods = KopfResource(group="", version="v1", plural="pods", namespaced=True)
    assert narrowed.watching.label_selectors.collect(pods) == ["a=b"]
    assert narrowed.watching.field_selectors.collect(pods) == ["metadata.name=x"]
    assert narrowed.watching.server_timeout == base.watching.server_timeout
    assert base.watching.label_selectors.collect(pods) == []


def test_lists_are_read_in_pages() -> None:
    base = kopf.OperatorSettings()
    settings.configure(base, QUICK)
    assert base.watching.chunk_size == 500


def test_settings_make_kopf_only_watch() -> None:
    result = kopf.OperatorSettings()
    settings.configure(result, settings.Tuning())
    assert result.queueing.worker_limit is None  # with indices a limit dead-locks kopf
    assert result.scanning.disabled
    assert not result.posting.enabled
    assert result.process.ultimate_exiting_timeout is None
    assert result.watching.server_timeout == 300
    assert result.watching.inactivity_timeout == 70


def test_storages_store_nothing() -> None:
    body = kopf.Body({"metadata": {"annotations": {}}, "spec": {"a": 1}})
    patch = kopf.Patch()
    configured = kopf.OperatorSettings()
    settings.configure(configured, settings.Tuning())
    diffbase: Any = configured.persistence.diffbase_storage
    progress: Any = configured.persistence.progress_storage
    essence = diffbase.build(body=body)
    diffbase.store(body=body, patch=patch, essence=essence)
    progress.store(key="x", record={}, body=body, patch=patch)
    progress.purge(key="x", body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="x")
    assert essence == {}
    assert diffbase.fetch(body=body) is None
    assert progress.fetch(key="x", body=body) is None
    assert progress.clear(essence=essence) is essence
    assert not patch


def test_kopf_is_quiet_below_warnings() -> None:
    settings.quiet()
    assert not logging.getLogger("kopf.objects").isEnabledFor(logging.INFO)
    assert not logging.getLogger("kopf._cogs.clients.watching").isEnabledFor(logging.WARNING)


async def test_early_login_reloads_credentials_and_backs_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads: list[int] = []

    def load() -> Access:
        loads.append(1)
        return Access(server="https://api", authorization="Bearer t", files=())

    login = settings.Login(Credentials(load), failed=lambda _: None, backoff=Backoff((0.0, 0.02)))
    loop = asyncio.get_running_loop()
    first = await login.connection()
    await login.connection()
    before = loop.time()
    await login.connection()
    assert loop.time() - before >= 0.02
    assert len(loads) == 3
    assert (first.scheme, first.token) == ("Bearer", "t")
    assert first.expiration is not None


async def test_login_waits_for_credentials_and_reports_the_error() -> None:
    reasons: list[Exception] = []
    answers: list[CredentialsError | Access] = [
        CredentialsError("no kubeconfig"),
        Access(server="https://api"),
    ]

    def load() -> Access:
        answer = answers.pop(0)
        if isinstance(answer, CredentialsError):
            raise answer
        return answer

    login = settings.Login(Credentials(load), failed=reasons.append, backoff=Backoff((0.0, 0.001)))
    assert (await login.connection()).server == "https://api"
    assert [str(reason) for reason in reasons] == ["no kubeconfig"]


def test_tls_server_name_is_refused() -> None:
    access = Access(server="https://10.0.0.1", tls_server_name="kubernetes")
    with pytest.raises(CredentialsError, match="tls-server-name"):
        settings.connection_info(access, datetime.datetime.now(datetime.UTC))
