"""The files of which everybody learns about schedulers, and what is hidden in them."""

from __future__ import annotations

from collections import Counter

import pytest

from kube_scheduler_operator.offline.kinds import Setting
from kube_scheduler_operator.offline.validate import Verdict, validate
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.plugin_warnings import SAFETY_FILTERS
from kube_scheduler_operator.schedulerconfig.schema import POINTS, POINTS_SINCE
from kube_scheduler_operator.schedulerconfig.versions import Version

OLD = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
NEW = OLD.replace("v1beta2", "v1")
OWN_LEASE = "leaderElection: {leaderElect: true, resourceName: my-scheduler}\n"


def look(text: str, minor: int = 35, *, stock: bool = True) -> Verdict:
    return validate([("file", text)], Setting(Gates(Version(1, minor)), stock=stock))


def demo(minor: int) -> str:
    """Everything off but queueSort, TaintToleration, ImageLocality and the binder."""
    kept = {
        "queueSort": "PrioritySort", "filter": "TaintToleration", "score": "ImageLocality",
        "bind": "DefaultBinder",
    }  # fmt: skip
    lines = ["profiles:", "- schedulerName: default-scheduler", "  plugins:"]
    for point in POINTS:
        if POINTS_SINCE.get(point, 0) > minor:
            continue
        lines += [f"    {point}:", "      disabled: [{name: '*'}]"]
        if point in kept:
            lines.append(f"      enabled: [{{name: {kept[point]}, weight: WEIGHT}}]")
    text = "\n".join(lines) + "\n"
    for point, name in kept.items():
        weight = ", weight: 10" if point == "score" else ""
        text = text.replace(f"name: {name}, weight: WEIGHT", f"name: {name}{weight}")
    return text


@pytest.mark.parametrize("minor", range(29, 37))
def test_the_demos_plugin_set_starts_and_is_warned_about(minor: int) -> None:
    verdict = look(NEW + demo(minor), minor)
    assert verdict.starts
    assert Counter(each.reason for each in verdict.findings) == {
        "SafetyFilterOff": len(SAFETY_FILTERS) - 1,  # TaintToleration is kept
        "ImagesAlone": 1,
    }
    full = next(each for each in verdict.findings if "NodeResourcesFit" in each.message)
    assert "OutOfcpu" in full.message
    assert full.path == "profiles[0].plugins.filter.disabled[0]"


def test_the_demos_own_file_is_for_convert() -> None:
    (finding,) = look(OLD + demo(35)).findings
    assert (finding.reason, finding.fix) == (
        "OldAPIVersion", "kube-scheduler-operator convert -f file",
    )  # fmt: skip


def test_the_second_schedulers_file_says_what_to_convert() -> None:
    text = f"{OLD}profiles: [{{schedulerName: my-scheduler}}]\n"
    for minor in (29, 36):
        verdict = look(text, minor)
        assert not verdict.starts
        assert "convert" in verdict.findings[0].fix


def test_the_second_scheduler_shares_the_main_lease_unless_it_says_otherwise() -> None:
    text = f"{NEW}profiles: [{{schedulerName: my-scheduler}}]\n"
    for election in ("", "leaderElection: {leaderElect: true}\n"):
        verdict = look(text + election)
        (finding,) = verdict.findings
        assert verdict.starts
        assert finding.reason == "SharedLease"
        assert "resourceName to my-scheduler" in finding.fix
    assert look(text + OWN_LEASE).findings == ()
    assert look(f"{text}leaderElection: {{leaderElect: false}}\n").findings == ()


THREE = f"""{NEW}{OWN_LEASE}profiles:
- schedulerName: tolerant
  plugins:
    score:
      disabled: [{{name: TaintToleration}}]
      enabled: [CUSTOM]
- schedulerName: no-scoring
  plugins:
    preScore: {{disabled: [{{name: '*'}}]}}
    score: {{disabled: [{{name: '*'}}]}}
- schedulerName: plain
"""


def test_three_profiles_in_one_process_are_fine() -> None:
    assert look(THREE.replace("CUSTOM", "")).findings == ()


def test_plugins_of_their_own_need_an_image_of_their_own() -> None:
    text = THREE.replace("CUSTOM", "{name: MyCustomPluginA, weight: 2}, {name: MyCustomPluginB}")
    verdict = look(text)
    assert not verdict.starts
    assert {(each.reason, each.path) for each in verdict.findings} == {
        ("UnknownPlugin", f"profiles[0].plugins.score.enabled[{index}].name") for index in (0, 1)
    }
    assert look(text, stock=False).starts


@pytest.mark.parametrize("name", ["tlsMinVersion", "featureGates", "v", "authenticationKubeconfig"])
def test_flags_are_not_fields(name: str) -> None:
    (finding,) = look(f"{NEW}{name}: x\n").findings
    assert (finding.reason, finding.path, finding.position.line) == ("UnknownField", name, 3)
