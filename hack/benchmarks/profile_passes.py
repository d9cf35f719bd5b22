"""Passes over a cluster with many SchedulerProfiles; prints what they took as JSON.

Run as a program of its own, with the operator's package on the path.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    SCHEDULER_PROFILES,
)
from kube_scheduler_operator.plan import Action, Plan
from kube_scheduler_operator.platform import KUBEADM
from kube_scheduler_operator.reconcile import reconcile
from kube_scheduler_operator.settings import Settings
from kube_scheduler_operator.snapshot import Snapshot

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
SETTLING = 20
"""Passes that are enough for everything that follows from one edit but what nodes do."""


def main() -> None:
    """Measure and print."""
    count, repeat = int(sys.argv[1]), int(sys.argv[2])
    snapshot = _cluster(count)
    seconds, _ = _timed(snapshot)
    found: dict[str, list[float]] = {"first": [seconds]}
    snapshot = _settled(snapshot)
    for number in range(repeat):
        name = f"team-{number % count:03}"
        calm, plan = _timed(snapshot)
        _note(found, steady=calm, calm=_statuses(plan))
        edited = _edit(snapshot, name, _spec(5000 + number))
        seconds, plan = _timed(edited)
        _note(found, edited=seconds, statuses=_statuses(plan))
        snapshot = _settled(edited)
        wrong = {
            "plugins": {"score": {"enabled": [{"name": "ImageLocalty", "weight": number + 1}]}}
        }
        seconds, _ = _timed(_edit(snapshot, name, wrong))
        _note(found, held=seconds)
        profile = ("HighNodeUtilization", "NoScoring")[number % 2]
        scheduler = {**(snapshot.scheduler or {}), "spec": {"profile": profile}}
        snapshot = replace(snapshot, scheduler=scheduler)
        seconds, _ = _timed(snapshot)
        _note(found, shared=seconds)
        snapshot = _settled(snapshot)
    found["memory"] = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
    print(json.dumps(found))


def _note(found: dict[str, list[float]], **values: float) -> None:
    for name, value in values.items():
        found.setdefault(name, []).append(value)


def _spec(seed: int) -> dict[str, Any]:
    """A profile of some size, unlike all others."""
    names = ("NodeResourcesFit", "InterPodAffinity", "PodTopologySpread", "ImageLocality")
    return {
        "base": ("HighNodeUtilization", "LowNodeUtilization")[seed % 2],
        "plugins": {
            "score": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": n, "weight": seed % 97 + i + 1} for i, n in enumerate(names)],
            }
        },
        "pluginConfig": [
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": seed % 101}},
            {
                "name": "NodeResourcesFit",
                "args": {"ignoredResources": [f"example.com/{seed}-{i}" for i in range(5)]},
            },
        ],
        "percentageOfNodesToScore": seed % 101,
    }


def _cluster(count: int) -> Snapshot:
    objects = {
        f"team-{number:03}": {
            "apiVersion": SCHEDULER_PROFILES.api_version,
            "kind": SCHEDULER_PROFILES.kind,
            "metadata": {
                "name": f"team-{number:03}",
                "uid": str(number),
                "resourceVersion": "1",
                "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": _spec(number),
        }
        for number in range(count)
    }
    metadata = {"name": "cluster", "uid": "u", "resourceVersion": "1", "generation": 1}
    return Snapshot(
        now=datetime(2026, 1, 2, tzinfo=UTC),
        platform=KUBEADM,
        settings=Settings(operand_image=IMAGE),
        server_version="v1.35.4",
        scheduler={"metadata": {"name": "cluster"}, "spec": {}},
        kubescheduler={"metadata": metadata, "spec": {}},
        scheduler_profiles=objects,
    )


def _edit(snapshot: Snapshot, name: str, spec: dict[str, Any]) -> Snapshot:
    objects = dict(snapshot.scheduler_profiles or {})
    metadata = objects[name]["metadata"]
    metadata = {**metadata, "generation": metadata["generation"] + 1}
    objects[name] = {**objects[name], "metadata": metadata, "spec": spec}
    return replace(snapshot, scheduler_profiles=objects)


def _timed(snapshot: Snapshot) -> tuple[float, Plan]:
    begun = time.process_time()
    plan = reconcile(snapshot)
    return time.process_time() - begun, plan


def _settled(snapshot: Snapshot) -> Snapshot:
    """After all passes that this leads to; there are no nodes, so revisions are made and kept."""
    for _ in range(SETTLING):
        plan = reconcile(snapshot)
        snapshot = _written(snapshot, (*plan.actions, *plan.reports))
    return snapshot


def _written(snapshot: Snapshot, actions: Iterable[Action]) -> Snapshot:
    """What the API has after these writes, as far as composing and revising look at it."""
    profiles = dict(snapshot.scheduler_profiles or {})
    maps = dict(snapshot.config_maps)
    kubescheduler = dict(snapshot.kubescheduler or {})
    for action in actions:
        name = action.obj["metadata"]["name"]
        if action.resource == SCHEDULER_PROFILES:
            profiles[name] = action.obj
        elif action.resource == CONFIG_MAPS:
            metadata = {"uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
            maps[name] = {**action.obj, "metadata": {**metadata, **action.obj["metadata"]}}
        elif action.resource == KUBE_SCHEDULERS:
            kubescheduler |= {
                key: action.obj[key] for key in ("spec", "status") if key in action.obj
            }
    return replace(
        snapshot, scheduler_profiles=profiles, config_maps=maps, kubescheduler=kubescheduler
    )


def _statuses(plan: Plan) -> float:
    return float(sum(action.resource == SCHEDULER_PROFILES for action in plan.reports))


if __name__ == "__main__":
    main()
