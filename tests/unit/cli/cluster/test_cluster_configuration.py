"""Where kubeadm's ClusterConfiguration and the operator disagree."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.cli.cluster.cluster_configuration import disagreements

FLAGS = {"tls-min-version": ["VersionTLS13"]}
IMAGE = "registry.k8s.io/kube-scheduler:v1.36.3"


def config_map(**fields: Any) -> dict[str, Any]:
    found = {
        "kubernetesVersion": "v1.36.3",
        "imageRepository": "registry.k8s.io",
        "scheduler": {},
        **fields,
    }
    return {"data": {"ClusterConfiguration": yaml.safe_dump(found)}}


def adopted(flags: dict[str, list[str]]) -> dict[str, Any]:
    return {"spec": {"observedConfig": {"arguments": flags}}}


def found(fields: dict[str, Any], flags: dict[str, list[str]], *images: str) -> str:
    return "\n".join(disagreements(config_map(**fields), adopted(flags), images or (IMAGE,)))


def extra(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"scheduler": {"extraArgs": [{"name": n, "value": v} for n, v in pairs]}}


def test_agreement_is_silent() -> None:
    assert found({}, {}) == ""
    assert found(extra(("tls-min-version", "VersionTLS13")), FLAGS) == ""
    assert (
        found(
            {"scheduler": {"extraArgs": {"tls-min-version": "VersionTLS13"}}},
            {"tls-min-version": ["VersionTLS13"]},
        )
        == ""
    )


def test_flags_of_kubeadm_and_of_the_operator_do_not_count() -> None:
    assert (
        found(extra(("v", "4"), ("config", "/etc/x"), ("leader-elect-lease-duration", "1s")), {})
        == ""
    )


@pytest.mark.parametrize(
    ("pairs", "flags", "text"),
    [
        (
            (("tls-min-version", "VersionTLS13"),),
            {},
            "sets --tls-min-version=VersionTLS13, which the operator does not use: set it",
        ),
        (
            (),
            {"tls-min-version": ["VersionTLS13"]},
            "does not set --tls-min-version=VersionTLS13, which the operator",
        ),
        (
            (("feature-gates", "A=true"),),
            {"feature-gates": ["B=true"]},
            "sets --feature-gates=A=true, and the operator uses --feature-gates=B=true",
        ),
    ],
)
def test_a_flag_that_differs_is_named_with_what_applies_it(
    pairs: tuple[tuple[str, str], ...], flags: dict[str, list[str]], text: str
) -> None:
    assert text in found(extra(*pairs), flags)


def test_the_log_level_that_was_adopted_is_compared() -> None:
    adopted_level = {"v": ["4"]}
    assert found(extra(("v", "4")), adopted_level) == ""
    assert found({"scheduler": {"extraArgs": {"v": "4"}}}, adopted_level) == ""
    assert "does not set --v=4" in found({}, adopted_level)
    assert "sets --v=2, and the operator uses --v=4" in found(extra(("v", "2")), adopted_level)


def test_overrides_count_for_the_flags_in_use_and_need_not_be_in_extra_arguments() -> None:
    spec = {
        "observedConfig": {"arguments": {"feature-gates": ["A=true"]}},
        "unsupportedConfigOverrides": {
            "arguments": {"feature-gates": ["B=true"], "permit-port-sharing": "true"}
        },
    }

    def sentences(*pairs: tuple[str, str]) -> list[str]:
        return list(disagreements(config_map(**extra(*pairs)), {"spec": spec}, [IMAGE]))

    assert sentences(("feature-gates", "B=true")) == []
    assert sentences() == []
    (sentence,) = sentences(("feature-gates", "A=true"))
    assert "and the operator uses --feature-gates=B=true: set it in spec.un" in sentence


def test_a_flag_with_kubeadms_own_value_agrees() -> None:
    assert found(extra(("bind-address", "127.0.0.1")), {}) == ""
    assert "sets --bind-address=0.0.0.0, and the operator uses" in found(
        extra(("bind-address", "0.0.0.0")), {}
    )


def test_an_unfinished_upgrade_is_named() -> None:
    old = IMAGE.replace("36.3", "35.4")
    text = found({}, {}, IMAGE, old)
    assert f"kubernetesVersion is v1.36.3, and schedulers run {old}" in text


def test_another_repository_is_named() -> None:
    text = found({"imageRepository": "registry.example/k8s"}, {})
    assert "imageRepository is registry.example/k8s" in text
    assert "OPERAND_IMAGE" in text


@pytest.mark.parametrize(
    "broken", [None, {}, {"data": None}, {"data": {"ClusterConfiguration": 3}}]
)
def test_without_kubeadm_there_is_nothing_to_compare(broken: Any) -> None:
    assert list(disagreements(broken, adopted({}), [IMAGE])) == []


def test_a_damaged_file_is_named() -> None:
    damaged = {"data": {"ClusterConfiguration": "a: [b"}}
    assert list(disagreements(damaged, adopted({}), [IMAGE])) == [
        "ClusterConfiguration is not YAML; kubeadm cannot read it"
    ]
