"""Well-known example files for schedulers, and their mistakes."""

from __future__ import annotations

from collections import Counter

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.schema import POINTS, POINTS_SINCE
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings.plugins import SAFETY_FILTERS
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

OLD = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
NEW = OLD.replace("v1beta2", "v1")
OWN_LEASE = "leaderElection: {leaderElect: true, resourceName: my-scheduler}\n"


def validated(text: str, minor: int = 35, *, stock: bool = True) -> ValidationReport:
    return validate([("file", text)], CheckOptions(Gates(Version(1, minor)), stock=stock))


def demo(minor: int) -> str:
    """Everything off but queueSort, TaintToleration, ImageLocality and the binder."""
    enabled = {
        "queueSort": "PrioritySort", "filter": "TaintToleration", "score": "ImageLocality",
        "bind": "DefaultBinder",
    }  # fmt: skip
    lines = ["profiles:", "- schedulerName: default-scheduler", "  plugins:"]
    for point in POINTS:
        if POINTS_SINCE.get(point, 0) > minor:
            continue
        lines += [f"    {point}:", "      disabled: [{name: '*'}]"]
        if point in enabled:
            lines.append(f"      enabled: [{{name: {enabled[point]}, weight: WEIGHT}}]")
    text = "\n".join(lines) + "\n"
    for point, name in enabled.items():
        weight = ", weight: 10" if point == "score" else ""
        text = text.replace(f"name: {name}, weight: WEIGHT", f"name: {name}{weight}")
    return text


@pytest.mark.parametrize("minor", range(29, 37))
def test_the_demos_plugin_set_starts_with_warnings(minor: int) -> None:
    result = validated(NEW + demo(minor), minor)
    assert result.starts
    assert Counter(each.reason for each in result.findings) == {
        "SafetyFilterOff": len(SAFETY_FILTERS) - 1,  # TaintToleration is enabled
        "ImagesAlone": 1,
        "NoKubeconfig": 1,
    }
    full = next(each for each in result.findings if "NodeResourcesFit" in each.message)
    assert "OutOfcpu" in full.message
    assert full.path == "profiles[0].plugins.filter.disabled[0]"


def test_the_demos_file_must_be_converted() -> None:
    (finding,) = validated(OLD + demo(35)).findings
    assert (finding.reason, finding.fix) == (
        "OldAPIVersion", "kubectl scheduler convert -f file",
    )  # fmt: skip


def test_the_second_schedulers_file_must_be_converted() -> None:
    text = f"{OLD}profiles: [{{schedulerName: my-scheduler}}]\n"
    for minor in (29, 36):
        result = validated(text, minor)
        assert not result.starts
        assert "convert" in result.findings[0].fix


def test_the_second_scheduler_uses_the_main_lease_by_default() -> None:
    text = f"{NEW}profiles: [{{schedulerName: my-scheduler}}]\n"
    for election in ("", "leaderElection: {leaderElect: true}\n"):
        result = validated(text + election)
        (finding,) = result.findings
        assert result.starts
        assert finding.reason == "SharedLease"
        assert "resourceName to my-scheduler" in finding.fix
    assert validated(text + OWN_LEASE).findings == ()
    assert validated(f"{text}leaderElection: {{leaderElect: false}}\n").findings == ()


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
    assert validated(THREE.replace("CUSTOM", "")).findings == ()


def test_custom_plugins_need_a_custom_image() -> None:
    text = THREE.replace("CUSTOM", "{name: MyCustomPluginA, weight: 2}, {name: MyCustomPluginB}")
    result = validated(text)
    assert not result.starts
    assert {(each.reason, each.path) for each in result.findings} == {
        ("UnknownPlugin", f"profiles[0].plugins.score.enabled[{index}].name") for index in (0, 1)
    }
    assert validated(text, stock=False).starts


@pytest.mark.parametrize("name", ["tlsMinVersion", "featureGates", "v", "authenticationKubeconfig"])
def test_flags_are_not_fields(name: str) -> None:
    (finding,) = validated(f"{NEW}{name}: x\n").findings
    assert (finding.reason, finding.path, finding.position.line) == ("UnknownField", name, 3)
