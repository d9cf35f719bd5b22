"""Which extenders take part in a simulation."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.extenders import LeftOutExtender, seeing
from kube_scheduler_operator.simulate.simulated_extenders import simulated_extenders

from ... import builders

VERSION = Version(1, 35)


def extender(name: str, policy: str = "safe-overload", **agent: Any) -> dict[str, Any]:
    return builders.extender(name, agent={"policies": [{"name": policy}], **agent})


def entry(name: str, port: int = 5402, **fields: Any) -> dict[str, Any]:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 3}
    return {"urlPrefix": f"http://127.0.0.1:{port}/{name}", **verbs, **fields}


def test_an_agent_takes_part_by_its_entry() -> None:
    (found,), notes, left_out = simulated_extenders(
        [entry("safe", ignorable=True, bindVerb="bind")], [extender("safe")], [], VERSION
    )
    assert (notes, left_out) == ((), ())
    assert found.entry_at("http://x") == {
        "urlPrefix": "http://x",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 3,
        "ignorable": True,
        "nodeCacheCapable": True,
        "httpTimeout": "60s",
    }
    assert found.weight == 30


def test_an_extender_without_an_object_is_foreign_and_named() -> None:
    managed = [{"name": "example.com/gpu"}]
    foreign = [
        entry("safe"),
        {"urlPrefix": "http://a:b@10.0.0.1/safe", "filterVerb": "f", "managedResources": managed},
    ]
    found, notes, left_out = simulated_extenders(foreign, [extender("other")], [], VERSION)
    assert found == ()
    assert left_out == (
        LeftOutExtender("the extender http://127.0.0.1:5402/safe"),
        LeftOutExtender("the extender http://10.0.0.1/safe", ("example.com/gpu",)),
    )
    assert [note.split(" is left out")[0] for note in notes] == [one.title for one in left_out]
    same_name = simulated_extenders(foreign[1:], [extender("safe")], [], VERSION)
    assert same_name.simulated == ()


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (extender("safe", image="registry.example.com/mine"), "has an image of its own"),
        (extender("safe", policy="load-aware", loadPolicy="x"), "LoadPolicy x is not known"),
        (extender("safe", policy="rl-priority"), "reads ConfigMaps"),
        (extender("safe", policy="mine"), 'unknown policy "mine"'),
    ],
)
def test_an_agent_that_cannot_be_simulated_is_left_out_with_the_reason(
    obj: dict[str, Any], reason: str
) -> None:
    found, notes, left_out = simulated_extenders([entry("safe")], [obj], [], VERSION)
    assert found == ()
    assert left_out == (LeftOutExtender("SchedulerExtender safe"),)
    assert len(notes) == 1
    assert notes[0].startswith("SchedulerExtender safe is left out: ")
    assert reason in notes[0]


def test_objects_in_files_are_attached_unless_they_belong_to_a_secondary_scheduler() -> None:
    secondary = extender("other")
    secondary["spec"]["scheduler"] = "mine"
    objects = [extender("safe", verbs={"bind": True, "preempt": True}), secondary]
    found, notes, left_out = simulated_extenders([], objects, [], VERSION, attach=True)
    assert [each.name for each in found] == ["safe"]
    assert notes == (
        "SchedulerExtender safe is not called for bind and preempt, which would be real",
    )
    assert left_out == (), "neither verb decides where a pod fits"
    assert simulated_extenders([], objects, [], VERSION) == ((), (), ())


def test_an_extender_sees_pods_that_request_what_it_manages() -> None:
    limited = LeftOutExtender("limited", ("example.com/gpu",))
    of_all = LeftOutExtender("of all")
    plain = {"spec": {"containers": [builders.container({"cpu": "1"})]}}
    asking = {"spec": {"initContainers": [builders.container({"example.com/gpu": "1"})]}}
    assert seeing([limited, of_all], plain) == ["of all"]
    assert seeing([limited, of_all], asking) == ["limited", "of all"]
