"""SchedulerExtenders: extenders of kube-scheduler that people keep as objects of their own.

Each is judged by itself and against what others have already, so that a mistake in one does not
stop the others. One that is not accepted is held at the version that was accepted last, which its
status remembers. Schedulers call them in the order of their names; where only one can have
something (a managed resource, the verb bind, a port), the older object has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.findings import WARNING, Finding, Problem
from ..base.objects import mapping
from ..model.attachment import (
    CONTROL_PLANE,
    EXTENDER,
    SPEC,
    Judged,
    age_of,
    name_of,
    path_from,
    scheduler_of,
    schedulers_of,
    unattached,
    versions_for,
)
from ..schedulerconfig.target import Target
from .entry import TAKEN_PORTS, Judgement, agent_of, agent_url, judge

TAKEN: Final = "AlreadyTaken"
CALLED_TWICE: Final = "CalledTwice"
FIRST_PORT: Final = 5401
"""Where the ports begin that are chosen; it is the one that kube-safe-scheduler's manifests use."""


@dataclass(frozen=True, slots=True)
class ExtenderVerdict(Judged):
    """What became of one SchedulerExtender.

    Attributes:
        port: of its agent; 0: it has none.
        entry: of `extenders` of the configuration; None: nothing is to be called, or not yet.
    """

    port: int = 0
    entry: Mapping[str, Any] | None = None

    @property
    def agent(self) -> Mapping[str, Any] | None:
        """The agent that is to run for it, if there is one."""
        return agent_of(self.spec) if self.spec is not None else None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What becomes of the SchedulerExtenders of one scheduler.

    Attributes:
        verdicts: one for each object that is meant for it, by name.
        leaving: those that are meant for another one now, which has not accepted them yet.
    """

    verdicts: tuple[ExtenderVerdict, ...] = ()
    leaving: tuple[ExtenderVerdict, ...] = ()

    @property
    def all(self) -> tuple[ExtenderVerdict, ...]:
        """Both, by name: the order in which the scheduler calls them."""
        return tuple(sorted((*self.verdicts, *self.leaving), key=lambda verdict: verdict.name))

    @property
    def entries(self) -> tuple[Mapping[str, Any], ...]:
        """Of `extenders` of the configuration."""
        return tuple(verdict.entry for verdict in self.all if verdict.entry is not None)


@dataclass(slots=True)
class _Taken:
    """What only one extender of a scheduler can have: whose it is, for messages."""

    resources: dict[str, str] = field(default_factory=dict)
    ports: dict[int, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    binder: str = ""

    @classmethod
    def by(cls, extenders: Any, owner: str, ports: Iterable[int]) -> _Taken:
        """What extenders have that the scheduler is given anyway, whatever they look like."""
        taken = cls(ports=dict.fromkeys(ports, owner))
        for extender in extenders if isinstance(extenders, list | tuple) else ():
            taken.take(mapping(extender), owner)
        return taken

    def take(self, entry: Mapping[str, Any], owner: str) -> None:
        """Write down what an extender has."""
        for resource in entry.get("managedResources") or ():
            self.resources.setdefault(str(mapping(resource).get("name")), owner)
        if entry.get("urlPrefix"):
            self.urls.setdefault(str(entry["urlPrefix"]).rstrip("/"), owner)
        if entry.get("bindVerb"):
            self.binder = self.binder or owner


def extenders_of(
    scheduler: str,
    objects: Iterable[Mapping[str, Any]],
    own: Any,
    target: Target,
    *,
    itself: str,
    ports: Iterable[int] = (),
    profiles: int = 1,
    planned: bool = False,
) -> Chosen:
    """What becomes of the SchedulerExtenders of one scheduler.

    Args:
        scheduler: its name in `spec.scheduler`; empty: the control plane's.
        objects: SchedulerExtenders, also those of other schedulers, as read.
        own: the extenders that it has beside them, which come first when something is taken.
        target: the kube-scheduler that will read them.
        itself: whose `own` are, for messages.
        ports: those that are taken where the agents listen.
        profiles: how many profiles the scheduler has.
        planned: whether to take agents for running, as it will be some time after the objects were
            made.
    """
    taken = _Taken.by(own, itself, {*TAKEN_PORTS, *ports})
    mine = sorted((obj for obj in objects if scheduler in schedulers_of(obj)), key=age_of)
    # A port that was chosen once is its owner's before others may choose.
    reserved = {port: name_of(obj) for obj in reversed(mine) if (port := known_port(obj))}
    verdicts: list[ExtenderVerdict] = []
    leaving: list[ExtenderVerdict] = []
    for obj in mine:
        verdict = _choose(obj, scheduler, taken, reserved, target, profiles, planned=planned)
        stays = scheduler_of(mapping(obj.get("spec"))) == scheduler
        (verdicts if stays else leaving).append(verdict)
    return Chosen(
        tuple(sorted(verdicts, key=lambda verdict: verdict.name)),
        tuple(verdict for verdict in leaving if verdict.spec is not None),
    )


def unclaimed_extenders(
    objects: Iterable[Mapping[str, Any]], schedulers: Iterable[str]
) -> tuple[ExtenderVerdict, ...]:
    """Verdicts of the SchedulerExtenders whose `spec.scheduler` names none of these schedulers."""
    return tuple(
        ExtenderVerdict(
            name_of(each.obj), False, (each.finding,), each.spec, port=known_port(each.obj)
        )
        for each in unattached(EXTENDER, objects, schedulers)
    )


def known_port(obj: Mapping[str, Any]) -> int:
    """The port that was chosen for an object's agent; 0: none yet."""
    return int(mapping(mapping(obj.get("status")).get("agent")).get("port") or 0)


