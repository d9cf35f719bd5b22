"""A guard pod on its node: it looks at the disk, runs, and reports what changes."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.objects import annotation
from kube_scheduler_operator.node.protocol.message import EXIT_CHANGED

from ..imitation import kubelet

if TYPE_CHECKING:
    from ..imitation.apiserver import Object
    from .machine import Machine

START = 0.5
LOOKS = 7.0
BACK_OFF = 20.0


def run(machine: Machine, pod: Object) -> Generator[float, None, None]:
    """What the kubelet does with it: start, and start again after it had something to say.

    It ends when there is nothing more to do; the kubelet looks again when something changes.
    """
    known, uid = _flag(pod, "known"), pod["metadata"]["uid"]
    if uid not in machine.looked:  # otherwise the kubelet only starts it again
        yield START
        machine.looked.add(uid)
        looked = kubelet.terminated(0, report(machine), machine.stamp())
        show_look(machine, pod, {"name": "look", "state": looked})
    while True:
        yield START
        show(machine, pod, kubelet.running(machine.stamp()))
        if _is_known(machine, pod, known):
            return
        yield LOOKS
        if not _is_known(machine, pod, known):
            ended = kubelet.terminated(EXIT_CHANGED, report(machine), machine.stamp())
            show(machine, pod, kubelet.waiting("CrashLoopBackOff", "back-off"), ended)
        yield BACK_OFF


def _is_known(machine: Machine, pod: Object, known: str) -> bool:
    live = machine.pod(pod) or pod
    known_edit, report = annotation(live, names.KNOWN_EDIT_ANNOTATION), machine.report()
    is_kubeadms = report.work or report.image
    return known_edit == report.edit and bool(known == report.kubeconfig or is_kubeadms)


def report(machine: Machine) -> str:
    """The termination message of a guard on this machine."""
    return machine.report().serialise()


def show_look(machine: Machine, pod: Object, look: Object) -> None:
    """Write the state of the init container."""
    live = machine.pod(pod)
    if live is not None:
        machine.write_status(live, {**live["status"], "initContainerStatuses": [look]})


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
    status = {**live["status"], "phase": "Running", "containerStatuses": [container]}
    machine.write_status(live, status)


def _flag(pod: Object, name: str) -> str:
    arguments = pod["spec"]["containers"][0]["args"]
    found = [a.partition("=")[2] for a in arguments if a.startswith(f"--{name}=")]
    return str(found[0]) if found else ""
