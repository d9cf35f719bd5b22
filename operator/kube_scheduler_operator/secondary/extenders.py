"""The SchedulerExtenders that a SecondaryScheduler calls, beside those that it names itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object, mapping
from ..extenders.attribution import attribute_extenders
from ..extenders.validate import Chosen, ExtenderVerdict, extenders_of
from ..model.attachment import Refusal
from ..schedulerconfig.check import Target
from ..schedulerconfig.merge import plain
from .compose import PORT
from .request import Request

EXTENDERS: Final = "extenders"


@dataclass(frozen=True, slots=True)
class GivenExtenders:
    """What SchedulerExtenders come to for one SecondaryScheduler.

    Attributes:
        chosen: what became of each.
        findings: what holds the SecondaryScheduler back.
    """

    chosen: Chosen = field(default_factory=Chosen)
    findings: tuple[Finding, ...] = ()

    @property
    def entries(self) -> tuple[Mapping[str, Any], ...]:
        """Those that it is to call, in order, as its configuration has them."""
        return self.chosen.entries


NO_EXTENDERS: Final = GivenExtenders()


def given_extenders(
    request: Request,
    obj: Object,
    objects: Iterable[Object] | None,
    target: Target,
    *,
    profiles: int,
    planned: bool = False,
) -> GivenExtenders:
    """What SchedulerExtenders come to.

    Args:
        request: the SecondaryScheduler.
        obj: the same, as read: its status says what it runs.
        objects: SchedulerExtenders, all that are or were meant for it among them; None: the API
            does not serve the kind.
        target: the kube-scheduler that will read them.
        profiles: how many profiles it has.
        planned: whether to take agents for running.
    """
    if objects is None:
        return GivenExtenders(findings=_not_served(obj))
    chosen = extenders_of(
        request.name,
        objects,
        request.config.get(EXTENDERS),
        target,
        itself=f'SecondaryScheduler "{request.name}" itself',
        ports=(PORT, *_ports(request)),
        profiles=profiles,
        planned=planned,
    )
    return GivenExtenders(chosen)


def with_extenders(request: Request, given: GivenExtenders) -> Request:
    """`request` with what SchedulerExtenders come to."""
    called, agents = asked_for(given)
    return replace(request, called=tuple(called), agents=tuple(agents))


def asked_for(
    given: GivenExtenders,
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """(entries of the configuration, agents that run beside the scheduler), as plain data."""
    agents: list[Mapping[str, Any]] = [
        {"name": verdict.name, "spec": plain(verdict.agent), "port": verdict.port}
        for verdict in given.chosen.all
        if verdict.agent is not None and verdict.entry is not None
    ]
    return [plain(entry) for entry in given.entries], agents


def blamed(
    verdicts: tuple[ExtenderVerdict, ...], refusal: Refusal | None
) -> tuple[ExtenderVerdict, ...]:
    """The verdicts of a SecondaryScheduler's SchedulerExtenders, with what is said of them."""
    if refusal is None:
        return verdicts
    refused = refusal.config.get(EXTENDERS)
    return attribute_extenders(verdicts, refusal.words, refused, refusal.state)


def _ports(request: Request) -> Iterator[int]:
    """Those that further containers of the pods say they have."""
    for sidecar in request.sidecars:
        for port in sidecar.get("ports") or ():
            number = mapping(port).get("containerPort")
            if isinstance(number, int):
                yield number


def _not_served(obj: Object) -> tuple[Finding, ...]:
    """An API that does not serve the kind any more takes no extender from a scheduler."""
    running = mapping(obj.get("status")).get(EXTENDERS) or ()
    if not running:
        return ()
    message = (
        f"the API does not serve this kind, from which {', '.join(map(str, running))} came, so the "
        "schedulers stay as they are; install it: kubectl apply --server-side -k crds"
    )
    return (Finding(names.DEGRADED, "KindNotServed", "SchedulerExtender", message, blocking=True),)
