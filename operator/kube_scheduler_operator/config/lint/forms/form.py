"""What a form of a file contains for kube-scheduler: configurations, files and command lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ....base.findings import Path, Problem
from ....base.source.encoding import LINE_BREAK
from ....base.source.reader import Document
from ....base.source.tree import Position, SourceNode
from ...language.flags import POLICY_KEY
from ...language.schema import API_VERSION, KIND
from ...language.versions import Version
from .document_fields import objects, text
from .volcano import PROGRAM as VC_SCHEDULER

KUBE_SCHEDULER: Final = "kube-scheduler"
CONFIG_FLAGS: Final[Mapping[str, str]] = {KUBE_SCHEDULER: "config", VC_SCHEDULER: "scheduler-conf"}
"""Program -> its flag for the file with the configuration."""
_TAG_AND_DIGEST: Final = r"(?::([a-zA-Z0-9_.{}-]*))?(?:@([a-zA-Z][a-zA-Z0-9]*:[a-zA-Z0-9_.{}-]*))?"


@dataclass(frozen=True, slots=True)
class CommandLineFlag:
    name: str  # without dashes, with `-` for `_`
    value: str
    path: Path  # of its entry in the document
    is_known: bool = True  # whether the document has the value; otherwise `value` has $(NAME) in it


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory in the container of a scheduler."""

    path: str  # in the container
    kind: str = ""  # "ConfigMap" or "Secret"; empty: a file of the node, or something else
    name: str = ""  # of that object; of a file of the node its path there
    # file -> key of the object; empty: every key is a file of that name
    keys: Mapping[str, str] = field(default_factory=dict)
    key: str = ""  # the only key, which `path` itself is (subPath); empty: `path` is a directory
    at: Path = ()  # of the mount in the document

    def holds(self, file: str) -> bool:
        return file == self.path or file.startswith(f"{self.path.rstrip('/')}/")

    def key_of(self, file: str) -> str:
        """Return the key of the ConfigMap or Secret that becomes a file; empty without one."""
        if self.key:
            return self.key
        name = file[len(self.path.rstrip("/")) + 1 :]
        return self.keys.get(name, "") if self.keys else name

    def node_file(self, file: str) -> str:
        """Return the path on the node of a file in it."""
        return self.name.rstrip("/") + file[len(self.path.rstrip("/")) :]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A scheduler that a document starts."""

    label: str  # the document in messages: `Deployment my-scheduler`
    arguments: tuple[CommandLineFlag, ...] = ()  # its flags
    at: Path = ()  # where its flags are, for messages about missing ones
    mounts: tuple[Mount, ...] | None = None  # the files in its container; None: unknown
    image: str = ""  # of its container; empty: unknown
    image_at: Path = ()  # of that image in the document
    kustomized: bool = False  # whether a Kustomization of the run sets the image
    version: Version | None = None  # of Kubernetes, if the document shows it
    namespace: str = ""  # of its Pod; empty: unknown
    account: str = ""  # the ServiceAccount of its Pod; empty: a static Pod, or no Pod
    replicas: int = 1  # of its Pod
    given: Mapping[str, str] = field(default_factory=dict)  # flags that the product sets itself
    # how to mount FILE in a document of this form
    mount_fix: str = "add a volume with the file, and a volumeMount for it"
    program: str = KUBE_SCHEDULER  # kube-scheduler, or another scheduler with a file of its own

    def last(self, name: str) -> CommandLineFlag | None:
        return next((flag for flag in reversed(self.arguments) if flag.name == name), None)

    @property
    def config_flag(self) -> str:
        return CONFIG_FLAGS[self.program]

    @property
    def config(self) -> str:
        """The file with the configuration: the value of --config."""
        flag = self.last(self.config_flag)
        return flag.value if flag else self.given.get(self.config_flag, "")

    @property
    def policy_file(self) -> str:
        """The file with a Policy, which kube-scheduler read up to 1.22."""
        flag = self.last("policy-config-file")
        return flag.value if flag else ""

    @property
    def policy_map(self) -> tuple[str, str, str] | None:
        """(namespace, ConfigMap, key) with a Policy, which kube-scheduler read up to 1.22."""
        flag, namespace = self.last("policy-configmap"), self.last("policy-configmap-namespace")
        if flag is None:
            return None
        return (namespace.value if namespace else "kube-system", flag.value, POLICY_KEY)

    @property
    def flags(self) -> dict[str, list[str]]:
        """Flag -> its values, without flags that have an unknown one."""
        flags: dict[str, list[str]] = {}
        unknown = self.unknown
        for flag in self.arguments:
            if flag.name not in unknown:
                flags.setdefault(flag.name, []).append(flag.value)
        return flags

    @property
    def unknown(self) -> frozenset[str]:
        """The flags with a value that only the cluster knows."""
        return frozenset(flag.name for flag in self.arguments if not flag.is_known)


@dataclass(frozen=True, slots=True)
class Text:
    """A file inside a document."""

    at: Path  # of its content in the document
    content: str  # the file
    owner: str  # the object that has it: `ConfigMap my-config`
    kind: str = ""  # the object and the key, by which a Pod mounts it
    namespace: str = ""
    name: str = ""
    key: str = ""
    made_of: str = ""  # the file, relative to the document's, that is the content; empty: none
    node_path: str = ""  # the file of the node that it becomes; empty: none
    required: bool = False  # whether it must be a configuration; otherwise other content is ignored
    has_credentials: bool = True  # whether its kube-scheduler needs no clientConnection.kubeconfig
    place: str = ""  # a provider whose scheduler reads it, as in `--for`
    node_mounts: tuple[Mount, ...] | None = None  # files from outside the node; None: unknown
    version: Version | None = None  # of the kube-scheduler that reads it, if the document shows it
    for_kubeadm: bool = False  # whether kubeadm reads it, and therefore no kube-scheduler


@dataclass(frozen=True, slots=True)
class Part:
    """A configuration whose fields are a part of a document."""

    root: SourceNode  # the configuration with positions in the document
    owner: str  # the object that has it
    # (path in the configuration, path in the document), the longest ones first
    fields: tuple[tuple[Path, Path], ...]
    place: str = ""  # a provider whose scheduler reads it, as in `--for`
    version: Version | None = None  # of that kube-scheduler, if the document shows it
    # the index of the command line that reads it; None: none in the document
    command: int | None = None

    def outer(self, path: Path) -> Path:
        """Translate a path in the configuration to one in the document."""
        for inner, outer in self.fields:
            if path[: len(inner)] == inner:
                return (*outer, *path[len(inner) :])
        return path


@dataclass(frozen=True, slots=True)
class Embedding:
    """Where in another document a configuration is, and what reads it."""

    content: Text | Part
    position: Position  # of the content's key, in the text that has the document
    # the lines of that text from the first line of the content on; empty for a part
    lines: tuple[str, ...] = ()
    outer: Embedding | None = None  # where that text itself is; None: it is the file

    @property
    def owner(self) -> str:
        """The object that has it: `ConfigMap my-config`."""
        return self.content.owner

    @property
    def text(self) -> Text | None:
        return self.content if isinstance(self.content, Text) else None

    @property
    def is_part(self) -> bool:
        return isinstance(self.content, Part)

    @property
    def version(self) -> Version | None:
        """The version of the kube-scheduler that reads it, if the document shows it."""
        return self.content.version or (self.outer.version if self.outer else None)

    @property
    def place(self) -> str:
        """The provider whose scheduler reads it, as in `--for`; empty: unknown."""
        return self.content.place

    @property
    def node_mounts(self) -> tuple[Mount, ...] | None:
        """The files that the node has from outside; None: unknown."""
        own = self.text.node_mounts if self.text else None
        return own if own is not None or self.outer is None else self.outer.node_mounts

    def outer_path(self, path: Path) -> Path:
        """Translate a path in a part to the document."""
        return self.content.outer(path) if isinstance(self.content, Part) else path

    def in_file(self, position: Position) -> Position:
        """Translate a position in the content to the file; the key's position if it is unknown."""
        if isinstance(self.content, Text):
            position = self._in_text(self.content.content, position)
        return self.outer.in_file(position) if self.outer else position

    def _in_text(self, content: str, position: Position) -> Position:
        index, own = position.line - 1, LINE_BREAK.split(content)
        if index < min(len(own), len(self.lines)):
            line, whole = own[index], self.lines[index]
            if whole.endswith(line):
                column = len(whole) - len(line) + position.column
                return Position(self.position.line + 1 + index, column, position.length)
        return self.position


