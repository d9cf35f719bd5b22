"""SchedulerExtenders in the observed configuration, and overrides of them."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.effective.control_plane.compose import (
    Composition,
    compose,
)
from kube_scheduler_operator.config.language.versions import Version

from ..... import builders
from .....control_plane_inputs import inputs_of, inputs_with
from .....expect import findings

ENTRY = {"urlPrefix": "http://mine", "filterVerb": "f", "ignorable": True, "httpTimeout": "1s"}
OVERRIDE = {**ENTRY, "nodeCacheCapable": True}


def extender(name: str, **fields: Any) -> dict[str, Any]:
    url = f"http://10.0.0.1/{name}"
    return builders.extender(name, **{"url": url, "verbs": {"filter": "filter"}, **fields})


def composed(*objects: Any, served: bool = True, profiles: Any = (), **spec: Any) -> Composition:
    return compose(
        inputs_of(
            platform=KUBEADM,
            default_version=Version(1, 35),
            scheduler={"spec": {}},
            kubescheduler={"spec": spec},
            profiles=tuple(profiles),
            extenders=objects if served else None,
        )
    )


def called(composition: Composition) -> list[str]:
    assert composition.config is not None
    return [one["urlPrefix"] for one in composition.config.get("extenders", ())]


def test_without_extenders_the_file_has_the_same_bytes() -> None:
    left_out = composed(extender("bad", verbs={}))
    texts = {canonical_json(c.config or {}) for c in (composed(), composed(served=False), left_out)}
    assert len(texts) == 1
    assert left_out.observed_config == {}
    assert findings(left_out, "condition", "path", "blocking") == [
        (names.SCHEDULER_EXTENDERS_DEGRADED, "SchedulerExtender/bad spec.verbs", False)
    ]


def test_they_precede_extenders_of_the_overrides() -> None:
    composition = composed(
        extender("b"), extender("a"), unsupportedConfigOverrides={"extenders": [OVERRIDE]}
    )
    assert called(composition) == ["http://10.0.0.1/a", "http://10.0.0.1/b", "http://mine"]
    assert [e["urlPrefix"] for e in composition.observed_config["extenders"]] == [
        "http://10.0.0.1/a", "http://10.0.0.1/b",
    ]  # fmt: skip
    assert not composition.blocking


def test_an_error_in_an_extender_of_the_overrides_has_its_path() -> None:
    wrong = {**OVERRIDE, "prioritizeVerb": "p"}
    composition = composed(
        extender("a"), unsupportedConfigOverrides={"extenders": [OVERRIDE, wrong]}
    )
    blocking = [f.path for f in composition.findings if f.blocking]
    assert blocking == ["spec.unsupportedConfigOverrides.extenders[1].weight"]


def test_a_warning_about_an_extender_is_reported_once_at_its_object() -> None:
    slow = {**OVERRIDE, "httpTimeout": "30s"}
    composition = composed(
        extender("a", timeout="30s"), unsupportedConfigOverrides={"extenders": [slow]}
    )
    warned = [f.path for f in composition.findings if f.condition == names.CONFIGURATION_WARNINGS]
    assert warned == ["spec.unsupportedConfigOverrides.extenders[0].httpTimeout"]
    (result,) = composition.extenders
    assert [w.path for w in result.warnings] == ["SchedulerExtender/a spec.timeout"]


def test_profiles_are_validated_with_the_accepted_extenders() -> None:
    """kube-scheduler replaces ignoredResources of profiles by those of extenders."""
    args = {"ignoredResources": ["not a name"]}
    profile = {
        "metadata": {"name": "p"},
        "spec": {"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]},
    }
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    alone = composed(profiles=[profile])
    together = composed(extender("a", managedResources=managed), profiles=[profile])
    assert [v.accepted for v in (*alone.results, *together.results)] == [False, True]
    assert not together.blocking


def test_observed_extenders_stay_while_the_kind_is_not_served() -> None:
    before = composed(extender("a"))
    after = composed(served=False, observedConfig=before.observed_config)
    assert after.config == before.config
    assert after.observed_config == before.observed_config
    assert findings(after, "condition", "path", "blocking") == [
        (names.SCHEDULER_EXTENDERS_DEGRADED, "SchedulerExtender", False)
    ]
    assert composed(served=False).findings == (), "nothing was observed before"


def test_edits_of_observed_extenders_are_ignored() -> None:
    values: tuple[Any, ...] = ({}, "x", [1], [None])
    for invalid in values:
        assert called(composed(served=False, observedConfig={"extenders": invalid})) == []
    assert called(composed(observedConfig={"extenders": [ENTRY]})) == []


def test_without_a_scheduler_observed_extenders_stay() -> None:
    observed = composed(extender("a")).observed_config
    composition = compose(
        inputs_of(
            platform=KUBEADM,
            default_version=Version(1, 35),
            scheduler=None,
            kubescheduler={"spec": {"observedConfig": observed}},
            extenders=(extender("a", verbs={}),),
        )
    )
    assert composition.observed_config == observed
    assert composition.extenders == ()


def test_planned_inputs_assume_that_agents_run() -> None:
    obj = {"metadata": {"name": "safe"}, "spec": {"agent": {"policies": [{"name": "foo"}]}}}
    inputs = inputs_of(
        platform=KUBEADM,
        default_version=Version(1, 35),
        scheduler={"spec": {}},
        kubescheduler={},
        extenders=(obj,),
    )
    assert called(compose(inputs)) == []
    planned = compose(inputs_with(inputs, planned=True))
    assert called(planned) == ["http://127.0.0.1:5401/safe"]
