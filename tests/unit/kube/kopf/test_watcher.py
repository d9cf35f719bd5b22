"""Watches recover from every fault without lost or stale objects."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kube_scheduler_operator.base.backoff import Backoff
from kube_scheduler_operator.kube.credentials import Access, Credentials
from kube_scheduler_operator.kube.kopf.settings import Tuning
from kube_scheduler_operator.kube.kopf.watcher import Watcher
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    NODES,
    PODS,
    SCHEDULERS,
    Resource,
    Stream,
    WatchSpec,
)
from kube_scheduler_operator.kube.store import Store

QUICK = Tuning(
    requests=Backoff((0.01, 0.01)),
    relist=Backoff.exponential(0.01, 0.05),
    reconnect=0.01,
    discovery=0.02,
    restart=Backoff.exponential(0.02, 0.05),
    check=0.02,
)
CONFIG = WatchSpec(CONFIG_MAPS, "ops")


class RecordedWatcher(Watcher):
    """A watcher that also records what it logs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.failures: list[tuple[Stream | None, Exception]] = []
        self.waits: list[tuple[str, ...]] = []
        self.lists = 0

    def _failed(self, stream: Stream | None, error: Exception) -> None:
        super()._failed(stream, error)
        self.failures.append((stream, error))

    def _post_listed(self, stream: Stream, life: int) -> None:
        super()._post_listed(stream, life)
        self.lists += 1

    def _report_missing(self, missing: tuple[Resource, ...]) -> None:
        before = self.missing
        super()._report_missing(missing)
        if before != missing:
            self.waits.append(tuple(map(str, missing)))


class Cluster:
    """A watcher that feeds a store, and everything that it delivered."""

    def __init__(self, watches: list[WatchSpec], tuning: Tuning = QUICK) -> None:
        self.store = Store()
        self.events: list[tuple[str, str, str]] = []
        self.marks: list[Stream] = []
        self.evidence: list[str] = []
        self.watcher = RecordedWatcher(
            watches,
            on_event=self.on_event,
            on_listed=self.on_listed,
            on_rewound=self.evidence.append,
            tuning=tuning,
        )
        self.failures, self.waits = self.watcher.failures, self.watcher.waits

    def on_event(self, resource: Any, kind: str, obj: Any) -> None:
        self.events.append((kind, obj["metadata"]["name"], obj["metadata"]["uid"]))
        if kind == "DELETED":
            self.store.remove(resource, obj)
        else:
            self.store.put(resource, obj)

    def on_listed(self, stream: Stream) -> None:
        self.store.mark_listed(stream)
        self.marks.append(stream)

    def names(self, resource: Any = CONFIG_MAPS) -> set[str]:
        return {obj["metadata"]["name"] for obj in self.store.view().list(resource)}

    async def until(self, condition: Any) -> None:
        try:
            async with asyncio.timeout(20):
                while not condition():  # noqa: ASYNC110 - the condition has no event
                    await asyncio.sleep(0.002)
        except TimeoutError:
            pytest.fail(f"not reached; events {self.events}, failures {self.failures}")


@asynccontextmanager
async def watching(
    api: Any,
    *watches: WatchSpec,
    tuning: Tuning = QUICK,
    credentials: Credentials | None = None,
) -> AsyncIterator[Any]:
    cluster = Cluster(list(watches) or [CONFIG], tuning)
    stop = asyncio.Event()
    task = asyncio.create_task(cluster.watcher.run(credentials or api.credentials(), stop))
    try:
        yield cluster
        assert not task.done(), "the watcher ended"
    finally:
        stop.set()
        await task


@pytest.fixture
def five(api: Any) -> Any:
    for name in "abcde":
        api.put(CONFIG_MAPS, name, "ops")
    return api


async def test_existing_objects_are_delivered_before_the_stream_counts_as_listed(five: Any) -> None:
    async with watching(five) as cluster:
        await cluster.until(lambda: cluster.marks)
        assert cluster.names() == set("abcde")
        assert cluster.store.synced(cluster.watcher.streams)
        assert cluster.watcher.ages()[CONFIG.stream] < 5


