"""The scheduler that an image is: Kubernetes' own, a known third-party one, or an unknown one."""

from __future__ import annotations

from dataclasses import replace

from ..schedulerconfig.known_schedulers import KnownScheduler, scheduler_of_image
from ..schedulerconfig.validation import Target
from .checks import CheckOptions, Item
from .forms.form import CommandLine
from .forms.workload import is_stock


def known_scheduler(command: CommandLine | None) -> KnownScheduler | None:
    """The third-party scheduler in the image of a command line."""
    return scheduler_of_image(command.image) if command is not None and command.image else None


def stock_of(command: CommandLine | None) -> bool:
    """Whether a command line runs Kubernetes' own kube-scheduler; unknown images count as it."""
    return command is None or not command.image or is_stock(command.image)


def target_of(item: Item, options: CheckOptions) -> Target:
    """The kube-scheduler that reads a configuration."""
    gates = item.gates(options)
    known = known_scheduler(item.reader)
    if known is not None:
        gates = replace(gates, version=known.rules)
        return Target(gates, stock=False, scheduler=f"{known.name}:{known.version}")
    if not options.scheduler:
        return Target(gates, stock=options.stock and stock_of(item.reader))
    return Target(gates, stock=False, scheduler=options.scheduler)
