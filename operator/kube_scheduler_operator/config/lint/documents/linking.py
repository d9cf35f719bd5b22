"""Which kube-scheduler reads which file: flags, mounts, ConfigMaps and files of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from ....base.objects import mapping
from ..checks import Item
from ..forms.document_fields import name_of, namespace_of
from ..forms.embedded import CONFIG_MAP, SECTIONS
from ..forms.form import CommandLine, Mount, Text


@dataclass(frozen=True, slots=True)
class Readers:
    """The kube-schedulers of a run."""

    commands: Sequence[CommandLine]
    items: Sequence[Item]  # all documents of the files
    # (file, key) of the ConfigMaps and Secrets that are made of files of the run
    generated: Sequence[tuple[str, Text]] = ()

    def of_text(self, text: Text) -> CommandLine | None:
        """Return the scheduler that reads an embedded text; None if the files show none.

        That is one whose flag names it, else one that mounts it.
        """
        mounting = None
        for command in self.commands:
            if names_text(command, text):
                return command
            if text.kind and _in_namespace(command.namespace, text.namespace):
                mount = mount_of(command, command.config)
                if not self._has_another(command, mount, text) and _mounts(command, text):
                    mounting = mounting or command
            elif text.node_path and node_file_of(command) == text.node_path:
                return command
        return mounting

    def _has_another(self, command: CommandLine, mount: Mount | None, text: Text) -> bool:
        """Report whether --config names another existing key of the object that has a text."""
        if mount is None or (mount.kind, mount.name) != (text.kind, text.name):
            return False
        return mount.key_of(command.config) in (self.keys_of(mount, command.namespace) or ())

    def of_file(self, file: str) -> CommandLine | None:
        """Return the kube-scheduler that reads a user's file; None: none or several.

        That is one with a ConfigMap that is generated from the file, or whose flag names a file of
        that name on the node, or a key of that name in a ConfigMap that the files do not have.
        """
        for made_of, key in self.generated:
            if made_of == normpath(file):
                command = self.of_text(key)
                if command is not None:
                    return command
        name = PurePosixPath(file.replace("\\", "/")).name
        reading = [command for command in self.commands if self._names(command, name)]
        return reading[0] if len(reading) == 1 else None

    def _names(self, command: CommandLine, name: str) -> bool:
        file = node_file_of(command)
        if file:
            return PurePosixPath(file).name == name
        mount = mount_of(command, command.config)
        if mount is None or not mount.kind or self.keys_of(mount, command.namespace) is not None:
            return False
        return mount.key_of(command.config) == name

    def keys_of(self, mount: Mount, namespace: str) -> list[str] | None:
        """Return the keys of a mounted ConfigMap or Secret; None if the files do not have it."""
        for value in self._objects_of(mount):
            if _in_namespace(namespace, namespace_of(value)):
                sections = SECTIONS.get(mount.kind, ())
                return [str(key) for section in sections for key in mapping(value.get(section))]
        wanted = (mount.kind, mount.name)
        made = [key.key for _, key in self.generated if (key.kind, key.name) == wanted]
        return made or None

    def namespaces_of(self, mount: Mount) -> list[str]:
        """Return the namespaces in which the files have an object of a mount's kind and name."""
        return sorted({namespace_of(value) for value in self._objects_of(mount)})

    def _objects_of(self, mount: Mount) -> Iterator[Mapping[str, Any]]:
        wanted = (mount.kind, mount.name)
        return (item.value for item in self.items if (item.kind, name_of(item.value)) == wanted)


def _in_namespace(first: str, second: str) -> bool:
    """Report whether two namespaces may be the same; an empty one is that of `kubectl -n`."""
    return first == second or "" in (first, second)


def names_text(command: CommandLine, text: Text) -> bool:
    """Report whether a scheduler's flag names it: its configuration, or up to 1.22 its Policy."""
    policy = command.policy_map
    if text.kind == CONFIG_MAP and policy is not None:
        namespace, *names = policy
        if names == [text.name, text.key] and _in_namespace(namespace, text.namespace):
            return True
    if not text.kind or not _in_namespace(command.namespace, text.namespace):
        return False
    for file in filter(None, (command.config, command.policy_file)):
        mount = mount_of(command, file)
        if mount is not None and (mount.kind, mount.name) == (text.kind, text.name):
            return mount.key_of(file) == text.key
    return False


def mount_of(command: CommandLine, file: str) -> Mount | None:
    """Return the mount that has a file of the container; None if none has it or is known."""
    holding = [mount for mount in command.mounts or () if mount.path and mount.holds(file)]
    # A mount of a directory whose keys are listed has only these.
    holding = [mount for mount in holding if not mount.keys or mount.key_of(file)] or holding
    return max(holding, key=lambda mount: len(mount.path), default=None) if file else None


def node_file_of(command: CommandLine) -> str:
    """Return the node's file that --config names; empty if it is none."""
    if command.mounts is None:
        return command.config
    mount = mount_of(command, command.config)
    return mount.node_file(command.config) if mount and not mount.kind and mount.name else ""


def _mounts(command: CommandLine, text: Text) -> bool:
    return any((mount.kind, mount.name) == (text.kind, text.name) for mount in command.mounts or ())
