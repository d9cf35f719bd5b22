"""Checks of KubeSchedulerConfigurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...base.findings import Problem
from ..language.validation.configuration import Target, validate_config
from ..language.warnings.configuration import (
    SECOND_DEFAULT_SCHEDULER,
    ConfiguredScheduler,
    config_warnings,
    file_warnings,
    standalone_warnings,
)
from .checks import (
    OTHER_SCHEDULER,
    Checked,
    CheckOptions,
    Item,
    election_of,
    has_unknown_election,
    is_read_by_volcano,
    target_of,
)
from .places import refused


def check_configurations(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check KubeSchedulerConfigurations as kube-scheduler does, then for risky settings."""
    checked = Checked()
    for item in items:
        if is_read_by_volcano(item):
            checked.problems.append((item, _not_volcanos()))
            continue
        target = target_of(item, options)
        unknown = has_unknown_election(item.reader)
        election = {} if unknown else election_of(item.value, item.reader)
        # With its nulls: kube-scheduler rejects an unknown field even without a value.
        problems = validate_config(item.document.root.data, target, election)
        if not problems:
            config = {**item.value, "leaderElection": election} if election else item.value
            problems = [
                warning
                for warning in _warnings(item, config, target, options)
                if not unknown or warning.path[:1] != ("leaderElection",)
            ]
            process = ConfiguredScheduler(item.label, config, target)
            checked.processes.append((item, process))
        checked.problems += [(item, problem) for problem in problems]
        place = item.place.place if item.place and not options.place else options.place
        checked.problems += [(item, problem) for problem in refused(place, item.value)]
    return checked


def _not_volcanos() -> Problem:
    return Problem(
        OTHER_SCHEDULER,
        ("kind",),
        "Volcano's vc-scheduler reads no KubeSchedulerConfiguration: it finds no action in it and "
        "keeps its built-in configuration",
        "write actions and tiers in Volcano's format, or let kube-scheduler read the file",
    )


_PROVIDERS_OWN: Final = ("aks", "eks", "gardener")
"""Places where profiles become a part of the provider's own scheduler, with its Lease."""


def _warnings(
    item: Item, config: Mapping[str, Any], target: Target, options: CheckOptions
) -> Iterator[Problem]:
    """Yield the warnings that apply to how a configuration is used."""
    if is_run_by_provider(item, options):
        yield from standalone_warnings(config, target)
        return
    warn = file_warnings if needs_kubeconfig(item) else config_warnings
    is_static = item.reader is not None and not item.reader.account
    for problem in warn(config, target):
        # A static Pod is the control plane's scheduler, whatever its leader election.
        if not (is_static and problem.reason == SECOND_DEFAULT_SCHEDULER):
            yield problem


def is_run_by_provider(item: Item, options: CheckOptions) -> bool:
    """Report whether a configuration is for a provider's scheduler, of which a cluster has one."""
    place = options.place or (item.place.place if item.place else "")
    return place in _PROVIDERS_OWN


def needs_kubeconfig(item: Item) -> bool:
    """Report whether neither a ServiceAccount nor a product gives the reader its credentials."""
    place = item.place
    if place is not None and (place.is_part or place.place):
        return False  # the product that makes the file of it sets the kubeconfig
    if item.reader is not None:
        return not item.reader.account
    return place is None or (place.text is not None and not place.text.has_credentials)
