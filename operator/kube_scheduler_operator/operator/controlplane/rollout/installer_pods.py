"""Installer and restore pods as their status shows them: stage, result and messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from ....base import names
from ....base.objects import Object, annotation, is_being_deleted, label
from ....base.revision_number import revision_number
from ....base.termination_message import message_error
from ....base.times import timestamp
from ....node.protocol.message import EXIT_DEFINITIVE, EXIT_RETRY
from ....node.protocol.result import InstallerOutcome, Result
from ...model.pod_status import ended, message_of, named, reason_of, state
from ..node_pods import SHARED_VOLUMES

_OWN_NAMES: Final = (f"{names.INSTALLER}-", f"{names.RESTORE}-")


class Stage(Enum):
    PENDING = "pending"  # not started: image pull, no kubelet, ...
    PREFLIGHT = "preflight"  # the kube-scheduler binary checks the configuration
    REFUSED = "refused"  # the binary rejected the configuration
    STAGING = "staging"  # the check passed; the files are written to the node
    STAGED = "staged"  # the files are on the node; waiting for permission to roll out
    INSTALLING = "installing"  # permitted; the scheduler is being replaced
    DONE = "done"  # ended with a Result
    LOST = "lost"  # the pod failed as a whole: evicted, node gone, ...


@dataclass(frozen=True, slots=True)
class Installer:
    """An installer pod, or a restore pod, which restores the earlier scheduler."""

    name: str
    node: str
    revision: int  # the revision that it installs; 0: a restore pod
    stage: Stage
    message: str  # details of the stage; when REFUSED, kube-scheduler's error
    problem: str  # the installer's last error, after which it tries again
    waiting: tuple[str, str] | None  # (reason, message) of a container that cannot start
    result: Result | None  # result of the swap, when DONE
    staged: bool  # whether the revision is on the node and ready to run
    permitted: bool  # whether it may swap; until then it only checks and stages
    swapping: bool  # whether the installer runs, so that the scheduler may be down
    created: datetime | None
    ended_at: datetime | None  # when the installer ended, when DONE
    deleting: bool
    pod: Object

    @property
    def has_own_name(self) -> bool:
        """Whether its name is one of the operator's; any client can write the label."""
        return self.name.startswith(_OWN_NAMES)

    @property
    def has_ended(self) -> bool:
        """Whether it has a result or can no longer produce one."""
        return self.stage in (Stage.DONE, Stage.LOST)

    @property
    def is_moving(self) -> bool:
        """Whether it is permitted, and kube-scheduler's image could be started on its node."""
        begun = self.stage in (Stage.PREFLIGHT, Stage.STAGING, Stage.STAGED, Stage.INSTALLING)
        return self.permitted and begun and not self.waiting and self.revision > 0

    @property
    def awaited_files(self) -> str:
        """The files that the kubelet waits for before it starts the Pod; empty if it does not.

        The kubelet reports a missing file only in an event, which the operator does not read.
        """
        if self.stage is not Stage.PENDING or self.waiting:
            return ""
        volumes = (self.pod.get("spec") or {}).get("volumes") or ()
        paths = sorted(
            str(volume["hostPath"]["path"])
            for volume in volumes
            if volume["name"].startswith(SHARED_VOLUMES) and "hostPath" in volume
        )
        return f"the kubelet starts it when the node has {', '.join(paths)}" if paths else ""

    @property
    def overtaken(self) -> bool:
        """Whether it changed nothing because of an upgrade by kubeadm."""
        return self.result is not None and self.result.result is InstallerOutcome.OVERTAKEN

    @property
    def may_swap(self) -> bool:
        """Whether it may be replacing the node's scheduler, now or later."""
        return self.permitted and not self.has_ended

    @property
    def stuck(self) -> bool:
        """Whether its last attempt failed on this node and has not succeeded since."""
        return bool(self.problem) and not self.has_ended and not self.staged


