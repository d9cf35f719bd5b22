"""Whether the container of a kube-scheduler has the file that its flag names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..base.findings import ERROR, WARNING, Problem, did_you_mean, listing
from .checks import Item
from .forms.form import CommandLine
from .linking import Readers, mount_of

FILE_NOT_MOUNTED: Final = "FileNotMounted"
OTHER_NAMESPACE: Final = "OtherNamespace"
MISSING_KEY: Final = "MissingKey"


def check_files(
    item: Item, command: CommandLine, readers: Readers, *, stock: bool
) -> Iterator[Problem]:
    """Whether the container has the file that --config, or the program's own flag, names."""
    argument = command.last(command.config_flag)
    if argument is None or not argument.value or not argument.is_known:
        return
    if command.mounts is None:
        return
    mount = mount_of(command, argument.value)
    if mount is None:
        where = "the Pod" if command.account or command.image else f"{command.program}'s Pod"
        message = f"no volume of {where} has {argument.value}, which --{command.config_flag} names"
        effect = ": kube-scheduler does not start" if stock else "; the image may have it"
        yield Problem(
            FILE_NOT_MOUNTED,
            argument.path,
            f"{message}{effect}",
            command.mount_fix.replace("FILE", argument.value),
            ERROR if stock else WARNING,
        )
        return
    if mount.kind:
        keys = readers.keys_of(mount, command.namespace)
        others = readers.namespaces_of(mount) if keys is None else []
        if others:
            yield Problem(
                OTHER_NAMESPACE,
                mount.at or argument.path,
                f"{mount.kind} {mount.name} of these files is in namespace {listing(others)}, the "
                f"Pod in {command.namespace}: without one there, the Pod does not start",
                f"set metadata.namespace of the {mount.kind} to {command.namespace}",
                WARNING,
            )
        key = mount.key_of(argument.value)
        if keys is not None and key not in keys:
            has = f"; it has {listing(keys)}" if mount.kind == "ConfigMap" and keys else ""
            similar = did_you_mean(key, keys).removeprefix("; ") if key else ""
            yield Problem(
                MISSING_KEY,
                argument.path,
                f"{mount.kind} {mount.name} has no key "
                f'"{key or argument.value.rpartition("/")[2]}", so {argument.value} does not '
                f"exist{has}",
                similar or "name one of its keys, or list it in items of the volume",
            )
        return
    node = item.place.node_mounts if item.place else None
    file = mount.node_file(argument.value)
    if node is None or not mount.name or any(each.path and each.holds(file) for each in node):
        return
    yield Problem(
        FILE_NOT_MOUNTED,
        mount.at or argument.path,
        f"the node has no file {file}: no extraMounts of a control-plane node puts it there",
        f"add to that node: extraMounts: [{{hostPath: ./kube-scheduler.yaml, containerPath: "
        f"{file}}}]",
    )
