"""All files of a release, built twice from this checkout, and the programs that use them.

The first time, a registry, Helm, cosign and actionlint are built from Go modules, and packages are
downloaded: minutes.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster import go_programs
from releasing import source
from releasing.cli import build_parts
from releasing.source import Source

REPOSITORY = Path(__file__).resolve().parents[2]
_REGISTRY = "github.com/distribution/distribution/v3/cmd/registry"
_CONFIGURATION = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "{address}"}}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(3600))


@pytest.fixture(scope="session")
def origin() -> Source:
    """This checkout as a release."""
    return source.discover("", dirty=True)


@pytest.fixture(scope="session")
def dist(origin: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the release."""
    folder = tmp_path_factory.mktemp("dist")
    build_parts(origin, folder)
    return folder


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of an empty registry."""
    program = go_programs.provide("registry", "use a registry of your own", _REGISTRY)
    folder = tmp_path_factory.mktemp("registry")
    address = f"127.0.0.1:{_free_port()}"
    file = folder / "config.yml"
    file.write_text(_CONFIGURATION.format(folder=folder / "blobs", address=address))
    with _running([str(program), "serve", str(file)], folder / "log", address):
        yield address


@contextmanager
def _running(command: list[str], log: Path, address: str) -> Iterator[None]:
    host, _, port = address.partition(":")
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and process.poll() is None:
                try:
                    socket.create_connection((host, int(port)), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                pytest.fail(f"{command[0]} does not listen at {address}: {log.read_text()}")
            yield
        finally:
            process.terminate()
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="session")
def actionlint() -> Path:
    package = "github.com/rhysd/actionlint/cmd/actionlint"
    return go_programs.provide("actionlint", "check the workflow on a forge", package)


@pytest.fixture(scope="session")
def cosign() -> Path:
    package = "github.com/sigstore/cosign/v3/cmd/cosign"
    return go_programs.provide("cosign", "sign with a cosign that you have", package)
