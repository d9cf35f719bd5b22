"""Extenders that work and hurt: what they cost on the wire, and what happens when they are away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..base.findings import WARNING, Path, Problem
from .go_values import seconds

WHOLE_NODES: Final = "WholeNodesOnTheWire"
NOT_IGNORABLE: Final = "NotIgnorable"
LONG_TIMEOUT: Final = "LongTimeout"
UNVERIFIED_TLS: Final = "UnverifiedTLS"
NEVER_CALLED: Final = "NeverCalled"
ALL_PROFILES: Final = "ExtenderOfAllProfiles"

_VERBS: Final = ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")
_DEFAULT_TIMEOUT: Final = "5s"  # kube-scheduler's, for an absent one and for 0
LONGEST_TIMEOUT: Final = 1.0
"""Seconds that a call may take before it is worth a warning: pods are scheduled one by one."""


def extender_hazards(
    extender: Mapping[str, Any], path: Path, profiles: int = 1
) -> Iterator[Problem]:
    """What hurts about one extender of the right shape.

    Args:
        extender: as written.
        path: where it is in the configuration.
        profiles: how many the same configuration has.
    """
    verbs = [verb for verb in _VERBS if extender.get(verb)]
    if not verbs:
        yield _warning(
            NEVER_CALLED,
            path,
            "no verb is set, so this extender is never called",
            f"set one of {', '.join(_VERBS)}, or remove the extender",
        )
        return
    yield from _wire(extender, verbs, path)
    yield from _absent(extender, verbs, path)
    yield from _timeout(extender, path)
    if profiles > 1 and not extender.get("managedResources"):
        yield _warning(
            ALL_PROFILES,
            path,
            f"extenders are for a whole process: this one is asked for pods of all {profiles} "
            "profiles",
            "limit it with managedResources to the pods that need it, or give the profile that "
            "needs it a scheduler of its own",
        )
    tls = extender.get("tlsConfig") or {}
    verified = tls.get("caFile") or tls.get("caData")
    if extender.get("enableHTTPS") and not verified and not tls.get("insecure"):
        yield _warning(
            UNVERIFIED_TLS,
            (*path, "tlsConfig"),
            "without a CA kube-scheduler does not verify the extender's certificate, so anybody "
            "in between can choose the nodes",
            "set tlsConfig.caFile or tlsConfig.caData; tlsConfig.insecure: true says that it is "
            "meant",
        )


def _wire(extender: Mapping[str, Any], verbs: list[str], path: Path) -> Iterator[Problem]:
    """Node names take some 30 bytes each, whole Nodes 5 to 20 kB, in both directions.

    Clusters of more than 1000 nodes were seen to schedule fewer than 10 pods a second like this,
    where kube-scheduler's own performance test demands 680 (kubernetes/kubernetes 72634, 121527).
    """
    if extender.get("nodeCacheCapable") or verbs == ["bindVerb"]:
        return
    yield _warning(
        WHOLE_NODES,
        (*path, "nodeCacheCapable"),
        "every call carries the whole Node objects and not only their names; with 1000 nodes this "
        "leaves less than 2 % of the scheduler's throughput",
        "set nodeCacheCapable: true if the extender can do with names (it then answers NodeNames)",
    )


def _absent(extender: Mapping[str, Any], verbs: list[str], path: Path) -> Iterator[Problem]:
    """An extender that fails a scheduling cycle; a failed prioritize never does.

    One with managed resources concerns only the pods that ask for them, and may be the only one
    that counts these resources: waiting for it is right.
    """
    stopping = [verb for verb in verbs if verb != "prioritizeVerb"]
    if not stopping or extender.get("ignorable") or extender.get("managedResources"):
        return
    yield _warning(
        NOT_IGNORABLE,
        (*path, "ignorable"),
        f"when this extender does not answer {' or '.join(stopping)}, every pod stays Pending, "
        "its own pods included",
        "set ignorable: true, or limit it with managedResources to the pods that need it",
    )


def _timeout(extender: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    text = str(extender.get("httpTimeout") or "")
    value = seconds(text) if text else 0.0
    if value < 0:
        sentence = f"{text} is taken as no limit, so one call that hangs stops all scheduling"
    elif value == 0:
        sentence = (
            f"unset means {_DEFAULT_TIMEOUT}: that long every pod waits for each verb when the "
            "extender hangs, one pod after the other"
        )
    elif value > LONGEST_TIMEOUT:
        sentence = (
            f"every pod waits up to {text} for each verb when the extender hangs, one pod after "
            "the other"
        )
    else:
        return
    yield _warning(
        LONG_TIMEOUT,
        (*path, "httpTimeout"),
        sentence,
        "set 200ms to 1s, a few times what the extender needs",
    )


def _warning(reason: str, path: Path, message: str, fix: str) -> Problem:
    return Problem(reason, path, message, fix, WARNING)
