"""The client's requests, responses and retries."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base.backoff import NO_RETRIES, Backoff
from kube_scheduler_operator.kube import errors
from kube_scheduler_operator.kube.api import Api, Propagation
from kube_scheduler_operator.kube.client import DRY_RUN, ApiClient, Patience, Writes
from kube_scheduler_operator.kube.credentials import Access, Credentials
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    PODS,
    SCHEDULERS,
    SERVICE_ACCOUNTS,
    ObjectRef,
)
from kube_scheduler_operator.kube.server_clock import ServerClock

CONFIG = ObjectRef(CONFIG_MAPS, "ops", "config")


def body(**rest: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "ops", "name": "config", **rest.pop("metadata", {})},
        **rest,
    }


@pytest.fixture
async def client(api: Any) -> AsyncIterator[Any]:
    async with ApiClient(
        api.credentials(), field_manager="me", patience=Patience(2, Backoff((0.001, 0.001)))
    ) as made:
        yield made


async def test_is_an_api(client: Any) -> None:
    as_api: Api = client  # the protocol that all callers depend on
    with pytest.raises(errors.NotFound):
        await as_api.get(CONFIG)


async def test_objects_are_written_and_read_back(api: Any, client: Any) -> None:
    created = await client.create(CONFIG_MAPS, body(data={"a": "1"}))
    read = await client.get(CONFIG)
    assert read == created
    replaced = await client.replace(CONFIG_MAPS, read | {"data": {"a": "2"}})
    patched = await client.patch(CONFIG, {"data": {"b": "3"}})
    assert patched["data"] == {"a": "2", "b": "3"}
    assert int(patched["metadata"]["resourceVersion"]) > int(
        replaced["metadata"]["resourceVersion"]
    )
    await client.delete(CONFIG)
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG)


async def test_writes_have_a_field_manager_and_all_requests_a_user_agent(
    api: Any, client: Any
) -> None:
    await client.create(CONFIG_MAPS, body())
    await client.replace(CONFIG_MAPS, body())
    assert [seen.query for seen in api.seen] == [{"fieldManager": "me"}] * 2
    assert api.seen[0].headers["User-Agent"] == "me"


@pytest.mark.parametrize(
    ("method", "content_type", "query"),
    [
        ("patch", "application/merge-patch+json", {}),
        ("apply", "application/apply-patch+yaml", {"force": "true"}),
    ],
)
async def test_patch_has_the_content_type_of_its_format(
    api: Any, client: Any, method: str, content_type: str, query: dict[str, str]
) -> None:
    api.put(SCHEDULERS, "cluster")
    ref = ObjectRef(SCHEDULERS, None, "cluster")
    api.fail(500, method="PATCH", times=1)
    with pytest.raises(errors.Unavailable):
        await getattr(client, method)(ref, {"spec": {}})
    (seen,) = api.seen
    assert seen.path == SCHEDULERS.path(None, "cluster")
    assert seen.headers["Content-Type"] == content_type
    assert seen.query == {"fieldManager": "me", **query}


async def test_a_subresource_is_replaced_at_its_own_path(api: Any, client: Any) -> None:
    scheduler = api.put(SCHEDULERS, "cluster")
    api.fail(500, method="PUT", times=1)
    with pytest.raises(errors.Unavailable):
        await client.replace(SCHEDULERS, scheduler, subresource="status")
    assert [seen.path for seen in api.seen] == [SCHEDULERS.path(None, "cluster", "status")]


async def test_replace_of_a_changed_object_is_a_conflict(api: Any, client: Any) -> None:
    old = await client.create(CONFIG_MAPS, body())
    api.put(CONFIG_MAPS, "config", "ops", data={})
    with pytest.raises(errors.Conflict):
        await client.replace(CONFIG_MAPS, old)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
async def test_an_object_that_is_not_json_is_invalid_and_never_sent(
    api: Any, client: Any, value: Any
) -> None:
    with pytest.raises(errors.Invalid, match="the object cannot be written as JSON"):
        await client.create(CONFIG_MAPS, body(data={"a": value}))
    assert api.seen == []


async def test_an_object_that_is_nested_too_deep_is_invalid_and_never_sent(
    api: Any, client: Any
) -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(errors.Invalid, match="the object cannot be written as JSON"):
        await client.create(CONFIG_MAPS, body(data=deep))


async def test_create_of_an_existing_object(api: Any, client: Any) -> None:
    api.put(CONFIG_MAPS, "config", "ops")
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIG_MAPS, body())


async def test_delete_sends_its_preconditions(api: Any, client: Any) -> None:
    uid = api.put(CONFIG_MAPS, "config", "ops")["metadata"]["uid"]
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG, uid="another")
    await client.delete(
        CONFIG,
        uid=uid,
        grace_period_seconds=0,
        propagation=Propagation.FOREGROUND,
    )
    assert api.seen[-1].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": uid},
    }


async def test_list_is_complete_selected_and_typed(
    api: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube_scheduler_operator.kube.client.PAGE", 2)
    for name in "abcde":
        api.put(CONFIG_MAPS, name, "ops", labels={"app": "x"})
    api.put(CONFIG_MAPS, "other", "ops", labels={"app": "y"})
    found = await client.list(CONFIG_MAPS, "ops", label_selector="app=x")
    assert [obj["metadata"]["name"] for obj in found.items] == list("abcde")
    assert {(obj["apiVersion"], obj["kind"]) for obj in found.items} == {("v1", "ConfigMap")}
    assert found.resource_version == str(api.version)
    assert len(api.seen) == 3


async def test_objects_of_a_page_are_reduced_before_the_next_page_is_read(
    api: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube_scheduler_operator.kube.client.PAGE", 2)
    for name in "abcde":
        api.put(CONFIG_MAPS, name, "ops")
    pages: list[int] = []

    def name_of(obj: Any) -> dict[str, Any]:
        pages.append(len(api.seen))
        return {"name": obj["metadata"]["name"], "kind": obj["kind"]}

    found = await client.list(CONFIG_MAPS, "ops", keep=name_of)
    assert found.items == [{"name": name, "kind": "ConfigMap"} for name in "abcde"]
    assert pages == [1, 1, 2, 2, 3]


async def test_list_with_expired_pages_is_repeated_in_larger_pages(
    api: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube_scheduler_operator.kube.client.PAGE", 2)
    for name in "abcde":
        api.put(CONFIG_MAPS, name, "ops")

    fault = api.fail(410, path="configmaps")
    fault.matches = lambda request: "continue" in request.query
    found = await client.list(CONFIG_MAPS)
    assert [obj["metadata"]["name"] for obj in found.items] == list("abcde")
    assert [seen.query["limit"] for seen in api.seen] == ["2", "2", "10"]


async def test_dry_run_is_passed_to_the_server(api: Any) -> None:
    async with ApiClient(api.credentials(), field_manager="me", writes=DRY_RUN) as client:
        await client.create(CONFIG_MAPS, body())
        await client.patch(CONFIG, {})
        await client.delete(CONFIG)
    assert [seen.query.get("dryRun") for seen in api.seen] == ["All", "All", None]
    assert api.seen[-1].body["dryRun"] == ["All"]


async def test_reads_are_retried_while_the_server_is_unavailable(api: Any, client: Any) -> None:
    api.put(CONFIG_MAPS, "config", "ops")
    api.fail(503, times=2)
    assert (await client.get(CONFIG))["metadata"]["name"] == "config"


async def test_retries_of_reads_are_limited(api: Any, client: Any) -> None:
    api.fail(503, times=None)
    with pytest.raises(errors.Unavailable):
        await client.get(CONFIG)
    assert len(api.seen) == 3


@pytest.mark.parametrize("fault", ["500", "dropped"])
async def test_write_that_the_server_may_have_received_is_not_retried(
    api: Any, client: Any, fault: Any
) -> None:
    if fault == "500":
        api.fail(500, method="POST")
    else:
        api.drop_connection(method="POST")
    with pytest.raises(errors.Unavailable) as caught:
        await client.create(CONFIG_MAPS, body())
    assert caught.value.delivered
    assert len(api.requests("POST")) == 1


async def test_write_that_never_reached_the_server_is_retried(api: Any, client: Any) -> None:
    await api.stop()
    writing = asyncio.create_task(
        _patient(api, lambda patient: patient.create(CONFIG_MAPS, body()))
    )
    await asyncio.sleep(0.02)
    await api.start()
    assert (await writing)["metadata"]["name"] == "config"
    assert len(api.requests("POST")) == 1


async def _patient(api: Any, action: Any) -> Any:
    async with ApiClient(
        api.credentials(), field_manager="me", patience=Patience(backoff=Backoff((0.01,) * 200))
    ) as patient:
        return await action(patient)


async def test_throttled_write_is_retried_after_retry_after(api: Any, client: Any) -> None:
    api.fail(429, headers={"Retry-After": "0"}, times=2)
    await client.create(CONFIG_MAPS, body())
    assert len(api.requests("POST")) == 3


async def test_long_retry_after_is_an_error(api: Any, client: Any) -> None:
    api.fail(429, headers={"Retry-After": "600"}, times=None)
    with pytest.raises(errors.TooManyRequests) as caught:
        await client.get(CONFIG)
    assert caught.value.retry_after == 600
    assert len(api.seen) == 1


async def test_every_group_of_an_impersonated_user_is_sent(api: Any) -> None:
    headers = (("Impersonate-User", "u"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    access = Access(server=api.url, authorization="Bearer good", impersonation=headers)
    received = []

    async def respond(request: web.Request) -> Any:
        received.append(request.headers.getall("Impersonate-Group"))
        return web.json_response({})

    api.routes["/version"] = respond
    async with ApiClient(Credentials(lambda: access), field_manager="me") as client:
        await client.get_path("/version")
    assert received == [["a", "b"]]


async def test_rejected_token_is_read_again_once(api: Any) -> None:
    tokens = iter(["stale", "good"])
    credentials = Credentials(
        lambda: Access(server=api.url, authorization=f"Bearer {next(tokens)}")
    )
    api.put(CONFIG_MAPS, "config", "ops")
    async with ApiClient(credentials, field_manager="me") as client:
        await client.get(CONFIG)
    assert [seen.headers["Authorization"] for seen in api.seen] == ["Bearer stale", "Bearer good"]


async def test_token_that_stays_rejected_is_an_error(api: Any, client: Any) -> None:
    api.tokens.clear()
    with pytest.raises(errors.Unauthorized):
        await client.get(CONFIG)
    assert len(api.seen) == 2


async def test_refused_connection_names_the_server(api: Any, client: Any) -> None:
    await api.stop()
    with pytest.raises(errors.Unavailable) as caught:
        await client.get(CONFIG)
    assert not caught.value.delivered
    assert str(caught.value) == (
        f"get {CONFIG.path}: no connection to {api.url}: Connection refused; "
        "check that the API server is running"
    )


async def test_slow_server_is_a_timeout(api: Any) -> None:
    api.faults.append(_slow())
    async with ApiClient(
        api.credentials(), field_manager="me", patience=Patience(0.05, NO_RETRIES)
    ) as client:
        with pytest.raises(errors.Unavailable, match=r"no response from .* within 0\.05 s"):
            await client.get(CONFIG)


def _slow() -> Any:
    from aiohttp import web

    class Slow:
        def __call__(self, request: Any) -> bool:
            return True

        def answer(self, request: Any) -> web.StreamResponse:
            class Never(web.Response):
                async def prepare(self, request: Any) -> Any:
                    await asyncio.sleep(0.3)
                    return await super().prepare(request)

            return Never()

    return Slow()


async def test_response_that_is_not_json_is_an_error(api: Any, client: Any) -> None:
    from aiohttp import web

    fault = api.fail(200, times=None)
    fault.answer = lambda _: web.Response(text="<html>login</html>")
    with pytest.raises(errors.Unavailable, match="is that of an API server"):
        await client.get(CONFIG)


async def test_observer_receives_every_attempt(api: Any) -> None:
    attempts: list[tuple[str, str, str]] = []

    def observe(*, method: str, host: str, code: str, seconds: float) -> None:
        assert seconds > 0
        attempts.append((method, host, code))

    async with ApiClient(
        api.credentials(),
        field_manager="me",
        observer=observe,
        patience=Patience(backoff=Backoff((0.001,))),
    ) as client:
        api.put(CONFIG_MAPS, "config", "ops")
        api.fail(503)
        await client.get(CONFIG)
        await api.stop()
        with pytest.raises(errors.Unavailable):
            await client.create(CONFIG_MAPS, body())
    host = f"127.0.0.1:{api.port}"
    assert attempts[:2] == [("GET", host, "503"), ("GET", host, "200")]
    assert attempts[2] == ("POST", host, "<error>")


async def test_create_without_a_namespace_is_refused(client: Any) -> None:
    with pytest.raises(ValueError, match="namespace"):
        await client.create(CONFIG_MAPS, {"metadata": {"name": "x"}})


async def test_closed_client_raises_an_error(api: Any) -> None:
    with pytest.raises(RuntimeError, match="context manager"):
        await ApiClient(api.credentials(), field_manager="me").get(CONFIG)


async def test_text_subresource_is_returned_unchanged(api: Any, client: Any) -> None:
    async def log(request: web.Request) -> Any:
        return web.Response(text='{"level":"info"}\n17\n')

    api.routes["/log"] = log
    text = await client.get_text(ObjectRef(PODS, "ops", "p"), "log", container="c")
    assert text == '{"level":"info"}\n17\n'
    assert api.seen[0].query == {"container": "c"}


async def test_forbidden_text_subresource_is_an_error(api: Any, client: Any) -> None:
    api.fail(403, path="/log", message='pods "p" is forbidden: User "u" cannot get resource')
    with pytest.raises(errors.Forbidden, match=r"pods/log") as caught:
        await client.get_text(ObjectRef(PODS, "ops", "p"), "log")
    assert caught.value.rule.endswith('resources: ["pods/log"], verbs: ["get"]')


async def test_create_in_a_subresource(api: Any, client: Any) -> None:
    async def token(request: web.Request) -> Any:
        return web.json_response({"status": {"token": "t"}}, status=201)

    api.routes["/token"] = token
    made = await client.create_in(ObjectRef(SERVICE_ACCOUNTS, "ops", "sa"), "token", {"spec": {}})
    assert made["status"]["token"] == "t"
    assert (api.seen[0].method, api.seen[0].body) == ("POST", {"spec": {}})


async def test_watch_of_a_hanging_server_is_aborted_at_once(served: Any) -> None:
    """Over TLS, whose graceful shutdown would wait for the server."""

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        reading = writer.transport
        assert isinstance(reading, asyncio.Transport)
        reading.pause_reading()
        await gone.wait()
        writer.transport.abort()

    gone = asyncio.Event()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(served.certificate, served.key)
    server = await asyncio.start_server(hang, "127.0.0.1", 0, ssl=tls)
    access = Access(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", verify=False)
    async with ApiClient(Credentials(lambda: access), field_manager="me") as client:
        request = errors.ApiRequest("watch", "/api/v1/pods", PODS)
        async with client.stream(request, {"watch": "1"}, silence=60.0) as response:
            assert response.connection
            assert response.connection.transport
            socket = response.connection.transport.get_extra_info("socket")
            assert socket.fileno() >= 0
    await asyncio.sleep(0)
    assert socket.fileno() < 0
    gone.set()
    server.close()
    await server.wait_closed()


async def test_a_process_that_may_not_write_sends_reads_only(api: Any) -> None:
    """Also in a retry: it may have been suspended meanwhile."""
    api.put(CONFIG_MAPS, "a", "ops")
    allowed = iter([True, False])
    api.fail(429, method="POST", times=1, headers={"Retry-After": "0"})
    async with ApiClient(
        api.credentials(), field_manager="test", writes=Writes(lambda: next(allowed))
    ) as client:
        assert await client.get(ObjectRef(CONFIG_MAPS, "ops", "a"))
        body = {"metadata": {"name": "b", "namespace": "ops"}}
        with pytest.raises(errors.NotLeadingError, match="was not sent"):
            await client.create(CONFIG_MAPS, body)
    assert len(api.requests("POST", "configmaps")) == 1


async def test_the_clock_follows_the_header_date(api: Any) -> None:
    clock = ServerClock(wall=lambda: 0.0)
    async with ApiClient(api.credentials(), field_manager="test", clock=clock) as client:
        await client.get_path("/api/v1")
    assert abs(clock.now().timestamp() - time.time()) < 3.0


async def test_the_clock_does_not_follow_servers_behind_the_api_server(api: Any) -> None:
    """The aggregation layer passes their header Date on."""
    clock = ServerClock(wall=lambda: 0.0)
    async with ApiClient(api.credentials(), field_manager="test", clock=clock) as client:
        await client.get_path("/api/v1", aggregated=True)
    assert clock.seconds() < 60.0
