"""At least two thousand configurations for one version of kube-scheduler, deterministically.

They are drawn from mutations of valid configurations and from random ones. The random generator is
seeded with the names of the groups, so counts in the documentation stay valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from random import Random
from typing import Any

from kube_scheduler_operator.config.language.plugins.in_tree_plugins import PLUGINS

from . import chance, mutations
from .by_hand import BAD, GOOD
from .gated import gated
from .model import API_VERSION, Made, typed
from .seeds import seeds

Mutation = Callable[[dict[str, Any]], Iterator[mutations.Change]]

MUTATED: dict[str, tuple[Mutation, int]] = {
    "a field or an entry less": (mutations.removals, 130),
    "null": (mutations.nulls, 130),
    "a field misspelt": (mutations.misspelt, 60),
    "a field that does not exist": (mutations.unknown, 40),
    "another type": (mutations.other_types, 170),
    "an entry twice, in another order, none": (mutations.entries, 110),
    "numbers at the ends of their ranges": (mutations.numbers, 230),
    "names and other texts": (mutations.texts, 160),
    "durations": (mutations.durations, 120),
}
"""Group of mutations at one path -> (generator, number drawn)."""
CHANCE = {
    "plugin lists": 200,
    "several profiles, one queue": 120,
    "arguments of plugins": 230,
    "extenders": 130,
    "leader election": 100,
}
"""Random group -> number of configurations."""
AT_POINTS = 170
GROUPS = (
    "written by hand", "types and versions", "every plugin at every extension point", *MUTATED,
    *CHANCE, "feature gates",
)  # fmt: skip


@cache
def configurations(minor: int) -> tuple[Made, ...]:
    """All configurations for 1.`minor`, in the order of GROUPS, without duplicates."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    found = []
    for made in _all(minor):
        key = (made.text, made.flags)
        if key not in seen:
            seen.add(key)
            found.append(made)
    return tuple(found)


def _all(minor: int) -> Iterator[Made]:
    for name, config in {**GOOD, **BAD}.items():
        yield Made("written by hand", name, typed(config))
    for name, config in _types():
        yield Made("types and versions", name, config)
    group = "every plugin at every extension point"
    yield from _drawn(minor, group, _at_points(minor), AT_POINTS)
    bases = seeds(minor).items()
    for group, (mutate, number) in MUTATED.items():
        changes = ((f"{seed}: {name}", make) for seed, base in bases for name, make in mutate(base))
        yield from _drawn(minor, group, changes, number)
    for group, number in CHANCE.items():
        rng = Random(f"{group} {minor}")
        for index in range(number):
            yield Made(group, f"number {index}", typed(_by_chance(group, rng, minor)))
    for name, config, gates in gated(minor):
        yield Made("feature gates", name, typed(config), gates)


def _drawn(
    minor: int, group: str, changes: Iterable[mutations.Change], number: int
) -> Iterator[Made]:
    """A random selection of `number` changes, which depends on the version."""
    every = list(changes)
    chosen = Random(f"{group} {minor}").sample(range(len(every)), min(number, len(every)))
    for index in sorted(chosen):
        name, make = every[index]
        yield Made(group, name, make())


def _by_chance(group: str, rng: Random, minor: int) -> dict[str, Any]:
    if group == "plugin lists":
        return {"profiles": [{"plugins": chance.plugin_lists(rng, minor)}]}
    if group == "several profiles, one queue":
        return {"profiles": chance.several_profiles(rng, minor)}
    if group == "arguments of plugins":
        return {"profiles": [chance.arguments(rng, minor)]}
    if group == "extenders":
        return {"extenders": chance.some_extenders(rng)}
    return {"leaderElection": chance.leader_election(rng)}


def _at_points(minor: int) -> Iterator[mutations.Change]:
    for point in chance.points_of(minor):
        for plugin in (*PLUGINS, "NoSuch", "*", ""):
            lists = {point: {"enabled": [{"name": plugin}]}}
            config = {"profiles": [{"plugins": lists}]}
            yield f"{plugin!r} at {point}", partial(typed, config)


def _types() -> Iterator[tuple[str, dict[str, Any]]]:
    """apiVersion and kind, at the top and of arguments."""
    group, _, _ = API_VERSION.partition("/")
    versions = (
        None, "", "/", "v1", group, f"{group}/", f"{group}/v1", f"{group}/v1beta3",
        f"{group}/v1beta2", f"{group}/v1alpha1", f"{group}/V1", f"{group}/v1/", "apps/v1", 1,
    )  # fmt: skip
    kinds = (None, "", "Policy", "kubeSchedulerConfiguration", "NodeResourcesFitArgs", 1)
    for field, values in (("apiVersion", versions), ("kind", kinds)):
        yield f"no {field}", {key: item for key, item in typed({}).items() if key != field}
        for value in values:
            yield f"{field} {value!r}", typed({field: value})
            for plugin in ("NodeResourcesFit", "ImageLocality"):
                entry = {"name": plugin, "args": {field: value}}
                config = typed({"profiles": [{"pluginConfig": [entry]}]})
                yield f"{field} {value!r} of {plugin}'s arguments", config
    values_of_args: tuple[Any, ...] = ([], "x", 1, True, {}, None)
    for args in values_of_args:
        for plugin in ("NodeResourcesFit", "ImageLocality", "NoSuch"):
            config = typed({"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]})
            yield f"{args!r} as {plugin}'s arguments", config
