"""Refused requests of an audit log: without a right, or before the server had read its roles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ..e2e.audit import Right, decision, had_just_started, handed_out, is_granted, serving

ACCOUNT = "kube-scheduler-operator:kube-scheduler-operator"
RBAC = "rbac.authorization.k8s.io"
WATCH = Right(ACCOUNT, "", "config.openshift.io", "schedulers", "watch")
GET = Right(ACCOUNT, "kube-system", "", "configmaps", "get")
LOG = """\
I1122 13:08:40.000000   32701 server.go:150] Version: v1.35.4
I1122 13:08:42.877420   32701 secure_serving.go:211] Serving securely on 127.0.0.1:21000
I1122 13:09:29.306952     383 secure_serving.go:211] Serving securely on 127.0.0.1:21000
"""


def test_the_starts_of_a_server_are_read_from_its_log() -> None:
    year = datetime.now().year
    expected = [
        datetime(year, 11, 22, 13, 8, 42, 877420).astimezone(UTC),
        datetime(year, 11, 22, 13, 9, 29, 306952).astimezone(UTC),
    ]
    assert serving(LOG) == expected
    assert serving("") == []


@pytest.mark.parametrize(
    ("seconds", "excused"), [(-0.1, False), (0, True), (0.45, True), (5, True), (5.1, False)]
)
def test_only_a_server_that_has_just_started_is_excused(seconds: float, excused: bool) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    received = (start + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    event = {"requestReceivedTimestamp": received}
    assert had_just_started(event, [start - timedelta(hours=1), start]) is excused


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"annotations": {"authorization.k8s.io/decision": "forbid"}}, "forbid"),
        ({"annotations": {"authorization.k8s.io/decision": "allow"}}, "allow"),
        ({"annotations": {"apiserver.latency.k8s.io/total": "60s"}}, ""),
        ({}, ""),
    ],
)
def test_a_request_that_was_not_authorized_yet_is_neither_allowed_nor_refused(
    event: dict[str, Any], expected: str
) -> None:
    assert decision(event) == expected


@pytest.mark.parametrize(
    ("right", "granted", "expected"),
    [
        (WATCH, {WATCH}, True),
        (GET, {GET}, True),
        (GET, {Right(ACCOUNT, "", "", "configmaps", "get")}, True),
        (WATCH, {GET}, False),
        (GET, {Right(ACCOUNT, "default", "", "configmaps", "get")}, False),
        (GET, {Right(ACCOUNT, "kube-system", "", "configmaps", "list")}, False),
    ],
)
def test_a_missing_right_is_never_excused(
    right: Right, granted: set[Right], expected: bool
) -> None:
    assert is_granted(right, granted) is expected


@pytest.mark.parametrize(
    ("kind", "namespace", "code", "used"),
    [
        ("ClusterRole", "", 201, Right(ACCOUNT, "", RBAC, "clusterroles", "bind")),
        ("Role", "kube-system", 200, Right(ACCOUNT, "kube-system", RBAC, "roles", "bind")),
        ("Role", "kube-system", 403, None),
    ],
)
def test_a_binding_makes_use_of_the_right_to_bind(
    kind: str, namespace: str, code: int, used: Right | None
) -> None:
    event = {
        "user": {"username": f"system:serviceaccount:{ACCOUNT}"},
        "objectRef": {"namespace": namespace} if namespace else {},
        "requestObject": {"roleRef": {"apiGroup": RBAC, "kind": kind, "name": "x"}},
        "responseStatus": {"code": code},
    }
    assert list(handed_out(event)) == ([] if used is None else [used])
    assert list(handed_out({**event, "requestObject": {"spec": {}}})) == []
