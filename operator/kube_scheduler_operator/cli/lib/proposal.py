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
from datetime import UTC, datetime
from typing import Any, Final

from ...base import names
from ...base.findings import Finding, format_path
from ...base.objects import annotation, mapping
from ...base.platform import Platform
from ...base.settings import Settings
from ...controlplane.adoption.adopted import read_record
from ...controlplane.managed_scheduler import Permitted, desired_spec
from ...controlplane.node_pods import OWN_RESOURCES
from ...controlplane.requested_settings import recorded_object, requested_by
from ...controlplane.revision.content import RevisionContent
from ...controlplane.revision.history import Revision
from ...controlplane.target_config_maps import target_data
from ...effective.control_plane.accepted_settings import (
    AcceptedSettings,
    blocking_findings,
    effective_settings,
    kind_of,
    setting_of,
)
from ...effective.control_plane.base_configuration import base_configuration
from ...effective.control_plane.compose import Composition, combine, compose
from ...effective.control_plane.inputs import Inputs
from ...effective.control_plane.observe_attached import ObservedExtenders, ObservedProfiles
from ...effective.control_plane.recorded_inputs import RecordedInputs, read_inputs
from ...effective.secondary.compose import CONNECTION, RESERVED, SETTINGS
from ...effective.secondary.request import DEFAULT_RESOURCES
from ...kube import resource as kinds
from ...kube.api import Api, Object
from ...kube.errors import Forbidden
from ...kube.resource import ObjectRef, Resource
from ...model.attachment import ValidationResult, name_of
from ...model.redirect import redirected
from ...model.snapshot import Snapshot
from ...offline.checks import CheckOptions
from ...offline.known_kinds import wrong_types
from ...offline.secondary_schedulers import DEFINITION, compose_secondary
from ...operatorsettings.validate import PodDefaults, SettingsResult, validate_settings
from ...schedulerconfig.crd_schema import validate_object
from ...schedulerconfig.feature_gates import Gates
from ...schedulerconfig.schema import DEFAULT_SCHEDULER, KIND
from ...schedulerconfig.validation import Target, validate_config
from ...schedulerconfig.versions import Version
from ...secondary.content import config_map_name, content_of, is_content
from ...secondary.desired import OperandDefaults, desired_scheduler
from .compare import ParsedRevision, gates_of, parse_revision
from .errors import CommandError
from .input_files import display_name, read_documents
from .objects import find_object, list_by_name
from .scheduler_contents import parse_content, running_hash


@dataclass(frozen=True, slots=True)
class InputObjects:
    """The objects in some files.

    Attributes:
        single: objects of kinds of which one is allowed, by kind.
        profiles: SchedulerProfiles by name.
        extenders: SchedulerExtenders by name.
    """

    single: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, Mapping[str, Any]]
    extenders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def scheduler(self) -> str:
        """The SecondaryScheduler that they configure; empty: the control plane's scheduler.

        Raises:
            CommandError: they configure several schedulers.
        """
        many = (*self.profiles.values(), *self.extenders.values())
        configured = {str(mapping(one.get("spec")).get("scheduler") or "") for one in many}
        configured |= {
            str(mapping(one.get("metadata")).get("name") or "") if kind == SECONDARY else ""
            for kind, one in self.single.items()
        }
        if len(configured) > 1:
            raise CommandError("the files configure several schedulers; specify the objects of one")
        return next(iter(configured), "")


def _over(
    known: Mapping[str, Mapping[str, Any]] | None, input_: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...] | None:
    """`known` objects of a kind after applying the files; None: the kind is not installed."""
    if known is None and not input_:
        return None
    known = known or {}
    changed = {
        name: {**known.get(name, {"metadata": {"name": name}}), "spec": one.get("spec")}
        for name, one in input_.items()
    }
    return tuple({**known, **changed}.values())


