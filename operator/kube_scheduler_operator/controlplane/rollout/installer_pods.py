"""Reading installer and restore pods: how far are they, what came of it, who said what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from ...base import names
from ...base.objects import Object, annotation, label
from ...base.times import timestamp
from ...programs.node.exit_codes import EXIT_RETRY
from ...programs.node.result import Result


class Stage(Enum):
    """Where an installer pod is."""

    PENDING = "pending"  # not started: image pull, no kubelet, ...
    PREFLIGHT = "preflight"  # the operand's own binary checks the configuration
    REFUSED = "refused"  # it said no
    STAGING = "staging"  # it said yes, the files are put on the node
    STAGED = "staged"  # they are there, and nothing is in the way; the go-ahead is missing
    INSTALLING = "installing"  # the go-ahead is given, the swap is going on
    DONE = "done"  # with a Result
    LOST = "lost"  # the pod failed as a whole: evicted, node gone, ...


@dataclass(frozen=True, slots=True)
class Installer:
    """An installer pod, or a restore pod, which installs what was there before the operator.

    Attributes:
        name: of the pod.
        node: where it is pinned.
        revision: which revision it installs; 0: it is a restore pod.
        stage: see Stage.
        message: what a person should know about that stage; for REFUSED the sentence.
        problem: what was in its way when it last ended to be tried again, in its own words.
        waiting: reason and message of a container that cannot start, for example ErrImagePull.
        result: what came of the swap, when DONE.
        staged: whether the revision is on the node and could run there.
        go_ahead: whether it may swap; until then it checks and stages, and touches no scheduler.
        swapping: the installer runs, so the scheduler may be down and must not be left alone.
        created: when the pod was created.
        ended: when the installer ended, when DONE.
        leaving: it is being deleted.
        pod: the object.
    """

    name: str
    node: str
    revision: int
    stage: Stage
    message: str
    problem: str
    waiting: tuple[str, str] | None
    result: Result | None
    staged: bool
    go_ahead: bool
    swapping: bool
    created: datetime | None
    ended: datetime | None
    leaving: bool
    pod: Object

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it: it has a result, or never will."""
        return self.stage in (Stage.DONE, Stage.LOST)

    @property
    def busy(self) -> bool:
        """Whether it may be changing the node's scheduler now or soon, asked or unasked."""
        return self.go_ahead and not self.over

    @property
    def stuck(self) -> bool:
        """Whether something was in its way, and has not been got over yet."""
        return bool(self.problem) and not self.over and not self.staged


def read(pod: Object) -> Installer:
    """Read an installer pod."""
    status = pod.get("status") or {}
    preflight = _container(status.get("containerStatuses"), names.PREFLIGHT)
    installer = _container(status.get("containerStatuses"), names.INSTALLER)
    digits = label(pod, names.INSTALLER_REVISION_LABEL)
    # Restore pods wait for nobody.
    go_ahead = not digits or annotation(pod, names.GO_AHEAD_ANNOTATION) == names.GO_AHEAD
    stage, message, result = _stage(status, preflight if digits else None, installer)
    # The startup probe, which looks for the file by which the installer says so.
    staged = _running(installer) and installer.get("started") is True
    if stage is Stage.INSTALLING and not go_ahead:
        stage = Stage.STAGED if staged else Stage.STAGING
    return Installer(
        name=pod["metadata"]["name"],
        node=(pod.get("spec") or {}).get("nodeName", ""),
        revision=int(digits) if digits.isdecimal() else 0,
        stage=stage,
        message=message,
        problem=_problem(installer),
        waiting=_waiting(preflight) or _waiting(installer),
        result=result,
        staged=staged,
        go_ahead=go_ahead,
        swapping=stage is Stage.INSTALLING and _running(installer),
        created=timestamp(pod["metadata"].get("creationTimestamp")),
        ended=timestamp((_terminated(installer) or {}).get("finishedAt")) if result else None,
        leaving="deletionTimestamp" in pod["metadata"],
        pod=pod,
    )


