"""unsupportedConfigOverrides: their parts, and the settings that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.overrides import (
    Overrides,
    read_overrides,
    set_keys,
)


def read(value: Any) -> Overrides:
    return read_overrides(value, KUBEADM)


def degraded(overrides: Overrides) -> list[tuple[str, str]]:
    return [
        (finding.reason, finding.path.removeprefix("spec.unsupportedConfigOverrides"))
        for finding in overrides.findings
        if finding.condition == names.OVERRIDES_DEGRADED and finding.blocking
    ]


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        (None, []),
        ({"apple": {"banana": {"carrot": "hammer"}}}, ["apple.banana.carrot"]),
        (
            {"b": {"c": 1}, "a": {"d": None, "e": False}},
            ["a.d", "a.e", "b.c"],
        ),
        (
            {
                "apple": {
                    "banana": {"carrot": ["hammer"]},
                    "blueberry": [{"saw": "chainsaw", "chives": {"dill": "dirt"}}],
                }
            },
            ["apple.banana.carrot.0", "apple.blueberry.0.chives.dill", "apple.blueberry.0.saw"],
        ),
    ],
)
def test_set_keys_are_dotted_paths(value: Any, keys: list[str]) -> None:
    assert set_keys(value) == keys


@pytest.mark.parametrize("value", [None, {}])
def test_without_overrides_there_are_no_findings(value: Any) -> None:
    assert read(value) == Overrides()


def test_overrides_are_reported_without_blocking() -> None:
    (finding,) = read({"parallelism": 8, "arguments": {"v": 4}}).findings
    assert finding.condition == names.OVERRIDES_UPGRADEABLE
    assert finding.reason == "UnsupportedConfigOverridesSet"
    assert finding.message == "setting: [arguments.v parallelism]"
    assert not finding.blocking


def test_overrides_are_split_into_configuration_and_flags() -> None:
    overrides = read(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "parallelism": 8,
            "arguments": {
                "text": "a", "number": 5, "float": 0.5, "whole": 5.0, "yes": True,
                "several": ["a", 1, False], "bind_address": "::", "gone": None, "none": [],
            },
            "servingInfo": {"cipherSuites": ["A", "B"], "minTLSVersion": "VersionTLS13"},
        }
    )  # fmt: skip
    assert degraded(overrides) == []
    assert overrides.config == {"parallelism": 8}
    assert overrides.arguments == {
        "text": ["a"], "number": ["5"], "float": ["0.5"], "whole": ["5"], "yes": ["true"],
        "several": ["a", "1", "false"], "bind-address": ["::"], "gone": [], "none": [],
    }  # fmt: skip
    assert overrides.serving == {
        "tls-cipher-suites": ["A,B"],
        "tls-min-version": ["VersionTLS13"],
    }


@pytest.mark.parametrize(
    "value",
    [
        {"servingInfo": None, "arguments": None},
        {"servingInfo": {"cipherSuites": [], "minTLSVersion": ""}},
        {"servingInfo": {"cipherSuites": None}},
    ],
)
def test_empty_parts_are_ignored(value: Any) -> None:
    overrides = read(value)
    assert (overrides.arguments, overrides.serving, degraded(overrides)) == ({}, {}, [])


@pytest.mark.parametrize(
    ("value", "reason", "path"),
    [
        ("parallelism: 8", "Malformed", ""),
        ([1], "Malformed", ""),
        ({"arguments": ["--v=2"]}, "Malformed", ".arguments"),
        ({"arguments": {"x": {"y": 1}}}, "Malformed", ".arguments.x"),
        ({"arguments": {"x": ["a", None]}}, "Malformed", ".arguments.x[1]"),
        ({"arguments": {"--v": 2}}, "Malformed", ".arguments.--v"),
        ({"arguments": {"": 2}}, "Malformed", ".arguments['']"),
        ({"arguments": {"a-b": 1, "a_b": 2}}, "Malformed", ".arguments.a_b"),
        ({"servingInfo": "x"}, "Malformed", ".servingInfo"),
        ({"servingInfo": {"cipherSuites": "A,B"}}, "Malformed", ".servingInfo.cipherSuites"),
        ({"servingInfo": {"minTLSVersion": 1.2}}, "Malformed", ".servingInfo.minTLSVersion"),
        ({"servingInfo": {"bindAddress": "::"}}, "Malformed", ".servingInfo.bindAddress"),
        ({"kind": "Policy"}, "TypeMetaMismatch", ".kind"),
        ({"apiVersion": "v1", "kind": "KubeSchedulerConfiguration"}, "TypeMetaMismatch",
         ".apiVersion"),
    ],
)  # fmt: skip
def test_malformed_overrides_block(value: Any, reason: str, path: str) -> None:
    assert degraded(read(value)) == [(reason, path)]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"leaderElection": {"leaderElect": False}}, ".leaderElection.leaderElect"),
        ({"leaderElection": {"resourceName": "mine"}}, ".leaderElection.resourceName"),
        ({"leaderElection": {"resourceNamespace": "x"}}, ".leaderElection.resourceNamespace"),
        ({"leaderElection": {"resourceLock": "endpoints"}}, ".leaderElection.resourceLock"),
        ({"clientConnection": {"kubeconfig": "/x"}}, ".clientConnection.kubeconfig"),
        ({"arguments": {"config": "/x"}}, ".arguments.config"),
        ({"arguments": {"kubeconfig": "/x"}}, ".arguments.kubeconfig"),
        ({"arguments": {"write-config-to": "/x"}}, ".arguments.write-config-to"),
        ({"arguments": {"write_config_to": "/x"}}, ".arguments.write-config-to"),
        ({"arguments": {"secure-port": 0}}, ".arguments.secure-port"),
        ({"arguments": {"leader-elect": False}}, ".arguments.leader-elect"),
        ({"arguments": {"leader-elect": "F"}}, ".arguments.leader-elect"),
        ({"arguments": {"leader-elect-resource-name": "x"}},
         ".arguments.leader-elect-resource-name"),
    ],
)  # fmt: skip
def test_settings_that_would_stop_scheduling_cannot_be_overridden(value: Any, path: str) -> None:
    assert degraded(read(value)) == [("OwnedSetting", path)]


@pytest.mark.parametrize(
    "value",
    [
        {"leaderElection": {"leaderElect": True, "resourceName": "kube-scheduler"}},
        {"leaderElection": {"leaseDuration": "137s"}},
        {"arguments": {"leader-elect": True, "secure-port": 11259}},
        {"arguments": {"leader-elect-resource-name": "kube-scheduler"}},
        {"clientConnection": {"kubeconfig": KUBEADM.scheduler_kubeconfig, "qps": 5}},
    ],
)
def test_overrides_equal_to_owned_settings_are_accepted(value: Any) -> None:
    assert degraded(read(value)) == []