def read_objects(files: Sequence[str]) -> InputObjects:
    """The objects in files.

    Raises:
        UsageError: a file cannot be read, or has a syntax error.
        CommandError: a file has other objects.
    """
    single: dict[str, Mapping[str, Any]] = {}
    many: dict[str, dict[str, Mapping[str, Any]]] = {kind: {} for kind in _MANY}
    for name in files:
        for value in read_documents(name):
            kind = str(value.get("kind")) if isinstance(value, Mapping) else ""
            if kind in kinds.CONFIGURED:
                _refuse_malformed(value, kinds.CONFIGURED[kind].api_version, display_name(name))
            named = str(mapping(value.get("metadata")).get("name") or "") if kind else ""
            if kind in many and named and named not in many[kind]:
                many[kind][named] = value
            elif kind in _KINDS and kind not in single and (named or kind not in _NAMED):
                single[kind] = value
            else:
                ours = kind in _KINDS or kind in many
                what = f"a second {kind}" if ours else kind or "not an object"
                if (kind in many or kind in _NAMED) and not named:
                    what = f"{kind} without a name"
                raise CommandError(f"{display_name(name)}: {what}; {_SUPPORTED}")
    if LOAD in single and (len(single) > 1 or any(many.values())):
        raise CommandError(_SUPPORTED)
    return InputObjects(single, many[_PROFILE], many[_EXTENDER])


def _refuse_malformed(obj: Mapping[str, Any], api_version: str, name: str) -> None:
    if obj.get("apiVersion", api_version) != api_version:
        what = f"{obj['kind']} has apiVersion {obj['apiVersion']}; use {api_version}"
        raise CommandError(f"{name}: {what}")
    for problem in wrong_types({**obj, "apiVersion": api_version}):
        path = format_path(problem.path)
        raise CommandError(f"{name}: {path}: {problem.sentence}")


SECONDARY: Final = kinds.SECONDARY_SCHEDULERS.kind
_PROFILE: Final = kinds.SCHEDULER_PROFILES.kind
_EXTENDER: Final = kinds.SCHEDULER_EXTENDERS.kind
_MANY: Final = (_PROFILE, _EXTENDER)
LOAD: Final = kinds.LOAD_POLICIES.kind
OPERATOR_SETTINGS: Final = kinds.OPERATOR_SETTINGS.kind
_NAMED: Final = (SECONDARY, LOAD)
_KINDS: Final = (
    KIND,
    kinds.SCHEDULERS.kind,
    kinds.KUBE_SCHEDULERS.kind,
    OPERATOR_SETTINGS,
    SECONDARY,
    LOAD,
)
_SUPPORTED: Final = (
    "specify a KubeSchedulerConfiguration, or a Scheduler, a KubeScheduler, OperatorSettings, "
    "SchedulerProfiles and SchedulerExtenders, or a SecondaryScheduler, SchedulerProfiles and "
    "SchedulerExtenders, or a LoadPolicy"
)


async def proposed(
    api: Api, platform: Platform, objects: InputObjects, revision: Revision
) -> tuple[ParsedRevision, ParsedRevision]:
    """(the content of a revision, the content that the objects lead to), as far as comparable.

    Raises:
        CommandError: the objects would not be accepted.
    """
    before = parse_revision(revision.content)
    if KIND in objects.single:
        return config_only(before), configuration_alone(objects, before)
    inputs = await _inputs(api, platform, objects, before, revision)
    inputs, composition = _composed(inputs, objects, revision, before.image)
    _refuse(composition.results, objects.profiles)
    _refuse(composition.extenders, objects.extenders)
    reason = str(inputs.spec.get("forceRedeploymentReason") or "")
    kept = read_record(revision)
    defaults = PodDefaults(OWN_RESOURCES, dict(kept.settings.names()))
    settings = await _settings(api, platform, objects, defaults, read_inputs(revision.inputs))
    target = target_data(platform, composition, before.image, reason, kept, requested_by(settings))
    parts = {**revision.content.parts, **target}
    return before, parse_revision(RevisionContent(parts))


