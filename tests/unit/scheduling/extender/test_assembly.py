"""Agents are built from a configuration, and unchanged policies survive a reload."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.scheduling.extender.assembly import Assembly
from kube_scheduler_operator.scheduling.extender.config import (
    AgentSpec,
    Config,
    MemberSpec,
    from_document,
)
from kube_scheduler_operator.scheduling.extender.verbs import VerbContext
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.policy import ArgumentsError

STRICT = {"name": "strict", "policy": "safe-overload", "arguments": {"utilization": 50}}


async def _bind(*_: Any) -> None:
    raise AssertionError("this must not be called")


@pytest.fixture
def assembly(cluster: Cluster, context: VerbContext) -> Assembly:
    return Assembly(cluster, context, _bind, {})


def _config(*policies: dict[str, Any], agents: tuple[Any, ...] = ()) -> Config:
    return from_document({"policies": list(policies), "agents": list(agents)})


def test_an_agent_shares_the_policy_that_is_served_alone(assembly: Assembly) -> None:
    agents = ({"name": "a", "policies": [{"name": "strict", "weight": 3}]},)
    assembly.use(_config(STRICT, agents=agents))
    alone, agent = assembly.agents
    assert agent.members[0].policy is alone.members[0].policy, "the work is done once"
    assert agent.members[0].policy.arguments.utilization == 50
    assert (agent.members[0].name, agent.members[0].weight) == ("strict", 3)
    assert len(list(assembly.policies())) == 1


def test_unchanged_policies_and_counters_survive_a_reload(
    assembly: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    foo = {"policy": "foo"}
    assembly.use(_config(STRICT, foo))
    strict, other = (agent.members[0] for agent in assembly.agents)
    strict.rejected = 7
    closed = []
    monkeypatch.setattr(type(strict.policy), "close", lambda policy: closed.append(policy))
    monkeypatch.setattr(type(other.policy), "close", lambda policy: closed.append(policy))
    assembly.use(_config(foo, STRICT))
    assert assembly.agents[1].members[0].policy is strict.policy
    assert assembly.agents[1].members[0].rejected == 7
    assert closed == []
    assembly.use(_config(foo))
    assert closed == [strict.policy]


def test_a_policy_that_cannot_be_created_keeps_the_current_configuration(
    assembly: Assembly,
) -> None:
    assembly.use(_config(STRICT))
    before = assembly.agents
    wrong = MemberSpec("safe-overload", {"utilization": 120})
    with pytest.raises(ArgumentsError):
        assembly.use(Config((AgentSpec("foo", (MemberSpec("foo"),)), AgentSpec("b", (wrong,)))))
    assert assembly.agents is before
    assert len(list(assembly.policies())) == 1
