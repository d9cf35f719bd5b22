"""Reads worlds from files: what `kubectl get -o yaml` and `-o json` print, and must-gathers.

A List is read item by item, so that a file with 30,000 pods never exists as Python objects at once.
"""

from __future__ import annotations

import codecs
import gc
import json
import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, Final, NoReturn

import orjson
import yaml

from ..base.objects import mapping
from ..base.quantities import quantity
from ..base.source.separator import SEPARATOR
from ..config.language.schema import KIND as CONFIGURATION
from .absence import unread_in_files
from .kinds import BY_KIND, NAMES_ITS_NODE, names_its_node
from .world import World

_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_OWN_GROUP: Final = "kube-scheduler-operator.dev/"

# The fields before `items` in a List, as kubectl and the API server write them.
_LIST: Final = re.compile(
    r'\s*\{(?:\s*"(?:apiVersion|kind|metadata)"\s*:\s*(?:"[^"]*"|\{[^{}]*\})\s*,)*'
    r'\s*"items"\s*:\s*\[\s*'
)
_LIST_END: Final = re.compile(
    r'\](?:\s*,\s*"(?:apiVersion|kind|metadata)"\s*:\s*(?:"[^"]*"|\{[^{}]*\}))*\s*\}\s*'
)
_SPACE: Final = re.compile(r"\s*")
_BETWEEN: Final = re.compile(r"\s*,?\s*")
_YAML_LIST: Final = re.compile(r"^items:[ \t]*\n(?=- )", re.MULTILINE)
_YAML_KIND: Final = re.compile(r"^kind:[ \t]*(\w+)List[ \t]*$", re.MULTILINE)
_YAML_VERSION: Final = re.compile(r"^apiVersion:[ \t]*(\S+)[ \t]*$", re.MULTILINE)
_YAML_ITEM: Final = re.compile(r"^- ", re.MULTILINE)
_DEEP: Final = re.compile(r"^[ \t?:-]{500}", re.MULTILINE)
"""A line that may be nested too deep: of two levels of blocks, one takes a character before it."""
_DEEPEST: Final = 1000
"""Levels of nested values; more exceed the stack of libyaml. orjson writes 254."""
_VALUE_BYTES: Final = 16
"""Bytes that a value counts besides its text."""
_ALIAS: Final = re.compile(r"(?:- |: )[&*]\w")
"""Items that refer to each other cannot be read one by one."""
_UNUSED: Final = re.compile(
    r"^( *)(- )?(?:args(?=:[ \t]*\n *-)|command|env|envFrom|f:[^\n]*|livenessProbe|managedFields|"
    r"readinessProbe|startupProbe|(volumeMounts)):[ \t]*\n",
    re.MULTILINE,
)
"""Keys of long values that no world has. A container has a list of `args`, a plugin a map."""
_NAMES_OF_SCHEDULER: Final = "--scheduler-name="
"""In arguments of other schedulers; these are read."""
_KINDS: Final = frozenset(kind for _, kind in BY_KIND)
_GZIP: Final = b"\x1f\x8b"
_QUANTITIES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "Node": (("status", "allocatable"), ("status", "capacity")),
    "PersistentVolume": (("spec", "capacity"),),
    "PersistentVolumeClaim": (("spec", "resources", "requests"), ("status", "capacity")),
}
"""Kind -> the maps of quantities that scheduling reads."""


class WorldFileError(Exception):
    """A file cannot be read as objects; the message names it and the problem."""


class RepetitionError(ValueError):
    """A document is larger than its text by far, or nested too deep."""


class Repetitions:
    """Limits what aliases repeat in all documents: every repetition is written out later.

    Nine lines of nine aliases each are 400 million values.
    """

    MOST: Final = 64 * 2**20
    """Bytes; 3,000 Pods that share everything repeat about as much."""

    def __init__(self) -> None:
        self.left = self.MOST

    def check(self, document: str) -> None:
        """Count what the aliases of a document repeat, without building its values.

        Raises:
            RepetitionError: all aliases repeat more than MOST, an anchor contains itself, or values
                are nested deeper than _DEEPEST.
            yaml.YAMLError: this is not YAML.
        """
        anchors: dict[str, int | None] = {}  # the bytes of its value; None: it has not ended
        open_: list[tuple[str | None, int]] = []  # anchor and bytes of the values that are open
        for event in yaml.parse(document, _Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                if event.anchor is not None:
                    anchors[event.anchor] = None
                open_.append((event.anchor, _VALUE_BYTES))
                if len(open_) > _DEEPEST:
                    raise RepetitionError(f"values are nested in more than {_DEEPEST} levels")
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                anchor, size = open_.pop()
            elif isinstance(event, yaml.ScalarEvent):
                anchor, size = event.anchor, _VALUE_BYTES + len(event.value)
            elif isinstance(event, yaml.AliasEvent):
                anchor, size = None, self._repeated(event.anchor, anchors)
            else:
                continue
            if anchor is not None:
                anchors[anchor] = size
            if open_:
                open_[-1] = (open_[-1][0], open_[-1][1] + size)

    def _repeated(self, anchor: str | None, anchors: Mapping[str, int | None]) -> int:
        size = anchors.get(anchor or "", 0)
        if size is None:
            raise RepetitionError("an anchor contains itself; write the value out")
        self.left -= size
        if self.left < 0:
            raise RepetitionError(
                f"aliases repeat more than {self.MOST // 2**20} MiB; write the values out"
            )
        return size


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML whose times stay strings, as in Kubernetes."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in _Loader.yaml_implicit_resolvers.items()
}


