"""`kubectl scheduler diff -f` with a SecondaryScheduler, or with SchedulerProfiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.secondary.content import config_map
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults

from ...builders import profile, secondary
from ...desired import desired_secondary
from .conftest import IMAGE, Cluster, content

V1 = "kube-scheduler-operator.dev/v1alpha1"
OFF = {"plugins": {"filter": {"disabled": [{"name": "NodeName"}]}}}
WORDS = "profile mine: NodeName off at filter\n"


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    """A cluster with the secondary scheduler `mine`."""
    cluster.kubescheduler({"a": 1})
    cluster.put(SCHEDULERS, {"metadata": {"name": names.CLUSTER}, "spec": {}})
    cluster.revision(1, content())
    cluster.api.served |= {SECONDARY_SCHEDULERS, SCHEDULER_PROFILES}
    obj = secondary()
    wanted = desired_secondary(
        obj, KUBEADM, OperandDefaults(IMAGE), Version.parse(IMAGE.rpartition(":")[2])
    )
    assert wanted.content is not None
    cluster.put(CONFIG_MAPS, config_map(wanted.request, wanted.content))
    cluster.put(SECONDARY_SCHEDULERS, {**obj, "status": {"configHash": wanted.content.hash}})
    return cluster


@pytest.fixture
def diff(running: Cluster, tmp_path: Path) -> Any:
    async def run(*documents: Any) -> Any:
        names_ = []
        for number, document in enumerate(documents):
            path = tmp_path / f"{number}.json"
            path.write_text(json.dumps(document))
            names_ += ["-f", str(path)]
        return await running.run("diff", *names_, "-o", "words")

    return run


async def test_objects_that_change_nothing_have_no_difference(diff: Any) -> None:
    done = await diff(secondary())
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (await diff(secondary(replicas=7))).code == 0, "no content of its own"


async def test_it_is_compared_with_what_it_has(diff: Any) -> None:
    done = await diff(secondary(profiles=[OFF]))
    assert (done.code, done.out, done.err) == (1, WORDS, "")
    assert (await diff(secondary(logLevel="Debug"))).out == "-v: 2 → 4\n"
    other = "example.com/kube-scheduler:v1.35.4"
    assert (await diff(secondary(image=other))).out == f"image: {IMAGE} → {other}\n"


async def test_its_profiles_count_with_it_and_alone(diff: Any) -> None:
    mine = profile("mine", scheduler="mine", **OFF)
    for documents in ([mine], [mine, secondary()]):
        done = await diff(*documents)
        assert (done.code, done.out, done.err) == (1, WORDS, "")


async def test_a_profile_of_the_control_plane_is_composed_like_the_rest(diff: Any) -> None:
    done = await diff(profile("packed", base="HighNodeUtilization"))
    assert done.code == 1
    assert "packed" in done.out
    again = await diff(profile("default-scheduler", **OFF))
    assert again.out == "profile default-scheduler: NodeName off at filter\n"


@pytest.mark.parametrize(
    ("documents", "output"),
    [
        ([secondary("other")], 'SecondaryScheduler "other" is not deployed yet'),
        ([secondary(logLevl="Debug")], "spec.logLevl"),
        ([secondary(config={"parallelism": 0})], "no revision would be rolled out: spec.config"),
        ([secondary(), profile("p")], "several schedulers"),
        ([profile("p", plugins={"score": {"enabled": [{"name": "Nope"}]}})], "not be accepted"),
        ([profile("p"), profile("p")], "a second SchedulerProfile"),
        ([secondary(), secondary()], "a second SecondaryScheduler"),
    ],
)
async def test_objects_that_would_not_be_accepted_are_an_error(
    diff: Any, documents: Any, output: str
) -> None:
    done = await diff(*documents)
    assert (done.code, done.out) == (2, "")
    assert output in done.err
