"""Validation of SchedulerExtenders.

Each is validated by itself and for conflicts with others, so that an error in one does not stop the
others. While its current spec has an error, the last accepted version stays in use. Schedulers call
extenders in the order of their names; a managed resource, the verb bind and a port belong to one
extender only, and the older object wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..base.findings import ERROR, WARNING, Finding, Problem
from ..base.images import EVERY_IMAGE, AllowedImages
from ..base.limits import EXTENDERS_BYTES
from ..base.objects import mapping
from ..base.spec_limits import TOO_LARGE, json_bytes, limit_problems
from ..model.attachment import (
    CONTROL_PLANE,
    EXTENDER,
    SPEC,
    ValidationResult,
    age_of,
    last_accepted,
    name_of,
    path_from,
    scheduler_of,
    schedulers_of,
    unattached,
    versions_for,
)
from ..schedulerconfig.target_scheduler import Target
from .entry import TAKEN_PORTS, EntryCheck, agent_of, agent_url, check_entry
from .permitted import refused_settings

TAKEN: Final = "AlreadyTaken"
CALLED_TWICE: Final = "CalledTwice"
FIRST_PORT: Final = 5401
"""The first automatic port; kube-safe-scheduler's manifests use it as well."""


@dataclass(frozen=True, slots=True)
class ExtenderResult(ValidationResult):
    """The result for one SchedulerExtender."""

    port: int = 0  # its agent's port; 0 without an agent
    # its entry of `extenders`; None if the scheduler must not call it, or not yet
    entry: Mapping[str, Any] | None = None

    @property
    def agent(self) -> Mapping[str, Any] | None:
        """The agent of the version in use, if it has one."""
        return agent_of(self.spec) if self.spec is not None else None


