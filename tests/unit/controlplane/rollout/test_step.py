"""Which node next, and what to do with it: the reference's rows (installer controller) and ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.base.times import ALWAYS, rfc3339
from kube_scheduler_operator.controlplane.revision.content import Content
from kube_scheduler_operator.controlplane.revision.history import Revision
from kube_scheduler_operator.controlplane.revision.revise import Revised
from kube_scheduler_operator.controlplane.rollout.node_statuses import write_entry
from kube_scheduler_operator.controlplane.rollout.observe import look
from kube_scheduler_operator.controlplane.rollout.result import Stepped, describe
from kube_scheduler_operator.controlplane.rollout.step import step
from kube_scheduler_operator.kube.resource import CONFIG_MAPS
from kube_scheduler_operator.manifests.pods import installer_pod_name
from kube_scheduler_operator.model.plan import Create, Delete, Replace
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.programs.node.result import Result, Verdict

NOW = datetime(2026, 1, 1, 3, 4, 5, tzinfo=UTC)
BEFORE = rfc3339(NOW - timedelta(hours=1))
POD = {"spec": {"containers": [{"name": "kube-scheduler", "image": "k:v1", "args": ["-v=2"]}]}}
PARTS = {names.CONFIG: {"config.yaml": "{}"}, names.POD: {names.POD_KEY: json.dumps(POD)}}


def revision(number: int, outcome: str = "", outcome_time: str = BEFORE, **fields: Any) -> Revision:
    annotations = {names.OUTCOME_ANNOTATION: outcome, names.OUTCOME_TIME_ANNOTATION: outcome_time}
    status = {
        "metadata": {
            "name": f"revision-status-{number}",
            "uid": f"uid-{number}",
            "resourceVersion": "1",
            "annotations": annotations if outcome else {},
        }
    }
    copies = {name: {"data": data} for name, data in PARTS.items()}
    made = Revision(
        number=number,
        status=status,
        ready=True,
        hash=f"hash-{number}",
        outcome=outcome,
        message="",
        quarantined=frozenset(),
        parts=tuple(copies),
        copies=copies,
    )
    return replace(made, **fields)


def operand(
    node: str, number: int, state: str = "ready", restarts: int = 0, ended_ago: float = 1.0
) -> dict[str, Any]:
    """A mirror pod; `state`: ready, pending or crashing."""
    container: dict[str, Any] = {"name": names.OPERAND, "restartCount": restarts}
    if state == "crashing":
        container["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        ended = rfc3339(NOW - timedelta(seconds=ended_ago))
        terminated = {"exitCode": 1, "message": "segfault", "finishedAt": ended}
        container["lastState"] = {"terminated": terminated}
    ready = {"type": "Ready", "status": "True" if state == "ready" else "False"}
    return {
        "metadata": {
            "name": f"kube-scheduler-{node}",
            "labels": {names.REVISION_LABEL: str(number)} if number else {},
            "annotations": {names.CONTENT_HASH_ANNOTATION: f"hash-{number}"} if number else {},
        },
        "spec": {"nodeName": node, "containers": [{"name": names.OPERAND, "image": "k:v1"}]},
        "status": {
            "conditions": [{**ready, "lastTransitionTime": BEFORE}],
            "containerStatuses": [container],
        },
    }


def installer(
    node: str,
    number: int,
    status: Mapping[str, Any] | Result,
    *,
    retry: int = 0,
    go_ahead: bool = True,
    age: float = 10.0,
    ended_ago: float = 1.0,
    **metadata: Any,
) -> dict[str, Any]:
    """An installer pod with a status, or one that has ended with a result."""
    if isinstance(status, Result):
        terminated = {
            "exitCode": 0,
            "message": status.serialise(),
            "finishedAt": rfc3339(NOW - timedelta(seconds=ended_ago)),
        }
        containers = [{"name": names.INSTALLER, "state": {"terminated": terminated}}]
        status = {"phase": "Succeeded", "containerStatuses": containers}
    return {
        "metadata": {
            "name": installer_pod_name(node, number, retry),
            "namespace": KUBEADM.target_namespace,
            "uid": "uid",
            "labels": {"app": "installer", names.INSTALLER_REVISION_LABEL: str(number)},
            "annotations": {names.GO_AHEAD_ANNOTATION: names.GO_AHEAD} if go_ahead else {},
            "creationTimestamp": rfc3339(NOW - timedelta(seconds=age)),
            **metadata,
        },
        "spec": {"nodeName": node},
        "status": dict(status),
    }


def node(name: str, *, ready: bool = True) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "Unknown"}
    metadata = {"name": name, "uid": f"node-{name}", "creationTimestamp": BEFORE}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


PREFLIGHT = {
    "phase": "Running",
    "containerStatuses": [
        {"name": names.PREFLIGHT, "state": {"running": {}}},
        {"name": names.INSTALLER, "state": {"running": {}}},
    ],
}
REFUSED = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": names.PREFLIGHT,
            "state": {"terminated": {"exitCode": 1, "message": "no such plugin"}},
        },
        {"name": names.INSTALLER, "state": {"running": {}}},
    ],
}
SWAPPING = {
    "phase": "Running",
    "containerStatuses": [
        {"name": names.PREFLIGHT, "state": {"terminated": {"exitCode": 0}}},
        {"name": names.INSTALLER, "state": {"running": {}}},
    ],
}
STAGED = {
    "phase": "Running",
    "containerStatuses": [
        {"name": names.PREFLIGHT, "state": {"terminated": {"exitCode": 0}}},
        {"name": names.INSTALLER, "state": {"running": {}}, "started": True},
    ],
}
EVICTED = {"phase": "Failed", "message": "bla bla OOM bla bla"}


def result(verdict: Verdict, node: str, number: int, last_good: int = 1, **fields: Any) -> Result:
    return Result(verdict, number, node, last_good, **fields)


def take(
    entries: list[dict[str, Any]],
    *,
    wanted: int | None = 2,
    pods: Mapping[str, dict[str, Any]] | None = None,
    installers: list[dict[str, Any]] | None = None,
    revisions: list[Revision] | None = None,
    not_ready: tuple[str, ...] = (),
    holder: str = "",
    nodes: Mapping[str, Any] | None = None,
    answered_since: datetime | None = ALWAYS,
    recovered_at: datetime | None = None,
) -> Stepped:
    """One step of a cluster whose nodes have these entries."""
    history = tuple(revisions or [revision(1, names.OUTCOME_INSTALLED), revision(2)])
    chosen = next((r for r in history if r.number == wanted), None)
    raw = [{"nodeUID": f"node-{entry['nodeName']}", **entry} for entry in entries]
    found = {
        entry["nodeName"]: node(entry["nodeName"], ready=entry["nodeName"] not in not_ready)
        for entry in entries
    }
    snapshot = Snapshot(
        now=NOW,
        platform=KUBEADM,
        settings=Settings(),
        kubescheduler={
            "metadata": {"name": "cluster"},
            "spec": {},
            "status": {"nodeStatuses": raw},
        },
        nodes=found if nodes is None else nodes,
        operand_pods=dict(pods or {}),
        installer_pods={pod["metadata"]["name"]: pod for pod in installers or []},
        operand_lease={"spec": {"holderIdentity": holder}},
        answered_since=answered_since,
        recovered_at=recovered_at,
    )
    latest = max(r.number for r in history)
    return step(snapshot, Revised((), latest, chosen, "", None, "", history), look(snapshot))


def entry(name: str, current: int = 0, target: int = 0, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"nodeName": name, **fields}
    if current:
        found["currentRevision"] = current
    if target:
        found["targetRevision"] = target
    return found


def ready(*nodes: str, number: int = 1) -> dict[str, dict[str, Any]]:
    return {name: operand(name, number) for name in nodes}


def targets(stepped: Stepped) -> dict[str, int]:
    return {e.node: e.target for e in stepped.entries if e.target}


def created(stepped: Stepped) -> list[str]:
    actions = [*stepped.actions, *stepped.afterwards]
    return [a.obj["metadata"]["name"] for a in actions if isinstance(a, Create)]


def told(stepped: Stepped) -> list[str]:
    """Installer pods that get their go-ahead."""
    return [
        a.obj["metadata"]["name"]
        for a in [*stepped.actions, *stepped.afterwards]
        if isinstance(a, Create | Replace)
        and names.GO_AHEAD_ANNOTATION in a.obj["metadata"].get("annotations", {})
    ]


def deleted(stepped: Stepped) -> list[str]:
    actions = [*stepped.actions, *stepped.afterwards]
    return [a.obj["metadata"]["name"] for a in actions if isinstance(a, Delete)]


def outcomes(stepped: Stepped) -> dict[str, str]:
    actions = [*stepped.actions, *stepped.afterwards]
    return {
        a.obj["metadata"]["name"]: a.obj["metadata"]["annotations"][names.OUTCOME_ANNOTATION]
        for a in actions
        if isinstance(a, Replace) and a.resource == CONFIG_MAPS
    }


# --- which node (theirs: TestNodeToStartRevisionWith) ---------------------------------------------

ABC = [entry("a", 1), entry("b", 1), entry("c", 1)]


@pytest.mark.parametrize(
    ("entries", "kwargs", "expected"),
    [
        pytest.param([], {}, {}, id="no nodes: nothing to do (theirs: an error)"),
        pytest.param([entry("a"), entry("b")], {}, {"a": 2}, id="no pods: the first"),
        pytest.param(ABC, {"pods": ready("a", "b", "c")}, {"a": 2}, id="all ready: the first"),
        pytest.param(
            ABC,
            {"pods": ready("a", "b") | {"c": operand("c", 1, "crashing")}},
            {"c": 2},
            id="c crashes: c",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a", "b") | {"c": operand("c", 1, "pending")}},
            {"c": 2},
            id="c not ready: c",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a") | {n: operand(n, 1, "pending") for n in "bc"}},
            {"b": 2},
            id="b and c not ready: b",
        ),
        pytest.param(ABC, {"pods": ready("a")}, {"b": 2}, id="only a has a pod: b"),
        pytest.param(
            [entry("a", 1), entry("b", 1, 2), entry("c", 1)],
            {"pods": ready("a", "b", "c")},
            {"b": 2},
            id="b is on its way: b",
        ),
        pytest.param(
            [entry("a", 2), entry("b", 1), entry("c", 2)],
            {"pods": ready("a", "c", number=2) | ready("b")},
            {"b": 2},
            id="b is behind: b",
        ),
        pytest.param(
            [entry("a", 2), entry("b", 2)],
            {"pods": ready("a", "b", number=2)},
            {},
            id="all there: none",
        ),
        pytest.param(
            [entry("a", 3), entry("b", 1)],
            {"pods": ready("a", number=3) | ready("b")},
            {"b": 2},
            id="a is ahead (ours: it is never brought back to an older one)",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a", "b", "c"), "holder": "a_uid"},
            {"b": 2},
            id="ours: the leader is not the first",
        ),
        pytest.param(
            [entry("a", 1)],
            {"pods": ready("a"), "holder": "a_uid"},
            {"a": 2},
            id="ours: the leader, if it is the only one",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a", "b", "c"), "not_ready": ("a",)},
            {"b": 2},
            id="ours: a node that is not Ready is skipped",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a", "b", "c"), "not_ready": ("a", "b", "c")},
            {},
            id="ours: no node is Ready",
        ),
        pytest.param(
            [entry("a", 2), entry("b", 1)],
            {"pods": ready("b") | {"a": operand("a", 2, "pending")}},
            {},
            id="ours: the next waits until the first is Ready",
        ),
        pytest.param(
            [entry("a", 2), entry("b", 1)],
            {"pods": ready("b"), "not_ready": ("a",)},
            {"b": 2},
            id="ours: a node that went away after it moved does not hold up the rest",
        ),
        pytest.param(
            [entry("a", 1), entry("b", 1)],
            {"pods": ready("a", "b"), "installers": [installer("b", 1, SWAPPING)]},
            {},
            id="ours: nobody moves while an installer without a target still works",
        ),
        pytest.param(ABC, {"pods": ready("a", "b", "c"), "wanted": None}, {}, id="nothing wanted"),
    ],
)
def test_which_node_moves_next(
    entries: list[dict[str, Any]], kwargs: dict[str, Any], expected: dict[str, int]
) -> None:
    others = kwargs.pop("installers", [])
    stepped = take(entries, installers=[*others, *staged(*entries)], **kwargs)
    assert targets(stepped) == expected
    assert told(stepped) == [f"installer-2-{name}" for name in expected]


def staged(*entries: Mapping[str, Any], number: int = 2) -> list[dict[str, Any]]:
    """Installers of nodes that are behind: they said yes and wait."""
    return [
        installer(e["nodeName"], number, STAGED, go_ahead=False)
        for e in entries
        if e.get("currentRevision", 0) < number
    ]


# --- everybody says yes before anybody moves ------------------------------------------------------


def test_all_nodes_check_and_stage_at_once_and_none_has_its_go_ahead() -> None:
    stepped = take(ABC, pods=ready("a", "b", "c"))
    assert created(stepped) == ["installer-2-a", "installer-2-b", "installer-2-c"]
    assert told(stepped) == []
    assert targets(stepped) == {}


def test_a_single_node_has_nobody_to_wait_for() -> None:
    stepped = take([entry("a", 1)], pods=ready("a"))
    assert targets(stepped) == {"a": 2}
    assert created(stepped) == told(stepped) == ["installer-2-a"]
    assert stepped.afterwards, "after the status, which says whose turn it is"


@pytest.mark.parametrize(
    ("found", "waiting"),
    [
        ([], "the installer pod is starting"),
        (
            [installer("c", 2, {"phase": "Pending"}, go_ahead=False)],
            "the installer pod is starting",
        ),
        (
            [installer("c", 2, PREFLIGHT, go_ahead=False)],
            "kube-scheduler checks the configuration",
        ),
    ],
    ids=["no pod yet", "pending", "preflight"],
)
def test_nobody_moves_before_all_have_said_yes(found: list[dict[str, Any]], waiting: str) -> None:
    stepped = take(ABC, pods=ready("a", "b", "c"), installers=[*staged(*ABC[:2]), *found])
    assert targets(stepped) == {}
    assert told(stepped) == []
    assert stepped.waiting == {
        "a": "checked and staged, waiting for its turn",
        "b": "checked and staged, waiting for its turn",
        "c": waiting,
    }


def test_a_node_that_is_not_ready_is_not_asked() -> None:
    stepped = take(ABC, pods=ready("a", "b"), installers=staged(*ABC[:2]), not_ready=("c",))
    assert targets(stepped) == {"a": 2}
    assert created(stepped) == []
    assert stepped.waiting["c"] == "the node is not Ready"


def test_one_node_that_refuses_ends_the_revision_for_all() -> None:
    refusal = installer("b", 2, REFUSED, go_ahead=False)
    stepped = take(ABC, pods=ready("a", "b", "c"), installers=[*staged(ABC[0], ABC[2]), refusal])
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_REFUSED}
    assert targets(stepped) == {}
    assert sorted(deleted(stepped)) == ["installer-2-a", "installer-2-b", "installer-2-c"]


def test_an_installer_that_is_lost_before_its_turn_is_a_failed_attempt_without_a_target() -> None:
    lost = installer("c", 2, EVICTED, go_ahead=False)
    stepped = take(ABC, pods=ready("a", "b", "c"), installers=[*staged(*ABC[:2]), lost])
    c = stepped.entries[2]
    assert (c.target, c.failed_revision, c.failed_count) == (0, 2, 1)
    assert targets(stepped) == {}


@pytest.mark.parametrize(
    "last",
    [{}, {"terminated": {"exitCode": 1, "message": "no space left on device"}}],
    ids=["it has just begun", "its disk refused a moment ago"],
)
@pytest.mark.parametrize(("started", "moved"), [(False, {}), (True, {"a": 2})])
def test_only_a_node_that_has_staged_has_said_yes(
    last: dict[str, Any], moved: dict[str, int], *, started: bool
) -> None:
    pod = installer("c", 2, STAGED, go_ahead=False)
    check, running = STAGED["containerStatuses"]
    container = {**running, "lastState": last, "started": started}
    pod["status"] = {"phase": "Running", "containerStatuses": [check, container]}
    stepped = take(ABC, pods=ready("a", "b", "c"), installers=[*staged(*ABC[:2]), pod])
    assert targets(stepped) == moved
    if not moved:
        words = f": {last['terminated']['message']}" if last else ""
        assert stepped.waiting["c"] == f"the revision is put on the node's disk{words}"


def test_the_others_prepare_while_one_moves() -> None:
    entries = [entry("a", 1, 2), entry("b", 1), entry("c", 1)]
    stepped = take(entries, pods=ready("a", "b", "c"), installers=[installer("a", 2, SWAPPING)])
    assert created(stepped) == ["installer-2-b", "installer-2-c"]
    assert told(stepped) == []


def test_the_next_is_told_in_the_very_pass_in_which_the_first_is_done() -> None:
    entries = [entry("a", 1, 2), entry("b", 1), entry("c", 1)]
    done = installer("a", 2, result(Verdict.INSTALLED, "a", 2, 2))
    pods = ready("a", number=2) | ready("b", "c")
    stepped = take(entries, pods=pods, installers=[done, *staged(*entries[1:])])
    assert targets(stepped) == {"b": 2}
    assert told(stepped) == ["installer-2-b"]


def test_nobody_is_told_when_the_first_failed() -> None:
    entries = [entry("a", 1, 2), entry("b", 1)]
    failed = installer("a", 2, result(Verdict.ROLLED_BACK, "a", 2, 1, reason="not ready"))
    stepped = take(entries, pods=ready("a", "b"), installers=[failed, *staged(entries[1])])
    assert targets(stepped) == {}
    assert told(stepped) == []
    assert deleted(stepped) == ["installer-2-b"]


def test_a_go_ahead_that_got_lost_is_given_again() -> None:
    stepped = on_its_way(installer("a", 2, STAGED, go_ahead=False))
    assert told(stepped) == ["installer-2-a"]
    assert targets(stepped) == {"a": 2}


def test_staged_pods_of_an_older_revision_make_room_at_once() -> None:
    old = [entry("a", 1), entry("b", 1)]
    stepped = take(old, wanted=3, pods=ready("a", "b"), revisions=NEWER, installers=staged(*old))
    assert created(stepped) == ["installer-3-a", "installer-3-b"]
    assert deleted(stepped) == ["installer-2-a", "installer-2-b"]


def test_a_staged_pod_of_a_node_that_runs_the_revision_already_is_taken_away() -> None:
    entries = [entry("a", 2), entry("b", 1)]
    found = [installer("a", 2, STAGED, go_ahead=False), *staged(entries[1])]
    stepped = take(entries, pods=ready("a", number=2) | ready("b"), installers=found)
    assert deleted(stepped) == ["installer-2-a"]


# --- the order of whole rollouts ------------------------------------------------------------------


def drive(
    latest: int,
    currents: list[int],
    states: list[str],
    b: Mapping[str, Any] | None = None,
    b_shows: int = 0,
) -> tuple[str, list[int]]:
    """Whole rollouts in which every installer succeeds: nodes in their order, and which attempt.

    Args:
        latest: the newest revision.
        currents: what every node has reached.
        states: of their schedulers: ready, pending, or none for no pod.
        b: more of node b's entry, for example its target.
        b_shows: the revision of node b's pod, if it is not the one that it has reached.
    """
    nodes = "abc"[: len(currents)]
    entries = [entry(n, current) for n, current in zip(nodes, currents, strict=True)]
    entries = [{**e, **(b or {})} if e["nodeName"] == "b" else e for e in entries]
    shown = dict(zip(nodes, currents, strict=True))
    shown["b"] = b_shows or shown.get("b", 0)
    health = dict(zip(nodes, states, strict=True))
    history = [revision(n, names.OUTCOME_INSTALLED) for n in range(1, latest)] + [revision(latest)]
    found: dict[str, dict[str, Any]] = {}
    order, attempts = "", []
    for _ in range(20):
        pods = {n: operand(n, shown[n], health[n]) for n in nodes if health[n] != "none"}
        seen = list(found.values())
        stepped = take(entries, wanted=latest, pods=pods, installers=seen, revisions=history)
        for name in created(stepped):
            of, retry = name.rpartition("-")[2], _retry(name)
            found[of] = installer(of, latest, STAGED, go_ahead=False, retry=retry)
        for name in told(stepped):
            moved, retry = name.rpartition("-")[2], _retry(name)
            order += moved
            attempts.append(retry)
            shown[moved], health[moved] = latest, "ready"
            done = result(Verdict.INSTALLED, moved, latest, retry=retry)
            found[moved] = installer(moved, latest, done, retry=retry)
        entries = [write_entry(e) for e in stepped.entries]
    return order, attempts


def _retry(name: str) -> int:
    parts = name.split("-")
    return int(parts[3]) if parts[2] == "retry" else 0


def failed(times: int) -> dict[str, Any]:
    """A node that is on its way to revision 2 and failed before, long ago."""
    record = {"lastFailedRevision": 2, "lastFailedCount": times, "lastFailedTime": BEFORE}
    return {"targetRevision": 2, **record}


READY = ["ready"] * 3


# Theirs: TestCreateInstallerPodMultiNode, in the order of its rows; docs/reference-cases.md has
# those that cannot be told here.
@pytest.mark.parametrize(
    ("rollout", "order", "attempts"),
    [
        ((1, [0, 0, 0], ["none"] * 3), "abc", [0, 0, 0]),
        ((2, [1, 1, 1], READY), "abc", [0, 0, 0]),
        ((2, [1, 1, 1], READY, {"targetRevision": 2}), "bac", [0, 0, 0]),
        ((3, [1, 2, 1], READY, {"targetRevision": 3}), "bac", [0, 0, 0]),
        ((2, [1, 1, 1], READY, failed(1), 2), "bac", [1, 0, 0]),
        ((3, [2, 2, 2], ["none", "ready", "ready"]), "abc", [0, 0, 0]),
        ((2, [1, 1, 1], ["ready", "pending", "ready"]), "bac", [0, 0, 0]),
        ((2, [1, 1, 1], READY, failed(10)), "bac", [10, 0, 0]),
        ((2, [1, 1, 1], READY, failed(1)), "bac", [1, 0, 0]),
        ((2, [1, 1, 1], READY, failed(10), 2), "bac", [10, 0, 0]),
        ((2, [1, 1, 1], ["ready", "pending", "ready"], failed(10), 2), "bac", [10, 0, 0]),
        ((2, [1, 1, 1], ["ready", "pending", "pending"]), "bca", [0, 0, 0]),
        ((3, [1, 2, 1], ["ready", "pending", "ready"]), "bac", [0, 0, 0]),
        ((5, [4, 1, 1], READY), "bca", [0, 0, 0]),
        ((3, [3, 1, 1], READY), "bc", [0, 0]),
        ((3, [3, 2, 1], READY), "cb", [0, 0]),
        ((3, [2, 2, 2], ["ready", "pending", "pending"], None, 1), "bca", [0, 0, 0]),
    ],
    ids=str,
)
def test_order_of_a_whole_rollout(
    rollout: tuple[Any, ...], order: str, attempts: list[int]
) -> None:
    assert drive(*rollout) == (order, attempts)


def test_a_node_that_evidently_runs_the_revision_does_not_move() -> None:
    # Theirs: row 6, in which it is installed once more.
    assert drive(2, [1, 1, 1], READY, {"lastFailedRevision": 2}, 2) == ("ac", [0, 0])


# --- a node on its way (theirs: TestNewNodeStateForInstallInProgress) -----------------------------


def on_its_way(*installers: dict[str, Any], **kwargs: Any) -> Stepped:
    """Node a between revisions 1 and 2."""
    fields = kwargs.pop("fields", {})
    kwargs.setdefault("pods", ready("a"))
    return take([entry("a", 1, 2, **fields)], installers=list(installers), **kwargs)


def written(stepped: Stepped) -> tuple[int, int, int, int, int, str]:
    e = stepped.entries[0]
    return e.current, e.target, e.failed_revision, e.failed_count, e.fallback_count, e.failed_reason


@pytest.mark.parametrize(
    ("found", "waiting"),
    [
        (
            installer("a", 2, {"phase": "Pending", "message": "creating containers"}),
            "the installer pod is starting: creating containers",
        ),
        (installer("a", 2, {"phase": "Pending"}), "the installer pod is starting"),
        (installer("a", 2, PREFLIGHT), "kube-scheduler checks the configuration"),
        (installer("a", 2, SWAPPING), "the scheduler is being swapped"),
    ],
    ids=["pending with a message", "pending", "preflight", "swapping"],
)
def test_an_installer_that_works_is_waited_for(found: dict[str, Any], waiting: str) -> None:
    stepped = on_its_way(found)
    assert written(stepped) == (1, 2, 0, 0, 0, "")
    assert stepped.waiting == {"a": waiting}
    assert not stepped.actions
    assert stepped.requeue_after is not None, "being late becomes a condition"


def test_a_missing_installer_is_created_and_that_is_no_failure() -> None:
    stepped = on_its_way()
    assert created(stepped) == ["installer-2-a"]
    assert written(stepped) == (1, 2, 0, 0, 0, "")


def test_the_installer_pod_is_for_the_revision_and_belongs_to_it() -> None:
    (action,) = on_its_way().actions
    pod = action.obj
    assert pod["spec"]["nodeName"] == "a"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "uid-2"
    assert pod["spec"]["containers"][0]["image"] == "k:v1"
    assert "--revision=2" in pod["spec"]["containers"][1]["args"]
    assert "--content-hash=hash-2" in pod["spec"]["containers"][1]["args"]


def test_an_evicted_installer_is_a_failed_attempt() -> None:
    stepped = on_its_way(installer("a", 2, EVICTED))
    assert written(stepped) == (1, 2, 2, 1, 0, names.REASON_INSTALLER_FAILED)
    assert "bla bla OOM bla bla" in stepped.entries[0].failed_errors[0]
    assert stepped.entries[0].failed_time == rfc3339(NOW)


def test_a_failed_retry_counts_on_and_replaces_the_errors() -> None:
    fields = {
        "lastFailedRevision": 2,
        "lastFailedCount": 2,
        "lastFailedTime": BEFORE,
        "lastFailedRevisionErrors": ["old"],
    }
    stepped = on_its_way(installer("a", 2, EVICTED, retry=2), fields=fields)
    assert written(stepped)[3] == 3
    assert "old" not in stepped.entries[0].failed_errors


INSTALLED = result(Verdict.INSTALLED, "a", 2, 2, steps={"ready": 1.5})


@pytest.mark.parametrize(
    "pods",
    [{}, ready("a"), {"a": operand("a", 2, "pending")}],
    ids=["no mirror pod", "mirror pod of the old revision", "not Ready"],
)
def test_an_installed_revision_counts_only_when_the_api_agrees(pods: dict[str, Any]) -> None:
    stepped = on_its_way(installer("a", 2, INSTALLED), pods=pods)
    assert written(stepped) == (1, 2, 0, 0, 0, "")
    assert stepped.requeue_after == 2.0
    assert outcomes(stepped) == {}


def test_an_installed_revision_that_is_ready_becomes_current_and_good() -> None:
    fields = {"lastFailedRevision": 2, "lastFailedCount": 1, "lastFailedTime": BEFORE}
    pods = ready("a", number=2)
    stepped = on_its_way(installer("a", 2, INSTALLED, retry=1), pods=pods, fields=fields)
    assert written(stepped) == (2, 0, 0, 0, 0, "")
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_INSTALLED}
    assert stepped.afterwards, "after the status, which is the promise"
    assert "ready 1.5 s" in stepped.events[0].message


def test_a_scheduler_that_crashes_before_it_counted_condemns_the_revision() -> None:
    pods = {"a": operand("a", 2, "crashing", restarts=3)}
    stepped = on_its_way(installer("a", 2, INSTALLED), pods=pods)
    assert written(stepped) == (1, 0, 2, 1, 0, names.REASON_OPERAND_FAILED)
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_FAILED}
    assert "segfault" in stepped.entries[0].failed_errors[0]


def test_a_scheduler_that_stays_not_ready_condemns_the_revision() -> None:
    pods = {"a": operand("a", 2, "pending")}
    stepped = on_its_way(installer("a", 2, INSTALLED, ended_ago=61), pods=pods)
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_FAILED}


def test_a_scheduler_that_is_never_shown_is_installed_again() -> None:
    stepped = on_its_way(installer("a", 2, INSTALLED, ended_ago=61))
    assert written(stepped) == (1, 2, 2, 1, 0, names.REASON_OPERAND_FAILED)
    assert outcomes(stepped) == {}


def test_a_node_that_went_away_is_not_judged() -> None:
    pods = {"a": operand("a", 2, "pending")}
    stepped = on_its_way(installer("a", 2, INSTALLED, ended_ago=600), pods=pods, not_ready=("a",))
    assert written(stepped) == (1, 2, 0, 0, 0, "")


def test_a_rolled_back_revision_is_over_everywhere() -> None:
    rolled_back = result(Verdict.ROLLED_BACK, "a", 2, 1, reason="not ready", last_words="boom")
    stepped = on_its_way(installer("a", 2, rolled_back))
    assert written(stepped) == (1, 0, 2, 0, 1, names.REASON_OPERAND_FALLBACK)
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_FAILED}
    assert stepped.entries[0].failed_errors == (
        'revision 2 failed on node "a": not ready: boom; revision 1 runs again',
    )


def test_back_on_the_stock_manifest_is_said_in_words() -> None:
    rolled_back = result(Verdict.ROLLED_BACK, "a", 2, 0, reason="not ready")
    stepped = on_its_way(installer("a", 2, rolled_back))
    assert stepped.entries[0].failed_errors[0].endswith("not ready; the stock one runs again")


def test_when_neither_gets_healthy_the_node_is_to_blame() -> None:
    unhealthy = result(Verdict.UNHEALTHY, "a", 2, 1, reason="nothing is ready")
    stepped = on_its_way(installer("a", 2, unhealthy))
    assert written(stepped) == (1, 2, 2, 1, 0, names.REASON_OPERAND_FAILED)
    assert outcomes(stepped) == {}


def test_when_it_fell_back_to_a_failed_revision_the_new_one_is_to_blame_as_well() -> None:
    unhealthy = result(Verdict.UNHEALTHY, "a", 2, 1, reason="nothing is ready")
    history = [revision(1, names.OUTCOME_FAILED), revision(2)]
    stepped = on_its_way(installer("a", 2, unhealthy), revisions=history)
    assert written(stepped)[:3] == (1, 0, 2)
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_FAILED}


def test_a_node_that_knows_a_newer_revision_is_not_asked_again_at_once() -> None:
    superseded = result(Verdict.SUPERSEDED, "a", 2, 7, reason="revision 7 is on this node")
    stepped = on_its_way(installer("a", 2, superseded))
    assert written(stepped)[:4] == (1, 2, 2, 1)


TOLD_LONG_AGO = {
    "conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": BEFORE}]
}


def test_a_node_that_stays_away_has_lost_its_turn_and_its_pod_before_another_is_told() -> None:
    waiting = installer("b", 2, STAGED, go_ahead=False)
    entries = [entry("a", 1, 2), entry("b", 1)]
    away = {"a": {**node("a"), "status": TOLD_LONG_AGO}, "b": node("b")}
    pods = ready("b")

    first = take(
        entries,
        installers=[installer("a", 2, STAGED), waiting],
        nodes=away,
        not_ready=("a",),
        pods=pods,
    )
    assert (targets(first), deleted(first), told(first)) == ({}, ["installer-2-a"], [])

    going = installer("a", 2, STAGED, deletionTimestamp=BEFORE)
    second = take(
        [entry("a", 1), entry("b", 1)], installers=[going, waiting], nodes=away, pods=pods
    )
    assert (targets(second), deleted(second), told(second)) == ({"b": 2}, [], ["installer-2-b"])

    back = {"a": node("a"), "b": node("b")}
    third = take([entry("a", 1), entry("b", 1)], installers=[going, waiting], nodes=back, pods=pods)
    assert targets(third) == {}, "it may swap until its pod is gone"


def test_a_refused_revision_touches_no_node_and_leaves_no_failure_behind() -> None:
    stepped = on_its_way(installer("a", 2, REFUSED))
    assert written(stepped) == (1, 0, 0, 0, 0, "")
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_REFUSED}
    assert deleted(stepped) == ["installer-2-a"]


def test_a_refusal_of_what_runs_elsewhere_is_the_nodes_problem() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED), revision(2, names.OUTCOME_INSTALLED)]
    stepped = on_its_way(installer("a", 2, REFUSED), revisions=history)
    assert written(stepped)[:4] == (1, 2, 2, 1)
    assert outcomes(stepped) == {}


NEWER = [revision(1, names.OUTCOME_INSTALLED), revision(2), revision(3)]


@pytest.mark.parametrize(
    "found",
    [
        installer("a", 2, {"phase": "Pending"}),
        installer("a", 2, PREFLIGHT),
        installer("a", 2, REFUSED),
        installer("a", 2, EVICTED),
    ],
    ids=["pending", "preflight", "refused", "evicted"],
)
def test_a_newer_revision_overtakes_one_that_has_not_begun(found: dict[str, Any]) -> None:
    stepped = on_its_way(found, wanted=3, revisions=NEWER)
    assert written(stepped)[:2] != (1, 2)
    assert deleted(stepped) == ([] if found["status"] == EVICTED else ["installer-2-a"])
    gone = take([entry("a", 1)], pods=ready("a"), wanted=3, revisions=NEWER)
    assert targets(gone) == {"a": 3}


def test_a_swap_is_never_interrupted() -> None:
    # Theirs replaces the target at any time; ours could leave an unproven scheduler unwatched.
    stepped = on_its_way(installer("a", 2, SWAPPING), wanted=3, revisions=NEWER)
    assert written(stepped) == (1, 2, 0, 0, 0, "")
    assert deleted(stepped) == []


def test_an_installer_that_crashes_can_be_overtaken() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    last = {"terminated": {"exitCode": 1, "message": "disk full"}}
    status = {
        "phase": "Running",
        "containerStatuses": [{"name": names.INSTALLER, "state": waiting, "lastState": last}],
    }
    stepped = on_its_way(installer("a", 2, status), wanted=3, revisions=NEWER)
    assert targets(stepped) == {}
    assert deleted(stepped) == ["installer-2-a"]


def test_the_result_of_an_overtaken_installer_still_counts() -> None:
    stepped = on_its_way(
        installer("a", 2, INSTALLED), pods=ready("a", number=2), wanted=3, revisions=NEWER
    )
    assert written(stepped)[0] == 2


def test_a_target_that_became_bad_is_given_up() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED), revision(2, names.OUTCOME_FAILED)]
    stepped = on_its_way(installer("a", 2, PREFLIGHT), wanted=None, revisions=history)
    assert targets(stepped) == {}
    assert deleted(stepped) == ["installer-2-a"]


def test_a_pod_that_is_going_is_waited_for() -> None:
    leaving = installer("a", 2, PREFLIGHT, deletionTimestamp=BEFORE)
    stepped = on_its_way(leaving)
    assert created(stepped) == []
    assert stepped.waiting == {"a": "installer-2-a is being stopped"}


def test_a_revision_that_lost_its_copies_is_not_installed() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED), revision(2, copies={})]
    stepped = on_its_way(revisions=history)
    assert created(stepped) == []
    assert "has lost config-2, kube-scheduler-pod-2" in stepped.waiting["a"]


def test_pods_of_a_machine_that_was_replaced_are_taken_away_and_not_believed() -> None:
    stale = installer("a", 2, INSTALLED, age=7200)
    stepped = on_its_way(stale, pods={})
    assert targets(stepped) == {"a": 2}
    assert deleted(stepped) == ["installer-2-a"]
    assert created(stepped) == [], "its name is taken until it has gone"


# --- waiting between attempts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "wait"),
    [
        (1, 15.0),
        (2, 22.5),
        (5, 75.9375),
        (10, 576.650390625),
        (11, 600.0),
        (51, 600.0),
        (10**6, 600.0),
    ],
)
def test_back_off_grows_to_its_limit_and_does_not_overflow(failures: int, wait: float) -> None:
    # Theirs overflows at 51 failures and then retries without any wait.
    fields = {"lastFailedRevision": 2, "lastFailedCount": failures}
    fields["lastFailedTime"] = rfc3339(NOW)
    stepped = on_its_way(fields=fields)
    assert created(stepped) == []
    assert stepped.requeue_after == pytest.approx(wait)
    begin = rfc3339(NOW + timedelta(seconds=wait))
    assert stepped.waiting == {"a": f"attempt {failures + 1} begins at {begin}"}


def test_after_the_wait_the_next_attempt_has_its_own_pod() -> None:
    fields = {"lastFailedRevision": 2, "lastFailedCount": 1}
    fields["lastFailedTime"] = rfc3339(NOW - timedelta(seconds=15))
    stepped = on_its_way(installer("a", 2, EVICTED), fields=fields)
    assert created(stepped) == ["installer-2-retry-1-a"]


# --- what already runs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "restarts", "expected"),
    [
        pytest.param(60, 3, {"revision-status-1": names.OUTCOME_FAILED}, id="young"),
        pytest.param(60, 2, {}, id="not often enough"),
        pytest.param(601, 3, {}, id="old: something else is to blame"),
    ],
)
def test_a_crash_loop_is_the_revisions_fault_while_it_is_young(
    age: float, restarts: int, expected: dict[str, str]
) -> None:
    history = [revision(1, names.OUTCOME_INSTALLED, rfc3339(NOW - timedelta(seconds=age)))]
    pods = {"a": operand("a", 1, "crashing", restarts)}
    stepped = take([entry("a", 1)], wanted=1, pods=pods, revisions=history)
    assert outcomes(stepped) == expected


@pytest.mark.parametrize(
    ("answered", "ended_ago", "blamed"),
    [
        pytest.param(None, 1.0, False, id="the API server does not answer"),
        pytest.param(20.0, 30.0, False, id="it ended while the API server was away"),
        pytest.param(20.0, 6.0, False, id="it ended a moment later"),
        pytest.param(20.0, 4.0, True, id="it ended again, and nothing explains that"),
    ],
)
def test_who_ends_because_the_api_server_is_away_is_not_blamed(
    answered: float | None, ended_ago: float, *, blamed: bool
) -> None:
    since = NOW - timedelta(seconds=answered) if answered else None
    history = [revision(1, names.OUTCOME_INSTALLED, rfc3339(NOW))]
    pods = {"a": operand("a", 1, "crashing", 5, ended_ago)}
    stepped = take([entry("a", 1)], wanted=1, pods=pods, revisions=history, answered_since=since)
    assert bool(outcomes(stepped)) == blamed


def test_an_installed_revision_has_its_time_after_an_outage() -> None:
    pods = {"a": operand("a", 2, "pending")}
    found = installer("a", 2, INSTALLED, ended_ago=70)
    for seconds, state in ((74, (1, 2)), (75, (1, 0))):
        since = NOW - timedelta(seconds=seconds)
        stepped = on_its_way(found, pods=pods, answered_since=since)
        assert written(stepped)[:2] == state
        assert bool(outcomes(stepped)) == (state == (1, 0))


def test_an_installed_revision_that_the_kubelet_keeps_waiting_is_not_late() -> None:
    pods = {"a": operand("a", 2, "crashing", 5, ended_ago=200)}
    found = installer("a", 2, INSTALLED, ended_ago=300)
    stepped = on_its_way(found, pods=pods, answered_since=NOW - timedelta(seconds=190))
    assert written(stepped)[:2] == (1, 2)
    assert outcomes(stepped) == {}


def test_nobody_gets_the_turn_while_schedulers_may_still_end_of_an_outage() -> None:
    recovered = NOW - timedelta(seconds=5)
    given = {"answered_since": recovered, "recovered_at": recovered}
    staged = [installer(name, 2, STAGED, go_ahead=False) for name in "ab"]
    entries, pods = [entry("a", 1), entry("b", 1)], ready("a", "b")
    stepped = take(entries, pods=pods, installers=staged, **given)
    assert targets(stepped) == {}
    assert stepped.requeue_after == pytest.approx(10.0)
    assert "the API server was away until" in stepped.waiting["a"]
    chosen = take([entry("a", 1, 2), entry("b", 1)], pods=pods, installers=staged, **given)
    assert targets(chosen) == {}, "a turn that was not taken is given back"
    away = take(entries, pods=pods, installers=staged, answered_since=None)
    assert away.waiting["a"] == "the API server does not answer"


def test_two_nodes_that_crash_make_one_verdict() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED, rfc3339(NOW))]
    pods = {n: operand(n, 1, "crashing", 3) for n in "ab"}
    stepped = take([entry("a", 1), entry("b", 1)], wanted=1, pods=pods, revisions=history)
    assert len(stepped.actions) == 1


def test_a_node_that_runs_a_known_revision_is_acknowledged() -> None:
    stepped = take([entry("a")], pods=ready("a", number=2))
    assert written(stepped)[:2] == (2, 0)


@pytest.mark.parametrize(
    ("pod", "history"),
    [
        (operand("a", 2, "pending"), None),
        (operand("a", 2), [revision(2, hash="another")]),
        (operand("a", 2), [revision(2, names.OUTCOME_FAILED)]),
        (operand("a", 2), [revision(2, ready=False)]),
        (operand("a", 9), [revision(2)]),
    ],
    ids=["not Ready", "other content", "failed", "not complete", "unknown"],
)
def test_nothing_else_is_acknowledged(pod: dict[str, Any], history: list[Revision] | None) -> None:
    stepped = take([entry("a")], wanted=None, pods={"a": pod}, revisions=history)
    assert written(stepped)[:2] == (0, 0)


def test_a_scheduler_is_acknowledged_only_after_the_settling_time() -> None:
    pod = operand("a", 2)
    pod["status"]["conditions"][0]["lastTransitionTime"] = rfc3339(NOW - timedelta(seconds=1))
    stepped = take([entry("a")], wanted=None, pods={"a": pod})
    assert written(stepped)[:2] == (0, 0)
    assert stepped.requeue_after == pytest.approx(4.0)


def test_revisions_that_were_overtaken_are_marked() -> None:
    stepped = take([entry("a", 1)], wanted=3, pods=ready("a"), revisions=NEWER)
    assert outcomes(stepped) == {"revision-status-2": names.OUTCOME_SUPERSEDED}


def test_a_revision_that_is_not_complete_yet_overtakes_nothing() -> None:
    history = [*NEWER[:2], revision(3, ready=False)]
    stepped = take([entry("a", 1)], wanted=2, pods=ready("a"), revisions=history)
    assert outcomes(stepped) == {}


def test_a_node_that_comes_or_goes_is_the_only_change_of_its_write() -> None:
    stepped = take([entry("a", 1)], nodes={"a": node("a"), "b": node("b")})
    assert [(e.node, e.current, e.target) for e in stepped.entries] == [("a", 1, 0), ("b", 0, 0)]
    assert stepped.requeue_after == 0.1


def test_unfinished_installer_pods_that_nobody_waits_for_are_deleted_and_finished_ones_kept() -> (
    None
):
    installers = [
        installer("a", 1, PREFLIGHT),
        installer("a", 7, INSTALLED),
        installer("a", 8, EVICTED),
        installer("a", 9, SWAPPING),
    ]
    stepped = take([entry("a", 2)], pods=ready("a", number=2), installers=installers)
    assert deleted(stepped) == ["installer-1-a"]


@pytest.mark.parametrize(
    ("currents", "latest", "expected"),
    [
        ([], 2, ""),
        ([2], 2, "1 node is at revision 2"),
        ([2, 2], 2, "2 nodes are at revision 2"),
        ([1, 2, 2], 2, "1 node is at revision 1; 2 nodes are at revision 2"),
        ([1, 1], 2, "2 nodes are at revision 1; 0 nodes have achieved new revision 2"),
        ([0], 0, "1 node is at revision 0"),
    ],
)
def test_description_in_the_references_words(
    currents: list[int], latest: int, expected: str
) -> None:
    entries = take([entry(f"n{i}", c) for i, c in enumerate(currents)], wanted=None).entries
    assert describe(entries, latest) == expected


def test_content_of_a_fixture_is_what_a_revision_has() -> None:
    assert set(Content(PARTS).parts) == {names.CONFIG, names.POD}
