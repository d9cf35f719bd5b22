"""One run: kube-scheduler over a world, fed with pods until all are decided."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import orjson

from ..base.progress import Step, step
from ..kube.resource import Resource
from .api_server import Verb, WorldServer
from .configuration import SPY, simulated, spying_extender
from .controllers import Controllers
from .decisions import (
    GATED,
    NO_SCHEDULER,
    NOT_ELIGIBLE,
    NOT_SIMULATED,
    NOT_TRIED,
    SCORE_FLAGS,
    UNSCHEDULABLE,
    PodDecision,
    ScoreLog,
    is_outdated,
    scheduled_condition,
)
from .device_claims import users_of_claims, without_users
from .extenders import InProcessExtenders
from .image_names import with_images_of
from .kinds import (
    CLAIMS,
    IMPOSSIBLE,
    PODS,
    RESOURCE_CLAIMS,
    VOLUMES,
    Object,
    new_object,
    pod_name,
)
from .nominations import Nominations, nominated
from .pod_groups import group_name
from .process import KubeSchedulerProcess, SimulationError
from .retries import Retries
from .run_options import (
    RunOptions,
    ServingScheduler,
    gates_of,
    has_unknown_plugins,
    names_of,
    serving,
)
from .store import WorldStore
from .world import World

_TAKEN: Final = {
    CLAIMS: b'"volumeName"',
    VOLUMES: b'"claimRef"',
    RESOURCE_CLAIMS: b'"allocation"',
}
"""The kinds of what a placed pod takes besides room, each with the field that shows it."""
_LONGEST_MESSAGE: Final = 64 * 1024
"""Characters that are kept of kube-scheduler's message about a pod: it may name thousands of
resources."""
_QUIET_AFTER_PREEMPTION: Final = 3.0
"""Seconds without a decision after which waiting pods count as final."""
_QUIET_WITH_PENDING: Final = 1.2
"""The same after a claim changed or a pod was placed that others follow, and for groups: waiting
pods are tried again after a back-off of a second."""
_IDLE: Final = 1.0
"""Seconds without a decision after which a sentinel asks whether pods are tried at all."""
_BACK_OFFS: Final = 2
"""Rounds of sentinels before those that count, for pods of groups: a pod that came while its group
was tried waits for the group's back-off of a second, which kube-scheduler looks at each second."""
_POLL: Final = 0.01
_POLL_OF_A_POD: Final = 0.0001
_READS: Final = 5.0
"""Seconds within which kube-scheduler has usually listed Pods."""
_LAST_CONNECTIONS: Final = 0.02
"""Seconds in which the API server accepts connections that were made just before the end."""
_GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
_SENTINEL: Final = f"{IMPOSSIBLE}sentinel"
_NOTHING: Final = "simulation.invalid/nothing"
"""A resource that no node has."""
_LOWEST_PRIORITY: Final = -(2**31)


@dataclass(frozen=True, slots=True, eq=False)
class _Scheduler:
    """A kube-scheduler that was started."""

    process: KubeSchedulerProcess
    names: frozenset[str]  # the schedulerNames of its profiles


