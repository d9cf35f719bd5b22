"""Exit codes of the programs on a node, which the operator reads from Pod statuses."""

from __future__ import annotations

import signal
from typing import Final

EXIT_DEFINITIVE: Final = 0
EXIT_RETRY: Final = 1
EXIT_TERMINATED: Final = 128 + signal.SIGTERM
EXIT_CHANGED: Final = 3
"""Exit code of a guard whose termination message is a new fingerprint."""
