"""The executor: it performs writes, stores the responses, and stops at errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kube_scheduler_operator.kube.errors import (
    ApiRequest,
    Forbidden,
    HistoryRewoundError,
    NotFound,
    Unavailable,
    from_response,
)
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    PODS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.kube.store import Store
from kube_scheduler_operator.operator.engine.executor import Executor
from kube_scheduler_operator.operator.model.plan import Create, Delete, Event, Plan, Replace

X, Y = SECONDARY_SCHEDULERS.named("x"), SECONDARY_SCHEDULERS.named("y")

Object = dict[str, Any]


class FakeApi:
    """Objects by reference; `errors` maps (verb, name) to an HTTP status."""

    def __init__(self) -> None:
        self.objects: dict[ObjectRef, Object] = {}
        self.calls: list[str] = []
        self.errors: dict[tuple[str, str], tuple[int, str]] = {}
        self.graceful = False
        self.version = 10

    def put(self, resource: Resource, name: str, version: int, uid: str = "u") -> Object:
        metadata = {"name": name, "uid": uid, "resourceVersion": str(version)}
        if resource.namespaced:
            metadata["namespace"] = "n"
        obj = {"metadata": metadata}
        self.objects[resource.ref(obj)] = obj
        return obj

    async def get(self, ref: ObjectRef) -> Object:
        self.calls.append(f"get {ref.name}")
        if ref not in self.objects:
            raise self._error("get", ref, 404, "NotFound")
        return self.objects[ref]

    async def create(self, resource: Resource, obj: Mapping[str, Any], **_: Any) -> Object:
        return self._write("create", resource, obj)

    async def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        subresource: str | None = None,
        **_: Any,
    ) -> Object:
        return self._write(f"replace{'/' + subresource if subresource else ''}", resource, obj)

    async def delete(self, ref: ObjectRef, *, uid: str | None = None, **_: Any) -> None:
        self.calls.append(f"delete {ref.name} {uid}")
        self._fail("delete", ref)
        if self.graceful:
            self.version += 1
            old = self.objects[ref]["metadata"]
            metadata = {**old, "deletionTimestamp": "t", "resourceVersion": str(self.version)}
            self.objects[ref] = {"metadata": metadata}
        else:
            self.objects.pop(ref, None)

    def _write(self, verb: str, resource: Resource, obj: Mapping[str, Any]) -> Object:
        ref = resource.ref(obj)
        self.calls.append(f"{verb} {ref.name}")
        self._fail(verb, ref)
        self.version += 1
        metadata = {"uid": "u", **obj["metadata"], "resourceVersion": str(self.version)}
        self.objects[ref] = {**obj, "metadata": metadata}
        return self.objects[ref]

    def _fail(self, verb: str, ref: ObjectRef) -> None:
        if (verb, ref.name) in self.errors:
            raise self._error(verb, ref, *self.errors[verb, ref.name])

    def _error(self, verb: str, ref: ObjectRef, status: int, reason: str) -> Exception:
        request = ApiRequest(verb, ref.path, ref.resource, ref.namespace, ref.name)
        return from_response(
            request, status, {"kind": "Status", "reason": reason, "message": reason}
        )


class Bench:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.store = Store()
        self.events: list[str] = []
        self.executor = Executor(self.api, self.store, self)  # type: ignore[arg-type]

    def event(self, type: str, reason: str, message: str) -> None:  # noqa: A002
        self.events.append(f"{type} {reason} {message}")

    def stored(self, resource: Resource, name: str) -> Any:
        return self.store.view().get(resource, name, "n" if resource.namespaced else None)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def new(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": "n"}}


def create(name: str, *events: Event) -> Create:
    return Create(CONFIG_MAPS, new(name), events)


def known(
    bench: Bench, name: str = "a", version: int = 5, resource: Resource = CONFIG_MAPS
) -> Object:
    obj = bench.api.put(resource, name, version)
    bench.store.put(resource, obj)
    return obj


async def test_an_empty_plan_writes_nothing_and_needs_no_reconcile(bench: Bench) -> None:
    assert await bench.executor.execute(Plan()) is False
    assert bench.api.calls == []


async def test_writes_are_performed_in_order_and_their_responses_stored(bench: Bench) -> None:
    assert await bench.executor.execute(Plan((create("a"), create("b")))) is True
    assert bench.api.calls == ["create a", "create b"]
    assert bench.stored(CONFIG_MAPS, "b")["metadata"]["resourceVersion"] == "12"


async def test_events_are_sent_after_their_write(bench: Bench) -> None:
    await bench.executor.execute(Plan((create("a", Event("Made", "a", "Warning")),)))
    assert bench.events == ["Warning Made a"]


async def test_a_status_is_written_to_its_subresource(bench: Bench) -> None:
    kubescheduler = bench.api.put(KUBE_SCHEDULERS, "cluster", 5)
    await bench.executor.execute(Plan((Replace(KUBE_SCHEDULERS, kubescheduler, "status"),)))
    assert bench.api.calls == ["replace/status cluster"]


@pytest.mark.parametrize(
    ("verb", "action", "status", "reason"),
    [
        (
            "replace",
            lambda obj: Replace(CONFIG_MAPS, obj, None, (Event("E", ""),)),
            409,
            "Conflict",
        ),
        ("delete", lambda obj: Delete(CONFIG_MAPS, obj, (Event("E", ""),)), 409, "Conflict"),
        (
            "create",
            lambda obj: Create(CONFIG_MAPS, new("a"), (Event("E", ""),)),
            409,
            "AlreadyExists",
        ),
    ],
    ids=["replace", "delete", "create"],
)
async def test_a_conflict_ends_the_plan_and_the_object_is_read_again(
    bench: Bench, verb: str, action: Callable[[Object], Any], status: int, reason: str
) -> None:
    obj = known(bench)
    bench.api.put(CONFIG_MAPS, "a", 9)
    bench.api.errors[verb, "a"] = (status, reason)
    assert await bench.executor.execute(Plan((action(obj), create("b")))) is True
    assert "create b" not in bench.api.calls
    assert bench.events == []
    assert bench.stored(CONFIG_MAPS, "a")["metadata"]["resourceVersion"] == "9"


async def test_a_conflict_with_a_deleted_object_removes_it_from_the_store(bench: Bench) -> None:
    obj = known(bench)
    bench.api.objects.clear()
    bench.api.errors["replace", "a"] = (409, "Conflict")
    await bench.executor.execute(Plan((Replace(CONFIG_MAPS, obj),)))
    assert bench.stored(CONFIG_MAPS, "a") is None


async def test_replacing_a_deleted_object_ends_the_plan(bench: Bench) -> None:
    obj = known(bench)
    bench.api.errors["replace", "a"] = (404, "NotFound")
    assert await bench.executor.execute(Plan((Replace(CONFIG_MAPS, obj), create("b")))) is True
    assert bench.stored(CONFIG_MAPS, "a") is None
    assert "create b" not in bench.api.calls


async def test_deleting_a_deleted_object_succeeds(bench: Bench) -> None:
    obj = known(bench)
    bench.api.errors["delete", "a"] = (404, "NotFound")
    await bench.executor.execute(Plan((Delete(CONFIG_MAPS, obj), create("b"))))
    assert bench.stored(CONFIG_MAPS, "a") is None
    assert "create b" in bench.api.calls


async def test_a_missing_kind_or_namespace_is_an_error(
    bench: Bench,
) -> None:
    bench.api.errors["create", "a"] = (404, "NotFound")
    with pytest.raises(NotFound):
        await bench.executor.execute(Plan((create("a"),)))


async def test_a_deletion_has_the_uid_that_was_read(bench: Bench) -> None:
    obj = known(bench)
    await bench.executor.execute(Plan((Delete(CONFIG_MAPS, obj),)))
    assert bench.api.calls == ["delete a u", "get a"]
    assert bench.stored(CONFIG_MAPS, "a") is None


async def test_a_pod_that_terminates_gracefully_has_a_deletion_timestamp(bench: Bench) -> None:
    obj = known(bench, resource=PODS)
    bench.api.graceful = True
    await bench.executor.execute(Plan((Delete(PODS, obj),)))
    assert "deletionTimestamp" in bench.stored(PODS, "a")["metadata"]


async def test_an_object_without_its_label_is_deleted_and_recreated(bench: Bench) -> None:
    obj = known(bench)
    bench.store.remove(CONFIG_MAPS, obj)  # the event of a watch with a selector
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    assert await bench.executor.execute(Plan((create("a"),))) is True
    assert "delete a u" in bench.api.calls
    del bench.api.errors["create", "a"]
    bench.api.version = 20
    await bench.executor.execute(Plan((Create(CONFIG_MAPS, _again("a")),)))
    assert bench.stored(CONFIG_MAPS, "a") is not None


def _again(name: str) -> Object:
    """A new object with another uid."""
    obj = new(name)
    obj["metadata"]["uid"] = "another"
    return obj


async def test_an_object_created_by_another_client_is_not_deleted(bench: Bench) -> None:
    bench.api.put(CONFIG_MAPS, "a", 9)
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    await bench.executor.execute(Plan((create("a"),)))
    assert bench.api.calls == ["create a", "get a"]
    assert bench.stored(CONFIG_MAPS, "a") is not None


async def test_an_error_ends_the_actions_and_is_raised_after_the_reports(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    report = Create(CLUSTER_OPERATORS, {"metadata": {"name": "kube-scheduler"}})
    with pytest.raises(Forbidden):
        await bench.executor.execute(Plan((create("a"), create("b")), (report,)))
    assert bench.api.calls == ["create a", "create kube-scheduler"]


async def test_a_failed_report_does_not_hide_the_error_of_an_action(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    bench.api.errors["create", "kube-scheduler"] = (500, "")
    report = Create(CLUSTER_OPERATORS, {"metadata": {"name": "kube-scheduler"}})
    with pytest.raises(Forbidden):
        await bench.executor.execute(Plan((create("a"),), (report,)))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (422, "Too long"),
        (413, "Request entity too large"),
        (500, "etcdserver: request is too large"),
    ],
)
async def test_a_status_that_is_refused_is_recorded_and_stops_no_other(
    bench: Bench, code: int, message: str
) -> None:
    bench.api.errors["replace/status", "x"] = (code, message)
    for name in ("x", "y"):
        bench.api.put(SECONDARY_SCHEDULERS, name, 5)
    reports = tuple(
        Replace(SECONDARY_SCHEDULERS, bench.api.objects[SECONDARY_SCHEDULERS.named(name)], "status")
        for name in ("x", "y")
    )
    assert await bench.executor.execute(Plan(reports=reports)) is True
    assert bench.api.calls == ["replace/status x", "replace/status y"]
    assert list(bench.executor.write_errors) == [X]


async def test_an_error_that_is_not_about_one_object_ends_the_reports(bench: Bench) -> None:
    bench.api.errors["replace/status", "x"] = (503, "")
    for name in ("x", "y"):
        bench.api.put(SECONDARY_SCHEDULERS, name, 5)
    reports = tuple(
        Replace(SECONDARY_SCHEDULERS, bench.api.objects[SECONDARY_SCHEDULERS.named(name)], "status")
        for name in ("x", "y")
    )
    with pytest.raises(Unavailable):
        await bench.executor.execute(Plan(reports=reports))
    assert bench.api.calls == ["replace/status x"]


# --- write sets: the writes for one object --------------------------------------------------------


async def test_a_failed_write_set_is_recorded_and_stops_no_other(bench: Bench) -> None:
    bench.api.errors["create", "b"] = (403, "Forbidden")
    write_sets = {X: (create("a"), create("b"), create("c")), Y: (create("d"),)}
    assert await bench.executor.execute(Plan(write_sets=write_sets)) is True
    assert bench.api.calls == ["create a", "create b", "create d"]
    assert list(bench.executor.write_errors) == [X]
    assert "403" in bench.executor.write_errors[X]


async def test_a_failed_write_set_alone_causes_no_reconcile(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    assert await bench.executor.execute(Plan(write_sets={X: (create("a"),)})) is False
    assert await bench.executor.execute(Plan()) is False
    assert bench.executor.write_errors == {}, "errors of the last plan only"


async def test_write_sets_are_performed_when_the_plan_itself_failed(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    with pytest.raises(Forbidden):
        await bench.executor.execute(Plan((create("a"),), write_sets={X: (create("b"),)}))
    assert bench.api.calls == ["create a", "create b"]


# --- objects with owners --------------------------------------------------------------------------


def owned(name: str, owner: str = "mine", **metadata: Any) -> Object:
    reference = {"kind": "SecondaryScheduler", "name": owner, "uid": "u"}
    return {
        "metadata": {
            "name": name,
            "namespace": "n",
            "labels": {"ours": "yes"},
            "ownerReferences": [reference],
            **metadata,
        }
    }


async def exclusive(bench: Bench, existing: Object) -> None:
    """Create "a", which exists but is not in the store."""
    obj = {**existing, "metadata": {**existing["metadata"], "uid": "v", "resourceVersion": "7"}}
    bench.api.objects[CONFIG_MAPS.ref(obj)] = obj
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    plan = Plan(write_sets={X: (Create(CONFIG_MAPS, owned("a"), exclusive=True),)})
    await bench.executor.execute(plan)


async def test_an_object_with_another_owner_is_neither_deleted_nor_taken_over(bench: Bench) -> None:
    """For example the operator's own Deployment, if a scheduler has the same name."""
    for existing in (new("a"), owned("a", "another")):
        await exclusive(bench, existing)
        assert bench.executor.write_errors == {
            X: "ConfigMap n/a exists and has another owner; delete it, or use another name"
        }
        assert bench.stored(CONFIG_MAPS, "a") is None
    assert not [call for call in bench.api.calls if call.startswith(("delete", "replace"))]


