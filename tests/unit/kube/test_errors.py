"""Every response becomes the error that its caller needs, with a helpful message."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.kube import errors
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    EVENTS,
    KUBE_SCHEDULERS,
    NODES,
    PODS,
    ObjectRef,
)

ASKED = errors.ApiRequest("update", CONFIG_MAPS.path("ops", "config"), CONFIG_MAPS, "ops", "config")


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.ApiError),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
        (301, "", errors.ApiError),
    ],
)
def test_each_response_becomes_one_error(status: Any, reason: Any, expected: Any) -> None:
    body = {"kind": "Status", "reason": reason, "message": "because"}
    error = errors.from_response(ASKED, status, body)
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (status, reason, "because")
    assert str(error).startswith(f"update /api/v1/namespaces/ops/configmaps/config: {status}")
    assert "because" in str(error)


def test_an_object_above_etcds_limit_is_invalid_because_no_retry_helps() -> None:
    body = {"kind": "Status", "message": "etcdserver: request is too large"}
    error = errors.from_response(ASKED, 500, body)
    assert type(error) is errors.Invalid
    assert "500: etcdserver: request is too large" in str(error)


def test_forbidden_names_the_missing_rule() -> None:
    asked = errors.ApiRequest(
        "patch",
        KUBE_SCHEDULERS.path(None, "cluster", "status"),
        KUBE_SCHEDULERS,
        None,
        "cluster",
        "status",
    )
    body = {"kind": "Status", "reason": "Forbidden", "message": 'User "x" cannot patch resource'}
    assert str(errors.from_response(asked, 403, body)).endswith(
        '(to allow it, add this rule to a ClusterRole: apiGroups: ["operator.openshift.io"], '
        'resources: ["kubeschedulers/status"], verbs: ["patch"])'
    )
    there = errors.from_response(ASKED, 403, body)
    assert "a Role in namespace ops" in str(there)


def test_forbidden_by_a_quota_suggests_no_rule() -> None:
    body = {"kind": "Status", "reason": "Forbidden", "message": "exceeded quota: pods"}
    assert "rule" not in str(errors.from_response(ASKED, 403, body))


def test_unauthorized_names_the_rejected_credentials() -> None:
    assert "token or client certificate" in str(errors.from_response(ASKED, 401, ""))


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [("3", {}, 3.0), (None, {"retryAfterSeconds": 7}, 7.0), (None, {}, 1.0), ("soon", {}, 1.0)],
    ids=["header", "old-style", "none", "nonsense"],
)
def test_too_many_requests_has_retry_after(header: Any, details: Any, seconds: Any) -> None:
    body = {"kind": "Status", "details": details}
    error = errors.from_response(ASKED, 429, body, header)
    assert isinstance(error, errors.TooManyRequests)
    assert error.retry_after == seconds


def test_page_of_a_proxy_is_cut() -> None:
    error = errors.from_response(ASKED, 502, "<html>\n" + "x" * 5000)
    assert len(str(error)) < 450
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (CONFIG_MAPS.path(), "/api/v1/configmaps"),
        (CONFIG_MAPS.path("ops"), "/api/v1/namespaces/ops/configmaps"),
        (PODS.path("ops", "a", "log"), "/api/v1/namespaces/ops/pods/a/log"),
        (NODES.path(None, "n"), "/api/v1/nodes/n"),
        (
            KUBE_SCHEDULERS.path(None, "cluster", "status"),
            "/apis/operator.openshift.io/v1/kubeschedulers/cluster/status",
        ),
        (EVENTS.path("ops", "a b/c"), "/api/v1/namespaces/ops/events/a%20b%2Fc"),
    ],
)
def test_paths(path: Any, expected: Any) -> None:
    assert path == expected


@pytest.mark.parametrize(
    "arguments",
    [(NODES, "ops"), (PODS, None, "a"), (PODS, "ops", None, "log")],
    ids=["namespace-of-cluster-scoped", "no-namespace", "subresource-of-nothing"],
)
def test_invalid_paths_are_refused(arguments: Any) -> None:
    resource, *rest = arguments
    with pytest.raises(ValueError, match=r"namespace|name"):
        resource.path(*rest)


def test_reference_of_an_object() -> None:
    obj = {"metadata": {"namespace": "ops", "name": "config"}}
    ref = CONFIG_MAPS.ref(obj)
    assert ref == ObjectRef(CONFIG_MAPS, "ops", "config")
    assert str(ref) == "ConfigMap ops/config"
    assert ref.path == "/api/v1/namespaces/ops/configmaps/config"
