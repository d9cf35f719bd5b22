"""Limits of what one object may contain; docs/limits.md and the descriptions in crds/ repeat them.

The API server enforces what a schema can express. These limits are for free-form fields, which it
accepts as they are, and for sums over several objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEPTH: Final = 64
"""Levels of nested objects and lists in a spec or in overrides, which are the first level.

kube-scheduler's own configuration has 12. Everything that processes a spec recursively takes at
most seven of Python's 1,000 stack frames for each level.
"""

OBJECT_DEPTH: Final = DEPTH + 8
"""Levels that remain of an object that is nested deeper.

More than DEPTH, because a spec is also part of larger objects: `status.accepted`, and
`spec.observedConfig` of KubeScheduler.
"""

DOCUMENT_DEPTH: Final = 256
"""Levels that the reader of JSON keeps where Python's own decoder exceeds its stack."""

SPEC_BYTES: Final = 512 * 1024
"""Size of a spec, or of overrides, as JSON in UTF-8.

The status of an object repeats its spec, and etcd refuses requests of more than 1.5 MiB.
"""

CONFIG_MAP_BYTES: Final = 1024 * 1024
"""Size of the data of a ConfigMap, keys included: MaxSecretSize of Kubernetes."""

COMPOSED_BYTES: Final = CONFIG_MAP_BYTES - 32 * 1024
"""Size of a composed configuration; the rest is for what the operator adds to its ConfigMap."""

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

    bytes: int  # its length
    values: int  # objects, lists, strings, numbers and constants in it


DOCUMENT: Final = Size(8 * 1024 * 1024, 100_000)
"""An object of the API, a page of a list, a change of a watch.

One decoding holds the interpreter, and with it the loop that renews the Lease. Python's decoder
takes 0.02 to 0.5 µs for a value and 25 ms for 8 MiB of text, so one decoding takes at most 50 ms,
and its result 20 MiB. etcd stores objects of 1.5 MiB; one MiB of control characters is 6 MiB of
JSON. Of ordinary Pods, 500 have 80,000 values.
"""

METRICS: Final = Size(32 * 1024 * 1024, 500_000)
"""A response of a source of metrics, which has all nodes: 5,000 nodes with 30 labels each have
400,000 values. The operator does not read it."""

ANNOTATION: Final = Size(256 * 1024, 1000)
"""An annotation with a few values; the API server accepts 256 KiB of annotations."""

MESSAGE: Final = Size(64 * 1024, 1000)
"""A termination message, or a line, of a program of this project; a kubelet keeps 4 KiB."""

ANSWER: Final = Size(64 * 1024 * 1024, 1_000_000)
"""The answer of a simulation, from a Pod with an image of its user: of 30,000 Pods."""

REFUSAL: Final = Size(1024 * 1024, 10_000)
"""A response that refuses a request."""

TEXT: Final = Size(256 * 1024 * 1024, 0)
"""Plain text that a command reads: the log of a Pod, of which a kubelet keeps 10 MiB by default."""

LIST_ITEM_BYTES: Final = 2 * 1024 * 1024
"""An object in a list in protobuf, of which a few fields are read; etcd stores 1.5 MiB by default.
"""

THREAD_BYTES: Final = 64 * 1024
"""Documents from this size on are decoded in a thread; a smaller one takes less than 3 ms."""

# Texts that others wrote, in characters, where they enter: see foreign_text.py.

FOREIGN_NAME: Final = 253
"""A name, also those that Kubernetes does not limit (`spec.schedulerName`, `reportingController`):
the longest DNS subdomain, which all names of objects are."""

FOREIGN_REASON: Final = 1024
"""A reason: that of metav1.Condition; one of an Event has at most 128."""

FOREIGN_MESSAGE: Final = 4096
"""A message of a status, an API server or a webhook: that of a container has as many bytes, and
half of a condition's message is left for what the operator adds."""

EVENT_NOTE: Final = 1024
"""The message of an Event: the API server refuses longer ones (NoteLengthLimit)."""

FOREIGN_LINE: Final = 2000
"""A line of a program's log, as far as an error quotes it."""
