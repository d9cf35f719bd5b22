"""Requests and remains of all clusters of a run, also of tests in several processes.

Each process saves its part in the folder KSO_LEDGER; the audit tests read all parts.
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
    """The sum of several clusters."""

    audit: Record = field(default_factory=Record)  # requests to their APIs
    search: Search = field(default_factory=Search)  # secrets found outside their places
    files: set[str] = field(default_factory=set)  # of the tests that ran

    def close(self, name: str) -> None:
        """Take a cluster down, if it exists, and keep its audit and findings."""
        with ExitStack() as after:
            after.callback(teardown.down, name)
            after.callback(self.search.add, name)
            self.audit.add(name)

    def save(self, file: Path) -> None:
        """Save it for `take`."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(self))

    def take(self, file: Path) -> None:
        """Add what another process saved."""
        other: Ledger = pickle.loads(file.read_bytes())
        self.audit.merge(other.audit)
        self.search.merge(other.search)
        self.files |= other.files
