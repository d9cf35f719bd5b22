"""Checks of the cluster itself: API server, platform, nodes, clocks, certificates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from ...base.objects import Object
from ...base.times import timestamp
from ...config.language.plugins.in_tree_plugins import NEWEST_RELEASE, OLDEST
from ...config.language.validation.newer_versions import newer_version_note
from ...config.language.versions import Version
from ...operator.status.lease_reading import written_at
from .check import CheckProblem, CheckState, ClusterFacts, KnownCertificate

OLDEST_TRIED: Final = Version(1, 34)
"""The oldest version of Kubernetes with which the operator is tested (docs/where-it-runs.md)."""

CLOCK_TOLERANCE: Final = 5.0
"""Seconds; a smaller difference is a delay, or does not matter (operator/engine/node_clocks.py)."""

RENEW_DAYS: Final = 14
"""Days before its expiry from which a certificate is reported."""

_PRESSURES: Final = ("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable")
_SHOWN: Final = 5


def api_server(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the operator supports the API server's version."""
    try:
        version = Version.parse(facts.server_version)
    except ValueError:
        yield CheckProblem(
            f'the API server reports the version "{facts.server_version}", which is not a version '
            "of Kubernetes",
            "check that the kubeconfig leads to a Kubernetes API server and not to a proxy",
            CheckState.WARNING,
        )
        return
    if version < OLDEST:
        yield CheckProblem(
            f"Kubernetes {version} is older than {OLDEST.short}, the oldest version whose "
            "kube-scheduler the operator knows",
            f"upgrade the cluster to Kubernetes {OLDEST_TRIED.short} or newer first",
        )
    elif version < OLDEST_TRIED:
        yield CheckProblem(
            f"the operator was not tried with Kubernetes {version.short}",
            f"test it on another cluster of this version, or upgrade to {OLDEST_TRIED.short} first",
            CheckState.WARNING,
            "where-it-runs.md#versions",
        )
    elif note := newer_version_note(version):
        yield CheckProblem(
            note,
            f"use a release of the operator that knows {version.short}, if there is one",
            CheckState.WARNING,
            "where-it-runs.md#versions",
        )
    tested = f"{OLDEST_TRIED.short} to {NEWEST_RELEASE.short}"
    yield f"reachable, Kubernetes {version} ({tested} are tested)"


