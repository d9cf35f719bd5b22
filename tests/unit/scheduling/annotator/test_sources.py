"""The sources, over real connections."""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.kube.credentials import Access, Credentials
from kube_scheduler_operator.kube.errors import ApiRequest, NotFound
from kube_scheduler_operator.scheduling.annotator.measurement import MeasurementError
from kube_scheduler_operator.scheduling.annotator.nodes import AnnotatedNode
from kube_scheduler_operator.scheduling.annotator.sources import make_source
from kube_scheduler_operator.scheduling.annotator.sources.kubelet_summary import read_summary
from kube_scheduler_operator.scheduling.annotator.sources.node_metrics import read_statistics
from kube_scheduler_operator.scheduling.annotator.sources.prometheus import read_vector
from kube_scheduler_operator.scheduling.exporter.recorder import UsageRecorder
from kube_scheduler_operator.scheduling.exporter.usage_source import Reading
from kube_scheduler_operator.scheduling.load.policy import METRICS, LoadPolicy, SourceSpec

NOW = 1_700_000_000.0


def node(
    name: str = "a",
    address: str = "127.0.0.1",
    cpu: str = "4",
    memory: str = "1000",
    kubelet: int = 0,
) -> Any:
    found = AnnotatedNode(name, "uid")
    addresses = [{"type": "Hostname", "address": name}]
    if address:
        addresses.append({"type": "InternalIP", "address": address})
    capacity = {"cpu": cpu, "memory": memory}
    endpoints = {"kubeletEndpoint": {"Port": kubelet}} if kubelet else {}
    status = {"addresses": addresses, "capacity": capacity, "daemonEndpoints": endpoints}
    found.update({"metadata": {"name": name, "uid": "uid"}, "status": status})
    return found


@asynccontextmanager
async def serving(handler: Any, tls: Any = None) -> AsyncIterator[Any]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def source(
    kind: Any, api: Any = None, cycle: float = 60.0, now: Any = lambda: NOW, **fields: Any
) -> AsyncIterator[Any]:
    policy = LoadPolicy(source=SourceSpec(type=kind, timeout=fields.pop("timeout", 5.0), **fields))
    made = make_source(replace(policy, cycle=cycle), api, "ns", now)
    try:
        yield made
    finally:
        await made.close()


# --- NodeMetrics ----------------------------------------------------------------------------------


class Machine:
    """Half busy, a quarter of the memory in use."""

    now = 0.0

    def read(self, now: Any) -> Reading:
        return Reading(now, now * 2, now * 4, 250.0, 1000.0, 4)


def statistics() -> Any:
    machine = Machine()
    recorder = UsageRecorder(machine, lambda: machine.now)
    for at in (15.0, 30.0):
        machine.now = at
        recorder.sample()
    machine.now = 40.0
    return recorder.statistics()


async def test_our_exporter_provides_all_values() -> None:
    async def answer(request: web.Request) -> Any:
        assert request.path == "/statistics"
        return web.json_response(statistics())

    async with serving(answer) as port, source("NodeMetrics", port=port) as exporter:
        found = await exporter.measure(node())
    assert found.usage == {m: 0.5 if m.startswith("cpu") else 0.25 for m in METRICS}
    assert found.active == {"cpu": 0.5, "mem": 0.25}
    assert found.mean == {"cpu": 0.5, "mem": 0.25}
    assert found.std == {"cpu": 0.0, "mem": 0.0}
    assert (found.cpu, found.memory) == (4000, 1000)


def test_age_is_independent_of_the_nodes_clock() -> None:
    assert read_statistics({**statistics(), "timestamp": 5.0}, NOW).at == NOW - 10


def test_crane_scheduler_plus_exporter_provides_fewer_values() -> None:
    response = {f"{p}_usage_{w}": 30.0 for p in ("cpu", "mem") for w in ("active", "avg_5m")}
    found = read_statistics(response, NOW)
    assert found.usage == {"cpu_usage_avg_5m": 0.3, "mem_usage_avg_5m": 0.3}
    assert (found.at, found.mean, found.cpu) == (NOW, {}, 0)