async def _settings(
    api: Api,
    platform: Platform,
    objects: InputObjects,
    defaults: PodDefaults,
    recorded: RecordedInputs | None,
) -> SettingsResult | None:
    """OperatorSettings of the files, else the cluster's; without the right to read it, `recorded`.

    Raises:
        CommandError: that of the files would not be accepted.
    """
    ref = ObjectRef(kinds.OPERATOR_SETTINGS, None, names.CLUSTER)
    obj: Mapping[str, Any] | None = objects.single.get(OPERATOR_SETTINGS)
    own = obj is not None
    try:
        obj = obj if own else await find_object(api, ref)
    except Forbidden:
        obj = recorded_object(recorded).get(names.CLUSTER)
    result = validate_settings({names.CLUSTER: obj} if obj else {}, platform, defaults)
    if own and result is not None and not result.accepted:
        raise CommandError(f"it would not be accepted: {result.findings[0].text}; {_ALL}")
    return result


def configuration_alone(objects: InputObjects, before: ParsedRevision) -> ParsedRevision:
    """A KubeSchedulerConfiguration as the content of a revision.

    Raises:
        CommandError: there are other objects, or kube-scheduler would not start.
    """
    if len(objects.single) > 1 or objects.profiles or objects.extenders:
        raise CommandError(_SUPPORTED)
    _refuse_bad(objects.single[KIND], before)
    return ParsedRevision(objects.single[KIND], (), "", {}, {})


def config_only(content: ParsedRevision) -> ParsedRevision:
    """What can be compared with a KubeSchedulerConfiguration."""
    nothing: dict[str, Any] = {"image": "", "arguments": (), "pod": {}, "other": {}}
    return replace(content, **nothing)


async def proposed_secondary(
    api: Api, platform: Platform, objects: InputObjects, control_plane: ParsedRevision | None
) -> tuple[ParsedRevision, ParsedRevision, str]:
    """(the content of a secondary scheduler, the content that the objects lead to, its name).

    `control_plane` is the content of the control plane's scheduler, whose image is the default;
    None where the provider runs that.

    Raises:
        CommandError: the objects would not be accepted, or it is not deployed.
    """
    name = objects.scheduler
    found = await find_object(api, ObjectRef(kinds.SECONDARY_SCHEDULERS, None, name))
    running = running_hash(found or {})
    if found is None or not running:
        raise CommandError(
            f'SecondaryScheduler "{name}" is not deployed yet, so there is nothing to compare '
            "with; use `compose -f` to see its result"
        )
    config_map = await _config_map(api, found, running)
    before = parse_content(content_of(config_map))
    changed = {**found, "spec": objects.single.get(SECONDARY, found).get("spec")}
    _refuse_unknown(changed)
    profiles = _over(await list_by_name(api, kinds.SCHEDULER_PROFILES), objects.profiles) or ()
    extenders = _over(await list_by_name(api, kinds.SCHEDULER_EXTENDERS), objects.extenders) or ()
    # The image of agents is the operator's own, which only the operator knows.
    image = (control_plane or before).image
    operand = OperandDefaults(image, agent_image=_agent_image(config_map))
    attached = _Attached(profiles, extenders, objects)
    after = _composed_secondary(changed, attached, platform, operand)
    return before, after, f"{name}-{running}"


