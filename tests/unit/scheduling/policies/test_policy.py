from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.policy import (
    ArgumentsError,
    Policy,
    UnknownPolicyError,
    catalogue,
    policy_class,
    read_arguments,
)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_policy_has_its_name_in_the_catalogue(name: str) -> None:
    found = policy_class(name)
    assert found.name == name
    assert found.filters or found.scores
    read_arguments(name, {})


def test_errors_name_the_policy_or_the_field() -> None:
    with pytest.raises(UnknownPolicyError, match=r'unknown policy "safe"; (use|did you mean)'):
        read_arguments("safe", {})
    with pytest.raises(ArgumentsError, match=r"arguments.utilization: 120 is not between 0 and"):
        read_arguments("safe-overload", {"utilization": 120})


def test_environment_variables_of_the_original_agents() -> None:
    environ = {"SAFEUTILIZATION": "80", "SAFEPERCENTILE": "x", "SAFEPRINTTABLE": "true"}
    made = read_arguments("safe-overload", {"percentile": 20}, environ)
    assert (made.utilization, made.percentile, made.print_table) == (80, 20, True)


def install(directory: Path, entry: str, code: str) -> None:
    """An installed distribution."""
    (directory / "others_policy.py").write_text(code)
    info = directory / "others_policy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others-policy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kube_scheduler_operator.policies]\n{entry}\n")


CODE = """
from kube_scheduler_operator.scheduling.policies.policy import Policy

class Mine(Policy):
    name = "mine"
    scores = True

NOT = 3
"""


def test_a_policy_of_another_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "mine = others_policy:Mine\nfoo = others_policy:Mine\n"
            "bad = others_policy:Missing\nnot = others_policy:NOT", CODE)  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "others_policy", raising=False)
    importlib.invalidate_caches()
    assert catalogue()["mine"].distribution == "others-policy"
    assert policy_class("mine").name == "mine"
    assert policy_class("foo").__module__.startswith("kube_scheduler_operator.")
    with pytest.raises(UnknownPolicyError, match='policy "bad" of others-policy'):
        policy_class("bad")
    with pytest.raises(UnknownPolicyError, match="not a subclass of Policy"):
        policy_class("not")
    monkeypatch.delitem(sys.modules, "others_policy", raising=False)


def test_a_policy_without_pods_cannot_register_on_pod() -> None:
    class Deaf(Policy):
        name = "deaf"
        pods = False

    with pytest.raises(TypeError, match="Deaf registers on_pod: it must not set pods = False"):
        Deaf(None, Cluster(lambda: 0.0)).listen(on_pod=lambda *_: None)
