"""What every scheduler runs of the objects in its configuration: for Ready of their kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...base import names
from ...base.json_text import parse_json
from ...base.templates import canonical_json
from ...config.effective.attachment import CONTROL_PLANE
from ...config.effective.control_plane.recorded_inputs import contained_settings, settings_in
from ...config.effective.control_plane.scheduler import EffectiveControlPlane
from ...kube.resource import KUBE_SCHEDULERS
from ..controlplane.managed import managed_name
from ..controlplane.revision.content import RevisionContent
from ..controlplane.rollout.rollout_step import RolloutStep
from ..model.snapshot import Snapshot
from ..profiles import aks
from ..secondary.reconcile import SecondarySchedulers
from ..status.conditions import Condition
from ..status.in_use import Configuration, InUse
from ..status.readiness import NOT_EVERYWHERE, check_condition, rolling_out
from .stages import DecidedControlPlane, Requested, Revised

_KIND = KUBE_SCHEDULERS.kind


def of_static_pods(
    secondary: SecondarySchedulers,
    decided: DecidedControlPlane,
    revised: Revised | None,
    rolled: RolloutStep | None = None,
    conditions: Sequence[Condition] = (),
) -> Mapping[str, InUse]:
    """What each scheduler runs; `conditions` are those of KubeScheduler.

    That of the control plane is not known before the revisions are: it is left out then.
    """
    if revised is None or rolled is None:
        return secondary.in_use
    return {
        **secondary.in_use,
        CONTROL_PLANE: _control_plane(decided.control_plane, revised, rolled, conditions),
    }


def without_static_pods(
    snapshot: Snapshot, secondary: SecondarySchedulers, own_profiles: InUse | None
) -> Mapping[str, InUse]:
    """The same where a SecondaryScheduler is in the place of the control plane's scheduler."""
    managed = secondary.in_use.get(managed_name(snapshot))
    return {
        **secondary.in_use,
        **({CONTROL_PLANE: managed} if managed is not None else {}),
        **({aks.SCHEDULER: own_profiles} if own_profiles is not None else {}),
    }


def _control_plane(
    control_plane: EffectiveControlPlane,
    revised: Revised,
    rolled: RolloutStep,
    conditions: Sequence[Condition],
) -> InUse:
    revisions, composed = revised.revisions, revised.filled.content
    current = {status.current for status in rolled.node_statuses if status.current}
    installed = [revisions.revision(number) for number in sorted(current)]
    known = [revision for revision in installed if revision is not None]
    is_known = bool(known) and len(known) == len(installed)
    types = {condition.type: condition for condition in conditions}
    in_use = InUse(tuple(_unavailable(types)), tuple(_behind(revised, composed)))
    composed_hash = composed.hash if composed is not None else ""
    if is_known and all(revision.hash == composed_hash for revision in known):
        return in_use
    if composed is not None:
        wanted = _configuration(composed)
    else:
        config, settings = control_plane.composition.config, control_plane.settings
        own = contained_settings(settings.spec if settings is not None else None)
        wanted = Configuration(parse_json(canonical_json(config or {})), settings=own)
    running = tuple(_configuration(revision.content) for revision in known) if is_known else ()
    return replace(in_use, composed=wanted, running=running)


def _configuration(content: RevisionContent) -> Configuration:
    return Configuration(content.config, settings=settings_in(content.inputs))


def _behind(revised: Revised, composed: RevisionContent | None) -> Iterator[Condition]:
    """The conditions that say why not every node runs what was composed."""
    rejected, check = revised.revisions.rejected, revised.check
    if rejected is not None:
        refused = rejected.outcome == names.OUTCOME_REFUSED
        did = "refused" if refused else "did not stay healthy with"
        reason = "RevisionRefused" if refused else "RevisionFailed"
        where = names.PREFLIGHT_DEGRADED if refused else names.NODE_INSTALLER_DEGRADED
        message = (
            f"kube-scheduler {did} revision {rejected.number}, which has this; {where} of {_KIND} "
            "has the reason"
        )
        yield Condition(names.DEGRADED, "True", reason, message)
    if check is not None and check.condition is not None and check.waits:
        yield check_condition(check.condition.reason, _KIND)
    if composed is None:
        yield rolling_out(
            f"no revision can be made of the configuration; the Degraded conditions of {_KIND} "
            "have the reason"
        )
    yield NOT_EVERYWHERE


def _unavailable(types: Mapping[str, Condition]) -> Iterator[Condition]:
    """Whether no scheduler schedules; the only one of a control plane may move to a revision."""
    available = types.get(names.STATIC_PODS_AVAILABLE)
    moving = types.get(names.NODE_INSTALLER_PROGRESSING)
    if available is None or available.status == "True":
        return
    if moving is None or moving.status != "True":
        message = f"{available.type} of {_KIND} is {available.status}, and has the reason"
        yield Condition(names.AVAILABLE, available.status, available.reason, message)


def settings_of_managed(requested: Requested, in_use: Mapping[str, InUse]) -> InUse | None:
    """What runs of OperatorSettings; not known until they are in the SecondaryScheduler."""
    return in_use.get(CONTROL_PLANE) if requested.managed.action is None else None
