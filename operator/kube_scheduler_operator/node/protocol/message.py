"""The messages and exit codes of programs on a node. A message is JSON on one line.

It is the termination message of a container, which the operator reads from the Pod's status,
and the file outcome.json, which later installers read. Operator and programs on nodes may have
different versions while the operator is upgraded or downgraded, so:

* Fields are only added. A field is never removed or renamed, and its meaning stays.
* A reader ignores unknown fields; an added field has a default, with which messages without it are
  read.
* A change of the fields, outcomes or exit codes has a number of its own, and recorded messages in
  tests/unit/node/protocol/.

Versions:

1. result: `result`, `revision`, `node`, `lastGoodRevision`, `retry`, `reason`, `lastWords`, `steps`
2. result: `strangers`; outcomes `Restored` and `Kept`
3. result: `kubeconfig`. Guards, with the fingerprint as their message, and exit code 3
4. result: `newest`, `restarted`. The message of a guard is a report
5. both: `boot`, `uptime`
6. both: `image`, `work`; result: `apiServer`; report: `api_server`; outcome `Overtaken`
7. both: `protocol`, the number of the version
8. report: `missing`
"""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

VERSION: Final = 8

LIMIT: Final = 4096
"""Bytes of a termination message that the kubelet keeps."""

EXIT_DEFINITIVE: Final = 0
"""The termination message is a result, or the report of a guard with `--look`."""

EXIT_RETRY: Final = 1
"""The termination message is an error; the kubelet starts the program again."""

EXIT_CHANGED: Final = 3
"""The termination message of this guard is a report of a changed disk."""

EXIT_TERMINATED: Final = 128 + signal.SIGTERM

_LONGEST_BOOT: Final = 64


def serialise(fields: Mapping[str, Any]) -> str:
    document = {**fields, "protocol": VERSION}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class BootTime:
    """When a program on a node read its disk, by the kernel's clock, which cannot be set.

    A node's wall clock may jump, so it cannot order the reports of its programs.
    """

    # the kernel's identifier of the boot, which the Node has in `nodeInfo.bootID`; empty if unknown
    boot: str = ""
    seconds: float = 0.0  # seconds since that boot

    def fields(self) -> dict[str, Any]:
        return {"boot": self.boot, "uptime": round(self.seconds, 3)}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> BootTime:
        """Read the fields of a report; unknown in that of an older program, or if invalid."""
        boot, seconds = document.get("boot"), document.get("uptime")
        if not isinstance(boot, str) or not 0 < len(boot) <= _LONGEST_BOOT:
            return cls()
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            return cls()
        return cls(boot, float(seconds)) if 0 <= seconds < math.inf else cls()


UNKNOWN: Final = BootTime()
