"""What a scheduler runs of the objects in its configuration, and why it does not run the rest.

A rollout of one object does not concern the others: of each, the entry in the configuration that
was composed is compared with that in every configuration that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...base.objects import entries, mapping
from ...config.language.schema import DEFAULT_SCHEDULER
from .conditions import Condition


@dataclass(frozen=True, slots=True)
class Configuration:
    config: Mapping[str, Any]  # KubeSchedulerConfiguration
    # the files of the agents in its Pods, by SchedulerExtender; None: they do not count
    agents: Mapping[str, str] | None = None
    # the part of the spec of OperatorSettings that it contains; None: not known
    settings: Mapping[str, Any] | None = None

    def profile(self, scheduler_name: str) -> Any:
        return self._entry("profiles", "schedulerName", scheduler_name, DEFAULT_SCHEDULER)

    def extender(self, url: str, agent: str) -> Any:
        entry = self._entry("extenders", "urlPrefix", url)
        return None if entry is None else (entry, (self.agents or {}).get(agent))

    def _entry(self, field_: str, key: str, value: str, default: str = "") -> Any:
        found = (mapping(entry) for entry in entries(self.config.get(field_)))
        return next((entry for entry in found if (entry.get(key) or default) == value), None)


@dataclass(frozen=True, slots=True)
class InUse:
    """The conditions of a scheduler that count for an object, by what of it runs."""

    available: tuple[Condition, ...]  # whether it schedules
    behind: tuple[Condition, ...]  # why it does not run what was composed
    # None: all that schedule run what was composed
    composed: Configuration | None = None
    running: tuple[Configuration, ...] = ()  # of all that schedule; empty if that is not known

    def profile(self, scheduler_name: str) -> tuple[Condition, ...]:
        return self._of(lambda configuration: configuration.profile(scheduler_name))

    def extender(self, name: str, url: str) -> tuple[Condition, ...]:
        agent = name if self.composed is not None and self.composed.agents is not None else ""
        return self._of(lambda configuration: configuration.extender(url, agent))

    def settings(self) -> tuple[Condition, ...]:
        return self._of(lambda configuration: configuration.settings)

    def _of(self, entry: Callable[[Configuration], Any]) -> tuple[Condition, ...]:
        if self.composed is None:
            return self.available
        wanted = entry(self.composed)
        runs = bool(self.running) and wanted is not None
        if runs and all(entry(running) == wanted for running in self.running):
            return self.available
        return self.behind
