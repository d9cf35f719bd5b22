"""What `why` still shows of a Pod where the cluster cannot be read."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.simulation import explanation
from kube_scheduler_operator.cli.simulation.extender_decisions import RememberedDecisions
from kube_scheduler_operator.kube.errors import KubeError

MESSAGE = "0/3 nodes are available: 3 Insufficient cpu."


@pytest.mark.parametrize(
    ("status", "shown"), [("False", True), ("True", False)], ids=["waits", "scheduled"]
)
async def test_the_last_answer_of_the_scheduler_is_shown_to_a_user_of_one_namespace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: str, shown: bool
) -> None:
    """The user may read the Pod, and no Nodes."""
    condition = {"type": "PodScheduled", "status": status, "message": f"{MESSAGE}\x1b[31m"}

    async def found(*_: Any) -> dict[str, Any]:
        return {"spec": {}, "status": {"conditions": [condition]}}

    async def remembered(*_: Any, **__: Any) -> RememberedDecisions:
        return RememberedDecisions()

    async def refused(*_: Any) -> None:
        raise KubeError("nodes is forbidden")

    monkeypatch.setattr(explanation, "find_object", found)
    monkeypatch.setattr(explanation, "remembered", remembered)
    monkeypatch.setattr(explanation, "from_cluster", refused)
    args = argparse.Namespace(pod="web", kind=None, namespace="shop", details=False, nodes=5)
    with pytest.raises(KubeError):
        await explanation._of_pod(None, KUBEADM, args)  # type: ignore[arg-type]
    lines = capsys.readouterr().err.splitlines()
    own = [line for line in lines if MESSAGE in line]
    assert bool(own) is shown
    assert not any("\x1b" in line for line in lines)
    for line in own:
        assert line.startswith("note: the Pod's condition PodScheduled has the last answer: ")
