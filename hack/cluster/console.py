"""Output of the sandbox: progress on standard error, and errors with their remedy."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

EXISTING_CLUSTER = (
    "Or use a cluster that you have: kube-scheduler-operator operator --kubeconfig FILE"
)

_lock = threading.Lock()


class SandboxError(Exception):
    """The sandbox cannot continue; the message has the cause and the remedy."""


class CommandError(SandboxError):
    """A program that the sandbox started failed."""


def say(text: str) -> None:
    """Print one whole line to standard error, also when several threads speak."""
    with _lock:
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Print a line with the time that the block took, once it has succeeded."""
    start = time.monotonic()
    yield
    say(f"  {title:<58} {time.monotonic() - start:5.1f} s")


def run(
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float | None = 120,
) -> str:
    """Run a program to its end and return its standard output.

    Raises:
        CommandError: It is not installed, failed (with the end of its output) or took too long.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            check=True,
            capture_output=True,
            text=True,
            env=None if env is None else dict(env),
            cwd=cwd,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            timeout=timeout,
        )
    except FileNotFoundError as error:
        raise CommandError(f"{words[0]} is not installed; run: hack/sandbox setup") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{_short(words)} did not finish within {timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        output = (error.stderr or error.stdout or "").strip()[-2000:]
        raise CommandError(f"{_short(words)} failed ({error.returncode}): {output}") from error
    return done.stdout


def succeeds(*command: str | Path) -> bool:
    """Run a program for its exit status alone."""
    try:
        run(*command)
    except CommandError:
        return False
    return True


def _short(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 160 else f"{text[:157]}..."
