"""The schedulerNames of workloads, compared with those that the files of a run serve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean
from ..language.schema import DEFAULT_SCHEDULER
from ..language.warnings.configuration import scheduler_names
from .checks import Item
from .forms.document_fields import at, group_kind, label_of, text

UNKNOWN_SCHEDULER_NAME: Final = "UnknownSchedulerName"
_PODS: Final[tuple[Path, ...]] = (
    ("spec",),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)
"""Where objects have the spec of a Pod."""


def check_scheduler_names(
    configs: Sequence[Mapping[str, Any]], items: Sequence[Item]
) -> Iterator[tuple[Item, Problem]]:
    """Warn about Pods whose schedulerName is similar to one that valid configurations serve."""
    served = {name for config in configs for name in scheduler_names(config)}
    for item in items if served else ():
        for path in _PODS:
            name = text(at(item.value, *path, "schedulerName"))
            if not name or name in served or name == DEFAULT_SCHEDULER:
                continue
            hint = did_you_mean(name, served).removeprefix("; ")
            if hint and group_kind(item.value)[1] != "SchedulerProfile":
                message = (
                    f'no profile of these files has the schedulerName "{name}": the Pods of '
                    f"{label_of(item.value)} stay Pending, without an event"
                )
                where = (*path, "schedulerName")
                yield item, Problem(UNKNOWN_SCHEDULER_NAME, where, message, hint, WARNING)
