"""The conditions of the report step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import record
from kube_scheduler_operator.operator.controlplane.conditions import (
    from_findings,
    revision_condition,
    rollout_conditions,
)
from kube_scheduler_operator.operator.controlplane.revision.history import Revision
from kube_scheduler_operator.operator.controlplane.revision.revise import RevisionResult
from kube_scheduler_operator.operator.controlplane.rollout import installer_pods as installers
from kube_scheduler_operator.operator.controlplane.rollout.kubeadm_upgrades import Request
from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import NodeStatus
from kube_scheduler_operator.operator.controlplane.rollout.observe import Observation
from kube_scheduler_operator.operator.controlplane.rollout.rollout_step import RolloutStep
from kube_scheduler_operator.operator.model import operand_pods as operands
from kube_scheduler_operator.operator.model.operand_pods import NodeDisk
from kube_scheduler_operator.operator.model.snapshot import Snapshot
from kube_scheduler_operator.operator.status.conditions import Condition
from kube_scheduler_operator.operator.status.scheduler_lease import control_plane_lease

from .... import builders
from ....builders import installer_pod, operand_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AVAILABLE, PROGRESSING = names.STATIC_PODS_AVAILABLE, names.NODE_INSTALLER_PROGRESSING
DEGRADED, PODS_DEGRADED = names.NODE_INSTALLER_DEGRADED, names.STATIC_PODS_DEGRADED


def revision(number: int, outcome: str = "", message: str = "") -> Revision:
    return Revision(number, {}, True, "", outcome, message, frozenset(), (), {})


def operand(node: str, number: int = 1, **status: Any) -> operands.OperandPod:
    return operands.read(operand_pod(node, number, is_ready=status.pop("ready", True), **status))


def installer(status: dict[str, Any], age: float, node: str = "a") -> installers.Installer:
    created = rfc3339(NOW - timedelta(seconds=age))
    return installers.read(installer_pod(node, 2, status, created=created))


def lease(holder: str = "a_uid", seconds: int = 15) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds}}


def conditions_of(
    cluster: RolloutStep,
    *,
    desired: Revision | None = None,
    rejected: Revision | None = None,
    **fields: Any,
) -> dict[str, Condition]:
    names_of_nodes = [status.node for status in cluster.node_statuses]
    nodes = {name: {"metadata": {"name": name}} for name in names_of_nodes}
    given = {"now": NOW, "nodes": nodes, "operand_lease": lease(), "lease_seen": NOW, **fields}
    revised = RevisionResult(desired=desired, rejected=rejected)
    step = replace(cluster, snapshot=builders.snapshot(**given), revised=revised)
    found = rollout_conditions(step)
    assert len({condition.type for condition in found}) == len(found)
    return {condition.type: condition for condition in found}


def cluster(
    *currents: int,
    target: int = 0,
    waiting: Mapping[str, str] = MappingProxyType({}),
    failed: Mapping[str, Any] = MappingProxyType({}),
    **observed: Any,
) -> RolloutStep:
    """Nodes a, b, c with healthy schedulers; the first one may have a target or a failure."""
    nodes = "abcd"[: len(currents)]
    statuses = [NodeStatus(n, current=c) for n, c in zip(nodes, currents, strict=True)]
    if target or failed:
        statuses[0] = NodeStatus("a", current=currents[0], target=target, **failed)
    pods = {s.node: operand(s.node, s.current) for s in statuses if s.current}
    observation = Observation(**{"operands": pods, **observed})
    given, revised = builders.snapshot(), RevisionResult()
    return RolloutStep(given, revised, observation, tuple(statuses), waiting=waiting)


FAILING = {"failed_revision": 2, "failed_count": 1, "failed_reason": "InstallerFailed"}


@pytest.mark.parametrize(
    ("shown", "latest", "expected"),
    [
        pytest.param(
            cluster(1, 1, 2, 1, target=2, failed=FAILING), 2, "TTT", id="failing on its target"
        ),
        pytest.param(
            cluster(1, 1, 2, 1, target=3, failed=FAILING), 3, "TTF", id="failed on an older target"
        ),
        pytest.param(cluster(2, 1, 2, 1), 2, "TTF", id="some behind"),
        pytest.param(cluster(2, 2, 2), 2, "TFF", id="all at the revision"),
        pytest.param(
            cluster(0, 0), 2, "FTF", id="none yet (the reference checks revisions, not pods)"
        ),
        pytest.param(cluster(1, 1), 2, "TTF", id="all behind"),
        pytest.param(cluster(), 2, "FFF", id="no nodes"),
        pytest.param(cluster(3, 2), 2, "TFF", id="added: ahead is not behind"),
    ],
)
def test_conditions_equal_the_references(shown: RolloutStep, latest: int, expected: str) -> None:
    found = conditions_of(shown, desired=revision(latest))
    assert (
        "".join(found[type_].status[0] for type_ in (AVAILABLE, PROGRESSING, DEGRADED)) == expected
    )


def test_progressing_reports_what_each_node_waits_for() -> None:
    waiting = {"b": "the node is not Ready", "a": "replacing the scheduler"}
    shown = cluster(1, 1, target=2, waiting=waiting)
    assert conditions_of(shown, desired=revision(2))[PROGRESSING].message == (
        "moving to revision 2; 2 nodes are at revision 1; 0 nodes have achieved new revision 2; "
        "a: replacing the scheduler; b: the node is not Ready"
    )


@pytest.mark.parametrize(
    ("born", "progressing"),
    [(NOW, "False"), (NOW - timedelta(hours=2), "True")],
    ids=["after the revision was installed", "before: it is adopted"],
)
def test_a_joining_node_is_not_progress(born: datetime, progressing: str) -> None:
    installed = {names.OUTCOME_TIME_ANNOTATION: rfc3339(NOW - timedelta(hours=1))}
    desired = replace(
        revision(2, names.OUTCOME_INSTALLED), status={"metadata": {"annotations": installed}}
    )
    shown = cluster(2, 2, 0, waiting={"c": "the installer pod is starting"})
    nodes = {
        name: {"metadata": {"name": name, "creationTimestamp": rfc3339(born)}} for name in "abc"
    }
    found = conditions_of(shown, desired=desired, nodes=nodes)[PROGRESSING]
    assert found.status == progressing
    assert "c: the installer pod is starting" in found.message


def test_a_refused_revision_is_not_progress() -> None:
    refused = revision(2, names.OUTCOME_REFUSED, "no such plugin")
    found = conditions_of(cluster(1), desired=revision(1), rejected=refused)
    assert found[PROGRESSING].reason == "RevisionRejected"
    assert found[PROGRESSING].status == "False"
    assert found[names.PREFLIGHT_DEGRADED].status == "True"
    assert found[names.PREFLIGHT_DEGRADED].message == (
        "kube-scheduler refused revision 2; no node was changed: no such plugin"
    )
    assert found[DEGRADED].status == "False"


def test_a_failed_revision_is_reported_with_its_error() -> None:
    found = conditions_of(cluster(1), rejected=revision(2, names.OUTCOME_FAILED, "boom"))
    assert (found[DEGRADED].status, found[DEGRADED].reason) == ("True", "RevisionFailed")
    assert found[DEGRADED].message == "boom"
    assert found[names.PREFLIGHT_DEGRADED].status == "False"


def test_a_write_error_is_reported() -> None:
    found = conditions_of(cluster(1), last_error="create pods: 403 Forbidden")
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
        pytest.param(
            {"lease_seen": None, "answered_since": NOW - timedelta(seconds=20)},
            "AsExpected",
            id="not seen yet by a process that has just started",
        ),
        pytest.param(
            {"lease_seen": None, "answered_since": NOW - timedelta(seconds=20.1)},
            "LeaseNotRenewed",
            id="not seen since the process started",
        ),
        pytest.param(
            {
                "lease_seen": None,
                "answered_since": NOW,
                "kubescheduler": {
                    "status": {"conditions": [{"type": AVAILABLE, "status": "False"}]}
                },
            },
            "LeaseNotRenewed",
            id="not renewed before the process started",
        ),
        pytest.param({"operand_lease": None}, "LeaseNotRenewed", id="no Lease"),
        pytest.param({"operand_lease": lease("")}, "LeaseNotRenewed", id="no holder"),
        pytest.param(
            {"operand_lease": lease(seconds=60), "lease_seen": NOW - timedelta(seconds=60)},
            "AsExpected",
            id="a longer Lease",
        ),
    ],
)
def test_available_means_that_pods_are_scheduled(fields: dict[str, Any], reason: str) -> None:
    condition = conditions_of(cluster(1), **fields)[AVAILABLE]
    assert condition.reason == reason
    assert condition.status == ("True" if reason == "AsExpected" else "False")


def test_a_lease_alone_does_not_make_it_available() -> None:
    shown = cluster(1, operands={"a": operand("a", ready=False)})
    assert conditions_of(shown)[AVAILABLE].reason == "NoReadyScheduler"


@pytest.mark.parametrize(
    ("fields", "ready_node", "status"),
    [
        pytest.param({}, "False", "True", id="its kubelet is gone"),
        pytest.param({}, "True", "False", id="its kubelet reports it"),
        pytest.param({"operand_lease": lease("b_1")}, "False", "False", id="another node holds it"),
        pytest.param({"lease_seen": None}, "False", "False", id="no renewal was seen"),
        pytest.param(
            {"answered_since": NOW - timedelta(seconds=5)},
            "False",
            "False",
            id="listed, not renewed",
        ),
        pytest.param(
            {"lease_seen": NOW - timedelta(seconds=30)}, "False", "False", id="not renewed"
        ),
    ],
)
def test_the_scheduler_of_a_node_that_is_not_ready_is_available_by_its_lease(
    fields: dict[str, Any], ready_node: str, status: str
) -> None:
    ready = {"type": "Ready", "status": ready_node}
    node = {"metadata": {"name": "a"}, "status": {"conditions": [ready]}}
    unseen = {} if ready_node == "True" else {"a": "a is not Ready"}
    shown = cluster(1, operands={"a": operand("a", ready=False)}, not_ready=unseen)
    given = {"nodes": {"a": node}, "operand_lease": lease("a_1"), **fields}
    condition = conditions_of(shown, **given)[AVAILABLE]
    assert condition.status == status
    if status == "True":
        assert condition.message == (
            'the scheduler on node "a" renews its Lease; its Pod is not observed, because the '
            "node is not Ready"
        )


def test_a_reconcile_is_scheduled_for_the_expiry_of_the_lease() -> None:
    def snapshot(age: float) -> Snapshot:
        return builders.snapshot(
            now=NOW,
            operand_lease=lease(),
            lease_seen=NOW - timedelta(seconds=age),
        )

    _, wait = control_plane_lease(snapshot(5))
    assert wait == pytest.approx(15.5)
    assert wait is not None
    late = snapshot(5 + wait)
    problem, wait = control_plane_lease(late)
    assert problem
    assert wait is None


# --- a healthy cluster ----------------------------------------------------------------------------


def installed(
    number: int, profile: str | None = None, kubescheduler: Mapping[str, Any] = MappingProxyType({})
) -> Revision:
    """A revision with its inputs."""
    spec = {"spec": {"profile": profile}} if profile else {}
    inputs = {names.INPUTS_KEY: record(spec, kubescheduler)}
    return replace(revision(number, names.OUTCOME_INSTALLED), status={"data": inputs})


@pytest.mark.parametrize(
    ("shown", "desired", "available", "progressing", "nodes"),
    [
        pytest.param(
            cluster(7, 7, 7),
            installed(7, "HighNodeUtilization"),
            "3 of 3 nodes at revision 7, profile HighNodeUtilization",
            "All 3 nodes are at revision 7",
            "All 3 control-plane nodes are Ready",
            id="three nodes",
        ),
        pytest.param(
            cluster(7),
            installed(7),
            "1 of 1 node at revision 7, profile LowNodeUtilization",
            "1 node is at revision 7",
            "The control-plane node is Ready",
            id="one node, default profile",
        ),
        pytest.param(
            cluster(7, 7),
            revision(7),
            "2 of 2 nodes at revision 7",
            "All 2 nodes are at revision 7",
            "All 2 control-plane nodes are Ready",
            id="inputs not recorded",
        ),
        pytest.param(
            cluster(7, 7, operands={"a": operand("a", 7)}),
            installed(7),
            "1 of 2 nodes at revision 7, profile LowNodeUtilization",
            "All 2 nodes are at revision 7",
            "All 2 control-plane nodes are Ready",
            id="one scheduler is missing",
        ),
        pytest.param(
            cluster(7, operands={"a": operand("a", 6)}),
            installed(7),
            "0 of 1 node at revision 7",
            "1 node is at revision 7",
            "The control-plane node is Ready",
            id="no Pod runs the profile",
        ),
        pytest.param(
            cluster(6, 7),
            installed(7),
            "2 nodes are active; 1 node is at revision 6; 1 node is at revision 7",
            "moving to revision 7; 1 node is at revision 6; 1 node is at revision 7",
            "All 2 control-plane nodes are Ready",
            id="during a rollout",
        ),
    ],
)
def test_a_healthy_cluster_reports_its_revision(
    shown: RolloutStep, desired: Revision, available: str, progressing: str, nodes: str
) -> None:
    found = conditions_of(shown, desired=desired)
    messages = [found[type_].message for type_ in (AVAILABLE, PROGRESSING, names.NODES_DEGRADED)]
    assert messages == [available, progressing, nodes]


@pytest.mark.parametrize(
    ("field", "profile", "changed"),
    [
        ("observedConfig", {"plugins": {}}, True),
        ("observedConfig", {"schedulerName": "default-scheduler"}, True),
        ("unsupportedConfigOverrides", {"pluginConfig": []}, True),
        ("observedConfig", {"schedulerName": "packed"}, False),
    ],
)
def test_what_changes_the_profile_of_scheduler_is_named(
    field: str, profile: Mapping[str, Any], changed: bool
) -> None:
    kubescheduler = {"spec": {field: {"profiles": [profile]}}}
    desired = installed(7, kubescheduler=kubescheduler)
    found = conditions_of(cluster(7), desired=desired, kubescheduler=kubescheduler)
    change = f" changed by spec.{field}.profiles of KubeScheduler" if changed else ""
    message = f"1 of 1 node at revision 7, profile LowNodeUtilization{change}"
    assert found[AVAILABLE].message == message


def test_refused_overrides_change_no_profile() -> None:
    refused: dict[str, Any] = {
        "spec": {"unsupportedConfigOverrides": {"profiles": [{"pluginConfig": []}]}}
    }
    found = conditions_of(cluster(7), desired=installed(7), kubescheduler=refused)
    message = "1 of 1 node at revision 7, profile LowNodeUtilization"
    assert found[AVAILABLE].message == message


def test_on_openshift_a_healthy_cluster_has_the_references_messages() -> None:
    found = conditions_of(cluster(7, 7), desired=installed(7), platform=OPENSHIFT)
    assert found[AVAILABLE].message == "2 nodes are active; 2 nodes are at revision 7"
    assert found[PROGRESSING].message == "2 nodes are at revision 7"
    assert found[names.NODES_DEGRADED].message == "All master nodes are ready"


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
            "will be put back: find out who changed the manifest",
            id="stock manifest",
        ),
        pytest.param(operand("a", 1), "", id="well"),
    ],
)
def test_problems_of_a_scheduler(pod: operands.OperandPod | None, message: str) -> None:
    shown = cluster(1, operands={"a": pod} if pod else {})
    condition = conditions_of(shown)[PODS_DEGRADED]
    assert condition.message == message
    assert condition.status == ("True" if message else "False")


def test_flags_that_kubeadm_wrote_are_put_back_and_the_field_is_named() -> None:
    image = "registry.k8s.io/kube-scheduler:v1.35.4"
    disk = NodeDisk(1, edits=("/m",), edit="e", image=image)
    message = conditions_of(cluster(1, disks={"a": disk}))[PODS_DEGRADED].message
    assert "/m changed since revision 1 was installed, and will be put back" in message
    assert "the manifest on a has kubeadm's form" in message
    assert "Set flags in spec.unsupportedConfigOverrides.arguments" in message


EDITED = NodeDisk(1, edits=("/m", "/c"), edit="e", labelled=1)
HAND_EDIT = 'node "a": /m, /c changed since revision 1 was installed'


@pytest.mark.parametrize(
    ("disk", "keeps", "hand_edits", "degraded"),
    [
        (EDITED, False, f"{HAND_EDIT}, and will be put back", True),
        (EDITED, True, f"{HAND_EDIT}; the edit stays until the next revision", False),
        (replace(EDITED, labelled=99), True, f"{HAND_EDIT}, and will be put back", True),
        (replace(EDITED, edits=()), True, "", False),
    ],
    ids=["put back", "kept", "with another label", "none"],
)
def test_a_hand_edit_is_reported(
    disk: NodeDisk, keeps: bool, hand_edits: str, degraded: bool
) -> None:
    found = conditions_of(
        cluster(1, disks={"a": disk}), platform=replace(KUBEADM, keeps_hand_edits=keeps)
    )
    assert found[names.HAND_EDITS].message == hand_edits
    assert found[names.HAND_EDITS].status == ("True" if hand_edits else "False")
    assert found[PODS_DEGRADED].status == ("True" if degraded else "False")
    assert not degraded or HAND_EDIT in found[PODS_DEGRADED].message


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        (("/m",), "/c changed and /m was deleted"),
        (("/m", "/c"), "/m, /c were deleted"),
    ],
)
def test_a_deleted_file_is_not_called_changed(missing: tuple[str, ...], what: str) -> None:
    disk = replace(EDITED, missing=missing, labelled=0)
    message = conditions_of(cluster(1, disks={"a": disk}))[names.HAND_EDITS].message
    assert message == f'node "a": {what} since revision 1 was installed, and will be put back'


@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT])
def test_advice_about_edits_names_what_the_platform_has(platform: Platform) -> None:
    """The CRD of OpenShift refuses Unmanaged; an annotation requests it there."""
    disk = replace(EDITED, labelled=99)
    shown = cluster(1, disks={"a": disk})
    message = conditions_of(shown, platform=platform)[PODS_DEGRADED].message
    assert ("set managementState to Unmanaged" in message) == (platform is KUBEADM)
    assert (names.MANAGEMENT_ANNOTATION in message) == (platform is OPENSHIFT)


def test_edits_on_a_node_that_is_not_observed_are_not_known() -> None:
    since = 'node "b" not ready since 2026-01-01T00:00:00Z because NodeStatusUnknown (m)'
    disks = {"a": NodeDisk(1, labelled=1), "b": NodeDisk(1, labelled=1)}
    found = conditions_of(cluster(1, 1, disks=disks, not_ready={"b": since}))
    edits, pods = found[names.HAND_EDITS], found[PODS_DEGRADED]
    assert (edits.status, edits.reason) == ("Unknown", "NotObserved")
    assert since in edits.message
    assert (pods.status, "not observed on b" in pods.message) == ("False", True)
    unread = conditions_of(cluster(1, 1, disks={"a": disks["a"]}))[names.HAND_EDITS]
    assert (unread.status, 'node "b"' in unread.message) == ("Unknown", True)
    read = conditions_of(cluster(1, 1, disks=disks))[names.HAND_EDITS]
    assert (read.status, read.message) == ("False", "")


def test_an_upgrade_on_a_node_that_is_not_observed_is_not_known() -> None:
    """While kubeadm replaces etcd, the node's kubelet reaches no API server."""
    since = 'node "b" not ready since 2026-01-01T00:00:00Z because NodeStatusUnknown (m)'
    disks = {"a": NodeDisk(1, labelled=1), "b": NodeDisk(1, labelled=1)}
    shown = cluster(1, 1, disks=disks, not_ready={"b": since})
    upgrade = conditions_of(shown)[names.KUBEADM_UPGRADE]
    assert (upgrade.status, upgrade.reason) == ("Unknown", "NotObserved")
    assert upgrade.message == f"{since}; whether kubeadm works there is not known"
    assert conditions_of(shown, platform=OPENSHIFT)[names.KUBEADM_UPGRADE].status == "False"
    read = conditions_of(cluster(1, 1, disks=disks))[names.KUBEADM_UPGRADE]
    assert (read.status, read.message) == ("False", "")