@dataclass(frozen=True, slots=True)
class ImageChange:
    """An entry of `images`."""

    name: str  # of the images that it changes, without tag and digest
    new_name: str = ""  # empty: the name stays
    new_tag: str = ""  # what replaces both the tag and the digest; both empty: they stay
    digest: str = ""
    tag_suffix: str = ""  # what is appended to the tag, unless one of those is set

    def applied(self, image: str) -> str:
        match = re.fullmatch(re.escape(self.name) + _TAG_AND_DIGEST, image)
        if match is None:
            return image
        tag, digest = match[1] or "", match[2] or ""
        if self.new_tag or self.digest:
            tag, digest = self.new_tag, self.digest
        elif self.tag_suffix:
            tag, digest = tag + self.tag_suffix, ""
        name = self.new_name or self.name
        return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


@dataclass(frozen=True, slots=True)
class Kustomization:
    """What a Kustomization changes."""

    # its files, and the directories of other Kustomizations, relative to its own
    resources: tuple[str, ...] = ()
    images: tuple[ImageChange, ...] = ()  # its changes, in order


@dataclass(frozen=True, slots=True)
class Contents:
    """What a document contains for kube-scheduler."""

    texts: tuple[Text, ...] = ()  # files in it
    parts: tuple[Part, ...] = ()  # configurations that are a part of it
    commands: tuple[CommandLine, ...] = ()  # kube-schedulers that it starts
    # programs of unknown images; those that read a configuration of kube-scheduler are such
    candidates: tuple[CommandLine, ...] = ()
    problems: tuple[Problem, ...] = ()  # what is wrong with the form itself
    generated: tuple[Text, ...] = ()  # keys of ConfigMaps and Secrets that are made of other files
    kustomization: Kustomization | None = None  # what it changes in other files

    def __bool__(self) -> bool:
        return bool(self.texts or self.parts or self.commands or self.problems)

    def for_version(self, version: Version) -> Contents:
        """Give schedulers that show no version the one of the document around this one."""
        shown = (replace(each, version=each.version or version) for each in self.commands)
        return replace(self, commands=tuple(shown))


