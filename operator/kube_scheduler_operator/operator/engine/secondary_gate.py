"""The check of placements for SecondarySchedulers, also for that in place of the control plane's.

All that decides placements is in a content, because agents are sidecars; only a LoadPolicy is not.
So an edit waits as a whole content. Meanwhile the content in use stays, with what decides no
placements as it is composed. The memory is `status.placementCheck` of the SecondaryScheduler; for
that in place of the control plane's scheduler it is the one of OperatorSettings, which outlives it.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from ...base import names
from ...base.images import is_own_image
from ...base.json_text import parse_json
from ...base.objects import Object, annotation, entries, mapping
from ...base.sentences import in_one_line
from ...base.templates import canonical_json
from ...config.effective.control_plane.recorded_inputs import read_inputs
from ...config.effective.extenders.entry import VERBS, agent_name
from ...config.effective.secondary.request import SchedulerRequest
from ...config.effective.settings.validate import OFF, PlacementSettings
from ...kube.resource import CONFIG_MAPS, DEPLOYMENTS
from ..controlplane.managed import managed_name
from ..controlplane.placement_gate import readers_not_tried, recorded_check, settings_in_effect
from ..controlplane.placement_rules import (
    AgentSpecs,
    merged_arguments,
    merged_config,
    rules_hash,
    rules_of,
)
from ..model.plan import PlacementRules
from ..model.pod_status import named
from ..model.snapshot import Snapshot
from ..secondary.content import IMAGE_KEY, SecondaryContent, content_of, running_hash
from ..secondary.gate import Gate, GateInput, SecondaryCheck
from ..secondary.history import find
from ..secondary.status import CHECK
from ..status.conditions import condition_in
from ..status.placement_check import NOTHING_TO_COMPARE, CheckedEdit, blocked, decide, off

SETTINGS: Final = "settings"
"""The field of a memory with the hash of what users had set for the content in use."""
_PROGRAM: Final = ("image", "command")
"""The fields of a SecondaryScheduler's spec that replace the control plane's kube-scheduler."""
_AGENT: Final = "extender-"
_LOAD: Final = "load-"
_POLICY: Final = "load-policy-"
"""Prefixes of the names of an agent's container and file, its volume, and that one's ConfigMap."""

Specs = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LoadEdit:
    """The LoadPolicy in use, by name; both versions are empty without one."""

    in_use: Specs
    desired: Specs
    readers: tuple[str, ...] = ()  # the SecondarySchedulers that read it, if it is edited


def secondary_gate(snapshot: Snapshot, load: LoadEdit) -> Gate:
    """Return the check of SecondarySchedulers."""
    settings, managed = settings_in_effect(snapshot, None), managed_name(snapshot)

    def check(asked: GateInput) -> SecondaryCheck:
        name = asked.desired.request.name
        if name == managed:
            of_load, status = load, snapshot.status
            recorded = recorded_check(snapshot)
        else:  # an edit of the LoadPolicy is one of the control plane's scheduler
            of_load, status = LoadEdit(load.in_use, load.in_use), mapping(asked.obj.get("status"))
            recorded = mapping(status.get(CHECK))
        if settings.mode == OFF:
            known = condition_in(status, names.PLACEMENT_CHECK_PROGRESSING)
            return replace(off(asked.content, known), elsewhere=name == managed)
        if asked.content is None:
            return replace(blocked(recorded), elsewhere=name == managed)
        rules = _Rules(snapshot, of_load, is_managed=name == managed)
        edit = _edit(rules, asked, asked.content, recorded, settings)
        made = _with_settings(decide(edit), rules.settings(asked), recorded)
        return replace(made, elsewhere=name == managed)

    return check


def _edit(
    rules: _Rules,
    asked: GateInput,
    content: SecondaryContent,
    recorded: Mapping[str, Any],
    settings: PlacementSettings,
) -> CheckedEdit[SecondaryContent]:
    snapshot, load = rules.snapshot, rules.load
    running, config_map = asked.contents.get(asked.in_use), asked.config_maps.get(asked.in_use)
    program: Mapping[str, Any] = {}
    if not rules.is_managed:
        program = program_of(asked.desired.request)
    after = rules.of(content, load.desired, program)
    before = None
    if running is not None:
        if not (rules.is_managed or _has_same_program(content, running)):
            program = _recorded_program(running, config_map)
        before = rules.of(running, load.in_use, program)
    configuration, entry = rules.identity(after), find(asked.history, asked.in_use)

    def kept() -> SecondaryContent | None:
        if running is None or before is None:
            return None
        same, image = before.program == after.program, snapshot.settings.operator_image
        made = kept_content(content, running, image, same_program=same)
        return replace(made, inputs=_inputs_of(config_map))

    edit = CheckedEdit(
        snapshot,
        settings,
        recorded,
        content,
        kept,
        before,
        after,
        configuration=configuration,
        in_use=rules.identity(before) if before is not None else "",
        has_run=entry is not None and entry.outcome == names.OUTCOME_INSTALLED,
        image=content.image,
        command=tuple(content.operand["command"]),
        has_other_image=running is not None and content.image != running.image,
        has_same_settings=recorded.get(SETTINGS) == (rules.settings(asked) or None),
        ran_without_gate=lambda: _ran(asked, rules, configuration),
        not_tried=_not_tried(before, after),
        is_simulated=before is None or _is_simulated(before, after),
        is_remembered=not rules.is_managed or snapshot.operator_settings is not None,
    )
    if rules.is_managed:
        return edit
    request = asked.desired.request
    return replace(
        edit,
        settings=replace(settings, approved=settings.approved_schedulers.get(request.name, "")),
        whose=f'SecondaryScheduler "{request.name}": ',
        scheduler=f" --scheduler {request.name}",
        approved_by=f"spec.placementCheck.approvedSchedulers.{request.name}",
        turn=request.namespace,
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """What decides placements in the contents of one SecondaryScheduler."""

    snapshot: Snapshot
    load: LoadEdit
    is_managed: bool

    def of(
        self, content: SecondaryContent, policies: Specs, program: Mapping[str, Any]
    ) -> PlacementRules:
        image = self.snapshot.settings.operator_image
        return secondary_rules(content, policies, program, image, self.load.readers)

    def identity(self, rules: PlacementRules) -> str:
        """The hash; an edit of the LoadPolicy is one of the control plane's scheduler."""
        return rules_hash(rules if self.is_managed else replace(rules, load_policies={}))

    def settings(self, asked: GateInput) -> str:
        """The hash of what users have set for a content; empty if that is not recorded."""
        inputs = read_inputs(asked.desired.inputs)
        own: Any = inputs.secondary if inputs is not None else None
        if self.is_managed:
            made = read_inputs(annotation(asked.obj, names.ACCEPTED_SETTINGS_ANNOTATION))
            own = [made.scheduler, made.kubescheduler] if made is not None else None
        if inputs is None or own is None:
            return ""
        text = canonical_json([own, inputs.profiles, inputs.extenders])
        return hashlib.sha256(text.encode()).hexdigest()


