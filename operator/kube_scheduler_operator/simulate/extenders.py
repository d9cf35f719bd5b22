"""Our own extenders, in process and over the simulated world.

They are the policies that agents serve, with the same requests and responses, and see the pods
that kube-scheduler has bound in the simulation. No extender binds or preempts: both would be real.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from ..base.json_text import parse_json
from ..base.limits import ANNOTATION
from ..base.names import LOAD_ANNOTATION
from ..base.times import timestamp
from .api_server import Verb
from .kinds import NODES, PODS, Object
from .store import WatchEvent, WorldStore
from .world import World

if TYPE_CHECKING:
    # Loaded with the first extender: most simulations have none.
    from ..scheduling.extender.assembly import Assembly
    from ..scheduling.extender.decisions import Decisions
    from ..scheduling.extender.wire import Binding

_VERBS: Final = ("filter", "prioritize")
_REMEMBERED: Final = 1000
_TIMEOUT: Final = "60s"
"""A simulation may take its time; the cost of a late response is not simulated."""


@dataclass(frozen=True, slots=True)
class SimulatedExtender:
    """An extender that takes part."""

    name: str  # name of the SchedulerExtender
    entry: Mapping[str, Any]  # its entry in kube-scheduler's configuration
    document: Mapping[str, Any]  # the configuration file of its agent, parsed
    environ: Mapping[str, str] = field(default_factory=dict)  # environment variables of its agent
    # path in `document` -> content of the file there, such as that of a load policy
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def verbs(self) -> tuple[str, ...]:
        return tuple(verb for verb in _VERBS if self.entry.get(f"{verb}Verb"))

    @property
    def weight(self) -> int:
        """What its score of 0 to 10 is multiplied with to be comparable with those of plugins."""
        return int(self.entry.get("weight") or 1) * 10

    def entry_at(self, url: str) -> dict[str, Any]:
        kept = ("weight", "managedResources", "ignorable")
        entry = {key: self.entry[key] for key in kept if key in self.entry}
        if "prioritizeVerb" not in self.entry:
            entry.pop("weight", None)
        entry |= {f"{verb}Verb": verb for verb in self.verbs}
        return {**entry, "urlPrefix": url, "nodeCacheCapable": True, "httpTimeout": _TIMEOUT}


@dataclass(frozen=True, slots=True)
class LeftOutExtender:
    """An extender that takes no part, and could decide where a pod fits."""

    title: str  # for messages
    resources: tuple[str, ...] = ()  # it sees only pods that request one of them; empty: all pods

    def sees(self, pod: Object) -> bool:
        """Whether kube-scheduler asks it about a pod (`HTTPExtender.IsInterested`)."""
        spec = pod["spec"]
        containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        amounts = (container.get("resources") or {} for container in containers)
        names = {
            name
            for amount in amounts
            for field in ("requests", "limits")
            for name in amount.get(field) or ()
        }
        return not self.resources or not names.isdisjoint(self.resources)


def seeing(extenders: Sequence[LeftOutExtender], pod: Object) -> list[str]:
    """Return the titles of those that kube-scheduler asks about a pod."""
    return [extender.title for extender in extenders if extender.sees(pod)]


class InProcessExtenders:
    """The extenders of one run, with a view of the nodes of their own.

    They follow the changes of `store`; `clock` is in seconds since 1970, that of the Nodes'
    annotations.
    """

    def __init__(
        self,
        extenders: Sequence[SimulatedExtender],
        store: WorldStore,
        clock: Callable[[], float],
    ) -> None:
        self._resources = contextlib.ExitStack()
        self._assemblies: dict[str, Assembly] = {}
        self._decisions: dict[str, Decisions] = {}
        if extenders:
            self._assemble(extenders, clock)
            self._follow(store)

    def _assemble(self, extenders: Sequence[SimulatedExtender], clock: Callable[[], float]) -> None:
        from ..scheduling.extender.assembly import Assembly
        from ..scheduling.extender.config import from_document
        from ..scheduling.extender.decisions import Decisions
        from ..scheduling.extender.verbs import VerbContext
        from ..scheduling.extender.wire import Fragments
        from ..scheduling.policies.cluster import Cluster

        self._cluster = Cluster(clock)
        for extender in extenders:
            decisions = Decisions(_REMEMBERED, self._cluster.now)
            context = VerbContext(self._cluster, Fragments(self._cluster), decisions)
            context.learn = lambda _items: None  # the view is never behind, so nothing waits
            assembly = Assembly(self._cluster, context, _refuse, extender.environ)
            assembly.use(from_document(self._with_files(extender)))
            self._assemblies[extender.name] = assembly
            self._decisions[extender.name] = decisions

    def _follow(self, store: WorldStore) -> None:
        for resource in (NODES, PODS):
            for content in store.contents(resource):
                self._take("ADDED", orjson.loads(content))
            store.watch(resource, None, self._event)
            self._resources.callback(store.unwatch, resource, self._event)

    def handlers(self, name: str) -> Iterator[tuple[str, Verb]]:
        for verb in _VERBS:
            yield verb, self._handler(name, f"/{name}/{verb}".encode())

    def explain(self, pod: str) -> dict[str, dict[str, Any]]:
        """Return each extender's last decision about a pod (namespace/name), for `explain`."""
        answers = {name: decisions.explain(pod) for name, decisions in self._decisions.items()}
        return {name: answer for name, answer in answers.items() if answer is not None}

    def close(self) -> None:
        """Delete files and follow the world no longer."""
        self._resources.close()

    def _handler(self, name: str, path: bytes) -> Verb:
        from ..serving.http_types import HttpResponse

        async def handle(body: bytes) -> tuple[int, bytes]:
            answer = self._assemblies[name].verbs[path](body)
            if inspect.isawaitable(answer):
                answer = await answer
            if isinstance(answer, HttpResponse):
                return answer.status, bytes(answer.body)
            return 200, bytes(answer)

        return handle

    def _with_files(self, extender: SimulatedExtender) -> Any:
        text, prefix = json.dumps(extender.document), "kube-scheduler-simulation-"
        for path, content in extender.files.items():
            folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
            file = Path(folder, f"{extender.name}.json")
            file.write_text(content, encoding="utf-8")
            text = text.replace(json.dumps(path), json.dumps(str(file)))
        return json.loads(text)

    def _event(self, event: WatchEvent) -> None:
        self._take(event.type, orjson.loads(event.content))

    def _take(self, event: str, obj: Object) -> None:
        gone = event == "DELETED"
        if obj["kind"] == NODES.kind:
            if gone:
                self._cluster.remove_node(obj["metadata"]["name"])
            else:
                self._cluster.set_node(obj)
        elif gone:
            self._cluster.remove_pod(obj)
        else:
            self._cluster.set_pod(obj)


def measured_at(world: World) -> float | None:
    """Return when the newest load was measured, in seconds since 1970; None: never.

    In a world from files this is about the time at which they were written.
    """
    times = []
    for node in world.all(NODES):
        text = (node["metadata"].get("annotations") or {}).get(LOAD_ANNOTATION)
        try:
            document = parse_json(text, ANNOTATION) if text else None
        except ValueError:
            continue
        moment = timestamp(document.get("at")) if isinstance(document, dict) else None
        if moment is not None:
            times.append(moment.timestamp())
    return max(times, default=None)


async def _refuse(_binding: Binding) -> None:
    raise RuntimeError("a simulation binds no pod")
