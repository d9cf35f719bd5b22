"""The webhook that applies `spec.assign` where the API server has no MutatingAdmissionPolicy.

Every replica serves it, leader or not, from the statuses that the leader writes. It listens while
MutatingWebhookConfiguration `assignment.kube-scheduler-operator.dev` exists. The API server waits
for at most one second and admits a Pod unchanged after any error, so nothing here can refuse or
lose a Pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from aiohttp import ClientError, web

from ..base import names
from ..base.defects import contained
from ..base.json_text import parse_json
from ..base.klog import kv
from ..base.objects import Object, mapping
from ..base.platform import AUTHENTICATION_NAMESPACE, Platform
from ..kube.client import ApiClient
from ..kube.errors import KubeError
from ..kube.resource import MUTATING_WEBHOOKS, NAMESPACES, SECRETS
from ..secondary.admission_review import (
    NewPod,
    NotAReviewError,
    answer,
    needs_namespace,
    read_review,
    scheduler_for,
)
from ..telemetry.certificate import CertificateError, ServingCertificate
from ..telemetry.connections import Listener
from ..telemetry.issued_certificate import Issued, issue
from .assignment_way import STARTING
from .webhook_certificates import (
    CERTIFICATE,
    DAYS,
    KEY,
    CertificateStep,
    bundle_of,
    data_of,
    encoded,
    next_step,
    with_bundle,
)

log = logging.getLogger(__name__)

PATH: Final = "/assign"
WEBHOOK_PORT: Final = 10250
"""The kubelet's port, which firewalls of providers open for the API server."""

MAX_BODY: Final = 8 * 1024 * 1024
"""Bytes of a request; etcd stores objects of 1.5 MiB, which JSON may write several times longer."""

MAX_CONNECTIONS: Final = 128
MAX_IN_FLIGHT: Final = 64
READ_SECONDS: Final = 1.0
"""How long a request may take; the API server has given up by then."""

NAMESPACE_SECONDS: Final = 2.0
"""How long the labels of a namespace are remembered."""

REMEMBERED: Final = 1024
"""The number of namespaces whose labels are remembered."""

INTERVAL: Final = 5.0
"""Seconds between two looks at the certificates."""

FIRST_INTERVAL: Final = 0.5
"""Seconds between two looks of a process that starts, until it listens."""

DRAIN_SECONDS: Final = 3.0
"""How long a process that ends still listens: until no API server sends it requests any more."""


