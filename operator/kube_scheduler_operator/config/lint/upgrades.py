"""What newer versions of kube-scheduler refuse of the configurations and flags in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...base.findings import ERROR
from ...base.objects import entries
from ..effective.upgrades import UpgradedContent
from ..language.command_line import render
from ..language.schema import API_VERSION, KIND
from ..language.validation.upgrades import (
    UpgradeStep,
    VersionRefusal,
    upgrade_steps,
    version_refusal,
)
from ..language.versions import Version
from .checks import CheckOptions, known_scheduler, stock_of
from .forms.form import KUBE_SCHEDULER, CommandLine
from .reports.report import ValidationReport
from .rights import WATCH_FORBIDDEN
from .validate import validate

_OTHER_IMAGE = "an image in the files may have plugins of its own"


@dataclass(frozen=True)
class FilesUpgrade:
    """The schedulers in files, in newer versions."""

    files: Sequence[tuple[str, str | bytes]]
    options: CheckOptions  # with the version that runs now
    title: str = "the files"

    @property
    def version(self) -> Version:
        return self.options.gates.version

    @cached_property
    def stock(self) -> bool:
        return self.options.stock and all(map(stock_of, self._commands))

    @cached_property
    def shown(self) -> Version | None:
        """The oldest version of the kube-schedulers in the files; None: they show none."""
        versions = [command.version for command in self._commands if command.version]
        versions += [item.version for item in self._report.items if item.version]
        return min(versions, default=None)

    def steps(self, target: Version) -> Sequence[UpgradeStep]:
        extenders: list[Any] = []
        for content in self.contents(self.version):
            extenders += entries(content.config.get("extenders"))
        unknown = "" if self.stock else _OTHER_IMAGE
        return upgrade_steps(self.version, target, self._refusals, extenders, unknown, runs=False)

    def contents(self, _version: Version) -> Sequence[UpgradedContent]:
        """Return the configurations with their flags, or what schedulers without any have."""
        items = [item for item in self._report.items if item.kind == KIND]
        found = [UpgradedContent(item.value, _flags(item.reader), item.label) for item in items]
        alone = [command for command in self._commands if not command.config]
        nothing = {"apiVersion": API_VERSION, "kind": KIND}
        found += [UpgradedContent(nothing, _flags(command), command.label) for command in alone]
        return found or [UpgradedContent(nothing)]

    @cached_property
    def _report(self) -> ValidationReport:
        return self._checked(self.version)

    @property
    def _commands(self) -> list[CommandLine]:
        """The kube-schedulers that the files start, without other schedulers."""
        return [
            command
            for command in self._report.commands
            if command.program == KUBE_SCHEDULER and known_scheduler(command) is None
        ]

    def _checked(self, version: Version) -> ValidationReport:
        gates = replace(self.options.gates, version=version)
        options = replace(self.options, gates=gates, pinned=True)
        # What is not kube-scheduler's is of no interest, although the files are named.
        return validate(self.files, options, found=[name for name, _ in self.files])

    def _refusals(self, version: Version) -> Iterator[VersionRefusal]:
        report = self._report if version == self.version else self._checked(version)
        for finding in report.findings:
            if finding.severity == ERROR or finding.reason == WATCH_FORBIDDEN:
                text = f"{finding.file}: {finding.path}: {finding.message}; {finding.fix}"
                place = (finding.file, finding.path, finding.reason)
                yield version_refusal(version, place, finding.message, text)


def _flags(command: CommandLine | None) -> tuple[str, ...]:
    return render(command.flags) if command is not None else ()