class Run:
    """The kube-schedulers over a world, as an asynchronous context manager.

    That of the options starts at once, another one with the first pod that it serves. Pods of the
    world without a node are left out, except for the room that nominated ones hold; `schedule`
    takes those that matter. With `only`, it takes none that has an image of its own besides these.
    """

    def __init__(
        self, world: World, options: RunOptions, only: Sequence[Object] | None = None
    ) -> None:
        self.decisions: dict[str, PodDecision] = {}  # by namespace/name
        self._options = options
        self._scores = ScoreLog()
        if only is not None and not has_unknown_plugins(options):
            self._store = WorldStore(partial(with_images_of, world, only))
        else:
            self._store = WorldStore(world)
        self._nominations = Nominations(self._store, world)
        self._controllers = Controllers(self._store)
        self._clock = time.time
        if options.now is not None:
            behind = time.time() - options.now
            self._clock = lambda: time.time() - behind
        self._api = WorldServer(self._store, self, self._clock)
        # A SchedulerExtender is that of one scheduler.
        extenders = (*options.extenders, *(e for other in options.others for e in other.extenders))
        self._extenders = {extender.name: extender for extender in extenders}
        chosen = tuple(self._extenders.values())
        self.extenders = InProcessExtenders(chosen, self._store, self._clock)
        self._schedulers: list[_Scheduler] = []  # those that were started
        self._queues: dict[str, _Scheduler] = {}  # namespace/name of fed pods -> who decides
        self._grouped: set[str] = set()  # namespace/name of fed pods that name a group
        self._retries = Retries(options)
        self._following: set[str] = set()  # fed pods that may be tried again when one is placed
        self._undecided: set[str] = set()  # namespace/name of the pods that are waited for
        self._all_decided = asyncio.Event()
        self._changed = time.monotonic()
        self._deadline = self._changed + options.seconds
        # (namespace/name, node) of all pods that were preempted
        self.preempted: list[tuple[str, str]] = []
        self._given: dict[str, str] = {}  # namespace/name of fed pods -> their nomination
        self._sentinels = 0
        self._probes = 0
        self._is_bound = False  # whether any pod was bound to a node
        self._is_changed = False  # whether kube-scheduler wrote more than pods for a question
        self._at_start: Mapping[Any, Any] = {}  # the objects when the first question is asked

    async def __aenter__(self) -> Run:
        """Start everything.

        Raises:
            SimulationError: kube-scheduler does not start.
        """
        await self._api.start()
        try:
            await self._start(replace(self._options, others=()))
        except BaseException:
            await self._stop()
            raise
        self._at_start = self._store.snapshot()
        return self

    async def reads(self) -> None:
        """Wait until kube-scheduler decodes the Pods: until then, the API server is to be quick.

        It does nothing else for some time then, and this process may.
        """
        ended = [asyncio.ensure_future(each.process.ended.wait()) for each in self._schedulers]
        sent = asyncio.ensure_future(self._api.sent_pods.wait())
        await asyncio.wait((sent, *ended), timeout=_READS, return_when=asyncio.FIRST_COMPLETED)
        for future in (sent, *ended):
            future.cancel()

    @property
    def is_as_new(self) -> bool:
        """Whether a question would get the same answer from a new run."""
        changed = self.preempted or self.decisions or self._is_bound
        return not changed and self._store.snapshot() == self._at_start

    @property
    def is_taken(self) -> bool:
        """Whether volumes or devices are taken that were not at the start, by forgotten pods too.

        The controllers that would free them are not simulated.
        """
        now = self._store.snapshot()
        for resource, field in _TAKEN.items():
            kind = (resource.group, resource.plural)
            start = self._at_start.get(kind, {})
            for key, content in now.get(kind, {}).items():
                if field in content and content != start.get(key):
                    return True
        return False

    def renew(self) -> None:
        """Begin the time for another question."""
        self._changed = time.monotonic()
        self._deadline = self._changed + self._options.seconds

    async def _start(self, options: RunOptions) -> None:
        """Start a kube-scheduler.

        Raises:
            SimulationError: it does not start.
        """
        extenders = []
        for extender in options.extenders:
            handlers = self.extenders.handlers(extender.name)
            verbs = [(verb, self._unless_probed(handler)) for verb, handler in handlers]
            url = self._api.add_extender(extender.name, verbs)
            extenders.append(extender.entry_at(url))
        if options.probes:  # last, so that it sees what all others accept
            url = self._api.add_extender(SPY, [("filter", self._spy)])
            extenders.append(spying_extender(url, last=bool(extenders)))
        own = frozenset(names_of(options.config))
        holding = self._nominations.profiles(options.config, own, partial(gates_of, options))
        config = simulated(options.config, [*options.profiles, *holding], extenders)
        flags = [*options.flags, *(SCORE_FLAGS if options.scores else ())]
        process = KubeSchedulerProcess(options.binary, self._scores.take)
        probing = (str(profile["schedulerName"]) for profile in options.profiles)
        names = own.union(probing)
        self._schedulers.append(_Scheduler(process, names))
        with step("starting kube-scheduler"):
            await process.start(config, self._api.url, flags)

    async def __aexit__(self, *_error: object) -> None:
        """End kube-scheduler, whatever happened."""
        await self._stop()

    async def _stop(self) -> None:
        self.extenders.close()
        await asyncio.shield(self._stop_both())

    async def _stop_both(self) -> None:
        try:
            ends = (scheduler.process.stop() for scheduler in self._schedulers)
            await asyncio.gather(*ends, asyncio.sleep(_LAST_CONNECTIONS))
        finally:
            await self._api.stop()

    @property
    def notes(self) -> list[str]:
        """What was special in this run."""
        return [
            f"kube-scheduler also reads {name}, of which the world has none"
            for name in sorted(self._api.unknown)
        ]

    async def schedule(
        self, pods: Iterable[Object], *, settle: bool = True
    ) -> dict[str, PodDecision]:
        """Let kube-scheduler decide about pods, nominated ones first; by namespace/name.

        With `settle`, wait until waiting pods are not tried again, e.g. after a preemption.

        Raises:
            SimulationError: kube-scheduler ended, or the time is over.
        """
        fed = []
        self._is_changed = False
        # Before others are tried, nominated ones hold their room themselves.
        for pod in sorted(pods, key=lambda pod: not nominated(pod)):
            prepared = orjson.loads(orjson.dumps(pod))
            scheduler = await self._scheduler_of(pod["spec"].get("schedulerName") or "")
            status = prepared.setdefault("status", {})
            status.pop("conditions", None)  # kube-scheduler only writes a condition that changes
            self._nominations.release(prepared)
            self._controllers.prepare(prepared)
            key = pod_name(prepared)
            self.decisions[key] = PodDecision(key)
            self._given[key] = nominated(prepared)
            fed.append(key)
            self._store.put(PODS, prepared)
            if group_name(prepared) is not None:
                self._grouped.add(key)
            if self._retries.follow(prepared):
                self._following.add(key)
            if prepared["spec"].get("schedulingGates"):
                # The API server sets this condition when the pod is created.
                self.decisions[key].reason, self.decisions[key].message = GATED, _GATED
            elif isinstance(scheduler, ServingScheduler):
                self.decisions[key].reason = NOT_SIMULATED if scheduler.exists else NO_SCHEDULER
                self.decisions[key].message = scheduler.problem
            else:
                self._queues[key] = scheduler
        self._changed = time.monotonic()
        with step("asking kube-scheduler, which has decided about", len(fed), "Pods") as asking:
            await self._decided(fed, asking)
        if settle:
            await self.settle()
        decisions = {key: self.decisions[key] for key in fed}
        for key, decision in decisions.items():
            scores = self._scores.scores.get(key, {})
            decision.scores = {node: self._named(plugins) for node, plugins in scores.items()}
            decision.totals = self._scores.totals.get(key, {})
            on_node = decision.node or decision.nominated
            for victim, node in self.preempted:
                if decision.nominated and node == on_node and victim not in decision.preempted:
                    decision.preempted.append(victim)
            decision.preempted.sort()  # they are deleted at the same time
        return decisions

    async def _scheduler_of(self, name: str) -> _Scheduler | ServingScheduler:
        """Return the scheduler of a schedulerName, which is started if necessary.

        Raises:
            SimulationError: it does not start.
        """
        for scheduler in self._schedulers:
            if name in scheduler.names:
                return scheduler
        service = serving(self._options, name)
        if service.options is None:
            return service
        await self._start(service.options)
        return self._schedulers[-1]

    def by_scheduler(self, pods: Iterable[Object]) -> Iterable[list[Object]]:
        """Return pods by the scheduler that decides about them, in their order.

        Two schedulers do not see each other's latest decisions, so they decide one after the other.
        """
        titles: dict[str, str] = {}
        chosen: dict[str, list[Object]] = {}
        for pod in pods:
            name = pod["spec"].get("schedulerName") or ""
            if name not in titles:
                titles[name] = serving(self._options, name).title
            chosen.setdefault(titles[name], []).append(pod)
        return chosen.values()

    async def settle(self) -> None:
        """Wait until no pod that was fed is tried again.

        Raises:
            SimulationError: kube-scheduler ended, or the time is over.
        """
        while True:
            self._check_requests()
            waiting = [decision for decision in self.decisions.values() if not decision.node]
            if not waiting:
                return
            quiet = 0.0
            if any(self._preempts(each) or is_outdated(each) for each in waiting):
                quiet = _QUIET_AFTER_PREEMPTION
            elif self._grouped or self._is_changed or self._is_followed(waiting):
                quiet = _QUIET_WITH_PENDING
            # A process that gets no processor is quiet as well.
            if time.monotonic() - self._changed > quiet and await self._are_queues_empty(waiting):
                return
            self._check(len(waiting))
            await asyncio.sleep(_POLL)

    def _preempts(self, decision: PodDecision) -> bool:
        """Return whether the last attempt of a waiting pod may have preempted others."""
        if not decision.nominated:
            return False
        before = self._given.get(decision.pod)
        return decision.nominated != before or NOT_ELIGIBLE not in decision.message

    def _is_followed(self, waiting: Sequence[PodDecision]) -> bool:
        """Return whether a pod was placed that may make one of these schedulable."""
        if len(waiting) == len(self.decisions):
            return False
        return any(each.nominated or each.pod in self._following for each in waiting)

    async def _are_queues_empty(self, waiting: Iterable[PodDecision]) -> bool:
        """Return whether nothing is tried before sentinels, which come last in their queues."""
        changed = self._changed
        queues = {id(queue): queue for each in waiting if (queue := self._queues.get(each.pod))}
        sentinels = [self._feed_sentinel(queue).pod for queue in queues.values()]
        await self._decided(sentinels)
        self._forget_sentinels(sentinels)
        return self._changed == changed

    def next_number(self) -> int:
        """Return a number for the name of a probe: a name that is used again has a past."""
        self._probes += 1
        return self._probes

    def put(self, resource: Resource, obj: Object) -> None:
        self._store.put(resource, obj)

    def has(self, resource: Resource, name: str) -> bool:
        """Return whether an object without a namespace exists."""
        return self._store.get(resource, ("", name)) is not None

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        self._store.delete(resource, (namespace, name))

    def free_claims(self, pods: Iterable[Object]) -> list[Object]:
        """Take the devices off the claims that only these pods use; return those claims before."""
        before = []
        for namespace, name, users in users_of_claims(pods):
            claim = self._store.get(RESOURCE_CLAIMS, (namespace, name))
            freed = without_users(claim, users) if claim is not None else None
            if claim is not None and freed is not None:
                before.append(claim)
                self._store.put(RESOURCE_CLAIMS, freed)
        return before

    def forget(self, pods: Iterable[Object]) -> None:
        """Delete pods. What they took besides room stays taken: see `is_taken`."""
        for pod in pods:
            self.decisions.pop(pod_name(pod), None)
            self._queues.pop(pod_name(pod), None)
            self._given.pop(pod_name(pod), None)
            self._grouped.discard(pod_name(pod))
            self._following.discard(pod_name(pod))
            self._store.delete(PODS, (pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def release(self, pods: Iterable[Object]) -> None:
        """Take pods off their nodes, and free the room of nominated ones."""
        for pod in pods:
            self._nominations.release(pod)
            if pod["spec"].get("nodeName"):
                self.forget([pod])

    def hold(self, pods: Iterable[Object]) -> None:
        """Hold the room of nominated pods again."""
        self._nominations.hold(pods)

    async def _decided(self, fed: Sequence[str], asking: Step | None = None) -> None:
        waiting = set(fed)
        self._undecided = {key for key in fed if not self.decisions[key].decided}
        self._all_decided.clear()
        backing_off = _BACK_OFFS if any(key in self._grouped for key in fed) else 0
        sentinels: list[tuple[_Scheduler, PodDecision]] = []
        while True:
            waiting = {key for key in waiting if not self.decisions[key].decided}
            self._check(len(waiting))
            if asking is not None:
                asking.done = len(fed) - len(waiting)
            if not waiting:
                self._forget_sentinels(sentinel.pod for _, sentinel in sentinels)
                return
            if not sentinels and time.monotonic() - self._changed > _IDLE:
                asked = {id(self._queues[key]): self._queues[key] for key in waiting}
                sentinels = [(queue, self._feed_sentinel(queue)) for queue in asked.values()]
            # A sentinel comes last in its queue, so nothing else is in it.
            empty = [queue for queue, sentinel in sentinels if sentinel.decided]
            if backing_off and len(empty) == len(sentinels) > 0:
                backing_off -= 1
                self._forget_sentinels(sentinel.pod for _, sentinel in sentinels)
                sentinels, self._changed = [], time.monotonic()
                continue
            not_tried = [key for key in waiting if self._queues[key] in empty]
            for key in not_tried:
                self.decisions[key].reason = NOT_TRIED
            if not_tried:
                continue
            # Many pods take longer, and looking at all of them takes time from the API server.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_POLL, len(waiting) * _POLL_OF_A_POD)):
                    await self._all_decided.wait()

    def _check(self, waiting: int) -> None:
        """Raise SimulationError if nothing more can be learned from this run."""
        self._check_requests()
        for scheduler in self._schedulers:
            if scheduler.process.ended.is_set():
                raise SimulationError(f"kube-scheduler ended: {scheduler.process.failure()}")
            if refused := scheduler.process.undecodable():
                raise SimulationError(refused)
        if time.monotonic() > self._deadline:
            pods = "pod" if waiting == 1 else "pods"
            failures = "; ".join(scheduler.process.failure() for scheduler in self._schedulers)
            raise SimulationError(
                f"kube-scheduler has not decided about {waiting} {pods} within "
                f"{self._options.seconds:.0f} s; {failures}"
            )

    def _check_requests(self) -> None:
        """Raise SimulationError if kube-scheduler sent what it got no true answer to."""
        if self._api.problem:
            raise SimulationError(self._api.problem)

    def _feed_sentinel(self, scheduler: _Scheduler) -> PodDecision:
        """Feed a pod of the lowest priority that fits nowhere; return the decision about it."""
        self._sentinels += 1
        name = f"{_SENTINEL}-{self._sentinels}"
        key = f"default/{name}"
        decision = self.decisions[key] = PodDecision(key)
        self._queues[key] = scheduler
        spec = {
            "schedulerName": min(scheduler.names),
            "priority": _LOWEST_PRIORITY,
            "preemptionPolicy": "Never",
            # A profile may have no filter of one of them.
            "nodeSelector": {_SENTINEL: "true"},
            "containers": [
                {"name": "none", "image": "none", "resources": {"requests": {_NOTHING: "1"}}}
            ],
        }
        sentinel = new_object(PODS, name, "default", uid=name)
        self._store.put(PODS, {**sentinel, "spec": spec, "status": {"phase": "Pending"}})
        return decision

    def _forget_sentinels(self, keys: Iterable[str]) -> None:
        self.forget(
            {"metadata": {"namespace": namespace, "name": name}}
            for namespace, _, name in (key.partition("/") for key in keys)
        )

    def _named(self, scores: Mapping[str, int]) -> dict[str, int]:
        """Name scores by plugin and extender, with the weights of extenders."""
        weights = {name: extender.weight for name, extender in self._extenders.items()}
        named = {}
        for name, score in scores.items():
            _, own, extender = name.partition("/extenders/")
            if not own:
                named[name] = score
            elif extender in weights:
                named[f"extender {extender}"] = score * weights[extender]
        return named

    # --- what kube-scheduler writes -------------------------------------------------------------

    def bound(self, pod: Object, node: str) -> None:
        decision = self.decisions.get(pod_name(pod))
        self._changed = time.monotonic()
        self._is_bound = True
        if decision is not None:
            decision.node, decision.reason, decision.message = node, "", ""
            self._note(decision)

    def unschedulable(self, pod: Object) -> None:
        decision = self.decisions.get(pod_name(pod))
        if decision is None or decision.node:
            return
        if not pod["metadata"]["name"].startswith(_SENTINEL):
            self._changed = time.monotonic()
        condition = scheduled_condition(pod)
        if condition.get("status") == "False":
            decision.reason = condition.get("reason") or UNSCHEDULABLE
            decision.message = str(condition.get("message") or "")[:_LONGEST_MESSAGE]
        decision.nominated = nominated(pod)
        self._note(decision)

    def _note(self, decision: PodDecision) -> None:
        if decision.decided and decision.pod in self._undecided:
            self._undecided.remove(decision.pod)
            if not self._undecided:
                self._all_decided.set()

    def deleted(self, pod: Object) -> None:
        self._changed = time.monotonic()
        self.preempted.append((pod_name(pod), pod["spec"].get("nodeName") or ""))

    def changed(self) -> None:
        self._is_changed = True

    def event(self, event: Object) -> None:
        """Take an Event: that of a preemption names the pod that it made room for."""
        if event.get("reason") != "Preempted":
            return
        preemptor, victim = event.get("related") or {}, event.get("regarding") or {}
        decision = self.decisions.get(f"{preemptor.get('namespace')}/{preemptor.get('name')}")
        if decision is not None:
            decision.preempted.append(f"{victim.get('namespace')}/{victim.get('name')}")

    # --- extenders -----------------------------------------------------------------------------

    def _unless_probed(self, handler: Verb) -> Verb:
        """Return the handler, which accepts all nodes for probes that are not about extenders."""

        async def handle(body: bytes) -> tuple[int, bytes]:
            options = self._options
            args = orjson.loads(body) if options.probes else {}
            spec = (args.get("Pod") or {}).get("spec") or {}
            name = spec.get("schedulerName")
            if name not in options.probes:
                return await handler(body)
            if name not in options.extended:
                return 200, orjson.dumps({"NodeNames": args.get("NodeNames") or []})
            spec["schedulerName"] = options.probed
            return await handler(orjson.dumps(args))

        return handle

    # --- the extender that only looks -----------------------------------------------------------

    async def _spy(self, body: bytes) -> tuple[int, bytes]:
        args = orjson.loads(body)
        pod = args.get("pod") or args.get("Pod") or {}
        names = args.get("nodenames") or args.get("NodeNames") or []
        if pod.get("spec", {}).get("schedulerName") not in self._options.probes:
            return 200, orjson.dumps({"NodeNames": names})
        decision = self.decisions.get(pod_name(pod))
        if decision is not None:
            # kube-scheduler begins with another node each time.
            decision.candidates = sorted(names)
        rejected = dict.fromkeys(names, SPY)
        return 200, orjson.dumps({"NodeNames": [], "FailedAndUnresolvableNodes": rejected})