def read(pod: Object) -> Installer:
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    preflight, installer = named(containers, names.PREFLIGHT), named(containers, names.INSTALLER)
    digits = label(pod, names.INSTALLER_REVISION_LABEL)
    # A restore pod needs no permission.
    permitted = (
        not digits or annotation(pod, names.PERMISSION_ANNOTATION) == names.PERMISSION_GRANTED
    )
    stage, message, result = _stage(status, preflight if digits else None, installer)
    # The startup probe finds the file that the installer writes once everything is staged.
    staged = _running(installer) and installer.get("started") is True
    if stage is Stage.INSTALLING and not permitted:
        stage = Stage.STAGED if staged else Stage.STAGING
    return Installer(
        name=pod["metadata"]["name"],
        node=(pod.get("spec") or {}).get("nodeName", ""),
        revision=revision_number(digits),
        stage=stage,
        message=message,
        problem=_problem(installer),
        waiting=_waiting(preflight) or _waiting(installer),
        result=result,
        staged=staged,
        permitted=permitted,
        swapping=stage is Stage.INSTALLING and _running(installer),
        created=timestamp(pod["metadata"].get("creationTimestamp")),
        ended_at=timestamp(ended(installer).get("finishedAt")) if result else None,
        deleting=is_being_deleted(pod),
        pod=pod,
    )


def _stage(
    status: Mapping[str, Any], preflight: Mapping[str, Any] | None, installer: Mapping[str, Any]
) -> tuple[Stage, str, Result | None]:
    phase, end = status.get("phase", ""), ended(installer)
    if end.get("exitCode") == EXIT_DEFINITIVE:
        result = Result.parse(str(end.get("message") or ""))
        if result is not None:
            return Stage.DONE, result.reason, result
    if phase in ("Failed", "Succeeded"):
        why = message_of(status) or reason_of(status) or message_of(end) or "no message"
        return Stage.LOST, f"the installer pod ended without a result: {why}", None
    begun = bool(end) or _running(installer)
    if preflight is None:
        return Stage.INSTALLING if begun else Stage.PENDING, message_of(end), None
    check = ended(preflight)
    if not check:
        if _running(preflight):
            return Stage.PREFLIGHT, "", None
        return Stage.PENDING, message_of(status), None
    code = check.get("exitCode")
    if code in _REFUSALS:
        error = message_error(str(check.get("message") or ""))
        return Stage.REFUSED, error or "no reason in its log", None
    if code not in (0, None):
        message = f"the preflight ended with exit code {code}: {message_of(check)}"
        return Stage.PREFLIGHT, message, None
    if begun:
        return Stage.INSTALLING, message_of(end), None
    return Stage.PREFLIGHT, "", None


# kube-scheduler exits with 1 after a reported error and with 2 (Go's own) after a panic; any other
# code (killed, out of memory, could not start) is not about the configuration.
_REFUSALS = (1, 2)


def _problem(installer: Mapping[str, Any]) -> str:
    end = ended(installer)
    return message_of(end) if end.get("exitCode") == EXIT_RETRY else ""


def _running(status: Mapping[str, Any]) -> bool:
    return (status.get("state") or {}).get("running") is not None


def _waiting(status: Mapping[str, Any]) -> tuple[str, str] | None:
    waiting = state(status, "waiting")
    reason, message = reason_of(waiting), message_of(waiting)
    if reason in ("", "PodInitializing", "ContainerCreating"):
        return None
    if reason in _NO_IMAGE:
        return _NO_IMAGE[0], _PULLING.sub("", message)
    return reason, _BACK_OFF.sub("", message)


# The kubelet reports one problem alternately as an error and as the back-off before the next try,
# with the time that is left. These must not become an event each.
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff")
_PULLING = re.compile(r'^Back-off pulling image "[^"]*": (?:ErrImagePull: )?')
_BACK_OFF = re.compile(r"^back-off \S+ (?=restarting )")
