"""Every name that other programs, people and dashboards see, in one place.

Kinds, object names, label and annotation keys, condition types and reasons. Names that OpenShift's
operator has are kept letter by letter, so that its manuals, alerts and dashboards work here; those
that it misnamed are corrected and listed in docs/openshift-differences.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROGRAM: Final = "kube-scheduler-operator"
FIELD_MANAGER: Final = PROGRAM
OPERAND: Final = "kube-scheduler"
LEASE: Final = f"{PROGRAM}-lock"  # whose holder leads

# --- our API ----------------------------------------------------------------------------------
CLUSTER: Final = "cluster"  # the one Scheduler and the one KubeScheduler
SCHEDULERS: Final = "schedulers.config.openshift.io"
KUBESCHEDULERS: Final = "kubeschedulers.operator.openshift.io"
CLUSTEROPERATORS: Final = "clusteroperators.config.openshift.io"
CLUSTEROPERATOR: Final = "kube-scheduler"
SCHEDULERPROFILES: Final = "schedulerprofiles.kube-scheduler-operator.dev"
SCHEDULEREXTENDERS: Final = "schedulerextenders.kube-scheduler-operator.dev"
ACCEPTED: Final = "Accepted"  # of SchedulerProfiles, SchedulerExtenders and LoadPolicies
SECONDARYSCHEDULERS: Final = "secondaryschedulers.kube-scheduler-operator.dev"
LOADPOLICIES: Final = "loadpolicies.kube-scheduler-operator.dev"

# --- objects in the target namespace ----------------------------------------------------------
CONFIG: Final = "config"  # ConfigMap: the KubeSchedulerConfiguration
CONFIG_KEY: Final = "config.yaml"
POD: Final = "kube-scheduler-pod"  # ConfigMap: the static pod
POD_KEY: Final = "pod.yaml"
CA_BUNDLE: Final = "serviceaccount-ca"  # ConfigMap: what schedulers trust
CA_BUNDLE_KEY: Final = "ca-bundle.crt"
KUBECONFIG: Final = "scheduler-kubeconfig"  # ConfigMap: how schedulers find the API
KUBECONFIG_KEY: Final = "kubeconfig"
PREFLIGHT_KUBECONFIG_KEY: Final = "preflight-kubeconfig"
FORCE_REDEPLOYMENT_KEY: Final = "forceRedeploymentReason"
REVISION_STATUS: Final = "revision-status"  # ConfigMap revision-status-N
INPUTS_KEY: Final = "inputs"  # in it: what users had set (controlplane/revision/inputs.py)
INSTALLER: Final = "installer"  # pods installer-N-NODE, their app label and their container
RESTORE: Final = "restore"  # pods restore-NODE, which bring back what was there before
GUARD: Final = "guard"  # pods that stand for their node's scheduler, their app label and container
PREFLIGHT: Final = "preflight"  # container of the installer pod
INSTALLER_SERVICE_ACCOUNT: Final = "installer-sa"

# --- labels and annotations -------------------------------------------------------------------
PREFIX: Final = "kube-scheduler-operator.dev"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"  # value: PROGRAM; what the watches select
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"  # value: PROGRAM; on everything of ours
OWN_LABELS: Final[Mapping[str, str]] = {MANAGED_BY_LABEL: PROGRAM, PART_OF_LABEL: PROGRAM}
REVISION_LABEL: Final = "revision"  # on static pods, as in the reference
INSTALLER_REVISION_LABEL: Final = f"{PREFIX}/revision"
INSTALLER_NODE_LABEL: Final = f"{PREFIX}/node"
CONTENT_HASH_ANNOTATION: Final = f"{PREFIX}/content-hash"
KUBECONFIG_ANNOTATION: Final = f"{PREFIX}/kubeconfig"  # on static pods: what they started with
KUBECONFIG_EXPIRES_ANNOTATION: Final = f"{PREFIX}/kubeconfig-expires"  # and until when it is good
GO_AHEAD_ANNOTATION: Final = f"{PREFIX}/go-ahead"  # on installer pods, once they may swap
GO_AHEAD: Final = "true"  # its value
OWNING_COMPONENT_ANNOTATION: Final = "openshift.io/owning-component"  # who answers for a CA bundle
REVISION_READY_ANNOTATION: Final = "operator.openshift.io/revision-ready"  # "true" once complete
OUTCOME_ANNOTATION: Final = f"{PREFIX}/outcome"  # on revision-status-N: see Outcome
OUTCOME_MESSAGE_ANNOTATION: Final = f"{PREFIX}/outcome-message"
OUTCOME_TIME_ANNOTATION: Final = f"{PREFIX}/outcome-time"
QUARANTINED_HASH_ANNOTATION: Final = f"{PREFIX}/quarantined-hash"

# Values of OUTCOME_ANNOTATION; absent while a revision is still on its way.
OUTCOME_INSTALLED: Final = "installed"  # healthy on every node that it was meant for
OUTCOME_REFUSED: Final = "refused"  # kube-scheduler itself refused it; no node was touched
OUTCOME_FAILED: Final = "failed"  # did not stay healthy; the last good revision was put back
OUTCOME_SUPERSEDED: Final = "superseded"  # a newer revision came before it was installed
OUTCOME_WITHDRAWN: Final = "withdrawn"  # the edit was taken back before any node ran it

# --- further schedulers (secondary/) ----------------------------------------------------------
SECONDARY: Final = "secondary-scheduler"  # value of the labels app and component on their pods
SECONDARY_LABEL: Final = f"{PREFIX}/{SECONDARY}"  # whose it is; on everything made for one
CONFIG_HASH_LABEL: Final = f"{PREFIX}/config-hash"  # on their pods: of which content they are
SPEC_HASH_ANNOTATION: Final = f"{PREFIX}/spec-hash"  # on their Deployments: what was written
WRITTEN_GENERATION_ANNOTATION: Final = f"{PREFIX}/written-generation"  # and its generation then
OUTCOME_PROGRESSING: Final = "progressing"  # on its way; only in the history of further schedulers

# --- load-aware scheduling (scheduling/) -------------------------------------------------------
LOAD_ANNOTATION: Final = f"load.{PREFIX}/usage"  # on nodes: what was measured of them, JSON

# --- extenders that the operator runs (extenders/) --------------------------------------------
EXTENDER: Final = "scheduler-extender"  # value of the label app on their pods
EXTENDER_LABEL: Final = f"{PREFIX}/extender"  # whose it is; on everything made for one
EXTENDER_PORT_ANNOTATION: Final = f"{PREFIX}/port"  # on their DaemonSets: where they listen

# --- load policies (loads/) -------------------------------------------------------------------
LOAD_LABEL: Final = f"{PREFIX}/load-policy"  # whose it is; on everything made for one
LOAD_ANNOTATOR: Final = "load-annotator"  # its app, container, ServiceAccount and Lease
NODE_METRICS: Final = "node-metrics"  # app and container of the exporter
LOAD_STATE: Final = "load-state"  # ConfigMap: what is on nodes, and what the annotator says
LOAD_STATE_KEY: Final = "state.json"  # in it: written by the annotator
LOAD_WRITTEN_KEY: Final = "written"  # in it: families of annotations that nodes may have
LOAD_CLEANUP: Final = "load-cleanup"  # Job: takes them away when no policy is left

# --- conditions on KubeScheduler (those of openshift/library-go where not marked as ours) -----
CONFIG_OBSERVATION_DEGRADED: Final = "ConfigObservationDegraded"
TARGET_CONFIG_DEGRADED: Final = "TargetConfigControllerDegraded"
STATIC_RESOURCES_DEGRADED: Final = "KubeSchedulerStaticResourcesDegraded"  # theirs: KubeController…
REVISION_DEGRADED: Final = "RevisionControllerDegraded"
INSTALLER_DEGRADED: Final = "InstallerControllerDegraded"
NODE_INSTALLER_DEGRADED: Final = "NodeInstallerDegraded"
NODE_INSTALLER_PROGRESSING: Final = "NodeInstallerProgressing"
STATIC_PODS_AVAILABLE: Final = "StaticPodsAvailable"
STATIC_PODS_DEGRADED: Final = "StaticPodsDegraded"
INSTALLER_POD_PENDING_DEGRADED: Final = "InstallerPodPendingDegraded"
INSTALLER_POD_WAITING_DEGRADED: Final = "InstallerPodContainerWaitingDegraded"
NODES_DEGRADED: Final = "NodeControllerDegraded"
OVERRIDES_UPGRADEABLE: Final = "UnsupportedConfigOverridesUpgradeable"
OVERRIDES_DEGRADED: Final = "UnsupportedConfigOverridesDegraded"  # ours: malformed overrides
SCHEDULER_PROFILES_DEGRADED: Final = "SchedulerProfilesDegraded"  # ours: one is not accepted
SCHEDULER_EXTENDERS_DEGRADED: Final = "SchedulerExtendersDegraded"  # ours: likewise, or no agent
PREFLIGHT_DEGRADED: Final = "PreflightDegraded"  # ours: kube-scheduler refused a revision
SECONDARY_DEGRADED: Final = "SecondarySchedulersDegraded"  # ours: which ones, and why
LOAD_POLICIES_DEGRADED: Final = "LoadPoliciesDegraded"  # ours: which ones, and why
# Ours, and for information: no suffix, so ClusterOperator does not count them.
PODS_WITHOUT_SCHEDULER: Final = "PodsWithoutScheduler"
INEFFECTIVE_SETTINGS: Final = "IneffectiveSettings"
UNKNOWN_SCHEDULER: Final = "UnknownScheduler"  # who binds pods of a name that is served?
UNKNOWN_LEASE_HOLDER: Final = "UnknownLeaseHolder"  # who elects by the scheduler's Lease as well?
CONFIGURATION_WARNINGS: Final = "ConfigurationWarnings"  # it is accepted, and may surprise

# --- conditions on SecondaryScheduler; some on SchedulerProfile and SchedulerExtender as well --
AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
WARNINGS: Final = "Warnings"  # for information: what was accepted and may surprise

# --- node statuses ----------------------------------------------------------------------------
REASON_INSTALLER_FAILED: Final = "InstallerFailed"
REASON_OPERAND_FAILED: Final = "OperandFailed"
REASON_OPERAND_FALLBACK: Final = "OperandFailedFallback"
