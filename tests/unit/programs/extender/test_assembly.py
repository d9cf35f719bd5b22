"""What is made of a configuration, and what goes on when it is another one."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.policies.cluster import Cluster
from kube_scheduler_operator.policies.policy import ArgumentsError
from kube_scheduler_operator.programs.extender.assembly import Assembly
from kube_scheduler_operator.programs.extender.config import (
    AgentSpec,
    Config,
    Member,
    from_document,
)
from kube_scheduler_operator.programs.extender.verbs import Context

STRICT = {"name": "strict", "policy": "safe-overload", "arguments": {"utilization": 50}}


async def _bind(*_: Any) -> None:
    raise AssertionError("nobody asked for this")


@pytest.fixture
def assembly(cluster: Cluster, context: Context) -> Assembly:
    return Assembly(cluster, context, _bind, {})


def _config(*policies: dict[str, Any], agents: tuple[Any, ...] = ()) -> Config:
    return from_document({"policies": list(policies), "agents": list(agents)})


def test_an_agents_policy_is_the_one_that_is_served(assembly: Assembly) -> None:
    agents = ({"name": "a", "policies": [{"name": "strict", "weight": 3}]},)
    assembly.use(_config(STRICT, agents=agents))
    alone, agent = assembly.agents
    assert agent.members[0].policy is alone.members[0].policy, "the work is done once"
    assert agent.members[0].policy.arguments.utilization == 50
    assert (agent.members[0].name, agent.members[0].weight) == ("strict", 3)
    assert len(list(assembly.policies())) == 1


def test_what_stays_goes_on(assembly: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_policy_that_cannot_be_made_changes_nothing(assembly: Assembly) -> None:
    assembly.use(_config(STRICT))
    before = assembly.agents
    wrong = Member("safe-overload", {"utilization": 120})
    with pytest.raises(ArgumentsError):
        assembly.use(Config((AgentSpec("foo", (Member("foo"),)), AgentSpec("b", (wrong,)))))
    assert assembly.agents is before
    assert len(list(assembly.policies())) == 1
