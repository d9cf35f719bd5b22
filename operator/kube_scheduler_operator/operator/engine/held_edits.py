"""Keeps edits of agents and of the LoadPolicy back until the check of placements has passed them.

The LoadPolicy is checked with the control plane's scheduler, or with that in its place. The agents
of SecondarySchedulers, which are sidecars, read it as well: for them its effect is not known.

They need no revision: an agent, and the annotator, read a file within seconds after the operator
has written it. So in place of an edit, the version that was accepted last stays in use, for as long
as a scheduler calls the agent. Without such a version, e.g. of an object that was deleted and
created again, nothing is written for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...base.management import MANAGED
from ...base.objects import Object, mapping
from ...config.effective.attachment import CONTROL_PLANE, EXTENDER, last_accepted, scheduler_of
from ...config.effective.extenders.entry import agent_name
from ...config.effective.extenders.validate import ExtenderResult, known_port
from ...config.effective.settings.validate import OFF, SettingsResult
from ..controlplane.managed import managed_name
from ..controlplane.placement_gate import CheckedSpecs, RevisionCheck, settings_in_effect
from ..controlplane.placement_rules import AgentSpecs, called_names, deciding_fields
from ..controlplane.revision.history import configurations_in_use
from ..extenders.agents import ControlPlaneAgents, control_plane_agents
from ..loadpolicy.reconcile import LoadPolicies, load_policies, policy_in_use
from ..loadpolicy.request import effective_request
from ..model.snapshot import Snapshot
from ..status.accepted import KEPT_BACK, WAITING
from ..status.placement_check import PlacementCheck
from .secondary_gate import LoadEdit, readers_of
from .stages import DecidedControlPlane, Everywhere, HeldEdits, PreparedRevision

_URL: Final = re.compile(r'"urlPrefix":"([^"]*)"')
"""The URL of an extender in a configuration."""

Specs = Mapping[str, Mapping[str, Any]]


def keep_back(
    snapshot: Snapshot, proposed: DecidedControlPlane, checked: Sequence[str] = ()
) -> HeldEdits:
    """Replace the edits of agents that schedulers call by the versions in use.

    `checked` has the SchedulerExtenders whose edits may be in use.
    """
    if not _is_on(snapshot, proposed.control_plane.settings):
        return HeldEdits(proposed, proposed, CheckedSpecs())
    composition = proposed.control_plane.composition
    specs = checked_specs(snapshot, (*composition.extenders, *composition.leaving))
    held = _edited(specs.desired.extenders, specs.in_use.extenders) - {*checked}
    held &= _called(snapshot) if held else set()
    if not held:
        return HeldEdits(proposed, proposed, specs)
    objects = snapshot.scheduler_extenders or {}
    extenders = tuple(
        _as_accepted(result, objects[result.name], specs.in_use.extenders.get(result.name))
        if result.name in held
        else result
        for result in composition.extenders
    )
    control_plane = replace(
        proposed.control_plane, composition=replace(composition, extenders=extenders)
    )
    return HeldEdits(proposed, replace(proposed, control_plane=control_plane), specs)


def run_agents(snapshot: Snapshot, decided: DecidedControlPlane) -> ControlPlaneAgents:
    composition = decided.control_plane.composition
    return control_plane_agents(
        snapshot,
        (*composition.extenders, *composition.leaving),
        partial(configurations_in_use, snapshot),
        composition.config,
    )


def reconcile_load_policies(snapshot: Snapshot) -> LoadPolicies:
    """Reconcile LoadPolicies, without an edit that waits for the check of placements."""
    return load_policies(snapshot, _held_load_policies(snapshot))


def release(
    snapshot: Snapshot, everywhere: Everywhere, prepared: PreparedRevision, check: RevisionCheck
) -> tuple[Everywhere, PreparedRevision]:
    """Put the edits into use that have passed their check.

    Those of agents that only a revision on its way out calls have no part in it.
    """
    edits = prepared.edits
    if edits is None or check.content is None or not check.passes:
        return everywhere, prepared
    if _held_load_policies(snapshot):
        everywhere = replace(everywhere, loads=load_policies(snapshot))
    if edits.decided is not edits.proposed:
        edits = keep_back(snapshot, edits.proposed, called_names(check.content.config))
        agents = run_agents(snapshot, edits.decided)
        prepared = replace(prepared, decided=edits.decided, agents=agents)
    return everywhere, prepared


def _held_load_policies(snapshot: Snapshot) -> frozenset[str]:
    """The LoadPolicy whose edit waits, if it has one and a scheduler calls agents."""
    if settings_in_effect(snapshot, None).mode == OFF:
        return frozenset()
    load = load_edit(snapshot)
    if load.desired == load.in_use:
        return frozenset()
    is_read = bool(load.readers)
    if snapshot.platform.owns_static_pods and not is_read:
        called = _called(snapshot) & (snapshot.scheduler_extenders or {}).keys()
        is_read = bool(called) or any(map(agent_name, _urls(snapshot)))
    return frozenset(load.desired) if is_read else frozenset()


def load_edit(snapshot: Snapshot) -> LoadEdit:
    """The LoadPolicy in use, its edit, and who reads it, if its edit is checked.

    While the control plane's scheduler is not Managed, nothing would decide about the edit.
    """
    desired, in_use = _load_policies(snapshot)
    is_managed = snapshot.kubescheduler is not None and snapshot.management.state == MANAGED
    readers: tuple[str, ...] = ()
    if desired != in_use and is_managed:
        readers = readers_of(snapshot, {**in_use, **desired})
    return LoadEdit(in_use, desired, readers)


def release_load_policy(
    snapshot: Snapshot, loads: LoadPolicies, checks: Mapping[str, PlacementCheck[Any]]
) -> LoadPolicies:
    """Put an edit of the LoadPolicy into use that the check of the managed scheduler has passed."""
    check = checks.get(managed_name(snapshot))
    waits = check is not None and not check.passes
    return loads if waits or not _held_load_policies(snapshot) else load_policies(snapshot)


def checked_specs(snapshot: Snapshot, results: Iterable[ExtenderResult]) -> CheckedSpecs:
    """What agents decide by now, and after an edit; `results` are of the objects as edited."""
    accepted = {
        name: spec
        for name, obj in (snapshot.scheduler_extenders or {}).items()
        if (spec := last_accepted(obj)) is not None and scheduler_of(spec) == CONTROL_PLANE
    }
    load = load_edit(snapshot)
    edited = {result.name: result.spec for result in results if result.spec is not None}
    return CheckedSpecs(
        AgentSpecs(accepted, load.in_use, readers=load.readers),
        AgentSpecs(edited, load.desired, readers=load.readers),
    )


def _is_on(snapshot: Snapshot, settings: SettingsResult | None = None) -> bool:
    mode = settings_in_effect(snapshot, settings).mode
    return snapshot.platform.owns_static_pods and mode != OFF


def _edited(desired: Specs, in_use: Specs) -> set[str]:
    return {
        name
        for name, spec in desired.items()
        if deciding_fields(spec) != deciding_fields(in_use.get(name, {}))
    }


def _called(snapshot: Snapshot) -> set[str]:
    """The names of the SchedulerExtenders whose agents a configuration in use may call."""
    extenders = [{"urlPrefix": url} for url in _urls(snapshot)]
    return {*called_names({"extenders": extenders})}


def _urls(snapshot: Snapshot) -> set[str]:
    return {url for text in configurations_in_use(snapshot) for url in _URL.findall(text)}


def _as_accepted(
    result: ExtenderResult, obj: Object, accepted: Mapping[str, Any] | None
) -> ExtenderResult:
    finding = EXTENDER.finding(result.name, WAITING, "spec.agent", KEPT_BACK)
    return replace(
        result,
        accepted=False,
        findings=(finding,),
        spec=accepted,
        warnings=(),
        port=known_port(obj),
    )


def _load_policies(snapshot: Snapshot) -> tuple[Specs, Specs]:
    """(the LoadPolicy as edited, the version in use), by name; empty without one."""
    obj = policy_in_use(snapshot)
    if obj is None:
        return {}, {}
    name = str(obj["metadata"]["name"])
    namespace = snapshot.platform.target_namespace
    edited = effective_request(obj, snapshot.loads.secrets, namespace)
    accepted = mapping(obj.get("status")).get("accepted")
    return (
        {name: edited.spec} if edited.request is not None else {},
        {name: accepted} if isinstance(accepted, Mapping) else {},
    )
