"""All SecondarySchedulers: each for itself, but for the names that pods ask for.

Whatever is wrong with one of them, a defect of ours included, stops neither the others nor the
control plane.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ..base import names
from ..base.findings import Finding
from ..base.objects import age
from ..diagnostics.unknown_scheduler_names import condition, unserved
from ..diagnostics.unmanaged_schedulers import rivals, rivals_condition
from ..extenders.agent_health import of_sidecars
from ..extenders.status import AgentHealth
from ..extenders.validate import ExtenderVerdict
from ..kube.resource import DEPLOYMENTS, PODS
from ..model.attachment import Refusal, by_scheduler
from ..model.plan import Action, soonest
from ..model.snapshot import PendingPod, Snapshot
from ..profiles.validate import Verdict
from ..schedulerconfig.versions import Version
from ..status.conditions import Condition
from ..status.object_status import objects_condition
from .compose import scheduler_names
from .content import Content
from .desired import Operand, Wanted, target_of, want
from .extenders import blamed, given_extenders, with_extenders
from .filter_differences import CONTROL_PLANE, different_filters, main_filters
from .history import Entry
from .plan import NOT_ALLOWED, Planned, plan
from .profiles import attributed, given_profiles, named
from .request import read

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Secondary:
    """What is to be done for all of them.

    Attributes:
        chains: name -> writes.
        conditions: of KubeScheduler: whether any is Degraded, whether pods ask for none,
            and whether somebody else serves a name of theirs or of the control plane.
        verdicts: what became of the SchedulerProfiles that are meant for them.
        extenders: the same of SchedulerExtenders.
        agents: SchedulerExtender -> how its agents in their pods are.
        unserved: pods that ask for a scheduler that there is none of.
        requeue_after: seconds until a pass is worth while even if nothing happens; None: no need.
    """

    chains: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    extenders: tuple[ExtenderVerdict, ...] = ()
    agents: Mapping[str, AgentHealth] = field(default_factory=dict)
    unserved: tuple[PendingPod, ...] = ()
    requeue_after: float | None = None


def secondary_schedulers(
    snapshot: Snapshot,
    image: str,
    version_of: Callable[[str], Version],
) -> Secondary:
    """What is to be done for all SecondarySchedulers.

    Args:
        snapshot: what was seen.
        image: the control plane's kube-scheduler; empty if it is not known.
        version_of: the version of an image.
    """
    settings = snapshot.settings
    operand = Operand(image, settings.image_pull_secrets, settings.operator_image)
    planned: dict[str, Planned] = {}
    verdicts: list[Verdict] = []
    judged: list[ExtenderVerdict] = []
    agents: dict[str, AgentHealth] = {}
    served = dict.fromkeys(control_plane_names(snapshot), CONTROL_PLANE)
    objects = snapshot.scheduler_profiles
    profiles = None if objects is None else by_scheduler(objects.values())
    kept = snapshot.scheduler_extenders
    extenders = None if kept is None else by_scheduler(kept.values())
    filters = main_filters(snapshot, version_of(image)) if snapshot.secondaries.schedulers else None
    # Oldest first: who had a name first keeps it.
    for obj in sorted(snapshot.secondaries.schedulers.values(), key=age):
        name = obj["metadata"]["name"]
        if "deletionTimestamp" in obj["metadata"]:
            continue
        try:
            version = version_of(str((obj.get("spec") or {}).get("image") or image))
            request = read(obj)
            target = target_of(request, operand, version)
            mine = None if profiles is None else profiles.get(name, ())
            calls = given_extenders(
                request,
                obj,
                None if extenders is None else extenders.get(name, ()),
                target,
                profiles=max(len(request.profiles), 1) + len(mine or ()),
            )
            request = with_extenders(request, calls)
            given = given_profiles(request, obj, mine, target, served)
            wanted = want(obj, snapshot.platform, operand, version, given.profiles, calls)
            wanted = named(wanted, given.verdicts)
            further = [*_place(snapshot, wanted), *_conflicts(wanted, served), *given.findings]
            further += calls.findings
            further += different_filters(name, wanted.composition, filters)
            if not any(finding.reason == NOT_ALLOWED for finding in further):
                claims = dict.fromkeys(wanted.composition.scheduler_names)
                served |= {asked: _named(name) for asked in claims if asked not in served}
            planned[name] = plan(snapshot, obj, wanted, version, further)
            refusal = _refusal(name, wanted.content, planned[name].asked)
            judged += blamed(calls.chosen.verdicts, refusal)
            pods = tuple(snapshot.secondaries.objects.get(name, {}).get(PODS, {}).values())
            workload = f"{DEPLOYMENTS.kind}/{name}"
            agents |= {
                agent.name: of_sidecars(agent, request.namespace, workload, pods)
                for agent in request.sidecar_agents
            }
            verdicts += attributed(given.verdicts, refusal)
        except Exception as error:
            log.exception("SecondaryScheduler %s cannot be planned: a defect in the operator", name)
            planned[name] = Planned(
                (), f"a defect in the operator: {type(error).__name__}: {error}"
            )
    waits = [each.requeue_after for each in planned.values()]
    nobodys = unserved(snapshot.secondaries.pending, served, snapshot.now)
    return Secondary(
        {name: each.actions for name, each in planned.items() if each.actions},
        (
            objects_condition(
                names.SECONDARY_DEGRADED,
                "SecondarySchedulerDegraded",
                {f"{name}: ": each.degraded for name, each in planned.items()},
            ),
            condition(nobodys),
            rivals_condition(rivals(snapshot, served)),
        ),
        tuple(verdicts),
        tuple(judged),
        agents,
        nobodys,
        soonest(*waits),
    )


def _refusal(name: str, content: Content | None, entry: Entry | None) -> Refusal | None:
    """What kube-scheduler said of the content that is asked for, if it did not run with it.

    Args:
        name: of the SecondaryScheduler.
        content: what is asked for; None if it is wrong.
        entry: what is remembered of that; None: nothing.
    """
    if content is None or entry is None or not entry.bad:
        return None
    did = "refused" if entry.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    state = (
        f'kube-scheduler {did} configuration {entry.hash} of SecondaryScheduler "{name}", mend '
        "this or take it back"
    )
    return Refusal(content.config, entry.message, state)


def _named(name: str) -> str:
    return f'SecondaryScheduler "{name}"'


def control_plane_names(snapshot: Snapshot) -> tuple[str, ...]:
    """The names that the control plane's scheduler serves, as far as its configuration is ours."""
    data = (snapshot.config_maps.get(names.CONFIG) or {}).get("data") or {}
    return _names_in(data.get(names.CONFIG_KEY, "{}"))