def test_a_followed_upgrade_names_what_the_check_of_its_version_had_found() -> None:
    disks = {"a": NodeDisk(1, labelled=1)}
    shown = cluster(1, disks=disks)
    request = Request("registry.k8s.io/kube-scheduler:v1.36.3", "registry.k8s.io/x:v1.35.4")
    shown = replace(shown, requests={"a": request})
    record = {
        "version": "1.36", "result": "Changes", "checked": "2026-01-01T00:00:00Z",
        "message": "something changes\n1.36: a line",
    }  # fmt: skip
    written = 'node "a": kubeadm wrote registry.k8s.io/kube-scheduler:v1.36.3; a revision with it '
    for version, known in (("1.36", True), ("1.37", False)):
        status = {"upgradeCheck": {**record, "version": version}}
        settings = {"cluster": builders.operator_settings(status=status)}
        upgrade = conditions_of(shown, operator_settings=settings)[names.KUBEADM_UPGRADE]
        assert (upgrade.status, upgrade.reason) == ("True", "Requested")
        assert upgrade.message.startswith(f"{written}follows")
        of_check = "; the check of 1.36 at 2026-01-01T00:00:00Z: something changes"
        assert upgrade.message.endswith(of_check) == known


def test_an_edited_label_is_reported_with_the_way_to_repair_it() -> None:
    shown = cluster(
        1, operands={"a": operand("a", 99)}, disks={"a": NodeDisk(1, labelled=1, begun=NOW)}
    )
    found = conditions_of(shown)
    assert found[PODS_DEGRADED].status == "False"
    assert (
        "the label revision of pod/kube-scheduler-a was edited" in found[names.HAND_EDITS].message
    )
    assert "Delete the Pod" in found[names.HAND_EDITS].message


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(cluster(1, target=2, operands={}), id="moving"),
        pytest.param(cluster(1, operands={}, not_ready={"a": "..."}), id="node not Ready"),
        pytest.param(
            cluster(1, operands={"a": operand("a", 2)}, failed={"failed_revision": 2}),
            id="just rolled back",
        ),
    ],
)
def test_expected_states_are_not_problems(shown: RolloutStep) -> None:
    assert conditions_of(shown)[PODS_DEGRADED].status == "False"


