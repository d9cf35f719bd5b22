"""kube-scheduler's flags: types and validation of their values.

The preflight runs the scheduler without serving, so it does not detect wrong cipher suites, TLS
versions or addresses: only this validation does before a node is changed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...base.cipher_suites import IANA
from ...base.findings import WARNING, Problem, did_you_mean, listing
from ...base.go_values import boolean, duration_text, integer, nanoseconds, seconds
from .feature_gates import Gates, has_gate, known_gates, parse_gates, versions_with_gate
from .literal_fixes import duration_fix, type_fix
from .schema import TIMINGS
from .versions import Version

INVALID_ARGUMENT: Final = "InvalidArgument"
UNKNOWN_ARGUMENT: Final = "UnknownArgument"
UNKNOWN_FEATURE_GATE: Final = "UnknownFeatureGate"
VOID_ARGUMENT: Final = "VoidArgument"

POLICY_KEY: Final = "policy.cfg"
"""The key of the ConfigMap from which kube-scheduler read a Policy (--policy-configmap)."""
VOID_WITH_CONFIG: Final[Mapping[str, str]] = {
    "contention-profiling": "enableContentionProfiling",
    "kube-api-burst": "clientConnection.burst",
    "kube-api-content-type": "clientConnection.contentType",
    "kube-api-qps": "clientConnection.qps",
    "profiling": "enableProfiling",
}
"""Flags that kube-scheduler ignores if --config is set -> the field to set instead."""

ELECTION_FIELDS: Final[Mapping[str, str]] = {
    "leader-elect": "leaderElect",
    "leader-elect-lease-duration": "leaseDuration",
    "leader-elect-renew-deadline": "renewDeadline",
    "leader-elect-retry-period": "retryPeriod",
    "leader-elect-resource-lock": "resourceLock",
    "leader-elect-resource-name": "resourceName",
    "leader-elect-resource-namespace": "resourceNamespace",
}
"""Flag -> the field of leaderElection; a flag that is set counts (ApplyLeaderElectionTo)."""
ELECTION_FLAGS: Final = {field: flag for flag, field in ELECTION_FIELDS.items() if field in TIMINGS}
"""Timing of leaderElection -> its flag, which takes precedence."""
_TIMINGS: Final = {flag: TIMINGS[field] for field, flag in ELECTION_FLAGS.items()}

TLS_VERSIONS: Final = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
CIPHER_SUITES: Final = frozenset({
    *IANA.values(),
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_RC4_128_SHA",
})  # fmt: skip
"""The suites of Go's crypto/tls, including insecure ones and two old names of Kubernetes."""

HTTP2_SUITES: Final = frozenset(
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
)
"""HTTP/2 below TLS 1.3 requires one of these."""

_STRINGS: Final = (
    "authentication-kubeconfig", "authorization-kubeconfig", "authorization-always-allow-paths",
    "config", "disabled-metrics", "emulated-version", "kube-api-content-type", "kubeconfig",
    "leader-elect-resource-lock", "leader-elect-resource-name", "leader-elect-resource-namespace",
    "log-json-info-buffer-size", "log-text-info-buffer-size", "master",
    "min-compatibility-version", "requestheader-allowed-names",
    "requestheader-extra-headers-prefix", "requestheader-group-headers",
    "requestheader-uid-headers", "requestheader-username-headers",
    "show-hidden-metrics-for-version", "version", "write-config-to", "feature-gates",
)  # fmt: skip
_PATHS: Final = (
    "allow-metric-labels-manifest", "cert-dir", "client-ca-file", "requestheader-client-ca-file",
    "tls-cert-file", "tls-private-key-file",
)  # fmt: skip
BOOLEANS: Final = (
    "authentication-skip-lookup", "authentication-tolerate-lookup-failure",
    "contention-profiling", "disable-http2-serving", "help",
    "leader-elect", "log-json-split-stream", "log-text-split-stream", "permit-address-sharing",
    "permit-port-sharing", "profiling",
)  # fmt: skip
_INTEGERS: Final = ("http2-max-streams-per-connection", "kube-api-burst")
_DURATIONS: Final = (
    "authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl", "leader-elect-lease-duration",
    "leader-elect-renew-deadline", "leader-elect-retry-period", "log-flush-frequency",
    "pod-max-in-unschedulable-pods-duration",
)  # fmt: skip

