"""The figures that explain a decision agree with the kube-scheduler that made it.

Generated worlds: a fact is known about each node that kube-scheduler rejects for a constraint
alone, and the counts of a topologySpreadConstraint reject the same nodes as kube-scheduler.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.simulate.configuration import default_configuration, profiles_of
from kube_scheduler_operator.simulate.constraint import Constraint
from kube_scheduler_operator.simulate.constraints import constraints_of, without
from kube_scheduler_operator.simulate.kinds import NODES, PODS
from kube_scheduler_operator.simulate.node_rules import admits, untolerated
from kube_scheduler_operator.simulate.probes import families_of, probe, probe_profiles, profile_of
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions, gates_of
from kube_scheduler_operator.simulate.world import World

from ..seeds import chunks, number

Object = dict[str, Any]
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
WORLDS: Final = number("KSO_FACTS", 40, 400)
SIZE: Final = 20
FAMILIES: Final = ("spread", "pod affinity", "node affinity", "taints")
NAMESPACES: Final = ("shop", "dev")


def node(number: int, chance: random.Random) -> Object:
    labels = {HOST: f"n{number}"}
    if chance.random() < 0.85:
        labels[ZONE] = chance.choice("xyz")
    if chance.random() < 0.5:
        labels["disk"] = chance.choice(("ssd", "hdd"))
    if chance.random() < 0.5:
        labels["size"] = chance.choice(("1", "5", "9", "big"))
    spec: Object = {}
    if chance.random() < 0.3:
        value, effect = chance.choice(("a", "b", "")), chance.choice(("NoSchedule", "NoExecute"))
        spec["taints"] = [{"key": "team", "value": value, "effect": effect}]
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "50"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels},
        "spec": spec, "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip


def labels(chance: random.Random) -> Object:
    made = {"app": chance.choice(("web", "db"))}
    if chance.random() < 0.6:
        made["pod-template-hash"] = chance.choice(("old", "new"))
    return made


def selector(chance: random.Random) -> Object:
    if chance.random() < 0.1:
        return {}
    if chance.random() < 0.3:
        return {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}
    return {"matchLabels": {"app": chance.choice(("web", "db"))}}


def spread(chance: random.Random) -> Object:
    rule: Object = {
        "maxSkew": chance.choice((1, 1, 2)),
        "topologyKey": chance.choice((ZONE, ZONE, HOST, "rack")),
        "whenUnsatisfiable": chance.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": selector(chance),
    }
    for name, values in (
        ("minDomains", (2, 4)),
        ("nodeTaintsPolicy", ("Honor", "Ignore")),
        ("nodeAffinityPolicy", ("Honor", "Ignore")),
        ("matchLabelKeys", (["pod-template-hash"],)),
    ):
        if chance.random() < 0.35 and (name != "minDomains" or rule["whenUnsatisfiable"][0] == "D"):
            rule[name] = chance.choice(values)
    return rule


def term(chance: random.Random) -> Object:
    made: Object = {
        "labelSelector": selector(chance), "topologyKey": chance.choice((ZONE, HOST, "rack")),
    }  # fmt: skip
    if chance.random() < 0.3:
        made["namespaces"] = [chance.choice(NAMESPACES)]
    if chance.random() < 0.3:
        made["namespaceSelector"] = chance.choice(({}, {"matchLabels": {"team": "dev"}}))
    return made


def expression(chance: random.Random) -> Object:
    operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    made: Object = {"key": chance.choice(("disk", "size", ZONE)), "operator": operator}
    if operator in ("In", "NotIn"):
        made["values"] = chance.sample(("ssd", "hdd", "x", "y", "5"), 2)
    elif operator in ("Gt", "Lt"):
        made |= {"key": "size", "values": [chance.choice(("1", "4", "9"))]}
    return made


def waiting(chance: random.Random) -> Object:
    spec: Object = {"topologySpreadConstraints": [spread(chance) for _ in range(2)]}
    affinity: Object = {}
    if chance.random() < 0.5:
        terms = [{"matchExpressions": [expression(chance)]} for _ in range(chance.choice((1, 2)))]
        if chance.random() < 0.2:
            field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
            terms.append({"matchFields": [field]})
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
    for kind in ("podAffinity", "podAntiAffinity"):
        if chance.random() < 0.6:
            affinity[kind] = {REQUIRED: [term(chance)]}
    if chance.random() < 0.4:
        spec["nodeSelector"] = {"disk": chance.choice(("ssd", "tape"))}
    if chance.random() < 0.4:
        toleration = {"key": "team", "operator": chance.choice(("Exists", "Equal")), "value": "a"}
        if toleration["operator"] == "Exists":
            del toleration["value"]
        spec["tolerations"] = [toleration]
    return pod("waiting", "shop", labels(chance), affinity=affinity, **spec)


def pod(name: str, namespace: str, labels: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec}, "status": {},
    }  # fmt: skip


def world_of(chance: random.Random) -> tuple[World, Object]:
    made = World()
    count = chance.randint(3, 8)
    for at in range(count):
        made.add(node(at, chance))
    for namespace in NAMESPACES:
        made.add({"apiVersion": "v1", "kind": "Namespace",
                  "metadata": {"name": namespace, "labels": {"team": namespace}}})  # fmt: skip
    for at in range(chance.randint(0, 14)):
        spec: Object = {"nodeName": f"n{chance.randrange(count)}"}
        made.add(pod(f"p{at}", chance.choice(("shop", "shop", "dev")), labels(chance), **spec))
    made.add(waiting(chance))
    made.complete()
    found = made.get(PODS, "waiting", "shop")
    assert found is not None
    made.remove(PODS, "waiting", "shop")
    return made, found


async def rejected(binary: Path, world: World, asked: list[tuple[Object, str]]) -> list[set[str]]:
    """The nodes that kube-scheduler rejects for (pod, family)."""
    options = RunOptions(binary, default_configuration())
    gates = gates_of(options)
    (profile,) = profiles_of(options.config)
    profiles = probe_profiles(profile, families_of(profile, gates), gates)
    probes = frozenset(own["schedulerName"] for own in profiles)
    options = RunOptions(binary, options.config, profiles=profiles, probes=probes)
    names = {name for _, name in world.objects[NODES]}
    async with Run(world, options) as run:
        pods = [probe(one, at, profile_of(family)) for at, (one, family) in enumerate(asked)]
        decisions = await run.schedule(pods, settle=False)
    return [names - set(decision.candidates or ()) for decision in decisions.values()]


@pytest.mark.parametrize("seeds", chunks(WORLDS, SIZE), ids=lambda seeds: f"from {seeds[0]}")
def test_a_fact_is_known_about_each_rejected_node(
    seeds: range, kube_scheduler_binary: Path
) -> None:
    compared: Counter[str] = Counter()
    for seed in seeds:
        world, waits = world_of(random.Random(seed))
        constraints: list[Constraint] = [
            each for each in constraints_of(waits, world) if each.family in FAMILIES
        ]
        asked = [
            (
                without(
                    waits,
                    [
                        other
                        for other in constraints
                        if other is not each and other.family == each.family
                    ],
                ),
                each.family,
            )
            for each in constraints
        ]
        asked += [(waits, "node affinity"), (waits, "taints")]
        *alone, by_affinity, by_taints = asyncio.run(rejected(kube_scheduler_binary, world, asked))
        for constraint, nodes in zip(constraints, alone, strict=True):
            compared[constraint.family] += len(nodes)
            facts = known(constraint, world)
            if constraint.family == "spread":
                # The other rules do not decide here, and so they demand no label of a node.
                own = next(known(one, world) for one in constraints_of(alone_of(waits, constraint),
                           world) if one.family == "spread")  # fmt: skip
                assert own == nodes, (seed, constraint.text)
            elif constraint.family == "pod affinity":
                assert nodes <= facts, (seed, constraint.text)
        everywhere = list(world.all(NODES))
        excluded = {n["metadata"]["name"] for n in everywhere if not admits(waits["spec"], n)}
        assert excluded == by_affinity, seed
        tainted = {n["metadata"]["name"] for n in everywhere if any(untolerated(waits["spec"], n))}
        assert tainted == by_taints, seed
        compared["nodes"] += len(everywhere)
    print(dict(compared))
    assert min(compared[family] for family in ("spread", "pod affinity", "nodes")) > 0


def known(constraint: Constraint, world: World) -> set[str]:
    on = constraint.on
    return {name for _, name in world.objects[NODES] if on is not None and on(name)}


def alone_of(waits: Object, constraint: Constraint) -> Object:
    """The pod with one of its spread constraints."""
    at = int(constraint.field.partition("[")[2].partition("]")[0])
    rules = [waits["spec"]["topologySpreadConstraints"][at]]
    return {**waits, "spec": {**waits["spec"], "topologySpreadConstraints": rules}}
