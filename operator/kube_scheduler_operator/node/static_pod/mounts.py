"""Whether the mounts of this container still show what the node has at their paths.

A mount keeps the file or directory that it was made for. One that was replaced on the node, as `mv`
and `sed -i` replace files, shows in a new mount only, which the container gets when it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

TABLE: Final = Path("/proc/self/mountinfo")


def sources(paths: Iterable[Path], table: Path = TABLE) -> Mapping[str, str]:
    """Return the current path, in its file system, of what is mounted at each of `paths`.

    The kernel follows a rename, and marks what was removed or replaced (`//deleted`). Paths at
    which nothing is mounted are left out.
    """
    points = {str(path) for path in paths}
    fields = (line.split(" ", 5) for line in table.read_text().splitlines())
    return {point: source for _, _, _, source, point, *_ in fields if point in points}
