"""Refusals of profiles by kube-scheduler, attributed to the right object and field.

The operator's own check would have found most of these; an image of one's own has plugins whose
arguments that only that image knows, with the same messages.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.termination_message import message_error
from kube_scheduler_operator.config.effective.attachment import Refusal
from kube_scheduler_operator.config.effective.attribution import attribute_profiles
from kube_scheduler_operator.config.effective.profiles.check import written_profile
from kube_scheduler_operator.config.effective.profiles.validate import ProfileResult
from kube_scheduler_operator.config.language.schema import API_VERSION, KIND
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

pytestmark = pytest.mark.presubmit

FIT = {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}
CONSTRAINT = {"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}


def arguments(plugin: str, **args: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": plugin, "args": args}]}


def at(point: str, *names: str, **lists: Any) -> dict[str, Any]:
    return {"plugins": {point: {"enabled": [{"name": name} for name in names], **lists}}}


# Reported field -> content of the profile.
CASES = {
    "spec.pluginConfig[0].args.hardPodAffinityWeight": arguments(
        "InterPodAffinity", hardPodAffinityWeight=101
    ),
    "spec.pluginConfig[0].args.scoringStrategy.resources[0].weight": arguments(
        "NodeResourcesFit", scoringStrategy=FIT
    ),
    "spec.pluginConfig[0].args.defaultConstraints[0].maxSkew": arguments(
        "PodTopologySpread", defaultConstraints=[CONSTRAINT], defaultingType="List"
    ),
    "spec.pluginConfig[0]": arguments("InterPodAffinity", hardPodAffinityWeigh=1),
    "spec.plugins.scores": {"plugins": {"scores": {}}},
    "spec.plugins.score.enabled[0].name": at("score", "ImageLocalty"),
    "spec.plugins.filter.enabled[0].name": at("filter", "ImageLocality"),
    "spec": {"plugins": {"multiPoint": {"disabled": [{"name": "DefaultBinder"}]}}},
    "spec.plugins.queueSort": at("queueSort", "PrioritySort"),
    "spec.percentageOfNodesToScore": {"percentageOfNodesToScore": 101},
}


def words_of(binary: Path, folder: Path, profiles: list[dict[str, Any]]) -> str:
    """What the operator gets to read of a kube-scheduler that refuses."""
    kubeconfig, file = folder / "kubeconfig", folder / "config.yaml"
    kubeconfig.write_text(stub_kubeconfig())
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "profiles": profiles,
    }
    file.write_text(json.dumps(document))
    done = subprocess.run(
        [binary, f"--config={file}", f"--write-config-to={folder / 'out'}", "--secure-port=0"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode != 0, "it was accepted"
    return message_error(done.stderr)


@pytest.mark.parametrize("field", CASES)
def test_a_refusal_is_attributed_to_the_object_and_field(
    field: str, kube_scheduler_binary: Path, tmp_path: Path
) -> None:
    spec = CASES[field]
    innocent = {"schedulerName": "innocent", "percentageOfNodesToScore": 50}
    profiles: list[dict[str, Any]] = [
        {"schedulerName": "default-scheduler"}, innocent, written_profile("team-a", spec),
    ]  # fmt: skip
    results = (
        ProfileResult("innocent", True, (), innocent),
        ProfileResult("team-a", True, (), spec),
    )
    words = words_of(kube_scheduler_binary, tmp_path, profiles)
    config = {"profiles": profiles}
    first, guilty = attribute_profiles(results, Refusal(config, words, "it was refused"), config)
    assert first.findings == ()
    (finding,) = guilty.findings
    assert finding.path == f"SchedulerProfile/team-a {field}", words
    assert finding.message == f"it was refused: {words}"
