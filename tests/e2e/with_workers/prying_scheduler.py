#!/usr/bin/python3 -ISB
"""A kube-scheduler that looks around first: what it should not reach is written, and its end."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ALLOWED = (1, os.getpid())
"""The processes of its container: the one that started it, and itself."""
USER_OF_THE_SIMULATION = 65532


def main() -> None:
    """Look around, leave a process behind that the next one would find, and run kube-scheduler."""
    found = [*_processes(), *_files()]
    if "--version" not in sys.argv:  # it serves nothing while it waits for that
        found += _answers()
    if os.getuid() in (0, USER_OF_THE_SIMULATION) or os.getgid() in (0, USER_OF_THE_SIMULATION):
        found.append(f"the user is {os.getuid()}, the group {os.getgid()}")
    if found:
        text = f"reached: {'; '.join(found)}"
        print(text)  # the output of --version
        sys.exit(text)
    subprocess.Popen(
        ["/bin/sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=None
    )
    os.execv("/real/kube-scheduler", ["kube-scheduler", *sys.argv[1:]])


def _processes() -> list[str]:
    return [
        f"process {entry.name}: {(entry / 'cmdline').read_bytes()!r}"
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) not in ALLOWED
    ]


def _files() -> list[str]:
    """What has to do with the other container, and what can be written outside of its folder."""
    secret = (Path("/identity"), Path("/var/run/secrets"))
    found = [str(path) for path in secret if path.exists()]
    for path in map(Path, ("/launcher/launcher.py", "/launcher/new", "/new")):
        try:
            with path.open("a"):
                found.append(f"{path} can be written")
        except OSError:
            continue
    own = os.environ["HOME"]
    found += [f"{each} of another run" for each in Path("/tmp").iterdir() if str(each) != own]
    return found


def _answers() -> list[str]:
    """What the simulation answers without its key."""
    try:
        urllib.request.urlopen("http://127.0.0.1:8080/ask", data=b"x", timeout=10)
    except urllib.error.HTTPError as error:
        return [] if error.code == 401 else [f"/ask answers {error.code}"]
    except OSError as error:
        return [f"/ask: {error}"]
    return ["/ask answers"]


main()
