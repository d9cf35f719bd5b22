"""kopf's settings, storages and login: it watches and never writes."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from ...base.backoff import Backoff
from ..client import PAGE
from ..credentials import Access, Credentials
from ..errors import CredentialsError
from .imports import LOGGERS, kopf

_log = logging.getLogger(__name__)

LOGIN_LIFETIME: Final = datetime.timedelta(minutes=5)
"""kopf requests credentials again after this time, and so uses rotated tokens."""

_REQUESTS: Final = Backoff((1.0, 2.0, 3.0))
_RELIST: Final = Backoff.exponential(0.5, 30.0)
_RESTART: Final = Backoff.exponential(1.0, 30.0)

_LOGIN_BACKOFF: Final = Backoff((0.0, 1.0, 2.0, 5.0, 10.0, 30.0))
"""Before a login that kopf requests although the last one has not expired: the server answers 401,
and kopf would repeat the login at once, indefinitely."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tuning:
    """Timeouts and delays of the watches, seconds; tests shorten them."""

    # before kopf repeats a failed request; a stream that still fails is listed again after `relist`
    requests: Backoff = _REQUESTS
    relist: Backoff = _RELIST  # before a stream that ended is listed again
    stable: float = 60.0  # age at which a stream, or kopf, starts with the first delay again
    reconnect: float = 0.1  # delay between two watches of one stream
    server_timeout: int = 300  # age at which the server ends a watch, to spread load
    # a watch without an event or bookmark for this long counts as dead; servers send one bookmark a
    # minute
    inactivity: float = 70.0
    # interval of checks for required kinds that the API server does not serve
    discovery: float = 5.0
    appearing: float = 15.0  # the same for optional kinds
    restart: Backoff = _RESTART  # before kopf starts again after it ended
    check: float = 1.0  # interval of health checks of kopf
    start: float = 60.0  # deadline for kopf to open every stream
    silence: float = 900.0  # kopf restarts if a stream delivers nothing for this long
    quiet: float = 150.0  # a stream that delivers nothing for this long is listed again


class NoDiffBase(kopf.MultiDiffBaseStorage):
    """Stores nothing about objects, so that kopf neither annotates nor deep-copies them."""

    def __init__(self) -> None:
        super().__init__(())

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()


def configure(settings: kopf.OperatorSettings, tuning: Tuning) -> None:
    """Make kopf watch without scans of CRDs and Namespaces, and write nothing."""
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = kopf.MultiProgressStorage(())
    settings.watching.chunk_size = PAGE
    settings.watching.server_timeout = tuning.server_timeout
    settings.watching.inactivity_timeout = tuning.inactivity
    settings.watching.reconnect_backoff = tuning.reconnect
    settings.watching.connect_timeout = 10.0
    settings.networking.error_backoffs = tuning.requests.delays
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 10.0
    # Workers are cheap to create; a burst must not leave thousands of idle ones.
    settings.queueing.idle_timeout = 1.0
    # kopf would send SIGKILL to this process if it takes long to stop.
    settings.process.ultimate_exiting_timeout = None


def quiet() -> None:
    """Keep kopf's per-event lines, and the bodies in its debug lines, out of the log."""
    levels = {"kopf": logging.WARNING} | dict.fromkeys(LOGGERS.values(), logging.ERROR)
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.setLevel(max(level, logger.level))


def connection_info(access: Access, expires: datetime.datetime) -> kopf.ConnectionInfo:
    """Return credentials as kopf takes them; it requests new ones at `expires`.

    Raises:
        CredentialsError: kopf does not support them.
    """
    if access.tls_server_name:
        raise CredentialsError(
            f"watches do not support tls-server-name {access.tls_server_name!r}; use a server "
            "URL in the kubeconfig that matches the server's certificate"
        )
    scheme, _, token = (access.authorization or "").partition(" ")
    return kopf.ConnectionInfo(
        server=access.server,
        ca_path=access.ca_file,
        insecure=not access.verify,
        certificate_path=access.cert_file,
        private_key_path=access.key_file,
        scheme=scheme or None,
        token=token or None,
        proxy_url=access.proxy,
        expiration=expires,
    )


class Login:
    """Passes credentials to kopf, with a back-off that kopf's login lacks.

    `failed` is called with the reason why the credentials cannot be loaded; `backoff` delays each
    login in a row that comes too early.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        failed: Callable[[Exception], None],
        backoff: Backoff = _LOGIN_BACKOFF,
    ) -> None:
        self._credentials = credentials
        self._failed = failed
        self._backoff = backoff
        self._early = 0
        self._last: float | None = None

    async def connection(self) -> kopf.ConnectionInfo:
        """Return credentials that are valid for LOGIN_LIFETIME; waits until they can be loaded."""
        if self._last is not None:
            if time.monotonic() - self._last < LOGIN_LIFETIME.total_seconds() / 2:
                self._credentials.invalidate()  # the server rejected the last ones
                await asyncio.sleep(self._delay())
            else:
                self._early = 0
        while True:
            try:
                access = await self._credentials.access()
                expires = datetime.datetime.now(datetime.UTC) + LOGIN_LIFETIME
                info = connection_info(access, expires)
            except CredentialsError as error:
                self._failed(error)
                await asyncio.sleep(max(self._delay(), self._backoff.delay(1)))
            else:
                self._last = time.monotonic()
                return info

    def _delay(self) -> float:
        self._early += 1
        return self._backoff.delay(self._early - 1)
