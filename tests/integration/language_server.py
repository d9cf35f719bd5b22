"""A client of yaml-language-server: messages of the Language Server Protocol over its streams."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster import npm_packages

SECONDS = 300
"""How long a server may run, for all tests of a file."""


@dataclass
class LanguageServer:
    """A running language server, with one open file."""

    process: subprocess.Popen[bytes]  # the server
    settings: dict[str, Any]  # the section `yaml` of its settings
    # what it has sent without being asked
    notifications: list[dict[str, Any]] = field(default_factory=list)
    _last_id: int = 0

    def request(self, method: str, parameters: Any) -> Any:
        """Send a request and return its result."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == self._last_id and "method" not in message:
                assert "error" not in message, message
                return message.get("result")

    def notify(self, method: str, parameters: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": parameters})

    def open(self, file: Path) -> str:
        """Open a file and return its URI."""
        document = {"uri": file.as_uri(), "languageId": "yaml", "version": 1}
        content = {**document, "text": file.read_text()}
        self.notify("textDocument/didOpen", {"textDocument": content})
        return file.as_uri()

    def completions(self, uri: str, line: int, column: int) -> dict[str, Any]:
        """What is offered at a position from 0, by its label."""
        position = {"line": line, "character": column}
        result = self.request(
            "textDocument/completion", {"textDocument": {"uri": uri}, "position": position}
        )
        return {each["label"]: each for each in result["items"]}

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        """The first diagnostics that the server publishes for a file."""
        while True:
            for each in self.notifications:
                parameters = each.get("params", {})
                if each["method"].endswith("publishDiagnostics") and parameters["uri"] == uri:
                    found: list[dict[str, Any]] = parameters["diagnostics"]
                    return found
            self._receive()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        """The next message; the server's own requests are answered."""
        output = self.process.stdout
        assert output is not None
        length = 0
        while (line := output.readline().strip()) or not length:
            assert line or self.process.poll() is None, "the language server has ended"
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(output.read(length))
        if "method" in message and "id" in message:
            asked = message.get("params") or {}
            sections = [each.get("section") for each in asked.get("items", ())]
            result = [self.settings if each == "yaml" else {} for each in sections] or None
            self._send({"id": message["id"], "result": result})
        elif "method" in message:
            self.notifications.append(message)
        return message


@contextmanager
def language_server(folder: Path, **settings: Any) -> Iterator[LanguageServer]:
    """A language server for the files in a folder; it fetches nothing from a schema store."""
    program = npm_packages.provide() / "yaml-language-server" / "bin" / "yaml-language-server"
    command = ["node", str(program), "--stdio"]
    own = {"schemaStore": {"enable": False}, "validate": True, "completion": True, **settings}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        server = LanguageServer(process, own)
        # Reads have no time-out of their own.
        limit = threading.Timer(SECONDS, process.kill)
        limit.start()
        try:
            capabilities = {"workspace": {"configuration": True}}
            server.request(
                "initialize",
                {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities},
            )
            server.notify("initialized", {})
            server.notify("workspace/didChangeConfiguration", {"settings": {"yaml": own}})
            yield server
        finally:
            limit.cancel()
            process.kill()
