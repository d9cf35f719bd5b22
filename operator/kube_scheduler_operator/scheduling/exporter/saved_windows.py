"""Saves the exporter's windows to disk, so that a restart does not lose the maxima of a day.

Times in the file are on CLOCK_BOOTTIME, which continues during suspend. After a reboot it starts at
0 again, and the wall clock gives the age of the file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.files import Disk, File, replace_file

VERSION: Final = 1
SIZE_LIMIT: Final = 4 * 2**20
"""Maximum size of a state file in bytes; a valid one has about 60 KiB."""

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_time() -> float:
    """Return the seconds since boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Return the identifier of the current boot; "" if unknown."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


class StateError(Exception):
    """The state file is unusable; the text has the reason."""


@dataclass(frozen=True, slots=True)
class StateFile:
    path: Path  # its directory must exist
    clock: Callable[[], float] = boot_time  # seconds since boot
    wall: Callable[[], float] = time.time  # seconds since 1970
    boot: str = ""
    disk: Disk = Disk()  # noqa: RUF009 - it has no state

    def save(self, content: Mapping[str, Any]) -> None:
        """Replace the file. Raises OSError; then the old file stays."""
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
        """Return the content, and the offset from its times to the current clock; None: no file.

        Raises StateError.
        """
        try:
            with self.path.open("rb") as file:
                data = file.read(SIZE_LIMIT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(error.strerror or str(error)) from error
        if len(data) > SIZE_LIMIT:
            raise StateError(f"larger than {SIZE_LIMIT} bytes")
        try:
            document = json.loads(data)
            if document["version"] != VERSION:
                raise StateError(f"version {document['version']} instead of {VERSION}")
            written, content = float(document["clock"]), document["content"]
            if self.boot and document["boot"] == self.boot:
                return content, 0.0
            age = max(self.wall() - float(document["wall"]), 0.0)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StateError(f"invalid content ({type(error).__name__})") from error
        return content, self.clock() - age - written
