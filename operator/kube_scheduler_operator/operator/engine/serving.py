"""Keeps the operator's port up to date: its certificate, TLS settings and the clients' CA.

The TLS settings come from the ConfigMap in which the cluster configures the operator; otherwise
from the TLS security profile that the schedulers follow. The ConfigMap is watched instead of
mounted: a kubelet takes more than a minute to update a file. Standby replicas follow all of this,
too.

The port is served in a thread of its own. Objects in the store never change, so the loop of the
store passes them without copies (`ServingSources`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...base import names
from ...base.klog import kv
from ...base.objects import mapping
from ...base.platform import AUTHENTICATION_NAMESPACE, Platform
from ...config.effective.control_plane.observe import tls_profile
from ...config.effective.control_plane.tls_profiles import serving_info
from ...kube import resource as kinds
from ...kube.resource import ObjectRef
from ...kube.store import Fields, Store
from ...serving.certificate import ServingCertificate
from ...serving.tls_settings import TLSSettings, TLSSettingsError, parse_serving_info

log = logging.getLogger(__name__)

_CLIENT_CA = ObjectRef(kinds.CONFIG_MAPS, AUTHENTICATION_NAMESPACE, names.CLIENT_CA)


@dataclass(frozen=True, slots=True)
class ServingSources:
    """The objects on which the port is based; None: the object does not exist."""

    config: Fields | None = None  # the ConfigMap in which the cluster configures the operator
    api_server: Fields | None = None  # OpenShift's APIServer
    kube_scheduler: Fields | None = None
    client_ca: Fields | None = None  # the ConfigMap with the CA of the API server's clients

    @classmethod
    def of(cls, store: Store, platform: Platform) -> ServingSources:
        """Read the objects in the store; only for its event loop."""
        namespace = platform.operator_namespace
        return cls(
            store.get(ObjectRef(kinds.CONFIG_MAPS, namespace, platform.operator.config)),
            store.get(ObjectRef(kinds.API_SERVERS, None, names.CLUSTER)),
            store.get(ObjectRef(kinds.KUBE_SCHEDULERS, None, names.CLUSTER)),
            store.get(_CLIENT_CA),
        )


class Serving:
    """The certificate and the TLS settings of the port."""

    def __init__(
        self,
        certificate: ServingCertificate,
        sources: Callable[[], ServingSources],
        platform: Platform,
    ) -> None:
        self.certificate = certificate
        self._config = ObjectRef(
            kinds.CONFIG_MAPS, platform.operator_namespace, platform.operator.config
        )
        self._sources = sources
        self._platform = platform
        self._settings = TLSSettings()
        self._reported = ""

    async def refresh(self) -> bool:
        """Follow all sources; return whether open connections have outdated settings."""
        await asyncio.to_thread(self.certificate.reload)
        sources = self._sources()
        settings = self._current(sources)
        self.certificate.use(settings, _client_ca(sources))
        before, self._settings = self._settings, settings
        if before == settings:
            return False
        log.info(
            "TLS settings of the operator's port changed",
            extra=kv(min=self._settings.min_version, ciphers=",".join(self._settings.ciphers)),
        )
        return True

    def _current(self, sources: ServingSources) -> TLSSettings:
        """Read the settings of the first source that has any; after an error, keep those in use."""
        try:
            data = mapping(mapping(sources.config).get("data"))
            info = parse_serving_info(str(data.get(names.OPERATOR_CONFIG_KEY) or ""))
            settings, unknown = TLSSettings.parse(info or self._profile(sources))
        except TLSSettingsError as error:
            self._report(f"Cannot use the TLS settings of {self._config}: {error}")
            return self._settings
        ignored = f"Cipher suites that the operator's port does not support: {', '.join(unknown)}"
        self._report(ignored if unknown else "")
        return settings

    def _profile(self, sources: ServingSources) -> Mapping[str, Any]:
        """Return the profile that the schedulers follow, as `servingInfo`; empty: none is set."""
        spec = mapping(mapping(sources.kube_scheduler).get("spec"))
        source = tls_profile(self._platform, sources.api_server, spec)
        return serving_info(source.profile)[0] if source else {}

    def _report(self, problem: str) -> None:
        if problem and problem != self._reported:
            log.warning(problem)
        self._reported = problem


def _client_ca(sources: ServingSources) -> str:
    """Return the CA of the API server's clients, PEM; empty: client certificates are not used."""
    data = mapping(mapping(sources.client_ca).get("data"))
    return str(data.get(names.CLIENT_CA_KEY) or "")
