"""What the Pods of a SecondaryScheduler run of the objects that are attached to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...base import names
from ...base.json_text import parse_json
from ...base.objects import Object, annotation
from ...base.templates import canonical_json
from ...config.effective.control_plane.recorded_inputs import settings_in
from ...config.effective.secondary.compose import SecondaryComposition
from ...kube.resource import SECONDARY_SCHEDULERS
from ..status.conditions import AS_EXPECTED, Condition
from ..status.in_use import Configuration, InUse
from ..status.readiness import check_condition, rolling_out
from .content import SecondaryContent, content_of
from .status import SchedulerState

_AGENT, _FILE = "extender-", ".json"


def in_use(
    state: SchedulerState,
    composition: SecondaryComposition,
    desired: SecondaryContent | None,
    config_maps: Mapping[str, Object],
    status: Mapping[str, Any],
) -> InUse:
    """Compare what was composed, and is `desired` if it is valid, with what Ready Pods run.

    `config_maps` has the contents by hash; `status` is the one that is reported.
    """
    serving = {pod.hash for pod in state.pods if pod.serves}
    known = {raw["type"]: Condition.from_raw(raw) for raw in status["conditions"]}
    whose = f'{SECONDARY_SCHEDULERS.kind} "{state.name}"'
    runs = InUse((_elsewhere(known[names.AVAILABLE], whose),), tuple(_behind(known, whose)))
    if desired is not None and serving == {desired.hash}:
        return runs
    if desired is not None:
        composed = _configuration(desired, _settings(state.obj))
    else:
        config, own = parse_json(canonical_json(composition.config)), _settings(state.obj)
        composed = Configuration(config, settings=settings_in(own))
    running = tuple(
        _configuration(content_of(obj), _settings(obj))
        for content_hash in sorted(serving)
        for obj in (config_maps.get(content_hash),)
        if obj is not None
    )
    is_known = len(running) == len(serving)
    return replace(runs, composed=composed, running=running if is_known else ())


def _settings(obj: Object) -> str:
    return annotation(obj, names.ACCEPTED_SETTINGS_ANNOTATION)


def _configuration(content: SecondaryContent, settings: str) -> Configuration:
    agents = {
        key.removeprefix(_AGENT).removesuffix(_FILE): text
        for key, text in content.data.items()
        if key.startswith(_AGENT) and key.endswith(_FILE)
    }
    return Configuration(content.config, agents, settings_in(settings))


def _behind(known: Mapping[str, Condition], whose: str) -> Iterator[Condition]:
    """The conditions that say why it does not run what was composed."""
    degraded, progressing = known[names.DEGRADED], known[names.PROGRESSING]
    check = known.get(names.PLACEMENT_CHECK_PROGRESSING)
    if degraded.status == "True":
        yield _elsewhere(degraded, whose)
    if check is not None and check.status == "True":
        yield check_condition(check.reason, whose)
    yield rolling_out(f"{whose} does not run it yet; {progressing.type} of it has its state")


def _elsewhere(condition: Condition, whose: str) -> Condition:
    """A condition of the scheduler, as its objects say it: the message stays there."""
    message = f"{condition.type} of {whose} is {condition.status}, and has the reason"
    shown = "" if condition.reason == AS_EXPECTED else message
    return Condition(condition.type, condition.status, condition.reason, shown)
