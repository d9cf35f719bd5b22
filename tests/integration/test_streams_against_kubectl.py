"""Streams of documents are read as kubectl reads them, by `validate` and by `--from-files`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.base.source.reader import read
from kube_scheduler_operator.simulate.kinds import NODES
from kube_scheduler_operator.simulate.read_files import WorldFileError, read_files

pytestmark = pytest.mark.presubmit

_JSON = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "json"}}'
_YAML = "apiVersion: v1\nkind: Node\nmetadata: {name: yaml}\n"
_FLOW = "{apiVersion: v1, kind: Node, metadata: {name: flow}}"
STREAMS = {
    "JSON": f"{_JSON}\n{_JSON}",
    "JSON and separators": f"{_JSON}\n---\n---\n{_JSON}\n---\n",
    "JSON, YAML, JSON": f"{_JSON}\n---\n{_YAML}---\n{_JSON}\n",
    "YAML, JSON": f"{_YAML}---\n{_JSON}",
    "JSON, YAML in braces": f"{_JSON}\n---\n{_FLOW}\n---\n{_YAML}",
    "YAML in braces, JSON": f"{_FLOW}\n---\n{_JSON}",
    "comments": f"{_JSON}\n# a\n--- # b\n# c\n{_YAML}--- # d\n",
    "line breaks of Windows": f"{_JSON}\r\n---\r\n{_YAML}---\r\n{_YAML}",
    "separator at the end": f"{_JSON}\n---\n{_YAML}---",
    "comma between JSON": f"{_JSON},\n{_JSON}",
    "text after JSON": f"{_JSON}\n--- x\n{_JSON}",
    "an indented separator": f"{_JSON}\n  ---\n{_JSON[:-1]}",
}


def _by_kubectl(file: Path) -> set[str] | None:
    """Return the names of the objects; None if it refuses the file."""
    kubectl = binaries.provide(["kubectl"], releases.choose())["kubectl"]
    command = [str(kubectl), "annotate", "--local", f"--filename={file}", "--output=name", "a=b"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return {line.partition("/")[2] for line in done.stdout.split()} if not done.returncode else None


def _from_files(file: Path) -> set[str] | None:
    try:
        return {node["metadata"]["name"] for node in read_files([file]).world.all(NODES)}
    except WorldFileError:
        return None


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_stream_has_the_objects_that_kubectl_reads(stream: str, tmp_path: Path) -> None:
    file = tmp_path / "stream"
    file.write_text(stream)
    documents, error = read(stream.encode())
    names = {document.value["metadata"]["name"] for document in documents} if not error else None
    assert _from_files(file) == names == _by_kubectl(file)