class Input:
    """What files contain."""

    def __init__(self) -> None:
        self.world = World(annotations=True)  # whether they matter is not known yet
        # KubeSchedulerConfigurations, with the name of their file
        self.configurations: list[tuple[str, Mapping[str, Any]]] = []
        # objects of our own group, such as SchedulerExtenders and LoadPolicies
        self.own: list[Mapping[str, Any]] = []
        self.ignored: dict[str, int] = {}  # number of objects of other kinds, by kind
        # KubeSchedulerConfigurations in ConfigMaps, by namespace and name
        self.mounted: dict[tuple[str, str], Mapping[str, Any]] = {}

    def take(self, obj: Any, file: str) -> None:
        """Take one object.

        Raises:
            WorldFileError: it is not an object, or it has no name.
        """
        if obj is None:
            return
        if not isinstance(obj, (dict, Mapping)) or not isinstance(obj.get("kind"), str):
            raise WorldFileError(
                f"{file}: a document is not an object with apiVersion and kind; write the file "
                "with kubectl get -o yaml or -o json"
            )
        kind = obj["kind"]
        if kind == CONFIGURATION:
            self.configurations.append((file, obj))
        elif kind.endswith("List") and isinstance(obj.get("items"), list):
            for item in _items(obj):
                self.take(item, file)
        elif str(obj.get("apiVersion", "")).startswith(_OWN_GROUP):
            self.own.append(obj)
        elif kind == "ConfigMap" and (config := configuration_in(obj)) is not None:
            metadata = mapping(obj.get("metadata"))
            where = str(metadata.get("namespace") or "default")
            self.mounted[where, str(metadata.get("name") or "")] = config
        else:
            self._add(obj, file)

    def _add(self, obj: Mapping[str, Any], file: str) -> None:
        """Add an object to the world, or count it if scheduling does not read it."""
        kind = obj["kind"]
        if not obj.get("apiVersion") and kind in _KINDS:
            raise WorldFileError(f"{file}: {_label(obj)} has no apiVersion; add it")
        if not isinstance(obj.get("metadata") or {}, (dict, Mapping)):
            raise WorldFileError(f"{file}: {_label(obj)}: metadata is not an object")
        try:
            check_quantities(obj)
            taken = self.world.add(obj)
        except (AttributeError, TypeError, ValueError) as error:
            raise WorldFileError(f"{file}: {_label(obj)}: {error}") from None
        if not taken:
            self.ignored[kind] = self.ignored.get(kind, 0) + 1


def _label(obj: Mapping[str, Any]) -> str:
    name = str(mapping(obj.get("metadata")).get("name") or "")
    return f"{obj['kind']} {name}".rstrip()


def configuration_in(config_map: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the KubeSchedulerConfiguration in a ConfigMap; None without one that can be read."""
    for text in mapping(config_map.get("data")).values():
        if not isinstance(text, str) or CONFIGURATION not in text:
            continue
        try:
            for obj in documents(text):
                if isinstance(obj, Mapping) and obj.get("kind") == CONFIGURATION:
                    profiles = obj.get("profiles") or []
                    if isinstance(profiles, list) and all(map(_is_mapping, profiles)):
                        return obj
        except (ValueError, RecursionError, yaml.YAMLError):
            continue  # `validate` reports what is wrong with it
    return None


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _items(listed: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the items of a list, with their kinds."""
    kind = listed["kind"]
    for item in listed["items"]:
        if isinstance(item, dict) and kind != "List":
            # The items of a response of the API server have no kinds of their own.
            item.setdefault("kind", kind.removesuffix("List"))
            item.setdefault("apiVersion", listed.get("apiVersion"))
        yield item


def check_quantities(obj: Mapping[str, Any]) -> None:
    """Check quantities like the API server: kube-scheduler cannot decode invalid ones.

    Raises:
        ValueError: a value is not a quantity.
    """
    kind = obj["kind"]
    for path in _QUANTITIES.get(kind, ()):
        _check_amounts(reduce(_field, path, obj), *path)
    if kind != "Pod":
        return
    spec = mapping(obj.get("spec"))
    _check_amounts(spec.get("overhead"), "spec", "overhead")
    _check_resources(spec, "spec")
    for key in ("containers", "initContainers"):
        listed = spec.get(key)
        if listed and isinstance(listed, list):
            for index, container in enumerate(listed):
                _check_resources(mapping(container), "spec", key, index)


def _check_resources(holder: Mapping[str, Any], *path: str | int) -> None:
    """Check the requests and limits of a pod or of a container, which is at a path of the pod."""
    resources = holder.get("resources")
    if resources:
        for field in ("requests", "limits"):
            _check_amounts(mapping(resources).get(field), *path, "resources", field)


def _field(value: Any, name: str) -> Any:
    return mapping(value).get(name)


def _check_amounts(amounts: Any, *path: str | int) -> None:
    for name, amount in mapping(amounts).items():
        try:
            if amount is not None:  # which the API server reads as 0
                quantity(str(amount))
        except ValueError as error:
            field = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in (*path, name))
            raise ValueError(f"{field[1:]}: {error}") from None


