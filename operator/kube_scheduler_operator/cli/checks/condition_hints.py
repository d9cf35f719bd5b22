"""What to do about each condition that is not as it should be, and where that is documented.

A condition's message has the cause and the fix for its object; the hint adds the command that shows
or solves it. Reasons that need another hint than their type come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...base import names


class Advice(NamedTuple):
    hint: str
    link: str  # page and anchor


MEANING: Final = "operations.md#what-the-conditions-mean"
_FAILURES: Final = "operations.md#failures"
_PULL: Final = Advice(
    "check that the node can pull the image: kubectl describe the Pod that the message names",
    MEANING,
)
_UNDO: Final = (
    "correct the field that the message names (kubectl edit scheduler cluster, or kubescheduler "
    "cluster), or revert the edit with kubectl scheduler rollout undo"
)

BY_REASON: Final[Mapping[tuple[str, str], Advice]] = {
    (names.ADOPTION_DEGRADED, "SchedulerHasConfigFile"): Advice(
        "see kubectl scheduler adopt --dry-run -f NODE=FILE with the file of that node",
        "adoption.md#before-adoption",
    ),
    (names.TARGET_CONFIG_DEGRADED, "NoOperandImage"): Advice(
        "set OPERAND_IMAGE on the operator's Deployment with kubectl set env; no edit of an object "
        "gives the image",
        "operations.md#settings-of-the-operator",
    ),
    # The annotation for the management state, for example, which no rollout undo reverts.
    (names.TARGET_CONFIG_DEGRADED, "UnknownValue"): Advice(
        "correct the value that the message names", "configuration.md"
    ),
    (names.NODE_INSTALLER_DEGRADED, "RevisionFailed"): Advice(_UNDO, _FAILURES),
    (names.STATIC_PODS_AVAILABLE, "LeaseNotRenewed"): Advice(
        "see kubectl scheduler status --verbose for the log of the scheduler that holds the Lease; "
        "restart its node's kubelet if the process hangs",
        "alerts.md#kubeschedulernoactivescheduler",
    ),
}

BY_TYPE: Final[Mapping[str, Advice]] = {
    names.CONFIG_OBSERVATION_DEGRADED: Advice(_UNDO, "adoption.md"),
    names.TARGET_CONFIG_DEGRADED: Advice(_UNDO, "configuration.md"),
    names.STATIC_RESOURCES_DEGRADED: Advice(
        "apply the manifests of the installed version again: they grant the right that is missing",
        "rights.md",
    ),
    names.REVISION_DEGRADED: Advice(
        "delete what the message names; kubectl scheduler history lists the revisions",
        "operations.md#revision-numbers",
    ),
    names.INSTALLER_DEGRADED: Advice(
        "apply the manifests of the installed version again if a right is missing; otherwise wait "
        "for the API server",
        "rights.md",
    ),
    names.NODE_INSTALLER_DEGRADED: Advice(
        "see kubectl scheduler status --verbose for the node; kubectl scheduler rollout undo "
        "reverts the edit",
        _FAILURES,
    ),
    names.STATIC_PODS_AVAILABLE: Advice(
        "see kubectl scheduler status --verbose for the scheduler of every node",
        "alerts.md#kubeschedulernoactivescheduler",
    ),
    names.STATIC_PODS_DEGRADED: Advice(
        "see kubectl scheduler status --verbose; pause the operator before you edit a node's files",
        "operations.md#pause-the-operator",
    ),
    names.INSTALLER_POD_PENDING_DEGRADED: _PULL,
    names.INSTALLER_POD_WAITING_DEGRADED: _PULL,
    names.NODES_DEGRADED: Advice(
        "repair the node, or delete its Node if it is gone; other nodes are not affected, and the "
        "rollout follows",
        _FAILURES,
    ),
    names.OVERRIDES_UPGRADEABLE: Advice(
        "remove spec.unsupportedConfigOverrides before an upgrade, or replace them by fields",
        "configuration.md",
    ),
    names.NEXT_VERSION_UPGRADEABLE: Advice(
        "change the fields that the message names before the upgrade", "kubeadm.md"
    ),
    names.UPGRADE_CHECK_PASSED: Advice(
        "see kubectl scheduler check --upgrade VERSION for all of it; change what the message "
        "names before the upgrade",
        "operator-settings.md#before-an-upgrade",
    ),
    names.OVERRIDES_DEGRADED: Advice(_UNDO, "configuration.md"),
    names.SCHEDULER_PROFILES_DEGRADED: Advice(
        "correct the field that the message names (kubectl edit schedulerprofile NAME); other "
        "profiles are not affected",
        "profiles.md",
    ),
    names.SCHEDULER_EXTENDERS_DEGRADED: Advice(
        "correct the field that the message names (kubectl edit schedulerextender NAME), or see "
        f"its Pods (label {names.EXTENDER_LABEL}=NAME); other extenders are not affected",
        "extenders.md",
    ),
    names.OPERATOR_SETTINGS_DEGRADED: Advice(
        "correct the field that the message names: kubectl edit operatorsettings cluster",
        "operator-settings.md",
    ),
    names.ADOPTION_DEGRADED: Advice(
        "change what the message names on the node; the schedulers keep running until then, and "
        "kubectl scheduler adopt --dry-run shows every setting",
        "adoption.md#before-adoption",
    ),
    names.PREFLIGHT_DEGRADED: Advice(
        "correct the setting that kube-scheduler names; no node was changed, and kubectl scheduler "
        "rollout undo reverts the edit",
        "validating.md",
    ),
    names.PLACEMENT_CHECK_PROGRESSING: Advice(
        "see kubectl scheduler rollout approve --dry-run; approve the edit, or revert it",
        "operator-settings.md",
    ),
    names.SECONDARY_CHECK_PROGRESSING: Advice(
        "see kubectl scheduler rollout approve --scheduler NAME --dry-run; approve the edit, or "
        "revert it",
        "operator-settings.md",
    ),
    names.SECONDARY_DEGRADED: Advice(
        "correct the field that the message names (kubectl edit secondaryscheduler NAME; for the "
        "one that the operator makes on a managed control plane, kubectl edit kubescheduler "
        "cluster), or see kubectl describe secondaryschedulers; other schedulers are not affected",
        "secondary-schedulers.md",
    ),
    names.LOAD_POLICIES_DEGRADED: Advice(
        "correct the field that the message names (kubectl edit loadpolicy NAME), or see kubectl "
        "describe loadpolicies",
        "load-aware.md",
    ),
    names.WRITES_DEGRADED: Advice(
        "kubectl apply --server-side --force-conflicts -k crds (on OpenShift "
        "-k deploy/openshift/crds), or stop the client that the message names",
        MEANING,
    ),
    names.SCHEDULERS_AVAILABLE: Advice("see kubectl describe secondaryschedulers", "managed.md"),
    names.PODS_WITHOUT_SCHEDULER: Advice(
        "kubectl scheduler pending -A lists the Pods; do one of what the message names",
        "placements.md",
    ),
    names.UNKNOWN_SCHEDULER: Advice(
        "stop that scheduler, or give its profile another schedulerName", MEANING
    ),
    names.UNKNOWN_LEASE_HOLDER: Advice(
        "give that scheduler a Lease of its own (leaderElection.resourceName)", MEANING
    ),
    names.CONFIGURATION_WARNINGS: Advice(
        "read what the warning means, and change the field or accept it", "validating.md#warnings"
    ),
    names.VERSION_SKEW: Advice(
        "upgrade the schedulers to the version of their API server", "kubeadm.md"
    ),
    names.PLATFORM_CHANGED: Advice(
        "decide with --platform of the operator; the message has both ways", "managed.md#detection"
    ),
    names.HAND_EDITS: Advice(
        "move the edit into KubeScheduler; the operator puts the files back while it is Managed",
        "operations.md#pause-the-operator",
    ),
    names.INEFFECTIVE_SETTINGS: Advice(
        "use the equivalent that the message names, or remove the field", MEANING
    ),
    names.KUBEADM_UPGRADE: Advice("finish kubeadm upgrade on all nodes", "kubeadm.md"),
    names.ETCD_RESTORED: Advice("check your last edits: etcd has an older state", _FAILURES),
    names.DEGRADED: Advice("see the condition's message", MEANING),
    names.AVAILABLE: Advice("see the condition's message", MEANING),
    names.ACCEPTED: Advice("correct the field that the message names", MEANING),
}


def advice(type_: str, reason: str) -> Advice:
    """What to do about a condition; a general hint for a type that is not listed."""
    known = BY_REASON.get((type_, reason)) or BY_TYPE.get(type_)
    return known or Advice("see kubectl scheduler status", MEANING)
