"""What starts but hurts: warnings about a configuration that kube-scheduler accepts.

They never change a verdict. Each says what will happen, so that whoever means it can go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ..base.findings import WARNING, Path, Problem, listing
from ..base.platform import PLATFORMS
from .check import Target
from .effective_plugins import effective_plugins
from .extender_warnings import extender_hazards
from .memo import REMEMBERED, Part, within
from .plugin_warnings import Profile, plugin_hazards

SHARED_LEASE: Final = "SharedLease"
SECOND_DEFAULT_SCHEDULER: Final = "SecondDefaultScheduler"
SAMPLED_TOO_FEW: Final = "SampledTooFew"
SAME_SCHEDULER_NAME: Final = "SameSchedulerName"
SAME_NODES: Final = "SameNodes"
NO_DEFAULT_SCHEDULER: Final = "NoDefaultScheduler"

DEFAULT_SCHEDULER: Final = "default-scheduler"
_LEASE: Final = ("kube-system", "kube-scheduler")  # kube-scheduler's own defaults
MAIN_LEASES: Final = frozenset(
    (platform.operand_lease_namespace, platform.operand_lease_name)
    for platform in PLATFORMS.values()
)
"""(namespace, name) of the Leases with which clusters elect their own scheduler."""

LEAST_PERCENTAGE: Final = 5
"""The lowest that kube-scheduler chooses by itself (minFeasibleNodesPercentageToFind)."""
_LEAST_NODES: Final = 100  # minFeasibleNodesToFind
_MANY: Final = 5000  # nodes of the largest cluster that Kubernetes promises to work in


def hazards(
    config: Mapping[str, Any], target: Target, election: Mapping[str, Any] | None = None
) -> list[Problem]:
    """Warnings about one configuration.

    Args:
        config: a configuration in which the check (check.py) found nothing, without nulls.
        target: the scheduler that will read it.
        election: leaderElection with the flags of the command line over it, if there are any.
    """
    found = [*_leader_election(config, election or config.get("leaderElection") or {})]
    return found + own_hazards(config, target)


def own_hazards(config: Mapping[str, Any], target: Target) -> list[Problem]:
    """Warnings about one configuration alone, whichever scheduler of a cluster it is for."""
    found = [*_percentage(config, ())]
    extenders: Sequence[Mapping[str, Any]] = config.get("extenders") or ()
    profiles: Sequence[Mapping[str, Any]] = config.get("profiles") or [{}]
    for index, document in enumerate(profiles):
        found += profile_hazards(document, ("profiles", index), target, extenders)
    for index, extender in enumerate(extenders):
        found += extender_hazards(extender, ("extenders", index), len(profiles))
    return found


def profile_hazards(
    document: Mapping[str, Any],
    path: Path,
    target: Target,
    extenders: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Problem]:
    """Warnings about one profile; worked out once for each content.

    Args:
        document: the profile.
        path: where it is in the configuration.
        target: the scheduler that will read it.
        extenders: of the same configuration, because they score as well.
    """
    profile, others = Part.of(document, target), Part.of(extenders, target)
    if profile is None or others is None:
        return within(_hazards_of(document, target, extenders), path)
    return within(_profile_hazards(profile, others), path)


@lru_cache(maxsize=REMEMBERED)
def _profile_hazards(profile: Part, extenders: Part) -> tuple[Problem, ...]:
    return _hazards_of(profile.value, profile.target, extenders.value)


def _hazards_of(
    document: Mapping[str, Any], target: Target, extenders: Sequence[Mapping[str, Any]]
) -> tuple[Problem, ...]:
    profile = Profile.read(document, (), target)
    return (*_percentage(document, ()), *plugin_hazards(profile, extenders))


def main_hazards(config: Mapping[str, Any], target: Target) -> list[Problem]:
    """Warnings about the configuration of the control plane's scheduler."""
    found = own_hazards(config, target)
    if DEFAULT_SCHEDULER not in scheduler_names(config):
        message = (
            f"no profile is {DEFAULT_SCHEDULER}, so pods that name no scheduler stay Pending, "
            "without an event"
        )
        fix = f"name one of them {DEFAULT_SCHEDULER}, or add a profile of that name"
        found.append(_warning(NO_DEFAULT_SCHEDULER, ("profiles",), message, fix))
    return found


def _leader_election(config: Mapping[str, Any], election: Mapping[str, Any]) -> Iterator[Problem]:
    path: Path = ("leaderElection",)
    lease = lease_of(election)
    names = scheduler_names(config)
    if lease in MAIN_LEASES and DEFAULT_SCHEDULER not in names:
        yield _warning(
            SHARED_LEASE,
            path,
            f"no profile is {DEFAULT_SCHEDULER}, but the Lease is the main scheduler's "
            f"{'/'.join(lease)}: of the two only one is ever active",
            f"set leaderElection.resourceName to {names[0]} and resourceNamespace to its own",
        )
    elif lease not in MAIN_LEASES and DEFAULT_SCHEDULER in names:
        how = f"with the Lease {'/'.join(lease)}" if lease else "without leader election"
        yield _warning(
            SECOND_DEFAULT_SCHEDULER,
            path,
            f"this serves {DEFAULT_SCHEDULER} {how}, so beside the main scheduler two at once "
            "place the same pods",
            "give the profile a schedulerName of its own, or leave leaderElection as it is by "
            "default in the main scheduler",
        )


