"""Warnings about configurations that kube-scheduler accepts.

A warning never rejects a configuration; it states the consequence and the fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base.bounded_cache import cached_by_content
from ....base.findings import Path, Problem, warning_problem
from ....base.objects import mapping
from ....base.platform import PLATFORMS
from ....base.source.culprit import first_culprit
from ..plugins.effective_plugins import effective_plugins
from ..plugins.target_scheduler import Target
from ..schema import DEFAULT_SCHEDULER
from ..validation.newer_versions import new_names, new_names_in_profile
from ..validation.profiles import CACHE_SIZE
from .credentials import credential_warnings
from .extenders import extender_warnings, key_warnings
from .plugins import ExpandedProfile, plugin_warnings

SHARED_LEASE: Final = "SharedLease"
INVALID_LEASE: Final = "InvalidLease"
NO_KUBECONFIG: Final = "NoKubeconfig"
SECOND_DEFAULT_SCHEDULER: Final = "SecondDefaultScheduler"
SAMPLED_TOO_FEW: Final = "SampledTooFew"
ODD_SCHEDULER_NAME: Final = "OddSchedulerName"
SAME_SCHEDULER_NAME: Final = "SameSchedulerName"
SAME_NODES: Final = "SameNodes"
NO_DEFAULT_SCHEDULER: Final = "NoDefaultScheduler"

_LABEL: Final = re.compile(r"(?=.{1,63}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?")
SUBDOMAIN: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
)
"""RFC 1123, as in k8s.io/apimachinery/pkg/util/validation, for names of namespaces and Leases."""

_LEASE: Final = ("kube-system", "kube-scheduler")  # kube-scheduler's defaults
CONTROL_PLANE_LEASES: Final = frozenset(
    (platform.operand_lease_namespace, platform.operand_lease_name)
    for platform in PLATFORMS.values()
)
"""(namespace, name) of the Leases of control planes' schedulers."""

LEAST_PERCENTAGE: Final = 5
"""The lowest percentage of the adaptive default (minFeasibleNodesPercentageToFind)."""
_LEAST_NODES: Final = 100  # minFeasibleNodesToFind
_MANY: Final = 5000  # nodes of the largest cluster that Kubernetes supports


def config_warnings(
    config: Mapping[str, Any], target: Target, election: Mapping[str, Any] | None = None
) -> list[Problem]:
    """Warn about a valid configuration without nulls; `election` is as for `validate_config`."""
    problems = [*_leader_election(config, election or config.get("leaderElection") or {})]
    return problems + standalone_warnings(config, target)


def file_warnings(config: Mapping[str, Any], target: Target, kubeconfig: str = "") -> list[Problem]:
    """Like `config_warnings`, for a file that a user writes for --config.

    `kubeconfig` is the one on the node of the kube-scheduler that reads the file, if that is known
    to have no ServiceAccount.
    """
    return [*config_warnings(config, target), *_connection(config, kubeconfig)]


def _connection(config: Mapping[str, Any], kubeconfig: str) -> Iterator[Problem]:
    """Report a file without credentials.

    If its reader is unknown, only warn about the default scheduler: others usually run in Pods with
    a ServiceAccount.
    """
    connection = config.get("clientConnection") or {}
    file = str(connection.get("kubeconfig") or "")
    if file and not file.startswith("/"):
        what = (
            "kube-scheduler does not start: ~ is a directory of that name to it, not a home"
            if file.startswith("~")
            else "kube-scheduler looks for this file in the directory in which it starts, and does "
            "not start without it"
        )
        fix = "write the whole path, for example /etc/kubernetes/scheduler.conf"
        yield warning_problem(NO_KUBECONFIG, ("clientConnection", "kubeconfig"), what, fix)
    if connection.get("kubeconfig"):
        return
    if kubeconfig:
        yield Problem(
            NO_KUBECONFIG,
            ("clientConnection", "kubeconfig"),
            "kube-scheduler does not start: without clientConnection.kubeconfig it has no "
            "credentials outside of a Pod with a ServiceAccount, and it ignores --kubeconfig when "
            "--config is set",
            f"set clientConnection: {{kubeconfig: {kubeconfig}}}",
        )
    elif DEFAULT_SCHEDULER in scheduler_names(config):
        yield warning_problem(
            NO_KUBECONFIG,
            ("clientConnection", "kubeconfig"),
            "without clientConnection.kubeconfig kube-scheduler starts only in a Pod with a "
            "ServiceAccount, which a static Pod does not have, and it ignores --kubeconfig when "
            "--config is set",
            "outside of such a Pod, set clientConnection: {kubeconfig: "
            "/etc/kubernetes/scheduler.conf}",
        )


