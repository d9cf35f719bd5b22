"""Errors of Kubernetes requests: one class per decision that a caller makes.

Messages appear in conditions and logs. Each has the request, the response and, where known, the
remedy.
"""
# ruff: noqa: N818 - named after the responses

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE, FOREIGN_REASON, MESSAGE_LENGTH
from .resource import ObjectRef, Resource

_TEXT_LIMIT: Final = 300
"""Longest text of a response that is not a Status, e.g. the HTML page of a proxy."""


_TOO_LARGE: Final = "request is too large"
"""The end of etcd's error for an object above its limit (500): `etcdserver: request is too large`.
"""


class KubeError(Exception):
    """Base class of all errors of this package; its text is one line, whatever it quotes."""

    def __init__(self, text: str = "") -> None:
        super().__init__(foreign(text, MESSAGE_LENGTH))


class CredentialsError(KubeError):
    """No usable credentials: a kubeconfig or a token is missing or invalid."""


class OtherOwner(KubeError):
    """The object to create exists and has another owner."""

    def __init__(self, ref: ObjectRef) -> None:
        self.ref = ref
        super().__init__(f"{ref} exists and has another owner; delete it, or use another name")


class HistoryRewoundError(KubeError):
    """The API server has an older state than it had before: etcd was restored from a backup.

    Versions are reused after a restore, so earlier reads must not be compared with later ones:
    everything has to be listed again.
    """

    def __init__(self, evidence: str) -> None:
        self.evidence = evidence
        super().__init__(f"etcd was restored from a backup: {evidence}")


class NotLeadingError(KubeError):
    """This process does not hold its Lease any more, so it must not write."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to the API server, for messages."""

    verb: str  # the RBAC verb: get, list, watch, create, update, patch, delete
    path: str  # the URL path
    resource: Resource | None = None  # the kind, if the path belongs to one
    namespace: str | None = None  # its namespace, if any
    name: str | None = None  # the object, if the request is for one object
    subresource: str | None = None  # e.g. "status"
    aggregated: bool = False  # whether another server answers it, through the API server

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


class ApiError(KubeError):
    """The API server refused a request, or was not reached."""

    def __init__(
        self, request: ApiRequest, *, status: int, reason: str = "", message: str = ""
    ) -> None:
        self.request = request
        self.status = status  # HTTP status; 0 without a response
        # the machine-readable reason of the response, e.g. "AlreadyExists"; may be empty
        self.reason = foreign(reason, FOREIGN_REASON)
        # the server's message; the client's without a response
        self.message = foreign(message, FOREIGN_MESSAGE)
        super().__init__(self._text())

    def _text(self) -> str:
        code = " ".join(part for part in (str(self.status), self.reason) if part)
        return (
            f"{self.request}: {code}: {self.message}" if self.message else f"{self.request}: {code}"
        )


class NotFound(ApiError):
    """404: the object, or the kind, does not exist."""


class AlreadyExists(ApiError):
    """409 on create: the object exists already."""


class Conflict(ApiError):
    """409: the object, or the owner of a field, has changed since it was read. Read it again."""


class Gone(ApiError):
    """410: the resourceVersion is too old. List again.

    `more` continues a list at the current state instead; empty if the server offers no such token.
    """

    def __init__(self, request: ApiRequest, *, more: str = "", **details: Any) -> None:
        self.more = more
        super().__init__(request, **details)


class Invalid(ApiError):
    """400, 413, 415 or 422, or too large for etcd: a retry never succeeds."""


class Forbidden(ApiError):
    """403: a rule is missing, or a quota or an admission plugin refuses the request."""

    @property
    def rule(self) -> str:
        """The missing rule and its place, `a Role in namespace x: apiGroups: …`; may be empty."""
        # Quota and admission return 403, too; a rule does not help there.
        return _missing_rule(self.request) if " cannot " in self.message else ""

    def _text(self) -> str:
        text = super()._text()
        return f"{text} (to allow it, add this rule to {self.rule})" if self.rule else text


class TooLarge(ApiError):
    """The response is larger than its reader accepts; it was not decoded."""

    def __init__(self, request: ApiRequest, excess: str) -> None:
        self.excess = excess  # the exceeded limit: "more than 100000 values"
        super().__init__(request, status=200, message=f"the response has {excess}")

    def _text(self) -> str:
        return f"{self.request}: {self.message}, which this program does not decode"


class Unauthorized(ApiError):
    """401: the API server rejects the token or certificate."""

    def _text(self) -> str:
        return (
            f"{super()._text()} (the API server rejects the token or client certificate; check "
            "that it has not expired and belongs to this cluster)"
        )


class TooManyRequests(ApiError):
    """429: the request was not performed; retry after `retry_after` seconds."""

    def __init__(self, request: ApiRequest, *, retry_after: float = 1.0, **details: Any) -> None:
        self.retry_after = retry_after
        super().__init__(request, **details)


class Unavailable(ApiError):
    """5xx, no connection, or a timeout."""

    def __init__(self, request: ApiRequest, *, delivered: bool = True, **details: Any) -> None:
        # whether the server may have received the request. If False, even a write is safe to retry
        self.delivered = delivered
        super().__init__(request, **details)

    def _text(self) -> str:
        return super()._text() if self.status else f"{self.request}: {self.message}"


def _missing_rule(request: ApiRequest) -> str:
    """Return the RBAC rule that allows `request`, and the object to add it to."""
    resource = request.resource
    if resource is None:
        return ""
    plural = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
    holder = f"a Role in namespace {request.namespace}" if request.namespace else "a ClusterRole"
    return (
        f'{holder}: apiGroups: ["{resource.group}"], resources: ["{plural}"], '
        f'verbs: ["{request.verb}"]'
    )


def from_response(
    request: ApiRequest, status: int, body: Mapping[str, Any] | str, retry_after: str | None = None
) -> ApiError:
    """Return the error for a response with a status of at least 300.

    `body` is a Status object, or any other response as text; `retry_after` is the header of that
    name.
    """
    reason, message = "", ""
    details: Mapping[str, Any] = {}
    if isinstance(body, str):
        message = foreign(" ".join(body.split()), _TEXT_LIMIT)
    elif body.get("kind") == "Status":
        reason = str(body.get("reason") or "")
        message = str(body.get("message") or "")
        details = body.get("details") or {}
    common: dict[str, Any] = {"status": status, "reason": reason, "message": message}
    if status == 429:
        seconds = retry_after if retry_after is not None else details.get("retryAfterSeconds")
        return TooManyRequests(request, retry_after=_seconds(seconds, 1.0), **common)
    if status >= 500 and not message.endswith(_TOO_LARGE):
        return Unavailable(request, **common)
    if status == 410:
        listed = body.get("metadata") if isinstance(body, Mapping) else None
        more = listed.get("continue") if isinstance(listed, Mapping) else None
        return Gone(request, more=str(more or ""), **common)
    if status == 409:
        exists = reason == "AlreadyExists"
        return (AlreadyExists if exists else Conflict)(request, **common)
    kind = Invalid if status >= 500 else _BY_STATUS.get(status, ApiError)
    return kind(request, **common)


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}


def _seconds(value: object, default: float) -> float:
    try:
        return max(0.0, float(str(value)))
    except ValueError:  # absent, or an HTTP date, which Kubernetes never sends
        return default
