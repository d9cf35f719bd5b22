"""Why a pod does not run, in one sentence: termination messages, images, placement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_MESSAGE, FOREIGN_REASON
from ...base.objects import Object
from ...base.termination_message import message_error

PULL: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_STARTING: Final = ("PodInitializing", "ContainerCreating", "CrashLoopBackOff")


def containers(pod: Object) -> list[Mapping[str, Any]]:
    """The statuses of the containers; empty before the kubelet has reported any."""
    return list((pod.get("status") or {}).get("containerStatuses") or ())


def init_containers(pod: Object) -> list[Mapping[str, Any]]:
    return list((pod.get("status") or {}).get("initContainerStatuses") or ())


def condition(obj: Object, type_: str) -> Mapping[str, Any]:
    """The condition of a Pod or a Node; empty without one."""
    listed = (obj.get("status") or {}).get("conditions") or ()
    return next((raw for raw in listed if raw.get("type") == type_), {})


def is_ready(obj: Object) -> bool:
    return condition(obj, "Ready").get("status") == "True"


def named(items: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((item for item in items if item.get("name") == name), {})


def state(container: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The container's state of that kind (waiting, running, terminated); empty if in another."""
    return (container.get("state") or {}).get(kind) or {}


def ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """How it last ended; the kubelet moves it to lastState while it waits to retry."""
    last: Mapping[str, Any] = (container.get("lastState") or {}).get("terminated") or {}
    return state(container, "terminated") or last


def reason_of(raw: Mapping[str, Any]) -> str:
    """The reason of a state, a status or a condition, which others wrote; it may be empty."""
    return foreign(str(raw.get("reason") or ""), FOREIGN_REASON)


def message_of(raw: Mapping[str, Any]) -> str:
    """The message of a state, a status or a condition, which others wrote; it may be empty."""
    return foreign(str(raw.get("message") or "").strip(), FOREIGN_MESSAGE)


def words(container: Mapping[str, Any]) -> str:
    """Why the container ended, as one sentence: its error, or how it ended if that is unknown."""
    end = ended(container)
    known = message_error(str(end.get("message") or ""))
    return known or f"it ended with exit code {end.get('exitCode', 'unknown')}{_reason(end)}"


def _reason(end: Mapping[str, Any]) -> str:
    """The kubelet's reason for the end in brackets; empty for those that the exit code implies."""
    reason = reason_of(end)
    return f" ({reason})" if reason not in ("", "Error", "Completed") else ""


def crashing(pod: Object) -> str:
    """The crash-looping containers with their termination messages."""
    return "; ".join(
        f'container "{container["name"]}": {words(container)}'
        for container in containers(pod)
        if state(container, "waiting").get("reason") == "CrashLoopBackOff"
    )


def waiting(pod: Object, statuses: Sequence[Mapping[str, Any]]) -> str:
    """What keeps a pod from running; empty if nothing does.

    `statuses` are those of its containers, the most relevant first.
    """
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return f"it is not scheduled: {message_of(scheduled) or reason_of(scheduled)}"
    for container in statuses:
        blocked = state(container, "waiting")
        reason = reason_of(blocked)
        if reason in PULL:
            # The kubelet alternates between two reasons and as many messages.
            image = _image(pod, container)
            return f'image "{image}" cannot be pulled; check its name and imagePullSecrets'
        if reason and reason not in _STARTING:
            return f'container "{container["name"]}": {reason}: {message_of(blocked)}'
    return ""


def _image(pod: Object, container: Mapping[str, Any]) -> str:
    spec = pod.get("spec") or {}
    listed = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    image = str(named(listed, str(container.get("name"))).get("image", ""))
    return foreign(image, FOREIGN_REASON)
