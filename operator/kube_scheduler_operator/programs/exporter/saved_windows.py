"""What the exporter knows of the past, on disk: a restart must not cost the maxima of a day.

The times in the file are of the clock that goes on while the machine sleeps (CLOCK_BOOTTIME). After
a reboot that clock begins anew: then the wall clock says how old the file is.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base.files import Disk, File, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VERSION: Final = 1
SIZE_LIMIT: Final = 4 * 2**20
"""No state of ours is so large, bytes; it is some 60 KiB."""

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_time() -> float:
    """Seconds since the machine was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Which start of the machine this is, "" if that is not known."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


class StateError(Exception):
    """There is a file, and it is of no use; the text says why."""


@dataclass(frozen=True, slots=True)
class StateFile:
    """The file.

    Args:
        path: its name; the directory must exist.
        clock: seconds since the start of the machine.
        wall: seconds since 1970.
        boot: which start of the machine this is.
        disk: what writes.
    """

    path: Path
    clock: Callable[[], float] = boot_time
    wall: Callable[[], float] = time.time
    boot: str = ""
    disk: Disk = Disk()  # noqa: RUF009 - it has no state

    def save(self, content: Mapping[str, Any]) -> None:
        """Replace the file. Raises OSError; then the old one is still there."""
        document = {
            "version": VERSION,
            "boot": self.boot,
            "clock": self.clock(),
            "wall": self.wall(),
            "content": content,
        }
        data = json.dumps(document, separators=(",", ":")).encode()
        scratch = self.path.with_name(self.path.name + ".new")
        replace_file(self.disk, self.path, File(data), scratch)

    def load(self) -> tuple[Mapping[str, Any], float] | None:
        """The content and what must be added to its times to have them on our clock.

        Returns:
            None if there is no file.

        Raises:
            StateError: there is one, and it is of no use.
        """
        try:
            with self.path.open("rb") as file:
                data = file.read(SIZE_LIMIT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(error.strerror or str(error)) from error
        if len(data) > SIZE_LIMIT:
            raise StateError(f"it is larger than {SIZE_LIMIT} bytes")
        try:
            document = json.loads(data)
            if document["version"] != VERSION:
                raise StateError(f"it is of version {document['version']}, not {VERSION}")
            written, content = float(document["clock"]), document["content"]
            if self.boot and document["boot"] == self.boot:
                return content, 0.0
            age = max(self.wall() - float(document["wall"]), 0.0)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StateError(f"it is not what was written ({type(error).__name__})") from error
        return content, self.clock() - age - written
