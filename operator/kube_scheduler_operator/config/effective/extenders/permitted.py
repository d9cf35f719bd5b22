"""What users may set for an agent beyond its policies: its image and its environment.

An agent runs under an account of the operator, on the network of control-plane nodes, so the
operator's settings restrict its image. Only the current spec is checked: a version that was
accepted before a setting changed stays in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import NOT_ALLOWED, Path, Problem, listing
from ....base.images import AllowedImages
from ....base.objects import mapping
from .agent import LOAD_DIRECTORY, LOAD_KEY
from .agent_policies import policy_name
from .entry import agent_of

POLICY_FILE: Final = "policyFile"
"""The only argument of a policy that names a file."""

_COMMON: Final = ("HTTP_PORT", "LOG_LEVEL", "TZ")
_RUNTIME: Final = ("PYTHON", "LD_", "KUBERNETES_", "KUBE", "SSL", "GLIBC_", "MALLOC_", "OPENSSL")
"""Prefixes of variables that choose the code of a process, its API server or whom it trusts."""
_PLACES: Final = frozenset({"PATH", "HOME", "TMPDIR", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN"})


def refused_settings(spec: Mapping[str, Any], images: AllowedImages) -> Iterator[Problem]:
    """Find the settings of an agent that are not permitted; paths are in the spec."""
    agent = agent_of(spec)
    if agent is None:
        return
    image = str(agent.get("image") or "")
    if image:
        yield from images.problems(("agent", "image"), image)
    for index, entry in enumerate(agent.get("policies") or ()):
        file = mapping(mapping(entry).get("arguments")).get(POLICY_FILE)
        if file is not None and not image and not _is_mounted(str(file), agent):
            path: Path = ("agent", "policies", index, "arguments", POLICY_FILE)
            message = f'an agent does not have file "{file}"; remove this and set agent.loadPolicy'
            yield Problem(NOT_ALLOWED, path, message)
    known = _known_variables(agent)
    for name in mapping(agent.get("env")):
        path = ("agent", "env", str(name))
        if image and not _is_of_the_runtime(str(name)):
            continue  # only the image itself knows its variables
        if image:
            message = f'variable "{name}" is not a setting of a policy; remove it'
            yield Problem(NOT_ALLOWED, path, message)
        elif name not in known:
            message = f'no policy of the agent reads variable "{name}"; use {listing(known)}'
            yield Problem(NOT_ALLOWED, path, message)


def _is_mounted(file: str, agent: Mapping[str, Any]) -> bool:
    return bool(agent.get("loadPolicy")) and file == f"{LOAD_DIRECTORY}/{LOAD_KEY}"


def _known_variables(agent: Mapping[str, Any]) -> tuple[str, ...]:
    # Imported here, because only agents with variables need the policies.
    from ....scheduling.policies.policy import UnknownPolicyError, policy_class

    known = set(_COMMON)
    for entry in agent.get("policies") or ():
        try:
            known.update(policy_class(policy_name(mapping(entry))).env)
        except UnknownPolicyError:
            continue  # reported elsewhere
    return tuple(sorted(known))


def _is_of_the_runtime(name: str) -> bool:
    upper = name.upper()
    return upper.startswith(_RUNTIME) or upper.endswith("_PROXY") or upper in _PLACES