@pytest.mark.parametrize(
    "response", [None, [], {}, {"cpu_usage_avg_5m": "3"}, {"cpu_usage_avg_5m": -1.0},
             {"cpu_usage_avg_5m": math.nan}, {"cpu_usage_avg_5m": True}]
)  # fmt: skip
def test_statistics_without_usage_are_rejected(response: Any) -> None:
    with pytest.raises(MeasurementError):
        read_statistics(response, NOW)


def test_usage_is_capped_at_capacity() -> None:
    assert read_statistics({"cpu_usage_avg_5m": 101.0}, NOW).usage == {"cpu_usage_avg_5m": 1.0}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda: web.Response(status=503, text="no sample: starting"),
            "the response has status 503$",
        ),
        (lambda: web.Response(text="<html>"), "not JSON"),
        (lambda: web.Response(text="1" * 100_000), "larger than"),
        (lambda: web.HTTPFound("http://169.254.169.254/"), "status 302$"),
        (lambda: web.Response(text=""), "not JSON"),
    ],
)
async def test_invalid_responses_are_explained(answer: Any, message: Any) -> None:
    async def handler(_: Any) -> Any:
        made = answer()
        if isinstance(made, web.HTTPException):
            raise made
        return made

    async with serving(handler) as port, source("NodeMetrics", port=port) as exporter:
        with pytest.raises(MeasurementError, match=message):
            await exporter.measure(node())


async def test_silent_server_times_out() -> None:
    gone = asyncio.Event()

    async def handler(_: Any) -> Any:
        await gone.wait()
        return web.Response()

    async with serving(handler) as port, source("NodeMetrics", port=port, timeout=0.2) as exporter:
        with pytest.raises(MeasurementError, match="request timed out"):
            await exporter.measure(node())
        gone.set()


async def test_closed_port_and_missing_address() -> None:
    async with serving(prometheus({})) as port:
        pass  # the port is closed now
    async with source("NodeMetrics", port=port) as exporter:
        with pytest.raises(MeasurementError, match="refused"):
            await exporter.measure(node())
        nameless = AnnotatedNode("a", "uid")
        with pytest.raises(MeasurementError, match="no address"):
            await exporter.measure(nameless)


@pytest.mark.parametrize("address", ["evil.example/?x=", "10.0.0.1@evil.example", "10.0.0.1:80#"])
async def test_an_address_that_would_be_more_than_a_host_is_refused(address: str) -> None:
    async with source("NodeMetrics", port=19101) as exporter:
        with pytest.raises(MeasurementError, match="neither an IP address nor a DNS name"):
            await exporter.measure(node(address=address))


async def test_ipv6_address_is_bracketed() -> None:
    async with source("NodeMetrics", port=19101) as exporter:
        on = AnnotatedNode("a", "uid")
        on.address = "fd00::1"
        assert exporter.url("http", on, "/x") == "http://[fd00::1]:19101/x"


# --- MetricsServer --------------------------------------------------------------------------------


class Api:
    """`get_path` of an API server with metrics-server."""

    def __init__(self, *items: Any) -> None:
        self.items, self.asked = items, 0
        self.error: Exception | None = None
        self.credentials: Credentials | None = None
        self.tokens: list[Any] = []

    async def create_in(self, ref: Any, subresource: Any, body: Any) -> dict[str, Any]:
        assert (subresource, body["kind"]) == ("token", "TokenRequest")
        await asyncio.sleep(0.01)
        if self.error:
            raise self.error
        self.tokens.append(str(ref))
        return {"status": {"token": "weak"}}

    async def get_path(
        self, path: Any, *, aggregated: bool = False, limit: Any = None
    ) -> dict[str, Any]:
        assert aggregated, "metrics-server has a clock of its own"
        assert path == "/apis/metrics.k8s.io/v1beta1/nodes"
        self.asked += 1
        await asyncio.sleep(0.01)
        if self.error:
            raise self.error
        return {"items": list(self.items)}


def item(
    name: Any, cpu: Any, memory: Any, timestamp: str = "2023-11-14T22:13:00Z"
) -> dict[str, Any]:
    usage = {"cpu": cpu, "memory": memory}
    return {"metadata": {"name": name}, "timestamp": timestamp, "usage": usage}


