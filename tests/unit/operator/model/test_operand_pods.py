"""Mirror pods of the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.operator.model.operand_pods import read


def pod(state: dict[str, Any] | None = None, *, ready: str = "True", **container: Any) -> Any:
    scheduler = {"name": names.OPERAND, "state": state or {"running": {}}, **container}
    return {
        "metadata": {
            "name": "kube-scheduler-n",
            "labels": {names.REVISION_LABEL: "7"},
            "annotations": {names.CONTENT_HASH_ANNOTATION: "abc"},
        },
        "spec": {
            "nodeName": "n",
            "containers": [
                {"name": "a-sidecar", "image": "other"},
                {
                    "name": names.OPERAND,
                    "image": "k:v1",
                    "command": ["kube-scheduler"],
                    "args": ["-v=2"],
                },
            ],
        },
        "status": {
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:05Z"},
            ],
            # The kubelet sorts these by name, so position means nothing.
            "containerStatuses": [{"name": "a-sidecar", "restartCount": 9}, scheduler],
        },
    }


def test_a_healthy_scheduler() -> None:
    operand = read(pod())
    assert operand.ours
    assert (operand.node, operand.revision, operand.content_hash) == ("n", 7, "abc")
    assert operand.ready
    assert operand.ready_since is not None
    assert operand.trouble == ""
    assert (operand.image, operand.arguments) == ("k:v1", ("kube-scheduler", "-v=2"))
    assert operand.restarts == 0, "of the scheduler, not of the sidecar"


@pytest.mark.parametrize("label", [None, "", "REVISION", "-1"])
def test_a_scheduler_without_a_revision_is_not_the_operators(label: str | None) -> None:
    found = pod()
    found["metadata"]["labels"] = {} if label is None else {names.REVISION_LABEL: label}
    assert not read(found).ours


@pytest.mark.parametrize(
    ("state", "container", "trouble", "crash_looping"),
    [
        pytest.param({"waiting": {"reason": "ContainerCreating"}}, {}, "", False, id="starts"),
        pytest.param(
            {"waiting": {"reason": "ImagePullBackOff", "message": "m"}},
            {},
            'pod/kube-scheduler-n container "kube-scheduler" is waiting: ImagePullBackOff: m',
            False,
            id="image",
        ),
        pytest.param(
            {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
            {"restartCount": 4},
            'pod/kube-scheduler-n container "kube-scheduler" is waiting: CrashLoopBackOff: m',
            True,
            id="crash loop",
        ),
        pytest.param(
            {"terminated": {"exitCode": 1, "reason": "Error", "message": "boom\n"}},
            {},
            'pod/kube-scheduler-n container "kube-scheduler" is terminated: Error: boom',
            False,
            id="ended badly",
        ),
        pytest.param(
            {"terminated": {"exitCode": 0, "reason": "Completed"}}, {}, "", False, id="ended"
        ),
    ],
)
def test_trouble(
    state: dict[str, Any], container: dict[str, Any], trouble: str, *, crash_looping: bool
) -> None:
    operand = read(pod(state, ready="False", **container))
    assert (operand.trouble, operand.crash_looping) == (trouble, crash_looping)
    assert not operand.ready
    assert operand.ready_since is None
    assert operand.restarts == container.get("restartCount", 0)


def test_the_termination_message_is_that_of_the_last_run() -> None:
    last = {"terminated": {"exitCode": 1, "message": "old\n"}}
    assert read(pod(lastState=last)).termination_message == "old"
    now = {"terminated": {"exitCode": 1, "message": "new"}}
    assert read(pod(now, lastState=last)).termination_message == "new"


FLAG = 'I1126 10:36:02.241237   28253 flags.go:64] FLAG: --allow-metric-labels="[]"'
BIND = 'E1126 10:36:09.754537   28253 run.go:72] "command failed" err="bind: address in use"'


@pytest.mark.parametrize(
    ("last", "error"),
    [
        pytest.param(
            {"exitCode": 1, "message": f"{FLAG}\n{BIND}"}, "bind: address in use", id="error"
        ),
        pytest.param(
            {"exitCode": 1, "reason": "Error", "message": FLAG},
            "it ended with exit code 1",
            id="flags",
        ),
        pytest.param(
            {"exitCode": 137, "reason": "OOMKilled"},
            "it ended with exit code 137 (OOMKilled)",
            id="no log",
        ),
    ],
)
def test_why_the_last_run_ended(last: dict[str, Any], error: str) -> None:
    assert read(pod()).last_error == ""
    assert read(pod(lastState={"terminated": last})).last_error == error
    ended = read(pod({"terminated": last}, ready="False"))
    assert ended.last_error == error
    assert ended.trouble.endswith(f"is terminated: {last.get('reason', '')}: {error}")


def test_a_pod_without_status_is_not_ready() -> None:
    operand = read({"metadata": {"name": "kube-scheduler-n"}})
    assert (operand.ready, operand.image, operand.arguments) == (False, "", ())


def test_a_pod_of_openshifts_operator_has_no_revision_of_this_one() -> None:
    own = pod()
    own["metadata"]["labels"] = {names.REVISION_LABEL: "7"}
    assert read(own).ours
    own["spec"]["containers"].append({"name": "kube-scheduler-cert-syncer"})
    assert (read(own).ours, read(own).revision) == (False, 0)
