"""A guard pod on its node: it runs, and reports a changed kubeconfig."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from kube_scheduler_operator.base import names
from kube_scheduler_operator.programs.node.exit_codes import EXIT_CHANGED

if TYPE_CHECKING:
    from .apiserver import Object
    from .machine import Machine

START = 0.5
LOOKS = 7.0
BACK_OFF = 20.0


def run(machine: Machine, pod: Object) -> Generator[float, None, None]:
    """What the kubelet does with it: start, and start again after it had something to say.

    It ends when there is nothing more to do; the kubelet looks again when something changes.
    """
    known = _known(pod)
    while True:
        yield START
        show(machine, pod, {"running": {"startedAt": machine.clock.stamp()}})
        if known == machine.kubeconfig:
            return
        yield LOOKS
        if known != machine.kubeconfig:
            ended = {
                "exitCode": EXIT_CHANGED,
                "message": machine.kubeconfig,
                "finishedAt": machine.clock.stamp(),
            }
            show(machine, pod, {"waiting": {"reason": "CrashLoopBackOff"}}, {"terminated": ended})
        yield BACK_OFF


def show(machine: Machine, pod: Object, state: Object, last: Object | None = None) -> None:
    """Write the pod's status, keeping its last termination message."""
    live = machine.pod(pod)
    if live is None:
        return
    before = (live.get("status", {}).get("containerStatuses") or [{}])[0]
    if "running" in state and "running" in before.get("state", {}):
        return
    container = {
        "name": names.GUARD,
        "state": state,
        "lastState": last or before.get("lastState") or {},
    }
    machine.write_status(live, {"phase": "Running", "containerStatuses": [container]})


def _known(pod: Object) -> str:
    arguments = pod["spec"]["containers"][0]["args"]
    found = [a.partition("=")[2] for a in arguments if a.startswith("--known=")]
    return str(found[0]) if found else ""
