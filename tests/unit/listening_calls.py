"""Where a package opens ports: calls that listen, and classes of which an instance does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CALLS: Final = {
    "HTTPServer", "NamedPipeSite", "SockSite", "TCPServer", "TCPSite", "ThreadingHTTPServer",
    "ThreadingTCPServer", "UDPServer", "UnixSite", "UnixStreamServer", "WSGIServer",
    "WebSocketServer", "bind", "create_datagram_endpoint", "create_server", "create_unix_server",
    "listen", "make_server", "run_app", "serve_forever", "start_http_server", "start_server",
    "start_unix_server", "start_wsgi_server",
}  # fmt: skip
"""Functions, methods and classes that listen or prepare to, of any library."""

Site = tuple[str, str]
"""A file, and the function in it."""


@dataclass
class _Class:
    """What is known of a class, or of the functions of a module that are in none."""

    bases: set[str] = field(default_factory=set)
    # function -> the names that it calls
    calls: dict[str, set[str]] = field(default_factory=dict)


def listening(package: Path) -> Iterator[Site]:
    """The functions that listen, or make an instance of a class that does.

    A class does if it calls one of CALLS, or derives from such a class; in the folder `serving`,
    also if it makes an instance of one.
    """
    texts = {
        path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")
    }
    classes: dict[tuple[str, str], _Class] = {}
    known: set[str] = set()
    more = CALLS
    while more:
        known |= more
        words = re.compile(rf"\b(?:{'|'.join(sorted(more))})\b")
        for file in [file for file, text in texts.items() if words.search(text)]:
            _read(ast.parse(texts.pop(file)), file, "", "", classes)
        more = set(_servers(classes, known)) - known
    for (file, _), content in classes.items():
        for function, calls in content.calls.items():
            if calls & known:
                yield file, function


def _servers(classes: dict[tuple[str, str], _Class], known: set[str]) -> Iterator[str]:
    """The names of the classes that listen."""
    for (file, name), content in classes.items():
        calls = set[str]().union(*content.calls.values())
        made = known if file.startswith("serving/") else CALLS
        if name and (content.bases & known or calls & made):
            yield name


def _read(
    node: ast.AST, file: str, owner: str, function: str, classes: dict[tuple[str, str], _Class]
) -> None:
    if isinstance(node, ast.ClassDef):
        owner = function = node.name
        bases = {name for base in node.bases if (name := _name(base))}
        classes.setdefault((file, owner), _Class()).bases |= bases
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = f"{function}.{node.name}".lstrip(".")
    elif isinstance(node, ast.Call) and (name := _name(node.func)):
        known = classes.setdefault((file, owner), _Class())
        known.calls.setdefault(function, set()).add(name)
    for child in ast.iter_child_nodes(node):
        _read(child, file, owner, function, classes)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