def _stage(
    status: Mapping[str, Any], preflight: Mapping[str, Any] | None, installer: Mapping[str, Any]
) -> tuple[Stage, str, Result | None]:
    phase = status.get("phase", "")
    ended = _terminated(installer)
    if ended is not None and ended.get("exitCode") == 0:
        result = Result.parse(str(ended.get("message") or ""))
        if result is not None:
            return Stage.DONE, result.reason, result
    if phase in ("Failed", "Succeeded"):
        why = status.get("message") or status.get("reason") or _message(ended) or "no message"
        return Stage.LOST, f"the installer pod ended without a result: {why}", None
    if preflight is None:
        begun = ended is not None or _running(installer)
        return Stage.INSTALLING if begun else Stage.PENDING, _message(ended), None
    check = _terminated(preflight)
    if check is None:
        if _running(preflight):
            return Stage.PREFLIGHT, "", None
        return Stage.PENDING, str(status.get("message") or ""), None
    code = check.get("exitCode")
    if code in _REFUSALS:
        return Stage.REFUSED, scheduler_sentence(str(check.get("message") or "")), None
    if code not in (0, None):
        return Stage.PREFLIGHT, f"the check ended with exit code {code}: {_message(check)}", None
    if ended is not None or _running(installer):
        return Stage.INSTALLING, _message(ended), None
    return Stage.PREFLIGHT, "", None


# kube-scheduler ends with 1 after an error it names and with 2 (Go's own) after a panic; any other
# code (killed, out of memory, could not start) says nothing about the configuration.
_REFUSALS = (1, 2)

_ERR = re.compile(r'\berr="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_PLAIN = {"n": "; ", "t": " "}
_LOUD = ("panic:", "fatal error:", "Error:", "error:")


def scheduler_sentence(log: str) -> str:
    r"""What kube-scheduler itself said, out of its last log lines.

    Its last line is `E1121 ... run.go:72] "command failed" err="<sentence>"`; a panic looks
    different, and of a log that was cut the last line that says something is taken.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for line in lines:
        if line.startswith(_LOUD):
            return line
    errors = _ERR.findall(log)
    if errors:
        return _ESCAPE.sub(lambda found: _PLAIN.get(found[1], found[1]), errors[-1])
    return lines[-1] if lines else "it gave no reason"


def _problem(installer: Mapping[str, Any]) -> str:
    ended = _terminated(installer)
    if ended is None or ended.get("exitCode") != EXIT_RETRY:
        return ""
    return _message(ended)


def _container(statuses: Any, name: str) -> Mapping[str, Any]:
    return next((item for item in statuses or () if item.get("name") == name), {})


def _running(status: Mapping[str, Any]) -> bool:
    return (status.get("state") or {}).get("running") is not None


def _terminated(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """How the container last ended; the kubelet moves it to lastState while it waits to retry."""
    return (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get(
        "terminated"
    )


def _waiting(status: Mapping[str, Any]) -> tuple[str, str] | None:
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason = str(waiting.get("reason") or "")
    if reason in ("", "PodInitializing", "ContainerCreating"):
        return None
    message = str(waiting.get("message") or "")
    if reason in _NO_IMAGE:
        return _NO_IMAGE[0], _PULLING.sub("", message)
    return reason, _BACK_OFF.sub("", message)


# The kubelet tells the same trouble in turns, now as an error and now as the wait for the next try,
# and tells how long it waits. Nobody wants a new event for each of these.
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff")
_PULLING = re.compile(r'^Back-off pulling image "[^"]*": (?:ErrImagePull: )?')
_BACK_OFF = re.compile(r"^back-off \S+ (?=restarting )")


def _message(terminated: Mapping[str, Any] | None) -> str:
    return str((terminated or {}).get("message") or "").strip()