@lru_cache(maxsize=16)
def _names_in(text: str) -> tuple[str, ...]:
    try:
        return scheduler_names(json.loads(text))
    except (ValueError, AttributeError, TypeError):
        return scheduler_names({})  # somebody put something else there


def _place(snapshot: Snapshot, wanted: Wanted) -> list[Finding]:
    allowed = snapshot.platform.secondary_namespaces(snapshot.settings.secondary_namespaces)
    namespace = wanted.request.namespace
    if namespace in allowed:
        return []
    message = (
        f'the operator may not work in namespace "{namespace}": add it to SECONDARY_NAMESPACES of '
        "the operator's Deployment and give it the rights there (with Helm: "
        f"secondarySchedulers.namespaces), or make this one again in {' or '.join(allowed)}"
    )
    return [Finding(names.DEGRADED, NOT_ALLOWED, "spec.namespace", message, blocking=True)]


def _conflicts(wanted: Wanted, served: Mapping[str, str]) -> list[Finding]:
    """Two processes that serve one name bind the same pods, and each other's bindings fail."""
    return [
        Finding(
            names.DEGRADED,
            "SchedulerNameTaken",
            "spec.profiles",
            f'pods that ask for "{name}" are scheduled by {served[name]}, and two would fight over '
            "them; use another schedulerName",
            blocking=True,
        )
        for name in dict.fromkeys(wanted.composition.scheduler_names)
        if name in served
    ]
