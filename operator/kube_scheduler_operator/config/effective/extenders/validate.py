"""Validation of SchedulerExtenders.

Each is validated by itself and for conflicts with others, so that an error in one does not stop the
others. While its current spec has an error, the last accepted version stays in use. Schedulers call
extenders in the order of their names. A managed resource, the verb bind and a port belong to only
one extender, that of the older object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ....base.findings import ERROR, WARNING, Finding, Problem
from ....base.limits import EXTENDERS_BYTES
from ....base.objects import mapping
from ....base.spec_limits import TOO_LARGE, json_bytes, limit_problems
from ...language.plugins.target_scheduler import Target
from ..attachment import (
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
from ..facts import Facts
from .agent import missing_load_policy, refused_settings
from .entry import TAKEN_PORTS, EntryCheck, agent_of, agent_url, check_entry

TAKEN: Final = "AlreadyTaken"
CALLED_TWICE: Final = "CalledTwice"
FIRST_PORT: Final = 5401
"""The first automatic port; kube-safe-scheduler's manifests use it as well."""


@dataclass(frozen=True, slots=True)
class ExtenderResult(ValidationResult):
    port: int = 0  # its agent's port; 0 without an agent
    # its entry of `extenders`; None if the scheduler must not call it, or not yet
    entry: Mapping[str, Any] | None = None

    @property
    def agent(self) -> Mapping[str, Any] | None:
        return agent_of(self.spec) if self.spec is not None else None


@dataclass(frozen=True, slots=True)
class ExtenderResults:
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
        return tuple(result.entry for result in self.all if result.entry is not None)