async def proposed_managed(
    api: Api, platform: Platform, objects: InputObjects, scheduler: Object, image: str
) -> ParsedRevision:
    """The content of the managed scheduler that the objects lead to.

    `image` is the image of kube-scheduler.

    Raises:
        CommandError: the objects would not be accepted.
    """
    version = Version.of_image(image)
    name = str(scheduler["metadata"]["name"])
    live = {
        resource.kind: await find_object(api, ObjectRef(resource, None, names.CLUSTER))
        for resource in (kinds.SCHEDULERS, kinds.KUBE_SCHEDULERS)
    }
    inputs = Inputs(
        platform=platform,
        operand_version=version,
        scheduler=objects.single.get("Scheduler", live["Scheduler"]),
        kubescheduler=objects.single.get("KubeScheduler", live["KubeScheduler"] or {}),
    )
    base = base_configuration(inputs)
    composition = combine(base, ObservedExtenders(), ObservedProfiles())
    for finding in blocking_findings(composition):
        raise CommandError(f"it would not be accepted: {finding.text}; {_ALL}")
    snapshot = Snapshot(
        now=datetime.now(UTC),
        platform=platform,
        settings=Settings(managed_scheduler=name),
        scheduler=inputs.scheduler,
        kubescheduler=inputs.kubescheduler,
    )
    permitted = Permitted(SETTINGS, CONNECTION, RESERVED, DEFAULT_RESOURCES)
    recorded = read_inputs(annotation(scheduler, names.ACCEPTED_SETTINGS_ANNOTATION))
    settings = await _settings(api, platform, objects, PodDefaults(DEFAULT_RESOURCES), recorded)
    namespace = str(scheduler["spec"]["namespace"])
    spec = desired_spec(snapshot, base, composition, permitted, namespace, settings)
    profiles = _over(await list_by_name(api, kinds.SCHEDULER_PROFILES), objects.profiles) or ()
    extenders = _over(await list_by_name(api, kinds.SCHEDULER_EXTENDERS), objects.extenders) or ()
    moved = redirected({name_of(one): dict(one) for one in profiles}, name, DEFAULT_SCHEDULER)
    called = redirected({name_of(one): dict(one) for one in extenders}, name)
    running = running_hash(scheduler)
    config_map = await _config_map(api, scheduler, running)
    operand = OperandDefaults(image, agent_image=_agent_image(config_map))
    attached = _Attached(tuple((moved or {}).values()), tuple((called or {}).values()), objects)
    return _composed_secondary({**scheduler, "spec": spec}, attached, platform, operand)


async def _config_map(api: Api, scheduler: Object, content_hash: str) -> Object:
    name, namespace = scheduler["metadata"]["name"], str(scheduler["spec"]["namespace"])
    ref = ObjectRef(kinds.CONFIG_MAPS, namespace, config_map_name(name, content_hash))
    found = await find_object(api, ref)
    if found is None:
        raise CommandError(f"{ref} does not exist; the operator creates it again, so retry later")
    if not is_content(found, scheduler, content_hash):
        raise CommandError(
            f"{ref} does not have the content that the status of SecondaryScheduler {name} names: "
            "another client changed it; delete it, and the operator creates it again"
        )
    return found


@dataclass(frozen=True, slots=True)
class _Attached:
    """SchedulerProfiles and SchedulerExtenders; those of `objects` must be accepted."""

    profiles: Sequence[Mapping[str, Any]]
    extenders: Sequence[Mapping[str, Any]]
    objects: InputObjects


def _composed_secondary(
    obj: Object, attached: _Attached, platform: Platform, operand: OperandDefaults
) -> ParsedRevision:
    """The content of a SecondaryScheduler.

    Raises:
        CommandError: it would not be rolled out.
    """
    setting = CheckOptions(Gates(Version.of_image(operand.image)), platform)
    made = compose_secondary(obj, attached.profiles, attached.extenders, setting)
    _refuse(made.profile_results, attached.objects.profiles)
    _refuse(made.extenders.chosen.results, attached.objects.extenders)
    _refuse_blocking(made.findings)
    profiles = made.composition.config["profiles"] if attached.profiles else ()
    wanted = desired_scheduler(
        obj, platform, operand, made.target.gates.version, profiles, made.extenders
    )
    if wanted.content is None:
        raise CommandError(f"no revision would be rolled out: {wanted.findings[0].text}")
    return parse_content(wanted.content)


_ALL: Final = "`validate` reports all errors"


def _refuse_unknown(obj: Mapping[str, Any]) -> None:
    for problem in validate_object(obj, DEFINITION, kinds.SECONDARY_SCHEDULERS.version):
        path = format_path(problem.path)
        raise CommandError(f"the API server would reject it: {path}: {problem.sentence}; {_ALL}")


def _agent_image(config_map: Mapping[str, Any]) -> str:
    """The image of the agents in a ConfigMap; a placeholder if it has none."""
    try:
        pod = json.loads(config_map["data"][names.POD_KEY])
    except (KeyError, TypeError, ValueError):
        return _OWN_IMAGE
    images = (
        one["image"] for one in pod["containers"] if one.get("command", ())[:1] == [names.PROGRAM]
    )
    return str(next(images, _OWN_IMAGE))


