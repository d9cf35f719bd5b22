"""Variables in the words of a container, as the kubelet replaces them."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.lint.forms.flags import LONGEST, variables_of
from kube_scheduler_operator.config.lint.reports.report import FileFinding

from .test_words import KUBECONFIG, checked

FROM_THE_POD = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


@pytest.mark.parametrize(
    ("word", "expanded"),
    [
        ("--v=$(LEVEL)", "--v=4"),
        ("$(LEVEL)$(LEVEL)", "44"),
        ("--name=$(BOTH)", "--name=level-4"),
        ("--name=$(LATER)", "--name=$(LAST)"),
        ("$$(LEVEL)", "$(LEVEL)"),
        ("$$$(LEVEL)", "$4"),
        ("$(LEVEL", "$(LEVEL"),
        ("$LEVEL", "$LEVEL"),
        ("$()", "$()"),
        ("$(EMPTY)", ""),
        ("$(POD)", "$(POD)"),
        ("$", "$"),
    ],
)
def test_a_word_is_expanded_as_the_kubelet_does(word: str, expanded: str) -> None:
    env = [
        {"name": "LEVEL", "value": "4"},
        {"name": "BOTH", "value": "level-$(LEVEL)"},
        {"name": "LATER", "value": "$(LAST)"},
        {"name": "LAST", "value": "x"},
        {"name": "EMPTY"},
        {"name": "POD", **FROM_THE_POD},
    ]
    assert variables_of({"env": env}).expanded(word) == expanded


def found(*words: str, **container: Any) -> list[FileFinding]:
    command = ["kube-scheduler", f"--kubeconfig={KUBECONFIG}", *words]
    return list(checked(command=command, **container).findings)


@pytest.mark.parametrize(
    "word",
    [
        "--v=$(LEVEL)",
        "--leader-elect=$(ON)",
        "--leader-elect-lease-duration=$(LEVEL)",
        "--leader-elect-resource-name=$(LEVEL)",
        "--tls-cert-file=$(LEVEL)",
        "--feature-gates=$(LEVEL)",
        "--config=$(LEVEL)",
        "--kube-api-qps=$(MY_SERVICE_PORT)",
        "$(LEVEL)",
    ],
)
@pytest.mark.parametrize(
    "variables",
    [
        {"env": [{"name": "LEVEL", **FROM_THE_POD}, {"name": "ON", "value": "$(LEVEL)"}]},
        {"envFrom": [{"configMapRef": {"name": "levels"}}]},
    ],
    ids=["valueFrom", "envFrom"],
)
def test_a_value_that_only_the_cluster_knows_is_not_checked(
    word: str, variables: dict[str, Any]
) -> None:
    assert found(word, **variables) == []


def test_a_value_in_the_file_is_checked() -> None:
    env = [{"name": "ON", "value": "yes please"}]
    (one,) = found("--leader-elect=$(ON)", env=env)
    assert (one.message, one.fix) == (
        '--leader-elect: "yes please" is neither true nor false',
        "write true or false",
    )


def test_the_name_of_a_flag_is_checked_without_its_value() -> None:
    (one,) = found("--paralelism=$(ANY)", env=[{"name": "ANY", **FROM_THE_POD}])
    assert one.reason == "UnknownArgument"


@pytest.mark.parametrize(
    ("word", "severity"),
    [("--v=$(LEVEL)", "error"), ("--leader-elect-resource-name=$(LEVEL)", "warning")],
)
def test_a_variable_that_the_container_does_not_have_is_named(word: str, severity: str) -> None:
    (one,) = found(word, env=[{"name": "OTHER", "value": "4"}])
    assert (one.severity, one.path) == (severity, "spec.containers[0].command[2]")
    assert "the container has no variable LEVEL" in one.message
    assert one.fix == "add LEVEL to env of the container, or write the value"


def test_variables_that_double_each_other_cost_nothing() -> None:
    env = [{"name": "V0", "value": "0123456789"}]
    env += [{"name": f"V{n}", "value": f"$(V{n - 1})" * 100} for n in range(1, 40)]
    assert found("--v=$(V39)", env=env) == []
    assert len(variables_of({"env": env}).expanded("$(V2)" * 100)) <= LONGEST + 1