class NamespaceLabels:
    """Labels of namespaces, read when a Pod is created there."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Mapping[str, str]]] = OrderedDict()

    async def of(self, api: ApiClient, name: str) -> Mapping[str, str]:
        """The labels of a namespace.

        Raises:
            KubeError: it cannot be read.
        """
        known = self._known.get(name)
        if known is not None and self._clock() - known[0] < NAMESPACE_SECONDS:
            return known[1]
        found = await api.get(NAMESPACES.named(name))
        labels: Mapping[str, str] = mapping(found["metadata"].get("labels"))
        self._known[name] = (self._clock(), labels)
        self._known.move_to_end(name)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return labels


class AssignmentWebhook:
    """The server and its certificates.

    Args:
        platform: the kind of cluster.
        address: host and port to listen on.
        schedulers: the SecondarySchedulers; None while they are not known.
        configuration: the MutatingWebhookConfiguration; None if it does not exist.
        observer: called for each request with its result.

    Attributes:
        port: the port in use; 0 while it does not listen.
        expires: the expiry of the certificate in use; None without one.
    """

    def __init__(
        self,
        platform: Platform,
        address: tuple[str, int],
        schedulers: Callable[[], Sequence[Object] | None],
        configuration: Callable[[], Object | None],
        observer: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.port = 0
        self.expires: datetime | None = None
        self._address = address
        self._schedulers = schedulers
        self._configuration = configuration
        self._observer = observer
        self._secret = SECRETS.named(names.WEBHOOK, platform.operator_namespace)
        self._host = f"{names.WEBHOOK}.{platform.operator_namespace}.svc"
        self._excluded = {
            AUTHENTICATION_NAMESPACE, platform.operator_namespace, platform.target_namespace,
            platform.operand_namespace,
        }  # fmt: skip
        self._namespaces = NamespaceLabels()
        self._api: ApiClient | None = None
        self._in_flight = 0
        self._served: tuple[str, str] = ("", "")
        self._certificate: ServingCertificate | None = None
        self._runner: web.AppRunner | None = None
        self._listener: Listener[asyncio.Protocol] | None = None
        self._trusted: tuple[str, float] = ("", 0.0)
        self._problem = ""

    async def run(
        self,
        api: ApiClient,
        leading: ApiClient,
        leads: Callable[[], bool],
        now: Callable[[], datetime],
    ) -> None:
        """Serve while the configuration exists; `leading` writes certificates while it leads."""
        self._api = api
        began = time.monotonic()
        try:
            while True:
                try:
                    await self._keep(api, leading if leads() else None, now)
                    self._problem = ""
                except (KubeError, CertificateError, OSError) as error:
                    self._report(str(error))
                except Exception as error:  # the next look may succeed
                    contained("webhook", names.ASSIGNMENT, error)
                starts = not self.port and time.monotonic() - began < STARTING
                await asyncio.sleep(FIRST_INTERVAL if starts else INTERVAL)
        finally:
            await self.stop()

    async def drain(self) -> None:
        """Listen for a little longer, if it does: API servers learn later that the Pod ends."""
        if self.port:
            await asyncio.sleep(DRAIN_SECONDS)

    async def _keep(
        self, api: ApiClient, leading: ApiClient | None, now: Callable[[], datetime]
    ) -> None:
        configuration = self._configuration()
        if configuration is None:
            await self.stop()
            return
        secret = await api.get(self._secret)
        if leading is not None:
            await self._renew(leading, secret, configuration, now())
        data = data_of(secret)
        if data.get(CERTIFICATE) and data.get(KEY):
            await self._serve(data[CERTIFICATE], data[KEY])

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            log.warning("Cannot serve the webhook, will retry: %s", problem)
        self._problem = problem

    # --- certificates -----------------------------------------------------------------------------

    async def _renew(
        self, api: ApiClient, secret: Object, configuration: Object, now: datetime
    ) -> None:
        bundle = bundle_of(configuration)
        if bundle != self._trusted[0]:
            self._trusted = (bundle, time.monotonic())
        trusted_for = time.monotonic() - self._trusted[1]
        step = await asyncio.to_thread(
            next_step, data_of(secret), bundle, now, trusted_for, self._issue
        )
        if step is not None:
            await self._write(api, secret, configuration, step)

    async def _write(
        self, api: ApiClient, secret: Object, configuration: Object, step: CertificateStep
    ) -> None:
        """Write one step; both objects are replaced at the version that was read."""
        if step.data is not None:
            await api.replace(SECRETS, {**secret, "data": encoded(step.data)})
            log.info("Renewed the webhook's certificate", extra=kv(reason=step.reason))
        if step.bundle:
            await api.replace(MUTATING_WEBHOOKS, with_bundle(configuration, step.bundle))
            log.info("Updated the webhook's caBundle", extra=kv(reason=step.reason))

    def _issue(self) -> Issued:
        return issue(self._host, DAYS)

    # --- the server -------------------------------------------------------------------------------

    async def _serve(self, certificate: str, key: str) -> None:
        if self._certificate is None:
            self._certificate = await asyncio.to_thread(ServingCertificate, None, None)
        if (certificate, key) != self._served:
            await asyncio.to_thread(self._certificate.load, certificate.encode(), key.encode())
            self._served = (certificate, key)
            self.expires = self._certificate.expires
        if self._runner is not None:
            return
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post(PATH, self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, keepalive_timeout=90.0, shutdown_timeout=1.0
        )
        await self._runner.setup()
        assert self._runner.server is not None  # noqa: S101 - it has been set up
        self._listener = Listener(self._runner.server, MAX_CONNECTIONS, self._certificate.context)
        try:
            await self._listener.start(*self._address)
        except OSError:
            await self.stop()
            raise
        self.port = self._listener.address[1]
        log.info("Serving the webhook", extra=kv(port=self.port))

    async def stop(self) -> None:
        """Stop listening; requests in progress have a second to end."""
        runner, listener = self._runner, self._listener
        self._runner = self._listener = None
        self.port = 0
        if listener is not None and runner is not None and runner.server is not None:
            with contextlib.suppress(OSError):
                await listener.close()
        if runner is not None:
            await runner.cleanup()
        if listener is not None:
            listener.abort()

    async def _handle(self, request: web.Request) -> web.Response:
        """Answer one request; whatever its body is, the process continues."""
        if request.headers.get("Content-Encoding"):
            self._observer("invalid")
            return web.Response(status=415, text="send the body without Content-Encoding\n")
        if self._in_flight >= MAX_IN_FLIGHT:
            self._observer("busy")
            return web.Response(status=429, text="too many concurrent requests\n")
        self._in_flight += 1
        try:
            async with asyncio.timeout(READ_SECONDS):
                pod = read_review(parse_json(await request.read()), self._excluded)
                scheduler = await self._decide(pod)
        except web.HTTPRequestEntityTooLarge:
            self._observer("invalid")
            return web.Response(status=413, text=f"the body has more than {MAX_BODY} bytes\n")
        except NotAReviewError as error:
            self._observer("invalid")
            return web.Response(status=400, text=f"{error}\n")
        except (ValueError, ClientError, web.RequestPayloadError):
            self._observer("invalid")
            return web.Response(status=400, text="the body is not JSON\n")
        except (KubeError, TimeoutError) as error:
            self._observer("error")
            log.warning("Left a Pod unchanged", extra=kv(err=str(error) or "it took too long"))
            return web.Response(status=503, text="cannot decide\n")
        except Exception as error:  # a defect here must not reach the API server's client
            self._observer("error")
            contained("webhook", names.ASSIGNMENT, error)
            return web.Response(status=500, text="cannot decide\n")
        finally:
            self._in_flight -= 1
        self._observer("assigned" if scheduler else "unchanged")
        return web.json_response(answer(pod.uid, scheduler))

    async def _decide(self, pod: NewPod) -> str:
        schedulers = self._schedulers()
        if not pod.eligible or not schedulers or self._api is None:
            return ""
        labels: Mapping[str, str] = {}
        if needs_namespace(schedulers):
            labels = await self._namespaces.of(self._api, pod.namespace)
        return scheduler_for(pod, schedulers, labels)