_OWN_IMAGE: Final = "the operator's own"


def _refuse(profile_results: Iterable[ValidationResult], objects: Mapping[str, Any]) -> None:
    for profile_result in profile_results:
        if profile_result.name in objects and not profile_result.accepted:
            raise CommandError(
                f"{profile_result.name} would not be accepted: {profile_result.findings[0].text}"
            )


def _refuse_bad(config: Mapping[str, Any], before: ParsedRevision) -> None:
    for problem in validate_config(config, Target(gates_of(before))):
        path = format_path(problem.path)
        raise CommandError(f"kube-scheduler would not start: {path}: {problem.sentence}; {_ALL}")


async def _inputs(
    api: Api,
    platform: Platform,
    objects: InputObjects,
    before: ParsedRevision,
    revision: Revision,
) -> Inputs:
    cluster_config: tuple[Resource, ...] = ()
    if platform.cluster_config:
        cluster_config = (kinds.API_SERVERS, kinds.FEATURE_GATES, kinds.INFRASTRUCTURES)
    live = {
        resource.kind: await find_object(api, ObjectRef(resource, None, names.CLUSTER))
        for resource in (kinds.SCHEDULERS, kinds.KUBE_SCHEDULERS, *cluster_config)
    }
    known: Mapping[str, Mapping[str, Any]] | None = None
    with suppress(Forbidden):  # without them, the observed configuration remains
        known = await list_by_name(api, kinds.SCHEDULER_PROFILES)
    called: Mapping[str, Mapping[str, Any]] | None = None
    with suppress(Forbidden):
        called = await list_by_name(api, kinds.SCHEDULER_EXTENDERS)
    profiles, extenders = _over(known, objects.profiles), _over(called, objects.extenders)
    observed = ((live["KubeScheduler"] or {}).get("spec") or {}).get("observedConfig")
    kubescheduler = objects.single.get("KubeScheduler", live["KubeScheduler"] or {})
    spec = {"observedConfig": observed, **(kubescheduler.get("spec") or {})}
    return Inputs(
        platform=platform,
        operand_version=gates_of(before).version,
        scheduler=objects.single.get("Scheduler", live["Scheduler"]),
        kubescheduler={**kubescheduler, "spec": spec},
        adopted_config=read_record(revision).config,
        stock_image=platform.cluster_config or "/kube-scheduler" in f"/{before.image}",
        previous_arguments=before.arguments,
        apiserver=live.get("APIServer"),
        feature_gate=live.get("FeatureGate"),
        infrastructure=live.get("Infrastructure"),
        scheduler_profiles=profiles,
        scheduler_extenders=extenders,
        # A new agent is not running yet.
        planned=True,
        # Marks the profiles and extenders of secondary schedulers as such.
        schedulers=frozenset(
            str((one.get("spec") or {}).get("scheduler") or "")
            for one in (*(profiles or ()), *(extenders or ()))
        ),
        serving_certificate=any("--tls-cert-file" in each for each in before.arguments),
    )


def _composed(
    inputs: Inputs, objects: InputObjects, revision: Revision, image: str
) -> tuple[Inputs, Composition]:
    """The settings in effect, and their composition; the operator replaces settings with an error.

    Raises:
        CommandError: the files have the error, or no setting can replace the one that has it.
    """
    composition = compose(inputs)
    errors = blocking_findings(composition)
    if not errors:
        return inputs, composition
    own = [error for error in errors if kind_of(setting_of(error)) in objects.single]
    if own:
        raise CommandError(f"it would not be accepted: {own[0].text}; {_ALL}")
    recorded = read_inputs(revision.inputs)
    effective = None
    if recorded is not None:
        accepted = AcceptedSettings(revision.number, recorded, image)
        effective = effective_settings(inputs, errors, accepted)
    if effective is None:
        raise CommandError(f"no revision would be rolled out: {errors[0].text}; {_ALL}")
    return effective.inputs, effective.composition


def _refuse_blocking(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.blocking:
            raise CommandError(f"no revision would be rolled out: {finding.text}; {_ALL}")
