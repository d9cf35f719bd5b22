"""What the operator needs to know about the policies of its agents.

An agent with a custom image may have other policies, also under the same names, so they are not
validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Path, Problem
from ..base.objects import mapping

UNKNOWN_POLICY: Final = "UnknownPolicy"
INVALID_ARGUMENTS: Final = "InvalidArguments"


@dataclass(frozen=True, slots=True)
class Ability:
    """The verbs that a policy implements."""

    filters: bool  # it rejects nodes
    scores: bool  # it prefers nodes


def policy_name(entry: Mapping[str, Any]) -> str:
    """The name of the policy in an entry of `agent.policies`."""
    return str(entry.get("policy") or entry.get("name") or "")


def ability(entry: Mapping[str, Any]) -> Ability:
    """The verbs of an entry of `agent.policies`; an unknown policy may have both."""
    from ..policies.policy import UnknownPolicyError, policy_class

    weighs = int(entry.get("weight", 1)) > 0
    try:
        known = policy_class(policy_name(entry))
    except UnknownPolicyError:
        return Ability(filters=True, scores=weighs)
    return Ability(known.filters, known.scores and weighs)


def check_policies(agent: Mapping[str, Any]) -> Iterator[Problem]:
    """The errors in an agent's policies; paths are in the spec."""
    # Imported here, because only this function needs the policies.
    from ..policies.policy import ArgumentsError, UnknownPolicyError, read_arguments

    if agent.get("image"):
        return
    for index, each in enumerate(agent.get("policies") or ()):
        entry: Mapping[str, Any] = mapping(each)
        path: Path = ("agent", "policies", index)
        try:
            read_arguments(policy_name(entry), mapping(entry.get("arguments")))
        except UnknownPolicyError as error:
            field = "policy" if entry.get("policy") else "name"
            yield Problem(UNKNOWN_POLICY, (*path, field), str(error))
        except ArgumentsError as error:
            for problem in error.problems:
                yield Problem(INVALID_ARGUMENTS, (*path, *problem.path), problem.message)
