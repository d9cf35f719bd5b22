"""kopf as a shell: the settings, storages and login that make it watch and never write.

Imports kopf, which costs most of the operator's memory: only the watching program imports this.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from ..errors import CredentialsError
from .imports import kopf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ..credentials import Access, Credentials

_log = logging.getLogger(__name__)

LOGIN_LIFETIME: Final = datetime.timedelta(minutes=5)
"""kopf asks for our identity again so often, which is how it learns of rotated tokens."""

_LOGIN_PAUSES: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Before a login that kopf wants although the last one has not expired, seconds: the server keeps
answering 401, and kopf itself would ask again at once, for ever."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tuning:
    """How patient the watches are, seconds; tests shorten everything.

    Attributes:
        request_backoffs: pauses before kopf repeats a failed request; short, because a stream that
            fails beyond them is not lost but listed again after `relist`.
        relist: pauses before a stream that ended is listed again: the first, and the longest.
        stable: a stream that lived so long starts with the first pause again.
        reconnect: pause between two watches of one stream.
        server_timeout: the server ends every watch after so long, to spread load.
        inactivity: a watch without even a bookmark for so long is dead; servers send one a minute.
        discovery: pause between two looks whether a missing kind is there now.
        appearing: the same for a kind that nobody waits for.
        restart: pauses before kopf is started again should it ever end: the first, and the longest.
        check: how often it is looked whether kopf should be started again.
        start: by when every stream must have been opened.
        silence: kopf is started again if a stream was not heard for so long.
    """

    request_backoffs: tuple[float, ...] = (1.0, 2.0, 3.0)
    relist: tuple[float, float] = (0.5, 30.0)
    stable: float = 60.0
    reconnect: float = 0.1
    server_timeout: int = 300
    inactivity: float = 70.0
    discovery: float = 5.0
    appearing: float = 15.0
    restart: tuple[float, float] = (1.0, 30.0)
    check: float = 1.0
    start: float = 60.0
    silence: float = 900.0


class NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing about objects, so that kopf neither annotates nor deep-copies them."""

    def build(
        self,
        *,
        body: kopf.Body,  # noqa: ARG002
        extra_fields: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> kopf.BodyEssence:
        """Nothing of the object matters."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:  # noqa: ARG002
        """Nothing was stored."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Store nothing."""


class NoProgress(kopf.ProgressStorage):
    """Remembers nothing about handlers: ours have no progress to remember."""

    def fetch(self, *, key: Any, body: kopf.Body) -> None:
        """Nothing was stored."""

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Store nothing."""

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Nothing to take away."""

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Touch nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Nothing to hide; the base class would deep-copy."""
        return essence


def settings(tuning: Tuning) -> kopf.OperatorSettings:
    """Settings with which kopf watches, serves no CRD or Namespace scan, and writes nothing."""
    result = kopf.OperatorSettings()
    result.scanning.disabled = True
    result.posting.enabled = False
    result.peering.standalone = True
    result.persistence.diffbase_storage = NoDiffBase()
    result.persistence.progress_storage = NoProgress()
    result.watching.server_timeout = tuning.server_timeout
    result.watching.inactivity_timeout = tuning.inactivity
    result.watching.reconnect_backoff = tuning.reconnect
    result.watching.connect_timeout = 10.0
    result.networking.error_backoffs = tuning.request_backoffs
    result.networking.request_timeout = 60.0
    result.networking.connect_timeout = 10.0
    # Workers are cheap to make again, and thousands of idle ones after a burst are not to keep.
    result.queueing.idle_timeout = 1.0
    # kopf's last resort is a SIGKILL to this process; when to die is not its business here.
    result.process.ultimate_exiting_timeout = None
    return result


def quiet() -> None:
    """Keep kopf's per-event lines, and the bodies in its debug lines, out of the log."""
    for name, level in (
        ("kopf", logging.WARNING),
        # Would print the body of an event of an unknown type.
        ("kopf._cogs.clients.watching", logging.ERROR),
        # Warns at every start that it leaves signals alone outside of the main thread.
        ("kopf._core.reactor.running", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.setLevel(max(level, logger.level))


def connection_info(access: Access, expires: datetime.datetime) -> kopf.ConnectionInfo:
    """Our identity in kopf's words, to be asked for again at `expires`.

    Raises:
        CredentialsError: kopf cannot connect that way.
    """
    if access.tls_server_name:
        raise CredentialsError(
            f"tls-server-name {access.tls_server_name!r} is not supported for watches; put a "
            "server URL into the kubeconfig that its certificate is made for"
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
    """The login handler: gives kopf our credentials, patiently where kopf would spin.

    Args:
        credentials: who we are.
        failed: told why there is no identity yet.
        pauses: before each login that comes too early in a row, seconds.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        failed: Callable[[Exception], None],
        pauses: Collection[float] = _LOGIN_PAUSES,
    ) -> None:
        self._credentials = credentials
        self._failed = failed
        self._pauses = tuple(pauses)
        self._early = 0
        self._last: float | None = None

    async def identify(self, **_: Any) -> kopf.ConnectionInfo:
        """An identity that is good for LOGIN_LIFETIME; waits until there is one."""
        if self._last is not None:
            if time.monotonic() - self._last < LOGIN_LIFETIME.total_seconds() / 2:
                self._credentials.invalidate()  # the server did not like the last one
                await asyncio.sleep(self._pause())
            else:
                self._early = 0
        while True:
            try:
                access = await self._credentials.access()
                expires = datetime.datetime.now(datetime.UTC) + LOGIN_LIFETIME
                info = connection_info(access, expires)
            except CredentialsError as error:
                self._failed(error)
                await asyncio.sleep(max(self._pause(), self._pauses[1]))
            else:
                self._last = time.monotonic()
                return info

    def _pause(self) -> float:
        pause = self._pauses[min(self._early, len(self._pauses) - 1)]
        self._early += 1
        return pause
