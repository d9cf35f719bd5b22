"""What a file would make of a revision, before anybody applies it.

A KubeSchedulerConfiguration is compared as it is. A Scheduler, a KubeScheduler, SchedulerProfiles
and SchedulerExtenders are composed the way the operator does it; which of them the file does not
have, and what the operator observed, is taken from the cluster. A SecondaryScheduler is composed
likewise and compared with what it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ...base.objects import mapping
from ..commands.validate import shown, text
from . import common
from .compare import Made, gates_of, take_apart

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...controlplane.compose import Composition
    from ...controlplane.revision.history import Revision
    from ...kube.client import ApiClient
    from ...model.attachment import Judged
    from ...model.inputs import Inputs
    from ...secondary.content import Content as SecondaryContent


@dataclass(frozen=True, slots=True)
class Given:
    """The documents of files.

    Attributes:
        single: those of which there is one, by kind.
        profiles: SchedulerProfiles by name.
        extenders: SchedulerExtenders by name.
    """

    single: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, Mapping[str, Any]]
    extenders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def scheduler(self) -> str:
        """The SecondaryScheduler that they are about; empty: the control plane's scheduler.

        Raises:
            CommandError: they are about several.
        """
        many = (*self.profiles.values(), *self.extenders.values())
        about = {str(mapping(one.get("spec")).get("scheduler") or "") for one in many}
        about |= {
            str(mapping(one.get("metadata")).get("name") or "") if kind == SECONDARY else ""
            for kind, one in self.single.items()
        }
        if len(about) > 1:
            raise common.CommandError("these are about several schedulers; give those of one")
        return next(iter(about), "")

    def over(
        self, known: Mapping[str, Mapping[str, Any]] | None
    ) -> tuple[Mapping[str, Any], ...] | None:
        """SchedulerProfiles as they would be, if `known` are there; None: the kind is not."""
        return _over(known, self.profiles)

    def extenders_over(
        self, known: Mapping[str, Mapping[str, Any]] | None
    ) -> tuple[Mapping[str, Any], ...] | None:
        """The same of SchedulerExtenders."""
        return _over(known, self.extenders)


def _over(
    known: Mapping[str, Mapping[str, Any]] | None, given: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...] | None:
    if known is None and not given:
        return None
    known = known or {}
    changed = {
        name: {**known.get(name, {"metadata": {"name": name}}), "spec": one.get("spec")}
        for name, one in given.items()
    }
    return tuple({**known, **changed}.values())


def documents(files: Sequence[str]) -> Given:
    """The documents of files.

    Raises:
        UsageError: a file cannot be read.
        CommandError: it holds something else, or cannot be taken apart.
    """
    from ...schedulerconfig.source import read

    single: dict[str, Mapping[str, Any]] = {}
    many: dict[str, dict[str, Mapping[str, Any]]] = {kind: {} for kind in _MANY}
    for name in files:
        read_, error = read(text(name))
        flaws = [flaw for document in read_ for flaw in document.flaws]
        if error is not None or flaws:
            where = error.position if error is not None else flaws[0].position
            message = error.message if error is not None else flaws[0].message
            raise common.CommandError(f"{shown(name)}:{where.line}:{where.column}: {message}")
        for document in read_:
            value = document.value
            kind = str(value.get("kind")) if isinstance(value, Mapping) else ""
            named = str(mapping(value.get("metadata")).get("name") or "") if kind else ""
            if kind in many and named and named not in many[kind]:
                many[kind][named] = value
            elif kind in _KINDS and kind not in single:
                single[kind] = value
            else:
                ours = kind in _KINDS or kind in many
                what = f"a second {kind}" if ours else kind or "no object"
                if kind in many and not named:
                    what = f"{kind} without a name"
                raise common.CommandError(f"{shown(name)}: {what}; {_GIVE}")
    if LOAD in single and (len(single) > 1 or any(many.values())):
        raise common.CommandError(_GIVE)
    return Given(single, many[_PROFILE], many[_EXTENDER])


SECONDARY: Final = "SecondaryScheduler"
_PROFILE: Final = "SchedulerProfile"
_EXTENDER: Final = "SchedulerExtender"
_MANY: Final = (_PROFILE, _EXTENDER)
LOAD: Final = "LoadPolicy"
_KINDS: Final = ("KubeSchedulerConfiguration", "Scheduler", "KubeScheduler", SECONDARY, LOAD)
_GIVE: Final = (
    "give a KubeSchedulerConfiguration, or a Scheduler, a KubeScheduler, SchedulerProfiles and "
    "SchedulerExtenders, or a SecondaryScheduler, SchedulerProfiles and SchedulerExtenders, or a "
    "LoadPolicy"
)


async def proposed(
    api: ApiClient, platform: Platform, given: Given, revision: Revision
) -> tuple[Made, Made]:
    """(what a revision has, what the documents would make of it), of what can be compared.

    Raises:
        CommandError: nothing would be made of them, and why.
    """
    from ...controlplane.revision.content import Content
    from ...controlplane.target_config_maps import target_data
    from ...schedulerconfig.schema import KIND

    before = take_apart(revision.content)
    if KIND in given.single:
        if len(given.single) > 1 or given.profiles or given.extenders:
            raise common.CommandError(_GIVE)
        _refuse_bad(given.single[KIND], before)
        nothing: dict[str, Any] = {"image": "", "arguments": (), "pod": {}, "other": {}}
        return replace(before, **nothing), Made(given.single[KIND], (), "", {}, {})
    inputs = await _inputs(api, platform, given, before)
    composition = _composed(inputs)
    _refuse(composition.verdicts, given.profiles)
    _refuse(composition.extenders, given.extenders)
    reason = str(inputs.spec.get("forceRedeploymentReason") or "")
    parts = {**revision.content.parts, **target_data(platform, composition, before.image, reason)}
    return before, take_apart(Content(parts))


async def proposed_secondary(
    api: ApiClient, platform: Platform, given: Given, revision: Revision
) -> tuple[Made, Made, str]:
    """(what a further scheduler has, what the documents would make of it, what that is called).

    Raises:
        CommandError: nothing would be made of them, and why.
    """
    from ...kube.resource import CONFIG_MAPS, SECONDARY_SCHEDULERS, ObjectRef
    from ...offline.kinds import Setting
    from ...offline.secondary_schedulers import composed
    from ...schedulerconfig.feature_gates import Gates
    from ...secondary.content import content_of
    from ...secondary.desired import Operand, want

    name = given.scheduler
    found = await common.find_one(api, ObjectRef(SECONDARY_SCHEDULERS, None, name))
    running = str(((found or {}).get("status") or {}).get("configHash") or "")
    if found is None or not running:
        raise common.CommandError(
            f'SecondaryScheduler "{name}" has nothing yet that this could be compared with; '
            "`compose -f` shows what it would have"
        )
    namespace = str(found["spec"]["namespace"])
    ref = ObjectRef(CONFIG_MAPS, namespace, f"{name}-config-{running}")
    config_map = await common.find_one(api, ref)
    if config_map is None:
        raise common.CommandError(f"{ref} is not there; the operator makes it again, so try later")
    control_plane = take_apart(revision.content)
    wished = {**found, "spec": given.single.get(SECONDARY, found).get("spec")}
    _refuse_unknown(wished)
    profiles = given.over(await common.scheduler_profiles(api)) or ()
    extenders = given.extenders_over(await common.scheduler_extenders(api)) or ()
    version = gates_of(control_plane).version
    setting = Setting(Gates(version), platform)
    made = composed(wished, profiles, extenders, setting)
    composition = made.composition
    _refuse(made.verdicts, given.profiles)
    _refuse(made.extenders.chosen.verdicts, given.extenders)
    if composition.blocking:
        reasons = [finding.text for finding in composition.findings if finding.blocking]
        raise common.CommandError(f"nothing would be rolled out: {reasons[0]}; {_ALL}")
    given_to_it = composition.config["profiles"] if profiles else ()
    # The operator knows its own image; what it has given to agents so far is as good.
    operand = Operand(control_plane.image, agent_image=_agent_image(config_map))
    wanted = want(wished, platform, operand, made.target.gates.version, given_to_it, made.extenders)
    if wanted.content is None:
        raise common.CommandError(f"nothing would be rolled out: {wanted.findings[0].text}")
    return _apart(content_of(config_map)), _apart(wanted.content), f"{made.request.name}-{running}"


_ALL: Final = "`validate` has all that is wrong"


def _apart(content: SecondaryContent) -> Made:
    """The same as of a revision, of the content of a further scheduler."""
    from ...base import names
    from ...controlplane.revision.content import Content

    data = dict(content.data)
    config = {names.CONFIG_KEY: data.pop(names.CONFIG_KEY, "")}
    try:
        spec = json.loads(data.pop(names.POD_KEY, ""))
    except ValueError:
        spec = {}
    # The image stands in the pods' spec as well, and the check has what the scheduler has.
    data.pop("image", None)
    spec.pop("initContainers", None)
    pod = {names.POD_KEY: json.dumps({"spec": spec}), **data}
    return take_apart(Content({names.CONFIG: config, names.POD: pod}))


def _refuse_unknown(obj: Mapping[str, Any]) -> None:
    from ...base.findings import format_path
    from ...offline.secondary_schedulers import DEFINITION, VERSION
    from ...schedulerconfig.crd_schema import check_object

    for problem in check_object(obj, DEFINITION, VERSION):
        path = format_path(problem.path)
        raise common.CommandError(f"the API would not take it: {path}: {problem.message}; {_ALL}")


def _agent_image(config_map: Mapping[str, Any]) -> str:
    """The image of the agents in a content; a word for it if there are none."""
    from ...base import names

    try:
        pod = json.loads(config_map["data"][names.POD_KEY])
    except (KeyError, TypeError, ValueError):
        return _OWN_IMAGE
    images = (
        one["image"] for one in pod["containers"] if one.get("command", ())[:1] == [names.PROGRAM]
    )
    return str(next(images, _OWN_IMAGE))


_OWN_IMAGE: Final = "the operator's own"


def _refuse(verdicts: Iterable[Judged], given: Mapping[str, Any]) -> None:
    for verdict in verdicts:
        if verdict.name in given and not verdict.accepted:
            raise common.CommandError(f"it would not be accepted: {verdict.findings[0].text}")


def _refuse_bad(config: Mapping[str, Any], before: Made) -> None:
    from ...base.findings import format_path
    from ...schedulerconfig.check import Target, check_config

    for problem in check_config(config, Target(gates_of(before))):
        path = format_path(problem.path)
        raise common.CommandError(
            f"kube-scheduler would not start with it: {path}: {problem.message}; `validate` has all"
        )


async def _inputs(api: ApiClient, platform: Platform, given: Given, before: Made) -> Inputs:
    from ...base import names
    from ...kube.errors import Forbidden
    from ...kube.resource import (
        API_SERVERS,
        FEATURE_GATES,
        INFRASTRUCTURES,
        KUBE_SCHEDULERS,
        SCHEDULERS,
        ObjectRef,
    )
    from ...model.inputs import Inputs

    live = {
        resource.kind: await common.find_one(api, ObjectRef(resource, None, names.CLUSTER))
        for resource in (SCHEDULERS, KUBE_SCHEDULERS)
    }
    others = {
        resource.kind: await common.find_one(api, ObjectRef(resource, None, names.CLUSTER))
        for resource in (API_SERVERS, FEATURE_GATES, INFRASTRUCTURES)
        if platform.cluster_config
    }
    known: Mapping[str, Mapping[str, Any]] | None = None
    with suppress(Forbidden):  # then they stay as they were observed
        known = await common.scheduler_profiles(api)
    called: Mapping[str, Mapping[str, Any]] | None = None
    with suppress(Forbidden):
        called = await common.scheduler_extenders(api)
    profiles, extenders = given.over(known), given.extenders_over(called)
    observed = ((live["KubeScheduler"] or {}).get("spec") or {}).get("observedConfig")
    kubescheduler = given.single.get("KubeScheduler", live["KubeScheduler"] or {})
    spec = {"observedConfig": observed, **(kubescheduler.get("spec") or {})}
    return Inputs(
        platform=platform,
        operand_version=gates_of(before).version,
        scheduler=given.single.get("Scheduler", live["Scheduler"]),
        kubescheduler={**kubescheduler, "spec": spec},
        stock_image=platform.cluster_config or "/kube-scheduler" in f"/{before.image}",
        previous_arguments=before.arguments,
        apiserver=others.get("APIServer"),
        feature_gate=others.get("FeatureGate"),
        infrastructure=others.get("Infrastructure"),
        scheduler_profiles=profiles,
        scheduler_extenders=extenders,
        # A new agent is called once it runs.
        planned=True,
        # Whoever is to run one that is not for the control plane: it is none of its profiles.
        schedulers=frozenset(
            str((one.get("spec") or {}).get("scheduler") or "")
            for one in (*(profiles or ()), *(extenders or ()))
        ),
        serving_certificate=any("--tls-cert-file" in each for each in before.arguments),
    )


def _composed(inputs: Inputs) -> Composition:
    from ...controlplane.compose import compose

    composition = compose(inputs)
    if composition.blocking:
        reasons = [finding.text for finding in composition.findings if finding.blocking]
        raise common.CommandError(
            f"nothing would be rolled out: {reasons[0]}; `validate` has all that is wrong"
        )
    return composition
