"""Reading installer pods, in every state that the kubelet reports."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.controlplane.rollout.installer_pods import (
    Stage,
    read,
    scheduler_sentence,
)
from kube_scheduler_operator.programs.node.result import Result, Verdict

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
RESULT = Result(Verdict.INSTALLED, 7, "node-a", 7, steps={"ready": 1.5})

CREATING = {"waiting": {"reason": "ContainerCreating"}}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}


def ended(code: int, message: str = "", **fields: Any) -> dict[str, Any]:
    at = "2026-01-01T00:00:09Z"
    return {"terminated": {"exitCode": code, "message": message, "finishedAt": at, **fields}}


def pod(
    phase: str,
    preflight: dict[str, Any] | None = None,
    installer: dict[str, Any] | None = None,
    *,
    last_preflight: dict[str, Any] | None = None,
    last_installer: dict[str, Any] | None = None,
    go_ahead: str | None = "true",
    started: bool = False,
    **status: Any,
) -> dict[str, Any]:
    status["phase"] = phase
    statuses = status.setdefault("containerStatuses", [{"name": "unrelated", "state": RUNNING}])
    if preflight is not None:
        statuses.append(
            {"name": names.PREFLIGHT, "state": preflight, "lastState": last_preflight or {}}
        )
    if installer is not None:
        last = last_installer or {}
        statuses.append(
            {"name": names.INSTALLER, "state": installer, "lastState": last, "started": started}
        )
    return {
        "metadata": {
            "name": "installer-7-node-a",
            "labels": {names.INSTALLER_REVISION_LABEL: "7"},
            "annotations": {} if go_ahead is None else {names.GO_AHEAD_ANNOTATION: go_ahead},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": "node-a"},
        "status": status,
    }


@pytest.mark.parametrize(
    ("found", "stage", "message"),
    [
        pytest.param(pod("Pending"), Stage.PENDING, "", id="no status yet"),
        pytest.param(
            pod("Pending", message="no disk"), Stage.PENDING, "no disk", id="kubelet says why"
        ),
        pytest.param(pod("Pending", CREATING, CREATING), Stage.PENDING, "", id="image is pulled"),
        pytest.param(pod("Running", RUNNING, RUNNING), Stage.PREFLIGHT, "", id="check runs"),
        pytest.param(pod("Pending", ended(0), CREATING), Stage.PREFLIGHT, "", id="check succeeded"),
        pytest.param(
            pod("Running", ended(1, REFUSAL), RUNNING), Stage.REFUSED, SENTENCE, id="refused"
        ),
        pytest.param(
            pod("Running", BACK_OFF, RUNNING, last_preflight=ended(1, REFUSAL)),
            Stage.REFUSED,
            SENTENCE,
            id="refused, the kubelet waits to try again",
        ),
        pytest.param(
            pod("Running", RUNNING, RUNNING, last_preflight=ended(1, REFUSAL)),
            Stage.REFUSED,
            SENTENCE,
            id="refused, the kubelet tries again",
        ),
        pytest.param(
            pod("Pending", ended(2, "panic: oh no\n\ngoroutine 1 [running]:")),
            Stage.REFUSED,
            "panic: oh no",
            id="panic",
        ),
        pytest.param(
            pod("Pending", ended(137, "", reason="OOMKilled")),
            Stage.PREFLIGHT,
            "the check ended with exit code 137: ",
            id="killed: says nothing about the configuration",
        ),
        pytest.param(
            pod("Pending", ended(0), last_preflight=ended(1, REFUSAL)),
            Stage.PREFLIGHT,
            "",
            id="accepted at the second attempt",
        ),
        pytest.param(pod("Running", ended(0), RUNNING), Stage.INSTALLING, "", id="installer runs"),
        pytest.param(
            pod("Running", ended(0), BACK_OFF, last_installer=ended(1, "disk full\n")),
            Stage.INSTALLING,
            "disk full",
            id="installer failed and will be tried again",
        ),
        pytest.param(
            pod("Running", ended(0), RUNNING, last_installer=ended(1, "disk full")),
            Stage.INSTALLING,
            "disk full",
            id="installer is tried again",
        ),
        pytest.param(
            pod("Running", RUNNING, RUNNING, go_ahead=None),
            Stage.PREFLIGHT,
            "",
            id="checks before its turn",
        ),
        pytest.param(
            pod("Running", ended(0), RUNNING, go_ahead=None), Stage.STAGING, "", id="stages"
        ),
        pytest.param(
            pod("Running", ended(0), RUNNING, go_ahead=None, started=True),
            Stage.STAGED,
            "",
            id="staged",
        ),
        pytest.param(
            pod("Running", ended(0), RUNNING, go_ahead="soon", started=True),
            Stage.STAGED,
            "",
            id="staged, somebody wrote something else",
        ),
        pytest.param(
            pod("Running", ended(0), BACK_OFF, last_installer=ended(1, "full"), go_ahead=None),
            Stage.STAGING,
            "full",
            id="could not stage and waits",
        ),
        pytest.param(
            pod("Running", ended(0), RUNNING, last_installer=ended(1, "full"), go_ahead=None),
            Stage.STAGING,
            "full",
            id="could not stage and tries again",
        ),
        pytest.param(
            pod("Succeeded", ended(0), ended(0, RESULT.serialise())), Stage.DONE, "", id="done"
        ),
        pytest.param(
            pod("Running", ended(0), ended(0, RESULT.serialise())),
            Stage.DONE,
            "",
            id="done, phase lags behind",
        ),
        pytest.param(
            pod("Running", ended(0), ended(0, "I1121 a log line")),
            Stage.INSTALLING,
            "I1121 a log line",
            id="ended well without a result, phase lags behind",
        ),
        pytest.param(
            pod("Succeeded", ended(0), ended(0, "I1121 a log line")),
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
            pod("Failed", ended(0), ended(0, RESULT.serialise())),
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
    ids=["its own words", "killed", "told to end", "done"],
)
def test_what_is_in_the_way_are_the_installers_own_words(code: int, problem: str) -> None:
    found = pod("Running", ended(0), BACK_OFF, last_installer=ended(code, "port 10261 is taken"))
    assert read(found).problem == problem


@pytest.mark.parametrize(
    ("state", "started", "expected"),
    [(BACK_OFF, False, True), (RUNNING, False, True), (RUNNING, True, False)],
    ids=["waits to be started again", "tries again", "goes on"],
)
@pytest.mark.parametrize("go_ahead", [None, "true"])
def test_an_installer_that_failed_is_stuck_until_it_has_staged(
    state: dict[str, Any], go_ahead: str | None, *, started: bool, expected: bool
) -> None:
    last = ended(1, "port 10261 is taken")
    found = pod("Running", ended(0), state, last_installer=last, go_ahead=go_ahead, started=started)
    assert read(found).stuck is expected


def test_a_result_comes_with_the_moment_it_was_known() -> None:
    installer = read(pod("Succeeded", ended(0), ended(0, RESULT.serialise())))
    assert installer.result == RESULT
    assert installer.ended is not None
    assert installer.ended.second == 9


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod("Running", RUNNING, RUNNING), False),
        (pod("Running", ended(0), RUNNING), True),
        (pod("Running", ended(0), RUNNING, go_ahead=None), False),
        (pod("Running", ended(0), BACK_OFF, last_installer=ended(1)), False),
        (pod("Succeeded", ended(0), ended(0, RESULT.serialise())), False),
    ],
    ids=["preflight", "installer", "not its turn", "installer in back-off", "done"],
)
def test_swapping_means_that_the_installer_runs(found: dict[str, Any], *, expected: bool) -> None:
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
def test_what_a_container_waits_for(
    state: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    assert read(pod("Pending", state)).waiting == expected
    assert read(pod("Pending", ended(0), state)).waiting == expected


def test_a_pod_without_anything_is_pending() -> None:
    installer = read({"metadata": {"name": "installer-x"}})
    assert installer.stage is Stage.PENDING
    assert (installer.revision, installer.node, installer.created) == (0, "", None)


def test_leaving_is_being_deleted() -> None:
    found = pod("Running")
    assert not read(found).leaving
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert read(found).leaving


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param(REFUSAL, SENTENCE, id="last line of kube-scheduler"),
        pytest.param(
            'W1121 10:02:02.1 1 auth.go:1] "Unable to reach" err="connection refused"\n' + REFUSAL,
            SENTENCE,
            id="a warning with an error of its own before it",
        ),
        pytest.param(
            'E1121 10:02:03.0 1 run.go:72] "command failed" err="a:\\n\\tb \\\\n c"',
            "a:;  b \\n c",
            id="escapes",
        ),
        pytest.param(
            'E1121 1 x.go:1] "Odd" err="earlier"\npanic: runtime error: index out of range [1]\n\n'
            "goroutine 1 [running]:\nmain.main()\n\t/x.go:7 +0x1d\nexit status 2\n",
            "panic: runtime error: index out of range [1]",
            id="panic",
        ),
        pytest.param(
            "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1:",
            "fatal error: all goroutines are asleep - deadlock!",
            id="fatal error",
        ),
        pytest.param(
            "Error: unknown flag: --nope\nUsage:\n  kube-scheduler [flags]\n",
            "Error: unknown flag: --nope",
            id="unknown flag with usage",
        ),
        pytest.param(
            'E1121 10:02:03.0 1 run.go:72] "command failed" err="unknown flag: --nope"',
            "unknown flag: --nope",
            id="unknown flag",
        ),
        pytest.param(
            ' scheduler name default-scheduler: ScorePlugin \\"Nope\\" does not exist"\n',
            'scheduler name default-scheduler: ScorePlugin \\"Nope\\" does not exist"',
            id="a log whose beginning was cut off",
        ),
        pytest.param("\n \n", "it gave no reason", id="blank"),
        pytest.param("", "it gave no reason", id="nothing"),
    ],
)
def test_scheduler_sentence(log: str, expected: str) -> None:
    assert scheduler_sentence(log) == expected
