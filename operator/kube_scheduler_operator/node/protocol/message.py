"""The messages of programs on a node: JSON on one line, with the version of the protocol.

A message is the termination message of a container, which the operator reads from the Pod's status,
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
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

VERSION: Final = 7

LIMIT: Final = 4096
"""Bytes of a termination message that the kubelet keeps."""


def serialise(fields: Mapping[str, Any]) -> str:
    document = {**fields, "protocol": VERSION}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
