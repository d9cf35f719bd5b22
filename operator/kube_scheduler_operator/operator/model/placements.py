"""A simulation that a reconcile requests, and its answer: both are data; the engine runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base.objects import Object


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """What decides where a kube-scheduler places Pods."""

    config: Mapping[str, Any]  # fields of KubeSchedulerConfiguration
    flags: tuple[str, ...] = ()  # its `--feature-gates` flags


@dataclass(frozen=True, slots=True)
class CheckIdentity:
    """Distinguishes one simulation from all others."""

    configuration: str  # hash of the rules after the edit
    running: str  # hash of the rules that are in use
    started: str  # when it was requested, RFC 3339; another attempt has another time


@dataclass(frozen=True, slots=True)
class PlacementQuestion:
    identity: CheckIdentity
    before: PlacementRules  # the rules in use
    after: PlacementRules  # the rules after the edit
    image: str  # the image of kube-scheduler
    command: tuple[str, ...]  # the command that runs it there
    seconds: int  # limit from the request to the answer
    extenders: tuple[Object, ...] = field(default=(), repr=False)  # their agents take part
    load_policies: tuple[Object, ...] = field(default=(), repr=False)  # which agents may use
    situation: str = ""  # that of the last result; if it has not changed, nothing is simulated


@dataclass(frozen=True, slots=True)
class PlacementAnswer:
    identity: CheckIdentity
    # whether a running Pod would have no place, or a waiting one loses the places it has
    worse: bool = False
    effect: str = ""  # the effect in sentences, joined by "; "; empty with an error
    error: str = ""  # why there is no result; empty if there is one
    situation: str = ""  # hash of the Pods, Nodes and other objects that the result is about
    unchanged: bool = False  # whether it is that of the question: the last result still holds