def test_nodes_that_are_not_ready() -> None:
    shown = cluster(1, 1, not_ready={"b": 'node "b" not ready'})
    condition = conditions_of(shown)[names.NODES_DEGRADED]
    assert (condition.status, condition.reason) == ("True", "MasterNodesNotReady")
    assert condition.message == 'The master nodes not ready: node "b" not ready'
    assert conditions_of(cluster())[names.NODES_DEGRADED].reason == "NoControlPlaneNodes"
    assert conditions_of(cluster(1))[names.NODES_DEGRADED].status == "False"


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
        pytest.param(waiting("ErrImagePull"), 1, False, True, id="no image: reported at once"),
        pytest.param(waiting("CreateContainerConfigError"), 1, False, True, id="cannot start"),
        pytest.param(waiting("SomethingNew"), 59, False, False, id="unknown reason, patience"),
        pytest.param(waiting("SomethingNew"), 61, False, True, id="unknown reason for too long"),
        pytest.param(waiting("ContainerCreating"), 61, True, False, id="creating for too long"),
    ],
)
def test_an_installer_pod_that_does_not_start(
    status: dict[str, Any], age: float, *, pending: bool, container: bool
) -> None:
    shown = cluster(1, target=2, installers=(installer(status, age),))
    found = conditions_of(shown, desired=revision(2))
    assert (found[names.INSTALLER_POD_PENDING_DEGRADED].status == "True") is pending
    assert (found[names.INSTALLER_POD_WAITING_DEGRADED].status == "True") is container