async def test_an_empty_kind_counts_as_listed_too(api: Any) -> None:
    async with watching(api) as cluster:
        await cluster.until(lambda: cluster.marks == [CONFIG.stream])
        assert cluster.names() == set()


async def test_changed_objects_are_delivered_complete(api: Any) -> None:
    async with watching(api) as cluster:
        await cluster.until(lambda: cluster.marks)
        api.put(CONFIG_MAPS, "config", "ops", data={"config.yaml": "{}"})
        await cluster.until(cluster.names)
        (obj,) = cluster.store.view().list(CONFIG_MAPS)
        assert obj["data"] == {"config.yaml": "{}"}


async def test_deletions_during_a_clean_disconnect_are_delivered(five: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        await five.end_watches(CONFIG_MAPS)
        five.remove(CONFIG_MAPS, "c", "ops")
        await cluster.until(lambda: cluster.names() == set("abde"))


async def test_objects_lost_across_410_in_the_stream_are_reported_deleted(five: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        await five.send_error(CONFIG_MAPS, 410)
        five.remove(CONFIG_MAPS, "b", "ops")
        five.remove(CONFIG_MAPS, "d", "ops")
        five.lose_history()
        await cluster.until(lambda: len(cluster.marks) > 1)
        assert cluster.watcher.lists == 2
        assert cluster.names() == set("ace")
        deleted = [name for kind, name, _ in cluster.events if kind == "DELETED"]
        assert sorted(deleted) == ["b", "d"]


async def test_object_recreated_under_the_same_name_across_410_is_the_new_one(five: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        old = cluster.store.view().get(CONFIG_MAPS, "c", "ops")
        await five.send_error(CONFIG_MAPS, 410)
        five.remove(CONFIG_MAPS, "c", "ops")
        new = five.put(CONFIG_MAPS, "c", "ops")
        five.lose_history()
        await cluster.until(lambda: len(cluster.marks) > 1)
        stored = cluster.store.view().get(CONFIG_MAPS, "c", "ops")
        assert stored["metadata"]["uid"] == new["metadata"]["uid"]
        assert ("DELETED", "c", old["metadata"]["uid"]) in cluster.events


@pytest.mark.parametrize("code", [500, 404, 403, 504])
async def test_error_of_another_code_in_the_stream_lists_again(five: Any, code: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        await five.send_error(CONFIG_MAPS, code)
        five.remove(CONFIG_MAPS, "a", "ops")
        await cluster.until(lambda: cluster.names() == set("bcde"))
        assert [stream for stream, _ in cluster.failures] == [CONFIG.stream]


async def test_invalid_data_in_the_stream_lists_again(five: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        await five.send_raw(CONFIG_MAPS, b'{"type": "MODIFIED", "obj')
        five.remove(CONFIG_MAPS, "a", "ops")
        await cluster.until(lambda: cluster.names() == set("bcde"))


async def test_http_410_on_the_watch_lists_again(five: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        five.fail(410, path="configmaps", method="WATCH")
        await five.end_watches(CONFIG_MAPS)
        five.remove(CONFIG_MAPS, "a", "ops")
        five.lose_history()
        await cluster.until(lambda: cluster.names() == set("bcde"))


async def test_deleted_and_recreated_crd_is_watched_again(api: Any) -> None:
    api.put(SCHEDULERS, "cluster")
    async with watching(api, WatchSpec(SCHEDULERS), CONFIG) as cluster:
        await api.until_watched(SCHEDULERS)
        await cluster.until(lambda: len(cluster.marks) == 2)
        api.served.discard(SCHEDULERS)
        await api.end_watches(SCHEDULERS)
        await cluster.until(lambda: len(cluster.failures) > 1)
        api.put(CONFIG_MAPS, "other", "ops")
        await cluster.until(lambda: cluster.names() == {"other"})
        api.served.add(SCHEDULERS)
        api.put(SCHEDULERS, "second")
        await cluster.until(lambda: cluster.names(SCHEDULERS) == {"cluster", "second"})


OPTIONAL = WatchSpec(SCHEDULERS, optional=True)
SOON = dataclasses.replace(QUICK, appearing=0.05)


async def test_optional_kind_may_be_missing_and_served_later(five: Any) -> None:
    five.served.discard(SCHEDULERS)
    async with watching(five, OPTIONAL, CONFIG, tuning=SOON) as cluster:
        await cluster.until(lambda: cluster.marks)
        assert cluster.watcher.missing == (SCHEDULERS,)
        assert cluster.watcher.streams == (CONFIG.stream,)
        assert set(cluster.watcher.ages()) == {CONFIG.stream}
        assert cluster.store.synced(cluster.watcher.streams)
        five.put(SCHEDULERS, "cluster")
        five.served.add(SCHEDULERS)
        await cluster.until(lambda: cluster.names(SCHEDULERS) == {"cluster"})
        assert cluster.watcher.missing == ()
        await cluster.until(lambda: OPTIONAL.stream in cluster.marks)
        assert cluster.store.synced(cluster.watcher.streams)
        five.put(CONFIG_MAPS, "f", "ops")
        await cluster.until(lambda: cluster.names() == set("abcdef"))
    assert cluster.failures == [], "a missing optional kind is not an error"


async def test_newly_served_kind_counts_as_not_listed_until_it_is(five: Any) -> None:
    """Otherwise its objects would seem to be deleted for a moment."""
    five.served.discard(SCHEDULERS)
    async with watching(five, OPTIONAL, CONFIG, tuning=SOON) as cluster:
        await cluster.until(lambda: cluster.marks)
        five.fail(500, path="schedulers", times=10_000)
        five.served.add(SCHEDULERS)
        await cluster.until(lambda: not cluster.watcher.missing)
        assert not cluster.store.synced(cluster.watcher.streams)


async def test_required_kinds_are_waited_for(five: Any) -> None:
    five.served -= {SCHEDULERS, PODS}
    async with watching(five, OPTIONAL, WatchSpec(PODS, "ops"), CONFIG, tuning=SOON) as cluster:
        await cluster.until(lambda: cluster.waits)
        await asyncio.sleep(0.1)
        assert cluster.marks == []
        five.served.add(PODS)
        await cluster.until(lambda: len(cluster.marks) == 2)
        assert cluster.watcher.missing == (SCHEDULERS,)


@pytest.mark.parametrize("code", [500, 503, 403])
@pytest.mark.parametrize("times", [1, 9], ids=["within-backoffs", "beyond-backoffs"])
async def test_refused_watches_are_retried_until_they_succeed(
    five: Any, code: Any, times: Any
) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        five.fail(code, path="configmaps", times=times)
        await five.end_watches(CONFIG_MAPS)
        five.remove(CONFIG_MAPS, "a", "ops")
        await cluster.until(lambda: cluster.names() == set("bcde"))
        assert bool(cluster.failures) == (times > 1)


async def test_reset_connection_is_opened_again(five: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        await five.reset_watches(CONFIG_MAPS)
        five.remove(CONFIG_MAPS, "a", "ops")
        await cluster.until(lambda: cluster.names() == set("bcde"))


async def test_outage_of_the_api_server_with_lost_history(five: Any) -> None:
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        await five.stop()
        five.remove(CONFIG_MAPS, "a", "ops")
        five.lose_history()
        await asyncio.sleep(0.1)
        await five.start()
        await cluster.until(lambda: cluster.names() == set("bcde"))


async def test_outage_of_the_api_server_at_the_start(five: Any) -> None:
    await five.stop()
    async with watching(five) as cluster:
        await cluster.until(lambda: cluster.failures)
        assert "no connection to http://127.0.0.1" in str(cluster.failures[0][1])
        await five.start()
        await cluster.until(lambda: cluster.names() == set("abcde"))


async def test_discovery_may_fail_for_longer_than_the_backoff(five: Any) -> None:
    async with watching(five) as cluster:
        five.fail(503, path="/apis", times=7)
        await cluster.until(lambda: cluster.names() == set("abcde"))


async def test_kind_missing_at_the_start_is_named_and_waited_for(
    api: Any, caplog: pytest.LogCaptureFixture
) -> None:
    api.served.discard(SCHEDULERS)
    with caplog.at_level(logging.WARNING):
        async with watching(api, WatchSpec(SCHEDULERS), CONFIG) as cluster:
            await cluster.until(lambda: cluster.waits)
            assert cluster.waits == [("schedulers.config.openshift.io",)]
            assert "schedulers.config.openshift.io" in caplog.text
            api.served.add(SCHEDULERS)
            await cluster.until(lambda: len(cluster.marks) == 2)
            assert cluster.waits[-1] == ()
            assert cluster.watcher.missing == ()


async def test_rejected_token_is_read_again(five: Any) -> None:
    token = ["good"]
    rotating = Credentials(lambda: Access(server=five.url, authorization=f"Bearer {token[0]}"))
    async with watching(five, credentials=rotating) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        token[0], five.tokens = "better", {"better"}
        await five.end_watches(CONFIG_MAPS)
        five.remove(CONFIG_MAPS, "a", "ops")
        await cluster.until(lambda: cluster.names() == set("bcde"))


async def test_only_declared_streams_are_requested_each_with_its_selectors(api: Any) -> None:
    api.put(PODS, "yes", "ops", labels={"app": "installer"})
    api.put(PODS, "no", "ops", labels={"app": "else"})
    api.put(PODS, "kube-scheduler-a", "kube-system", labels={"app": "else"})
    api.put(CONFIG_MAPS, "elsewhere", "kube-system")
    async with watching(
        api,
        CONFIG,
        WatchSpec(PODS, "ops", label_selector="app=installer"),
        WatchSpec(PODS, "kube-system"),
        WatchSpec(SCHEDULERS, field_selector="metadata.name=cluster"),
    ) as cluster:
        await cluster.until(lambda: len(cluster.marks) == 4)
        await api.until_watched(PODS, 2)
        assert cluster.names(PODS) == {"yes", "kube-scheduler-a"}
        assert cluster.names() == set()
        requested = {
            (seen.path, seen.query.get("labelSelector"), seen.query.get("fieldSelector"))
            for seen in api.seen
            if not seen.path.startswith("/api") or seen.path.count("/") > 3
        }
        assert requested == {
            ("/api/v1/namespaces/ops/configmaps", None, None),
            ("/api/v1/namespaces/ops/pods", "app=installer", None),
            ("/api/v1/namespaces/kube-system/pods", None, None),
            (SCHEDULERS.path(), None, "metadata.name=cluster"),
        }


async def test_cluster_wide_watch_of_a_namespaced_kind_is_one_stream(api: Any) -> None:
    api.put(PODS, "a", "one")
    api.put(PODS, "b", "two")
    async with watching(api, WatchSpec(PODS), CONFIG, WatchSpec(NODES)) as cluster:
        await cluster.until(lambda: len(cluster.marks) == 3)
        assert cluster.names(PODS) == {"a", "b"}
        lists = [seen for seen in api.requests("GET", "/pods") if "watch" not in seen.query]
        assert [seen.path for seen in lists] == ["/api/v1/pods"]


async def test_watching_writes_nothing(five: Any) -> None:
    async with watching(five) as cluster:
        await cluster.until(lambda: cluster.marks)
        five.put(CONFIG_MAPS, "a", "ops", data={"x": "1"})
        await cluster.until(lambda: ("MODIFIED", "a") in {e[:2] for e in cluster.events})
    assert {seen.method for seen in five.seen} == {"GET"}


async def test_stuck_kopf_restarts_without_lost_objects(
    five: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons: list[str] = []
    monkeypatch.setattr(Watcher, "_stuck", lambda *_: reasons.pop() if reasons else "")
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        reasons.append("configmaps has delivered nothing")
        await cluster.until(lambda: cluster.failures)
        five.remove(CONFIG_MAPS, "a", "ops")
        five.lose_history()
        await cluster.until(lambda: cluster.names() == set("bcde"))
    assert [str(error) for _, error in cluster.failures] == ["configmaps has delivered nothing"]


@pytest.mark.parametrize(
    ("opened", "received_ago", "running", "reason"),
    [
        (True, 10, 10_000, ""),
        (True, 1000, 10_000, "configmaps in ops has delivered nothing for 1000 s"),
        (True, 1000, 100, ""),
        (True, None, 100, ""),
        (True, None, 1000, "configmaps in ops has delivered nothing for 1000 s"),
        (False, None, 30, ""),
        (False, None, 61, "kopf has not opened configmaps in ops"),
    ],
    ids=[
        "fine",
        "silent",
        "silent-but-just-started-again",
        "nothing-received-yet",
        "never-received",
        "starting",
        "never-opened",
    ],
)
def test_reason_to_restart_kopf(opened: Any, received_ago: Any, running: Any, reason: Any) -> None:
    watcher = Cluster([CONFIG], Tuning()).watcher
    state = watcher._streams.states[CONFIG.stream]
    state.opened = opened
    state.received_at = None if received_ago is None else time.monotonic() - received_ago
    assert watcher._stuck(running) == reason


async def test_signal_handlers_and_tasks_of_the_process_stay(five: Any) -> None:
    loop = asyncio.get_running_loop()
    got = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, got.set)
    async with watching(five) as cluster:
        await cluster.until(lambda: cluster.marks)
        later = asyncio.create_task(asyncio.sleep(3600))
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(1):
            await got.wait()
    loop.remove_signal_handler(signal.SIGTERM)
    assert not later.done()
    later.cancel()


async def test_bodies_never_reach_the_log(five: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="kube_scheduler_operator"):
        async with watching(five) as cluster:
            await cluster.until(lambda: cluster.marks)
            five.put(CONFIG_MAPS, "a", "ops", data={"key": "s3cret"})
            await cluster.until(lambda: ("MODIFIED", "a") in {e[:2] for e in cluster.events})
            await five.send_error(CONFIG_MAPS, 500)
            await cluster.until(lambda: len(cluster.marks) > 1)
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("watches", "message"),
    [
        ([CONFIG, CONFIG], "watched twice"),
        ([WatchSpec(PODS), WatchSpec(PODS, "ops")], "watched twice"),
        ([], "no watches"),
    ],
    ids=["same", "everywhere-and-one", "none"],
)
def test_overlapping_watches_are_refused(watches: Any, message: Any) -> None:
    with pytest.raises(ValueError, match=message):
        Cluster(watches)


def test_cluster_scoped_kind_takes_no_namespace() -> None:
    with pytest.raises(ValueError, match="cluster-scoped"):
        WatchSpec(SCHEDULERS, "ops")


async def test_a_list_that_is_older_than_before_shows_a_restore_of_etcd(five: Any) -> None:
    backup = five.back_up()
    async with watching(five) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        five.put(CONFIG_MAPS, "a", "ops")
        await cluster.until(lambda: len(cluster.events) == 6)
        five.restore(backup)
        await five.send_error(CONFIG_MAPS, 410)
        await cluster.until(lambda: cluster.evidence)
        assert "a has resourceVersion" in cluster.evidence[0]


async def test_everything_is_listed_again_after_a_restore(five: Any) -> None:
    backup = five.back_up()
    async with watching(five, tuning=dataclasses.replace(QUICK, check=0.01)) as cluster:
        await five.until_watched(CONFIG_MAPS)
        await cluster.until(lambda: cluster.marks)
        five.remove(CONFIG_MAPS, "a", "ops")
        five.put(CONFIG_MAPS, "lost", "ops")
        await cluster.until(lambda: cluster.names() == set("bcde") | {"lost"})
        five.restore(backup)
        cluster.store.clear()
        cluster.watcher.start_over("a restore")
        await cluster.until(lambda: cluster.names() == set("abcde"))
        await cluster.until(lambda: cluster.store.synced(cluster.watcher.streams))
        await five.until_watched(CONFIG_MAPS)
        five.put(CONFIG_MAPS, "new", "ops")
        await cluster.until(lambda: "new" in cluster.names())


async def test_a_silent_stream_is_listed_again(five: Any) -> None:
    async with watching(five, tuning=dataclasses.replace(QUICK, quiet=0.2)) as cluster:
        await cluster.until(lambda: len(cluster.marks) >= 3)
        assert "no event and no bookmark within 0.2 s" in str(cluster.failures[0][1])