def ready_since(obj: Mapping[str, Any]) -> str:
    """When all of an object's agents were Ready for the first time; empty: never yet."""
    return str(mapping(mapping(obj.get("status")).get("agent")).get("readySince") or "")


def _choose(
    obj: Mapping[str, Any],
    scheduler: str,
    taken: _Taken,
    reserved: Mapping[int, str],
    target: Target,
    profiles: int,
    *,
    planned: bool,
) -> ExtenderVerdict:
    """The newest version of an object that can run, with what is wrong with others."""
    name = name_of(obj)
    findings: dict[str, Finding] = {}
    for root, spec in versions_for(scheduler, obj):
        judgement = judge(name, spec, target, profiles)
        problems = judgement.problems or tuple(_clashes(name, spec, judgement, taken))
        for problem in problems:
            where = path_from(root, problem)
            found = EXTENDER.finding(name, problem.reason, where, problem.sentence)
            findings.setdefault(found.message, found)
        if problems:
            continue
        port = _port(obj, spec, taken, reserved) if agent_of(spec) is not None else 0
        entry = dict(judgement.entry)
        if port:
            entry["urlPrefix"] = agent_url(name, port)
            taken.ports[port] = _owner(name)
        surprises = [*judgement.warnings, *_twice(entry, taken)]
        taken.take(entry, _owner(name))
        known = known_port(obj) == port and (scheduler != CONTROL_PLANE or ready_since(obj))
        is_called = planned or not port or known
        return ExtenderVerdict(
            name,
            root == SPEC,
            tuple(findings.values()),
            spec,
            tuple(EXTENDER.warning(name, root, each) for each in surprises),
            port,
            entry if is_called else None,
        )
    return ExtenderVerdict(name, False, tuple(findings.values()))


def _clashes(
    name: str, spec: Mapping[str, Any], judgement: Judgement, taken: _Taken
) -> Iterator[Problem]:
    """What others have already that only one can have."""
    for index, resource in enumerate(spec.get("managedResources") or ()):
        owner = taken.resources.get(str(resource["name"]))
        if owner:
            message = f'{owner} manages "{resource["name"]}" already; remove it from one of them'
            yield Problem(TAKEN, ("managedResources", index, "name"), message)
    if judgement.entry.get("bindVerb") and taken.binder:
        agent = agent_of(spec) is not None
        path = ("agent", "verbs", "bind") if agent else ("verbs", "bind")
        message = f"{taken.binder} binds already, and only one extender may; turn it off in one"
        yield Problem(TAKEN, path, message)
    port = int(mapping(agent_of(spec)).get("port") or 0)
    owner = taken.ports.get(port) if port else None
    if owner and owner != _owner(name):
        message = f"port {port} is taken by {owner}; use another one, or 0"
        yield Problem(TAKEN, ("agent", "port"), message)


def _twice(entry: Mapping[str, Any], taken: _Taken) -> Iterator[Problem]:
    owner = taken.urls.get(str(entry.get("urlPrefix")))
    if owner:
        message = f"{owner} has an extender of the same URL, so it is called twice; remove one"
        yield Problem(CALLED_TWICE, ("url",), message, severity=WARNING)


def _port(
    obj: Mapping[str, Any], spec: Mapping[str, Any], taken: _Taken, reserved: Mapping[int, str]
) -> int:
    """Where its agent listens: as asked for, else as chosen once, else the first that is free."""
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
