"""Reading installer pods, in every state that the kubelet reports."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.operator.controlplane.rollout.installer_pods import Stage, read

from .....builders import RUNNING, installer_pod, installer_status, terminated

REFUSAL = (
    "I1121 10:02:02.900000       1 serving.go:386] Generated self-signed cert in-memory\n"
    'E1121 10:02:03.000000       1 run.go:72] "command failed" err="initializing profiles: '
    "creating "
    'profile for scheduler name default-scheduler: ScorePlugin \\"Nope\\" does not exist"\n'
)
SENTENCE = (
    "initializing profiles: creating profile for scheduler name default-scheduler: "
    'ScorePlugin "Nope" does not exist'
)
RESULT = Result(InstallerOutcome.INSTALLED, 7, "node-a", 7, steps={"ready": 1.5})

CREATING = {"waiting": {"reason": "ContainerCreating"}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}


def pod(
    phase: str,
    preflight: dict[str, Any] | None = None,
    installer: dict[str, Any] | None = None,
    *,
    last_preflight: dict[str, Any] | None = None,
    last_installer: dict[str, Any] | None = None,
    permission: str | None = "true",
    started: bool = False,
    **status: Any,
) -> dict[str, Any]:
    containers = installer_status(
        phase,
        preflight,
        installer,
        last_preflight=last_preflight,
        last_installer=last_installer,
        started=started,
        others=[{"name": "unrelated", "state": RUNNING}],
    )
    return installer_pod("node-a", 7, {**containers, **status}, permission=permission)


@pytest.mark.parametrize(
    ("found", "stage", "message"),
    [
        pytest.param(pod("Pending"), Stage.PENDING, "", id="no status yet"),
        pytest.param(
            pod("Pending", message="no disk"), Stage.PENDING, "no disk", id="kubelet reports why"
        ),
        pytest.param(pod("Pending", CREATING, CREATING), Stage.PENDING, "", id="image is pulled"),
        pytest.param(pod("Running", RUNNING, RUNNING), Stage.PREFLIGHT, "", id="check runs"),
        pytest.param(
            pod("Pending", terminated(0), CREATING), Stage.PREFLIGHT, "", id="check succeeded"
        ),
        pytest.param(
            pod("Running", terminated(1, REFUSAL), RUNNING), Stage.REFUSED, SENTENCE, id="refused"
        ),
        pytest.param(
            pod("Running", BACK_OFF, RUNNING, last_preflight=terminated(1, REFUSAL)),
            Stage.REFUSED,
            SENTENCE,
            id="refused, the kubelet waits to try again",
        ),
        pytest.param(
            pod("Running", RUNNING, RUNNING, last_preflight=terminated(1, REFUSAL)),
            Stage.REFUSED,
            SENTENCE,
            id="refused, the kubelet tries again",
        ),
        pytest.param(
            pod("Pending", terminated(2, "panic: oh no\n\ngoroutine 1 [running]:")),
            Stage.REFUSED,
            "panic: oh no",
            id="panic",
        ),
        pytest.param(
            pod("Pending", terminated(137, "", reason="OOMKilled")),
            Stage.PREFLIGHT,
            "the preflight ended with exit code 137: ",
            id="killed: no result about the configuration",
        ),
        pytest.param(
            pod("Pending", terminated(0), last_preflight=terminated(1, REFUSAL)),
            Stage.PREFLIGHT,
            "",
            id="accepted at the second attempt",
        ),
        pytest.param(
            pod("Running", terminated(0), RUNNING), Stage.INSTALLING, "", id="installer runs"
        ),
        pytest.param(
            pod("Running", terminated(0), BACK_OFF, last_installer=terminated(1, "disk full\n")),
            Stage.INSTALLING,
            "disk full",
            id="installer failed and will be tried again",
        ),
        pytest.param(
            pod("Running", terminated(0), RUNNING, last_installer=terminated(1, "disk full")),
            Stage.INSTALLING,
            "disk full",
            id="installer is tried again",
        ),
        pytest.param(
            pod("Running", RUNNING, RUNNING, permission=None),
            Stage.PREFLIGHT,
            "",
            id="checks without permission",
        ),
        pytest.param(
            pod("Running", terminated(0), RUNNING, permission=None), Stage.STAGING, "", id="stages"
        ),
        pytest.param(
            pod("Running", terminated(0), RUNNING, permission=None, started=True),
            Stage.STAGED,
            "",
            id="staged",
        ),
        pytest.param(
            pod("Running", terminated(0), RUNNING, permission="soon", started=True),
            Stage.STAGED,
            "",
            id="staged, another value of the annotation",
        ),
        pytest.param(
            pod(
                "Running",
                terminated(0),
                BACK_OFF,
                last_installer=terminated(1, "full"),
                permission=None,
            ),
            Stage.STAGING,
            "full",
            id="could not stage and waits",
        ),
        pytest.param(
            pod(
                "Running",
                terminated(0),
                RUNNING,
                last_installer=terminated(1, "full"),
                permission=None,
            ),
            Stage.STAGING,
            "full",
            id="could not stage and tries again",
        ),
        pytest.param(
            pod("Succeeded", terminated(0), terminated(0, RESULT.serialise())),
            Stage.DONE,
            "",
            id="done",
        ),
        pytest.param(
            pod("Running", terminated(0), terminated(0, RESULT.serialise())),
            Stage.DONE,
            "",
            id="done, phase lags behind",
        ),
        pytest.param(
            pod("Running", terminated(0), terminated(0, "I1121 a log line")),
            Stage.INSTALLING,
            "I1121 a log line",
            id="ended well without a result, phase lags behind",
        ),
        pytest.param(
            pod("Succeeded", terminated(0), terminated(0, "I1121 a log line")),
            Stage.LOST,
            "the installer pod ended without a result: I1121 a log line",
            id="ended well without a result",
        ),
        pytest.param(
            pod("Failed", reason="Evicted", message="The node was low on resource: memory"),
            Stage.LOST,
            "the installer pod ended without a result: The node was low on resource: memory",
            id="evicted",
        ),
        pytest.param(
            pod("Failed", reason="NodeShutdown"),
            Stage.LOST,
            "the installer pod ended without a result: NodeShutdown",
            id="only a reason",
        ),
        pytest.param(
            pod("Failed"),
            Stage.LOST,
            "the installer pod ended without a result: no message",
            id="no reason at all",
        ),
        pytest.param(
            pod("Failed", terminated(0), terminated(0, RESULT.serialise())),
            Stage.DONE,
            "",
            id="evicted after it was done: the result counts",
        ),
    ],
)
def test_stages(found: dict[str, Any], stage: Stage, message: str) -> None:
    installer = read(found)
    assert (installer.stage, installer.message) == (stage, message)


@pytest.mark.parametrize(
    ("code", "problem"),
    [(1, "port 10261 is taken"), (137, ""), (143, ""), (0, "")],
    ids=["its own message", "killed", "terminated", "done"],
)
def test_problem_is_the_installers_own_message(code: int, problem: str) -> None:
    found = pod(
        "Running", terminated(0), BACK_OFF, last_installer=terminated(code, "port 10261 is taken")
    )
    assert read(found).problem == problem


@pytest.mark.parametrize(
    ("state", "started", "expected"),
    [(BACK_OFF, False, True), (RUNNING, False, True), (RUNNING, True, False)],
    ids=["waits to be started again", "tries again", "goes on"],
)
@pytest.mark.parametrize("permission", [None, "true"])
def test_an_installer_that_failed_is_stuck_until_it_has_staged(
    state: dict[str, Any], permission: str | None, *, started: bool, expected: bool
) -> None:
    last = terminated(1, "port 10261 is taken")
    found = pod(
        "Running", terminated(0), state, last_installer=last, permission=permission, started=started
    )
    assert read(found).stuck is expected


def test_a_result_has_the_time_at_which_the_installer_ended() -> None:
    installer = read(pod("Succeeded", terminated(0), terminated(0, RESULT.serialise())))
    assert installer.result == RESULT
    assert installer.ended_at is not None
    assert installer.ended_at.second == 9


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod("Running", RUNNING, RUNNING), False),
        (pod("Running", terminated(0), RUNNING), True),
        (pod("Running", terminated(0), RUNNING, permission=None), False),
        (pod("Running", terminated(0), BACK_OFF, last_installer=terminated(1)), False),
        (pod("Succeeded", terminated(0), terminated(0, RESULT.serialise())), False),
    ],
    ids=["preflight", "installer", "no permission", "installer in back-off", "done"],
)
def test_swapping_while_the_installer_runs(found: dict[str, Any], *, expected: bool) -> None:
    assert read(found).swapping is expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (CREATING, None),
        (
            {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
            ("ErrImagePull", "not found"),
        ),
        (
            {
                "waiting": {
                    "reason": "ImagePullBackOff",
                    "message": 'Back-off pulling image "x:1": ErrImagePull: not found',
                }
            },
            ("ErrImagePull", "not found"),
        ),
        (
            {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x:1"'}},
            ("ErrImagePull", 'Back-off pulling image "x:1"'),
        ),
        (
            {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": "back-off 2m40s restarting failed container=installer pod=p",
                }
            },
            ("CrashLoopBackOff", "restarting failed container=installer pod=p"),
        ),
        ({"waiting": {"reason": "CreateContainerConfigError"}}, ("CreateContainerConfigError", "")),
        (RUNNING, None),
    ],
    ids=["creating", "image", "image: wait", "image: old kubelet", "restart", "config", "running"],
)
def test_reason_and_message_of_a_waiting_container(
    state: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    assert read(pod("Pending", state)).waiting == expected
    assert read(pod("Pending", terminated(0), state)).waiting == expected


def test_a_pod_without_status_is_pending() -> None:
    installer = read({"metadata": {"name": "installer-x"}})
    assert installer.stage is Stage.PENDING
    assert (installer.revision, installer.node, installer.created) == (0, "", None)


def test_deleting_follows_the_deletion_timestamp() -> None:
    found = pod("Running")
    assert not read(found).deleting
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert read(found).deleting


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param(REFUSAL, SENTENCE, id="kube-scheduler's error"),
        pytest.param("\n \n", "no reason in its log", id="blank"),
        pytest.param("", "no reason in its log", id="nothing"),
    ],
)
def test_a_refusal_has_the_error_of_the_preflight(log: str, expected: str) -> None:
    ended = {"terminated": {"exitCode": 1, "message": log}}
    refused = read(pod("Running", ended))
    assert (refused.stage, refused.message) == (Stage.REFUSED, expected)


def test_a_pod_that_does_not_start_names_the_files_that_the_kubelet_waits_for() -> None:
    starting = pod("Pending", CREATING, CREATING)
    file = {"name": "scheduler-0", "hostPath": {"path": "/etc/ssl/a.crt", "type": "File"}}
    own = {"name": "manifests", "hostPath": {"path": "/etc/kubernetes"}}
    starting["spec"] = {**starting.get("spec", {}), "volumes": [own, file]}
    assert read(starting).awaited_files == (
        "the kubelet starts it when the node has /etc/ssl/a.crt"
    )
    starting["status"]["phase"] = "Running"
    starting["spec"]["volumes"] = [own]
    assert read(starting).awaited_files == ""
