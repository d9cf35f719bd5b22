"""Plans become writes, answers go into the store, and errors end what they must."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kube_scheduler_operator.engine.executor import Executor
from kube_scheduler_operator.kube.errors import Forbidden, NotFound, Request, from_response
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    PODS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.kube.store import Store
from kube_scheduler_operator.model.plan import Create, Delete, Event, Plan, Replace

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
        request = Request(verb, ref.path, ref.resource, ref.namespace, ref.name)
        return from_response(request, status, {"kind": "Status", "reason": reason})


class Bench:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.store = Store()
        self.events: list[str] = []
        self.executor = Executor(self.api, self.store, self)  # type: ignore[arg-type]

    def event(self, type: str, reason: str, message: str) -> None:  # noqa: A002
        self.events.append(f"{type} {reason} {message}")

    def held(self, resource: Resource, name: str) -> Any:
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


async def test_an_empty_plan_does_nothing_and_wants_nothing(bench: Bench) -> None:
    assert await bench.executor.execute(Plan()) is False
    assert bench.api.calls == []


async def test_writes_happen_in_order_and_their_answers_are_known_at_once(bench: Bench) -> None:
    assert await bench.executor.execute(Plan((create("a"), create("b")))) is True
    assert bench.api.calls == ["create a", "create b"]
    assert bench.held(CONFIG_MAPS, "b")["metadata"]["resourceVersion"] == "12"


async def test_events_are_told_after_their_write(bench: Bench) -> None:
    plan = Plan((create("a", Event("Made", "a", "Warning")),), events=(Event("Said", "first"),))
    await bench.executor.execute(plan)
    assert bench.events == ["Normal Said first", "Warning Made a"]


async def test_a_status_goes_to_its_subresource(bench: Bench) -> None:
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
async def test_a_plan_that_is_out_of_date_ends_and_what_is_there_is_read(
    bench: Bench, verb: str, action: Callable[[Object], Any], status: int, reason: str
) -> None:
    obj = known(bench)
    bench.api.put(CONFIG_MAPS, "a", 9)
    bench.api.errors[verb, "a"] = (status, reason)
    assert await bench.executor.execute(Plan((action(obj), create("b")))) is True
    assert "create b" not in bench.api.calls
    assert bench.events == []
    assert bench.held(CONFIG_MAPS, "a")["metadata"]["resourceVersion"] == "9"


async def test_a_conflict_over_something_that_has_gone_is_known_as_well(bench: Bench) -> None:
    obj = known(bench)
    bench.api.objects.clear()
    bench.api.errors["replace", "a"] = (409, "Conflict")
    await bench.executor.execute(Plan((Replace(CONFIG_MAPS, obj),)))
    assert bench.held(CONFIG_MAPS, "a") is None


async def test_replacing_what_has_gone_ends_the_plan(bench: Bench) -> None:
    obj = known(bench)
    bench.api.errors["replace", "a"] = (404, "NotFound")
    assert await bench.executor.execute(Plan((Replace(CONFIG_MAPS, obj), create("b")))) is True
    assert bench.held(CONFIG_MAPS, "a") is None
    assert "create b" not in bench.api.calls


async def test_deleting_what_has_gone_is_done(bench: Bench) -> None:
    obj = known(bench)
    bench.api.errors["delete", "a"] = (404, "NotFound")
    await bench.executor.execute(Plan((Delete(CONFIG_MAPS, obj), create("b"))))
    assert bench.held(CONFIG_MAPS, "a") is None
    assert "create b" in bench.api.calls


async def test_a_kind_or_namespace_that_is_not_there_is_an_error_and_no_reason_to_hurry(
    bench: Bench,
) -> None:
    bench.api.errors["create", "a"] = (404, "NotFound")
    with pytest.raises(NotFound):
        await bench.executor.execute(Plan((create("a"),)))


async def test_a_deletion_is_of_exactly_what_was_read(bench: Bench) -> None:
    obj = known(bench)
    await bench.executor.execute(Plan((Delete(CONFIG_MAPS, obj),)))
    assert bench.api.calls == ["delete a u", "get a"]
    assert bench.held(CONFIG_MAPS, "a") is None


async def test_a_pod_that_ends_gracefully_is_known_to_be_going(bench: Bench) -> None:
    obj = known(bench, resource=PODS)
    bench.api.graceful = True
    await bench.executor.execute(Plan((Delete(PODS, obj),)))
    assert "deletionTimestamp" in bench.held(PODS, "a")["metadata"]


async def test_what_lost_its_label_is_deleted_so_that_it_can_be_made_again(bench: Bench) -> None:
    obj = known(bench)
    bench.store.remove(CONFIG_MAPS, obj)  # what a watch with a selector says then
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    assert await bench.executor.execute(Plan((create("a"),))) is True
    assert "delete a u" in bench.api.calls
    del bench.api.errors["create", "a"]
    bench.api.version = 20
    await bench.executor.execute(Plan((Create(CONFIG_MAPS, _again("a")),)))
    assert bench.held(CONFIG_MAPS, "a") is not None


def _again(name: str) -> Object:
    """The API gives a new object a new uid."""
    obj = new(name)
    obj["metadata"]["uid"] = "another"
    return obj


async def test_what_somebody_else_made_first_is_not_deleted(bench: Bench) -> None:
    bench.api.put(CONFIG_MAPS, "a", 9)
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    await bench.executor.execute(Plan((create("a"),)))
    assert bench.api.calls == ["create a", "get a"]
    assert bench.held(CONFIG_MAPS, "a") is not None


async def test_an_error_ends_the_actions_and_is_raised_after_the_reports(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    report = Create(CLUSTER_OPERATORS, {"metadata": {"name": "kube-scheduler"}})
    with pytest.raises(Forbidden):
        await bench.executor.execute(Plan((create("a"), create("b")), (report,)))
    assert bench.api.calls == ["create a", "create kube-scheduler"]


async def test_a_report_that_fails_does_not_hide_the_error_of_an_action(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    bench.api.errors["create", "kube-scheduler"] = (500, "")
    report = Create(CLUSTER_OPERATORS, {"metadata": {"name": "kube-scheduler"}})
    with pytest.raises(Forbidden):
        await bench.executor.execute(Plan((create("a"),), (report,)))


# --- chains: writes that concern nobody else ------------------------------------------------------


async def test_a_chain_that_fails_stops_no_other_and_is_told_of(bench: Bench) -> None:
    bench.api.errors["create", "b"] = (403, "Forbidden")
    chains = {"x": (create("a"), create("b"), create("c")), "y": (create("d"),)}
    assert await bench.executor.execute(Plan(chains=chains)) is True
    assert bench.api.calls == ["create a", "create b", "create d"]
    assert list(bench.executor.troubles) == ["x"]
    assert "403" in bench.executor.troubles["x"]


async def test_a_chain_that_only_fails_asks_for_no_pass_at_once(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    assert await bench.executor.execute(Plan(chains={"x": (create("a"),)})) is False
    assert await bench.executor.execute(Plan()) is False
    assert bench.executor.troubles == {}, "of the last plan only"


async def test_chains_are_performed_when_the_plan_itself_failed(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (403, "Forbidden")
    with pytest.raises(Forbidden):
        await bench.executor.execute(Plan((create("a"),), chains={"x": (create("b"),)}))
    assert bench.api.calls == ["create a", "create b"]


# --- what has an owner ----------------------------------------------------------------------------


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


async def exclusive(bench: Bench, there: Object) -> None:
    """Create "a", which the store does not know and which is there already."""
    obj = {**there, "metadata": {**there["metadata"], "uid": "v", "resourceVersion": "7"}}
    bench.api.objects[CONFIG_MAPS.ref(obj)] = obj
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    plan = Plan(chains={"x": (Create(CONFIG_MAPS, owned("a"), exclusive=True),)})
    await bench.executor.execute(plan)


async def test_somebody_elses_object_is_neither_deleted_nor_taken_over(bench: Bench) -> None:
    """The operator's own Deployment, say, after whose name somebody has called a scheduler."""
    for there in (new("a"), owned("a", "somebody")):
        await exclusive(bench, there)
        assert bench.executor.troubles == {
            "x": "ConfigMap n/a exists and is somebody else's; delete it, or use another name"
        }
        assert bench.held(CONFIG_MAPS, "a") is None
    assert not [call for call in bench.api.calls if call.startswith(("delete", "replace"))]


async def test_an_object_of_the_same_owner_is_taken_notice_of(bench: Bench) -> None:
    await exclusive(bench, owned("a"))
    assert bench.executor.troubles == {}
    assert bench.held(CONFIG_MAPS, "a")["metadata"]["uid"] == "v"
    assert "replace a" not in bench.api.calls


async def test_one_that_has_lost_the_labels_by_which_it_is_watched_gets_them_back(
    bench: Bench,
) -> None:
    await exclusive(bench, owned("a", labels={"theirs": "too"}))
    held = bench.held(CONFIG_MAPS, "a")["metadata"]
    assert held["labels"] == {"ours": "yes", "theirs": "too"}
    assert bench.api.calls == ["create a", "get a", "replace a"]


async def test_one_that_is_gone_in_between_is_for_the_next_pass(bench: Bench) -> None:
    bench.api.errors["create", "a"] = (409, "AlreadyExists")
    plan = Plan(chains={"x": (Create(CONFIG_MAPS, owned("a"), exclusive=True),)})
    assert await bench.executor.execute(plan) is True
    assert bench.executor.troubles == {}