def test_an_installers_problem_is_reported_at_once() -> None:
    failed = {"terminated": {"exitCode": 1, "message": "no space left on device"}}
    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    status = {
        "phase": "Running",
        "containerStatuses": [
            {"name": names.PREFLIGHT, "state": {"terminated": {"exitCode": 0}}},
            {"name": names.INSTALLER, "state": back_off, "lastState": failed},
        ],
    }
    shown = cluster(1, installers=(installer(status, 1),))
    found = conditions_of(shown, desired=revision(2))[names.NODE_INSTALLER_DEGRADED]
    assert (found.status, found.reason) == ("True", names.REASON_INSTALLER_FAILED)
    assert found.message == 'node "a" cannot install revision 2: no space left on device'


def test_unneeded_installer_pods_are_not_reported() -> None:
    shown = cluster(2, installers=(installer(waiting("ErrImagePull"), 100),))
    found = conditions_of(shown, desired=revision(2))
    assert found[names.INSTALLER_POD_WAITING_DEGRADED].status == "False"


# --- the other steps ------------------------------------------------------------------------------


def test_findings_become_their_condition() -> None:
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


def test_a_note_about_revisions_is_not_degraded() -> None:
    condition = revision_condition(RevisionResult(note="config-1 was deleted"))
    assert (condition.status, condition.message) == ("False", "config-1 was deleted")
    condition = revision_condition(RevisionResult(problem="boom"))
    assert (condition.status, condition.message) == ("True", "boom")
