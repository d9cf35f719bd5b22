"""Where users may write any JSON into the operator's kinds, for tests of containment."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Resource,
)

from .odd_json import odd_json, odd_object

HOLE: Final = "@"
"""The place of the odd value in a template."""

_NAMESPACE: Final = KUBEADM.target_namespace


@dataclass(frozen=True)
class FreeField:
    """A field that a schema leaves open."""

    resource: Resource  # the kind
    path: str  # the field, for messages
    spec: Any  # a valid spec with HOLE in its place
    # what a schema still requires of the value
    of_type: Callable[[random.Random], str] = odd_object

    def text(self, value: str) -> str:
        """The spec with that value, which is JSON."""
        return json.dumps(self.spec).replace(f'"{HOLE}"', value)


def _agent(**agent: Any) -> Any:
    return {"agent": {"policies": [{"name": "safe-overload"}], **agent}}


def _secondary(**spec: Any) -> Any:
    return {"namespace": _NAMESPACE, **spec}


def _item(rng: random.Random, **fields: str) -> str:
    """An object with some fixed fields."""
    fixed = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in fields.items())
    rest = odd_object(rng)[1:]
    return f"{{{fixed}{'}' if rest == '}' else ',' + rest}"


def _overrides(rng: random.Random) -> str:
    """Overrides with an odd value at a place that the operator reads."""
    places = ("profiles", "arguments", "extenders", "servingInfo", "leaderElection", "kind", "")
    return f"{{{json.dumps(rng.choice(places))}:{odd_json(rng)}}}"


FREE_FIELDS: Final = (
    FreeField(
        SCHEDULER_PROFILES,
        "spec.pluginConfig[].args",
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": HOLE}]},
    ),
    FreeField(
        SCHEDULER_EXTENDERS,
        "spec.agent.policies[].arguments",
        _agent(policies=[{"name": "safe-overload", "arguments": HOLE}]),
    ),
    FreeField(SCHEDULER_EXTENDERS, "spec.agent.resources", _agent(resources=HOLE)),
    FreeField(
        SECONDARY_SCHEDULERS, "spec.config.extenders[]", _secondary(config={"extenders": [HOLE]})
    ),
    FreeField(
        SECONDARY_SCHEDULERS, "spec.profiles[].plugins", _secondary(profiles=[{"plugins": HOLE}])
    ),
    FreeField(
        SECONDARY_SCHEDULERS,
        "spec.profiles[].pluginConfig[].args",
        _secondary(profiles=[{"pluginConfig": [{"name": "InterPodAffinity", "args": HOLE}]}]),
    ),
    FreeField(SECONDARY_SCHEDULERS, "spec.affinity", _secondary(affinity=HOLE)),
    FreeField(
        SECONDARY_SCHEDULERS,
        "spec.topologySpreadConstraints[]",
        _secondary(topologySpreadConstraints=[HOLE]),
    ),
    FreeField(
        SECONDARY_SCHEDULERS,
        "spec.sidecars[]",
        _secondary(sidecars=[HOLE]),
        lambda rng: _item(rng, name="side", image="registry.example/side:1"),
    ),
    FreeField(
        SECONDARY_SCHEDULERS,
        "spec.volumes[]",
        _secondary(volumes=[HOLE]),
        lambda rng: _item(rng, name="volume"),
    ),
    FreeField(KUBE_SCHEDULERS, "spec.unsupportedConfigOverrides", HOLE),
    FreeField(KUBE_SCHEDULERS, "spec.unsupportedConfigOverrides", HOLE, _overrides),
)
"""All fields with x-kubernetes-preserve-unknown-fields that users write."""

TYPED: Final = FreeField(LOAD_POLICIES, "spec", HOLE)


def odd_spec(rng: random.Random, field: FreeField) -> str:
    """A spec of the field's kind with an odd value in it, as JSON."""
    text = field.text(field.of_type(rng))
    return f'{{"unsupportedConfigOverrides":{text}}}' if field.spec == HOLE else text


def unlimited(text: str) -> Any:
    """The value with all its levels, which Python's own decoder does not read."""
    decoder = json.JSONDecoder()
    whole: list[Any] = []
    stack: list[tuple[Any, list[str]]] = [(whole, [])]  # a container, and the key that comes next
    at = 0
    while at < len(text):
        holder, key = stack[-1]
        char = text[at]
        if char in " ,:\n":
            at += 1
        elif char in "]}":
            stack.pop()
            at += 1
        elif char in "[{":
            value: Any = [] if char == "[" else {}
            _put(holder, key, value)
            stack.append((value, []))
            at += 1
        else:
            value, at = decoder.raw_decode(text, at)
            if isinstance(holder, dict) and not key:
                key.append(value)
            else:
                _put(holder, key, value)
    return whole[0]


def _put(holder: Any, key: list[str], value: Any) -> None:
    if isinstance(holder, list):
        holder.append(value)
    else:
        holder[key.pop()] = value
