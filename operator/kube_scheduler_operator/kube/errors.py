"""Why talking to Kubernetes failed: one class per decision that a caller makes.

The texts are meant for the person who reads them at night in a condition or a log line: what was
tried, what came back, and, where that is known, what to change.
"""
# ruff: noqa: N818 - leaves are named after the answer that they are

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .resource import ObjectRef, Resource

_TEXT_LIMIT: Final = 300
"""Answers that are not a Status (a proxy's HTML page, say) are cut to so many characters."""


class KubeError(Exception):
    """Root of everything that this package raises on purpose."""


class CredentialsError(KubeError):
    """There is no usable identity: a kubeconfig or a token is missing or broken."""


class SomebodyElses(KubeError):
    """What is to be made exists, and belongs to somebody else.

    Attributes:
        ref: the object.
    """

    def __init__(self, ref: ObjectRef) -> None:
        self.ref = ref
        super().__init__(f"{ref} exists and is somebody else's; delete it, or use another name")


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked of the API.

    Attributes:
        verb: the verb as RBAC knows it: get, list, create, update, patch, delete.
        path: the URL path.
        resource: the kind, if the path is one of a kind.
        namespace: its namespace, if any.
        name: the object, if it was one object.
        subresource: e.g. "status".
    """

    verb: str
    path: str
    resource: Resource | None = None
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


class ApiError(KubeError):
    """The API server refused a request, or could not be asked.

    Attributes:
        status: HTTP status, 0 if there was no answer.
        reason: the machine-readable reason of the answer, e.g. "AlreadyExists"; may be empty.
        message: the server's sentence, or ours if there was no answer.
        request: what was asked.
    """

    def __init__(
        self, request: Request, *, status: int, reason: str = "", message: str = ""
    ) -> None:
        self.request = request
        self.status = status
        self.reason = reason
        self.message = message
        super().__init__(self._text())

    def _text(self) -> str:
        code = " ".join(part for part in (str(self.status), self.reason) if part)
        return (
            f"{self.request}: {code}: {self.message}" if self.message else f"{self.request}: {code}"
        )


class NotFound(ApiError):
    """404: there is no such object, or no such kind."""


class AlreadyExists(ApiError):
    """409 on create: somebody was faster."""


class Conflict(ApiError):
    """409: the object, or a field's ownership, is not what was read. Read again and decide."""


class Gone(ApiError):
    """410: that resourceVersion is history. List again."""


class Invalid(ApiError):
    """400, 413, 415 or 422: the object is wrong; the same request will never succeed."""


class Forbidden(ApiError):
    """403: authenticated, but a rule is missing (or a quota, or an admission plugin, says no)."""

    @property
    def rule(self) -> str:
        """Where which rule is missing: `a Role in namespace x: apiGroups: …`; empty if none is."""
        # Quota and admission answer 403 as well, and a rule would not help there.
        return _missing_rule(self.request) if " cannot " in self.message else ""

    def _text(self) -> str:
        text = super()._text()
        return f"{text} (to allow it, add this rule to {self.rule})" if self.rule else text


class Unauthorized(ApiError):
    """401: the token or certificate is not accepted."""

    def _text(self) -> str:
        return (
            f"{super()._text()} (the API server does not accept the token or client certificate; "
            "expired, or of another cluster?)"
        )


class TooManyRequests(ApiError):
    """429: nothing was done; ask again after `retry_after` seconds."""

    def __init__(self, request: Request, *, retry_after: float = 1.0, **details: Any) -> None:
        self.retry_after = retry_after
        super().__init__(request, **details)


class Unavailable(ApiError):
    """5xx, no connection, or no answer in time.

    Attributes:
        delivered: whether the server may have acted: False only if the request certainly never
            reached it, so that even a write may be repeated.
    """

    def __init__(self, request: Request, *, delivered: bool = True, **details: Any) -> None:
        self.delivered = delivered
        super().__init__(request, **details)

    def _text(self) -> str:
        return super()._text() if self.status else f"{self.request}: {self.message}"


def _missing_rule(request: Request) -> str:
    """The RBAC rule that would have allowed `request`, and where it belongs."""
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
    request: Request, status: int, body: Mapping[str, Any] | str, retry_after: str | None = None
) -> ApiError:
    """The error that an answer means.

    Args:
        request: what was asked.
        status: HTTP status, at least 300.
        body: the answer: a Status object, or text if it was something else.
        retry_after: the header of that name, seconds.
    """
    reason, message = "", ""
    details: Mapping[str, Any] = {}
    if isinstance(body, str):
        text = " ".join(body.split())
        message = text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"
    elif body.get("kind") == "Status":
        reason = str(body.get("reason") or "")
        message = str(body.get("message") or "")
        details = body.get("details") or {}
    common: dict[str, Any] = {"status": status, "reason": reason, "message": message}
    if status == 429:
        told = retry_after if retry_after is not None else details.get("retryAfterSeconds")
        return TooManyRequests(request, retry_after=_seconds(told, 1.0), **common)
    if status >= 500:
        return Unavailable(request, **common)
    if status == 409:
        kind = AlreadyExists if reason == "AlreadyExists" else Conflict
        return kind(request, **common)
    return _BY_STATUS.get(status, ApiError)(request, **common)


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}


def _seconds(value: object, default: float) -> float:
    try:
        return max(0.0, float(str(value)))
    except ValueError:  # absent, or an HTTP date, which Kubernetes never sends
        return default