def standalone_warnings(config: Mapping[str, Any], target: Target) -> list[Problem]:
    """Return the warnings that do not depend on the scheduler's role in the cluster."""
    problems = [*_percentage(config), *new_names(config, target)]
    extenders: Sequence[Mapping[str, Any]] = config.get("extenders") or ()
    profiles: Sequence[Mapping[str, Any]] = config.get("profiles") or [{}]
    for index, document in enumerate(profiles):
        problems += profile_warnings(document, ("profiles", index), target, extenders)
    for index, extender in enumerate(extenders):
        problems += extender_warnings(extender, ("extenders", index), len(profiles))
        problems += key_warnings(extender, ("extenders", index), target.minor)
    return problems


def profile_warnings(
    document: Mapping[str, Any],
    path: Path,
    target: Target,
    extenders: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Problem]:
    """Warn about one profile, at `path`; the extenders of the same configuration also score."""
    return (problem.below(path) for problem in _warnings_of(document, target, extenders))


@cached_by_content(CACHE_SIZE)
def _warnings_of(
    document: Mapping[str, Any], target: Target, extenders: Sequence[Mapping[str, Any]]
) -> tuple[Problem, ...]:
    return (
        *_scheduler_name(document),
        *_percentage(document),
        *new_names_in_profile(document, target),
        *plugin_warnings(ExpandedProfile.read(document, target), extenders),
        *credential_warnings(document),
    )


def _scheduler_name(profile: Mapping[str, Any]) -> Iterator[Problem]:
    """Warn about a name that looks like another one, which Pods use."""
    name = str(profile.get("schedulerName") or "")
    if culprit := first_culprit(name):
        what, _, fix = culprit.partition("; ")
        message = f'"{name}" contains {what}: Pods without it in spec.schedulerName stay Pending'
        yield warning_problem(ODD_SCHEDULER_NAME, ("schedulerName",), message, fix)


def control_plane_warnings(config: Mapping[str, Any], target: Target) -> list[Problem]:
    """Warn about the configuration of the control plane's scheduler."""
    problems = standalone_warnings(config, target)
    if DEFAULT_SCHEDULER not in scheduler_names(config):
        message = (
            f"no profile is named {DEFAULT_SCHEDULER}, so pods without a spec.schedulerName of "
            "their own stay Pending, without an event"
        )
        fix = f"name a profile {DEFAULT_SCHEDULER}, or add one with that name"
        problems.append(warning_problem(NO_DEFAULT_SCHEDULER, ("profiles",), message, fix))
    return problems


def _leader_election(config: Mapping[str, Any], election: Mapping[str, Any]) -> Iterator[Problem]:
    path: Path = ("leaderElection",)
    lease = lease_of(election)
    names = scheduler_names(config)
    if lease is not None:
        yield from _lease_names(lease)
    if lease in CONTROL_PLANE_LEASES and DEFAULT_SCHEDULER not in names:
        yield warning_problem(
            SHARED_LEASE,
            path,
            f"no profile is named {DEFAULT_SCHEDULER}, but the Lease {'/'.join(lease)} is that of "
            "the control plane's scheduler: only one of the two is ever active",
            f"set leaderElection.resourceName to {object_name(names[0])} and resourceNamespace to "
            "its namespace",
        )
    elif lease not in CONTROL_PLANE_LEASES and DEFAULT_SCHEDULER in names:
        how = f"with the Lease {'/'.join(lease)}" if lease else "without leader election"
        yield warning_problem(
            SECOND_DEFAULT_SCHEDULER,
            path,
            f"this scheduler serves {DEFAULT_SCHEDULER} {how}, so it and the control plane's "
            "scheduler both place the same pods",
            "give the profile its own schedulerName, or use the default leaderElection in the "
            "control plane's scheduler",
        )


def _lease_names(lease: tuple[str, str]) -> Iterator[Problem]:
    for key, value, pattern in (
        ("resourceNamespace", lease[0], _LABEL),
        ("resourceName", lease[1], SUBDOMAIN),
    ):
        if not pattern.fullmatch(value):
            what, example = "Lease", object_name(value)
            if key == "resourceNamespace":
                what, example = "namespace", example.replace(".", "-")[:63].rstrip("-")
            yield warning_problem(
                INVALID_LEASE,
                ("leaderElection", key),
                f'the API server rejects "{value}" as the name of a {what}: the scheduler never '
                "becomes leader, and its pods stay Pending",
                f"use lowercase letters, digits and hyphens, for example {example}",
            )


def object_name(text: str) -> str:
    """Convert a text to the name of an object, a lowercase RFC 1123 subdomain: my-name."""
    name = re.sub(r"[^a-z0-9.-]+", "-", text.lower())
    return re.sub(r"(^|\.)[.-]+|[.-]+(\.|$)", r"\1\2", name)[:253].strip("-.") or "my-scheduler"


