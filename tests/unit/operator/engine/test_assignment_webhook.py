"""The operator's side of the webhook: when it listens, for whom, and with which certificate."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.kube.errors import ApiRequest, Unavailable
from kube_scheduler_operator.kube.resource import MUTATING_WEBHOOKS, SECRETS, ObjectRef, Resource
from kube_scheduler_operator.operator.engine import assignment as module
from kube_scheduler_operator.operator.engine.assignment import AssignmentWebhook
from kube_scheduler_operator.operator.engine.webhook_certificates import bundle_of

SECRET = SECRETS.named(names.WEBHOOK, MANAGED.operator_namespace)
ASSIGNMENT = {"schedulerName": "packed", "pods": {}}
SCHEDULER = {
    "metadata": {"name": "packed", "uid": "u"},
    "spec": {"profiles": []},
    "status": {"assignment": ASSIGNMENT, "conditions": []},
}
"""A SecondaryScheduler; the process receives what decides of it."""


class Cluster:
    """The objects that the webhook reads and writes.

    Attributes:
        configuration: the MutatingWebhookConfiguration; None: it does not exist.
        schedulers: the SecondarySchedulers.
        writes: the kinds that were written, in order.
        reads: how often the Secret was read.
        away: whether reads fail.
    """

    def __init__(self) -> None:
        self.configuration: dict[str, Any] | None = {
            "metadata": {"name": names.ASSIGNMENT},
            "webhooks": [{"name": "pods", "clientConfig": {"service": {"name": names.WEBHOOK}}}],
        }
        self.secret: dict[str, Any] = {"metadata": {"name": names.WEBHOOK}}
        self.schedulers: list[dict[str, Any]] | None = [SCHEDULER]
        self.writes: list[str] = []
        self.reads = 0
        self.away = False

    async def get(self, ref: ObjectRef) -> dict[str, Any]:
        assert ref == SECRET
        self.reads += 1
        if self.away:
            raise Unavailable(ApiRequest("GET", "/x"), status=503)
        return copy.deepcopy(self.secret)

    async def replace(self, resource: Resource, obj: Mapping[str, Any]) -> None:
        self.writes.append(resource.kind)
        if resource == SECRETS:
            self.secret = copy.deepcopy(dict(obj))
        else:
            assert resource == MUTATING_WEBHOOKS
            self.configuration = copy.deepcopy(dict(obj))


class PlayedProcess:
    """What the operator has of the process that listens."""

    def __init__(self, address: tuple[str, int], *_: Any) -> None:
        self.port, self.certificate = 0, ""
        self.address = address
        self.used: list[Sequence[Any]] = []

    def serve(self, certificate: str, key: str) -> None:
        assert "PRIVATE KEY" in key
        self.port, self.certificate = 12345, certificate

    def use(self, schedulers: Sequence[Any]) -> None:
        self.used.append(schedulers)

    async def stop(self) -> None:
        self.port, self.certificate = 0, ""


class Webhook:
    """A replica of the operator's side.

    Attributes:
        leads: whether this replica leads.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.leads = True
        self.server = AssignmentWebhook(
            MANAGED,
            ("127.0.0.1", 0),
            None,
            lambda: cluster.schedulers,
            lambda: cluster.configuration,
        )

    @property
    def process(self) -> PlayedProcess:
        process: Any = self.server._process
        assert isinstance(process, PlayedProcess)
        return process

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
        await self.until(lambda: bool(self.server.port and bundle_of(self._configuration)))
        return self

    @property
    def _configuration(self) -> dict[str, Any]:
        return self.cluster.configuration or {}


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL", 0.02)
    monkeypatch.setattr(module, "WebhookProcess", PlayedProcess)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def webhook(cluster: Cluster) -> AsyncIterator[Webhook]:
    async with Webhook(cluster).running() as replica:
        yield await replica.listens()


async def test_the_process_receives_what_decides_of_schedulers_at_once(webhook: Webhook) -> None:
    essential = {"metadata": {}, "status": {"assignment": ASSIGNMENT}}
    assert webhook.process.used[-1] == [essential]
    webhook.cluster.schedulers = [{**SCHEDULER, "status": {}}]
    webhook.server.changed()
    assert webhook.process.used[-1] == []
    webhook.cluster.schedulers = [SCHEDULER]
    webhook.server.changed()
    assert webhook.process.used[-1] == [essential]
    webhook.cluster.schedulers = None  # they are listed again
    webhook.server.changed()
    assert webhook.process.used[-1] == []


# --- certificates and the listener ----------------------------------------------------------------


async def test_it_listens_while_its_configuration_exists(webhook: Webhook) -> None:
    configuration, webhook.cluster.configuration = webhook.cluster.configuration, None
    await webhook.until(lambda: webhook.server.port == 0)
    webhook.cluster.configuration = configuration
    await webhook.listens()


async def test_the_api_server_trusts_the_webhook_once_all_replicas_have_had_the_time_to_listen(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INTERVALS_TO_LISTEN", 10_000)
    async with Webhook(cluster).running() as replica:
        await replica.until(lambda: replica.server.port != 0)
        await asyncio.sleep(0.1)
        assert not bundle_of(cluster.configuration or {})
        assert cluster.writes == ["Secret"]
        monkeypatch.setattr(module, "INTERVALS_TO_LISTEN", 3)
        await replica.listens()
        assert cluster.writes == ["Secret", "MutatingWebhookConfiguration"]


async def test_a_lost_authority_is_trusted_again_at_once(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = webhook.server._listening_since
    monkeypatch.setattr(webhook.server, "_listening_since", listening - 3600)
    monkeypatch.setattr(module, "INTERVALS_TO_LISTEN", 10_000)
    webhook.cluster.configuration = Cluster().configuration
    await webhook.listens()


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
    await asyncio.sleep(0.05)
    assert not draining.done()
    assert webhook.server.port
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
        await standby.until(lambda: cluster.reads >= 3)
        assert (standby.server.port, standby.server.expires, cluster.writes) == (0, None, [])
        async with Webhook(cluster).running() as leader:
            await leader.listens()
            await standby.listens()
            assert cluster.writes == ["Secret", "MutatingWebhookConfiguration"]
            assert standby.process.certificate == leader.process.certificate
        assert standby.server.expires is not None
        assert standby.server.port


async def test_a_new_certificate_is_served_without_a_restart(webhook: Webhook) -> None:
    port, secret = webhook.server.port, webhook.cluster.secret
    before = webhook.server.expires
    webhook.cluster.secret = {"metadata": secret["metadata"]}
    await webhook.until(lambda: webhook.cluster.writes.count("Secret") == 2)
    served = webhook.cluster.secret["data"]["tls.crt"]
    assert served != secret["data"]["tls.crt"]
    text = base64.b64decode(served).decode()
    await webhook.until(lambda: webhook.process.certificate == text)
    assert webhook.server.port == port
    assert webhook.server.expires is not None
    assert before is not None
    assert webhook.server.expires >= before


async def test_a_secret_that_cannot_be_read_is_reported_once(
    webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    webhook.cluster.away = True
    reads = webhook.cluster.reads
    await webhook.until(lambda: webhook.cluster.reads > reads + 3)
    assert caplog.text.count("Cannot serve the webhook") == 1
    assert webhook.server.port  # what it serves stays