def _text(path: Path) -> str:
    """Return the text of a file: UTF-8, or UTF-16 as PowerShell writes it.

    Raises:
        WorldFileError: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WorldFileError(f"{path}: {error.strerror}") from None
    if data.startswith(_GZIP):
        raise WorldFileError(f"{path}: this is compressed; decompress it first: gunzip {path}")
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        raise WorldFileError(f"{path}: this is not UTF-8") from None


def _is_cut_off(error: Exception, text: str) -> bool:
    """Return whether a parser stopped at the end of the text."""
    if isinstance(error, json.JSONDecodeError):
        return error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    mark = getattr(error, "problem_mark", None)
    last = SEPARATOR.split(text)[-1]
    # A whole file ends with a line break, and an error in its last line is one of that line.
    return mark is not None and not text.endswith("\n") and mark.line >= last.count("\n")


def read_files(paths: list[Path]) -> Input:
    """Read files and directories.

    Raises:
        WorldFileError: a file cannot be read, or there is no object of a world.
    """
    files = Input()
    with _without_collections():
        _read_into(files, paths)
    files.world.complete()
    files.world.sort()  # an answer does not depend on the order of the files
    files.world.unread = unread_in_files(files.world)
    return files


@contextmanager
def _without_collections() -> Iterator[None]:
    """Collect no garbage meanwhile, and never look at what was read again: it has no cycles.

    Tens of thousands of objects would be looked at in each collection.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _read_into(files: Input, paths: list[Path]) -> None:
    repetitions = Repetitions()
    for path, is_named in _files(paths):
        text = _text(path)
        try:
            for obj in documents(text, repetitions):
                # A must-gather has other files, too: lists, and objects without kind.
                if is_named or (isinstance(obj, (dict, Mapping)) and "kind" in obj):
                    files.take(obj, str(path))
        except RepetitionError as error:
            raise WorldFileError(f"{path}: {error}") from None
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            if _is_cut_off(error, text):
                raise WorldFileError(f"{path}: the file is cut off; write it again") from None
            message = " ".join(str(error).split())
            raise WorldFileError(f"{path}: this is neither JSON nor YAML: {message}") from None


