"""The public interface: kinds, object names, label and annotation keys, conditions and reasons.

Names of OpenShift's operator are unchanged, so that its manuals, alerts and dashboards work here;
docs/openshift-differences.md lists the few corrections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROGRAM: Final = "kube-scheduler-operator"
FIELD_MANAGER: Final = PROGRAM
OPERAND: Final = "kube-scheduler"
LEASE: Final = f"{PROGRAM}-lock"  # for leader election of the operator

# --- our API ----------------------------------------------------------------------------------
CLUSTER: Final = "cluster"  # the name of the only Scheduler, KubeScheduler, OperatorSettings
SCHEDULERS: Final = "schedulers.config.openshift.io"
KUBESCHEDULERS: Final = "kubeschedulers.operator.openshift.io"
CLUSTEROPERATORS: Final = "clusteroperators.config.openshift.io"
CLUSTEROPERATOR: Final = "kube-scheduler"
SCHEDULERPROFILES: Final = "schedulerprofiles.kube-scheduler-operator.dev"
SCHEDULEREXTENDERS: Final = "schedulerextenders.kube-scheduler-operator.dev"
ACCEPTED: Final = "Accepted"  # condition of the kinds of this group, but SecondaryScheduler
SECONDARYSCHEDULERS: Final = "secondaryschedulers.kube-scheduler-operator.dev"
LOADPOLICIES: Final = "loadpolicies.kube-scheduler-operator.dev"
OPERATORSETTINGS: Final = "operatorsettings.kube-scheduler-operator.dev"

# --- objects in the target namespace ----------------------------------------------------------
CONFIG: Final = "config"  # ConfigMap: the KubeSchedulerConfiguration
CONFIG_KEY: Final = "config.yaml"
POD: Final = "kube-scheduler-pod"  # ConfigMap: the static pod
POLICY: Final = "policy-configmap"  # ConfigMap: a copy for OpenShift's tools
POD_KEY: Final = "pod.yaml"
CA_BUNDLE: Final = "serviceaccount-ca"  # ConfigMap: the schedulers' CA bundle
CA_BUNDLE_KEY: Final = "ca-bundle.crt"
KUBECONFIG: Final = "scheduler-kubeconfig"  # ConfigMap: the schedulers' kubeconfig
KUBECONFIG_KEY: Final = "kubeconfig"
ADOPTED_KEY: Final = "adopted.json"  # in it: settings of the scheduler that predates the operator
PREFLIGHT_KUBECONFIG_KEY: Final = "preflight-kubeconfig"
FORCE_REDEPLOYMENT_KEY: Final = "forceRedeploymentReason"
REVISION_STATUS: Final = "revision-status"  # ConfigMap revision-status-N
INPUTS_KEY: Final = "inputs"  # in it: the users' settings (recorded_inputs.py)
INSTALLER: Final = "installer"  # pods installer-N-NODE, their app label and their container
RESTORE: Final = "restore"  # pods restore-NODE, which undo the adoption on a node
GUARD: Final = "guard"  # pods guard-NODE, their app label and their container
CONFIG_READER: Final = "config-reader"  # pods config-reader-NODE, their app label, container
HOST_FILE: Final = "host-file"  # beginning of the names of volumes from OperatorSettings
PREFLIGHT: Final = "preflight"  # container of the installer pod
OPERATOR_CONFIG_KEY: Final = "config.yaml"  # of the ConfigMap that configures the operator
CLIENT_CA: Final = (
    "extension-apiserver-authentication"  # ConfigMap of kube-system, the API server's
)
CLIENT_CA_KEY: Final = "client-ca-file"  # in it: the CA of its clients' certificates, PEM
INSTALLER_SERVICE_ACCOUNT: Final = "installer-sa"
PLATFORM_RECORD: Final = "platform"  # ConfigMap: the kind of cluster, decided once

# --- deploy/openshift -------------------------------------------------------------------------
PLACEHOLDERS: Final = frozenset(
    {"0.0.1-snapshot", "0.0.1-snapshot-kubernetes", "localhost/hyperkube:from-the-release-payload"}
)
"""Values of environment variables that the build of a release payload replaces."""

# --- labels and annotations -------------------------------------------------------------------
PREFIX: Final = "kube-scheduler-operator.dev"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"  # value: PROGRAM; selector of the watches
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"  # value: PROGRAM; on all objects of the operator
OWN_LABELS: Final[Mapping[str, str]] = {MANAGED_BY_LABEL: PROGRAM, PART_OF_LABEL: PROGRAM}
REVISION_LABEL: Final = "revision"  # on static pods, as in OpenShift
INSTALLER_REVISION_LABEL: Final = f"{PREFIX}/revision"
INSTALLER_NODE_LABEL: Final = f"{PREFIX}/node"
CONTENT_HASH_ANNOTATION: Final = f"{PREFIX}/content-hash"
KUBECONFIG_ANNOTATION: Final = f"{PREFIX}/kubeconfig"  # on static pods: its fingerprint at start
KUBECONFIG_EXPIRES_ANNOTATION: Final = f"{PREFIX}/kubeconfig-expires"  # and its expiry
KNOWN_EDIT_ANNOTATION: Final = f"{PREFIX}/known-edit"  # on guards: a hand edit that stays
PERMISSION_ANNOTATION: Final = f"{PREFIX}/go-ahead"  # words: allow go-ahead - public
PERMISSION_GRANTED: Final = "true"  # its value
OWNING_COMPONENT_ANNOTATION: Final = "openshift.io/owning-component"  # the owner of a CA bundle
REVISION_READY_ANNOTATION: Final = "operator.openshift.io/revision-ready"  # "true" once complete
OUTCOME_ANNOTATION: Final = f"{PREFIX}/outcome"  # on revision-status-N: see below
OUTCOME_MESSAGE_ANNOTATION: Final = f"{PREFIX}/outcome-message"
OUTCOME_TIME_ANNOTATION: Final = f"{PREFIX}/outcome-time"
QUARANTINED_HASH_ANNOTATION: Final = f"{PREFIX}/quarantined-hash"
MANAGEMENT_ANNOTATION: Final = f"{PREFIX}/management-state"  # of users, on KubeScheduler
PLACEMENT_CHECK_ANNOTATION: Final = f"{PREFIX}/placement-check"  # what its edit changes for Pods

# Values of OUTCOME_ANNOTATION; absent while a revision is rolled out.
OUTCOME_INSTALLED: Final = "installed"  # healthy on every node
OUTCOME_REFUSED: Final = "refused"  # rejected in the preflight; no node was changed
OUTCOME_FAILED: Final = "failed"  # did not stay healthy; the last good revision was restored
OUTCOME_SUPERSEDED: Final = "superseded"  # replaced by a newer revision before it was installed
OUTCOME_WITHDRAWN: Final = "withdrawn"  # the edit was reverted before a node ran it

# --- secondary schedulers ---------------------------------------------------------------------
SECONDARY: Final = "secondary-scheduler"  # value of the labels app and component of their pods
SECONDARY_LABEL: Final = f"{PREFIX}/{SECONDARY}"  # the owner's name, on all objects of one
CONFIG_HASH_LABEL: Final = f"{PREFIX}/config-hash"  # on their pods: the hash of their content
SPEC_HASH_ANNOTATION: Final = f"{PREFIX}/spec-hash"  # on their Deployments: hash of the spec
WRITTEN_GENERATION_ANNOTATION: Final = f"{PREFIX}/written-generation"  # and the generation written
ACCEPTED_SETTINGS_ANNOTATION: Final = f"{PREFIX}/accepted-settings"  # on the managed scheduler
ASSIGN_LABEL: Final = f"{PREFIX}/assign"  # of users, on pods and namespaces
ASSIGN_NEVER: Final = "never"  # its value: spec.assign does not apply
ASSIGNMENT: Final = f"assignment.{PREFIX}"  # the policy or the webhook that applies spec.assign
WEBHOOK: Final = f"{PROGRAM}-webhook"  # its Service, and the Secret of its certificates
OUTCOME_PROGRESSING: Final = "progressing"  # not rolled out yet; only of secondary schedulers

# --- load-aware scheduling --------------------------------------------------------------------
LOAD_ANNOTATION: Final = f"load.{PREFIX}/usage"  # on nodes: their measured load, JSON

# --- agents -----------------------------------------------------------------------------------
EXTENDER: Final = "scheduler-extender"  # value of the label app of their pods
EXTENDER_LABEL: Final = f"{PREFIX}/extender"  # the owner's name, on all objects of one
EXTENDER_PORT_ANNOTATION: Final = f"{PREFIX}/port"  # on their DaemonSets: their port

# --- load policies ----------------------------------------------------------------------------
LOAD_LABEL: Final = f"{PREFIX}/load-policy"  # the owner's name, on all objects of one
TOKEN_FOR_LABEL: Final = f"{PREFIX}/token-for"  # on Secrets of users: HOST or HOST_PORT
LOAD_ANNOTATOR: Final = "load-annotator"  # its app, container, ServiceAccount and Lease
KUBELET_STATS: Final = "load-kubelet-stats"  # ServiceAccount: reads nodes/stats, nothing else
NODE_METRICS: Final = "node-metrics"  # app and container of the exporter
LOAD_STATE: Final = "load-state"  # ConfigMap: the state that the annotator reports
LOAD_STATE_KEY: Final = "state.json"  # in it: written by the annotator
LOAD_WRITTEN_KEY: Final = "written"  # in it: the families of annotations that nodes may have
LOAD_CLEANUP: Final = "load-cleanup"  # Job: removes these annotations after the last policy

# --- conditions on KubeScheduler (openshift/library-go's unless marked as added) -----
CONFIG_OBSERVATION_DEGRADED: Final = "ConfigObservationDegraded"
TARGET_CONFIG_DEGRADED: Final = "TargetConfigControllerDegraded"
STATIC_RESOURCES_DEGRADED: Final = "KubeSchedulerStaticResourcesDegraded"  # there: KubeController…
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
NEXT_VERSION_UPGRADEABLE: Final = "NextVersionUpgradeable"  # added: accepted by the next minor
# Of controllers that this operator does not have: always False on OpenShift.
RESOURCE_SYNC_DEGRADED: Final = "ResourceSyncControllerDegraded"
BACKING_RESOURCE_DEGRADED: Final = "BackingResourceControllerDegraded"
GUARD_DEGRADED: Final = "GuardControllerDegraded"
MISSING_STATIC_POD_DEGRADED: Final = "MissingStaticPodControllerDegraded"
INSTALLER_POD_NETWORKING_DEGRADED: Final = "InstallerPodNetworkingDegraded"
CONTROLLER_MANAGER_RESOURCES_DEGRADED: Final = "KubeControllerManagerStaticResourcesDegraded"
OVERRIDES_DEGRADED: Final = "UnsupportedConfigOverridesDegraded"  # added: malformed overrides
SCHEDULER_PROFILES_DEGRADED: Final = "SchedulerProfilesDegraded"  # added: a profile is not accepted
SCHEDULER_EXTENDERS_DEGRADED: Final = "SchedulerExtendersDegraded"  # added: likewise, or no agent
OPERATOR_SETTINGS_DEGRADED: Final = "OperatorSettingsDegraded"  # added: it is not accepted
ADOPTION_DEGRADED: Final = "AdoptionDegraded"  # added: a setting of the old scheduler would be lost
PREFLIGHT_DEGRADED: Final = "PreflightDegraded"  # added: kube-scheduler rejected a revision
PLACEMENT_CHECK_PROGRESSING: Final = "PlacementCheckProgressing"  # added: an edit waits for it
SECONDARY_DEGRADED: Final = "SecondarySchedulersDegraded"  # added
SECONDARY_CHECK_PROGRESSING: Final = "SecondaryPlacementCheckProgressing"  # added: theirs
LOAD_POLICIES_DEGRADED: Final = "LoadPoliciesDegraded"  # added
WRITES_DEGRADED: Final = "WritesDegraded"  # added: writes without a lasting effect
# Added, informational: without a suffix, so that ClusterOperator ignores them.
PODS_WITHOUT_SCHEDULER: Final = "PodsWithoutScheduler"
INEFFECTIVE_SETTINGS: Final = "IneffectiveSettings"
UNKNOWN_SCHEDULER: Final = "UnknownScheduler"  # an unmanaged one binds the same pods
UNKNOWN_LEASE_HOLDER: Final = "UnknownLeaseHolder"  # an unmanaged one holds the Lease
ADOPTED_SETTINGS: Final = "AdoptedSettings"  # of the scheduler that predates the operator
HAND_EDITS: Final = "HandEdits"  # files on a node or labels of mirror pods were edited by hand
CONFIGURATION_WARNINGS: Final = "ConfigurationWarnings"  # accepted with warnings
ETCD_RESTORED: Final = "EtcdRestored"  # from a backup, within the last hour
VERSION_SKEW: Final = "VersionSkew"  # versions of schedulers and API servers
KUBEADM_UPGRADE: Final = "KubeadmUpgrade"  # kubeadm works on a node, or its request waits
UPGRADE_CHECK_PASSED: Final = "UpgradeCheckPassed"  # on request: what another version changes

# Added, where the provider runs the control plane's scheduler.
SCHEDULERS_AVAILABLE: Final = "SchedulersAvailable"
SCHEDULERS_PROGRESSING: Final = "SchedulersProgressing"
PLATFORM_CHANGED: Final = "PlatformChanged"  # informational: detection finds another platform now

# --- conditions on SecondaryScheduler; some on SchedulerProfile and SchedulerExtender as well --
AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
ASSIGNED: Final = "Assigned"  # informational: new pods that spec.assign selects get its name
WARNINGS: Final = "Warnings"  # informational: the object is accepted with warnings

# --- conditions on every kind of this group, as kstatus defines them ---------------------------
READY: Final = "Ready"  # the current generation schedules
RECONCILING: Final = "Reconciling"  # it will, without an edit
STALLED: Final = "Stalled"  # it will not without an edit

# --- reasons of conditions --------------------------------------------------------------------
REASON_HELD: Final = "Held"  # of PlacementCheckProgressing: the edit waits for an approval
REASON_WAITING: Final = "Waiting"  # of Accepted: the edit waits for the check of placements
REASON_STARTING: Final = "Starting"  # of Available: it is known to need some more time
REASON_NOT_MANAGED: Final = "NotManaged"  # of Available: another actor runs it

# --- node statuses ----------------------------------------------------------------------------
REASON_INSTALLER_FAILED: Final = "InstallerFailed"
REASON_OPERAND_FAILED: Final = "OperandFailed"
REASON_OPERAND_FALLBACK: Final = "OperandFailedFallback"

OVERRIDES: Final = "unsupportedConfigOverrides"  # a field of KubeScheduler's spec
