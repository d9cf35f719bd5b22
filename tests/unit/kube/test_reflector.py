"""A reflector follows the API through all faults of the connection."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base.backoff import NO_RETRIES, Backoff
from kube_scheduler_operator.kube.client import ApiClient, Patience
from kube_scheduler_operator.kube.protobuf import METADATA, Message, part
from kube_scheduler_operator.kube.reflector import Decoding, Reflector, ReflectorTuning, Selection
from kube_scheduler_operator.kube.resource import NODES, PODS

from ...hostile_objects import large_pod

if TYPE_CHECKING:
    from kube_scheduler_operator.kube.api import Object

    from .conftest import FakeApi

NAMES = Message(part(1, "metadata", Message(*METADATA)))
QUICK = ReflectorTuning(batch=0.002, silence=20.0, backoff=Backoff.exponential(0.01, 0.05), page=3)


class Copy:
    """A receiver that keeps the objects."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.removed: list[str] = []
        self.calls = 0
        self.bad = ""

    def set(self, obj: Object) -> None:
        self.calls += 1
        if obj["metadata"]["name"] == self.bad:
            raise ValueError("cannot read this one")
        self.objects[obj["metadata"]["name"]] = obj

    def remove(self, obj: Object) -> None:
        self.removed.append(obj["metadata"]["name"])
        self.objects.pop(obj["metadata"]["name"], None)


@contextlib.asynccontextmanager
async def following(
    api: FakeApi, copy: Copy, tuning: ReflectorTuning = QUICK, **more: Any
) -> AsyncIterator[Reflector]:
    async with ApiClient(
        api.credentials(), field_manager="test", patience=Patience(backoff=NO_RETRIES)
    ) as client:
        reflector = Reflector(client, more.pop("resource", NODES), copy, tuning=tuning, **more)
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.002)


async def test_objects_are_listed_in_pages_and_then_watched(api: FakeApi) -> None:
    for number in range(8):
        api.put(NODES, f"n{number}")
    copy = Copy()
    async with following(api, copy) as reflector:
        await asyncio.wait_for(reflector.synced(), 20)
        assert set(copy.objects) == {f"n{number}" for number in range(8)}
        assert copy.objects["n0"]["kind"] == "Node"
        assert len(api.requests("GET", "/nodes")) >= 3
        await api.until_watched(NODES)
        api.put(NODES, "new", spec={"a": 1})
        api.put(NODES, "n0", spec={"a": 2})
        api.remove(NODES, "n1")
        await until(lambda: copy.removed == ["n1"])
        assert copy.objects["new"]["spec"] == {"a": 1}
        assert copy.objects["n0"]["spec"] == {"a": 2}
        assert (reflector.state.events, reflector.state.lists) == (3, 1)
        assert reflector.state.version == str(api.version)


async def test_expired_list_is_repeated_in_larger_pages(api: FakeApi) -> None:
    """All of 100,000 Pods do not fit into memory, and what was deleted meanwhile is removed."""
    for number in range(20):
        api.put(NODES, f"n{number:02}")
    copy = Copy()
    fault = api.fail(410, path="nodes")

    def expired(request: Any) -> bool:
        if "continue" not in request.query:
            return False
        api.remove(NODES, "n00")
        return True

    fault.matches = expired
    async with following(api, copy) as reflector:
        await asyncio.wait_for(reflector.synced(), 20)
        assert set(copy.objects) == {f"n{number:02}" for number in range(1, 20)}
        lists = [seen for seen in api.requests("GET", "/nodes") if "watch" not in seen.query]
        assert [seen.query["limit"] for seen in lists] == ["3", "3", "15", "15"]


async def test_requests_have_selectors_and_bookmarks(api: FakeApi) -> None:
    selection = Selection("shop", label_selector="app=web")
    api.put(PODS, "p", "shop", labels={"app": "web"})
    api.put(PODS, "q", "shop", labels={"app": "db"})
    api.put(PODS, "r", "other", labels={"app": "web"})
    copy = Copy()
    async with following(api, copy, resource=PODS, selection=selection):
        await api.until_watched(PODS)
        assert set(copy.objects) == {"p"}
    (watch,) = [seen for seen in api.seen if "watch" in seen.query]
    assert watch.path == "/api/v1/namespaces/shop/pods"
    assert watch.query["labelSelector"] == "app=web"
    assert watch.query["allowWatchBookmarks"] == "true"
    assert 300 <= int(watch.query["timeoutSeconds"]) <= 600