def lease_of(election: Mapping[str, Any]) -> tuple[str, str] | None:
    """(namespace, name) of the Lease, with kube-scheduler's defaults; None without election."""
    if election.get("leaderElect") is False:
        return None
    return (
        election.get("resourceNamespace") or _LEASE[0],
        election.get("resourceName") or _LEASE[1],
    )


def scheduler_names(config: Mapping[str, Any]) -> list[str]:
    """The schedulerNames that a configuration serves."""
    profiles = config.get("profiles") or [{}]
    return [profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles]


def _percentage(owner: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """kube-scheduler stops looking at max(100, N * percentage // 100) feasible nodes of N."""
    percentage = owner.get("percentageOfNodesToScore") or 0
    if not 0 < percentage < LEAST_PERCENTAGE:
        return
    looked_at = max(_LEAST_NODES, _MANY * percentage // 100)
    yield _warning(
        SAMPLED_TOO_FEW,
        (*path, "percentageOfNodesToScore"),
        f"with {percentage} % kube-scheduler compares the first {looked_at} nodes of {_MANY} that "
        "fit and not the best: preferred affinity, images and extenders often count for nothing",
        f"use 0, which chooses {LEAST_PERCENTAGE} to 50 by the size of the cluster",
    )


# --- several processes ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Process:
    """A kube-scheduler as its configuration makes it.

    Attributes:
        name: how to call it: a file, an object.
        config: as for `hazards`.
        target: the scheduler that will read it.
    """

    name: str
    config: Mapping[str, Any]
    target: Target


def hazards_between(processes: Sequence[Process]) -> list[tuple[Process, Problem]]:
    """Warnings about schedulers that run beside each other: (the process, warning).

    Profiles of one process share its view of the nodes; processes do not.
    """
    found: list[tuple[Process, Problem]] = []
    for index, later in enumerate(processes):
        for earlier in processes[:index]:
            found += [(later, problem) for problem in _between(earlier, later)]
    return found


def _between(earlier: Process, later: Process) -> Iterator[Problem]:
    elections = [each.config.get("leaderElection") or {} for each in (earlier, later)]
    lease, other = map(lease_of, elections)
    if lease is not None and lease == other:
        yield _warning(
            SHARED_LEASE,
            ("leaderElection",),
            f"{earlier.name} elects with the same Lease {'/'.join(lease)}: of the two only one is "
            "ever active",
            "give each its own leaderElection.resourceName",
        )
        return
    names = scheduler_names(earlier.config)
    both = [name for name in scheduler_names(later.config) if name in names]
    if both:
        yield _warning(
            SAME_SCHEDULER_NAME,
            ("profiles", scheduler_names(later.config).index(both[0]), "schedulerName"),
            f"{earlier.name} serves {listing(both)} as well: both place the same pods, and one of "
            "the two bindings fails",
            "give each its own schedulerName",
        )
        return
    one, two = (common_filters(each.config, each.target) for each in (earlier, later))
    yield same_nodes(earlier.name, filter_difference(earlier.name, one, later.name, two))


def same_nodes(other: str, difference: str) -> Problem:
    """The warning that another process places pods on the same nodes.

    Args:
        other: how to call that one.
        difference: what `filter_difference` says; empty: both have the same filters.
    """
    why = f", and {difference}" if difference else ""
    return _warning(
        SAME_NODES,
        ("profiles",),
        f"{other} places pods on the same nodes without knowing of this one's decisions"
        f"{why}: the kubelet refuses what is too much with OutOfcpu and the like",
        "make them profiles of one process, or keep their nodes apart with taints and "
        "addedAffinity of NodeAffinity",
    )


def filter_difference(one: str, ones: frozenset[str], two: str, twos: frozenset[str]) -> str:
    """How the filters of two processes differ, in words; empty if they do not.

    Args:
        one: how to call the first one.
        ones: the filters that all its profiles have.
        two: how to call the second one.
        twos: its filters.
    """
    only = [
        f"only {name} filters by {', '.join(sorted(names))}"
        for name, names in ((one, ones - twos), (two, twos - ones))
        if names
    ]
    return " and ".join(only)


def common_filters(config: Mapping[str, Any], target: Target) -> frozenset[str]:
    """The plugins that filter in every profile of a configuration."""
    profiles = config.get("profiles") or [{}]
    found = (effective_plugins(profile, target.gates).points["filter"] for profile in profiles)
    return frozenset.intersection(*(frozenset(row.name for row in rows) for rows in found))


def _warning(reason: str, path: Path, message: str, fix: str) -> Problem:
    return Problem(reason, path, message, fix, WARNING)
