"""Fields that a world drops change no decision of kube-scheduler.

Each field that the API server of a version publishes for a kind that kube-scheduler reads, and that
is dropped when a world takes an object, gets a value in the objects of one world. The real
kube-scheduler decides about the same pods with these fields and without them, with its default
feature gates and with all that do not exclude each other. Equal are the nodes that accept each pod,
the messages, the scores of every plugin for every node, and the pods that are preempted.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final

import orjson
import pytest

from cluster import binaries, releases
from kube_scheduler_operator.config.language.feature_gates import known_gates
from kube_scheduler_operator.kube.resource import Resource
from kube_scheduler_operator.simulate.configuration import default_configuration, profiles_of
from kube_scheduler_operator.simulate.kinds import BY_KIND, KINDS, PODS, strip
from kube_scheduler_operator.simulate.probes import ALL, families_of, probe, probe_profiles
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions, gates_of
from kube_scheduler_operator.simulate.world import UNKNOWN_TIME, Entry, World

from ..seeds import SOAK, number
from .grouped_api_server import bare_api_server
from .test_kinds_against_binary import FORMS, OF_SOME
from .test_simulation_against_cluster import SETTLING
from .whole_objects import Fillers, Schemas
from .whole_world import LATE, waiting_pods, whole_world

pytestmark = [pytest.mark.core, pytest.mark.timeout(600, func_only=True)]

Object = dict[str, Any]
Decisions = dict[str, Any]
ROUNDS: Final = number("KSO_FIELD_VALUES", 3, soak=8)
"""Values of a field that are tried, if it has as many."""
SECONDS: Final = 60
NEWEST: Final = releases.PINNED[max(releases.PINNED)]
VERSIONS: Final = list(
    dict.fromkeys((releases.choose(), *(releases.others() if SOAK else [NEWEST])))
)
READ: Final = {resource: kind for resource, kind in KINDS.items() if kind.read_by_scheduler}
_SERVED: Final = ("--feature-gates=AllAlpha=true,AllBeta=true", "--runtime-config=api/all=true")
_ALL_GATES: Final = "all feature gates"


@dataclass
class Case:
    """A kube-scheduler, and what it decides about the world as it is taken."""

    options: RunOptions
    objects: list[Object]  # whole ones, but for the fields that are tried
    pods: list[Object]  # that wait
    expected: Decisions = field(default_factory=dict)

    def decide(
        self,
        objects: Iterable[Object] = (),
        pods: Iterable[Object] = (),
        without: Resource | None = None,
    ) -> Decisions:
        """Return the decisions with other objects and pods, which are served as they are.

        None of the objects is of the kind `without`.
        """
        world = World()
        for obj in self.objects:
            assert world.add(obj), obj
        if without is not None:
            world.objects[without].clear()
        for obj in objects:
            resource = BY_KIND[obj["apiVersion"], obj["kind"]].resource
            key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            known = world.objects[resource][key]
            content = orjson.dumps({name: obj[name] for name in _ordered(obj)})
            world.objects[resource][key] = Entry(content, known.node)
        taken = list(pods) or [strip(KINDS[PODS], pod) for pod in self.pods]
        return asyncio.run(_decide(world, self.options, taken))


def _ordered(obj: Mapping[str, Any]) -> list[str]:
    """Return the fields of an object in the order in which a world has them."""
    first = ["apiVersion", "kind", "metadata"]
    return [*first, *(name for name in obj if name not in first)]


def _case(version: str, gates: str) -> Case:
    minor = releases.minor(version)
    objects, pods = list(whole_world()), list(waiting_pods(minor))
    for obj in (*objects, *pods):
        metadata = obj["metadata"]
        metadata.setdefault("uid", f"{obj['kind']}-{metadata['name']}")
        metadata.setdefault("creationTimestamp", UNKNOWN_TIME)
    flags: tuple[str, ...] = ()
    if gates == _ALL_GATES:
        known = known_gates(minor) or {}
        values = (f"{name}={str(locked is not False).lower()}" for name, locked in known.items())
        flags = (f"--feature-gates={','.join(values)}",)
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    options = RunOptions(binary, default_configuration(), flags, seconds=SECONDS, scores=True)
    (profile,) = profiles_of(options.config)
    known_of_run = gates_of(options)
    every = probe_profiles(profile, families_of(profile, known_of_run), known_of_run)[:1]
    options = replace(options, profiles=every, probes=frozenset({ALL}))
    made = Case(options, objects, pods)
    made.expected = made.decide()
    return made


async def _decide(world: World, options: RunOptions, pods: Iterable[Object]) -> Decisions:
    """Return what kube-scheduler decides about each pod alone, the last of which preempts.

    Of pods whose volumes are bound for them, only which nodes fit: that their volumes are bound
    takes its time.
    """
    decided: Decisions = {}
    pods = [copy.deepcopy(pod) for pod in pods]
    async with Run(world, options) as run:
        probes = [probe(pod, at, ALL) for at, pod in enumerate(pods)]
        found = await run.schedule(probes, settle=False)
        for pod, decision in zip(pods, found.values(), strict=True):
            name = pod["metadata"]["name"]
            decided[f"{name} fits"] = (sorted(decision.candidates or ()), decision.message)
        run.forget(probes)
        await asyncio.sleep(SETTLING)
        late = {f"p-{claim}" for claim in LATE}
        for pod in (each for each in pods if each["metadata"]["name"] not in late):
            is_last = pod is pods[-1]
            (decision,) = (await run.schedule([pod], settle=is_last)).values()
            name = pod["metadata"]["name"]
            decided[f"{name} is decided"] = (
                bool(decision.node), decision.reason, decision.message, decision.scores,
                sorted(decision.preempted),
            )  # fmt: skip
            run.forget([pod])
            await asyncio.sleep(SETTLING)  # kube-scheduler learns of it beside the next pod
    return decided


def _deciding() -> Iterator[tuple[str, Resource]]:
    """Yield each kind with a version that reads it, the newest if possible."""
    for resource in READ:
        for version in sorted(VERSIONS, key=releases.minor, reverse=True):
            if resource.plural not in OF_SOME or _is_read(resource, version):
                yield version, resource
                break


def _is_read(resource: Resource, version: str) -> bool:
    return any(path.endswith(f"/{resource.plural}") for path in FORMS[releases.minor(version)])


@pytest.fixture(scope="module")
def cases() -> Callable[[str], Case]:
    return cache(partial(_case, gates=_ALL_GATES))


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def schemas(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Schemas]:
    """The schemas of the API server of a version with all kinds that it has."""
    with bare_api_server(version, tmp_path_factory.mktemp("api-server"), _SERVED) as server:
        yield Schemas(server)


@pytest.mark.parametrize("gates", ["default gates", _ALL_GATES])
def test_dropped_fields_change_no_decision(version: str, schemas: Schemas, gates: str) -> None:
    case = _case(version, gates)
    known = {
        resource: schema
        for resource, kind in READ.items()
        if (schema := schemas.of(list(kind.versions()))) is not None
    }
    fillers = Fillers(schemas, known)
    filled: dict[str, set[str]] = {}
    decisions = 0
    for number_ in range(ROUNDS):
        objects, pods, fields = _filled(case, fillers, number_, lambda _: True)
        for path, value in fields.items():
            filled.setdefault(path, set()).add(repr(value))
        found = case.decide(objects, pods)
        decisions += len(found)
        # A decision may depend on when kube-scheduler learns that the pod before it is gone.
        if found != case.expected and case.decide(objects, pods) != case.expected:
            _name_the_field(case, fillers, number_, [path for path in fields if "[" not in path])
    values = sum(map(len, filled.values()))
    every = sum(map(schemas.fields, known.values()))
    annotations = sum("[" in path for path in filled)
    dropped = len(filled) - annotations
    print(
        f"\n{version}, {gates}: {len(known)} kinds with {every} fields; {dropped} that are dropped "
        f"and {annotations} annotations, with {values} values, change none of {decisions} decisions"
    )
    assert len(known) >= len(READ) - len(OF_SOME)
    assert dropped > every / 2


@pytest.mark.parametrize(
    ("version", "resource"),
    [pytest.param(*row, id=f"{row[0]} {row[1].kind}") for row in _deciding()],
)
def test_each_kind_of_the_world_decides(
    version: str, resource: Resource, cases: Callable[[str], Case]
) -> None:
    """Otherwise, fields of its objects could not change a decision."""
    case = cases(version)
    assert case.decide(without=resource) != case.expected


def _filled(
    case: Case, fillers: Fillers, number_: int, chosen: Callable[[str], bool]
) -> tuple[list[Object], list[Object], dict[str, Any]]:
    """Return the objects and the pods with those fields that are chosen, and these fields."""
    fields: dict[str, Any] = {}

    def fill(obj: Object) -> Object:
        made, own = fillers.fill(obj, number_, chosen)
        fields.update(own)
        return made

    return [*map(fill, case.objects)], [*map(fill, case.pods)], fields


def _name_the_field(case: Case, fillers: Fillers, number_: int, suspects: list[str]) -> None:
    """Halve the fields until one is left that changes a decision, and fail with it."""
    while len(suspects) > 1:
        half = set(suspects[: len(suspects) // 2])
        objects, pods, _ = _filled(case, fillers, number_, half.__contains__)
        differs = case.decide(objects, pods) != case.expected
        suspects = [path for path in suspects if (path in half) == differs]
    objects, pods, fields = _filled(case, fillers, number_, set(suspects).__contains__)
    found = case.decide(objects, pods)
    changed = {
        name: (case.expected[name], decision)
        for name, decision in found.items()
        if decision != case.expected[name]
    }
    pytest.fail(f"{fields} is dropped, and changes decisions (without it, with it): {changed}")
