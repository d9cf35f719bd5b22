"""The readers of each earlier version of the protocol, as that version had them.

An operator of that version reads a newer message so, after a downgrade of the operator and while
two operators change places; an installer of that version reads outcome.json so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kube_scheduler_operator.base.revision_number import revision_number
from kube_scheduler_operator.node.protocol.message import BootTime

Reader = Callable[[str], dict[str, Any]]

_OUTCOMES_1 = ("Installed", "RolledBack", "Unhealthy", "Superseded")
_OUTCOMES_2 = (*_OUTCOMES_1, "Restored", "Kept")
_OUTCOMES_6 = (*_OUTCOMES_2, "Overtaken")


def _outcome(name: str, outcomes: tuple[str, ...]) -> str:
    if name not in outcomes:
        raise ValueError(name)
    return name


def result_1(text: str, outcomes: tuple[str, ...] = _OUTCOMES_1) -> dict[str, Any]:
    document = json.loads(text)
    return {
        "result": _outcome(document["result"], outcomes),
        "revision": int(document["revision"]),
        "node": str(document["node"]),
        "last_good_revision": int(document["lastGoodRevision"]),
        "retry": int(document.get("retry", 0)),
        "reason": str(document.get("reason", "")),
        "last_error": str(document.get("lastWords", "")),
        "steps": {str(k): float(v) for k, v in dict(document.get("steps") or {}).items()},
    }


def result_2(text: str, outcomes: tuple[str, ...] = _OUTCOMES_2) -> dict[str, Any]:
    strangers = json.loads(text).get("strangers") or ()
    return {**result_1(text, outcomes), "strangers": tuple(str(name) for name in strangers)}


def result_3(text: str, outcomes: tuple[str, ...] = _OUTCOMES_2) -> dict[str, Any]:
    kubeconfig = str(json.loads(text).get("kubeconfig", ""))
    return {**result_2(text, outcomes), "kubeconfig": kubeconfig}


def result_4(text: str, outcomes: tuple[str, ...] = _OUTCOMES_2) -> dict[str, Any]:
    document = json.loads(text)
    return {
        **result_3(text, outcomes),
        "newest": revision_number(document.get("newest", 0)),
        "restarted": document.get("restarted") is not False,
    }


def result_5(text: str, outcomes: tuple[str, ...] = _OUTCOMES_2) -> dict[str, Any]:
    return {**result_4(text, outcomes), "read": BootTime.parse(json.loads(text))}


def result_6(text: str) -> dict[str, Any]:
    document = json.loads(text)
    return {
        **result_5(text, _OUTCOMES_6),
        "image": str(document.get("image", "")),
        "api_server": str(document.get("apiServer", "")),
        "work": str(document.get("work", "")),
    }


def report_4(text: str) -> dict[str, Any]:
    document = json.loads(text)
    return {
        "revision": revision_number(document["revision"]),
        "content": str(document["content"]),
        "newest": revision_number(document["newest"]),
        "kubeconfig": str(document["kubeconfig"]),
        "edits": tuple(str(path) for path in list(document["edits"])[:20]),
        "edit": str(document["edit"]),
        "labelled": revision_number(document["labelled"]),
    }


def report_5(text: str) -> dict[str, Any]:
    return {**report_4(text), "read": BootTime.parse(json.loads(text))}


def report_6(text: str) -> dict[str, Any]:
    document = json.loads(text)
    return {
        **report_5(text),
        "image": str(document.get("image", "")),
        "api_server": str(document.get("api_server", "")),
        "work": str(document.get("work", "")),
    }


OUTCOMES: dict[int, tuple[str, ...]] = {
    1: _OUTCOMES_1,
    **dict.fromkeys((2, 3, 4, 5), _OUTCOMES_2),
    **dict.fromkeys((6, 7), _OUTCOMES_6),
}
RESULTS: dict[int, Reader] = {
    1: result_1,
    2: result_2,
    3: result_3,
    4: result_4,
    5: result_5,
    6: result_6,
    7: result_6,
}
REPORTS: dict[int, Reader] = {4: report_4, 5: report_5, 6: report_6, 7: report_6}
