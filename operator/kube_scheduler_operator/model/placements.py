"""A simulation that a reconcile requests, and its answer: both are data; the engine runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.objects import Object


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """What decides where a kube-scheduler places Pods.

    Attributes:
        config: fields of KubeSchedulerConfiguration.
        flags: its `--feature-gates` flags.
    """

    config: Mapping[str, Any]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckIdentity:
    """Which simulation it is.

    Attributes:
        configuration: hash of the rules after the edit.
        running: hash of the rules that are in use.
        started: when it was requested, RFC 3339; another attempt has another time.
    """

    configuration: str
    running: str
    started: str


@dataclass(frozen=True, slots=True)
class PlacementQuestion:
    """What the placements of an edit are simulated with.

    Attributes:
        identity: which simulation it is.
        before: the rules in use.
        after: the rules after the edit.
        image: the image of kube-scheduler.
        command: the command that runs it there.
        seconds: limit from the request to the answer.
        extenders: SchedulerExtenders, whose agents take part.
        load_policies: LoadPolicies, which those may use.
        situation: that of the last result; if it is still the same, nothing is simulated.
    """

    identity: CheckIdentity
    before: PlacementRules
    after: PlacementRules
    image: str
    command: tuple[str, ...]
    seconds: int
    extenders: tuple[Object, ...] = field(default=(), repr=False)
    load_policies: tuple[Object, ...] = field(default=(), repr=False)
    situation: str = ""


@dataclass(frozen=True, slots=True)
class PlacementAnswer:
    """The result of a simulation.

    Attributes:
        identity: which simulation it was.
        worse: whether a running Pod would have no place, or a waiting one loses the places it has.
        effect: the effect in sentences, joined by "; "; empty with an error.
        error: why there is no result; empty if there is one.
        situation: hash of the Pods, Nodes and other objects that the result is about.
        unchanged: whether these are as in the question, so that the last result still holds.
    """

    identity: CheckIdentity
    worse: bool = False
    effect: str = ""
    error: str = ""
    situation: str = ""
    unchanged: bool = False
