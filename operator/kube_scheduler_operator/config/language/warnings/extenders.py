"""Warnings about extenders: the cost of their calls, and the effect of their outages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path, Problem, warning_problem
from ....base.go_values import seconds

WHOLE_NODES: Final = "WholeNodesOnTheWire"
NOT_IGNORABLE: Final = "NotIgnorable"
LONG_TIMEOUT: Final = "LongTimeout"
UNVERIFIED_TLS: Final = "UnverifiedTLS"
KEY_IN_LOG: Final = "KeyInLog"
NEVER_CALLED: Final = "NeverCalled"
ALL_PROFILES: Final = "ExtenderOfAllProfiles"

_VERBS: Final = ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")
_DEFAULT_TIMEOUT: Final = "5s"  # of kube-scheduler, for unset and 0
KEYS_MASKED_SINCE: Final = 38
"""The minor of 1.x that leaves keys out of the configuration in its log."""
LONGEST_TIMEOUT: Final = 1.0
"""Seconds; longer timeouts get a warning, because pods are scheduled one by one."""


def extender_warnings(
    extender: Mapping[str, Any], path: Path, profiles: int = 1
) -> Iterator[Problem]:
    """Yield warnings about an extender with valid types, beside this number of profiles."""
    verbs = [verb for verb in _VERBS if extender.get(verb)]
    if not verbs:
        yield warning_problem(
            NEVER_CALLED,
            path,
            "no verb is set, so kube-scheduler never calls this extender",
            f"set one of {', '.join(_VERBS)}, or remove the extender",
        )
        return
    url = str(extender.get("urlPrefix") or "")
    if not url.lower().startswith(("http://", "https://")):
        # Go's http client: unsupported protocol scheme.
        yield warning_problem(
            NEVER_CALLED,
            (*path, "urlPrefix"),
            f'every call fails, because "{url}" does not begin with http:// or https://',
            f"write http://{url or 'HOST:PORT/PATH'}",
        )
    yield from _payload(extender, verbs, path)
    yield from _outage(extender, verbs, path)
    yield from _timeout(extender, path)
    if profiles > 1 and not extender.get("managedResources"):
        yield warning_problem(
            ALL_PROFILES,
            path,
            f"extenders apply to all profiles: kube-scheduler calls this one for the pods of all "
            f"{profiles} profiles",
            "limit it with managedResources to the pods that need it, or move the profile that "
            "needs it to a secondary scheduler",
        )
    tls = extender.get("tlsConfig") or {}
    verified = tls.get("caFile") or tls.get("caData")
    if extender.get("enableHTTPS") and not verified and not tls.get("insecure"):
        yield warning_problem(
            UNVERIFIED_TLS,
            (*path, "tlsConfig"),
            "without a CA kube-scheduler does not verify the extender's certificate, so a "
            "man in the middle can choose the nodes",
            "set tlsConfig.caFile or tlsConfig.caData, or tlsConfig.insecure: true if this is "
            "intended",
        )


def key_warnings(extender: Mapping[str, Any], path: Path, minor: int) -> Iterator[Problem]:
    """Warn about a private key that kube-scheduler 1.`minor` logs with its configuration."""
    if minor < KEYS_MASKED_SINCE and (extender.get("tlsConfig") or {}).get("keyData"):
        yield warning_problem(
            KEY_IN_LOG,
            (*path, "tlsConfig", "keyData"),
            f"kube-scheduler 1.{minor} writes this private key into its log at -v=2 and higher",
            "name a file with the key in keyFile instead",
        )


def _payload(extender: Mapping[str, Any], verbs: list[str], path: Path) -> Iterator[Problem]:
    """Warn about Node objects in calls: 5 to 20 kB in both directions; a name takes 30 bytes.

    With Node objects, clusters of more than 1000 nodes scheduled fewer than 10 pods per second;
    kube-scheduler's performance test requires 680 (kubernetes/kubernetes 72634, 121527).
    """
    if extender.get("nodeCacheCapable") or verbs == ["bindVerb"]:
        return
    yield warning_problem(
        WHOLE_NODES,
        (*path, "nodeCacheCapable"),
        "every call carries whole Node objects instead of node names; with 1000 nodes this leaves "
        "less than 2 % of the scheduler's throughput",
        "set nodeCacheCapable: true if the extender works with names (it then returns NodeNames)",
    )


def _outage(extender: Mapping[str, Any], verbs: list[str], path: Path) -> Iterator[Problem]:
    """Warn about an extender whose failure fails a scheduling cycle, unlike a prioritize call.

    An extender with managedResources gets only pods that request them, and may be the only one
    that counts these resources: waiting for it is correct.
    """
    required = [verb for verb in verbs if verb != "prioritizeVerb"]
    if not required or extender.get("ignorable") or extender.get("managedResources"):
        return
    yield warning_problem(
        NOT_IGNORABLE,
        (*path, "ignorable"),
        f"while this extender does not answer {' or '.join(required)}, every pod stays Pending, "
        "including the extender's own",
        "set ignorable: true, or limit it with managedResources to the pods that need it",
    )


def _timeout(extender: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    text = str(extender.get("httpTimeout") or "")
    value = seconds(text) if text else 0.0
    if value < 0:
        message = f"{text} means no limit, so one hanging call stops all scheduling"
    elif value == 0:
        message = (
            f"the default is {_DEFAULT_TIMEOUT}: when the extender hangs, every pod waits that "
            "long for each verb, one pod after the other"
        )
    elif value > LONGEST_TIMEOUT:
        message = (
            f"when the extender hangs, every pod waits up to {text} for each verb, one pod after "
            "the other"
        )
    else:
        return
    yield warning_problem(
        LONG_TIMEOUT,
        (*path, "httpTimeout"),
        message,
        "set 200ms to 1s, a few times the extender's usual response time",
    )
