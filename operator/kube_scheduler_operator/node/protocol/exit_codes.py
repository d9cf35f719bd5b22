"""Exit codes of the programs on a node, which the operator reads from Pod statuses."""

from __future__ import annotations

import signal
from typing import Final

EXIT_DEFINITIVE: Final = 0
"""The termination message is a result, or the report of a guard with `--look`."""

EXIT_RETRY: Final = 1
"""The termination message is an error; the kubelet starts the program again."""

EXIT_CHANGED: Final = 3
"""The termination message of this guard is a report of a changed disk."""

EXIT_TERMINATED: Final = 128 + signal.SIGTERM
