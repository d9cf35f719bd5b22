"""What applies `spec.assign` to new Pods: a policy, the operator's webhook, or nothing.

A policy or a webhook is installed with the operator, which reads whether it exists.

Every replica serves the webhook, leader or not, from the statuses that the leader writes. It
listens while MutatingWebhookConfiguration `assignment.kube-scheduler-operator.dev` exists. The API
server waits for at most one second and admits a Pod unchanged after any error, so nothing here can
reject or lose a Pod.

A separate process listens (`operator/admission/`), because any Pod of the cluster may connect to
it. This module has all rights: it reads the configuration, makes and renews certificates, and
reports the certificate and the SecondarySchedulers to that process.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from ...base import names, x509
from ...base.defects import contained
from ...base.klog import kv
from ...base.objects import Object, mapping
from ...base.platform import Platform
from ...kube.client import ApiClient
from ...kube.errors import Forbidden, KubeError, NotFound
from ...kube.resource import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    SECRETS,
    SERVICES,
    Resource,
)
from ...serving.certificate import CertificateError
from ..admission.supervisor import WebhookProcess
from ..model.snapshot import AssignmentWay
from ..secondary.admission_review import essentials
from .webhook_certificates import (
    CERTIFICATE,
    DAYS,
    KEY,
    CertificateStep,
    bundle_of,
    data_of,
    encoded,
    issue,
    next_step,
    with_bundle,
)

log = logging.getLogger(__name__)

WEBHOOK_PORT: Final = 10250
"""The kubelet's port, which firewalls of providers open for the API server."""

INTERVAL: Final = 5.0
"""Seconds between two polls of what applies assignments, and between two checks of certificates."""

FIRST_INTERVAL: Final = 0.5
"""The same of a starting process, until it knows what applies assignments, and listens."""

INTERVALS_TO_LISTEN: Final = 3
"""The INTERVALs in which each replica listens: one to find the configuration, one to find the
certificate, and one to start its process."""

STARTING: Final = 30.0
"""Seconds for which a process counts as starting."""

DRAIN_SECONDS: Final = 3.0
"""How long an ending process still listens: until no API server sends it requests any more."""


class WayPoller:
    """The result of the last poll.

    Polls only while `needed` returns true: while a SecondaryScheduler has `spec.assign`.
    """

    def __init__(self, needed: Callable[[], bool], changed: Callable[[], None]) -> None:
        self.way: AssignmentWay | None = None  # None: not known yet
        self.configuration: Object | None = None  # the MutatingWebhookConfiguration, if it exists
        self._needed = needed
        self._changed = changed
        self._problem = ""

    async def run(self, api: ApiClient) -> None:
        began = time.monotonic()
        while True:
            if self._needed():
                await self.poll(api)
            starts = self.way is None and time.monotonic() - began < STARTING
            await asyncio.sleep(FIRST_INTERVAL if starts else INTERVAL)

    async def poll(self, api: ApiClient) -> None:
        """Poll once; after an error, the last result stays.

        Without the right to look, only the way is not known any more: what was served is served
        on, because the rights of an operator may end before its Pods, when it is upgraded.
        """
        try:
            way, self.configuration = await find_way(api)
        except KubeError as error:
            if str(error) != self._problem:
                log.warning("Cannot find out what applies spec.assign: %s", error)
            self._problem = str(error)
            if not isinstance(error, Forbidden):
                return
            way = AssignmentWay.UNREADABLE
        except Exception as error:  # the content of an object must not end the task
            contained("polling", names.ASSIGNMENT, error)
            return
        else:
            self._problem = ""
        changed, self.way = way is not self.way, way
        if changed:
            self._changed()


async def find_way(api: ApiClient) -> tuple[AssignmentWay | None, Object | None]:
    """Return (what applies assignments, the MutatingWebhookConfiguration if there is one).

    A webhook that the API server does not trust yet applies nothing, but will: None.

    Raises:
        KubeError: a request failed.
    """
    configuration = await _get(api, MUTATING_WEBHOOKS)
    served = await _serves_policies(api)
    if (
        served
        and await _get(api, MUTATING_POLICIES) is not None
        and await _get(api, MUTATING_POLICY_BINDINGS) is not None
    ):
        return AssignmentWay.POLICY, configuration
    if configuration is None:
        return (AssignmentWay.NONE_POLICY if served else AssignmentWay.NONE_WEBHOOK), None
    if not await _has_service(api, configuration):
        return AssignmentWay.NO_SERVICE, configuration
    return (AssignmentWay.WEBHOOK if _is_trusted(configuration) else None), configuration


async def _has_service(api: ApiClient, configuration: Object) -> bool:
    """Whether the API server can reach the webhook; True if that is not known."""
    for webhook in configuration.get("webhooks") or ():
        service = mapping(mapping(webhook.get("clientConfig")).get("service"))
        if not service:
            continue
        try:
            await api.get(SERVICES.named(str(service["name"]), str(service["namespace"])))
        except Forbidden:
            return True
        except NotFound:
            return False
    return True