def secondary_rules(
    content: SecondaryContent,
    load_policies: Specs,
    program: Mapping[str, Any],
    operator_image: str,
    readers: tuple[str, ...] = (),
) -> PlacementRules:
    """Return all that decides placements.

    `program` has the fields of the spec that replace the control plane's kube-scheduler.
    """
    agents = agents_of(content, operator_image)
    specs = AgentSpecs(
        {name: {"agent": agent} for name, agent in agents.items()},
        load_policies,
        program,
        _sidecars(content, agents),
        readers,
    )
    rules = rules_of(content, specs)
    return rules if rules is not None else PlacementRules({})


# --- the parts of a content ----------------------------------------------------------------------


def agents_of(content: SecondaryContent, operator_image: str) -> dict[str, Mapping[str, Any]]:
    """Return what its agents decide by, as `spec.agent` of a SchedulerExtender has it."""
    entry_of = {agent_name(str(e.get("urlPrefix"))): e for e in _extenders(content)}
    found: dict[str, Mapping[str, Any]] = {}
    for container in _containers(content)[1:]:
        name = str(container["name"]).removeprefix(_AGENT)
        text = content.data.get(f"{_AGENT}{name}.json")
        if text is None or container["name"] != f"{_AGENT}{name}":
            continue
        document = parse_json(text)
        entry = entry_of.get(name, {})
        agent = {
            "policies": document["agents"][0]["policies"],
            "verbs": {verb: f"{verb}Verb" in entry for verb in VERBS},
            "env": {item["name"]: item["value"] for item in container.get("env") or ()},
            "loadPolicy": _load_policy(content, name),
            "image": "" if is_own_image(container["image"], operator_image) else container["image"],
            **mapping(document.get("podSelector")),
        }
        selector = {"matchLabels": labels} if (labels := agent.pop("matchLabels", {})) else {}
        found[name] = {k: v for k, v in {**agent, "podSelector": selector}.items() if v}
    return found


