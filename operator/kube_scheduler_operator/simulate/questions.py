"""The questions that a simulation answers, and their form between processes.

A question is a coroutine function with the parameters `world` and `options` and further ones of its
own; their annotations, and that of the result, define its JSON. All of them raise SimulationError
if kube-scheduler could not be run. A request is compressed lines of JSON: the question first, then
one object of the world in each line, as the world has them.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from .. import __version__
from ..base.decoding import FirstProblem, decode
from ..base.field_types import PYTHON, hints_of, type_of
from ..base.json_text import parse_json
from ..base.limits import ANSWER, DOCUMENT, Size
from .edit_effect import edit_effect
from .kinds import BY_KIND, PODS
from .pending import waiting_groups
from .placements import eligible_nodes, placements
from .process import PROGRAM, Binary, SimulationError
from .run_options import RunOptions
from .upgrade_check import check_upgrade
from .why import explain
from .why_group import explain_group
from .world import Entry, World, may_leave_room

T = TypeVar("T")
Question = Callable[..., Awaitable[T]]

QUESTIONS: Final[Mapping[str, Question[Any]]] = {
    question.__name__: question
    for question in (
        explain,
        explain_group,
        waiting_groups,
        placements,
        eligible_nodes,
        edit_effect,
        check_upgrade,
    )
}
"""All that can be asked of another process, by name."""

NO_BINARY: Final = Path(PROGRAM)
"""`RunOptions.binary` where another process has the program."""

_CHUNK: Final = 2**16
_GZIP: Final = 16 + zlib.MAX_WBITS
_FASTEST: Final = 1
_LARGEST_LINE: Final = 16 * 2**20
_LARGEST_WORLD: Final = 2**30
"""Bytes of all lines; 5,000 nodes and 30,000 Pods have 26 MB."""

HEAD: Final = Size(_LARGEST_LINE, 1_000_000)
"""The question, with configurations and extenders."""

_GIVEN: Final = frozenset({"world", "options", "return"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as another process gets it."""

    question: Question[Any]
    arguments: Mapping[str, Any]
    world: World
    options: RunOptions  # how to run kube-scheduler, without the program

    async def answer(self, binary: Binary) -> bytes:
        """Return the answer as JSON.

        Raises:
            SimulationError: kube-scheduler could not be run.
        """
        options = replace(self.options, binary=binary)
        answer = await self.question(world=self.world, options=options, **self.arguments)
        return to_json(answer)


def request(
    question: Question[Any], world: World, options: RunOptions, arguments: Mapping[str, Any]
) -> bytes:
    """Return a question in bytes, compressed."""
    head = {
        "version": __version__,
        "question": question.__name__,
        "arguments": arguments,
        "options": {
            field.name: getattr(options, field.name)
            for field in fields(options)
            if field.name != "binary"
        },
        "world": {
            "notes": world.notes,
            "annotations": world.annotations,
            "version": world.version,
            "groups": world.groups,
        },
    }
    compressor = zlib.compressobj(_FASTEST, zlib.DEFLATED, _GZIP)
    parts = [compressor.compress(to_json(head))]
    for entries in world.objects.values():
        parts += [compressor.compress(b"\n" + entry.content) for entry in entries.values()]
    return b"".join((*parts, compressor.flush()))


def read_request(chunks: Iterable[bytes]) -> Asked:
    """Return the question in a request.

    Raises:
        ValueError: it is damaged, or of another version; the message states the difference.
    """
    lines = _lines(chunks)
    head = parse_json(next(lines, b""), HEAD, orjson.loads)
    name, version = str(head.get("question")), str(head.get("version"))
    question = QUESTIONS.get(name)
    try:
        if question is None:
            raise ValueError(f"the question {name!r} is unknown")
        hints = hints_of(question)
        arguments = {}
        for key, value in head["arguments"].items():
            if key in _GIVEN or key not in hints:
                raise ValueError(f"the question {name!r} has no argument {key!r}")
            arguments[key] = _typed(hints[key], value, key)
        of_options = hints_of(RunOptions)
        options = RunOptions(
            NO_BINARY,
            **{
                key: _typed(of_options[key], value, "options", key)
                for key, value in head["options"].items()
            },
        )
    except (KeyError, TypeError, ValueError) as error:
        if version != __version__:
            raise ValueError(
                f"the operator's image is version {__version__} and the command is version "
                f"{version}: use the same version of both ({error})"
            ) from None
        raise ValueError(str(error)) from None
    world = World(**head["world"])
    for line in lines:
        obj = parse_json(line, DOCUMENT, orjson.loads)
        resource = BY_KIND[obj["apiVersion"], obj["kind"]].resource
        metadata = obj["metadata"]
        node = obj["spec"].get("nodeName") or "" if resource is PODS else ""
        key = (metadata.get("namespace", ""), metadata["name"])
        may_leave = resource is PODS and may_leave_room(obj)
        world.objects[resource][key] = Entry(line, node, may_leave)
    return Asked(question, arguments, world, options)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of compressed chunks."""
    decompressor = zlib.decompressobj(_GZIP)
    rest, size = b"", 0
    try:
        for chunk in chunks:
            while chunk:
                data = decompressor.decompress(chunk, _CHUNK)
                size += len(data)
                if size > _LARGEST_WORLD:
                    raise ValueError(f"the request has more than {_LARGEST_WORLD} bytes")
                *lines, rest = (rest + data).split(b"\n")
                chunk = decompressor.unconsumed_tail
                yield from lines
                if len(rest) > _LARGEST_LINE:
                    raise ValueError("the request has a line that is too long")
        rest += decompressor.flush()
    except zlib.error as error:
        raise ValueError(f"the request is damaged: {error}") from None
    if not decompressor.eof:
        raise ValueError("the request is not complete")
    yield from rest.split(b"\n")


def read_answer(question: Question[T], content: bytes) -> T:
    """Return the answer of another process.

    Raises:
        SimulationError: it could not answer, or its answer is not the question's type.
    """
    try:
        parsed = parse_json(content, ANSWER, orjson.loads)
        if not isinstance(parsed, dict) or not parsed.keys() & {"answer", "error"}:
            raise ValueError("there is neither an answer nor an error")
        if "error" in parsed:
            raise SimulationError(str(parsed["error"]))
        answer: T = _typed(hints_of(question)["return"], parsed["answer"], "answer")
    except ValueError as error:
        raise SimulationError(
            f"the answer cannot be read: {error}; the operator's image may be of another version "
            f"than this command, {__version__}"
        ) from None
    return answer


def _typed(hint: Any, value: Any, *path: str) -> Any:
    """Return a value of the annotated type.

    Raises:
        ValueError: the other process may be of another version, and wrote something else.
    """
    return decode(type_of(hint, PYTHON), value, path, FirstProblem())


def to_json(value: Any) -> bytes:
    """Convert dataclasses, mappings, sequences, sets and plain values to JSON.

    Raises:
        TypeError: it contains something else.
    """
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
