"""The text of a change has commands that can be run as they are."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.simulate.fix import naming_node


@pytest.mark.parametrize(
    ("text", "nodes", "named"),
    [
        ("uncordon it: kubectl uncordon NODE", ["b"], "uncordon it: kubectl uncordon b"),
        ("kubectl uncordon NODE", ["b", "a"], "kubectl uncordon a (a is one of 2 such nodes)"),
        ("kubectl get pods -A --field-selector spec.nodeName=NODE", ["a"],
         "kubectl get pods -A --field-selector spec.nodeName=a"),
        ("kubectl label node NODE rack=VALUE", ["a"], "kubectl label node a rack=VALUE"),
        ("kubectl label node NODE rack=VALUE", ["a", "b"], "kubectl label node NODE rack=VALUE"),
        ("set NODE_NAME", ["a"], "set NODE_NAME"),
        ("kubectl uncordon NODE", [], "kubectl uncordon NODE"),
        (r"kubectl label node NODE a=b", [r"\1"], r"kubectl label node \1 a=b"),
    ],
)  # fmt: skip
def test_commands_name_a_node(text: str, nodes: list[str], named: str) -> None:
    assert naming_node(text, nodes) == named
