"""Revision numbers as texts and JSON have them, with bounds.

A number that a label, a name or a message claims is read with `revision_number`, which never
raises. Whether a plausible number counts is decided in controlplane/revision/proof.py.
"""

from __future__ import annotations

import re
from typing import Final

LARGEST: Final = 1_000_000_000
"""The largest revision number: far below the API's int32, and more than any cluster needs."""

LARGEST_JUMP: Final = 1_000
"""How far a number on a node's disk may be above the API's newest one.

A backup of etcd is older by that many revisions at most. A larger jump is reported instead.
"""

_DIGITS: Final = re.compile(r"[1-9][0-9]{0,9}")


def revision_number(value: object) -> int:
    """The revision number in a text or in JSON; 0 without one, or if it is implausible."""
    if isinstance(value, str):
        number = int(value) if _DIGITS.fullmatch(value) else 0
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return 0
    return number if 0 < number <= LARGEST else 0