async def test_metrics_server_is_requested_once_for_all_nodes() -> None:
    api = Api(item("a", "1000000000n", "250"), item("b", "500m", "1Ki"), item("c", "2", "1M"))
    async with source("MetricsServer", api) as metrics:
        a, b, c = await asyncio.gather(*(metrics.measure(node(name)) for name in "abc"))
        assert a.active == {"cpu": 0.25, "mem": 0.25}
        assert b.active == {"cpu": 0.125, "mem": 1.0}
        assert c.active == {"cpu": 0.5, "mem": 1.0}
        assert a.at == NOW
        assert not a.usage
        assert api.asked == 1
        with pytest.raises(MeasurementError, match="has no metrics of the node"):
            await metrics.measure(node("d"))
        with pytest.raises(MeasurementError, match="neither usage nor capacity"):
            await metrics.measure(node("a", cpu="0", memory="0"))


async def test_metrics_server_is_requested_each_cycle() -> None:
    api = Api(item("a", "1", "1"))
    async with source("MetricsServer", api, cycle=0.05) as metrics:
        await metrics.measure(node())
        await asyncio.sleep(0.1)
        await metrics.measure(node())
    assert api.asked == 2


async def test_missing_metrics_server_is_explained() -> None:
    api = Api()
    api.error = NotFound(ApiRequest("get", "/apis/metrics.k8s.io/v1beta1/nodes"), status=404)
    async with source("MetricsServer", api) as metrics:
        for _ in range(3):
            with pytest.raises(MeasurementError, match="is it installed"):
                await metrics.measure(node())
    assert api.asked == 1


