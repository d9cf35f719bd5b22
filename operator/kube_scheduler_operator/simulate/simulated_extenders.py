"""The extenders of a simulation: agents of SchedulerExtenders, with their LoadPolicies.

Other extenders would be called for real, so they are left out and named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..base.hosts import shown_url
from ..base.objects import entries, mapping
from ..config.effective.attachment import name_of
from ..config.effective.extenders.agent import LOAD_DIRECTORY, LOAD_KEY, ManagedAgent, agent_file
from ..config.effective.extenders.entry import agent_name, agent_of, agent_verbs, check_entry
from ..config.language.feature_gates import Gates
from ..config.language.plugins.in_tree_plugins import NEWEST_RELEASE
from ..config.language.plugins.target_scheduler import Target
from ..config.language.versions import Version
from ..scheduling.load.policy import LoadPolicyError
from ..scheduling.load.policy_files import read_spec
from ..scheduling.policies.policy import (
    ArgumentsError,
    Policy,
    UnknownPolicyError,
    policy_class,
    read_arguments,
)
from .extenders import LeftOutExtender, SimulatedExtender

_PORT = 5401


def version_of(text: str) -> Version:
    """Parse the version of a cluster; the newest release if it is unknown."""
    try:
        return Version.parse(text)
    except ValueError:
        return NEWEST_RELEASE


class Extenders(NamedTuple):
    simulated: tuple[SimulatedExtender, ...]  # those that take part
    notes: tuple[str, ...]  # what is not considered, a sentence each
    left_out: tuple[LeftOutExtender, ...]  # those that could decide where a pod fits


def simulated_extenders(
    configured: Sequence[Mapping[str, Any]],
    objects: Iterable[Mapping[str, Any]],
    load_policies: Iterable[Mapping[str, Any]],
    version: Version,
    *,
    attach: bool = False,
) -> Extenders:
    """Return the extenders of a simulation.

    `configured` are the `extenders` of the configuration. With `attach`, SchedulerExtenders of the
    control plane's scheduler take part even without an entry, because the operator has not made it.
    """
    extenders = {name_of(obj): mapping(obj.get("spec")) for obj in objects}
    policies = {name_of(obj): obj for obj in load_policies}
    simulated: list[SimulatedExtender] = []
    notes: list[str] = []
    missing: list[LeftOutExtender] = []

    def leave_out(label: str, reason: str, entry: Mapping[str, Any]) -> None:
        if entry.get("filterVerb") or entry.get("prioritizeVerb"):
            managed = entries(entry.get("managedResources"))
            resources = tuple(str(resource.get("name")) for resource in managed)
            missing.append(LeftOutExtender(label, resources))
        notes.append(f"{label} is left out: {reason}")

    def take(name: str, entry: Mapping[str, Any]) -> None:
        try:
            simulated.append(_simulated(name, entry, extenders[name], policies))
        except (ArgumentsError, LoadPolicyError, UnknownPolicyError, ValueError) as error:
            leave_out(f"SchedulerExtender {name}", str(error), entry)

    for entry in configured:
        url = str(entry.get("urlPrefix") or "").rstrip("/")
        name = agent_name(url)
        spec = extenders.get(name)
        if spec is None or agent_of(spec) is None:
            leave_out(
                f"the extender {shown_url(url)}",
                "only agents of SchedulerExtenders can be simulated, and calling another one would "
                "be real",
                entry,
            )
        else:
            take(name, entry)
    taken = {extender.name for extender in simulated}
    for name, spec in extenders.items() if attach else ():
        if name in taken or agent_of(spec) is None or spec.get("scheduler"):
            continue
        check = check_entry(name, spec, Target(Gates(version)))
        if check.problems:
            leave_out(f"SchedulerExtender {name}", check.problems[0].sentence, check.entry)
        else:
            take(name, check.entry)
    notes += filter(None, (_not_called(one, extenders[one.name]) for one in simulated))
    return Extenders(tuple(simulated), tuple(notes), tuple(missing))


_OF_SCORES: Final = ("priority", "hotValue")
"""The fields of a LoadPolicy's file that only scores depend on."""


def filter_of(extender: SimulatedExtender) -> Mapping[str, Any] | None:
    """Return all that the filter of an agent depends on besides the cluster; None: it has none."""
    if "filter" not in extender.verbs:
        return None
    policies = [
        (policy["policy"], policy.get("arguments"))
        for policy in extender.document["agents"][0]["policies"]
        if policy_class(policy["policy"]).filters
    ]
    rules = {
        path: {k: v for k, v in json.loads(text).items() if k not in _OF_SCORES}
        for path, text in extender.files.items()
    }
    return {
        "policies": policies,
        "podSelector": extender.document.get("podSelector"),
        "environ": extender.environ,
        "files": rules,
    }


def _not_called(extender: SimulatedExtender, spec: Mapping[str, Any]) -> str:
    """Return a note about the verbs of an agent that are not called; empty: all are."""
    verbs = agent_verbs(mapping(agent_of(spec)))
    left_out = " and ".join(verb for verb in verbs if verb not in extender.verbs)
    if not left_out:
        return ""
    return f"SchedulerExtender {extender.name} is not called for {left_out}, which would be real"


def _simulated(
    name: str,
    entry: Mapping[str, Any],
    spec: Mapping[str, Any],
    load_policies: Mapping[str, Mapping[str, Any]],
) -> SimulatedExtender:
    """Make the extender, with the file of its agent.

    Raises:
        ArgumentsError, LoadPolicyError, UnknownPolicyError, ValueError: it cannot be simulated.
    """
    agent = ManagedAgent(name, mapping(agent_of(spec)), _PORT)
    if agent.spec.get("image"):
        raise ValueError("its agent has an image of its own, whose policies are not known here")
    environ = {str(key): str(value) for key, value in mapping(agent.spec.get("env")).items()}
    document = json.loads(agent_file(agent))
    for policy in document["agents"][0]["policies"]:
        read_arguments(policy["policy"], policy.get("arguments") or {}, environ)
        if policy_class(policy["policy"]).config_maps is not Policy.config_maps:
            raise ValueError(f"policy {policy['policy']} reads ConfigMaps, which are not copied")
    files = {}
    if agent.load_policy:
        policy_object = load_policies.get(agent.load_policy)
        if policy_object is None:
            raise ValueError(f"LoadPolicy {agent.load_policy} is not known")
        path = f"{LOAD_DIRECTORY}/{LOAD_KEY}"
        files[path] = read_spec(policy_object.get("spec")).policy.text()
    return SimulatedExtender(name, entry, document, environ, files)
