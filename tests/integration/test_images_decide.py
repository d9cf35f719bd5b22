"""Which images of nodes and Pods kube-scheduler reads.

Images that no Pod of a question names are not sent to kube-scheduler, which decides alike.

Each node has images of other Pods as well; one has those of the Pod, under a name without its tag.
Images of volumes count from 1.36 on.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.decisions import PodDecision
from kube_scheduler_operator.simulate.image_names import with_images_of
from kube_scheduler_operator.simulate.kinds import NODES
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.world import World

from .test_kinds_against_binary import VERSIONS
from .test_why import node, pod

pytestmark = [pytest.mark.core, pytest.mark.timeout(600, func_only=True)]

Object = dict[str, Any]

GIB: Final = 2**30


def images(*names: str) -> list[Object]:
    return [{"names": [f"{name}@sha256:0", name], "sizeBytes": GIB} for name in names]


def world() -> World:
    made = World()
    for name, own in (("a", ["web:latest", "init:1"]), ("b", ["init:1"]), ("c", [])):
        obj = node(name, "z")
        obj["status"]["images"] = images(*own, *(f"other-{number}:1" for number in range(20)))
        made.add(obj)
    made.complete()
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_scores_are_those_with_all_images(version: str) -> None:
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    options = RunOptions(binary, default_configuration(), scores=True, seconds=60)
    asked = pod("p", initContainers=[{"name": "i", "image": "init:1"}])
    asked["spec"]["containers"][0]["image"] = "web"

    async def decide(only: list[Object] | None) -> PodDecision:
        async with Run(world(), options, only) as run:
            (decision,) = (await run.schedule([asked])).values()
            return decision

    decisions = [asyncio.run(decide(only)) for only in (None, [asked])]
    assert decisions[0].scores == decisions[1].scores
    assert decisions[0].node == decisions[1].node == "a"
    points = [decisions[0].scores[name]["ImageLocality"] for name in "abc"]
    assert points[0] > points[1] > points[2] == 0
    sent = {obj["metadata"]["name"]: obj["status"].get("images", ())
            for obj in with_images_of(world(), [asked]).all(NODES)}  # fmt: skip
    assert {name: len(own) for name, own in sent.items()} == {"a": 2, "b": 1, "c": 0}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_image_of_a_volume_counts_from_1_36_on(version: str) -> None:
    """A Pod as a user writes it: what decides is what a world keeps of it."""
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    options = RunOptions(binary, default_configuration(), scores=True, seconds=60)
    made = world()
    source = {"reference": "web", "pullPolicy": "IfNotPresent"}
    assert made.add(pod("p", volumes=[{"name": "model", "image": source}]))
    made.complete()
    asked = made.pending()

    async def decide() -> PodDecision:
        async with Run(made, options, asked) as run:
            (decision,) = (await run.schedule(asked)).values()
            return decision

    scores = asyncio.run(decide()).scores
    points = [scores[name]["ImageLocality"] for name in "abc"]
    assert points[1:] == [0, 0]
    assert (points[0] > 0) is (releases.minor(version) >= 36)
