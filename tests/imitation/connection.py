"""The operator's side of the API server: its requests, with faults in between, and its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube_scheduler_operator.kube.api import EventType, ListResult, Propagation
from kube_scheduler_operator.kube.errors import ApiError, ApiRequest, Unavailable
from kube_scheduler_operator.kube.events import EventRecorder, Involved
from kube_scheduler_operator.kube.resource import ObjectRef, Resource

from .apiserver import ApiServer, Object

ACTOR = "operator"


class Killed(BaseException):
    """The process ends here, in the middle of whatever it does."""


class Connection:
    """The operator's Api: every call goes to the server, unless a fault comes first.

    Attributes:
        writes: how many writes were sent.
        kill_at: number of the write at which the process is killed.
        kill_after_effect: whether that write takes effect (its answer is lost).
        faults: asked before every write; an error that it returns is the answer.
        lost_answers: asked before every write; True: it takes effect, but no answer comes.
        before_write: called before every write, so that others can be faster.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.writes = 0
        self.kill_at: int | None = None
        self.kill_after_effect = False
        self.faults: list[Callable[[str, ObjectRef, str | None], ApiError | None]] = []
        self.lost_answers: Callable[[], bool] = lambda: False
        self.before_write: Callable[[], None] = lambda: None
        self.unconditional: list[str] = []
        self.answers: list[ApiError] = []

    async def get(self, ref: ObjectRef) -> Object:
        if self._server.away:
            request = ApiRequest("get", ref.path, ref.resource, ref.namespace, ref.name, None)
            raise Unavailable(request, status=0, message="connection refused")
        return self._server.get(ref)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> ListResult:
        raise NotImplementedError("the operator lists through its watches only")

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> Object:
        return self._write(
            "create", resource.ref(obj), None, lambda: self._server.create(ACTOR, resource, obj)
        )

    async def replace(
        self, resource: Resource, obj: Mapping[str, Any], *, subresource: str | None = None
    ) -> Object:
        ref = resource.ref(obj)
        if not obj["metadata"].get("resourceVersion"):
            self.unconditional.append(f"update {ref}")
        return self._write(
            "update",
            ref,
            subresource,
            lambda: self._server.replace(ACTOR, resource, obj, subresource),
        )

    async def patch(self, ref: ObjectRef, patch: Any) -> Object:
        raise NotImplementedError("a pass never patches: its writes carry what was read")

    async def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        if not uid:
            self.unconditional.append(f"delete {ref}")

        def perform() -> Object:
            self._server.delete(ACTOR, ref, uid)
            return {}

        self._write("delete", ref, None, perform)

    def _write(
        self, verb: str, ref: ObjectRef, subresource: str | None, perform: Callable[[], Object]
    ) -> Object:
        request = ApiRequest(verb, ref.path, ref.resource, ref.namespace, ref.name, subresource)
        if self._server.away:
            raise Unavailable(request, status=0, message="connection refused")
        self.before_write()
        self.writes += 1
        if self.kill_at == self.writes and not self.kill_after_effect:
            raise Killed
        for fault in self.faults:
            error = fault(verb, ref, subresource)
            if error is not None:
                raise error
        try:
            answer = perform()
        except ApiError as error:
            self.answers.append(error)
            raise
        finally:
            if self.kill_at == self.writes:
                raise Killed
        if self.lost_answers():
            raise Unavailable(request, status=0, message="no answer within 10 s")
        return answer


class Recorder(EventRecorder):
    """Keeps events for the tests."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(
        self,
        severity: EventType,
        reason: str,
        message: str,
        involved: Involved | None = None,
    ) -> None:
        self.events.append((severity, reason, message))


def finish(coroutine: Any) -> Any:
    """Run a coroutine that never really waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the operator waited for something that is not there")
