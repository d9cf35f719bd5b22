"""The revision that files would lead to, for a comparison before they are applied.

A KubeSchedulerConfiguration is compared unchanged. Scheduler, KubeScheduler, SchedulerProfiles and
SchedulerExtenders are composed as the operator does it; missing ones and the observed configuration
are read from the cluster. A SecondaryScheduler is composed likewise and compared with its current
content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...base import names
from ...base.crd_schema import validate_object
from ...base.decoding import sentence
from ...base.objects import annotation, mapping
from ...base.platform import Platform
from ...config.effective.attachment import ValidationResult, is_ours, name_of
from ...config.effective.control_plane.accepted_settings import (
    AcceptedSettings,
    kind_of,
    setting_of,
)
from ...config.effective.control_plane.recorded_inputs import (
    ObjectEdit,
    RecordedInputs,
    read_inputs,
)
from ...config.effective.control_plane.scheduler import (
    EffectiveControlPlane,
    effective_control_plane,
)
from ...config.effective.facts import ControlPlaneFacts, Facts
from ...config.effective.objects import Objects
from ...config.effective.pipeline import Effective, effective
from ...config.effective.secondary.request import DEFAULT_RESOURCES, SchedulerRequest
from ...config.effective.secondary.scheduler import EffectiveSecondary, effective_secondaries
from ...config.effective.settings.requested_pod import OWN_RESOURCES
from ...config.effective.settings.validate import PodDefaults
from ...config.language.schema import KIND
from ...config.language.validation.configuration import Target, validate_config
from ...config.language.warnings.configuration import scheduler_names
from ...config.lint.known_kinds import wrong_types
from ...config.lint.operator_objects import DEFINITION, EXTENDER, PROFILE, SECONDARY
from ...kube import resource as kinds
from ...kube.api import Api, Object
from ...kube.errors import Forbidden
from ...kube.resource import Resource
from ...operator.controlplane.adoption.adopted import read_record
from ...operator.controlplane.desired import content_of as revision_content
from ...operator.controlplane.desired import recorded_object
from ...operator.controlplane.revision.content import RevisionContent
from ...operator.controlplane.revision.history import Revision
from ...operator.secondary.content import (
    SecondaryContent,
    config_map_name,
    content_of,
    is_content,
)
from ...operator.secondary.desired import OperandDefaults, desired_scheduler
from ..console.errors import CommandError
from ..console.input_files import display_name, read_documents
from .compare import ParsedRevision, gates_of, parse_revision
from .operator_objects import find_object, find_singleton, list_by_name
from .permissions import permissions
from .scheduler_contents import desired_hash, parse_content


@dataclass(frozen=True, slots=True)
class InputObjects:
    single: Mapping[str, Mapping[str, Any]]  # objects of kinds of which one is allowed, by kind
    profiles: Mapping[str, Mapping[str, Any]]  # by name
    extenders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by name
    reverted: tuple[ObjectEdit, ...] = ()  # edits in the cluster to revert

    @property
    def scheduler(self) -> str:
        """The SecondaryScheduler that they configure; empty: the control plane's scheduler.

        Raises:
            CommandError: they configure several schedulers.
        """
        many = (*self.profiles.values(), *self.extenders.values())
        configured = {str(mapping(obj.get("spec")).get("scheduler") or "") for obj in many}
        configured |= {
            name_of(obj) if kind == SECONDARY else "" for kind, obj in self.single.items()
        }
        if len(configured) > 1:
            raise CommandError("the files configure several schedulers; specify the objects of one")
        return next(iter(configured), "")


def with_reverted(
    objects: Mapping[str, Mapping[str, Any]], kind: str, edits: Iterable[ObjectEdit]
) -> dict[str, Mapping[str, Any]]:
    """Return the objects of a kind, by name, as they were before these edits."""
    changed = dict(objects)
    for edit in edits:
        if edit.kind == kind:
            changed.pop(edit.name, None)
        if edit.kind == kind and edit.before is not None:
            obj = objects.get(edit.name, {"metadata": {"name": edit.name}})
            changed[edit.name] = {**obj, "spec": edit.before}
    return changed


def _applied(
    known: Sequence[Mapping[str, Any]] | None,
    applied: Mapping[str, Mapping[str, Any]],
    kind: str = "",
    reverted: Iterable[ObjectEdit] = (),
) -> tuple[Mapping[str, Any], ...] | None:
    """Apply the objects of files to the `known` ones of a kind; None: the kind is not installed."""
    if known is None and not applied:
        return None
    before = with_reverted({name_of(obj): obj for obj in known or ()}, kind, reverted)
    changed = {
        name: {**before.get(name, {"metadata": {"name": name}}), "spec": obj.get("spec")}
        for name, obj in applied.items()
    }
    return tuple({**before, **changed}.values())


def read_objects(files: Sequence[str]) -> InputObjects:
    """Read the objects in files.

    Raises:
        UsageError: a file cannot be read, or has a syntax error.
        CommandError: a file has other objects.
    """
    single: dict[str, Mapping[str, Any]] = {}
    many: dict[str, dict[str, Mapping[str, Any]]] = {kind: {} for kind in _MANY}
    for file in files:
        for value in read_documents(file):
            kind = str(value.get("kind")) if isinstance(value, Mapping) else ""
            if kind in kinds.CONFIGURED:
                _refuse_malformed(value, kinds.CONFIGURED[kind].api_version, display_name(file))
            name = name_of(value) if kind else ""
            if kind in many and name and name not in many[kind]:
                many[kind][name] = value
            elif kind in _KINDS and kind not in single and (name or kind not in _NAMED):
                single[kind] = value
            else:
                ours = kind in _KINDS or kind in many
                what = f"a second {kind}" if ours else kind or "not an object"
                if (kind in many or kind in _NAMED) and not name:
                    what = f"{kind} without a name"
                raise CommandError(f"{display_name(file)}: {what}; {_SUPPORTED}")
    if LOAD in single and (len(single) > 1 or any(many.values())):
        raise CommandError(_SUPPORTED)
    return InputObjects(single, many[PROFILE], many[EXTENDER])


def _refuse_malformed(obj: Mapping[str, Any], api_version: str, name: str) -> None:
    if obj.get("apiVersion", api_version) != api_version:
        what = f"{obj['kind']} has apiVersion {obj['apiVersion']}; use {api_version}"
        raise CommandError(f"{name}: {what}")
    for problem in wrong_types({**obj, "apiVersion": api_version}):
        raise CommandError(f"{name}: {sentence(problem)}")


_MANY: Final = (PROFILE, EXTENDER)
LOAD: Final = kinds.LOAD_POLICIES.kind
OPERATOR_SETTINGS: Final = kinds.OPERATOR_SETTINGS.kind
_NAMED: Final = (SECONDARY, LOAD)
_KINDS: Final = {KIND, *kinds.CONFIGURED} - {*_MANY}
_SUPPORTED: Final = (
    "specify a KubeSchedulerConfiguration, or a Scheduler, a KubeScheduler, OperatorSettings, "
    "SchedulerProfiles and SchedulerExtenders, or a SecondaryScheduler, SchedulerProfiles and "
    "SchedulerExtenders, or a LoadPolicy"
)


async def proposed(
    api: Api, platform: Platform, objects: InputObjects, revision: Revision
) -> tuple[ParsedRevision, ParsedRevision]:
    """Return the comparable parts of (a revision's content, the content of the objects).

    Raises:
        CommandError: the objects would not be accepted.
    """
    before = parse_revision(revision.content)
    if KIND in objects.single:
        return _configuration_alone(objects, before)
    control_plane = await composed_control_plane(api, platform, objects, revision)
    _refuse_errors(control_plane, objects)
    _refuse_invalid(control_plane.composition.results, objects.profiles)
    _refuse_invalid(control_plane.composition.extenders, objects.extenders)
    content = revision_content(control_plane, {}, read_record(revision))
    if content is None:
        raise CommandError(f"no revision would be rolled out; {_ALL}")
    parts = {**revision.content.parts, **content.parts}
    return before, parse_revision(RevisionContent(parts))


async def composed_control_plane(
    api: Api, platform: Platform, objects: InputObjects, revision: Revision
) -> EffectiveControlPlane:
    """Compose the control plane's scheduler with the objects of files, after a revision."""
    before = parse_revision(revision.content)
    recorded, kept = read_inputs(revision.inputs), read_record(revision)
    known = await _known(api, platform, recorded)
    facts = replace(
        await _facts(api, platform, before),
        pods=PodDefaults(OWN_RESOURCES, dict(kept.settings.names())),
        control_plane=ControlPlaneFacts(
            adopted_config=kept.config,
            previous_arguments=before.arguments,
            serving_certificate=any("--tls-cert-file" in argument for argument in before.arguments),
        ),
    )
    memory = (
        AcceptedSettings(revision.number, recorded, before.image) if recorded is not None else None
    )
    return effective_control_plane(with_input(known, objects), facts, lambda: memory)


async def composed_managed(
    api: Api, platform: Platform, objects: InputObjects, scheduler: Object, before: ParsedRevision
) -> tuple[Objects, Facts, Effective]:
    """Compose all schedulers where the provider runs the control plane's.

    `before` is the content of the managed scheduler, which has the image of kube-scheduler.
    """
    name = str(scheduler["metadata"]["name"])
    recorded = read_inputs(annotation(scheduler, names.ACCEPTED_SETTINGS_ANNOTATION))
    memory = None
    if recorded is not None:
        memory = AcceptedSettings(1, recorded, recorded_in=f'SecondaryScheduler "{name}"')
    facts = replace(
        await _facts(api, platform, before),
        managed_scheduler=name,
        pods=PodDefaults(DEFAULT_RESOURCES),
    )
    known = with_input(await _known(api, platform, recorded), objects)
    return known, facts, effective(known, facts, lambda: memory)


async def _facts(api: Api, platform: Platform, before: ParsedRevision) -> Facts:
    """Return the facts that a content shows, and what the operator permits."""
    return Facts(
        platform=platform,
        default_version=gates_of(before).version,
        image=before.image,
        planned=True,  # a new agent is not running yet
        permissions=await permissions(api, platform),
    )


def _refuse_errors(control_plane: EffectiveControlPlane, objects: InputObjects) -> None:
    """Refuse objects with an error; the operator replaces the errors of others."""
    settings = control_plane.settings
    if OPERATOR_SETTINGS in objects.single and settings is not None and not settings.accepted:
        raise CommandError(f"it would not be accepted: {settings.findings[0].text}; {_ALL}")
    for error in control_plane.errors:
        if kind_of(setting_of(error)) in objects.single:
            raise CommandError(f"it would not be accepted: {error.text}; {_ALL}")
    if control_plane.blocking:
        raise CommandError(
            f"no revision would be rolled out: {control_plane.errors[0].text}; {_ALL}"
        )


def with_input(known: Objects, objects: InputObjects) -> Objects:
    """Apply the objects of files to those of a cluster."""
    observed = mapping(known.kubescheduler.get("spec")).get("observedConfig")
    kubescheduler = objects.single.get("KubeScheduler", known.kubescheduler)
    spec = {"observedConfig": observed, **(kubescheduler.get("spec") or {})}
    secondary = objects.single.get(SECONDARY)
    return replace(
        known,
        scheduler=objects.single.get("Scheduler", known.scheduler),
        kubescheduler={**kubescheduler, "spec": spec},
        profiles=_applied(known.profiles, objects.profiles, PROFILE, objects.reverted),
        extenders=_applied(known.extenders, objects.extenders, EXTENDER, objects.reverted),
        secondaries=known.secondaries
        if secondary is None
        else _applied(known.secondaries, {name_of(secondary): secondary}) or (),
        operator_settings=objects.single.get(OPERATOR_SETTINGS, known.operator_settings),
    )


async def _known(api: Api, platform: Platform, recorded: RecordedInputs | None) -> Objects:
    """Read the cluster's objects; OperatorSettings as `recorded` if they may not be read."""
    observed: Iterable[Resource] = kinds.OBSERVED.values() if platform.cluster_config else ()
    live = {
        resource.kind: await find_singleton(api, resource)
        for resource in (kinds.SCHEDULERS, kinds.KUBE_SCHEDULERS, *observed)
    }
    settings: Mapping[str, Any] | None
    try:
        settings = await find_singleton(api, kinds.OPERATOR_SETTINGS)
    except Forbidden:
        settings = recorded_object(recorded).get(names.CLUSTER)
    return replace(
        await _listable(api),
        scheduler=live["Scheduler"],
        kubescheduler=live["KubeScheduler"] or {},
        operator_settings=settings,
        apiserver=live.get("APIServer"),
        feature_gate=live.get("FeatureGate"),
        infrastructure=live.get("Infrastructure"),
    )


async def _listable(api: Api) -> Objects:
    return Objects(
        profiles=await _listed(api, kinds.SCHEDULER_PROFILES),
        extenders=await _listed(api, kinds.SCHEDULER_EXTENDERS),
        secondaries=await _listed(api, kinds.SECONDARY_SCHEDULERS) or (),
    )


async def _listed(api: Api, resource: Resource) -> tuple[Object, ...] | None:
    """Read the objects of a kind; None: it is not installed, or must not be read."""
    with suppress(Forbidden):  # without them, the observed configuration remains
        objects = await list_by_name(api, resource)
        return None if objects is None else tuple(objects.values())
    return None


def _configuration_alone(
    objects: InputObjects, before: ParsedRevision
) -> tuple[ParsedRevision, ParsedRevision]:
    """Return what is comparable of (a content, a KubeSchedulerConfiguration)."""
    if len(objects.single) > 1 or objects.profiles or objects.extenders:
        raise CommandError(_SUPPORTED)
    config = objects.single[KIND]
    for problem in validate_config(config, Target(gates_of(before))):
        raise CommandError(f"kube-scheduler would not start: {sentence(problem)}; {_ALL}")
    return ParsedRevision(before.config, (), "", {}, {}), ParsedRevision(config, (), "", {}, {})


async def proposed_secondary(
    api: Api, platform: Platform, objects: InputObjects, control_plane: ParsedRevision | None
) -> tuple[ParsedRevision, ParsedRevision, str]:
    """Return (a secondary scheduler's content, the content of the objects, its label).

    `control_plane` is the content of the control plane's scheduler, whose image is the default;
    None where the provider runs that.

    Raises:
        CommandError: the objects would not be accepted, or it is not deployed.
    """
    name = objects.scheduler
    edit = await secondary_edit(api, platform, name, objects, control_plane)
    return parse_content(edit.before), parse_content(edit.after), f"{name}-{edit.before.hash}"


@dataclass(frozen=True, slots=True)
class SecondaryEdit:
    before: SecondaryContent  # that its Pods run, or are about to
    after: SecondaryContent  # of the objects
    request: SchedulerRequest


async def secondary_edit(
    api: Api,
    platform: Platform,
    name: str,
    objects: InputObjects,
    control_plane: ParsedRevision | None,
) -> SecondaryEdit:
    """The same as contents."""
    scheduler = await find_object(api, kinds.SECONDARY_SCHEDULERS.named(name))
    running = desired_hash(scheduler or {})
    if scheduler is None or not running:
        raise CommandError(
            f'SecondaryScheduler "{name}" is not deployed yet, so there is nothing to compare '
            "with; use `compose -f` to see its result"
        )
    config_map = await _config_map(api, scheduler, running)
    before = parse_content(content_of(config_map))
    stored = {**scheduler, "spec": objects.single.get(SECONDARY, scheduler).get("spec")}
    for problem in validate_object(stored, DEFINITION, kinds.SECONDARY_SCHEDULERS.version):
        raise CommandError(f"the API server would reject it: {sentence(problem)}; {_ALL}")
    # Without the right to list the kind, its own object remains.
    known = await (_listable(api) if control_plane is not None else _known(api, platform, None))
    if all(name_of(obj) != name for obj in known.secondaries):
        known = replace(known, secondaries=(*known.secondaries, scheduler))
    known = with_input(known, objects)
    # Agents have the operator's own image, which these facts do not have.
    facts = await _facts(api, platform, control_plane or before)
    if control_plane is not None:
        secondaries = effective_secondaries(known, facts, scheduler_names(control_plane.config))
    else:
        ours = next((name_of(obj) for obj in known.secondaries if is_ours(obj)), "")
        secondaries = effective(known, replace(facts, managed_scheduler=ours)).secondaries
    return _edit(secondaries.of(name), objects, facts, config_map)


async def proposed_managed(
    api: Api, platform: Platform, objects: InputObjects, scheduler: Object, before: ParsedRevision
) -> tuple[ParsedRevision, ParsedRevision]:
    """Return the comparable parts of (a content of the managed scheduler, that of the objects).

    `before` is the former, which has the image of kube-scheduler.

    Raises:
        CommandError: the objects would not be accepted.
    """
    if KIND in objects.single:
        return _configuration_alone(objects, before)
    edit = await managed_edit(api, platform, objects, scheduler, before)
    return before, parse_content(edit.after)


async def managed_edit(
    api: Api, platform: Platform, objects: InputObjects, scheduler: Object, before: ParsedRevision
) -> SecondaryEdit:
    """The same as contents; `objects` has no KubeSchedulerConfiguration."""
    _, facts, composed = await composed_managed(api, platform, objects, scheduler, before)
    _refuse_errors(composed.control_plane, objects)
    name = str(scheduler["metadata"]["name"])
    config_map = await _config_map(api, scheduler, desired_hash(scheduler))
    return _edit(composed.secondaries.of(name), objects, facts, config_map)


async def _config_map(api: Api, scheduler: Object, content_hash: str) -> Object:
    name, namespace = scheduler["metadata"]["name"], str(scheduler["spec"]["namespace"])
    ref = kinds.CONFIG_MAPS.named(config_map_name(name, content_hash), namespace)
    config_map = await find_object(api, ref)
    if config_map is None:
        raise CommandError(f"{ref} does not exist; the operator creates it again, so retry later")
    if not is_content(config_map, scheduler, content_hash):
        raise CommandError(
            f"{ref} does not have the content that the status of SecondaryScheduler {name} names: "
            "another client changed it; delete it, and the operator creates it again"
        )
    return config_map


def _edit(
    scheduler: EffectiveSecondary, objects: InputObjects, facts: Facts, config_map: Object
) -> SecondaryEdit:
    """Compose the content of a SecondaryScheduler; `config_map` has the one that runs."""
    _refuse_invalid(scheduler.profiles, objects.profiles)
    _refuse_invalid(scheduler.extenders, objects.extenders)
    for finding in scheduler.all_findings:
        if finding.blocking:
            raise CommandError(f"no revision would be rolled out: {finding.text}; {_ALL}")
    operand = OperandDefaults(facts.image or "", agent_image=_agent_image(config_map))
    desired = desired_scheduler(scheduler, facts.platform, operand)
    if desired.content is None:
        raise CommandError(f"no revision would be rolled out: {desired.findings[0].text}")
    return SecondaryEdit(content_of(config_map), desired.content, desired.request)


_ALL: Final = "`validate` reports all errors"
_OWN_IMAGE: Final = "the operator's own"


def _agent_image(config_map: Mapping[str, Any]) -> str:
    """Return the image of the agents in a ConfigMap; a placeholder if it has none."""
    try:
        pod = json.loads(config_map["data"][names.POD_KEY])
    except (KeyError, TypeError, ValueError):
        return _OWN_IMAGE
    containers = pod["containers"]
    agents = (c for c in containers if c.get("command", ())[:1] == [names.PROGRAM])
    return str(next(agents, {"image": _OWN_IMAGE})["image"])


def _refuse_invalid(results: Iterable[ValidationResult], objects: Mapping[str, Any]) -> None:
    for result in results:
        if result.name in objects and not result.accepted:
            raise CommandError(f"{result.name} would not be accepted: {result.findings[0].text}")
