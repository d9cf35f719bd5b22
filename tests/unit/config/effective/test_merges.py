"""Objects lead to the same with jsonmerge, and with what replaces it where only files are read."""

from __future__ import annotations

import sys

import pytest

from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, OPENSHIFT, Platform
from kube_scheduler_operator.config.effective.facts import Facts
from kube_scheduler_operator.config.effective.objects import Objects
from kube_scheduler_operator.config.effective.pipeline import Effective, effective
from kube_scheduler_operator.config.language.merging import merge, merge_plain, merge_with_jsonmerge
from kube_scheduler_operator.config.language.versions import Version

from .scenarios import ACCEPTED, REJECTED, Scenario, from_files

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"


def made_of(scenario: Scenario, platform: Platform) -> Effective:
    single = {obj["kind"]: obj for obj in scenario.objects}
    objects = Objects(
        scheduler=single.get("Scheduler", {}),
        kubescheduler=single.get("KubeScheduler", {}),
        profiles=scenario.of("SchedulerProfile"),
        extenders=scenario.of("SchedulerExtender"),
        secondaries=scenario.of("SecondaryScheduler"),
    )
    facts = Facts(platform, Version(1, 35, 4), IMAGE, planned=True, managed_scheduler="managed")
    return effective(objects, facts)


def forget() -> None:
    """Clear all caches of the package."""
    for name, module in list(sys.modules.items()):
        if name.startswith("kube_scheduler_operator."):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()


@pytest.mark.parametrize("platform", [KUBEADM, MANAGED, OPENSHIFT], ids=lambda p: p.name)
@pytest.mark.parametrize("scenario", [*ACCEPTED, *REJECTED, *from_files()], ids=str)
def test_both_merges_lead_to_the_same(
    scenario: Scenario, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for engine in (merge_with_jsonmerge.engine, merge_plain.engine):
        monkeypatch.setattr(merge, "engine", engine)
        forget()
        made.append(made_of(scenario, platform))
    assert made[0] == made[1]


@pytest.mark.parametrize("scenario", [*ACCEPTED, *REJECTED, *from_files()], ids=str)
def test_the_same_objects_lead_to_the_same(scenario: Scenario) -> None:
    first = made_of(scenario, KUBEADM)
    forget()
    assert made_of(scenario, KUBEADM) == first
