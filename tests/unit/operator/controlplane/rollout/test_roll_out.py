"""The rollout step: rows of the reference (installer controller) and our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.kube.resource import CONFIG_MAPS
from kube_scheduler_operator.node.protocol.disk_report import DiskReport
from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.operator.controlplane.node_pods import installer_pod_name
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.controlplane.revision.history import Revision
from kube_scheduler_operator.operator.controlplane.revision.revise import RevisionResult
from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import (
    describe,
    write_node_status,
)
from kube_scheduler_operator.operator.controlplane.rollout.observe import observe
from kube_scheduler_operator.operator.controlplane.rollout.roll_out import roll_out
from kube_scheduler_operator.operator.controlplane.rollout.rollout_step import RolloutStep
from kube_scheduler_operator.operator.model.operand_pods import Disks, NodeDisk
from kube_scheduler_operator.operator.model.plan import Create, Delete, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .....builders import (
    RUNNING,
    installer_pod,
    installer_status,
    kubescheduler,
    node,
    node_status,
    operand_pod,
    ready_condition,
    terminated,
)

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


PREFLIGHT = installer_status("Running", RUNNING, RUNNING)
REFUSED = installer_status("Running", terminated(1, "no such plugin"), RUNNING)
SWAPPING = installer_status("Running", terminated(0), RUNNING)
STAGED = installer_status("Running", terminated(0), RUNNING, started=True)
HELD_BY_NONE = {"spec": {"holderIdentity": ""}}
HELD_BY_A = {"spec": {"holderIdentity": "a_uid"}}
EVICTED = {"phase": "Failed", "message": "bla bla OOM bla bla"}


def operand(
    node: str, number: int, state: str = "ready", restarts: int = 0, ended_ago: float = 1.0
) -> dict[str, Any]:
    """A mirror pod; `state`: ready, pending or crashing."""
    status: dict[str, Any] = {"restartCount": restarts}
    if state == "crashing":
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        status["lastState"] = terminated(1, "segfault", rfc3339(NOW - timedelta(seconds=ended_ago)))
    annotations = {names.CONTENT_HASH_ANNOTATION: f"hash-{number}"} if number else {}
    return operand_pod(
        node, number, is_ready=state == "ready", since=BEFORE, annotations=annotations, **status
    )


def installer(
    node: str,
    number: int,
    status: Mapping[str, Any] | Result,
    *,
    retry: int = 0,
    permission: bool = True,
    age: float = 10.0,
    ended_ago: float = 1.0,
    **metadata: Any,
) -> dict[str, Any]:
    """An installer pod with a status, or one that has ended with a result."""
    if isinstance(status, Result):
        at = rfc3339(NOW - timedelta(seconds=ended_ago))
        status = installer_status("Succeeded", None, terminated(0, status.serialise(), at))
    return installer_pod(
        node,
        number,
        status,
        name=installer_pod_name(node, number, retry),
        permission=names.PERMISSION_GRANTED if permission else None,
        created=rfc3339(NOW - timedelta(seconds=age)),
        **metadata,
    )


def ended(
    outcome: InstallerOutcome, node: str, number: int, last_good: int = 1, **fields: Any
) -> Result:
    return Result(outcome, number, node, last_good, **fields)


def step(
    entries: list[dict[str, Any]],
    *,
    desired: int | None = 2,
    pods: Mapping[str, dict[str, Any]] | None = None,
    installers: list[dict[str, Any]] | None = None,
    revisions: list[Revision] | None = None,
    not_ready: tuple[str, ...] = (),
    disks: Disks | None = None,
    **observed: Any,
) -> RolloutStep:
    """One rollout step of a cluster whose nodes have these statuses.

    Args:
        disks: what is known of disks besides the results of installers.
        observed: further fields of the snapshot.
    """
    history = tuple(revisions or [revision(1, names.OUTCOME_INSTALLED), revision(2)])
    chosen = next((r for r in history if r.number == desired), None)
    raw = [{"nodeUID": f"node-{entry['nodeName']}", **entry} for entry in entries]
    found = {
        entry["nodeName"]: node(
            entry["nodeName"],
            ready_condition(None if entry["nodeName"] in not_ready else True),
            created=BEFORE,
        )
        for entry in entries
    }
    snapshot = Snapshot(
        now=NOW,
        settings=Settings(),
        kubescheduler=kubescheduler({"nodeStatuses": raw}),
        config_maps={r.status["metadata"]["name"]: r.status for r in history},
        operand_pods=dict(pods or {}),
        installer_pods=by_name(*(installers or ())),
        **{"platform": KUBEADM, "nodes": found, "operand_lease": HELD_BY_NONE, **observed},
    )
    latest = max(r.number for r in history)
    observation = observe(snapshot)
    observation = replace(observation, disks={**observation.disks, **(disks or {})})
    revised = RevisionResult((), latest, chosen, history=history)
    return roll_out(snapshot, revised, observation)


def on_disk(*nodes: str, number: int, ago: float = 1.0, **fields: Any) -> dict[str, NodeDisk]:
    """What guards found on disks that were created after their schedulers."""
    begun = NOW - timedelta(seconds=ago)
    return {name: NodeDisk(number, labelled=number, begun=begun, **fields) for name in nodes}


def ready(*nodes: str, number: int = 1) -> dict[str, dict[str, Any]]:
    return {name: operand(name, number) for name in nodes}


def targets(result: RolloutStep) -> dict[str, int]:
    return {e.node: e.target for e in result.node_statuses if e.target}


def created(result: RolloutStep) -> list[str]:
    actions = [*result.actions, *result.afterwards]
    return [a.obj["metadata"]["name"] for a in actions if isinstance(a, Create)]


def permitted(result: RolloutStep) -> list[str]:
    """Installer pods that get permission to roll out."""
    return [
        a.obj["metadata"]["name"]
        for a in [*result.actions, *result.afterwards]
        if isinstance(a, Create | Replace)
        and names.PERMISSION_ANNOTATION in a.obj["metadata"].get("annotations", {})
    ]


def deleted(result: RolloutStep) -> list[str]:
    actions = [*result.actions, *result.afterwards]
    return [a.obj["metadata"]["name"] for a in actions if isinstance(a, Delete)]


def outcomes(result: RolloutStep) -> dict[str, str]:
    actions = [*result.actions, *result.afterwards]
    return {
        a.obj["metadata"]["name"]: a.obj["metadata"]["annotations"][names.OUTCOME_ANNOTATION]
        for a in actions
        if isinstance(a, Replace) and a.resource == CONFIG_MAPS
    }


# --- the next node (as TestNodeToStartRevisionWith) -----------------------------------------------

ABC = [node_status("a", 1), node_status("b", 1), node_status("c", 1)]


@pytest.mark.parametrize(
    ("entries", "kwargs", "expected"),
    [
        pytest.param([], {}, {}, id="no nodes: no writes (reference: an error)"),
        pytest.param([node_status("a"), node_status("b")], {}, {"a": 2}, id="no pods: the first"),
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
            [node_status("a", 1), node_status("b", 1, 2), node_status("c", 1)],
            {"pods": ready("a", "b", "c")},
            {"b": 2},
            id="b is moving: b",
        ),
        pytest.param(
            [node_status("a", 2), node_status("b", 1), node_status("c", 2)],
            {"pods": ready("a", "c", number=2) | ready("b")},
            {"b": 2},
            id="b is behind: b",
        ),
        pytest.param(
            [node_status("a", 2), node_status("b", 2)],
            {"pods": ready("a", "b", number=2)},
            {},
            id="all at the revision: none",
        ),
        pytest.param(
            [node_status("a", 3), node_status("b", 1)],
            {"pods": ready("a", number=3) | ready("b")},
            {"b": 2},
            id="a is ahead (not in the reference: never moved to an older one)",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a", "b", "c"), "operand_lease": HELD_BY_A},
            {"b": 2},
            id="added: the leader is not the first",
        ),
        pytest.param(
            [node_status("a", 1)],
            {"pods": ready("a"), "operand_lease": HELD_BY_A},
            {"a": 2},
            id="added: the leader, if it is the only one",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a", "b", "c"), "not_ready": ("a",)},
            {"b": 2},
            id="added: a node that is not Ready is skipped",
        ),
        pytest.param(
            ABC,
            {"pods": ready("a", "b", "c"), "not_ready": ("a", "b", "c")},
            {},
            id="added: no node is Ready",
        ),
        pytest.param(
            [node_status("a", 2), node_status("b", 1)],
            {"pods": ready("b") | {"a": operand("a", 2, "pending")}},
            {},
            id="added: the next waits until the first is Ready",
        ),
        pytest.param(
            [node_status("a", 2), node_status("b", 1)],
            {"pods": ready("b"), "not_ready": ("a",)},
            {"b": 2},
            id="added: a node that disappeared after it moved does not block the others",
        ),
        pytest.param(
            [node_status("a", 1), node_status("b", 1)],
            {"pods": ready("a", "b"), "installers": [installer("b", 1, SWAPPING)]},
            {},
            id="added: no node moves while an installer without a target still works",
        ),
        pytest.param(
            ABC, {"pods": ready("a", "b", "c"), "desired": None}, {}, id="nothing desired"
        ),
    ],
)
def test_which_node_moves_next(
    entries: list[dict[str, Any]], kwargs: dict[str, Any], expected: dict[str, int]
) -> None:
    others = kwargs.pop("installers", [])
    result = step(entries, installers=[*others, *staged(*entries)], **kwargs)
    assert targets(result) == expected
    assert permitted(result) == [f"installer-2-{name}" for name in expected]


def staged(*entries: Mapping[str, Any], number: int = 2) -> list[dict[str, Any]]:
    """Installers of nodes that are behind: staged and waiting."""
    return [
        installer(e["nodeName"], number, STAGED, permission=False)
        for e in entries
        if e.get("currentRevision", 0) < number
    ]


# --- all nodes stage before one moves -------------------------------------------------------------


def test_all_nodes_check_and_stage_at_once_without_permission_to_roll_out() -> None:
    result = step(ABC, pods=ready("a", "b", "c"))
    assert created(result) == ["installer-2-a", "installer-2-b", "installer-2-c"]
    assert permitted(result) == []
    assert targets(result) == {}


def test_a_single_node_waits_for_no_other() -> None:
    result = step([node_status("a", 1)], pods=ready("a"))
    assert targets(result) == {"a": 2}
    assert created(result) == permitted(result) == ["installer-2-a"]
    assert result.afterwards, "after the status, which names the next node"


@pytest.mark.parametrize(
    ("found", "waiting"),
    [
        ([], "the installer pod is starting"),
        (
            [installer("c", 2, {"phase": "Pending"}, permission=False)],
            "the installer pod is starting",
        ),
        (
            [installer("c", 2, PREFLIGHT, permission=False)],
            "kube-scheduler checks the configuration",
        ),
    ],
    ids=["no pod yet", "pending", "preflight"],
)
def test_no_node_moves_before_all_have_staged(found: list[dict[str, Any]], waiting: str) -> None:
    result = step(ABC, pods=ready("a", "b", "c"), installers=[*staged(*ABC[:2]), *found])
    assert targets(result) == {}
    assert permitted(result) == []
    assert result.waiting == {
        "a": "checked and staged, waiting for permission to roll out",
        "b": "checked and staged, waiting for permission to roll out",
        "c": waiting,
    }


def test_a_node_that_is_not_ready_gets_no_installer() -> None:
    result = step(ABC, pods=ready("a", "b"), installers=staged(*ABC[:2]), not_ready=("c",))
    assert targets(result) == {"a": 2}
    assert created(result) == []
    assert result.waiting["c"] == "the node is not Ready"


def test_a_refusal_on_one_node_ends_the_revision_for_all() -> None:
    refusal = installer("b", 2, REFUSED, permission=False)
    result = step(ABC, pods=ready("a", "b", "c"), installers=[*staged(ABC[0], ABC[2]), refusal])
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_REFUSED}
    assert targets(result) == {}
    assert sorted(deleted(result)) == ["installer-2-a", "installer-2-b", "installer-2-c"]


def test_an_installer_that_is_lost_while_it_waits_is_a_failed_attempt() -> None:
    lost = installer("c", 2, EVICTED, permission=False)
    result = step(ABC, pods=ready("a", "b", "c"), installers=[*staged(*ABC[:2]), lost])
    c = result.node_statuses[2]
    assert (c.target, c.failed_revision, c.failed_count) == (0, 2, 1)
    assert targets(result) == {}


@pytest.mark.parametrize(
    "last",
    [{}, {"terminated": {"exitCode": 1, "message": "no space left on device"}}],
    ids=["it has just begun", "its disk refused a moment ago"],
)
@pytest.mark.parametrize(("started", "moved"), [(False, {}), (True, {"a": 2})])
def test_only_a_started_installer_counts_as_staged(
    last: dict[str, Any], moved: dict[str, int], *, started: bool
) -> None:
    pod = installer("c", 2, STAGED, permission=False)
    check, running = STAGED["containerStatuses"]
    container = {**running, "lastState": last, "started": started}
    pod["status"] = {"phase": "Running", "containerStatuses": [check, container]}
    result = step(ABC, pods=ready("a", "b", "c"), installers=[*staged(*ABC[:2]), pod])
    assert targets(result) == moved
    if not moved:
        words = f": {last['terminated']['message']}" if last else ""
        assert result.waiting["c"] == f"staging the revision on the node{words}"


def test_the_others_prepare_while_one_moves() -> None:
    entries = [node_status("a", 1, 2), node_status("b", 1), node_status("c", 1)]
    result = step(entries, pods=ready("a", "b", "c"), installers=[installer("a", 2, SWAPPING)])
    assert created(result) == ["installer-2-b", "installer-2-c"]
    assert permitted(result) == []


def test_the_next_node_is_permitted_in_the_reconcile_in_which_the_first_is_done() -> None:
    entries = [node_status("a", 1, 2), node_status("b", 1), node_status("c", 1)]
    done = installer("a", 2, ended(InstallerOutcome.INSTALLED, "a", 2, 2))
    pods = ready("a", number=2) | ready("b", "c")
    result = step(entries, pods=pods, installers=[done, *staged(*entries[1:])])
    assert targets(result) == {"b": 2}
    assert permitted(result) == ["installer-2-b"]


def test_no_other_node_is_permitted_when_the_first_failed() -> None:
    entries = [node_status("a", 1, 2), node_status("b", 1)]
    failed = installer("a", 2, ended(InstallerOutcome.ROLLED_BACK, "a", 2, 1, reason="not ready"))
    result = step(entries, pods=ready("a", "b"), installers=[failed, *staged(entries[1])])
    assert targets(result) == {}
    assert permitted(result) == []
    assert deleted(result) == ["installer-2-b"]


def test_a_lost_permission_is_given_again() -> None:
    result = on_its_way(installer("a", 2, STAGED, permission=False))
    assert permitted(result) == ["installer-2-a"]
    assert targets(result) == {"a": 2}


def test_staged_pods_of_an_older_revision_are_deleted_at_once() -> None:
    old = [node_status("a", 1), node_status("b", 1)]
    result = step(old, desired=3, pods=ready("a", "b"), revisions=NEWER, installers=staged(*old))
    assert created(result) == ["installer-3-a", "installer-3-b"]
    assert deleted(result) == ["installer-2-a", "installer-2-b"]


def test_a_staged_pod_of_a_node_that_already_runs_the_revision_is_deleted() -> None:
    entries = [node_status("a", 2), node_status("b", 1)]
    found = [installer("a", 2, STAGED, permission=False), *staged(entries[1])]
    result = step(entries, pods=ready("a", number=2) | ready("b"), installers=found)
    assert deleted(result) == ["installer-2-a"]


# --- the order of whole rollouts ------------------------------------------------------------------


def drive(
    latest: int,
    currents: list[int],
    states: list[str],
    b: Mapping[str, Any] | None = None,
    b_shows: int = 0,
) -> tuple[str, list[int]]:
    """Whole rollouts in which every installer succeeds: the nodes in order, and their attempts.

    Args:
        latest: the newest revision.
        currents: what every node has reached.
        states: of their schedulers: ready, pending, or none for no pod.
        b: more of node b's entry, for example its target.
        b_shows: the revision of node b's pod, if it is not the one that it has reached.
    """
    nodes = "abc"[: len(currents)]
    entries = [node_status(n, current) for n, current in zip(nodes, currents, strict=True)]
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
        result = step(entries, desired=latest, pods=pods, installers=seen, revisions=history)
        for name in created(result):
            of, retry = name.rpartition("-")[2], _retry(name)
            found[of] = installer(of, latest, STAGED, permission=False, retry=retry)
        for name in permitted(result):
            moved, retry = name.rpartition("-")[2], _retry(name)
            order += moved
            attempts.append(retry)
            shown[moved], health[moved] = latest, "ready"
            done = ended(InstallerOutcome.INSTALLED, moved, latest, retry=retry)
            found[moved] = installer(moved, latest, done, retry=retry)
        entries = [write_node_status(e) for e in result.node_statuses]
    return order, attempts


def _retry(name: str) -> int:
    parts = name.split("-")
    return int(parts[3]) if parts[2] == "retry" else 0


def failed(times: int) -> dict[str, Any]:
    """A node that moves to revision 2 and failed before, long ago."""
    record = {"lastFailedRevision": 2, "lastFailedCount": times, "lastFailedTime": BEFORE}
    return {"targetRevision": 2, **record}


READY = ["ready"] * 3


# Theirs: TestCreateInstallerPodMultiNode, in the order of its rows; docs/proofs.md has
# those that do not apply here.
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


def test_a_label_alone_spares_a_node_no_installer() -> None:
    # As theirs, row 6. The installer finds the revision on the disk and restarts nothing.
    assert drive(2, [1, 1, 1], READY, {"lastFailedRevision": 2}, 2) == ("abc", [0, 0, 0])


# --- a moving node (as TestNewNodeStateForInstallInProgress) ---------------------------------


def on_its_way(*installers: dict[str, Any], **kwargs: Any) -> RolloutStep:
    """Node a between revisions 1 and 2."""
    fields = kwargs.pop("fields", {})
    kwargs.setdefault("pods", ready("a"))
    return step([node_status("a", 1, 2, **fields)], installers=list(installers), **kwargs)


def written(result: RolloutStep) -> tuple[int, int, int, int, int, str]:
    e = result.node_statuses[0]
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
        (installer("a", 2, SWAPPING), "replacing the scheduler"),
    ],
    ids=["pending with a message", "pending", "preflight", "swapping"],
)
def test_a_working_installer_is_waited_for(found: dict[str, Any], waiting: str) -> None:
    result = on_its_way(found)
    assert written(result) == (1, 2, 0, 0, 0, "")
    assert result.waiting == {"a": waiting}
    assert not result.actions
    assert result.requeue_after is not None, "a late installer becomes a condition"


def test_a_missing_installer_is_created_and_is_not_a_failure() -> None:
    result = on_its_way()
    assert created(result) == ["installer-2-a"]
    assert written(result) == (1, 2, 0, 0, 0, "")


def test_the_installer_pod_installs_and_is_owned_by_the_revision() -> None:
    (action,) = on_its_way().actions
    pod = action.obj
    assert pod["spec"]["nodeName"] == "a"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "uid-2"
    assert pod["spec"]["containers"][0]["image"] == "k:v1"
    assert "--revision=2" in pod["spec"]["containers"][1]["args"]
    assert "--content-hash=hash-2" in pod["spec"]["containers"][1]["args"]


def test_an_evicted_installer_is_a_failed_attempt() -> None:
    result = on_its_way(installer("a", 2, EVICTED))
    assert written(result) == (1, 2, 2, 1, 0, names.REASON_INSTALLER_FAILED)
    assert "bla bla OOM bla bla" in result.node_statuses[0].failed_errors[0]
    assert result.node_statuses[0].failed_time == rfc3339(NOW)


def test_a_failed_retry_increases_the_count_and_replaces_the_errors() -> None:
    fields = {
        "lastFailedRevision": 2,
        "lastFailedCount": 2,
        "lastFailedTime": BEFORE,
        "lastFailedRevisionErrors": ["old"],
    }
    result = on_its_way(installer("a", 2, EVICTED, retry=2), fields=fields)
    assert written(result)[3] == 3
    assert "old" not in result.node_statuses[0].failed_errors


INSTALLED = ended(InstallerOutcome.INSTALLED, "a", 2, 2, steps={"ready": 1.5})


@pytest.mark.parametrize(
    "pods",
    [{}, ready("a"), {"a": operand("a", 2, "pending")}],
    ids=["no mirror pod", "mirror pod of the old revision", "not Ready"],
)
def test_an_installed_revision_counts_only_when_the_api_agrees(pods: dict[str, Any]) -> None:
    result = on_its_way(installer("a", 2, INSTALLED), pods=pods)
    assert written(result) == (1, 2, 0, 0, 0, "")
    assert result.requeue_after == 2.0
    assert outcomes(result) == {}


def test_an_installed_revision_that_is_ready_becomes_current_and_good() -> None:
    fields: dict[str, Any] = {
        "lastFailedRevision": 2,
        "lastFailedCount": 1,
        "lastFailedTime": BEFORE,
    }
    pods = ready("a", number=2)
    done = replace(INSTALLED, retry=1)
    result = on_its_way(installer("a", 2, done, retry=1), pods=pods, fields=fields)
    assert written(result) == (2, 0, 0, 0, 0, "")
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_INSTALLED}
    assert result.afterwards, "after the status"
    assert "ready 1.5 s" in result.events[0].message


def test_a_scheduler_that_crashes_before_it_is_current_fails_the_revision() -> None:
    pods = {"a": operand("a", 2, "crashing", restarts=3)}
    result = on_its_way(installer("a", 2, INSTALLED), pods=pods)
    assert written(result) == (1, 0, 2, 1, 0, names.REASON_OPERAND_FAILED)
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_FAILED}
    assert "segfault" in result.node_statuses[0].failed_errors[0]


def test_a_scheduler_that_stays_not_ready_fails_the_revision() -> None:
    pods = {"a": operand("a", 2, "pending")}
    result = on_its_way(installer("a", 2, INSTALLED, ended_ago=61), pods=pods)
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_FAILED}


def test_a_scheduler_that_the_api_never_shows_is_installed_again() -> None:
    result = on_its_way(installer("a", 2, INSTALLED, ended_ago=61))
    assert written(result) == (1, 2, 2, 1, 0, names.REASON_OPERAND_FAILED)
    assert outcomes(result) == {}


def test_a_node_that_is_not_ready_does_not_fail_the_revision() -> None:
    pods = {"a": operand("a", 2, "pending")}
    result = on_its_way(installer("a", 2, INSTALLED, ended_ago=600), pods=pods, not_ready=("a",))
    assert written(result) == (1, 2, 0, 0, 0, "")


def test_a_rolled_back_revision_ends_on_all_nodes() -> None:
    rolled_back = ended(
        InstallerOutcome.ROLLED_BACK, "a", 2, 1, reason="not ready", last_error="boom"
    )
    result = on_its_way(installer("a", 2, rolled_back))
    assert written(result) == (1, 0, 2, 0, 1, names.REASON_OPERAND_FALLBACK)
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_FAILED}
    assert result.node_statuses[0].failed_errors == (
        'revision 2 failed on node "a": not ready: boom; revision 1 runs again',
    )


def test_a_rollback_to_the_scheduler_before_the_operator_is_reported() -> None:
    rolled_back = ended(InstallerOutcome.ROLLED_BACK, "a", 2, 0, reason="not ready")
    result = on_its_way(installer("a", 2, rolled_back))
    assert (
        result.node_statuses[0]
        .failed_errors[0]
        .endswith("not ready; the scheduler that it replaced runs again")
    )


def test_when_neither_scheduler_becomes_healthy_the_attempt_fails() -> None:
    unhealthy = ended(InstallerOutcome.UNHEALTHY, "a", 2, 1, reason="nothing is ready")
    result = on_its_way(installer("a", 2, unhealthy))
    assert written(result) == (1, 2, 2, 1, 0, names.REASON_OPERAND_FAILED)
    assert outcomes(result) == {}


def test_after_a_fallback_to_a_failed_revision_the_new_one_fails_as_well() -> None:
    unhealthy = ended(InstallerOutcome.UNHEALTHY, "a", 2, 1, reason="nothing is ready")
    history = [revision(1, names.OUTCOME_FAILED), revision(2)]
    result = on_its_way(installer("a", 2, unhealthy), revisions=history)
    assert written(result)[:3] == (1, 0, 2)
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_FAILED}


def test_a_node_with_a_newer_revision_is_not_retried_at_once() -> None:
    superseded = ended(InstallerOutcome.SUPERSEDED, "a", 2, 7, reason="revision 7 is on this node")
    result = on_its_way(installer("a", 2, superseded))
    assert written(result)[:4] == (1, 2, 2, 1)


REPORTED_LONG_AGO = {
    "conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": BEFORE}]
}


def test_an_unreachable_node_loses_its_target_and_its_pod_before_another_moves() -> None:
    waiting = installer("b", 2, STAGED, permission=False)
    entries = [node_status("a", 1, 2), node_status("b", 1)]
    away = {"a": {**node("a"), "status": REPORTED_LONG_AGO}, "b": node("b")}
    pods = ready("b")

    first = step(
        entries,
        installers=[installer("a", 2, STAGED), waiting],
        nodes=away,
        not_ready=("a",),
        pods=pods,
    )
    assert (targets(first), deleted(first), permitted(first)) == ({}, ["installer-2-a"], [])

    going = installer("a", 2, STAGED, deletionTimestamp=BEFORE)
    second = step(
        [node_status("a", 1), node_status("b", 1)],
        installers=[going, waiting],
        nodes=away,
        pods=pods,
    )
    assert (targets(second), deleted(second), permitted(second)) == (
        {"b": 2},
        [],
        ["installer-2-b"],
    )

    back = {"a": node("a"), "b": node("b")}
    third = step(
        [node_status("a", 1), node_status("b", 1)],
        installers=[going, waiting],
        nodes=back,
        pods=pods,
    )
    assert targets(third) == {}, "it may swap until its pod is deleted"


def test_a_refused_revision_touches_no_node_and_records_no_failure() -> None:
    result = on_its_way(installer("a", 2, REFUSED))
    assert written(result) == (1, 0, 0, 0, 0, "")
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_REFUSED}
    assert deleted(result) == ["installer-2-a"]


def test_a_refusal_of_an_installed_revision_is_a_failed_attempt() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED), revision(2, names.OUTCOME_INSTALLED)]
    result = on_its_way(installer("a", 2, REFUSED), revisions=history)
    assert written(result)[:4] == (1, 2, 2, 1)
    assert outcomes(result) == {}


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
def test_a_newer_revision_replaces_a_target_that_has_not_begun(found: dict[str, Any]) -> None:
    result = on_its_way(found, desired=3, revisions=NEWER)
    assert written(result)[:2] != (1, 2)
    assert deleted(result) == ([] if found["status"] == EVICTED else ["installer-2-a"])
    gone = step([node_status("a", 1)], pods=ready("a"), desired=3, revisions=NEWER)
    assert targets(gone) == {"a": 3}


def test_a_swap_is_never_interrupted() -> None:
    # The reference replaces the target at any time, which would leave a new scheduler unwatched.
    result = on_its_way(installer("a", 2, SWAPPING), desired=3, revisions=NEWER)
    assert written(result) == (1, 2, 0, 0, 0, "")
    assert deleted(result) == []


def test_a_newer_revision_replaces_a_crashing_installer() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    last = {"terminated": {"exitCode": 1, "message": "disk full"}}
    status = {
        "phase": "Running",
        "containerStatuses": [{"name": names.INSTALLER, "state": waiting, "lastState": last}],
    }
    result = on_its_way(installer("a", 2, status), desired=3, revisions=NEWER)
    assert targets(result) == {}
    assert deleted(result) == ["installer-2-a"]


def test_the_result_of_a_superseded_installer_still_counts() -> None:
    result = on_its_way(
        installer("a", 2, INSTALLED), pods=ready("a", number=2), desired=3, revisions=NEWER
    )
    assert written(result)[0] == 2


def test_a_target_that_became_bad_is_removed() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED), revision(2, names.OUTCOME_FAILED)]
    result = on_its_way(installer("a", 2, PREFLIGHT), desired=None, revisions=history)
    assert targets(result) == {}
    assert deleted(result) == ["installer-2-a"]


def test_a_pod_that_is_being_deleted_is_waited_for() -> None:
    leaving = installer("a", 2, PREFLIGHT, deletionTimestamp=BEFORE)
    result = on_its_way(leaving)
    assert created(result) == []
    assert result.waiting == {"a": "installer-2-a is being stopped"}


def test_a_revision_that_lost_its_copies_is_not_installed() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED), revision(2, copies={})]
    result = on_its_way(revisions=history)
    assert created(result) == []
    assert (
        "ConfigMaps of revision 2 are missing: config-2, kube-scheduler-pod-2"
        in result.waiting["a"]
    )


def test_pods_of_a_replaced_machine_are_deleted_and_ignored() -> None:
    stale = installer("a", 2, INSTALLED, age=7200)
    result = on_its_way(stale, pods={})
    assert targets(result) == {"a": 2}
    assert deleted(result) == ["installer-2-a"]
    assert created(result) == [], "the name is in use until it is deleted"


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
    fields: dict[str, Any] = {"lastFailedRevision": 2, "lastFailedCount": failures}
    fields["lastFailedTime"] = rfc3339(NOW)
    result = on_its_way(fields=fields)
    assert created(result) == []
    assert result.requeue_after == pytest.approx(wait)
    begin = rfc3339(NOW + timedelta(seconds=wait))
    assert result.waiting == {"a": f"attempt {failures + 1} begins at {begin}"}


@pytest.mark.parametrize("ahead", [560.0, 1200.0, 1e8])
def test_a_failure_in_the_future_delays_no_attempt(ahead: float) -> None:
    """A process with another clock recorded it, or etcd was restored."""
    fields: dict[str, Any] = {"lastFailedRevision": 2, "lastFailedCount": 1}
    fields["lastFailedTime"] = rfc3339(NOW + timedelta(seconds=ahead))
    assert created(on_its_way(fields=fields)) == ["installer-2-retry-1-a"]


def test_after_the_wait_the_next_attempt_has_its_own_pod() -> None:
    fields: dict[str, Any] = {"lastFailedRevision": 2, "lastFailedCount": 1}
    fields["lastFailedTime"] = rfc3339(NOW - timedelta(seconds=15))
    result = on_its_way(installer("a", 2, EVICTED), fields=fields)
    assert created(result) == ["installer-2-retry-1-a"]


# --- running schedulers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "restarts", "expected"),
    [
        pytest.param(60, 3, {"revision-status-1": names.OUTCOME_FAILED}, id="young"),
        pytest.param(60, 2, {}, id="not often enough"),
        pytest.param(601, 3, {}, id="old: the cause is something else"),
    ],
)
def test_a_crash_loop_fails_a_young_revision(
    age: float, restarts: int, expected: dict[str, str]
) -> None:
    history = [revision(1, names.OUTCOME_INSTALLED, rfc3339(NOW - timedelta(seconds=age)))]
    pods = {"a": operand("a", 1, "crashing", restarts)}
    result = step([node_status("a", 1)], desired=1, pods=pods, revisions=history)
    assert outcomes(result) == expected


@pytest.mark.parametrize(
    ("answered", "ended_ago", "attributed"),
    [
        pytest.param(None, 1.0, False, id="the API server does not answer"),
        pytest.param(20.0, 30.0, False, id="it exited while the API server was down"),
        pytest.param(20.0, 6.0, False, id="it exited a moment later"),
        pytest.param(20.0, 4.0, True, id="it exited again without an explanation"),
    ],
)
def test_an_exit_during_an_api_outage_does_not_fail_the_revision(
    answered: float | None, ended_ago: float, *, attributed: bool
) -> None:
    since = NOW - timedelta(seconds=answered) if answered else None
    history = [revision(1, names.OUTCOME_INSTALLED, rfc3339(NOW))]
    pods = {"a": operand("a", 1, "crashing", 5, ended_ago)}
    result = step(
        [node_status("a", 1)], desired=1, pods=pods, revisions=history, answered_since=since
    )
    assert bool(outcomes(result)) == attributed


def test_after_an_outage_the_health_timeout_starts_again() -> None:
    pods = {"a": operand("a", 2, "pending")}
    found = installer("a", 2, INSTALLED, ended_ago=70)
    for seconds, state in ((74, (1, 2)), (75, (1, 0))):
        since = NOW - timedelta(seconds=seconds)
        result = on_its_way(found, pods=pods, answered_since=since)
        assert written(result)[:2] == state
        assert bool(outcomes(result)) == (state == (1, 0))


def test_an_installed_revision_in_the_kubelets_back_off_is_not_late() -> None:
    pods = {"a": operand("a", 2, "crashing", 5, ended_ago=200)}
    found = installer("a", 2, INSTALLED, ended_ago=300)
    result = on_its_way(found, pods=pods, answered_since=NOW - timedelta(seconds=190))
    assert written(result)[:2] == (1, 2)
    assert outcomes(result) == {}


def test_no_node_moves_while_schedulers_may_still_exit_due_to_an_outage() -> None:
    recovered = NOW - timedelta(seconds=5)
    given: dict[str, Any] = {"answered_since": recovered, "recovered_at": recovered}
    staged = [installer(name, 2, STAGED, permission=False) for name in "ab"]
    entries, pods = [node_status("a", 1), node_status("b", 1)], ready("a", "b")
    result = step(entries, pods=pods, installers=staged, **given)
    assert targets(result) == {}
    assert result.requeue_after == pytest.approx(10.0)
    assert "the API server was down until" in result.waiting["a"]
    chosen = step(
        [node_status("a", 1, 2), node_status("b", 1)], pods=pods, installers=staged, **given
    )
    assert targets(chosen) == {}, "an unused target is removed"
    away = step(entries, pods=pods, installers=staged, answered_since=None)
    assert away.waiting["a"] == "the API server does not answer"


def test_two_crashing_nodes_record_one_outcome() -> None:
    history = [revision(1, names.OUTCOME_INSTALLED, rfc3339(NOW))]
    pods = {n: operand(n, 1, "crashing", 3) for n in "ab"}
    result = step(
        [node_status("a", 1), node_status("b", 1)], desired=1, pods=pods, revisions=history
    )
    assert len(result.actions) == 1


def started(node: str, number: int, ago: float = 60.0) -> dict[str, dict[str, Any]]:
    """A Ready scheduler that has run for some time."""
    at = rfc3339(NOW - timedelta(seconds=ago))
    pod = operand(node, number)
    pod["metadata"]["creationTimestamp"] = at
    pod["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": at}}
    return {node: pod}


def test_a_node_that_has_a_known_revision_on_its_disk_is_acknowledged() -> None:
    result = step([node_status("a")], pods=started("a", 2), disks=on_disk("a", number=2))
    assert written(result)[:2] == (2, 0)


@pytest.mark.parametrize(
    "disks",
    [
        {},
        on_disk("a", number=1),
        on_disk("a", number=2, ago=61),
        on_disk("a", number=2, edits=("/x",), edit="e"),
    ],
    ids=["no report", "another revision", "older than the scheduler", "edited"],
)
def test_a_label_alone_is_not_acknowledged(disks: Disks) -> None:
    result = step([node_status("a")], desired=None, pods=started("a", 2), disks=disks)
    assert written(result)[:2] == (0, 0)


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
    pod["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": BEFORE}}
    disks = on_disk("a", number=pod_number(pod))
    result = step([node_status("a")], desired=None, pods={"a": pod}, revisions=history, disks=disks)
    assert written(result)[:2] == (0, 0)


def pod_number(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["labels"][names.REVISION_LABEL])


def test_a_scheduler_is_acknowledged_only_after_the_settling_time() -> None:
    pod = started("a", 2)["a"]
    pod["status"]["conditions"][0]["lastTransitionTime"] = rfc3339(NOW - timedelta(seconds=1))
    disks = on_disk("a", number=2)
    result = step([node_status("a")], desired=None, pods={"a": pod}, disks=disks)
    assert written(result)[:2] == (0, 0)
    assert result.requeue_after == pytest.approx(4.0)


def test_overtaken_revisions_are_superseded() -> None:
    result = step([node_status("a", 1)], desired=3, pods=ready("a"), revisions=NEWER)
    assert outcomes(result) == {"revision-status-2": names.OUTCOME_SUPERSEDED}


def test_an_incomplete_revision_supersedes_nothing() -> None:
    history = [*NEWER[:2], revision(3, ready=False)]
    result = step([node_status("a", 1)], desired=2, pods=ready("a"), revisions=history)
    assert outcomes(result) == {}


def test_an_added_or_removed_node_is_written_alone() -> None:
    result = step([node_status("a", 1)], nodes={"a": node("a"), "b": node("b")})
    assert [(e.node, e.current, e.target) for e in result.node_statuses] == [
        ("a", 1, 0),
        ("b", 0, 0),
    ]
    assert result.requeue_after == 0.1


def test_unneeded_installer_pods_are_deleted_unless_they_have_ended() -> None:
    installers = [
        installer("a", 1, PREFLIGHT),
        installer("a", 7, INSTALLED),
        installer("a", 8, EVICTED),
        installer("a", 9, SWAPPING),
    ]
    result = step([node_status("a", 2)], pods=ready("a", number=2), installers=installers)
    assert deleted(result) == ["installer-1-a"]


@pytest.mark.parametrize("age", [10.0, 7200.0], ids=["", "older than its node"])
def test_a_pod_that_another_client_labels_as_an_installer_stays(age: float) -> None:
    foreign = installer("a", 1, PREFLIGHT, age=age)
    foreign["metadata"]["name"] = "probe"
    result = step([node_status("a", 2)], pods=ready("a", number=2), installers=[foreign])
    assert deleted(result) == []


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
    entries = step(
        [node_status(f"n{i}", c) for i, c in enumerate(currents)], desired=None
    ).node_statuses
    assert describe(entries, latest) == expected


def test_a_fixture_has_the_content_of_a_revision() -> None:
    assert set(RevisionContent(PARTS).parts) == {names.CONFIG, names.POD}


# --- what is on a node's disk -----------------------------------------------------------------

AT_2 = [revision(1, names.OUTCOME_INSTALLED), revision(2, names.OUTCOME_INSTALLED)]


def at_2(**kwargs: Any) -> RolloutStep:
    """A node that has reached revision 2."""
    kwargs.setdefault("pods", started("a", 2))
    return step([node_status("a", 2)], revisions=AT_2, **kwargs)


MANIFEST, CONFIG = "/etc/kubernetes/manifests/kube-scheduler.yaml", "/r/configmaps/config"


@pytest.mark.parametrize("edited", [MANIFEST, CONFIG])
def test_a_hand_edit_that_keeps_the_label_is_put_back(edited: str) -> None:
    result = at_2(disks=on_disk("a", number=2, edits=(edited,), edit="e"))
    assert targets(result) == {"a": 2}
    assert created(result) == ["installer-2-a"]
    assert f"{edited} changed: putting revision 2 back" in result.events[0].message


def test_a_missing_scheduler_is_put_back_although_another_node_cannot_stage() -> None:
    entries = [node_status("a", 1), node_status("b", 1)]
    disks = on_disk("a", "b", number=1)
    disks["a"] = replace(disks["a"], edits=(MANIFEST,), edit="e", labelled=0)
    result = step(entries, pods=ready("b"), disks=disks)
    assert targets(result) == {"a": 1}
    assert permitted(result) == ["installer-1-a"]
    again = [node_status("a", 1, 1), node_status("b", 1)]
    assert targets(step(again, pods=ready("b"), disks=disks)) == {"a": 1}, "it goes on"
    assert targets(step(again, pods=ready("a", "b"), disks=disks)) == {}, "it runs again"


@pytest.mark.parametrize(
    ("other", "not_ready", "moved"),
    [("ready", (), {"a": 2}), ("pending", (), {}), ("ready", ("b",), {})],
    ids=["ready", "pending", "on a node that is not Ready"],
)
def test_a_scheduler_is_restarted_only_if_another_one_is_ready(
    other: str, not_ready: tuple[str, ...], moved: dict[str, int]
) -> None:
    pods = started("a", 2) | {"b": operand("b", 2, other)}
    disks = on_disk("a", number=2, edits=(CONFIG,), edit="e")
    entries = [node_status("a", 2), node_status("b", 2)]
    result = step(entries, revisions=AT_2, pods=pods, disks=disks, not_ready=not_ready)
    assert targets(result) == moved


def test_where_the_platform_keeps_hand_edits_nothing_is_put_back() -> None:
    disks = on_disk("a", number=2, edits=(MANIFEST,), edit="e")
    result = at_2(disks=disks, platform=replace(KUBEADM, keeps_hand_edits=True))
    assert (targets(result), created(result)) == ({}, [])


@pytest.mark.parametrize("label", [0, 1, 99])
def test_an_edit_that_changes_the_label_is_put_back_everywhere(label: int) -> None:
    found = {**on_disk("a", number=2, edits=(MANIFEST,), edit="e")}
    disks = {"a": replace(found["a"], labelled=label)}
    result = at_2(disks=disks, platform=replace(KUBEADM, keeps_hand_edits=True))
    assert targets(result) == {"a": 2}


def test_only_openshift_keeps_hand_edits() -> None:
    assert (KUBEADM.keeps_hand_edits, OPENSHIFT.keeps_hand_edits) == (False, True)


def test_an_installer_that_ended_later_overrides_the_report_of_an_edit() -> None:
    report = terminated(
        3,
        DiskReport(revision=2, edits=(MANIFEST,), edit="e", labelled=2).serialise(),
        rfc3339(NOW - timedelta(seconds=30)),
    )
    done = installer("a", 2, ended(InstallerOutcome.INSTALLED, "a", 2))
    assert targets(at_2(guard_pods=by_name(guard("a", report)), installers=[done])) == {}
    assert targets(at_2(guard_pods=by_name(guard("a", report)))) == {"a": 2}


def by_name(*pods: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {pod["metadata"]["name"]: pod for pod in pods}


def guard(node: str, state: dict[str, Any], uid: str = "uid-cluster") -> dict[str, Any]:
    """A guard pod whose container was in this state before."""
    return {
        "metadata": {
            "name": f"kube-scheduler-guard-{node}",
            "uid": "guard",
            "ownerReferences": [{"kind": "KubeScheduler", "uid": uid}],
        },
        "spec": {"nodeName": node},
        "status": {"containerStatuses": [{"name": "guard", "state": RUNNING, "lastState": state}]},
    }


def test_the_report_of_a_guard_of_another_owner_does_not_count() -> None:
    report = terminated(3, DiskReport(revision=2, edits=(MANIFEST,), edit="e").serialise(), BEFORE)
    assert targets(at_2(guard_pods=by_name(guard("a", report, uid="another")))) == {}
    assert targets(at_2(guard_pods=by_name(guard("a", report)))) == {"a": 2}


@pytest.mark.parametrize("label", [1, 3, 99])
def test_a_label_that_the_disk_contradicts_moves_no_node(label: int) -> None:
    assert targets(at_2(pods=started("a", label), disks=on_disk("a", number=2))) == {}


@pytest.mark.parametrize("label", [1, 3, 99])
def test_a_label_that_nothing_contradicts_makes_an_installer_look(label: int) -> None:
    pods = started("a", label)
    assert targets(at_2(pods=pods)) == {"a": 2}
    older = on_disk("a", number=2, ago=61)  # than the scheduler
    assert targets(at_2(pods=pods, disks=older)) == {"a": 2}


def test_an_installer_that_restarted_nothing_counts_whatever_the_label() -> None:
    done = ended(InstallerOutcome.INSTALLED, "a", 2, restarted=False)
    result = on_its_way(installer("a", 2, done), pods=started("a", 99))
    assert written(result)[:2] == (2, 0)
    done = replace(done, restarted=True)
    result = on_its_way(installer("a", 2, done), pods=started("a", 99))
    assert written(result)[:2] == (1, 2), "the old scheduler may still be shown"


FOREIGN: Mapping[str, Mapping[str, Any]] = {
    "another owner": {"ownerReferences": [{"kind": "ConfigMap", "uid": "another"}]},
    "no owner": {"ownerReferences": []},
    "another name": {"name": "installer-2-b"},
    "another attempt": {"name": "installer-2-retry-1-a"},
}


@pytest.mark.parametrize("metadata", FOREIGN.values(), ids=FOREIGN)
def test_the_result_of_a_pod_that_the_operator_did_not_create_does_not_count(
    metadata: Mapping[str, Any],
) -> None:
    forged = installer("a", 2, INSTALLED)
    forged["metadata"].update(metadata)
    result = on_its_way(forged, pods=started("a", 2))
    assert written(result)[0] == 1


@pytest.mark.parametrize(
    "forged", [replace(INSTALLED, revision=99), replace(INSTALLED, node="b")], ids=repr
)
def test_a_result_about_something_else_does_not_count(forged: Result) -> None:
    assert written(on_its_way(installer("a", 2, forged), pods=started("a", 2)))[0] == 1
