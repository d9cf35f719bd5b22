"""What the clusters of a run asked for and left behind, also where several processes shared tests.

Each process writes down what it has seen in the folder KSO_LEDGER, and the last tests read it all.
"""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from cluster import teardown

from .audit import Record
from .remains import Search


@dataclass
class Ledger:
    """The sum of several clusters.

    Attributes:
        audit: what was asked of their APIs.
        search: what they let out.
        files: of the tests that ran.
    """

    audit: Record = field(default_factory=Record)
    search: Search = field(default_factory=Search)
    files: set[str] = field(default_factory=set)

    def close(self, name: str) -> None:
        """Take a cluster down, if it is there, but for what there is to know of it."""
        with ExitStack() as after:
            after.callback(teardown.down, name)
            after.callback(self.search.add, name)
            self.audit.add(name)

    def save(self, file: Path) -> None:
        """Write it down for `take`."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(self))

    def take(self, file: Path) -> None:
        """Add what another process has written down."""
        other: Ledger = pickle.loads(file.read_bytes())
        self.audit.merge(other.audit)
        self.search.merge(other.search)
        self.files |= other.files
