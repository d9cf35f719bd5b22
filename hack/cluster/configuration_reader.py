"""kube-scheduler of a release as a program that reads many configurations, 2 ms each."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cluster import binaries, releases


@dataclass(frozen=True)
class ConfigurationReader:
    """A kube-scheduler that starts once for each file, in one process."""

    minor: int  # its minor version
    requests: IO[str]  # names of files
    answers: IO[str]  # a line of JSON for each
    file: Path  # the file that it reads

    def read(self, content: bytes) -> tuple[str, str]:
        """(the completed configuration as text; the error); one of them is empty."""
        self.file.write_bytes(content)
        self.requests.write(f"{self.file}\n")
        self.requests.flush()
        answer = json.loads(self.answers.readline())
        return ("" if answer["error"] else answer["completed"]), answer["error"]


@contextlib.contextmanager
def configuration_reader(version: str) -> Iterator[ConfigurationReader]:
    """The reader of a pinned release; the first use builds it."""
    program = binaries.provide_configuration_reader(version)
    environment = {**os.environ, "GOMAXPROCS": "1"}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        path = Path(folder, "config")
        yield ConfigurationReader(releases.minor(version), process.stdin, process.stdout, path)
        process.stdin.close()
