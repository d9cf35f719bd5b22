"""Keeps the operator's port up to date: its certificate, TLS settings and the clients' CA.

The TLS settings are those of the ConfigMap in which the cluster configures the operator; otherwise
the TLS security profile that the schedulers follow. The ConfigMap is watched instead of mounted: a
kubelet takes more than a minute to update a file. Standby replicas follow all of it, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from ..base import names
from ..base.klog import kv
from ..base.objects import mapping
from ..base.platform import AUTHENTICATION_NAMESPACE, Platform
from ..controlplane.observe import tls_profile
from ..controlplane.tls_profiles import serving_info
from ..kube import resource as kinds
from ..kube.resource import ObjectRef
from ..kube.store import Store
from ..telemetry.certificate import ServingCertificate
from ..telemetry.operator_config import OperatorConfigError, parse_serving_info
from ..telemetry.tls_settings import TLSSettings, TLSSettingsError

log = logging.getLogger(__name__)

_CLIENT_CA = ObjectRef(kinds.CONFIG_MAPS, AUTHENTICATION_NAMESPACE, names.CLIENT_CA)


class Serving:
    """What the port offers.

    Attributes:
        certificate: the certificate, with the TLS context of the server.
    """

    def __init__(
        self,
        certificate: ServingCertificate,
        store: Store,
        platform: Platform,
    ) -> None:
        self.certificate = certificate
        self._config = ObjectRef(
            kinds.CONFIG_MAPS, platform.operator_namespace, platform.operator.config
        )
        self._store = store
        self._platform = platform
        self._settings = TLSSettings()
        self._reported = ""

    async def refresh(self) -> bool:
        """Follow all sources; whether open connections have outdated settings."""
        await asyncio.to_thread(self.certificate.reload)
        before, self._settings = self._settings, self._current()
        self.certificate.use(self._settings, self._client_ca())
        if before == self._settings:
            return False
        log.info(
            "TLS settings of the operator's port changed",
            extra=kv(min=self._settings.min_version, ciphers=",".join(self._settings.ciphers)),
        )
        return True

    def _current(self) -> TLSSettings:
        """The settings of the first source that has any; after an error, those in use."""
        try:
            data = mapping(mapping(self._store.get(self._config)).get("data"))
            info = parse_serving_info(str(data.get(names.OPERATOR_CONFIG_KEY) or ""))
            settings, unknown = TLSSettings.parse(info or self._profile())
        except (OperatorConfigError, TLSSettingsError) as error:
            self._report(f"Cannot use the TLS settings of {self._config}: {error}")
            return self._settings
        ignored = f"Cipher suites that the operator's port cannot have: {', '.join(unknown)}"
        self._report(ignored if unknown else "")
        return settings

    def _profile(self) -> Mapping[str, Any]:
        """The profile that the schedulers follow, as `servingInfo`; empty: none is set."""
        apiserver = self._store.get(ObjectRef(kinds.API_SERVERS, None, names.CLUSTER))
        kubescheduler = self._store.get(ObjectRef(kinds.KUBE_SCHEDULERS, None, names.CLUSTER))
        spec = mapping(mapping(kubescheduler).get("spec"))
        source = tls_profile(self._platform, apiserver, spec)
        return serving_info(source.profile)[0] if source else {}

    def _client_ca(self) -> str:
        """The CA of the API server's clients, PEM; empty: client certificates are not used."""
        data = mapping(mapping(self._store.get(_CLIENT_CA)).get("data"))
        return str(data.get(names.CLIENT_CA_KEY) or "")

    def _report(self, problem: str) -> None:
        if problem and problem != self._reported:
            log.warning(problem)
        self._reported = problem
