"""All LoadPolicies: the oldest has the nodes, the others are told so.

Whatever is wrong with one of them, a defect of ours included, stops nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..base import names
from ..base.objects import age
from ..model.plan import Action, soonest
from ..model.snapshot import LOAD_CHAIN, Snapshot
from ..status.conditions import Condition
from ..status.object_status import objects_condition
from .cleanup import Cleanup, clean_up
from .plan import Planned, plan

log = logging.getLogger(__name__)

CLEANUP: Final = ""
"""The chain of what is left over from LoadPolicies that are gone."""


@dataclass(frozen=True, slots=True)
class LoadPolicies:
    """What is to be done for all of them.

    Attributes:
        chains: whose -> writes.
        conditions: of KubeScheduler: whether any is Degraded.
        requeue_after: seconds until a pass is worth while even if nothing happens; None: no need.
    """

    chains: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    requeue_after: float | None = None


def load_policies(snapshot: Snapshot) -> LoadPolicies:
    """What is to be done for all LoadPolicies; nothing where the API does not serve the kind."""
    if snapshot.loads.policies is None:
        # That is not the same as none: an API server may come back without the kind for a moment.
        return LoadPolicies(conditions=(_condition({}),))
    alive = [
        obj
        for obj in sorted(snapshot.loads.policies.values(), key=age)  # the oldest has the nodes
        if "deletionTimestamp" not in obj["metadata"]
    ]
    planned: dict[str, Planned] = {}
    for obj in alive:
        name = obj["metadata"]["name"]
        try:
            planned[name] = plan(snapshot, obj, alive[0]["metadata"]["name"])
        except Exception as error:
            log.exception("LoadPolicy %s cannot be planned: a defect in the operator", name)
            planned[name] = Planned(
                (), f"a defect in the operator: {type(error).__name__}: {error}"
            )
    cleanup = _cleaned(snapshot, in_use=bool(alive))
    chains = {name: each.actions for name, each in planned.items()}
    degraded = {f"{name}: ": each.degraded for name, each in planned.items()}
    waits = [*(each.requeue_after for each in planned.values()), cleanup.requeue_after]
    return LoadPolicies(
        {
            LOAD_CHAIN + name: actions
            for name, actions in {**chains, CLEANUP: cleanup.actions}.items()
            if actions
        },
        (_condition({**degraded, "": cleanup.degraded}),),
        soonest(*waits),
    )


def _cleaned(snapshot: Snapshot, *, in_use: bool) -> Cleanup:
    cleanup = clean_up(snapshot, in_use=in_use)
    trouble = snapshot.loads.troubles.get(CLEANUP)
    if not trouble or cleanup.degraded:
        return cleanup
    return Cleanup(cleanup.actions, trouble, cleanup.requeue_after)


def _condition(degraded: Mapping[str, str]) -> Condition:
    return objects_condition(names.LOAD_POLICIES_DEGRADED, "LoadPolicyDegraded", degraded)
