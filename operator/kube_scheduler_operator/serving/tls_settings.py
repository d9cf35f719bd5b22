"""TLS versions and cipher suites of the operator's port, as `servingInfo` of OpenShift names them.

kube-scheduler receives the same fields as flags. As with its crypto/tls, cipher suites of TLS 1.3
cannot be chosen: all of them are in use, and the list is for TLS 1.2 and before.
"""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ..base.cipher_suites import OPENSSL
from ..base.findings import did_you_mean, listing
from ..base.objects import mapping

CONFIG_KIND: Final = "GenericOperatorConfig"
"""OpenShift's configuration of an operator, of which `servingInfo` is used."""

VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
DEFAULT_VERSION: Final = "VersionTLS12"

_TLS_13: Final = frozenset(iana for iana, openssl in OPENSSL.items() if iana == openssl)
_DEFAULT_CIPHERS: Final = ":".join(
    cipher["name"] for cipher in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()
)
_OLD: Final = frozenset({"VersionTLS10", "VersionTLS11"})
_WEAK: Final = ":@SECLEVEL=0"  # OpenSSL has no TLS before 1.2 at its default level


class TLSSettingsError(ValueError):
    """Settings that cannot be used; the message has the field, the problem and the fix."""


def parse_serving_info(text: str) -> Mapping[str, Any]:
    """Read `servingInfo` from a configuration in YAML; empty if the text or the field is empty.

    Raises:
        TLSSettingsError: the text is not a GenericOperatorConfig.
    """
    import yaml  # deferred: only the operator has such a configuration

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TLSSettingsError(f"it is not YAML: {str(error).splitlines()[0]}") from error
    if document is None:
        return {}
    if not isinstance(document, Mapping) or document.get("kind") != CONFIG_KIND:
        raise TLSSettingsError(f"it must be an object of kind {CONFIG_KIND}")
    serving_info = document.get("servingInfo")
    if serving_info is not None and not isinstance(serving_info, Mapping):
        raise TLSSettingsError("servingInfo must be an object, such as {minTLSVersion: …}")
    return mapping(serving_info)


@dataclass(frozen=True, slots=True)
class TLSSettings:
    min_version: str = DEFAULT_VERSION  # the lowest TLS version, by Go's name
    # OpenSSL's names of the cipher suites up to TLS 1.2; empty: OpenSSL's default
    ciphers: tuple[str, ...] = ()

    @classmethod
    def parse(cls, serving_info: Mapping[str, Any]) -> tuple[TLSSettings, list[str]]:
        """Read a `servingInfo`: the settings, and the names of unknown cipher suites.

        It has minTLSVersion, and cipherSuites by IANA's names; absent and empty fields have their
        defaults. A list without a suite of TLS 1.2 leaves TLS 1.3 alone.

        Raises:
            TLSSettingsError: a field has an invalid value.
        """
        version = serving_info.get("minTLSVersion") or DEFAULT_VERSION
        if version not in VERSIONS:
            hint = did_you_mean(str(version), VERSIONS) or f"; use {listing(VERSIONS)}"
            raise TLSSettingsError(f'servingInfo.minTLSVersion: "{version}" is unknown{hint}')
        suites = serving_info.get("cipherSuites") or []
        if not isinstance(suites, list) or not all(isinstance(name, str) for name in suites):
            raise TLSSettingsError(
                "servingInfo.cipherSuites must be a list of names, such as "
                "[TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]"
            )
        offered = [OPENSSL[name] for name in suites if name in OPENSSL and name not in _TLS_13]
        ciphers = tuple(name for name in offered if _is_built_in(name))
        unknown = [
            name for name in suites if name not in _TLS_13 and OPENSSL.get(name) not in ciphers
        ]
        if suites and not ciphers:
            version = "VersionTLS13"
        return cls(version, ciphers), unknown

    def apply(self, context: ssl.SSLContext) -> None:
        """Apply the settings to `context`; new handshakes use them."""
        weak = _WEAK if self.min_version in _OLD else ""
        context.set_ciphers(f"{':'.join(self.ciphers) or _DEFAULT_CIPHERS}{weak}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the administrator chose Old
            context.minimum_version = VERSIONS[self.min_version]


@cache
def _is_built_in(cipher: str) -> bool:
    """Return whether this build of OpenSSL has the cipher suite; 3DES, for example, is optional."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.set_ciphers(f"{cipher}{_WEAK}")
    except ssl.SSLError:
        return False
    return True