def _load_policy(content: SecondaryContent, agent: str) -> str:
    """The LoadPolicy that an agent reads; empty if it reads none."""
    volume = named(content.pod.get("volumes") or (), f"{_LOAD}{agent}")
    return str(mapping(volume.get("configMap")).get("name") or "").removeprefix(_POLICY)


def _sidecars(content: SecondaryContent, agents: Mapping[str, Any]) -> Mapping[str, Any]:
    """Users' containers with their volumes, if an extender is called that may be one of them."""
    own = [c for c in _containers(content)[1:] if str(c["name"]).removeprefix(_AGENT) not in agents]
    urls = [str(entry.get("urlPrefix")) for entry in _extenders(content)]
    if not own or all(agent_name(url) in agents for url in urls):
        return {}
    used = {mount["name"] for container in own for mount in container.get("volumeMounts") or ()}
    volumes = [volume for volume in content.pod.get("volumes") or () if volume["name"] in used]
    return {"containers": own, "volumes": volumes}


def _extenders(content: SecondaryContent) -> list[Mapping[str, Any]]:
    return [mapping(entry) for entry in entries(content.config.get("extenders"))]


def _containers(content: SecondaryContent) -> list[Mapping[str, Any]]:
    return list(content.pod["containers"])


def _has_same_program(content: SecondaryContent, other: SecondaryContent) -> bool:
    commands = [one.operand.get("command") for one in (content, other)]
    return content.image == other.image and commands[0] == commands[1]


def program_of(request: SchedulerRequest) -> dict[str, Any]:
    """Return the fields of a spec that replace the control plane's kube-scheduler."""
    fields = {"image": request.image, "command": list(request.command)}
    return {key: value for key, value in fields.items() if value}


def _recorded_program(content: SecondaryContent, config_map: Object | None) -> Mapping[str, Any]:
    """The fields of the spec that chose its kube-scheduler; without a record, as if users had."""
    inputs = read_inputs(_inputs_of(config_map))
    if inputs is None or inputs.secondary is None:
        return {"image": content.image}
    return {key: inputs.secondary[key] for key in _PROGRAM if inputs.secondary.get(key)}


def _inputs_of(config_map: Object | None) -> str:
    return annotation(config_map, names.ACCEPTED_SETTINGS_ANNOTATION) if config_map else ""


# --- the edit ------------------------------------------------------------------------------------


def _not_tried(before: PlacementRules | None, after: PlacementRules) -> str:
    """What no simulation tries of an edit; empty if all is tried."""
    return in_one_line(_untried(before, after)) if before is not None else NOTHING_TO_COMPARE


def _untried(before: PlacementRules, after: PlacementRules) -> Iterator[str]:
    if before.program != after.program:
        yield "no simulation compares two images of kube-scheduler, nor two commands"
    if before.sidecars != after.sidecars:
        yield "no simulation runs the sidecars"
    if readers := readers_not_tried(before, after):
        yield readers


def _is_simulated(before: PlacementRules, after: PlacementRules) -> bool:
    """Whether a simulation tries any of an edit."""
    tried = replace(before, program=after.program, sidecars=after.sidecars)
    if not after.agents:
        tried = replace(tried, load_policies=after.load_policies)
    return tried != after


def _with_settings(
    check: SecondaryCheck, settings: str, recorded: Mapping[str, Any]
) -> SecondaryCheck:
    """Remember what users have set for the content that comes into use."""
    known = settings if check.passes else recorded.get(SETTINGS)
    others = {key: value for key, value in check.record.items() if key != SETTINGS}
    return replace(check, record={**others, SETTINGS: known} if known else others)