def host_mounts(volumes: Any, path: Path, target: str = "mountPath") -> Iterator[Mount]:
    """Yield the files of the node in a list of volumes with a hostPath, mounted at `target`."""
    for index, volume in objects(volumes):
        yield Mount(text(volume.get(target)), "", text(volume.get("hostPath")), at=(*path, index))


def with_type(node: SourceNode) -> SourceNode:
    """Add the apiVersion and kind that a product adds to a configuration."""
    if not isinstance(node.data, dict):
        return node
    fields = {"apiVersion": API_VERSION, "kind": KIND}
    added = assembled({key: fields[key] for key in fields if key not in node.data}, node.position)
    return replace(node, data={**added.data, **node.data}, fields={**added.fields, **node.fields})


def assembled(value: Any, position: Position) -> SourceNode:
    """Write a value of maps and lists at a position; the nodes in it keep theirs."""
    if isinstance(value, SourceNode):
        return value
    if isinstance(value, Mapping):
        nodes = {key: assembled(item, position) for key, item in value.items()}
        start = next((node.position for node in nodes.values()), position)
        data = {key: node.data for key, node in nodes.items()}
        return SourceNode(start, data, {key: (node.position, node) for key, node in nodes.items()})
    if isinstance(value, list):
        items = tuple(assembled(item, position) for item in value)
        return SourceNode(position, [item.data for item in items], items=items)
    return SourceNode(position, value)


def node_at(document: Document, path: Path) -> SourceNode | None:
    """Return the value at a path; None if it is absent or null."""
    node = document.root.at(path)
    return None if node is None or node.data is None else node
