"""What a rollout looks like from outside: the conditions of the report step."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.controlplane.conditions import (
    from_findings,
    lease_problem,
    requeue_for_lease,
    revision_conditions,
    rollout_conditions,
)
from kube_scheduler_operator.controlplane.revision.history import Revision
from kube_scheduler_operator.controlplane.rollout import installer_pods as installers
from kube_scheduler_operator.controlplane.rollout.node_statuses import Entry
from kube_scheduler_operator.controlplane.rollout.result import Stepped, describe
from kube_scheduler_operator.model import operand_pods as operands
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.status.conditions import Condition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AVAILABLE, PROGRESSING = names.STATIC_PODS_AVAILABLE, names.NODE_INSTALLER_PROGRESSING
DEGRADED, PODS_DEGRADED = names.NODE_INSTALLER_DEGRADED, names.STATIC_PODS_DEGRADED


def revision(number: int, outcome: str = "", message: str = "") -> Revision:
    return Revision(number, {}, True, "", outcome, message, frozenset(), (), {})


def operand(node: str, number: int = 1, **status: Any) -> operands.Operand:
    ready = status.pop("ready", True)
    container = {"name": names.OPERAND, **status}
    return operands.read(
        {
            "metadata": {
                "name": f"kube-scheduler-{node}",
                "labels": {names.REVISION_LABEL: str(number)},
            },
            "spec": {"nodeName": node},
            "status": {
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                "containerStatuses": [container],
            },
        }
    )


def installer(status: dict[str, Any], age: float, node: str = "a") -> installers.Installer:
    created = rfc3339(NOW - timedelta(seconds=age))
    labels = {names.INSTALLER_REVISION_LABEL: "2"}
    metadata = {"name": f"installer-2-{node}", "labels": labels, "creationTimestamp": created}
    return installers.read({"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def lease(holder: str = "a_uid", seconds: int = 15) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds}}


def look(
    stepped: Stepped,
    *,
    wanted: Revision | None = None,
    rejected: Revision | None = None,
    **fields: Any,
) -> dict[str, Condition]:
    nodes = {entry.node: {"metadata": {"name": entry.node}} for entry in stepped.entries}
    given = {"nodes": nodes, "operand_lease": lease(), "lease_seen": NOW, **fields}
    snapshot = Snapshot(now=NOW, platform=KUBEADM, settings=Settings(), **given)
    text = describe(stepped.entries, wanted.number if wanted else 0)
    found = rollout_conditions(
        snapshot, stepped, wanted=wanted, rejected=rejected, description=text
    )
    assert len({condition.type for condition in found}) == len(found)
    return {condition.type: condition for condition in found}


def cluster(*currents: int, target: int = 0, **fields: Any) -> Stepped:
    """Nodes a, b, c with healthy schedulers; the first one may be on its way."""
    nodes = "abcd"[: len(currents)]
    entries = [Entry(n, current=c) for n, c in zip(nodes, currents, strict=True)]
    if target:
        entries[0] = Entry("a", current=currents[0], target=target, **fields)
    pods = {e.node: operand(e.node, e.current) for e in entries if e.current}
    return Stepped(entries=tuple(entries), operands=pods)


FAILING = {"failed_revision": 2, "failed_count": 1, "failed_reason": "InstallerFailed"}


@pytest.mark.parametrize(
    ("stepped", "latest", "expected"),
    [
        pytest.param(
            cluster(1, 1, 2, 1, target=2, **FAILING), 2, "TTT", id="failing on its target"
        ),
        pytest.param(
            cluster(1, 1, 2, 1, target=3, **FAILING), 3, "TTF", id="failed on an older target"
        ),
        pytest.param(cluster(2, 1, 2, 1), 2, "TTF", id="some behind"),
        pytest.param(cluster(2, 2, 2), 2, "TFF", id="all there"),
        pytest.param(
            cluster(0, 0), 2, "FTF", id="none yet (theirs looks at revisions, ours at pods)"
        ),
        pytest.param(cluster(1, 1), 2, "TTF", id="all behind"),
        pytest.param(cluster(), 2, "FFF", id="no nodes"),
        pytest.param(cluster(3, 2), 2, "TFF", id="ours: ahead is not behind"),
    ],
)
def test_the_references_rows(stepped: Stepped, latest: int, expected: str) -> None:
    found = look(stepped, wanted=revision(latest))
    assert (
        "".join(found[type_].status[0] for type_ in (AVAILABLE, PROGRESSING, DEGRADED)) == expected
    )


def test_progressing_says_who_waits_for_what() -> None:
    stepped = cluster(1, 1, target=2)
    stepped.waiting = {"b": "the node is not Ready", "a": "the scheduler is being swapped"}
    assert look(stepped, wanted=revision(2))[PROGRESSING].message == (
        "moving to revision 2; 2 nodes are at revision 1; 0 nodes have achieved new revision 2; "
        "a: the scheduler is being swapped; b: the node is not Ready"
    )


@pytest.mark.parametrize(
    ("born", "progressing"),
    [(NOW, "False"), (NOW - timedelta(hours=2), "True")],
    ids=["after the revision was installed", "before: it is adopted"],
)
def test_a_node_that_joins_is_no_progress(born: datetime, progressing: str) -> None:
    installed = {names.OUTCOME_TIME_ANNOTATION: rfc3339(NOW - timedelta(hours=1))}
    wanted = replace(
        revision(2, names.OUTCOME_INSTALLED), status={"metadata": {"annotations": installed}}
    )
    stepped = cluster(2, 2, 0)
    stepped.waiting["c"] = "the installer pod is starting"
    nodes = {
        name: {"metadata": {"name": name, "creationTimestamp": rfc3339(born)}} for name in "abc"
    }
    found = look(stepped, wanted=wanted, nodes=nodes)[PROGRESSING]
    assert found.status == progressing
    assert "c: the installer pod is starting" in found.message


def test_a_refused_revision_is_not_progress() -> None:
    refused = revision(2, names.OUTCOME_REFUSED, "no such plugin")
    found = look(cluster(1), wanted=revision(1), rejected=refused)
    assert found[PROGRESSING].reason == "RevisionRejected"
    assert found[PROGRESSING].status == "False"
    assert found[names.PREFLIGHT_DEGRADED].status == "True"
    assert found[names.PREFLIGHT_DEGRADED].message == (
        "kube-scheduler refused revision 2, no node was touched: no such plugin"
    )
    assert found[DEGRADED].status == "False"


def test_a_failed_revision_says_what_failed() -> None:
    found = look(cluster(1), rejected=revision(2, names.OUTCOME_FAILED, "boom"))
    assert (found[DEGRADED].status, found[DEGRADED].reason) == ("True", "RevisionFailed")
    assert found[DEGRADED].message == "boom"
    assert found[names.PREFLIGHT_DEGRADED].status == "False"


def test_trouble_with_the_api_is_said() -> None:
    found = look(cluster(1), trouble="create pods: 403 Forbidden")
    assert found[names.INSTALLER_DEGRADED].status == "True"
    assert found[names.INSTALLER_DEGRADED].message == "create pods: 403 Forbidden"


# --- Available ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({}, "AsExpected", id="renewed"),
        pytest.param({"lease_seen": NOW - timedelta(seconds=20)}, "AsExpected", id="just in time"),
        pytest.param(
            {"lease_seen": NOW - timedelta(seconds=20.1)}, "LeaseNotRenewed", id="not renewed"
        ),
        pytest.param({"lease_seen": None}, "LeaseNotRenewed", id="never seen"),
        pytest.param({"operand_lease": None}, "LeaseNotRenewed", id="no Lease"),
        pytest.param({"operand_lease": lease("")}, "LeaseNotRenewed", id="held by nobody"),
        pytest.param(
            {"operand_lease": lease(seconds=60), "lease_seen": NOW - timedelta(seconds=60)},
            "AsExpected",
            id="a longer Lease",
        ),
    ],
)
def test_available_means_that_somebody_schedules(fields: dict[str, Any], reason: str) -> None:
    condition = look(cluster(1), **fields)[AVAILABLE]
    assert condition.reason == reason
    assert condition.status == ("True" if reason == "AsExpected" else "False")


def test_a_lease_alone_does_not_make_it_available() -> None:
    stepped = cluster(1)
    stepped.operands = {"a": operand("a", ready=False)}
    assert look(stepped)[AVAILABLE].reason == "NoReadyScheduler"


def test_the_pass_comes_back_when_the_lease_would_be_too_old() -> None:
    def snapshot(age: float) -> Snapshot:
        return Snapshot(
            now=NOW,
            platform=KUBEADM,
            settings=Settings(),
            operand_lease=lease(),
            lease_seen=NOW - timedelta(seconds=age),
        )

    wait = requeue_for_lease(snapshot(5), NOW)
    assert wait == pytest.approx(15.5)
    late = snapshot(5 + wait)
    assert lease_problem(late)
    assert requeue_for_lease(late, NOW) is None


# --- schedulers and nodes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(None, 'no scheduler pod on node "a"', id="none"),
        pytest.param(
            operand("a", ready=False), "pod/kube-scheduler-a is not Ready", id="not Ready"
        ),
        pytest.param(
            operand(
                "a",
                ready=False,
                state={"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
                lastState={"terminated": {"exitCode": 1, "message": "one\nboom"}},
            ),
            'pod/kube-scheduler-a container "kube-scheduler" is waiting: '
            "CrashLoopBackOff: m (boom)",
            id="crash loop, with its last line",
        ),
        pytest.param(
            operand("a", 0),
            'node "a" runs a manifest that is not the operator\'s instead of revision 1, which '
            "will be put back; who changed its manifest?",
            id="stock manifest",
        ),
        pytest.param(operand("a", 1), "", id="well"),
    ],
)
def test_what_is_wrong_with_a_scheduler(pod: operands.Operand | None, message: str) -> None:
    stepped = cluster(1)
    stepped.operands = {"a": pod} if pod else {}
    condition = look(stepped)[PODS_DEGRADED]
    assert condition.message == message
    assert condition.status == ("True" if message else "False")


@pytest.mark.parametrize("why", ["moving", "node not Ready", "just put back"])
def test_what_is_expected_is_not_wrong(why: str) -> None:
    stepped = cluster(1, target=2) if why == "moving" else cluster(1)
    stepped.operands = {}
    if why == "node not Ready":
        stepped.not_ready = {"a": "..."}
    if why == "just put back":
        stepped = Stepped(entries=(Entry("a", current=1, failed_revision=2),))
        stepped.operands = {"a": operand("a", 2)}
    assert look(stepped)[PODS_DEGRADED].status == "False"


def test_nodes_that_are_not_ready() -> None:
    stepped = cluster(1, 1)
    stepped.not_ready = {"b": 'node "b" not ready'}
    condition = look(stepped)[names.NODES_DEGRADED]
    assert (condition.status, condition.reason) == ("True", "MasterNodesNotReady")
    assert condition.message == 'The master nodes not ready: node "b" not ready'
    assert look(cluster())[names.NODES_DEGRADED].reason == "NoControlPlaneNodes"
    assert look(cluster(1))[names.NODES_DEGRADED].status == "False"


# --- installer pods -------------------------------------------------------------------------------


def waiting(reason: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": "m"}}
    return {
        "phase": "Pending",
        "containerStatuses": [{"name": names.PREFLIGHT, "state": state}],
    }


@pytest.mark.parametrize(
    ("status", "age", "pending", "container"),
    [
        pytest.param({"phase": "Pending"}, 59, False, False, id="pending, patience"),
        pytest.param({"phase": "Pending"}, 61, True, False, id="pending for too long"),
        pytest.param(waiting("ErrImagePull"), 1, False, True, id="no image: said at once"),
        pytest.param(waiting("CreateContainerConfigError"), 1, False, True, id="cannot start"),
        pytest.param(waiting("SomethingNew"), 59, False, False, id="unknown reason, patience"),
        pytest.param(waiting("SomethingNew"), 61, False, True, id="unknown reason for too long"),
        pytest.param(waiting("ContainerCreating"), 61, True, False, id="creating for too long"),
    ],
)
def test_an_installer_pod_that_does_not_start(
    status: dict[str, Any], age: float, *, pending: bool, container: bool
) -> None:
    stepped = cluster(1, target=2)
    stepped.installers = (installer(status, age),)
    found = look(stepped, wanted=revision(2))
    assert (found[names.INSTALLER_POD_PENDING_DEGRADED].status == "True") is pending
    assert (found[names.INSTALLER_POD_WAITING_DEGRADED].status == "True") is container


def test_what_is_in_an_installers_way_is_said_at_once() -> None:
    failed = {"terminated": {"exitCode": 1, "message": "no space left on device"}}
    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    status = {
        "phase": "Running",
        "containerStatuses": [
            {"name": names.PREFLIGHT, "state": {"terminated": {"exitCode": 0}}},
            {"name": names.INSTALLER, "state": back_off, "lastState": failed},
        ],
    }
    stepped = cluster(1)
    stepped.installers = (installer(status, 1),)
    found = look(stepped, wanted=revision(2))[names.NODE_INSTALLER_DEGRADED]
    assert (found.status, found.reason) == ("True", names.REASON_INSTALLER_FAILED)
    assert found.message == 'node "a" cannot take revision 2: no space left on device'


def test_installer_pods_that_nobody_waits_for_do_not_count() -> None:
    stepped = cluster(2)
    stepped.installers = (installer(waiting("ErrImagePull"), 100),)
    found = look(stepped, wanted=revision(2))
    assert found[names.INSTALLER_POD_WAITING_DEGRADED].status == "False"


# --- the other steps ------------------------------------------------------------------------------


def test_findings_become_the_condition_that_they_name() -> None:
    findings = [
        Finding(names.TARGET_CONFIG_DEGRADED, "B", "spec.b", "second", True),
        Finding(names.TARGET_CONFIG_DEGRADED, "A", "spec.a", "first", True),
        Finding(names.OVERRIDES_UPGRADEABLE, "Set", "spec.o", "setting: [x]", False),
    ]
    found = {condition.type: condition for condition in from_findings(findings)}
    assert found[names.TARGET_CONFIG_DEGRADED].message == "spec.a: first\nspec.b: second"
    assert found[names.CONFIG_OBSERVATION_DEGRADED].status == "False"
    assert found[names.OVERRIDES_UPGRADEABLE].status == "False"
    assert {c.type: c for c in from_findings([])}[names.OVERRIDES_UPGRADEABLE].status == "True"


def test_a_note_about_revisions_is_no_degradation() -> None:
    (condition,) = revision_conditions("", "config-1 was deleted")
    assert (condition.status, condition.message) == ("False", "config-1 was deleted")
    (condition,) = revision_conditions("boom", "")
    assert (condition.status, condition.message) == ("True", "boom")