def _files(paths: list[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the files, and whether they were named rather than found in a directory.

    Raises:
        WorldFileError: a directory cannot be read.
    """
    for path in paths:
        if path.is_dir():
            walked = os.walk(path, onerror=_unreadable)
            inside = (Path(folder, name) for folder, _, names in walked for name in names)
            found = sorted(file for file in inside if file.suffix in _SUFFIXES)
            yield from ((file, False) for file in found if file.is_file())
        else:
            yield path, True


def _unreadable(error: OSError) -> NoReturn:
    raise WorldFileError(f"{error.filename}: {error.strerror}") from None


def documents(text: str, repetitions: Repetitions | None = None) -> Iterator[Any]:
    """Yield the objects in a file: its documents, and the items of Lists.

    `repetitions` counts what aliases repeat; None: in this file alone.

    Raises:
        RepetitionError: see Repetitions.
        ValueError, yaml.YAMLError: this is neither JSON nor YAML.
    """
    counted, decoder, at = repetitions or Repetitions(), json.JSONDecoder(), 0
    while at < len(text):
        begin, failure = _after(_SPACE, text, at), None
        if text.startswith("-", begin) and (separator := SEPARATOR.match(text, begin)):
            at = separator.end()
            continue
        if text.startswith("{", begin):
            head = _LIST.match(text, begin)
            if head is not None:
                at = yield from _json_items(text, head, decoder)
                continue
            try:
                obj, at = decoder.raw_decode(text, begin)
            except json.JSONDecodeError as error:
                if _is_cut_off(error, text):
                    raise
                failure = error  # unless it is YAML, which has braces as well
            else:
                yield obj
                continue
        separator = SEPARATOR.search(text, at)
        end = separator.start() if separator else len(text)
        try:
            if begin < end:
                yield from _yaml(text[at:end], counted)
        except yaml.YAMLError as error:
            raise failure or error from None
        at = end


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the end of a pattern that may be empty."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _json_items(
    text: str, head: re.Match[str], decoder: json.JSONDecoder
) -> Generator[Any, None, int]:
    """Yield the items of a List; return where the List ends."""
    # The kind of a List without kinds in its items may follow the items.
    kind = re.search(r'"kind"\s*:\s*"(\w+)List"', head[0]) or re.search(
        r'\]\s*,[^\[\]]*"kind"\s*:\s*"(\w+)List"[^\[\]]*$', text[-2000:]
    )
    version = re.search(r'"apiVersion"\s*:\s*"([^"]+)"', head[0])
    at = head.end()
    # An item that begins in a line of its own ends in one. What is JSON up to there is all of it,
    # and orjson takes a fifth of the decoder's time, but needs to know the end.
    last = text[text.rfind("\n", 0, at) : at] + "}"
    while text[at : at + 1] != "]":
        stop = text.find(last, at) + len(last) if last else 0
        try:
            obj, at = orjson.loads(text[at:stop]), stop
        except orjson.JSONDecodeError:
            last = ""  # trying it for each item might take forever
            obj, at = decoder.raw_decode(text, at)
        yield _of_list(obj, kind, version)
        at = _after(_BETWEEN, text, at)
        if at >= len(text):
            raise json.JSONDecodeError("the list does not end", text, at)
    end = _LIST_END.match(text, at)
    return end.end() if end else len(text)


def _yaml(document: str, repetitions: Repetitions) -> Iterator[Any]:
    document = without_unused(document)
    # Reading the events takes as long as reading the values, and few files need it.
    if ("&" in document and "*" in document) or _may_be_deep(document):
        repetitions.check(document)
    head = _YAML_LIST.search(document)
    if head is None or _ALIAS.search(document):
        yield yaml.load(document, _Loader)  # noqa: S506  # a subclass of the safe loader
        return
    starts = [match.start() for match in _YAML_ITEM.finditer(document, head.end())]
    after = re.compile(r"^[^\s#-]", re.MULTILINE).search(document, starts[-1])
    end = after.start() if after else len(document)
    around = document[: head.start()] + document[end:]
    kind, version = _YAML_KIND.search(around), _YAML_VERSION.search(around)
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        (obj,) = yaml.load(document[start:stop], _Loader)  # noqa: S506
        yield _of_list(obj, kind, version)


def _of_list(obj: Any, kind: re.Match[str] | None, version: re.Match[str] | None) -> Any:
    """Return an item with the kind that its List names."""
    if isinstance(obj, dict) and "kind" not in obj and kind is not None:
        obj["kind"] = kind[1]
        obj.setdefault("apiVersion", version[1] if version else "v1")
    return obj


def _may_be_deep(document: str) -> bool:
    brackets = document.count("[") + document.count("{")
    return brackets > _DEEPEST or _DEEP.search(document) is not None


def without_unused(document: str) -> str:
    """Remove the lines of values that no world has: parsing them takes minutes."""
    kept: list[str] = []
    at = 0
    uses_mounts = "bindMountOptions" in document
    for match in _UNUSED.finditer(document):
        if match.start() < at or (match[3] and uses_mounts):
            continue
        indent, first = len(match[1]), match[2] is not None
        end = _end_of_block(document, match.end(), indent + 2 * first)
        if document.find(_NAMES_OF_SCHEDULER, match.end(), end) >= 0:
            continue
        # The first key of an item stays, because its dash begins the item.
        kept.append(document[at : match.end() if first else match.start()])
        at = end
        if not first and _shows_that_a_node_is_named(document, match, at):
            kept.append(f"{match[1]}managedFields: {NAMES_ITS_NODE}\n")
    kept.append(document[at:])
    return "".join(kept)


def _shows_that_a_node_is_named(document: str, key: re.Match[str], end: int) -> bool:
    """Return whether a block that ends at `end` has what `names_its_node` looks for."""
    if document.find("f:nodeName:", key.end(), end) < 0:
        return False  # almost all of them, and parsing takes long
    block = yaml.load(document[key.start() : end], _Loader)  # noqa: S506
    return isinstance(block, dict) and names_its_node(block)


def _end_of_block(document: str, at: int, indent: int) -> int:
    """Return the first line that is not part of the value of a key with this indentation."""
    deeper, dash = " " * (indent + 1), " " * indent + "- "
    while at < len(document):
        # Texts of several lines have empty ones.
        if not document.startswith((deeper, dash, "\n"), at):
            return at
        end = document.find("\n", at)
        at = len(document) if end < 0 else end + 1
    return at