ON_RECORD: Final = (34, 35, 36, 37, 38)
"""The minors all of whose flags are recorded; others may have a few more or fewer."""
_SINCE: Final[Mapping[str, int]] = {"min-compatibility-version": 35, "tls-curve-preferences": 36}
"""The minor that added a flag, unless all recorded minors have it."""


def _port(text: str) -> None:
    if not 1 <= integer(text) <= 65535:
        raise ValueError(f"{text} is not a port; use 1 to 65535")


def _address(text: str) -> None:
    if text:  # blank means all interfaces
        try:
            ipaddress.ip_address(text.strip().split("%")[0])
        except ValueError:
            raise ValueError(f'"{text}" is not an IP address; use one such as 127.0.0.1') from None


def _absolute(text: str) -> None:
    # The working directory depends on the image.
    if text and not text.startswith("/"):
        raise ValueError(f'"{text}" is not an absolute path; start it with /')


def _file_pattern(text: str) -> None:
    for part in text.split(",") if text else ():
        pattern, _, level = part.partition("=")
        # Unprintable characters are reported as unsafe.
        if part.isprintable() and part and not (pattern and level.isascii() and level.isdigit()):
            raise ValueError(f'"{part}" is not PATTERN=LEVEL; write one such as scheduler*=5')


def _label_pairs(text: str) -> None:
    if text and "=" not in text:
        raise ValueError(f'"{text}" is not METRIC,LABEL=VALUE,...; write one with an equals sign')


def _certificate_and_key(text: str) -> None:
    if text.partition(":")[0].count(",") != 1:
        raise ValueError(f'"{text}" does not name a certificate and its key; write CERT,KEY')


def _log_format(text: str) -> None:
    if text not in ("json", "text"):
        raise ValueError(f'"{text}" is not a log format; use text or json')


def _tls_version(text: str) -> None:
    if text and text not in TLS_VERSIONS:
        hint = did_you_mean(text, TLS_VERSIONS) or f"; use {listing(TLS_VERSIONS)}"
        raise ValueError(f'"{text}" is not a TLS version{hint}')


def _cipher_suites(text: str) -> None:
    for name in text.split(",") if text else ():
        if name not in CIPHER_SUITES:
            hint = (
                did_you_mean(IANA.get(name, name), CIPHER_SUITES)
                or "; use an IANA name that Go supports"
            )
            raise ValueError(f'"{name}" is not a cipher suite{hint}')


def _curves(text: str) -> None:
    # Which curves exist depends on the Go version of the build.
    curves = [integer(part) for part in text.split(",")] if text else []
    for curve in curves:
        if not 1 <= curve <= 65535:
            raise ValueError(f"{curve} is not a CurveID of Go's crypto/tls; use 1 to 65535")
    if len(set(curves)) != len(curves):
        raise ValueError(f'"{text}" lists a curve twice; remove one')


def _verbosity(text: str) -> None:
    if not 0 <= integer(text) < 2**31:
        raise ValueError(f"{text} is not a log level; use 0 to 10")


