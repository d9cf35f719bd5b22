"""SchedulerExtenders on the way into the file: what is observed, and what lies over it."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.controlplane.compose import Composition, Inputs, compose
from kube_scheduler_operator.schedulerconfig.canonical import config_text
from kube_scheduler_operator.schedulerconfig.versions import Version

ENTRY = {"urlPrefix": "http://mine", "filterVerb": "f", "ignorable": True, "httpTimeout": "1s"}
OVERRIDE = {**ENTRY, "nodeCacheCapable": True}


def extender(name: str, accepted: Any = None, /, **spec: Any) -> dict[str, Any]:
    spec = {"url": f"http://10.0.0.1/{name}", "verbs": {"filter": "filter"}, **spec}
    obj = {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}
    return obj if accepted is None else {**obj, "status": {"accepted": accepted}}


def made(*objects: Any, served: bool = True, profiles: Any = (), **spec: Any) -> Composition:
    return compose(
        Inputs(
            platform=KUBEADM,
            operand_version=Version(1, 35),
            scheduler={"spec": {}},
            kubescheduler={"spec": spec},
            scheduler_profiles=tuple(profiles),
            scheduler_extenders=objects if served else None,
        )
    )


def called(composition: Composition) -> list[str]:
    assert composition.config is not None
    return [one["urlPrefix"] for one in composition.config.get("extenders", ())]


def said(composition: Composition) -> list[tuple[str, str, bool]]:
    return [(f.condition, f.path, f.blocking) for f in composition.findings]


def test_without_any_the_file_is_what_it_was_to_the_byte() -> None:
    left_out = made(extender("bad", verbs={}))
    texts = {config_text(c.config or {}) for c in (made(), made(served=False), left_out)}
    assert len(texts) == 1
    assert left_out.observed_config == {}
    assert said(left_out) == [
        (names.SCHEDULER_EXTENDERS_DEGRADED, "SchedulerExtender/bad spec.verbs", False)
    ]


def test_they_come_before_those_of_the_overrides_which_go_on() -> None:
    composition = made(
        extender("b"), extender("a"), unsupportedConfigOverrides={"extenders": [OVERRIDE]}
    )
    assert called(composition) == ["http://10.0.0.1/a", "http://10.0.0.1/b", "http://mine"]
    assert [e["urlPrefix"] for e in composition.observed_config["extenders"]] == [
        "http://10.0.0.1/a", "http://10.0.0.1/b",
    ]  # fmt: skip
    assert not composition.blocking


def test_a_mistake_in_the_overrides_is_still_found_where_it_is() -> None:
    wrong = {**OVERRIDE, "prioritizeVerb": "p"}
    composition = made(extender("a"), unsupportedConfigOverrides={"extenders": [OVERRIDE, wrong]})
    blocking = [f.path for f in composition.findings if f.blocking]
    assert blocking == ["spec.unsupportedConfigOverrides.extenders[1].weight"]


def test_what_may_surprise_is_told_at_the_object_and_not_twice() -> None:
    slow = {**OVERRIDE, "httpTimeout": "30s"}
    composition = made(
        extender("a", timeout="30s"), unsupportedConfigOverrides={"extenders": [slow]}
    )
    warned = [f.path for f in composition.findings if f.condition == names.CONFIGURATION_WARNINGS]
    assert warned == ["spec.unsupportedConfigOverrides.extenders[0].httpTimeout"]
    (verdict,) = composition.extenders
    assert [w.path for w in verdict.warnings] == ["SchedulerExtender/a spec.timeout"]


def test_profiles_are_judged_with_the_extenders_that_will_be_there() -> None:
    """kube-scheduler replaces what a profile ignores by what extenders say it should."""
    args = {"ignoredResources": ["not a name"]}
    profile = {
        "metadata": {"name": "p"},
        "spec": {"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]},
    }
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    alone = made(profiles=[profile])
    beside = made(extender("a", managedResources=managed), profiles=[profile])
    assert [v.accepted for v in (*alone.verdicts, *beside.verdicts)] == [False, True]
    assert not beside.blocking


def test_a_kind_that_is_served_no_more_takes_no_extender_away() -> None:
    before = made(extender("a"))
    after = made(served=False, observedConfig=before.observed_config)
    assert after.config == before.config
    assert after.observed_config == before.observed_config
    assert said(after) == [(names.SCHEDULER_EXTENDERS_DEGRADED, "SchedulerExtender", False)]
    assert said(made(served=False)) == [], "who never had any misses nothing"


def test_what_somebody_else_put_into_observed_config() -> None:
    for rubbish in ({}, "x", [1], [None]):
        assert called(made(served=False, observedConfig={"extenders": rubbish})) == []
    assert called(made(observedConfig={"extenders": [ENTRY]})) == []


def test_without_a_scheduler_what_was_observed_stays() -> None:
    observed = made(extender("a")).observed_config
    composition = compose(
        Inputs(
            platform=KUBEADM,
            operand_version=Version(1, 35),
            scheduler=None,
            kubescheduler={"spec": {"observedConfig": observed}},
            scheduler_extenders=(extender("a", verbs={}),),
        )
    )
    assert composition.observed_config == observed
    assert composition.extenders == ()


def test_agents_count_as_running_where_that_is_asked() -> None:
    obj = {"metadata": {"name": "safe"}, "spec": {"agent": {"policies": [{"name": "foo"}]}}}
    inputs = Inputs(
        platform=KUBEADM,
        operand_version=Version(1, 35),
        scheduler={"spec": {}},
        kubescheduler={},
        scheduler_extenders=(obj,),
    )
    assert called(compose(inputs)) == []
    planned = compose(
        Inputs(**{**{f: getattr(inputs, f) for f in inputs.__slots__}, "planned": True})
    )
    assert called(planned) == ["http://127.0.0.1:5401/safe"]