@dataclass(slots=True)
class _Taken:
    """What belongs to only one extender of a scheduler, with its owner, for messages."""

    resources: dict[str, str] = field(default_factory=dict)
    ports: dict[int, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    binder: str = ""
    bytes: dict[str, int] = field(default_factory=dict)  # SchedulerExtender -> size of its entry

    @classmethod
    def by(cls, extenders: Any, owner: str, ports: Iterable[int]) -> _Taken:
        """Record what the scheduler's other extenders have, whatever their types are."""
        taken = cls(ports=dict.fromkeys(ports, owner))
        for extender in extenders if isinstance(extenders, list | tuple) else ():
            taken.take(mapping(extender), owner)
        return taken

    def take(self, entry: Mapping[str, Any], owner: str) -> None:
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
    """The scheduler whose SchedulerExtenders are validated; see `validate_extenders`."""

    name: str
    target: Target
    profiles: int
    facts: Facts
    taken: _Taken  # grows with each accepted extender
    reserved: Mapping[int, str]  # port -> the SchedulerExtender for which it was chosen before


def validate_extenders(
    scheduler: str,
    objects: Iterable[Mapping[str, Any]],
    own: OwnExtenders,
    target: Target,
    facts: Facts,
    *,
    profiles: int = 1,
) -> ExtenderResults:
    """Validate the SchedulerExtenders of one scheduler.

    `scheduler` is its name in `spec.scheduler`, "" for the control plane's; `objects` may have
    those of other schedulers; `profiles` is the number of its profiles.
    """
    taken = _Taken.by(own.entries, own.owner, {*TAKEN_PORTS, *own.ports})
    mine = sorted((obj for obj in objects if scheduler in schedulers_of(obj)), key=age_of)
    for obj in mine:  # versions that were accepted before stay in use
        if (accepted := last_accepted(obj)) is not None:
            taken.bytes[name_of(obj)] = _entry_bytes(accepted)
    # Ports that were chosen before are reserved before new ones are chosen.
    reserved = {port: name_of(obj) for obj in reversed(mine) if (port := known_port(obj))}
    caller = _Scheduler(scheduler, target, profiles, facts, taken, reserved)
    results: list[ExtenderResult] = []
    leaving: list[ExtenderResult] = []
    for obj in mine:
        stays = scheduler_of(mapping(obj.get("spec"))) == scheduler
        (results if stays else leaving).append(_choose(obj, caller))
    return ExtenderResults(
        tuple(sorted(results, key=lambda result: result.name)),
        tuple(result for result in leaving if result.spec is not None),
    )


def unattached_extenders(
    objects: Iterable[Mapping[str, Any]], schedulers: Iterable[str]
) -> tuple[ExtenderResult, ...]:
    """Report the SchedulerExtenders whose `spec.scheduler` names none of these schedulers."""
    return tuple(
        ExtenderResult(name_of(obj), False, (finding,), spec, port=known_port(obj))
        for obj, finding, spec in unattached(EXTENDER, objects, schedulers)
    )


def known_port(obj: Mapping[str, Any]) -> int:
    """Return the recorded port of an object's agent; 0 if none is recorded."""
    return int(mapping(mapping(obj.get("status")).get("agent")).get("port") or 0)


def ready_since(obj: Mapping[str, Any]) -> str:
    """Return when all agents of an object were first Ready; empty if they never were."""
    return str(mapping(mapping(obj.get("status")).get("agent")).get("readySince") or "")


def _choose(obj: Mapping[str, Any], caller: _Scheduler) -> ExtenderResult:
    """Choose the newest valid version of an object; report the errors of the others."""
    name = name_of(obj)
    agent_images = caller.facts.permissions.agent_images
    findings: dict[str, Finding] = {}
    for root, spec in versions_for(caller.name, obj):
        try:
            problems = tuple(_problems(obj, spec, caller))
            checks_settings = root == SPEC and not problems
            refused = tuple(refused_settings(spec, agent_images)) if checks_settings else ()
            problems = (*problems, *(p for p in refused if p.severity == ERROR))
            if not problems:
                before = tuple(findings.values())
                warnings = tuple(EXTENDER.as_warning(name, root, warning) for warning in refused)
                settled = ExtenderResult(name, root == SPEC, before, spec, warnings)
                return _in_use(settled, obj, caller)
        except Exception as error:  # of this version only
            finding = EXTENDER.defect(name, root, error)
            findings.setdefault(finding.message, finding)
            continue
        for problem in problems:
            where = path_from(root, problem)
            finding = EXTENDER.finding(name, problem.reason, where, problem.sentence)
            findings.setdefault(finding.message, finding)
    return ExtenderResult(name, False, tuple(findings.values()))


def _in_use(settled: ExtenderResult, obj: Mapping[str, Any], caller: _Scheduler) -> ExtenderResult:
    """Add the port and the entry to `settled`, and record them as taken."""
    name, spec, taken = settled.name, settled.spec or {}, caller.taken
    judgement = check_entry(name, spec, caller.target, caller.profiles)
    port = _port(obj, spec, taken, caller.reserved) if agent_of(spec) is not None else 0
    entry = dict(judgement.entry)
    if port:
        entry["urlPrefix"] = agent_url(name, port)
        taken.ports[port] = _owner(name)
    taken.bytes[name] = json_bytes(entry)
    warnings = [*judgement.warnings, *_twice(entry, taken)]
    if caller.facts.load_policies is not None:
        warnings += missing_load_policy(spec, caller.facts.load_policies, "does not exist, so")
    taken.take(entry, _owner(name))
    known = known_port(obj) == port and (caller.name != CONTROL_PLANE or ready_since(obj))
    is_called = caller.facts.planned or not port or known
    return replace(
        settled,
        warnings=(
            *settled.warnings,
            *(EXTENDER.as_warning(name, settled.root, warning) for warning in warnings),
        ),
        port=port,
        entry=entry if is_called else None,
    )


def _problems(
    obj: Mapping[str, Any], spec: Mapping[str, Any], caller: _Scheduler
) -> Iterator[Problem]:
    """Find the errors of a version: its own, or else its conflicts with other extenders."""
    problems = limit_problems(spec)
    if problems:
        yield from problems
        return
    name = name_of(obj)
    judgement = check_entry(name, spec, caller.target, caller.profiles)
    if judgement.problems:
        yield from judgement.problems
        return
    others = sum(size for owner, size in caller.taken.bytes.items() if owner != name)
    size = others + json_bytes(judgement.entry)
    if size > EXTENDERS_BYTES and last_accepted(obj) != spec:
        message = (
            f"with it, the extenders of this scheduler have {size} bytes in its configuration, and "
            f"the limit is {EXTENDERS_BYTES}; use tls.caFile instead of tls.caData, or shorten it"
        )
        yield Problem(TOO_LARGE, (), message)
    yield from _clashes(name, spec, judgement, caller)


def _clashes(
    name: str, spec: Mapping[str, Any], judgement: EntryCheck, caller: _Scheduler
) -> Iterator[Problem]:
    """Find conflicts with extenders that already have a resource, the verb bind or a port.

    An agent keeps the port at which it is called, also if an older object requests it.
    """
    taken = caller.taken
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
    holder = caller.reserved.get(port)
    owner = taken.ports.get(port) or (_owner(holder) if holder else None)
    if port and owner and owner != _owner(name):
        message = f"port {port} is used by {owner}; use another port, or 0"
        yield Problem(TAKEN, ("agent", "port"), message)


def _entry_bytes(spec: Mapping[str, Any]) -> int:
    """Estimate the size of the entry of a spec, without validation."""
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
    """Choose the agent's port: of the spec, otherwise as recorded, otherwise the first free one."""
    if requested := int(mapping(agent_of(spec)).get("port") or 0):
        return requested
    if (known := known_port(obj)) and known not in taken.ports:
        return known
    port = FIRST_PORT
    while port in taken.ports or reserved.get(port, name_of(obj)) != name_of(obj):
        port += 1
    return port


def _owner(name: str) -> str:
    return f'SchedulerExtender "{name}"'
