"""Revision numbers in text and JSON, with bounds.

operator/controlplane/revision/proof.py decides whether a plausible number counts.
"""

from __future__ import annotations

import re
from typing import Final

LARGEST: Final = 1_000_000_000
"""Far below the API's int32, and more than any cluster needs."""

LARGEST_JUMP: Final = 1_000
"""How far a number on a node's disk may exceed the API's newest one, after etcd was restored.

A larger jump is reported instead.
"""

_DIGITS: Final = re.compile(r"[1-9][0-9]{0,9}")


def revision_number(value: object) -> int:
    """Read a revision number from a label, a name or JSON; 0 if it is missing or implausible."""
    if isinstance(value, str):
        number = int(value) if _DIGITS.fullmatch(value) else 0
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return 0
    return number if 0 < number <= LARGEST else 0
