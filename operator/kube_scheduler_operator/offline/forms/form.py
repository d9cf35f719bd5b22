"""What a form of a file contains for kube-scheduler: configurations, files and command lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...base.findings import Path, Problem
from ...schedulerconfig.flags import POLICY_KEY
from ...schedulerconfig.schema import API_VERSION, KIND
from ...schedulerconfig.source import Document
from ...schedulerconfig.source_tree import Position, SourceNode
from ...schedulerconfig.versions import Version
from ..volcano import PROGRAM as VC_SCHEDULER
from .image_changes import Kustomization

KUBE_SCHEDULER: Final = "kube-scheduler"
CONFIG_FLAGS: Final[Mapping[str, str]] = {KUBE_SCHEDULER: "config", VC_SCHEDULER: "scheduler-conf"}
"""Program -> its flag for the file with the configuration."""


@dataclass(frozen=True, slots=True)
class CommandLineFlag:
    """A flag of a kube-scheduler.

    Attributes:
        name: the flag without dashes, with `-` for `_`.
        value: its value.
        path: of its entry in the document.
        is_known: whether the document has the value; otherwise `value` has $(NAME) in it.
    """

    name: str
    value: str
    path: Path
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory in the container of a scheduler.

    Attributes:
        path: in the container.
        kind: "ConfigMap" or "Secret"; empty: a file of the node, or something else.
        name: of that object; of a file of the node its path there.
        keys: file -> key of the object; empty: every key is a file of that name.
        key: the only key, which `path` itself is (subPath); empty: `path` is a directory.
        at: of the mount in the document.
    """

    path: str
    kind: str = ""
    name: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    at: Path = ()

    def holds(self, file: str) -> bool:
        """Whether a file is in it."""
        return file == self.path or file.startswith(f"{self.path.rstrip('/')}/")

    def key_of(self, file: str) -> str:
        """The key of the ConfigMap or Secret that is a file in it; empty if none is."""
        if self.key:
            return self.key
        name = file[len(self.path.rstrip("/")) + 1 :]
        return self.keys.get(name, "") if self.keys else name

    def node_file(self, file: str) -> str:
        """The node's file that a file in it is."""
        return self.name.rstrip("/") + file[len(self.path.rstrip("/")) :]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A scheduler that a document starts.

    Attributes:
        label: the document in messages: `Deployment my-scheduler`.
        arguments: its flags.
        at: where its flags are, for messages about missing ones.
        mounts: the files in its container; None: unknown.
        image: of its container; empty: unknown.
        image_at: of that image in the document.
        kustomized: whether a Kustomization of the run sets the image, and not the document.
        version: of Kubernetes, if the document shows it otherwise than in the image.
        namespace: of its Pod; empty: unknown.
        account: the ServiceAccount of its Pod; empty: a static Pod, or no Pod.
        replicas: of its Pod.
        given: flags that the product sets itself.
        mount_fix: how the document mounts a file, with FILE for it.
        program: kube-scheduler, or another scheduler with a file of its own.
    """

    label: str
    arguments: tuple[CommandLineFlag, ...] = ()
    at: Path = ()
    mounts: tuple[Mount, ...] | None = None
    image: str = ""
    image_at: Path = ()
    kustomized: bool = False
    version: Version | None = None
    namespace: str = ""
    account: str = ""
    replicas: int = 1
    given: Mapping[str, str] = field(default_factory=dict)
    mount_fix: str = "add a volume with the file, and a volumeMount for it"
    program: str = KUBE_SCHEDULER

    def last(self, name: str) -> CommandLineFlag | None:
        """The effective occurrence of a flag."""
        return next((flag for flag in reversed(self.arguments) if flag.name == name), None)

    @property
    def config_flag(self) -> str:
        """The flag that names the file with the configuration."""
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
    """A file inside of a document.

    Attributes:
        at: of its content in the document.
        content: the file.
        owner: the object that has it: `ConfigMap my-config`.
        kind, namespace, name, key: the object and the key, by which a Pod mounts it.
        node_path: the file of the node that it becomes; empty: none.
        required: whether it can only be a configuration; otherwise other content is ignored.
        has_credentials: whether its kube-scheduler needs no clientConnection.kubeconfig.
        place: a provider whose scheduler reads it, as in `--for`.
        node_mounts: the files that the node has from outside; None: unknown.
        version: of the kube-scheduler that reads it, if the document shows it.
        for_kubeadm: whether kubeadm reads it, and therefore no kube-scheduler.
    """

    at: Path
    content: str
    owner: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    key: str = ""
    node_path: str = ""
    required: bool = False
    has_credentials: bool = True
    place: str = ""
    node_mounts: tuple[Mount, ...] | None = None
    version: Version | None = None
    for_kubeadm: bool = False


@dataclass(frozen=True, slots=True)
class GeneratedKey:
    """A key of a ConfigMap or Secret that is made of a file beside the document.

    Attributes:
        kind, name, key: the object and its key, by which a Pod mounts it.
        file: relative to the document's file.
        at: of the file's name in the document.
        namespace: empty, because the tool sets that of all objects.
    """

    kind: str
    name: str
    key: str
    file: str
    at: Path
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A configuration whose fields are a part of a document.

    Attributes:
        root: the configuration with positions in the document.
        owner: the object that has it.
        fields: (path in the configuration, path in the document), the longest ones first.
        place: a provider whose scheduler reads it, as in `--for`.
        version: of that kube-scheduler, if the document shows it.
        command: the index of the command line that reads it; None: none in the document.
    """

    root: SourceNode
    owner: str
    fields: tuple[tuple[Path, Path], ...]
    place: str = ""
    version: Version | None = None
    command: int | None = None

    def outer(self, path: Path) -> Path:
        """The path in the document of one in the configuration."""
        for inner, outer in self.fields:
            if path[: len(inner)] == inner:
                return (*outer, *path[len(inner) :])
        return path


