"""`convert` with documents of other kinds: configurations in them, and schedulers they start.

What reads what is decided as in `validate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ...base.objects import mapping
from ...config.language.schema import KIND
from ...config.language.validation.configuration import Target
from ...config.language.versions import Version
from ...config.migrate.convert import POLICY_FLAGS, Conversion, is_policy, with_flags
from ...config.migrate.kube_safe_scheduler import agent_containers
from ...config.migrate.operator_objects import ConvertedObjects
from ..console.errors import CommandError
from ..console.input_files import InputFiles, UnreadableDocumentError
from ..console.output import print_remark

if TYPE_CHECKING:
    from ...config.lint.documents.find_documents import Source
    from ...config.lint.forms.form import CommandLine

_FIRST: Final = Version(1, 25)
"""The first kube-scheduler that reads v1."""
_CONFIG_MAP: Final = "ConfigMap"


def _where(source: Source) -> str:
    owner = source.place.owner if source.place is not None else ""
    return source.file if owner in ("", "file") else f"{owner} in {source.file}"


def _is_in_config_map(source: Source) -> bool:
    """Return whether it is a value of a ConfigMap, which `convert` reads itself."""
    place = source.place
    while place is not None and place.outer is not None:
        place = place.outer
    text = place.text if place is not None else None
    return text is not None and text.kind == _CONFIG_MAP


@dataclass(frozen=True, slots=True)
class Reader:
    """The scheduler that reads a value of a ConfigMap."""

    command: CommandLine
    is_named: bool  # whether a flag names the value; otherwise it is only mounted

    def target(self, target: Target) -> Target:
        """Return the scheduler that will read the result; an image that is not stock stays so."""
        from ...config.lint.checks import known_scheduler, stock_of

        known = known_scheduler(self.command)
        if known is not None:
            return replace(target, stock=False, scheduler=known.key)
        return target if stock_of(self.command) else replace(target, stock=False)

    def completed(
        self, document: Mapping[str, Any], conversion: Conversion, target: Target
    ) -> Conversion:
        """Add the flags with which a Policy is read."""
        command = self.command
        if not is_policy(document) or not self.is_named or command.config:
            return conversion
        return with_flags(
            conversion, {name: values[-1] for name, values in command.flags.items()}, target
        )

    def with_pod(
        self,
        converted: ConvertedObjects,
        config: Mapping[str, Any],
        documents: Sequence[Any],
        target: Target,
        *,
        own_image: bool,
    ) -> ConvertedObjects:
        """Add to a SecondaryScheduler what the Pod of the old scheduler had."""
        from .second_pod import with_pod, workload_of

        workload = workload_of(self.command, documents)
        agents = agent_containers(config, documents)
        return with_pod(converted, workload, documents, target, agents, own_image=own_image)

    def instruction(self, where: str, document: Mapping[str, Any]) -> str:
        """Return what to do with the result."""
        label, command = self.command.label, self.command
        if not self.is_named:
            return f"{label} mounts {where}, and no flag names it"
        steps = [f"{label} reads {where}: replace it there with the result"]
        if is_policy(document):
            old = ", ".join(f"--{flag}" for flag in POLICY_FLAGS if command.last(flag))
            steps.append(f"mount it, name it with --config, and remove {old}")
        version = command.version
        if version is not None and version < _FIRST:
            steps.append(f"use an image of {_FIRST.short} or newer, not {version.short}")
        return "; ".join(steps)


class OtherForms:
    """Configurations inside of other documents, and the schedulers that documents start.

    `version` is that of the kube-scheduler that will read the result.
    """

    def __init__(self, files: InputFiles, version: Version) -> None:
        # Loaded here because the forms are slow to import, and most files need none of them.
        from ...config.lint.documents.find_documents import read_sources, readers_of

        self._sources = read_sources(files.contents, version.minor, lambda _: False)
        self._linked = readers_of(self._sources)

    def configuration(self, converted: Sequence[Any]) -> list[Any]:
        """Return the only configuration inside of other documents, in a list; empty without one.

        Its place is reported on standard error. `converted` are the documents that are converted
        themselves.
        """
        inside = [source for source in self._sources if source.place is not None]
        if converted:
            inside = [source for source in inside if not _is_in_config_map(source)]
        configurations = [
            (source, item.document.value)
            for source in inside
            for item in source.items
            if item.value.get("kind") in (KIND, "Policy")
        ]
        if len(configurations) > 1 or (configurations and converted):
            places = "; ".join(_where(source) for source, _ in configurations)
            count = len(configurations)
            many = f"{count} configurations are" if count > 1 else "a configuration is"
            raise CommandError(
                f"{many} in other documents ({places}); convert one file at a time, or copy the "
                "configurations to files"
            )
        if converted:
            return []
        for source in inside:
            for problem in source.problems:
                at = f"{source.file}:{problem.position.line}:{problem.position.column}"
                raise UnreadableDocumentError(f"{at}: {problem.message}")
        for source, _ in configurations:
            print_remark(f"note: from {_where(source)}; replace it there with the result")
        return [config for _, config in configurations]

    def missing(self) -> Iterator[str]:
        """Yield what the schedulers read and no file has."""
        from ...config.lint.documents.linking import mount_of

        for command in self._linked.commands:
            mount = mount_of(command, command.config)
            if mount is None or mount.kind != _CONFIG_MAP:
                continue
            if self._linked.keys_of(mount, command.namespace) is None:
                key = mount.key_of(command.config)
                yield (
                    f"{command.label} reads {key} of ConfigMap {mount.name}, which is not in these "
                    "files; name its file as well"
                )

    def reader_of(self, config_map: Mapping[str, Any], key: str) -> Reader | None:
        """Return the scheduler that reads a value of a ConfigMap; None: the files show none."""
        from ...config.lint.documents.linking import names_text
        from ...config.lint.forms.form import Text

        metadata = mapping(config_map.get("metadata"))
        namespace, name = (str(metadata.get(field) or "") for field in ("namespace", "name"))
        text = Text(("data", key), "", f"{_CONFIG_MAP} {name}", _CONFIG_MAP, namespace, name, key)
        command = self._linked.of_text(text)
        return None if command is None else Reader(command, names_text(command, text))
