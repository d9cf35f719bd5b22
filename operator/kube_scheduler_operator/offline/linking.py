"""Which kube-scheduler reads which file: flags, mounts, ConfigMaps and files of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..base.objects import mapping
from .checks import Item
from .forms.config_map import CONFIG_MAP, SECRET
from .forms.form import CommandLine, Mount, Text
from .forms.objects import name_of, namespace_of


@dataclass(frozen=True, slots=True)
class Readers:
    """The kube-schedulers of a run.

    Attributes:
        commands: their command lines.
        items: all documents of the files.
    """

    commands: Sequence[CommandLine]
    items: Sequence[Item]

    def of_text(self, text: Text) -> CommandLine | None:
        """The scheduler that reads a text in a document; None if the files show none.

        That is one whose flag names it, else one that mounts it.
        """
        mounting = None
        for command in self.commands:
            if names_text(command, text):
                return command
            if text.kind and _in_namespace(command.namespace, text.namespace):
                mount = mount_of(command, command.config)
                named = mount is not None and (mount.kind, mount.name) == (text.kind, text.name)
                if not named and _mounts(command, text):
                    mounting = mounting or command
            elif text.node_path and node_file_of(command) == text.node_path:
                return command
        return mounting

    def of_file(self, file: str) -> CommandLine | None:
        """The kube-scheduler that reads a file of the user, by the file's name."""
        name = PurePosixPath(file.replace("\\", "/")).name
        reading = [each for each in self.commands if _names(each, name)]
        return reading[0] if len(reading) == 1 else None

    def keys_of(self, mount: Mount, namespace: str) -> list[str] | None:
        """The keys of a mounted ConfigMap or Secret; None if the files do not have it."""
        for item in self.items:
            value = item.value
            if (
                item.kind == mount.kind
                and name_of(value) == mount.name
                and _in_namespace(namespace, namespace_of(value))
            ):
                return [str(key) for key in _keys(value)]
        return None

    def namespaces_of(self, mount: Mount) -> list[str]:
        """The namespaces in which the files have an object of a mount's kind and name."""
        wanted = (mount.kind, mount.name)
        found = (item.value for item in self.items if (item.kind, name_of(item.value)) == wanted)
        return sorted({namespace_of(value) for value in found})


def _keys(value: Any) -> list[str]:
    sections = {CONFIG_MAP: ("data", "binaryData"), SECRET: ("stringData", "data")}
    names = sections.get(str(value.get("kind")), ())
    return [key for name in names for key in mapping(value.get(name))]


def _in_namespace(one: str, other: str) -> bool:
    """Whether two objects may be in one namespace; an empty one is that of `kubectl -n`."""
    return one == other or "" in (one, other)


def names_text(command: CommandLine, text: Text) -> bool:
    """Whether a scheduler's flag names a text: its configuration, or up to 1.22 its Policy."""
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
    """The mount that has a file of the container; None if none has, or mounts are unknown."""
    holding = [each for each in command.mounts or () if each.path and each.holds(file)]
    # A mount of a directory whose keys are listed has only these.
    holding = [each for each in holding if not each.keys or each.key_of(file)] or holding
    return max(holding, key=lambda each: len(each.path), default=None) if file else None


def node_file_of(command: CommandLine) -> str:
    """The node's file that --config names; empty if it is none."""
    if command.mounts is None:
        return command.config
    mount = mount_of(command, command.config)
    return mount.node_file(command.config) if mount and not mount.kind and mount.name else ""


def _mounts(command: CommandLine, text: Text) -> bool:
    return any((each.kind, each.name) == (text.kind, text.name) for each in command.mounts or ())


def _names(command: CommandLine, name: str) -> bool:
    file = node_file_of(command)
    return bool(file) and PurePosixPath(file).name == name
