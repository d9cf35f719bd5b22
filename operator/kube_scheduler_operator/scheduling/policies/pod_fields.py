"""The protobuf fields of a Pod that `read_pod` uses.

Field numbers: k8s.io/api/core/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1.
"""

from __future__ import annotations

from typing import Final

from ...kube.protobuf import METADATA, Message, number, part, parts, quantities, strings, text, time

_OWNER: Final = Message(text(1, "kind"), number(6, "controller"))
_METADATA: Final = Message(
    *METADATA,
    time(8, "creationTimestamp"),
    strings(11, "labels"),
    parts(13, "ownerReferences", _OWNER),
)
_RESOURCES: Final = Message(quantities(1, "limits"), quantities(2, "requests"))
_CONTAINER: Final = Message(part(8, "resources", _RESOURCES), text(24, "restartPolicy"))
_SPEC: Final = Message(
    parts(2, "containers", _CONTAINER),
    parts(20, "initContainers", _CONTAINER),
    text(10, "nodeName"),
    text(19, "schedulerName"),
    quantities(32, "overhead"),
    part(40, "resources", _RESOURCES),
)
_CONDITION: Final = Message(text(1, "type"), text(2, "status"), time(4, "lastTransitionTime"))
_STATUS: Final = Message(text(1, "phase"), parts(2, "conditions", _CONDITION), time(7, "startTime"))

POD: Final = Message(
    part(1, "metadata", _METADATA), part(2, "spec", _SPEC), part(3, "status", _STATUS)
)
