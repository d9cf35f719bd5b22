"""An annotator with nodes in memory and a scripted source."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from kube_scheduler_operator.base.names import LOAD_ANNOTATION
from kube_scheduler_operator.kube.api import Api
from kube_scheduler_operator.kube.errors import ApiRequest, Conflict, NotFound
from kube_scheduler_operator.scheduling.annotator.cycle import Annotator
from kube_scheduler_operator.scheduling.annotator.measurement import Measurement, MeasurementError
from kube_scheduler_operator.scheduling.load.policy import METRICS, LoadPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

EPOCH = 1_700_000_000.0
CAPACITIES = {"cpu": "4", "memory": "8Gi"}


class Nodes:
    """The nodes of the API server; the annotator observes changes immediately."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.patches: list[tuple[float, str, dict[str, Any]]] = []
        self.errors: list[Exception] = []
        self.before_patch: Callable[[str], None] = lambda _: None
        self.annotator: Annotator | None = None
        self._version = 0

    def add(self, name: str, annotations: dict[str, str] | None = None, uid: str = "") -> None:
        metadata = {"name": name, "uid": uid or f"uid-{name}", "annotations": annotations or {}}
        addresses = [{"type": "InternalIP", "address": f"10.0.0.{len(self.objects)}"}]
        status = {"addresses": addresses, "capacity": CAPACITIES}
        self.objects[name] = {"metadata": metadata, "status": status}
        self.touch(name)

    def touch(self, name: str, *, seen: bool = True) -> None:
        """Change the node."""
        self._version += 1
        self.objects[name]["metadata"]["resourceVersion"] = str(self._version)
        if seen and self.annotator is not None:
            self.annotator.nodes.update(copy.deepcopy(self.objects[name]))

    def remove(self, name: str) -> None:
        del self.objects[name]
        if self.annotator is not None:
            self.annotator.nodes.remove(name)

    def annotations(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.objects[name]["metadata"]["annotations"]
        return found

    def load(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.annotations(name)[LOAD_ANNOTATION])
        return found

    async def get(self, ref: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if ref.name not in self.objects:
            raise NotFound(ApiRequest("get", ref.path), status=404)
        return copy.deepcopy(self.objects[ref.name])

    async def patch(self, ref: Any, patch: Any, **_: Any) -> dict[str, Any]:
        self.before_patch(ref.name)
        await asyncio.sleep(0.01)
        request = ApiRequest("patch", ref.path)
        if self.errors:
            raise self.errors.pop(0)
        if ref.name not in self.objects:
            raise NotFound(request, status=404)
        obj, wanted = self.objects[ref.name], patch["metadata"]
        for field in ("uid", "resourceVersion"):
            if wanted[field] != obj["metadata"][field]:
                raise Conflict(request, status=409)
        for key, value in wanted["annotations"].items():
            if value is None:
                obj["metadata"]["annotations"].pop(key, None)
            else:
                obj["metadata"]["annotations"][key] = value
        at = asyncio.get_running_loop().time()
        self.patches.append((at, ref.name, dict(wanted["annotations"])))
        self.touch(ref.name)
        return copy.deepcopy(obj)

    def of(self, name: str) -> list[float]:
        """Times of the PATCHes of a node."""
        return [at for at, whose, _ in self.patches if whose == name]


class ScriptedSource:
    """A source with scripted measurements."""

    def __init__(self) -> None:
        self.usage: dict[str, float] = {}
        self.broken: dict[str, str] = {}
        self.hanging: set[str] = set()
        self.asked: list[tuple[float, str]] = []
        self.warning, self.per_node, self.closed = "", True, False

    async def measure(self, node: Any) -> Measurement:
        loop = asyncio.get_running_loop()
        self.asked.append((loop.time(), node.name))
        if node.name in self.hanging:
            await asyncio.sleep(3600)
        await asyncio.sleep(0.005)
        if node.name in self.broken:
            raise MeasurementError(self.broken[node.name])
        usage = self.usage.get(node.name, 0.3)
        parts = {"cpu": usage, "mem": usage}
        return Measurement(
            EPOCH + loop.time(),
            dict.fromkeys(METRICS, usage),
            parts,
            parts,
            {"cpu": 0.1, "mem": 0.1},
        )

    async def close(self) -> None:
        self.closed = True


class World:
    """Nodes, source and annotator."""

    def __init__(self, policy: LoadPolicy, bindings: Any = None) -> None:
        self.nodes, self.source = Nodes(), ScriptedSource()
        self.annotator = Annotator(
            cast(Api, self.nodes),  # has all that it uses
            policy,
            self.source,
            bindings=bindings,
            now=self.now,
        )
        self.nodes.annotator = self.annotator

    @staticmethod
    def now() -> float:
        return EPOCH + asyncio.get_running_loop().time()


@pytest.fixture
def play(virtual_time: asyncio.Runner) -> Callable[..., None]:
    """Run a test in virtual time: `play(test, policy)` calls `test(world)`."""

    def run(
        test: Callable[[World], Coroutine[Any, Any, None]],
        policy: LoadPolicy | None = None,
        bindings: Any = None,
    ) -> None:
        async def main() -> None:
            world = World(policy or LoadPolicy(), bindings)
            try:
                await test(world)
            finally:
                await world.annotator.stop()

        virtual_time.run(main())

    return run
