"""The policies of the operator's agents.

An agent with a custom image may have other policies, even under the same names, so they are not
validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....base.findings import Path, Problem
from ....base.objects import mapping

UNKNOWN_POLICY: Final = "UnknownPolicy"
INVALID_ARGUMENTS: Final = "InvalidArguments"


@dataclass(frozen=True, slots=True)
class Ability:
    """The verbs that a policy implements."""

    filters: bool
    scores: bool


def policy_name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("policy") or entry.get("name") or "")


def ability(entry: Mapping[str, Any]) -> Ability:
    """Return the verbs of an entry of `agent.policies`; an unknown policy may have both."""
    from ....scheduling.policies.policy import UnknownPolicyError, policy_class

    has_weight = int(entry.get("weight", 1)) > 0
    try:
        policy = policy_class(policy_name(entry))
    except UnknownPolicyError:
        return Ability(filters=True, scores=has_weight)
    return Ability(policy.filters, policy.scores and has_weight)


def check_policies(agent: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the errors in an agent's policies; paths are in the spec."""
    # Imported here, because only this function needs the policies.
    from ....scheduling.policies.policy import ArgumentsError, UnknownPolicyError, read_arguments

    if agent.get("image"):
        return
    for index, entry in enumerate(map(mapping, agent.get("policies") or ())):
        path: Path = ("agent", "policies", index)
        try:
            read_arguments(policy_name(entry), mapping(entry.get("arguments")))
        except UnknownPolicyError as error:
            field = "policy" if entry.get("policy") else "name"
            yield Problem(UNKNOWN_POLICY, (*path, field), str(error))
        except ArgumentsError as error:
            for problem in error.problems:
                yield Problem(INVALID_ARGUMENTS, (*path, *problem.path), problem.message)