def lease_of(election: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (namespace, name) of the Lease, with defaults; None without leader election."""
    if election.get("leaderElect") is False:
        return None
    return (
        election.get("resourceNamespace") or _LEASE[0],
        election.get("resourceName") or _LEASE[1],
    )


def scheduler_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the schedulerNames that a scheduler with this configuration serves."""
    served = (mapping(profile).get("schedulerName") for profile in config.get("profiles") or [{}])
    return tuple(str(name or DEFAULT_SCHEDULER) for name in served)


def _percentage(owner: Mapping[str, Any]) -> Iterator[Problem]:
    """kube-scheduler stops filtering at max(100, N * percentage // 100) feasible nodes of N."""
    percentage = owner.get("percentageOfNodesToScore") or 0
    if not 0 < percentage < LEAST_PERCENTAGE:
        return
    scored = max(_LEAST_NODES, _MANY * percentage // 100)
    yield warning_problem(
        SAMPLED_TOO_FEW,
        ("percentageOfNodesToScore",),
        f"with {percentage} % kube-scheduler scores only the first {scored} nodes of {_MANY} that "
        "fit: preferred affinity, images and extenders often have no effect",
        f"set 0, an adaptive default of {LEAST_PERCENTAGE} to 50 % by cluster size",
    )


# --- several processes ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfiguredScheduler:
    """One kube-scheduler process."""

    name: str  # for messages: a file, an object
    config: Mapping[str, Any]  # as for `config_warnings`
    target: Target


def warnings_between(
    processes: Sequence[ConfiguredScheduler],
) -> list[tuple[ConfiguredScheduler, Problem]]:
    """Return warnings about schedulers in one cluster, as (process, warning).

    The profiles of one process share a view of the nodes; processes do not.
    """
    pairs: list[tuple[ConfiguredScheduler, Problem]] = []
    for index, later in enumerate(processes):
        for earlier in processes[:index]:
            pairs += [(later, problem) for problem in _between(earlier, later)]
    return pairs


def _between(earlier: ConfiguredScheduler, later: ConfiguredScheduler) -> Iterator[Problem]:
    elections = [scheduler.config.get("leaderElection") or {} for scheduler in (earlier, later)]
    lease, other = map(lease_of, elections)
    if lease is not None and lease == other:
        yield warning_problem(
            SHARED_LEASE,
            ("leaderElection",),
            f"{earlier.name} uses the same Lease {'/'.join(lease)}: only one of the two is ever "
            "active",
            "give each scheduler its own leaderElection.resourceName",
        )
        return
    names = scheduler_names(earlier.config)
    both = [name for name in scheduler_names(later.config) if name in names]
    if both:
        yield warning_problem(
            SAME_SCHEDULER_NAME,
            ("profiles", scheduler_names(later.config).index(both[0]), "schedulerName"),
            f"{earlier.name} also serves schedulerName {', '.join(both)}: both place the same "
            "pods, and one of the two bindings fails",
            "give each scheduler its own schedulerName",
        )
        return
    filters, later_filters = (
        filters_of_all_profiles(scheduler.config, scheduler.target)
        for scheduler in (earlier, later)
    )
    difference = filter_difference(earlier.name, filters, later.name, later_filters)
    yield shared_nodes_warning(earlier.name, difference)


def shared_nodes_warning(other: str, difference: str) -> Problem:
    """Warn that another process places pods on the same nodes.

    `difference` is the result of `filter_difference`.
    """
    why = f", and {difference}" if difference else ""
    return warning_problem(
        SAME_NODES,
        ("profiles",),
        f"{other} places pods on the same nodes without knowing this scheduler's decisions"
        f"{why}: the kubelet rejects pods that no longer fit, e.g. with OutOfcpu",
        "make them profiles of one scheduler, or separate their nodes with taints and "
        "addedAffinity of NodeAffinity",
    )


def filter_difference(
    first: str, first_filters: frozenset[str], second: str, second_filters: frozenset[str]
) -> str:
    """Describe the difference of the filters that all profiles of two processes have, if any."""
    only = [
        f"only {name} filters by {', '.join(sorted(filters))}"
        for name, filters in (
            (first, first_filters - second_filters),
            (second, second_filters - first_filters),
        )
        if filters
    ]
    return " and ".join(only)


def filters_of_all_profiles(config: Mapping[str, Any], target: Target) -> frozenset[str]:
    """Return the filter plugins that every profile of a configuration runs."""
    profiles = config.get("profiles") or [{}]
    filters = (effective_plugins(profile, target.gates).points["filter"] for profile in profiles)
    return frozenset.intersection(*(frozenset(row.name for row in rows) for rows in filters))