async def test_cancelled_waiter_does_not_cancel_the_request() -> None:
    api = Api(item("a", "1", "1"))
    async with source("MetricsServer", api) as metrics:
        impatient = asyncio.create_task(metrics.measure(node()))
        patient = asyncio.create_task(metrics.measure(node()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).active["cpu"] == 0.25


async def test_request_longer_than_a_cycle_fails() -> None:
    api = Api(item("a", "1", "1"))
    async with source("MetricsServer", api) as metrics:
        waiting = asyncio.create_task(metrics.measure(node()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await metrics.close()
        with pytest.raises(MeasurementError, match="longer than a cycle"):
            await waiting


async def test_closed_source_fails() -> None:
    async with source("NodeMetrics", port=1) as exporter:
        await exporter.close()
        with pytest.raises(MeasurementError, match="closed"):
            await exporter.measure(node())


# --- KubeletSummary -------------------------------------------------------------------------------

SUMMARY = {
    "node": {
        "nodeName": "a",
        "cpu": {"time": "2023-11-14T22:13:00Z", "usageNanoCores": 1_000_000_000},
        "memory": {"time": "2023-11-14T22:13:00Z", "workingSetBytes": 250, "usageBytes": 900},
    },
    "pods": [],
}


def kubelet_tls(served: Any) -> Any:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(served.certificate, served.key)
    return tls


def annotators_api(ca: Any = None) -> Any:
    """An API server that knows the annotator, whose own token may patch nodes."""
    api = Api()
    access = Access("https://api.example", authorization="Bearer powerful", ca_file=ca)
    api.credentials = Credentials(lambda: access)
    return api


async def test_kubelets_receive_a_token_for_nothing_else(
    served: Any, first_certificate: Any
) -> None:
    seen = []

    async def handler(request: web.Request) -> Any:
        seen.append((request.path_qs, request.headers["Authorization"]))
        return web.json_response(SUMMARY)

    api = annotators_api(str(first_certificate.certificate))
    async with serving(handler, kubelet_tls(served)) as port:
        a = node(kubelet=port)
        async with source("KubeletSummary", api, port=port) as kubelet:
            found, _ = await asyncio.gather(kubelet.measure(a), kubelet.measure(a))
            assert found.active == {"cpu": 0.25, "mem": 0.25}
            assert found.at == NOW
        assert api.tokens == ["ServiceAccount ns/load-kubelet-stats"], "one for all nodes"
        async with source("KubeletSummary", annotators_api(), port=port) as kubelet:
            with pytest.raises(MeasurementError):
                await kubelet.measure(a)
        unverified = annotators_api()
        async with source(
            "KubeletSummary", unverified, port=port, insecure_skip_verify=True
        ) as kubelet:
            assert await kubelet.measure(a)
    assert seen == [("/stats/summary?only_cpu_and_memory=true", "Bearer weak")] * 3


@pytest.mark.parametrize("known", [10250, 0], ids=["kubelet at 10250", "unknown"])
async def test_no_other_port_of_a_node_receives_a_token(served: Any, known: Any) -> None:
    seen = []

    async def handler(request: web.Request) -> Any:
        seen.append(request.path)
        return web.json_response(SUMMARY)

    api = annotators_api()
    async with (
        serving(handler, kubelet_tls(served)) as port,
        source("KubeletSummary", api, port=port, insecure_skip_verify=True) as kubelet,
    ):
        with pytest.raises(MeasurementError, match="is not that of its kubelet, 10250; correct"):
            await kubelet.measure(node(kubelet=known))
    assert (seen, api.tokens) == ([], [])


async def test_a_refused_token_for_kubelets_is_explained(served: Any) -> None:
    api = annotators_api()
    api.error = NotFound(ApiRequest("create", "/token"), status=404)
    async with source("KubeletSummary", api, port=10250) as kubelet:
        with pytest.raises(MeasurementError, match="no token for kubelets"):
            await kubelet.measure(node())


SECRET_TEXT = "root:x:0:0"


async def raw_server(answer: Any) -> Any:
    """A server that answers every connection with these bytes, HTTP or not."""

    async def connected(_: Any, writer: Any) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    "answer",
    [
        SECRET_TEXT.encode(),
        b"HTTP/1.1 200 " + SECRET_TEXT.encode() + b"\r\n\r\n" + SECRET_TEXT.encode(),
        b"HTTP/1.1 403 no\r\nContent-Length: 10\r\n\r\n" + SECRET_TEXT.encode(),
        b"HTTP/1.1 500 " + SECRET_TEXT.encode() + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 no\r\nLocation: http://" + SECRET_TEXT.encode() + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + SECRET_TEXT.encode() + b" \x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + SECRET_TEXT.encode(),
        *(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body.encode())
            for body in (
                json.dumps({"status": "error", "error": SECRET_TEXT}),
                json.dumps({"status": "success", "data": {"resultType": SECRET_TEXT}}),
                json.dumps({"status": "success", "data": {"resultType": "vector"},
                            "warnings": [SECRET_TEXT]}),
            )
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["Prometheus", "NodeMetrics"])
async def test_an_error_has_nothing_of_the_answer_but_its_status(kind: Any, answer: Any) -> None:
    server, port = await raw_server(answer)
    fields = {"url": f"http://127.0.0.1:{port}"} if kind == "Prometheus" else {"port": port}
    async with server, source(kind, **fields) as found:
        with pytest.raises(MeasurementError) as raised:
            await found.measure(node())
        assert "root" not in f"{raised.value} {found.warning}"


@pytest.mark.parametrize(
    "response", [None, [], {}, {"node": {}}, {"node": {"cpu": {"usageNanoCores": "1"}}}]
)
def test_summary_without_node_is_rejected(response: Any) -> None:
    with pytest.raises(MeasurementError):
        read_summary(response, node(), NOW)


# --- the clocks of sources ------------------------------------------------------------------------

SKEWS = (-1200.0, -560.0, 0.0, 560.0, 1200.0)


def written(wall: Any) -> Any:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def by_kubelet(machine: Any, wall: Any, now: Any) -> Any:
    cpu = {"time": written(wall), "usageNanoCores": 1_000_000_000}
    return read_summary({"node": {"cpu": cpu}}, machine, now)


async def by_metrics_server(machine: Any, wall: Any, now: Any) -> Any:
    async with source("MetricsServer", now=lambda: now) as found:
        return found.find({"a": item("a", "1", "1", written(wall))}, machine)


async def by_prometheus(machine: Any, wall: Any, now: Any) -> Any:
    async with source("Prometheus", url="http://127.0.0.1:1", now=lambda: now) as found:
        return found.find({"cpu_usage_avg_5m": {"a": (0.3, wall)}}, machine)


MEASURED = [by_kubelet, by_metrics_server, by_prometheus]


@pytest.mark.parametrize("measured", MEASURED)
@pytest.mark.parametrize("skew", SKEWS)
async def test_new_values_are_fresh_and_old_ones_grow_old_whatever_the_sources_clock(
    skew: Any, measured: Any
) -> None:
    machine = node()
    for after in (0.0, 60.0, 120.0):
        assert (await measured(machine, NOW + after + skew, NOW + after)).at == NOW + after
    for after in (180.0, 240.0, 6000.0):  # it repeats its last value
        assert (await measured(machine, NOW + 120.0 + skew, NOW + after)).at == NOW + 120.0


@pytest.mark.parametrize("measured", MEASURED)
@pytest.mark.parametrize("jump", SKEWS)
async def test_a_jump_of_the_sources_clock_changes_no_age(jump: Any, measured: Any) -> None:
    machine = node()
    assert (await measured(machine, NOW, NOW)).at == NOW
    assert (await measured(machine, NOW + 60.0 + jump, NOW + 60.0)).at == NOW + 60.0
    assert (await measured(machine, NOW + 60.0 + jump, NOW + 600.0)).at == NOW + 60.0


def test_a_measurement_without_a_time_is_new() -> None:
    summary = {"node": {"cpu": {"usageNanoCores": 1}}}
    machine = node()
    assert [read_summary(summary, machine, NOW + at).at for at in (0.0, 60.0)] == [NOW, NOW + 60.0]


# --- Prometheus -----------------------------------------------------------------------------------


def vector(*series: Any, **more: Any) -> dict[str, Any]:
    result = [
        {"metric": {"__name__": "m", **labels}, "value": [NOW, value]} for labels, value in series
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": result}, **more}


def prometheus(answers: Any) -> Any:
    """A handler; answers by query, {} for the others."""
    asked: list[tuple[Any, Any]] = []

    async def handler(request: web.Request) -> Any:
        assert (request.method, request.path) == ("POST", "/api/v1/query")
        query = (await request.post())["query"]
        asked.append((query, request.headers.get("Authorization")))
        found = answers.get(query, vector())
        return found() if callable(found) else web.json_response(found)

    made: Any = handler
    made.asked = asked
    return made


async def test_prometheus_instances_by_address_port_or_name() -> None:
    handler = prometheus(
        {
            "cpu_usage_avg_5m": vector(
                ({"instance": "10.0.0.1"}, "10"),
                ({"instance": "10.0.0.2:9100"}, "20"),
                ({"instance": "c"}, "30"),
                ({"instance": "[fd00::4]:9100"}, "40"),
                ({}, "99"),
            ),
            "mem_usage_avg_5m": vector(({"instance": "10.0.0.1"}, "1"), ({"instance": "a"}, "2")),
        }
    )
    async with (
        serving(handler) as port,
        source("Prometheus", url=f"http://127.0.0.1:{port}") as found,
    ):
        a = await found.measure(node("a", "10.0.0.1"))
        assert a.usage == {"cpu_usage_avg_5m": 0.1, "mem_usage_avg_5m": 0.01}
        assert a.at == NOW
        assert (await found.measure(node("b", "10.0.0.2"))).usage == {"cpu_usage_avg_5m": 0.2}
        assert (await found.measure(node("c", "10.0.0.3"))).usage == {"cpu_usage_avg_5m": 0.3}
        assert (await found.measure(node("d", "fd00::4"))).usage == {"cpu_usage_avg_5m": 0.4}
        with pytest.raises(MeasurementError, match="no series has instance"):
            await found.measure(node("e", "10.0.0.9"))
        assert "are the recording rules loaded?" in found.warning
    assert sorted(query for query, _ in handler.asked) == sorted(METRICS)


async def test_nan_and_negative_values_are_unknown() -> None:
    handler = prometheus(
        {
            "cpu_usage_avg_5m": vector(({"instance": "10.0.0.1"}, "NaN")),
            "cpu_usage_max_avg_1h": vector(({"instance": "10.0.0.1"}, "-3")),
            "cpu_usage_max_avg_1d": vector(({"instance": "10.0.0.1"}, "+Inf")),
            "mem_usage_avg_5m": vector(({"instance": "10.0.0.1"}, "140")),
        }
    )
    async with (
        serving(handler) as port,
        source("Prometheus", url=f"http://127.0.0.1:{port}") as found,
    ):
        a = await found.measure(node("a", "10.0.0.1"))
    assert a.usage == {"mem_usage_avg_5m": 1.0}


async def test_fractions_queries_and_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    handler = prometheus({"my:cpu": vector(({"instance": "10.0.0.1"}, "0.5"))})
    async with (
        serving(handler) as port,
        source(
            "Prometheus",
            url=f"http://127.0.0.1:{port}",
            percent=False,
            queries={"cpu_usage_avg_5m": "my:cpu"},
            token_file=str(tmp_path / "token"),
        ) as found,
    ):
        assert (await found.measure(node("a", "10.0.0.1"))).usage == {"cpu_usage_avg_5m": 0.5}
    assert ("my:cpu", "Bearer secret") in handler.asked


async def test_warning_is_reported_and_values_are_used() -> None:
    answer = vector(({"instance": "10.0.0.1"}, "50"), warnings=["remote read failed"])
    handler = prometheus(dict.fromkeys(METRICS, answer))
    async with (
        serving(handler) as port,
        source("Prometheus", url=f"http://127.0.0.1:{port}") as found,
    ):
        assert len((await found.measure(node("a", "10.0.0.1"))).usage) == 6
        assert found.warning.endswith("try the query in Prometheus, which shows them")


async def test_failed_query_does_not_affect_the_others() -> None:
    handler = prometheus(
        {
            "cpu_usage_avg_5m": vector(({"instance": "10.0.0.1"}, "50")),
            "mem_usage_avg_5m": lambda: web.Response(status=422, text='{"error":"bad"}'),
        }
    )
    async with (
        serving(handler) as port,
        source("Prometheus", url=f"http://127.0.0.1:{port}") as found,
    ):
        assert (await found.measure(node("a", "10.0.0.1"))).usage == {"cpu_usage_avg_5m": 0.5}
        assert found.warning


async def test_missing_recording_rules_are_explained() -> None:
    async with (
        serving(prometheus({})) as port,
        source("Prometheus", url=f"http://127.0.0.1:{port}") as found,
    ):
        with pytest.raises(MeasurementError, match="are the recording rules loaded"):
            await found.measure(node())


async def test_missing_token_file_is_reported() -> None:
    async with source("Prometheus", url="http://127.0.0.1:1", token_file="/no/token") as found:
        with pytest.raises(MeasurementError, match="/no/token"):
            await found.measure(node())


async def test_prometheus_over_https(served: Any, first_certificate: Any) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(served.certificate, served.key)
    handler = prometheus({"cpu_usage_avg_5m": vector(({"instance": "10.0.0.1"}, "50"))})
    async with serving(handler, tls) as port:
        url = f"https://127.0.0.1:{port}"
        a = node("a", "10.0.0.1")
        async with source("Prometheus", url=url) as found:
            with pytest.raises(MeasurementError):
                await found.measure(a)
        ca = str(first_certificate.certificate)
        async with source("Prometheus", url=url, ca_file=ca) as found:
            assert await found.measure(a)
        async with source("Prometheus", url=url, insecure_skip_verify=True) as found:
            assert await found.measure(a)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "the query failed"),
        ({"status": "error", "error": "parse error"}, "the query failed"),
        ({"status": "success", "data": {"resultType": "matrix"}}, "not return an instant vector"),
        ({"status": "success"}, "not return an instant vector"),
    ],
)
def test_invalid_query_responses_are_explained(answer: Any, message: Any) -> None:
    with pytest.raises(MeasurementError, match=message):
        read_vector(answer)


def test_invalid_sample_is_unknown() -> None:
    series = {"metric": {"instance": "a"}}
    answer = json.loads(json.dumps(vector()))
    answer["data"]["result"] = [{**series, "value": value} for value in (None, [], [1], ["x", "y"])]
    found, _ = read_vector(answer)
    assert math.isnan(found["a"][0])


def test_last_series_of_an_instance_is_used() -> None:
    found, _ = read_vector(vector(({"instance": "a"}, "1"), ({"instance": "a"}, "2")))
    assert found["a"][0] == 2
