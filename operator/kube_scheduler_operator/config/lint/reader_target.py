"""The scheduler that reads a file: Kubernetes' own, a known third-party one, or an unknown one."""

from __future__ import annotations

from dataclasses import replace

from ..language.plugins.known_schedulers import KnownScheduler, scheduler_of_image
from ..language.schema import KIND
from ..language.validation.configuration import Target
from .checks import CheckOptions, Item
from .forms.form import CommandLine
from .forms.volcano import PROGRAM, is_volcano
from .forms.workload import is_stock


def known_scheduler(command: CommandLine | None) -> KnownScheduler | None:
    """Return the third-party scheduler in the image of a command line."""
    return scheduler_of_image(command.image) if command is not None and command.image else None


def stock_of(command: CommandLine | None) -> bool:
    """Report whether a command line runs Kubernetes' own kube-scheduler or an unknown image."""
    return command is None or not command.image or is_stock(command.image)


def target_of(item: Item, options: CheckOptions) -> Target:
    gates = item.gates(options)
    known = known_scheduler(item.reader)
    if known is not None:
        gates = replace(gates, version=known.rules)
        return Target(gates, stock=False, scheduler=f"{known.name}:{known.version}")
    if not options.scheduler:
        return Target(gates, stock=options.stock and stock_of(item.reader))
    return Target(gates, stock=False, scheduler=options.scheduler)


def is_read_by_volcano(item: Item) -> bool:
    return item.reader is not None and item.reader.program == PROGRAM


def is_of_volcano(item: Item) -> bool:
    """Report whether a document is Volcano's configuration, by its format or its reader."""
    return is_volcano(item.value) or (is_read_by_volcano(item) and item.kind != KIND)


def kube_scheduler_of(item: Item, options: CheckOptions) -> str:
    """Return the kube-scheduler that reads a document, according to files or `--for`; or empty."""
    if item.reader is not None:
        return "" if is_read_by_volcano(item) else f"the kube-scheduler of {item.reader.label}"
    return f"the kube-scheduler of --for {options.place}" if options.place else ""