def _is_trusted(configuration: Object) -> bool:
    return all(
        mapping(webhook.get("clientConfig")).get("caBundle")
        for webhook in configuration.get("webhooks") or ()
    )


async def _serves_policies(api: ApiClient) -> bool:
    group = await api.get_path(f"/apis/{MUTATING_POLICIES.api_version}")
    return any(kind.get("name") == MUTATING_POLICIES.plural for kind in group["resources"])


async def _get(api: ApiClient, resource: Resource) -> Object | None:
    try:
        return await api.get(resource.named(names.ASSIGNMENT))
    except NotFound:
        return None


# --- the webhook --------------------------------------------------------------------------------


class AssignmentWebhook:
    """The process that listens, and its certificates.

    `schedulers` returns None while the SecondarySchedulers are not known, and `configuration`
    returns None if the MutatingWebhookConfiguration does not exist. See `WebhookProcess` for
    `address`, `kubeconfig` and `observer`.
    """

    def __init__(
        self,
        platform: Platform,
        address: tuple[str, int],
        kubeconfig: str | None,
        schedulers: Callable[[], Sequence[Object] | None],
        configuration: Callable[[], Object | None],
        observer: Callable[[str, int], None] = lambda _result, _number: None,
    ) -> None:
        self._schedulers = schedulers
        self._configuration = configuration
        self._secret = SECRETS.named(names.WEBHOOK, platform.operator_namespace)
        self._host = f"{names.WEBHOOK}.{platform.operator_namespace}.svc"
        excluded = sorted(platform.unassigned_namespaces)
        self._process = WebhookProcess(address, kubeconfig, excluded, observer)
        self._trusted: tuple[str, float] = ("", 0.0)
        self._listening_since = math.inf
        self._problem = ""

    @property
    def port(self) -> int:
        """0 while it does not listen."""
        return self._process.port

    @property
    def expires(self) -> datetime | None:
        """The expiry of the certificate in use; None without one."""
        served = self._process.certificate
        return x509.expires(served.encode()) if served else None

    async def run(
        self,
        api: ApiClient,
        leading: ApiClient,
        leads: Callable[[], bool],
        now: Callable[[], datetime],
    ) -> None:
        """Serve while the configuration exists; `leading` writes certificates while it leads."""
        began = time.monotonic()
        try:
            while True:
                try:
                    await self._keep(api, leading if leads() else None, now)
                    self._problem = ""
                except (KubeError, CertificateError, OSError) as error:
                    self._report(str(error))
                except Exception as error:  # the next check may succeed
                    contained("webhook", names.ASSIGNMENT, error)
                starts = not self.port and time.monotonic() - began < STARTING
                await asyncio.sleep(FIRST_INTERVAL if starts else INTERVAL)
        finally:
            await self._process.stop()

    def changed(self) -> None:
        """Pass changed SecondarySchedulers on."""
        self._process.use(essentials(self._schedulers() or ()))

    async def drain(self) -> None:
        """Listen for a little longer, if it listens: API servers learn later that the Pod ends."""
        if self.port:
            await asyncio.sleep(DRAIN_SECONDS)

    async def _keep(
        self, api: ApiClient, leading: ApiClient | None, now: Callable[[], datetime]
    ) -> None:
        configuration = self._configuration()
        if configuration is None:
            await self._process.stop()
            self._listening_since = math.inf
            return
        if self.port:
            self._listening_since = min(self._listening_since, time.monotonic())
        secret = await api.get(self._secret)
        if leading is not None:
            await self._renew(leading, secret, configuration, now())
        data = data_of(secret)
        if data.get(CERTIFICATE) and data.get(KEY):
            self.changed()
            self._process.serve(data[CERTIFICATE], data[KEY])

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
            next_step, data_of(secret), bundle, now, trusted_for, lambda: issue(self._host, DAYS)
        )
        if step is None or (step.bundle and not bundle and not self._others_listen()):
            return
        await self._write(api, secret, configuration, step)

    def _others_listen(self) -> bool:
        """Whether the other replicas have had the time to listen; they begin after this one.

        The API server sends requests to all of them once it trusts one.
        """
        listens_for = time.monotonic() - self._listening_since
        return listens_for >= INTERVALS_TO_LISTEN * INTERVAL

    async def _write(
        self, api: ApiClient, secret: Object, configuration: Object, step: CertificateStep
    ) -> None:
        """Write one step; both objects are replaced only at the version that was read."""
        if step.data is not None:
            await api.replace(SECRETS, {**secret, "data": encoded(step.data)})
            log.info("Renewed the webhook's certificate", extra=kv(reason=step.reason))
        if step.bundle:
            await api.replace(MUTATING_WEBHOOKS, with_bundle(configuration, step.bundle))
            log.info("Updated the webhook's caBundle", extra=kv(reason=step.reason))