def _number(text: str) -> None:
    try:
        float(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a number; write one such as 50') from None


def _anything(_: str) -> None:
    return None


_TYPES: Final[Mapping[str, Callable[[str], object]]] = {
    **dict.fromkeys(_STRINGS, _anything),
    **dict.fromkeys(_PATHS, _absolute),
    **dict.fromkeys(BOOLEANS, boolean),
    **dict.fromkeys(_INTEGERS, integer),
    **dict.fromkeys(_DURATIONS, seconds),
    "allow-metric-labels": _label_pairs,
    "bind-address": _address,
    "kube-api-qps": _number,
    "logging-format": _log_format,
    "secure-port": _port,
    "tls-cipher-suites": _cipher_suites,
    "tls-curve-preferences": _curves,
    "tls-min-version": _tls_version,
    "tls-sni-cert-key": _certificate_and_key,
    "v": _verbosity,
    "vmodule": _file_pattern,
}


_LOGS: Final = "remove it: logs go to stderr, and a redirection writes them to a file"
_POLICY: Final = "convert the Policy with kubectl scheduler convert, and set --config"
REMOVED_FLAGS: Final[Mapping[str, str]] = {
    "address": "use --bind-address",
    "port": "use --secure-port, which serves HTTPS only",
    "algorithm-provider": f"use --config with a profile: {_POLICY}",
    "policy-config-file": _POLICY,
    "policy-configmap": _POLICY,
    "policy-configmap-namespace": _POLICY,
    "use-legacy-policy-config": _POLICY,
    "experimental-encryption-provider-config": "it is a flag of kube-apiserver",
    "hard-pod-affinity-symmetric-weight": "use --config and set hardPodAffinityWeight in the "
    "arguments of InterPodAffinity",
    "lock-object-name": "use --config and set leaderElection.resourceName",
    "lock-object-namespace": "use --config and set leaderElection.resourceNamespace",
    "scheduler-name": "use --config and set schedulerName in a profile",
    "failure-domains": "remove it: topologyKey of a rule names the domain",
    **dict.fromkeys(
        (
            "add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file",
            "log-file-max-size", "logtostderr", "one-output", "skip-headers", "skip-log-headers",
            "stderrthreshold",
        ),
        _LOGS,
    ),
}  # fmt: skip
"""Flags that no supported kube-scheduler has -> the fix."""
_REMOVED_IN: Final = {
    "address": 24,
    "port": 24,
    **dict.fromkeys(
        (
            "algorithm-provider", "policy-config-file", "policy-configmap",
            "policy-configmap-namespace", "use-legacy-policy-config",
        ),
        23,
    ),
}  # fmt: skip
"""The minor that removed a flag, for versions that are not on record."""
_ALL_REMOVED_IN: Final = 26
"""The minor from which none of these flags exists."""


def flag_names(minor: int) -> frozenset[str]:
    """Return the flags of kube-scheduler 1.`minor`, without dashes."""
    return frozenset(name for name in _TYPES if _SINCE.get(name, 0) <= minor)


def validate_flags(
    flags: Mapping[str, Sequence[str]],
    version: Version,
    *,
    stock: bool = True,
    unknown: frozenset[str] = frozenset(),
) -> Iterator[Problem]:
    """Yield problems of flags (name without dashes -> values); a path is the flag's name.

    For `feature-gates` the path may continue with the gate. Flags in `unknown` are also set, to
    unknown values.
    """
    recorded = stock and version.major == 1 and version.minor in ON_RECORD
    known = flag_names(version.minor)
    for name, values in (*flags.items(), *((name, ()) for name in sorted(unknown))):
        if recorded and name not in known:
            fix = _unknown_flag(name, known)
            message = f"kube-scheduler {version.short} has no flag --{name}; {fix}"
            yield Problem(UNKNOWN_ARGUMENT, (name,), message)
            continue
        if name in REMOVED_FLAGS and version >= Version(1, _REMOVED_IN.get(name, _ALL_REMOVED_IN)):
            message = f"kube-scheduler {version.short} has no flag --{name}; {REMOVED_FLAGS[name]}"
            yield Problem(UNKNOWN_ARGUMENT, (name,), message)
            continue
        check = _TYPES.get(name, _anything)
        for value in values:
            if name == "secure-port" and value.strip("+0") == "" and "0" in value:
                message = f"--{name}: 0 turns off /healthz and /metrics; use 1 to 65535"
                yield Problem(INVALID_ARGUMENT, (name,), message, severity=WARNING)
                continue
            try:
                check(value)
            except ValueError as error:
                fix = "" if "; " in str(error) else f"; {_value_fix(name, value)}"
                yield Problem(INVALID_ARGUMENT, (name,), f"--{name}: {error}{fix}")
    for check_together, names in (
        (_http2, {"tls-cipher-suites", "tls-min-version", "disable-http2-serving"}),
        (_election, {"config", "leader-elect", "leader-elect-resource-lock", *_TIMINGS}),
        (_certificates, {"tls-cert-file", "tls-private-key-file", "secure-port"}),
    ):
        if unknown.isdisjoint(names):
            yield from check_together(flags)
    yield from _hidden_metrics(flags, version)
    yield from _feature_gates(flags, version, stock=stock)


def has_type(name: str, value: str) -> bool:
    """Return whether a value has the type of a flag; unknown flags accept any text."""
    try:
        _TYPES.get(name, _anything)(value)
    except ValueError:
        return False
    return True


def _value_fix(name: str, value: str) -> str:
    """Suggest a correction for a value whose error does not include one."""
    unquoted = value.strip("\"' ")
    kind = "true or false" if name in BOOLEANS else "an integer"
    return duration_fix(unquoted) if name in _DURATIONS else type_fix(unquoted, kind)


def _election(flags: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Check the timings with which leader election starts, unless --config sets others."""
    if flags.get("config"):
        return
    try:
        if not boolean(_last(flags, "leader-elect") or "true"):
            return
        lease, renew, retry = (
            nanoseconds(_last(flags, name) or default) for name, default in _TIMINGS.items()
        )
    except ValueError:
        return  # already reported
    for name, other, longer, shorter in (
        ("leader-elect-lease-duration", "leader-elect-renew-deadline", lease, renew),
        ("leader-elect-renew-deadline", "leader-elect-retry-period", renew, int(1.2 * retry)),
    ):
        if longer <= shorter and (name in flags or other in flags):
            factor, limit = ("", renew) if shorter == renew else ("1.2 times ", retry)
            message = (
                f"--{name}: {duration_text(longer)} must be greater than {factor}--{other} "
                f"({duration_text(limit)}); raise it, or lower --{other}"
            )
            yield Problem(INVALID_ARGUMENT, (name if name in flags else other,), message)
    lock = _last(flags, "leader-elect-resource-lock")
    if lock not in ("", "leases"):
        message = f'--leader-elect-resource-lock: "{lock}" is not supported; use leases'
        yield Problem(INVALID_ARGUMENT, ("leader-elect-resource-lock",), message)


def _hidden_metrics(flags: Mapping[str, Sequence[str]], version: Version) -> Iterator[Problem]:
    """Check that the metrics are those that the previous minor hid (component-base/metrics)."""
    name = "show-hidden-metrics-for-version"
    value, previous = _last(flags, name), f"{version.major}.{version.minor - 1}"
    if value not in ("", previous) and not flags.get("emulated-version"):
        wrong = f'"{value}" is not the minor before {version.short}'
        message = f"--{name}: {wrong}; write {previous}, or remove it"
        yield Problem(INVALID_ARGUMENT, (name,), message)


def _certificates(flags: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Report a certificate without its key, or a key alone; they are read to serve a port."""
    names = ("tls-cert-file", "tls-private-key-file")
    given = [name for name in names if _last(flags, name)]
    serves = _last(flags, "secure-port") != "0"
    if serves and len(given) == 1 and _last(flags, given[0]).startswith("/"):
        other = next(name for name in names if name not in given)
        message = (
            f"--{given[0]}: kube-scheduler does not start without --{other}; set both or neither"
        )
        yield Problem(INVALID_ARGUMENT, (given[0],), message)


def _unknown_flag(name: str, known: Iterable[str]) -> str:
    """Suggest a fix for a flag that this kube-scheduler does not have."""
    if len(words := name.split(maxsplit=1)) > 1:
        return f"write {words[0]}={words[1]}"
    if name in _SINCE:
        return f"it was added in 1.{_SINCE[name]}"
    if name in REMOVED_FLAGS:
        return REMOVED_FLAGS[name]
    return did_you_mean(name, sorted(known)).removeprefix("; ") or "remove it"


def void_flags(names: Iterable[str], where: str) -> Iterator[Problem]:
    """Warn about users' flags without effect, because the operator always sets --config.

    `where` is the path of the configuration whose fields replace them; a problem's path is the
    flag.
    """
    for name in names:
        if name in VOID_WITH_CONFIG:
            message = f"kube-scheduler ignores --{name} when --config is set, as it is here"
            fix = f"set {where}.{VOID_WITH_CONFIG[name]}"
            yield Problem(VOID_ARGUMENT, (name,), message, fix, WARNING)


def _http2(flags: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Report cipher suites with which golang.org/x/net/http2 (ConfigureServer) does not start."""
    suites = {name for value in flags.get("tls-cipher-suites", ()) for name in value.split(",")}
    suites.discard("")
    if not suites or suites & HTTP2_SUITES or not suites <= CIPHER_SUITES:
        return  # unset, sufficient, or already reported
    if _last(flags, "tls-min-version") == "VersionTLS13":
        return
    try:
        if boolean(_last(flags, "disable-http2-serving") or "false"):
            return
    except ValueError:
        return  # already reported
    yield Problem(
        INVALID_ARGUMENT,
        ("tls-cipher-suites",),
        "--tls-cipher-suites: the scheduler does not start, because HTTP/2 below TLS 1.3 requires "
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 "
        "(OpenSSL: ECDHE-RSA-AES128-GCM-SHA256, ECDHE-ECDSA-AES128-GCM-SHA256); add one",
    )


def _last(flags: Mapping[str, Sequence[str]], name: str) -> str:
    """Return the effective value of a flag that is not a list."""
    return (flags.get(name) or ("",))[-1]


def _feature_gates(
    flags: Mapping[str, Sequence[str]], version: Version, *, stock: bool
) -> Iterator[Problem]:
    try:
        gates = parse_gates(flags.get("feature-gates", ()))
    except ValueError as error:
        fix = "" if "; " in str(error) else "; write NAME=true or NAME=false, without quotes"
        yield Problem(INVALID_ARGUMENT, ("feature-gates",), f"--feature-gates: {error}{fix}")
        return
    known = known_gates(version.minor) if stock else None
    if known is None:
        return
    problems = list(_impossible_gates(gates, known, version))
    yield from problems
    # kube-scheduler looks at what gates need last; with --emulated-version, another version counts.
    if not problems and "emulated-version" not in flags:
        yield from _unmet_gates(Gates(version, gates))


def _impossible_gates(
    gates: Mapping[str, bool], known: Mapping[str, bool | None], version: Version
) -> Iterator[Problem]:
    for name, value in gates.items():
        if name not in known:
            if has_gate(version, name) is None:
                continue  # left to the preflight
            hint = _other_versions(name, version) or did_you_mean(name, known)
            fix = hint if "; " in hint else f"{hint}; remove it"
            message = f"kube-scheduler {version.short} has no feature gate {name}{fix}"
            yield Problem(UNKNOWN_FEATURE_GATE, ("feature-gates", name), message)
        elif known[name] not in (None, value):
            locked = str(known[name]).lower()
            message = f"feature gate {name} is locked to {locked} in {version.short}; remove it"
            yield Problem(INVALID_ARGUMENT, ("feature-gates", name), message)


def _other_versions(name: str, version: Version) -> str:
    """Say when another version added or removed a gate; empty if none on record has it."""
    minors = versions_with_gate(name)
    if minors is None:
        return ""
    first, last = minors
    added = first > version.minor
    return f", which was {f'added in 1.{first}' if added else f'removed in 1.{last + 1}'}"


def _unmet_gates(gates: Gates) -> Iterator[Problem]:
    for name, disabled in gates.unmet().items():
        needed = " and ".join(disabled)
        verb = "is" if len(disabled) == 1 else "are"
        if gates.explicit.get(name):
            culprit = name
            added = " and ".join(f"{each}=true" for each in disabled)
            fix = f"add {added}, or remove {name}"
            message = f"feature gate {name} needs {needed}, which {verb} disabled; {fix}"
        else:
            culprit = next((each for each in disabled if each in gates.explicit), "")
            message = (
                f"feature gate {name} is enabled and needs {needed}, which {verb} disabled; add "
                f"{name}=false, or enable {needed}"
            )
        path = ("feature-gates", culprit) if culprit else ("feature-gates",)
        yield Problem(INVALID_ARGUMENT, path, message)