def _ran(asked: GateInput, rules: _Rules, configuration: str) -> str:
    """Which content with these rules ran: it was checked, or there was no Gate.

    Of one with agents that read a LoadPolicy, the version of that at the time is not known.
    """
    for entry in asked.history:
        content = asked.contents.get(entry.hash)
        if content is None or entry.outcome != names.OUTCOME_INSTALLED:
            continue
        program = (
            {}
            if rules.is_managed
            else _recorded_program(content, asked.config_maps.get(entry.hash))
        )
        made = rules.of(content, rules.load.in_use, program)
        if not (rules.is_managed and made.load_policies) and rules.identity(made) == configuration:
            return f"configuration {entry.hash}"
    return ""


# --- what stays while it waits -------------------------------------------------------------------


def kept_content(
    content: SecondaryContent,
    running: SecondaryContent,
    operator_image: str,
    *,
    same_program: bool,
) -> SecondaryContent:
    """`content` with what decides placements in the `running` one.

    With `same_program`, another image is another version of the control plane's kube-scheduler.
    """
    pod, old = copy.deepcopy(dict(content.pod)), running.pod
    operand, other = content.operand, running.operand
    image = content.image if same_program and content.image != running.image else ""
    arguments = merged_arguments(operand, other, image)
    further = pod["initContainers"][0]["args"][len(operand["args"]) :]
    if not same_program:
        operand = {**other, "resources": operand["resources"]}
        first = {**old["initContainers"][0], "resources": operand["resources"]}
        pod["initContainers"] = [first, *pod["initContainers"][1:]]
        pod.pop("imagePullSecrets", None)
        pod |= {key: old[key] for key in ("imagePullSecrets",) if key in old}
    pod["initContainers"][0]["args"] = [*arguments, *further]
    sidecars = [_updated(container, operator_image) for container in _containers(running)[1:]]
    pod["containers"] = [{**operand, "args": arguments}, *sidecars]
    pod["volumes"] = [*_volumes(pod, content), *_volumes(old, running, of_sidecars=True)]
    data = {
        **{key: text for key, text in content.data.items() if not _is_of_agent(key)},
        **{key: text for key, text in running.data.items() if _is_of_agent(key)},
        names.CONFIG_KEY: canonical_json(merged_config(content.config, running.config)),
        names.POD_KEY: canonical_json(pod),
        IMAGE_KEY: content.image if same_program else running.image,
    }
    return SecondaryContent(data)


def _is_of_agent(key: str) -> bool:
    return key.startswith(_AGENT) and key.endswith(".json")


def _updated(container: Mapping[str, Any], operator_image: str) -> Mapping[str, Any]:
    """An agent with the image of this operator, unless its image is a setting of users."""
    is_agent = str(container["name"]).startswith(_AGENT)
    if is_agent and is_own_image(container["image"], operator_image):
        return {**container, "image": operator_image}
    return container


def _volumes(
    pod: Mapping[str, Any], content: SecondaryContent, *, of_sidecars: bool = False
) -> list[Any]:
    """The volumes of kube-scheduler, or all others."""
    containers = [*content.pod["initContainers"], content.operand]
    own = {mount["name"] for container in containers for mount in container["volumeMounts"]}
    return [volume for volume in pod["volumes"] if (volume["name"] not in own) == of_sidecars]


# --- who reads a LoadPolicy ----------------------------------------------------------------------


def readers_of(snapshot: Snapshot, policies: Specs) -> tuple[str, ...]:
    """The SecondarySchedulers with agents that read one of these LoadPolicies."""
    found = []
    for name, objects in snapshot.secondaries.objects.items():
        with suppress(Exception):  # of this one only
            running = running_hash(objects.get(DEPLOYMENTS, {}).get(name))
            contents = map(content_of, objects.get(CONFIG_MAPS, {}).values())
            if any(_reads(content, policies) for content in contents if content.hash == running):
                found.append(name)
    return tuple(sorted(found))


def _reads(content: SecondaryContent, policies: Specs) -> bool:
    return any(agent.get("loadPolicy") in policies for agent in agents_of(content, "").values())