async def test_an_existing_object_of_the_same_owner_is_stored(bench: Bench) -> None:
    await exclusive(bench, owned("a"))
    assert bench.executor.write_errors == {}
    assert bench.stored(CONFIG_MAPS, "a")["metadata"]["uid"] == "v"
    assert "replace a" not in bench.api.calls


async def test_missing_labels_of_an_owned_object_are_restored(
    bench: Bench,
) -> None:
    await exclusive(bench, owned("a", labels={"theirs": "too"}))
    metadata = bench.stored(CONFIG_MAPS, "a")["metadata"]
    assert metadata["labels"] == {"ours": "yes", "theirs": "too"}
    assert bench.api.calls == ["create a", "get a", "replace a"]


async def test_an_object_deleted_meanwhile_is_left_to_the_next_reconcile(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    plan = Plan(write_sets={X: (Create(CONFIG_MAPS, owned("a"), exclusive=True),)})
    assert await bench.executor.execute(plan) is True
    assert bench.executor.write_errors == {}


@pytest.mark.parametrize("why", ["conflict", "answer", "exists", "deleted"])
async def test_an_older_state_than_before_ends_the_plan(bench: Bench, why: str) -> None:
    """Etcd was restored from a backup: the objects in the store do not exist any more."""
    obj = known(bench, version=50)
    action: Any = Replace(CONFIG_MAPS, obj)
    if why == "conflict":
        bench.api.put(CONFIG_MAPS, "a", 5)
        bench.api.errors["replace", "a"] = (409, "Conflict")
    elif why != "answer":
        bench.store.remove(CONFIG_MAPS, obj)
        action = create("a")
    if why == "exists":
        bench.api.put(CONFIG_MAPS, "a", 5)
        bench.api.errors["create", "a"] = (409, "AlreadyExists")
    for plan in (Plan((action,)), Plan(write_sets={CONFIG_MAPS.ref(obj): (action,)})):
        bench.api.calls.clear()
        with pytest.raises(HistoryRewoundError, match="restored from a backup: ConfigMap n/a has"):
            await bench.executor.execute(plan)
        assert not any(call.startswith("delete") for call in bench.api.calls)