def platform(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """What kind of cluster it is, and what that means."""
    recognition = facts.recognition.get()
    used = facts.platform
    if used.owns_static_pods:
        meaning = "the operator replaces the scheduler's static Pod on control-plane nodes"
    else:
        who = (recognition.provider if recognition else "") or "the provider"
        meaning = (
            f"{who} runs the control plane's scheduler, so the operator runs a scheduler of its own"
        )
    if recognition is not None and not recognition.certain:
        yield CheckProblem(
            f"the platform cannot be recognized with certainty: {recognition.reason}",
            f"set --platform (kubeadm, rke2, openshift or managed); {used.name} is assumed",
            CheckState.WARNING,
        )
    elif recognition is not None and recognition.platform != used:
        yield CheckProblem(
            f"--platform is {used.name}, and the cluster looks like {recognition.platform.name}: "
            f"{recognition.reason}",
            f"use --platform {recognition.platform.name}, and the manifests in "
            f"deploy/{recognition.platform.name}",
            CheckState.WARNING,
        )
    reason = f" ({recognition.reason})" if recognition is not None and recognition.reason else ""
    yield f"{used.name}{reason}: {meaning}"


def nodes(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether control-plane nodes, on managed platforms all nodes, can take a scheduler."""
    checked = facts.control_plane_nodes() if facts.platform.owns_static_pods else facts.nodes.get()
    if not checked:
        yield CheckProblem(
            "no control-plane node is visible",
            "if the provider runs the control plane, use --platform managed; otherwise label the "
            "nodes node-role.kubernetes.io/control-plane",
        )
        return
    bad: dict[str, list[str]] = {}
    for node in checked:
        for condition in (node.get("status") or {}).get("conditions") or ():
            type_, status = condition.get("type"), condition.get("status")
            if type_ == "Ready" and status != "True":
                bad.setdefault("is not Ready", []).append(node["metadata"]["name"])
            elif type_ in _PRESSURES and status == "True":
                bad.setdefault(f"reports {type_}", []).append(node["metadata"]["name"])
    for what, names in sorted(bad.items()):
        disk = "DiskPressure" in what
        yield CheckProblem(
            f"node {listed(names)} {what}",
            "free disk space on the node: a revision needs a few hundred KiB, and the kubelet "
            "evicts Pods and refuses new ones until then"
            if disk
            else "repair the node first: a rollout skips nodes that are not Ready and reports them"
            if what == "is not Ready"
            else f"see `kubectl describe node {names[0]}`",
            CheckState.FAILED if facts.platform.owns_static_pods else CheckState.WARNING,
        )
    kind = "control-plane nodes" if facts.platform.owns_static_pods else "nodes"
    yield f"{len(checked)} of {len(checked)} {kind} are Ready and have disk and memory"


def clocks(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether this machine, the API server and the nodes agree on the time."""
    if abs(facts.ahead) > CLOCK_TOLERANCE:
        word = "ahead of" if facts.ahead > 0 else "behind"
        yield CheckProblem(
            f"this machine's clock is {abs(facts.ahead):.0f} s {word} the API server's",
            "set this machine's clock (NTP): the ages and expiries that it computes are "
            "wrong; the operator itself uses the API server's time",
            CheckState.WARNING,
        )
    leases = facts.node_leases.get()
    for name, lease in sorted(leases.items()):
        seconds = clock_difference(lease)
        if seconds is None or abs(seconds) <= CLOCK_TOLERANCE:
            continue
        word = "ahead of" if seconds > 0 else "behind"
        yield CheckProblem(
            f'the clock of node "{name}" is {abs(seconds):.0f} s {word} the API server\'s',
            f"set the clock of {name} (chrony or systemd-timesyncd): certificates and tokens are "
            "refused when it is far off",
            CheckState.WARNING,
        )
    yield f"this machine, the API server and {len(leases)} nodes agree within {CLOCK_TOLERANCE:g} s"


def clock_difference(lease: Object) -> float | None:
    """Seconds by which a kubelet's clock is ahead of the API server's; None if unknown.

    The kubelet writes renewTime by its clock, and the API server notes the time of that write in
    managedFields, in whole seconds.
    """
    renewed, written = timestamp((lease.get("spec") or {}).get("renewTime")), written_at(lease)
    return None if renewed is None or written is None else (renewed - written).total_seconds()


def connection_certificates(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the certificates of the API server and of the kubeconfig are valid for long."""
    return _validity(facts.server.get(), facts.now)


def certificates(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the certificates of schedulers and webhooks are valid for long."""
    return _validity(facts.certificates.get(), facts.now)


def _validity(
    certificates: Iterable[KnownCertificate], now: datetime
) -> Iterator[CheckProblem | str]:
    """A problem for every certificate that has expired or will within RENEW_DAYS."""
    dated = ((certificate.expires, certificate) for certificate in certificates)
    known = [(expires, certificate) for expires, certificate in dated if expires is not None]
    for expires, certificate in known:
        left = (expires - now).total_seconds() / 86400
        when = f"{expires:%Y-%m-%d %H:%M} UTC"
        if left <= 0:
            yield CheckProblem(
                f"the certificate of {certificate.name} expired at {when}", certificate.renew
            )
        elif left < RENEW_DAYS:
            cause = f"the certificate of {certificate.name} expires in {_days(left)}, at {when}"
            yield CheckProblem(cause, certificate.renew, CheckState.WARNING)
    if not known:
        yield "no certificate with a known expiry"
        return
    expires, name = min((expires, certificate.name) for expires, certificate in known)
    left = (expires - now).total_seconds() / 86400
    yield f"that of {name} expires first, in {_days(left)}"


def _days(days: float) -> str:
    return f"{days:.0f} days" if days >= 2 else f"{days * 24:.0f} hours"


def listed(names: Iterable[str]) -> str:
    """Some of the names, and how many more there are."""
    distinct = sorted(set(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(distinct[:_SHOWN]) + more