@dataclass(frozen=True, slots=True)
class Contents:
    """What a document contains for kube-scheduler.

    Attributes:
        texts: files in it.
        parts: configurations that are a part of it.
        commands: kube-schedulers that it starts.
        problems: what is wrong with the form itself.
        generated: keys of ConfigMaps and Secrets that it makes of other files.
        kustomization: what it changes in other files; None for other kinds.
    """

    texts: tuple[Text, ...] = ()
    parts: tuple[Part, ...] = ()
    commands: tuple[CommandLine, ...] = ()
    problems: tuple[Problem, ...] = ()
    generated: tuple[GeneratedKey, ...] = ()
    kustomization: Kustomization | None = None

    def __bool__(self) -> bool:
        return bool(self.texts or self.parts or self.commands or self.problems)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a file.

    Attributes:
        name: what it is, for people.
        source: the document that defines it, with its version.
        read: what a document of this form contains; None: it has another form.
    """

    name: str
    source: str
    read: Callable[[Document], Contents | None]


def with_type(node: SourceNode) -> SourceNode:
    """A configuration without apiVersion and kind, with those that the product adds."""
    if not isinstance(node.data, dict):
        return node
    fields = {"apiVersion": API_VERSION, "kind": KIND}
    missing = {key: value for key, value in fields.items() if key not in node.data}
    scalars = {key: (node.position, SourceNode(node.position, v)) for key, v in missing.items()}
    return replace(node, data={**missing, **node.data}, fields={**scalars, **node.fields})


def made_of(position: Position, fields: Mapping[str, SourceNode]) -> SourceNode:
    """A configuration of parts that a product puts together; absent ones are left out."""
    data: dict[str, Any] = {key: node.data for key, node in fields.items()}
    children = {key: (node.position, node) for key, node in fields.items()}
    return with_type(SourceNode(position, data, children))


def listed(position: Position, nodes: Sequence[SourceNode]) -> SourceNode:
    """A list of values that stand in different places of a document."""
    return SourceNode(position, [node.data for node in nodes], {}, tuple(nodes))


def scalar(position: Position, value: Any) -> SourceNode:
    """A value that a product fills in."""
    return SourceNode(position, value)


def node_at(document: Document, path: Path) -> SourceNode | None:
    """The value at a path; None if it is absent or null."""
    node = document.root
    for part in path:
        step = node.child(part)
        if step is None:
            return None
        node = step[1]
    return None if node.data is None else node


def first(document: Document, *paths: Path) -> tuple[Path, SourceNode] | None:
    """The first of several paths that has a value, and the value."""
    for path in paths:
        node = node_at(document, path)
        if node is not None:
            return path, node
    return None