@pytest.mark.parametrize("how", ["end_watches", "reset_watches"])
async def test_ended_watch_continues_at_its_version(api: FakeApi, how: str) -> None:
    api.put(NODES, "a")
    copy = Copy()
    async with following(api, copy) as reflector:
        for number in range(3):
            await api.until_watched(NODES)
            api.put(NODES, f"n{number}")
            await until(lambda n=number: f"n{n}" in copy.objects)  # type: ignore[misc]
            await getattr(api, how)(NODES)
            await until(lambda: not api.watches)
        assert reflector.state.lists == 1
        assert copy.calls == 4  # nothing twice


async def test_bookmarks_advance_the_version(api: FakeApi) -> None:
    copy = Copy()
    async with following(api, copy) as reflector:
        await api.until_watched(NODES)
        line = (
            b'{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"777"}}}\n'
        )
        await api.send_raw(NODES, line)
        await until(lambda: reflector.state.version == "777")
        assert copy.calls == 0


async def test_expired_version_causes_a_new_list(api: FakeApi) -> None:
    api.put(NODES, "stays")
    api.put(NODES, "goes")
    api.put(NODES, "again")
    copy = Copy()
    async with following(api, copy) as reflector:
        await api.until_watched(NODES)
        await api.stop()
        api.remove(NODES, "goes")
        api.remove(NODES, "again")
        api.put(NODES, "again")
        api.put(NODES, "new")
        api.lose_history()
        await api.start()
        await until(lambda: reflector.state.lists == 2)
        assert set(copy.objects) == {"stays", "again", "new"}
        assert sorted(copy.removed) == ["again", "goes"]
        assert reflector.state.synced


async def test_replaced_object_of_the_same_name_is_removed_first(api: FakeApi) -> None:
    api.put(NODES, "again")
    copy = Copy()
    async with following(api, copy) as reflector:
        await api.until_watched(NODES)
        await api.stop()
        api.remove(NODES, "again")
        api.put(NODES, "again")
        api.lose_history()
        await api.start()
        await until(lambda: reflector.state.lists == 2)
        assert "again" in copy.objects
        assert copy.removed == ["again"]


@pytest.mark.parametrize("code", [410, 500, 429])
async def test_error_event_is_retried(api: FakeApi, code: int) -> None:
    api.put(NODES, "a")
    copy = Copy()
    async with following(api, copy) as reflector:
        await api.until_watched(NODES)
        await api.send_error(NODES, code)
        await until(lambda: len([s for s in api.seen if "watch" in s.query]) == 2)
        assert reflector.state.lists == (2 if code == 410 else 1)
        await api.until_watched(NODES)
        api.put(NODES, "b")
        await until(lambda: "b" in copy.objects)