@dataclass(frozen=True, slots=True)
class ExtenderResults:
    """The results for the SchedulerExtenders of one scheduler."""

    # one for each object whose spec names the scheduler, by name
    results: tuple[ExtenderResult, ...] = ()
    # the objects that are moving to another scheduler, which has not accepted them yet
    leaving: tuple[ExtenderResult, ...] = ()

    @property
    def all(self) -> tuple[ExtenderResult, ...]:
        """Both, by name: the order of the scheduler's calls."""
        return tuple(sorted((*self.results, *self.leaving), key=lambda result: result.name))

    @property
    def entries(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of `extenders`."""
        return tuple(result.entry for result in self.all if result.entry is not None)


@dataclass(slots=True)
class _Taken:
    """What belongs to one extender of a scheduler only, with its owner, for messages.

    `bytes` has the size of each SchedulerExtender's entry.
    """

    resources: dict[str, str] = field(default_factory=dict)
    ports: dict[int, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    binder: str = ""
    bytes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def by(cls, extenders: Any, owner: str, ports: Iterable[int]) -> _Taken:
        """What the scheduler's other extenders have, whatever their types are."""
        taken = cls(ports=dict.fromkeys(ports, owner))
        for extender in extenders if isinstance(extenders, list | tuple) else ():
            taken.take(mapping(extender), owner)
        return taken

    def take(self, entry: Mapping[str, Any], owner: str) -> None:
        """Record what an extender has."""
        for resource in entry.get("managedResources") or ():
            self.resources.setdefault(str(mapping(resource).get("name")), owner)
        if entry.get("urlPrefix"):
            self.urls.setdefault(str(entry["urlPrefix"]).rstrip("/"), owner)
        if entry.get("bindVerb"):
            self.binder = self.binder or owner


@dataclass(frozen=True, slots=True)
class OwnExtenders:
    """The extenders that a scheduler has without SchedulerExtenders; they win conflicts."""

    entries: Any  # its entries of `extenders`, whatever their types are
    owner: str  # the object that has them, for messages
    ports: tuple[int, ...] = ()  # ports that are in use where the agents listen


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """The scheduler whose SchedulerExtenders are validated, and what its extenders have."""

    name: str  # its name in `spec.scheduler`
    target: Target  # the kube-scheduler that will read the configuration
    profiles: int  # the number of its profiles
    planned: bool  # whether to assume that agents run
    images: AllowedImages  # the images that agents may have
    taken: _Taken  # what its extenders have; grows with each one that is accepted
    reserved: Mapping[int, str]  # port -> the SchedulerExtender for which it was chosen before


def validate_extenders(
    scheduler: str,
    objects: Iterable[Mapping[str, Any]],
    own: OwnExtenders,
    target: Target,
    *,
    profiles: int = 1,
    planned: bool = False,
    images: AllowedImages = EVERY_IMAGE,
) -> ExtenderResults:
    """Validate the SchedulerExtenders of one scheduler.

    Args:
        scheduler: its name in `spec.scheduler`; "" for the control plane's.
        objects: SchedulerExtenders, also those of other schedulers.
        own: the scheduler's other extenders.
        target: the kube-scheduler that will read the configuration.
        profiles: the number of the scheduler's profiles.
        planned: whether to assume that agents run, for offline checks.
        images: the images that agents may have.
    """
    taken = _Taken.by(own.entries, own.owner, {*TAKEN_PORTS, *own.ports})
    mine = sorted((obj for obj in objects if scheduler in schedulers_of(obj)), key=age_of)
    # Ports that were chosen before are reserved before new ones are chosen.
    for obj in mine:  # versions that were accepted before stay in use
        if (accepted := last_accepted(obj)) is not None:
            taken.bytes[name_of(obj)] = _entry_bytes(accepted)
    reserved = {port: name_of(obj) for obj in reversed(mine) if (port := known_port(obj))}
    of = _Scheduler(scheduler, target, profiles, planned, images, taken, reserved)
    results: list[ExtenderResult] = []
    leaving: list[ExtenderResult] = []
    for obj in mine:
        stays = scheduler_of(mapping(obj.get("spec"))) == scheduler
        (results if stays else leaving).append(_choose(obj, of))
    return ExtenderResults(
        tuple(sorted(results, key=lambda result: result.name)),
        tuple(result for result in leaving if result.spec is not None),
    )


def unattached_extenders(
    objects: Iterable[Mapping[str, Any]], schedulers: Iterable[str]
) -> tuple[ExtenderResult, ...]:
    """Results of the SchedulerExtenders whose `spec.scheduler` names none of these schedulers."""
    return tuple(
        ExtenderResult(name_of(obj), False, (finding,), spec, port=known_port(obj))
        for obj, finding, spec in unattached(EXTENDER, objects, schedulers)
    )


def known_port(obj: Mapping[str, Any]) -> int:
    """The recorded port of an object's agent; 0 if none is recorded."""
    return int(mapping(mapping(obj.get("status")).get("agent")).get("port") or 0)


def ready_since(obj: Mapping[str, Any]) -> str:
    """When all of an object's agents were Ready for the first time; empty if they never were."""
    return str(mapping(mapping(obj.get("status")).get("agent")).get("readySince") or "")


def _choose(obj: Mapping[str, Any], of: _Scheduler) -> ExtenderResult:
    """The newest valid version of an object, with the errors of the others."""
    name = name_of(obj)
    findings: dict[str, Finding] = {}
    for root, spec in versions_for(of.name, obj):
        try:
            problems = tuple(_problems(obj, spec, of))
            asks = root == SPEC and not problems
            refused = tuple(refused_settings(spec, of.images)) if asks else ()
            problems = (*problems, *(each for each in refused if each.severity == ERROR))
            if not problems:
                before = tuple(findings.values())
                warnings = tuple(EXTENDER.warning(name, root, each) for each in refused)
                settled = ExtenderResult(name, root == SPEC, before, spec, warnings)
                return _in_use(settled, obj, of)
        except Exception as error:  # of this version only
            found = EXTENDER.defect(name, root, error)
            findings.setdefault(found.message, found)
            continue
        for problem in problems:
            where = path_from(root, problem)
            found = EXTENDER.finding(name, problem.reason, where, problem.sentence)
            findings.setdefault(found.message, found)
    return ExtenderResult(name, False, tuple(findings.values()))


def _in_use(settled: ExtenderResult, obj: Mapping[str, Any], of: _Scheduler) -> ExtenderResult:
    """`settled` with the port and the entry of its version, which are recorded as taken."""
    name, spec, taken = settled.name, settled.spec or {}, of.taken
    judgement = check_entry(name, spec, of.target, of.profiles)
    port = _port(obj, spec, taken, of.reserved) if agent_of(spec) is not None else 0
    entry = dict(judgement.entry)
    if port:
        entry["urlPrefix"] = agent_url(name, port)
        taken.ports[port] = _owner(name)
    taken.bytes[name] = json_bytes(entry)
    surprises = [*judgement.warnings, *_twice(entry, taken)]
    taken.take(entry, _owner(name))
    known = known_port(obj) == port and (of.name != CONTROL_PLANE or ready_since(obj))
    is_called = of.planned or not port or known
    return replace(
        settled,
        warnings=(
            *settled.warnings,
            *(EXTENDER.warning(name, settled.root, each) for each in surprises),
        ),
        port=port,
        entry=entry if is_called else None,
    )


def _problems(obj: Mapping[str, Any], spec: Mapping[str, Any], of: _Scheduler) -> Iterator[Problem]:
    """The errors of a version: its own, or else its conflicts with other extenders."""
    problems = limit_problems(spec)
    if problems:
        yield from problems
        return
    name = name_of(obj)
    judgement = check_entry(name, spec, of.target, of.profiles)
    if judgement.problems:
        yield from judgement.problems
        return
    others = sum(size for owner, size in of.taken.bytes.items() if owner != name)
    size = others + json_bytes(judgement.entry)
    if size > EXTENDERS_BYTES and last_accepted(obj) != spec:
        message = (
            f"with it, the extenders of this scheduler have {size} bytes in its configuration, and "
            f"the limit is {EXTENDERS_BYTES}; use tls.caFile instead of tls.caData, or shorten it"
        )
        yield Problem(TOO_LARGE, (), message)
    yield from _clashes(name, spec, judgement, of.taken)


def _clashes(
    name: str, spec: Mapping[str, Any], judgement: EntryCheck, taken: _Taken
) -> Iterator[Problem]:
    """Conflicts with extenders that have a resource, the verb bind or a port already."""
    for index, resource in enumerate(spec.get("managedResources") or ()):
        owner = taken.resources.get(str(resource["name"]))
        if owner:
            message = f'{owner} already manages "{resource["name"]}"; remove it from one of them'
            yield Problem(TAKEN, ("managedResources", index, "name"), message)
    if judgement.entry.get("bindVerb") and taken.binder:
        agent = agent_of(spec) is not None
        path = ("agent", "verbs", "bind") if agent else ("verbs", "bind")
        message = f"{taken.binder} already binds, and only one extender can; disable bind in one"
        yield Problem(TAKEN, path, message)
    port = int(mapping(agent_of(spec)).get("port") or 0)
    owner = taken.ports.get(port) if port else None
    if owner and owner != _owner(name):
        message = f"port {port} is used by {owner}; use another port, or 0"
        yield Problem(TAKEN, ("agent", "port"), message)


def _entry_bytes(spec: Mapping[str, Any]) -> int:
    """At least what the entry of a spec takes, without validation."""
    large = {key: spec[key] for key in ("tls", "managedResources", "url") if key in spec}
    return 0 if limit_problems(spec) else json_bytes(large) + 512


def _twice(entry: Mapping[str, Any], taken: _Taken) -> Iterator[Problem]:
    owner = taken.urls.get(str(entry.get("urlPrefix")))
    if owner:
        message = f"{owner} has an extender with the same URL, which is called twice; remove one"
        yield Problem(CALLED_TWICE, ("url",), message, severity=WARNING)


def _port(
    obj: Mapping[str, Any], spec: Mapping[str, Any], taken: _Taken, reserved: Mapping[int, str]
) -> int:
    """The agent's port: from the spec, otherwise the recorded one, otherwise the first free one."""
    asked = int(mapping(agent_of(spec)).get("port") or 0)
    known = known_port(obj)
    if asked:
        return asked
    if known and known not in taken.ports:
        return known
    port = FIRST_PORT
    while port in taken.ports or reserved.get(port, name_of(obj)) != name_of(obj):
        port += 1
    return port


def _owner(name: str) -> str:
    return f'SchedulerExtender "{name}"'
