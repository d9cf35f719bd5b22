"""SchedulerExtenders of a SecondaryScheduler: configuration, sidecars, and rollback."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.extenders.agent import ManagedAgent, agent_file
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS
from kube_scheduler_operator.scheduling.extender.config import from_document

from ....imitation.clock import BEGIN
from .world import NAME, World, crashing, refusing

SAFE = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 90}}]}
URL: dict[str, Any] = {"url": "http://10.0.0.1/x", "verbs": {"filter": "filter"}}


def config(world: World) -> Any:
    name = f"{NAME}-config-{world.running()}"
    return json.loads(world.get(CONFIG_MAPS, name)["data"][names.CONFIG_KEY])


def pod(world: World) -> Any:
    return world.get(DEPLOYMENTS)["spec"]["template"]["spec"]


def called(world: World) -> list[str]:
    return [one["urlPrefix"] for one in config(world).get("extenders", ())]


def test_extenders_of_the_spec_come_last(world: World) -> None:
    own = {"urlPrefix": "http://own", "filterVerb": "f"}
    world.extender("b", **URL)
    world.extender("a", url="http://10.0.0.1/a", verbs={"filter": "filter"})
    world.installed(config={"extenders": [own]})
    assert called(world) == ["http://10.0.0.1/a", "http://10.0.0.1/x", "http://own"]
    assert world.status()["extenders"] == ["http://10.0.0.1/a", "http://10.0.0.1/x"]
    _, _, warnings = world.condition(names.WARNINGS)
    assert "spec.config.extenders[0].ignorable" in warnings, "the index is that in the spec"
    assert "spec.config.extenders[1]" not in warnings


def test_an_agent_is_a_sidecar_and_part_of_the_content(world: World) -> None:
    before = world.installed()
    world.extender("safe", agent=SAFE, port=5401)
    world.run()
    assert world.running() != before
    assert called(world) == ["http://127.0.0.1:5401/safe"]
    operand, agent = pod(world)["containers"]
    assert operand["name"] == names.OPERAND
    assert agent["name"] == "extender-safe"
    assert agent["command"] == ["kube-scheduler-operator", "extender"]
    volume = next(v for v in pod(world)["volumes"] if v["name"] == "config-safe")
    source = volume["configMap"]
    data = world.get(CONFIG_MAPS, source["name"])["data"]
    assert json.loads(data[source["items"][0]["key"]]) == {
        "listen": {
            "address": "127.0.0.1", "port": 5401, "health": {"address": "", "port": 15401}
        },
        "agents": [
            {
                "name": "safe",
                "policies": [
                    {
                        "name": "safe-overload",
                        "policy": "safe-overload",
                        "weight": 1,
                        "arguments": {"utilization": 90},
                    }
                ],
            }
        ],
        "logLevel": "INFO",
    }  # fmt: skip


def test_an_agent_binds_pods_of_the_schedulers_own_profiles(world: World) -> None:
    world.extender("safe", agent={**SAFE, "verbs": {"bind": True}}, port=5401)
    world.profile("batch")
    world.installed()
    (data,) = (
        obj["data"]
        for (kind, _, name), obj in world.objects.items()
        if kind == CONFIG_MAPS and name == f"{NAME}-config-{world.running()}"
    )
    assert json.loads(data["extender-safe.json"])["bind"] == {"schedulerNames": ["batch", NAME]}


def test_an_agent_may_have_the_name_of_its_policy() -> None:
    agent = ManagedAgent("congestion", {"policies": [{"name": "congestion"}]}, 5402)
    config = from_document(json.loads(agent_file(agent)))
    assert [each.name for each in config.agents] == ["congestion"]


def test_two_agents_are_two_sidecars_with_different_ports(world: World) -> None:
    world.extender("safe", agent=SAFE, port=5401)
    world.extender("congestion", agent={"policies": [{"name": "congestion"}]}, port=5402)
    world.installed()
    ports = {c["name"]: c["ports"][0]["containerPort"] for c in pod(world)["containers"]}
    assert ports == {
        names.OPERAND: 10259, "extender-congestion": 15402, "extender-safe": 15401
    }  # fmt: skip
    assert called(world) == ["http://127.0.0.1:5402/congestion", "http://127.0.0.1:5401/safe"]


def test_an_agent_without_a_recorded_port_is_not_called_yet(world: World) -> None:
    world.extender("safe", agent=SAFE)
    world.installed()
    assert called(world) == []
    assert len(pod(world)["containers"]) == 1
    (result,) = world.secondary().extenders
    assert (result.accepted, result.port) == (True, 5401)


def test_a_crashing_agent_is_rolled_back_with_its_configuration(world: World) -> None:
    good = world.installed()
    world.extender("safe", agent=SAFE, port=5401)
    world.run()
    bad = world.running()
    assert bad != good
    ended = BEGIN + timedelta(seconds=30)
    world.cluster.now = BEGIN + timedelta(seconds=60)
    world.pod(bad, 7, **crashing("no such policy", 3, ended, "extender-safe"))
    world.run()
    assert world.running() == good
    assert world.outcomes()[bad] == names.OUTCOME_FAILED
    assert "no such policy" in world.condition(names.DEGRADED)[2]


def test_ports_of_other_containers_are_not_allocated(world: World) -> None:
    sidecar = {"name": "x", "image": "y", "ports": [{"containerPort": 5401}]}
    world.put(sidecars=[sidecar])
    world.extender("safe", agent=SAFE)
    (result,) = world.secondary().extenders
    assert result.port == 5402


def test_an_invalid_extender_is_omitted_and_blocks_nothing(world: World) -> None:
    world.extender("bad", url="http://10.0.0.1/x", verbs={})
    world.extender("good", **URL)
    world.installed()
    assert called(world) == ["http://10.0.0.1/x"]
    assert world.condition(names.DEGRADED)[0] == "False"
    bad, good = world.secondary().extenders
    assert (bad.accepted, good.accepted) == (False, True)


def test_a_conflict_with_an_extender_of_the_spec_is_reported_at_the_object(world: World) -> None:
    own = {"urlPrefix": "http://own", "bindVerb": "b", "httpTimeout": "1s"}
    world.put(config={"extenders": [own]})
    world.extender("binds", url="http://10.0.0.1/x", verbs={"bind": "b"})
    (result,) = world.secondary().extenders
    assert f'SecondaryScheduler "{NAME}" itself already binds' in result.findings[0].message


def test_extenders_stay_if_the_api_no_longer_serves_the_kind(world: World) -> None:
    world.extender("good", **URL)
    before = world.installed()
    world.extenders = None
    world.run()
    assert world.running() == before
    status, reason, message = world.condition(names.DEGRADED)
    assert (status, reason) == ("True", "KindNotServed")
    assert "http://10.0.0.1/x" in message


@pytest.mark.parametrize("rubbish", [{}, "x", [None]])
def test_invalid_extenders_of_the_spec_are_reported_as_without_objects(
    world: World, rubbish: Any
) -> None:
    world.extender("good", **URL)
    world.put(config={"extenders": rubbish})
    assert len(world.secondary().extenders) == 1


def test_a_refusal_by_kube_scheduler_is_reported_at_its_extender(world: World) -> None:
    world.installed()
    tls = {"caFile": "/no/such/ca.crt"}
    world.extender("a", url="https://10.0.0.1/x", verbs={"filter": "f"}, tls=tls)
    world.run()
    bad = world.running()
    words = 'E1 1:1:1.0 1 x] "x" err="open /no/such/ca.crt: no such file or directory"'
    world.pod(bad, 7, **refusing(words))
    world.run()
    (result,) = world.secondary().extenders
    assert result.accepted, "validation finds no error"
    (finding,) = result.findings
    assert finding.path == "SchedulerExtender/a spec.tls.caFile"
    assert f'configuration {bad} of SecondaryScheduler "{NAME}"' in finding.message