@pytest.mark.parametrize("code", [403, 404, 429, 500, 503])
async def test_failed_list_is_retried(
    api: FakeApi, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    api.put(NODES, "a")
    api.fail(code, path="/nodes", times=3, headers={"Retry-After": "0"})
    copy = Copy()
    async with following(api, copy) as reflector:
        await asyncio.wait_for(reflector.synced(), 20)
        assert set(copy.objects) == {"a"}
        assert reflector.state.failures == 3
        assert reflector.state.problem == ""
    assert caplog.text.count("Cannot list or watch, will retry") == 1  # once for the same trouble


async def test_expired_token_is_read_again(api: FakeApi) -> None:
    api.put(NODES, "a")
    copy = Copy()
    async with following(api, copy):
        await api.until_watched(NODES)
        api.tokens = {"better"}
        await api.end_watches(NODES)
        await until(lambda: any(seen for seen in api.seen[3:]))
        api.tokens = {"good"}
        api.put(NODES, "b")
        await until(lambda: "b" in copy.objects)


async def test_outage_of_the_api_is_retried(api: FakeApi) -> None:
    await api.stop()
    copy = Copy()
    async with following(api, copy) as reflector:
        await until(lambda: reflector.state.failures >= 3)
        assert not reflector.state.synced
        assert "no connection" in reflector.state.problem
        api.put(NODES, "a")
        await api.start()
        await asyncio.wait_for(reflector.synced(), 20)
        assert set(copy.objects) == {"a"}


async def test_watch_that_ends_at_once_is_retried_with_backoff(api: FakeApi) -> None:
    from aiohttp import web

    def empty(_: web.Request) -> web.Response:
        return web.Response(body=b"")

    from .conftest import Fault

    api.faults.append(Fault(lambda request: "watch" in request.query, empty, None))
    copy = Copy()
    async with following(api, copy, ReflectorTuning(backoff=Backoff((0.2,)))) as reflector:
        await asyncio.wait_for(reflector.synced(), 20)
        await asyncio.sleep(0.5)
        assert 1 <= len([seen for seen in api.seen if "watch" in seen.query]) <= 5
        assert "ended" in reflector.state.problem


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n", b'{"type":"ADDED"}\n', b"\n\n"])
async def test_invalid_data_in_a_watch_is_retried(api: FakeApi, line: bytes) -> None:
    copy = Copy()
    async with following(api, copy):
        await api.until_watched(NODES)
        await api.send_raw(NODES, line)
        api.put(NODES, "a")
        await until(lambda: "a" in copy.objects)


async def test_object_that_the_receiver_rejects_is_skipped(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    copy = Copy()
    copy.bad = "bad"
    api.put(NODES, "bad")
    api.put(NODES, "good")
    async with following(api, copy):
        await api.until_watched(NODES)
        api.put(NODES, "bad", spec={})
        api.put(NODES, "better")
        await until(lambda: "better" in copy.objects)
        assert set(copy.objects) == {"good", "better"}
    assert caplog.text.count("Cannot process an object") == 2


async def test_long_lines_arrive_complete(api: FakeApi) -> None:
    copy = Copy()
    async with following(api, copy):
        await api.until_watched(NODES)
        for number in range(5):
            api.put(NODES, f"n{number}", spec={"text": "x" * 300_000})
        await until(lambda: len(copy.objects) == 5)
        assert all(len(obj["spec"]["text"]) == 300_000 for obj in copy.objects.values())


async def test_changes_are_read_in_batches(api: FakeApi) -> None:
    """The number of changes is independent of their timing."""
    copy = Copy()
    async with following(api, copy) as reflector:
        await api.until_watched(NODES)
        for number in range(500):
            api.put(NODES, f"n{number}")
            if number % 50 == 0:
                await asyncio.sleep(0.003)
        await until(lambda: len(copy.objects) == 500)
        assert reflector.state.events == 500


async def test_changes_come_as_protobuf_with_the_listed_fields(api: FakeApi) -> None:
    api.protobuf = True
    api.put(PODS, "listed", "shop", spec={"nodeName": "a"})
    copy = Copy()
    async with following(api, copy, resource=PODS, decoding=Decoding(fields=NAMES)) as reflector:
        await api.until_watched(PODS)
        api.put(PODS, "new", "shop", spec={"nodeName": "a"}, labels={"app": "web"})
        api.put(PODS, "listed", "shop", spec={"nodeName": "b"})
        api.remove(PODS, "new", "shop")
        await until(lambda: copy.removed == ["new"])
        assert set(copy.objects["listed"]) == {"metadata"}
        assert set(copy.objects["listed"]["metadata"]) == {
            "name", "namespace", "uid", "resourceVersion"
        }  # fmt: skip
        assert (reflector.state.events, reflector.state.failures) == (3, 0)
        assert reflector.state.version == str(api.version)
    (watch,) = [seen for seen in api.seen if "watch" in seen.query]
    assert watch.headers["Accept"].startswith("application/vnd.kubernetes.protobuf;stream=watch,")


async def test_json_from_a_server_without_protobuf(api: FakeApi) -> None:
    copy = Copy()
    async with following(api, copy, resource=PODS, decoding=Decoding(fields=NAMES)) as reflector:
        await api.until_watched(PODS)
        api.put(PODS, "new", "shop", spec={"nodeName": "a"})
        await until(lambda: "new" in copy.objects)
        assert copy.objects["new"]["spec"] == {"nodeName": "a"}
        assert reflector.state.failures == 0


async def test_json_is_requested_after_invalid_protobuf(api: FakeApi) -> None:
    api.protobuf = True
    copy = Copy()
    async with following(api, copy, resource=PODS, decoding=Decoding(fields=NAMES)) as reflector:
        await api.until_watched(PODS)
        await api.send_raw(PODS, b"\0\0\0\2\x0b\x0b")
        await until(lambda: reflector.state.failures == 1)
        api.put(PODS, "new", "shop", spec={"nodeName": "a"})
        await until(lambda: "new" in copy.objects)
        assert copy.objects["new"]["spec"] == {"nodeName": "a"}
        assert reflector.state.lists == 1


async def test_expired_version_is_recognized_in_protobuf(api: FakeApi) -> None:
    api.protobuf = True
    copy = Copy()
    async with following(api, copy, resource=PODS, decoding=Decoding(fields=NAMES)) as reflector:
        await api.until_watched(PODS)
        await api.send_error(PODS, 410)
        await until(lambda: reflector.state.lists == 2)
        assert reflector.state.failures == 0


@pytest.mark.parametrize("outage", [True, False], ids=["outage", "silence"])
async def test_objects_after_a_restore_of_etcd_are_seen(api: FakeApi, outage: bool) -> None:
    """The version of the watch does not exist any more, so the API server sends nothing."""
    api.put(NODES, "old")
    backup = api.back_up()
    copy = Copy()
    tuning = dataclasses.replace(QUICK, silence=0.3, outage=0.05 if outage else 60.0)
    async with following(api, copy, tuning) as reflector:
        await reflector.synced()
        await api.until_watched(NODES)
        for number in range(5):
            api.put(NODES, f"lost-{number}")
        await until(lambda: len(copy.objects) == 6)
        if outage:
            await api.stop()
            api.restore(backup)
            await asyncio.sleep(0.2)
            await api.start()
        else:
            api.restore(backup)
            await api.end_watches(NODES)
        await api.until_watched(NODES)
        api.put(NODES, "new")
        await until(lambda: set(copy.objects) == {"old", "new"})
        assert reflector.state.rewinds == 1


async def test_an_object_that_is_too_large_is_left_out_of_a_list(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        api.put(PODS, f"p{number}", "shop")
    api.put(PODS, "hostile", "shop", spec=large_pod("hostile")["spec"])
    copy = Copy()
    async with following(api, copy, resource=PODS) as reflector:
        await asyncio.wait_for(reflector.synced(), 20)
        assert set(copy.objects) == {f"p{number}" for number in range(5)}
        assert reflector.state.failures == 0
    assert "Pod shop/hostile has more than 100000 values and is left out" in caplog.text


async def test_an_object_that_becomes_too_large_is_removed_and_the_watch_goes_on(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    api.put(PODS, "hostile", "shop")
    copy = Copy()
    async with following(api, copy, resource=PODS) as reflector:
        await api.until_watched(PODS)
        assert set(copy.objects) == {"hostile"}
        api.put(PODS, "hostile", "shop", spec=large_pod("hostile")["spec"])
        api.put(PODS, "after", "shop")
        await until(lambda: "after" in copy.objects)
        assert set(copy.objects) == {"after"}
        assert copy.removed == ["hostile"]
        assert (reflector.state.failures, reflector.state.lists) == (0, 1)
        assert reflector.state.version == str(api.version)
        api.put(PODS, "hostile", "shop", spec={})
        await until(lambda: "hostile" in copy.objects)
    assert "Pod shop/hostile has more than 100000 values and is left out" in caplog.text


async def test_selected_fields_of_a_large_object_are_read(api: FakeApi) -> None:
    api.protobuf = True
    copy = Copy()
    async with following(api, copy, resource=PODS, decoding=Decoding(fields=NAMES)) as reflector:
        await api.until_watched(PODS)
        api.put(PODS, "hostile", "shop", spec=large_pod("hostile")["spec"])
        await until(lambda: "hostile" in copy.objects)
        assert reflector.state.failures == 0
