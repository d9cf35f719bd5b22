"""The scheduler that reads a file: Kubernetes' own, a known third-party one, or an unknown one."""

from __future__ import annotations

from dataclasses import replace

from ..schedulerconfig.known_schedulers import KnownScheduler, scheduler_of_image
from ..schedulerconfig.validation import Target
from .checks import CheckOptions, Item
from .forms.form import VC_SCHEDULER, CommandLine
from .forms.workload import is_stock
from .volcano.catalogue import NAME, VolcanoVersion, volcano, volcano_of_image


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


def is_for_volcano(item: Item, options: CheckOptions) -> bool:
    """Whether Volcano's scheduler reads a document: its command line shows it, or `--for`."""
    if item.reader is not None:
        return item.reader.program == VC_SCHEDULER
    return options.place == NAME


def other_scheduler(item: Item, options: CheckOptions) -> str:
    """The scheduler that reads a document, if it is known not to be Volcano's; else empty."""
    if is_for_volcano(item, options):
        return ""
    if item.reader is not None:
        return f"the kube-scheduler of {item.reader.label}"
    return f"the kube-scheduler of --for {options.place}" if options.place else ""


def volcano_of(item: Item, options: CheckOptions) -> VolcanoVersion:
    """The version of Volcano that reads a document: its image's, that of `--for`, or the newest."""
    shown = volcano_of_image(item.reader.image) if item.reader is not None else None
    return shown or volcano(options.scheduler.partition(":")[2] if options.place == NAME else "")
