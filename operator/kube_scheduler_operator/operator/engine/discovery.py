"""What the operator learns of its cluster besides what it watches.

These are the API server's version, the operator's own Deployment, and the platform where that was
detected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from ...base import klog
from ...base.tasks import until
from ...config.language.versions import MINORS_BEHIND, Version
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from .detect_platform import decide_platform, read_record
from .followed_version import FollowedVersion
from .options import OperatorOptions
from .own_deployment import read_own_deployment

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

DECIDE_SECONDS: Final = 60.0
"""Between two attempts to detect a platform, until nodes show which one it is."""
_RETRY_SECONDS: Final = 2.0


class Discovery:
    """Reads until the API server answers; each coroutine ends early once `stop` is set.

    `changed` is called when the next reconcile would decide otherwise.
    """

    def __init__(self, options: OperatorOptions, changed: Callable[[], None]) -> None:
        self.settings = options.settings  # with the image of the own Deployment, if it is followed
        self.decision = options.decision
        self.version = FollowedVersion()
        self._options = options
        self._platform = options.platform
        self._changed = changed

    async def read(self, api: ApiClient, stop: asyncio.Event) -> str:
        """Read the server's version and the own Deployment, and return the uid of that."""
        version, deployment = await asyncio.gather(
            self._answered_version(api, stop),
            _retried(stop, "own Deployment", lambda: read_own_deployment(api, self._platform)),
        )
        self.version.observe(version, time.monotonic())
        if deployment is None:
            return ""
        if self._options.follows_deployment and deployment.image:
            self.settings = replace(self.settings, operator_image=deployment.image)
        return deployment.uid

    async def decide(self, api: ApiClient, stop: asyncio.Event) -> None:
        """Decide the platform again until nodes show what it is.

        Nodes, and the right to list them, may appear after the operator. The steps of a reconcile
        do not change while a process runs, so another platform sets `stop`.
        """
        while self.decision is not None and self.decision.open and not stop.is_set():
            await until(stop.wait(), asyncio.sleep(DECIDE_SECONDS))
            try:
                decided = await decide_platform(api, self._options.chosen)
            except KubeError as error:
                log.warning("Cannot detect the platform, will retry: %s", error)
                continue
            if decided.platform != self._platform:
                log.warning(
                    "The nodes show another platform; the process ends and starts again for it",
                    extra=klog.kv(platform=decided.platform.name, reason=decided.used.reason),
                )
                stop.set()
            elif decided != self.decision:
                self.decision = decided
                log.info(
                    "Detected the provider",
                    extra=klog.kv(provider=decided.used.provider, reason=decided.used.reason),
                )
                self._changed()

    async def recall(self, api: ApiClient, stop: asyncio.Event) -> None:
        """Continue from the version that the last leader followed.

        A standby read the version at its start, which may predate an upgrade.
        """
        if self._platform.owns_static_pods:
            return
        what, platforms = "record of the platform", [self._platform]
        remembered = await _retried(stop, what, lambda: read_record(api, platforms))
        if remembered is not None:
            answer = await self._answered_version(api, stop)
            delay = self.settings.upgrade_delay
            version = FollowedVersion(_supported(remembered.version, answer), delay)
            version.observe(answer, time.monotonic())
            self.version = version

    async def follow(self, api: ApiClient, stop: asyncio.Event) -> None:
        """Follow the provider's upgrades of the control plane, where images follow its version."""
        while not stop.is_set() and not self._platform.owns_static_pods:
            await until(stop.wait(), asyncio.sleep(self.version.interval))
            answer = await self._answered_version(api, stop)
            if self.version.observe(answer, time.monotonic()):
                log.info(
                    "The API server's version changed",
                    extra=klog.kv(followed=self.version.text, newer=self.version.newer),
                )
                self._changed()

    async def _answered_version(self, api: ApiClient, stop: asyncio.Event) -> str:
        answer = await _retried(stop, "API server's version", lambda: api.get_path("/version"))
        return str((answer or {}).get("gitVersion", ""))


async def _retried(
    stop: asyncio.Event, what: str, read: Callable[[], Awaitable[Answer]]
) -> Answer | None:
    """Read until that succeeds; None if `stop` is set first."""
    while not stop.is_set():
        try:
            return await read()
        except KubeError as error:
            log.warning("Cannot read the %s, will retry: %s", what, error)
            await until(stop.wait(), asyncio.sleep(_RETRY_SECONDS))
    return None


def _supported(recorded: str, answer: str) -> str:
    """Return the recorded version; empty if it is too old for the API server.

    Providers upgrade one minor version at a time, so such a record is outdated or forged.
    """
    with contextlib.suppress(ValueError):
        older, newer = Version.parse(recorded), Version.parse(answer)
        return "" if newer.minor - older.minor > MINORS_BEHIND else recorded
    return ""
