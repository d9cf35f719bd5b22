"""The server of the webhook: what it answers, to whom, and with which certificate."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import http.client
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.engine import assignment_webhook as module
from kube_scheduler_operator.engine.assignment_webhook import (
    NAMESPACE_SECONDS,
    REMEMBERED,
    AssignmentWebhook,
    NamespaceLabels,
)
from kube_scheduler_operator.engine.webhook_certificates import bundle_of
from kube_scheduler_operator.kube.errors import ApiRequest, KubeError, NotFound, Unavailable
from kube_scheduler_operator.kube.resource import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    SECRETS,
    ObjectRef,
    Resource,
)

HOST = f"{names.WEBHOOK}.{MANAGED.operator_namespace}.svc"
SECRET = SECRETS.named(names.WEBHOOK, MANAGED.operator_namespace)
REQUEST = ApiRequest("GET", "/x")
SCHEDULER = {
    "metadata": {"name": "packed", "uid": "u"},
    "status": {
        "assignment": {
            "schedulerName": "packed",
            "pods": {"namespaceSelector": {"matchLabels": {"team": "batch"}}},
        }
    },
}


class Cluster:
    """The objects that the webhook reads and writes.

    Attributes:
        configuration: the MutatingWebhookConfiguration; None: it does not exist.
        schedulers: the SecondarySchedulers.
        namespaces: labels of namespaces; an error is raised when they are read.
        writes: the kinds that were written, in order.
        reads: the objects that were read, in order.
        delay: seconds that each read of a namespace takes.
    """

    def __init__(self) -> None:
        self.configuration: dict[str, Any] | None = {
            "metadata": {"name": names.ASSIGNMENT},
            "webhooks": [{"name": "pods", "clientConfig": {"service": {"name": names.WEBHOOK}}}],
        }
        self.secret: dict[str, Any] = {"metadata": {"name": names.WEBHOOK}}
        self.schedulers: list[dict[str, Any]] | None = [SCHEDULER]
        self.namespaces: dict[str, Mapping[str, str] | KubeError] = {"jobs": {"team": "batch"}}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.delay = 0.0

    async def get(self, ref: ObjectRef) -> dict[str, Any]:
        self.reads.append(ref.name)
        if ref == SECRET:
            return copy.deepcopy(self.secret)
        assert ref.resource == NAMESPACES
        await asyncio.sleep(self.delay)
        found = self.namespaces.get(ref.name, NotFound(REQUEST, status=404))
        if isinstance(found, KubeError):
            raise found
        return {"metadata": {"name": ref.name, "labels": found}}

    async def replace(self, resource: Resource, obj: Mapping[str, Any]) -> None:
        self.writes.append(resource.kind)
        if resource == SECRETS:
            self.secret = copy.deepcopy(dict(obj))
        else:
            assert resource == MUTATING_WEBHOOKS
            self.configuration = copy.deepcopy(dict(obj))


class Webhook:
    """A replica of the webhook in this process, and a client of it.

    Attributes:
        leads: whether this replica leads.
        results: what it reported of each request.
    """

    def __init__(self, cluster: Cluster, port: int = 0) -> None:
        self.cluster = cluster
        self.leads = True
        self.results: list[str] = []
        self.server = AssignmentWebhook(
            MANAGED,
            ("127.0.0.1", port),
            lambda: cluster.schedulers,
            lambda: cluster.configuration,
            self.results.append,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Webhook]:
        api: Any = self.cluster
        task = asyncio.create_task(
            self.server.run(api, api, lambda: self.leads, lambda: datetime.now(UTC))
        )
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert self.server.port == 0

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - it depends on another task's progress
                await asyncio.sleep(0.01)

    async def listens(self) -> Webhook:
        """Wait until it listens with a certificate that the API server trusts."""
        await self.until(lambda: bool(self.server.port and self._bundle))
        return self

    @property
    def _bundle(self) -> str:
        return bundle_of(self.cluster.configuration or {})

    async def post(self, body: bytes, path: str = "/assign", **headers: str) -> tuple[int, bytes]:
        """The status and the body of the answer, as the API server gets them."""
        return await asyncio.to_thread(self._post, body, path, headers)

    def _post(self, body: bytes, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        context = ssl.create_default_context(cadata=self._bundle)
        with (
            socket.create_connection(("127.0.0.1", self.server.port), 30) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as secured,
        ):
            client = http.client.HTTPConnection(HOST)
            client.sock = secured
            # It may answer before it has read everything.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                client.request("POST", path, body, headers)
            response = client.getresponse()
            return response.status, response.read()

    async def scheduler_of(self, **pod: Any) -> str:
        """The scheduler that a new Pod gets; empty: unchanged."""
        status, body = await self.post(review(**pod))
        assert status == 200, body
        response = json.loads(body)["response"]
        assert (response["uid"], response["allowed"]) == ("of-the-request", True)
        if "patch" not in response:
            return ""
        (operation,) = json.loads(base64.b64decode(response["patch"]))
        assert (operation["op"], operation["path"]) == ("replace", "/spec/schedulerName")
        return str(operation["value"])


def review(namespace: str = "jobs", **spec: Any) -> bytes:
    """An AdmissionReview of a new Pod."""
    pod = {"metadata": {"name": "a"}, "spec": {"schedulerName": "default-scheduler", **spec}}
    request = {
        "uid": "of-the-request",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": namespace,
        "object": pod,
    }
    text = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(text).encode()


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL", 0.02)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def webhook(cluster: Cluster) -> AsyncIterator[Webhook]:
    async with Webhook(cluster).running() as replica:
        yield await replica.listens()


# --- decisions ------------------------------------------------------------------------------------


async def test_a_selected_pod_is_assigned_and_others_stay_unchanged(webhook: Webhook) -> None:
    webhook.cluster.namespaces["web"] = {"team": "web"}
    assert await webhook.scheduler_of() == "packed"
    assert await webhook.scheduler_of(namespace="web") == ""
    assert await webhook.scheduler_of(schedulerName="own") == ""
    assert await webhook.scheduler_of(namespace=MANAGED.operator_namespace) == ""
    assert webhook.results == ["assigned", "unchanged", "unchanged", "unchanged"]


@pytest.mark.parametrize("schedulers", [None, []], ids=["not known yet", "none"])
async def test_without_schedulers_every_pod_stays_unchanged(
    webhook: Webhook, schedulers: list[dict[str, Any]] | None
) -> None:
    webhook.cluster.schedulers = schedulers
    assert await webhook.scheduler_of() == ""


async def test_an_assignment_that_was_taken_away_ends_at_once(webhook: Webhook) -> None:
    assert await webhook.scheduler_of() == "packed"
    webhook.cluster.schedulers = [{**SCHEDULER, "status": {}}]
    assert await webhook.scheduler_of() == ""


@pytest.mark.parametrize(
    "error",
    [NotFound(REQUEST, status=404), Unavailable(REQUEST, status=503)],
    ids=["deleted", "no answer"],
)
async def test_an_unknown_namespace_is_an_error_that_admits_the_pod(
    webhook: Webhook, error: KubeError
) -> None:
    webhook.cluster.namespaces["jobs"] = error
    assert await webhook.post(review()) == (503, b"cannot decide\n")
    assert webhook.results == ["error"]
    webhook.cluster.namespaces["jobs"] = {"team": "batch"}
    assert await webhook.scheduler_of() == "packed"


async def test_a_namespace_that_is_read_too_slowly_ends_the_request(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_SECONDS", 0.1)
    webhook.cluster.delay = 30.0
    assert (await webhook.post(review()))[0] == 503
    assert webhook.results == ["error"]


async def test_a_defect_is_contained(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> str:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(module, "scheduler_for", broken)
        assert await webhook.post(review()) == (500, b"cannot decide\n")
    assert webhook.results == ["error"]
    assert await webhook.scheduler_of() == "packed"


# --- requests that are refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", b"the body is not JSON\n"),
        (b"\xff\xfe", b"the body is not JSON\n"),
        (b"[" * 100_000, b"the body is not JSON\n"),
        (b"{}", b"the body is not an AdmissionReview of admission.k8s.io/v1\n"),
        (review().replace(b"CREATE", b"UPDATE"), b"the request is not about a new Pod\n"),
        (review().replace(b"of-the-request", b""), b"request.uid is missing\n"),
    ],
    ids=["empty", "no text", "nested", "another object", "another operation", "no uid"],
)
async def test_the_answer_names_what_makes_a_body_invalid(
    webhook: Webhook, body: bytes, message: bytes
) -> None:
    assert await webhook.post(body) == (400, message)
    assert webhook.results == ["invalid"]


async def test_a_body_that_is_too_large_or_compressed_is_refused(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await webhook.post(b" " * (module.MAX_BODY + 1)))[0] == 413
    assert (await webhook.post(b"{}", **{"Content-Encoding": "gzip"}))[0] == 415
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 0)
    assert (await webhook.post(review()))[0] == 429
    assert webhook.results == ["invalid", "invalid", "busy"]
    assert (await webhook.post(review(), path="/other"))[0] == 404


# --- certificates and the listener ----------------------------------------------------------------


async def test_it_listens_while_its_configuration_exists(webhook: Webhook) -> None:
    configuration, webhook.cluster.configuration = webhook.cluster.configuration, None
    await webhook.until(lambda: webhook.server.port == 0)
    webhook.cluster.configuration = configuration
    await webhook.listens()
    assert await webhook.scheduler_of() == "packed"


async def test_a_process_that_starts_listens_without_delay(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INTERVAL", 1_000.0)
    monkeypatch.setattr(module, "FIRST_INTERVAL", 0.01)
    configuration, cluster.configuration = cluster.configuration, None
    async with Webhook(cluster).running() as replica:
        await asyncio.sleep(0.05)
        cluster.configuration = configuration
        await replica.until(lambda: replica.server.port != 0)


async def test_a_process_that_ends_listens_for_a_little_longer(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DRAIN_SECONDS", 60.0)
    draining = asyncio.create_task(webhook.server.drain())
    assert await webhook.scheduler_of() == "packed"
    assert not draining.done()
    draining.cancel()


async def test_a_process_that_does_not_listen_ends_at_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DRAIN_SECONDS", 60.0)
    async with asyncio.timeout(30):
        await Webhook(cluster).server.drain()


async def test_a_standby_serves_the_leaders_certificate_and_writes_nothing(
    cluster: Cluster,
) -> None:
    standby = Webhook(cluster)
    standby.leads = False
    async with standby.running():
        await standby.until(lambda: cluster.reads.count(names.WEBHOOK) >= 3)
        assert (standby.server.port, standby.server.expires, cluster.writes) == (0, None, [])
        async with Webhook(cluster).running() as leader:
            await leader.listens()
            await standby.listens()
            assert cluster.writes == ["Secret", "MutatingWebhookConfiguration"]
            assert await standby.scheduler_of() == await leader.scheduler_of() == "packed"
        assert standby.server.expires is not None
        assert await standby.scheduler_of() == "packed"


async def test_a_new_certificate_is_served_without_a_restart(webhook: Webhook) -> None:
    port, secret = webhook.server.port, webhook.cluster.secret
    before = webhook.server.expires
    webhook.cluster.secret = {"metadata": secret["metadata"]}
    await webhook.until(lambda: webhook.cluster.writes.count("Secret") == 2)
    served = webhook.cluster.secret["data"]["tls.crt"]
    assert served != secret["data"]["tls.crt"]
    text = base64.b64decode(served).decode()
    await webhook.until(lambda: webhook.server._served[0] == text)
    assert await webhook.scheduler_of() == "packed"
    assert webhook.server.port == port
    assert webhook.server.expires is not None
    assert before is not None
    assert webhook.server.expires >= before


async def test_a_port_in_use_is_reported_once_and_tried_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        replica = Webhook(cluster, other.getsockname()[1])
        async with replica.running():
            await replica.until(lambda: "Cannot serve the webhook" in caplog.text)
            reads = len(cluster.reads)
            await replica.until(lambda: len(cluster.reads) > reads + 3)
            assert caplog.text.count("Cannot serve the webhook") == 1
            assert replica.server.port == 0
            other.close()
            await replica.listens()
            assert await replica.scheduler_of() == "packed"


# --- labels of namespaces -------------------------------------------------------------------------


async def test_labels_are_remembered_for_a_while_and_errors_are_not(cluster: Cluster) -> None:
    api: Any = cluster
    time = 0.0
    labels = NamespaceLabels(lambda: time)
    assert await labels.of(api, "jobs") == {"team": "batch"}
    cluster.namespaces["jobs"] = {"team": "web"}
    time = NAMESPACE_SECONDS - 0.1
    assert await labels.of(api, "jobs") == {"team": "batch"}
    time = NAMESPACE_SECONDS
    assert await labels.of(api, "jobs") == {"team": "web"}
    for _ in range(2):
        with pytest.raises(NotFound):
            await labels.of(api, "away")
    assert cluster.reads == ["jobs", "jobs", "away", "away"]


async def test_a_bounded_number_of_namespaces_is_remembered(cluster: Cluster) -> None:
    api: Any = cluster
    labels = NamespaceLabels(lambda: 0.0)
    for number in range(REMEMBERED + 1):
        cluster.namespaces[f"n{number}"] = {}
        await labels.of(api, f"n{number}")
    cluster.reads.clear()
    await labels.of(api, f"n{REMEMBERED}")
    await labels.of(api, "n1")
    assert cluster.reads == []
    await labels.of(api, "n0")
    assert cluster.reads == ["n0"]
