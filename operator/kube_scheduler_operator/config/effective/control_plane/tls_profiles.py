"""TLS security profiles: the settings of kube-scheduler for Old, Intermediate, Modern and Custom.

The profiles are those of openshift/api (config/v1/types_tlssecurityprofile.go), which follow
Mozilla's (https://wiki.mozilla.org/Security/Server_Side_TLS) and name cipher suites as OpenSSL
does. Go wants IANA's names, and without a suite that its crypto/tls does not have: kube-scheduler
would not start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....base.cipher_suites import IANA, OPENSSL
from ....base.findings import Path, Problem, did_you_mean, listing
from ....base.objects import mapping

UNKNOWN_PROFILE: Final = "UnknownTLSProfile"
MALFORMED: Final = "Malformed"
UNSUPPORTED_SUITE: Final = "UnsupportedCipherSuite"
NO_SUITE: Final = "NoCipherSuite"

_SUITES: Final = tuple(IANA.values())

OLD, INTERMEDIATE, MODERN, CUSTOM = "Old", "Intermediate", "Modern", "Custom"
_PROFILES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    OLD: ("VersionTLS10", _SUITES[:-1]),  # all but ECDHE-RSA-DES-CBC3-SHA
    INTERMEDIATE: ("VersionTLS12", _SUITES[:9]),
    MODERN: ("VersionTLS13", _SUITES[:3]),
}
TYPES: Final = (*_PROFILES, CUSTOM)


def serving_info(profile: Any) -> tuple[dict[str, Any], list[Problem]]:
    """Convert a tlsSecurityProfile to `servingInfo` (minTLSVersion, cipherSuites).

    None and invalid values become Intermediate; paths of problems start in the profile.
    """
    if profile is None:
        return _named(INTERMEDIATE), []
    if not isinstance(profile, Mapping):
        message = "a TLS profile must be an object, such as {type: Intermediate}"
        return _named(INTERMEDIATE), [Problem(MALFORMED, (), message)]
    type_ = profile.get("type") or INTERMEDIATE
    if type_ == CUSTOM:
        return _custom(profile.get("custom"))
    if isinstance(type_, str) and type_ in _PROFILES:
        return _named(type_), []
    hint = did_you_mean(str(type_), TYPES)
    message = f'TLS profile "{type_}" is not known; use {listing(TYPES)}{hint}'
    return _named(INTERMEDIATE), [Problem(UNKNOWN_PROFILE, ("type",), message)]


def _named(name: str) -> dict[str, Any]:
    version, suites = _PROFILES[name]
    return {"minTLSVersion": version, "cipherSuites": list(suites)}


def _custom(custom: Any) -> tuple[dict[str, Any], list[Problem]]:
    path: Path = ("custom",)
    if not mapping(custom):
        message = "type Custom needs minTLSVersion and ciphers; add them or use another type"
        return _named(INTERMEDIATE), [Problem(MALFORMED, path, message)]
    problems: list[Problem] = []
    version, names = custom.get("minTLSVersion") or "", custom.get("ciphers") or []
    if not isinstance(version, str):
        message = "minTLSVersion must be a string such as VersionTLS12"
        problems.append(Problem(MALFORMED, (*path, "minTLSVersion"), message))
        version = ""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        message = "ciphers must be a list of OpenSSL's names"
        problems.append(Problem(MALFORMED, (*path, "ciphers"), message))
        names = []
    for index, name in enumerate(names):
        if name not in IANA:
            where = (*path, "ciphers", index)
            problems.append(Problem(UNSUPPORTED_SUITE, where, _unsupported(name)))
    suites = [IANA[name] for name in names if name in IANA]
    if names and not suites and version != "VersionTLS13":
        message = (
            "kube-scheduler supports none of these and would use its default instead; add a "
            "supported one, such as ECDHE-RSA-AES128-GCM-SHA256"
        )
        problems.append(Problem(NO_SUITE, (*path, "ciphers"), message))
    info = {"minTLSVersion": version, "cipherSuites": suites}
    return {key: value for key, value in info.items() if value}, problems


def _unsupported(name: str) -> str:
    """Explain why a cipher suite is not used, with the fix."""
    if name in OPENSSL:
        return (
            f'"{name}" is not used, because this field has OpenSSL\'s names; write {OPENSSL[name]}'
        )
    return f'kube-scheduler has no cipher suite "{name}"{did_you_mean(name, IANA) or "; remove it"}'
