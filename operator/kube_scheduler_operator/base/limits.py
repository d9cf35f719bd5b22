"""Limits on the content of objects; docs/limits.md and the descriptions in crds/ repeat them.

The API server enforces the limits that a schema can express. These are for free-form fields and for
sums over several objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEPTH: Final = 64
"""Levels of nested objects and lists in a spec or in overrides, including the outermost one.

kube-scheduler's own configuration has 12. Recursive functions take at most seven of Python's 1,000
stack frames per level.
"""

OBJECT_DEPTH: Final = DEPTH + 8
"""Levels that are kept of an object that is nested deeper.

More than DEPTH, because larger objects contain a spec: `status.accepted`, and `spec.observedConfig`
of KubeScheduler.
"""

DOCUMENT_DEPTH: Final = 256
"""Levels that are kept of JSON with which Python's own decoder exceeds its stack."""

SPEC_BYTES: Final = 512 * 1024
"""Size of a spec, or of overrides, as JSON in UTF-8.

The status of an object repeats its spec, and etcd refuses requests of more than 1.5 MiB.
"""

CONFIG_MAP_BYTES: Final = 1024 * 1024
"""Size of the data of a ConfigMap, keys included: MaxSecretSize of Kubernetes."""

COMPOSED_BYTES: Final = CONFIG_MAP_BYTES - 32 * 1024
"""Size of a composed configuration; the operator adds other data to its ConfigMap."""

EXTENDERS_BYTES: Final = 256 * 1024
"""Size of the extenders of one scheduler in its configuration."""

PLUGINS_BYTES: Final = 256 * 1024
"""Size of the effective plugins in the status of a SecondaryScheduler, which may have hundreds of
profiles of 3 KiB each."""

LISTED_EXTENDERS: Final = 256
"""URLs of extenders in the status of a SecondaryScheduler, as in its schema."""

FLAGS: Final = 256
"""Flags in the overrides; kube-scheduler has about 100."""

REASON_LENGTH: Final = 4096
"""Characters of a forceRedeploymentReason, as in the schema; OpenShift's has no limit."""

MESSAGE_LENGTH: Final = 8 * 1024
"""Characters of a condition's message; the API's own Condition type has at most 32,768.

KubeScheduler has some 25 conditions, and its size is limited as well.
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a document of another program may be before it is decoded."""

    bytes: int
    values: int  # objects, lists, strings, numbers and constants


DOCUMENT: Final = Size(8 * 1024 * 1024, 100_000)
"""An object of the API, a page of a list, a change of a watch.

Decoding holds the interpreter, and with it the loop that renews the Lease. Python's decoder takes
0.02 to 0.5 µs per value and 25 ms for 8 MiB of text, so one decoding takes at most 50 ms, and its
result 20 MiB. etcd stores objects of 1.5 MiB; one MiB of control characters is 6 MiB of JSON.
500 ordinary Pods have 80,000 values.
"""

METRICS: Final = Size(32 * 1024 * 1024, 500_000)
"""A response with the metrics of all nodes: 5,000 nodes with 30 labels each have 400,000 values.

The operator does not read it.
"""

ANNOTATION: Final = Size(256 * 1024, 1000)
"""An annotation with a few values; the API server accepts 256 KiB of annotations."""

MESSAGE: Final = Size(64 * 1024, 1000)
"""A termination message or a line from a program of this project; a kubelet keeps 4 KiB."""

ANSWER: Final = Size(64 * 1024 * 1024, 1_000_000)
"""The answer of a simulation of 30,000 Pods, from a Pod whose image the user chose."""

WORLD: Final = 512 * 1024 * 1024
"""Bytes of the objects in a simulation as JSON; 5,000 nodes and 30,000 Pods have 26 MB."""

OPERATORS_WORLD: Final = 128 * 1024 * 1024
"""The same in the operator, which has 1 GiB and holds them compressed as well for a moment."""

REFUSAL: Final = Size(1024 * 1024, 10_000)
"""A response that rejects a request."""

TEXT: Final = Size(256 * 1024 * 1024, 0)
"""Plain text that a command reads, such as a Pod's log; a kubelet keeps 10 MiB by default."""

LIST_ITEM_BYTES: Final = 2 * 1024 * 1024
"""An object in a list in protobuf; etcd stores 1.5 MiB by default."""

THREAD_BYTES: Final = 64 * 1024
"""Documents from this size on are decoded in a thread; a smaller one takes less than 3 ms."""

# Texts that others wrote, in characters, where they enter: see foreign_text.py.

FOREIGN_NAME: Final = 253
"""A name, even if Kubernetes does not limit it (`spec.schedulerName`, `reportingController`): the
longest DNS subdomain, like the name of any object."""

FOREIGN_REASON: Final = 1024
"""A reason, as in metav1.Condition; the reason of an Event has at most 128."""

FOREIGN_MESSAGE: Final = 4096
"""A message of a status, an API server or a webhook: as long as a termination message, and half as
long as a condition's message, to which the operator adds text of its own."""

EVENT_NOTE: Final = 1024
"""The message of an Event: the API server rejects longer ones (NoteLengthLimit)."""

FOREIGN_LINE: Final = 2000
"""A line of a program's log, as far as an error quotes it."""
