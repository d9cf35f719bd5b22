"""What OpenShift's own kube-scheduler operator has, and why ours differs where it does. Data.

The facts are those of a cluster with one control-plane node at rest after its profile has been
edited, in the words of `openshift_facts`. Where the reference is silent, nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from pages.comparison import Reason
from pages.openshift_facts import NAMESPACE

_YES = "yes"
_TYPES = "KubeScheduler: condition types"
_STATES = "KubeScheduler: status and reason at rest"
_MESSAGES = "KubeScheduler: messages at rest"
_FIELDS = "KubeScheduler: fields"
_OPERATOR = "ClusterOperator"
_DURING = "While the edit rolls out"
_OBJECTS = f"Objects in {NAMESPACE}"
_METADATA = "Labels and annotations"
_KEYS = "Keys of ConfigMaps"
_POD = "Static pod"
_FLAGS = "Flags of kube-scheduler"
_CONFIG = "Configuration of kube-scheduler"
_INSTALLER = "Installer pod"
_EVENTS = "Events of the rollout"
_EVENT_MESSAGES = "Events of the rollout: messages"
_ABOUT = "Events of the rollout: about"

KNOWN_ONLY = frozenset({_STATES, _MESSAGES, _METADATA, _KEYS, _INSTALLER, _EVENT_MESSAGES})
"""Of these the reference is known in part, or what exists at all is told in another group."""

_KUBECONFIG = "/etc/kubernetes/static-pod-resources/configmaps/scheduler-kubeconfig/kubeconfig"
_SUITES = "\n".join(
    [
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ]
)
_UNSET_POINTS = (
    "bind, filter, multiPoint, permit, placementGenerate, placementScore, postBind, postFilter, "
    "preBind, preEnqueue, preFilter, preScore, queueSort, reserve"
)
_AT_REST = {
    "TargetConfigControllerDegraded": "False, no reason",
    "ConfigObservationDegraded": "False, no reason",
    "ResourceSyncControllerDegraded": "False, no reason",
    "KubeControllerManagerStaticResourcesDegraded": "False, AsExpected",
    "BackingResourceControllerDegraded": "False, AsExpected",
    "RevisionControllerDegraded": "False, AsExpected",
    "GuardControllerDegraded": "False, AsExpected",
    "MissingStaticPodControllerDegraded": "False, AsExpected",
    "InstallerControllerDegraded": "False, no reason",
    "NodeInstallerDegraded": "False, no reason",
    "NodeInstallerProgressing": "False, AllNodesAtLatestRevision",
    "StaticPodsAvailable": "True, no reason",
    "InstallerPodPendingDegraded": "False, no reason",
    "InstallerPodContainerWaitingDegraded": "False, no reason",
    "InstallerPodNetworkingDegraded": "False, no reason",
    "StaticPodsDegraded": "False, no reason",
    "NodeControllerDegraded": "False, MasterNodesReady",
    "UnsupportedConfigOverridesUpgradeable": "True, NoUnsupportedConfigOverrides",
}
_REVISIONED = (
    "config",
    "kube-scheduler-cert-syncer-kubeconfig",
    "kube-scheduler-pod",
    "scheduler-kubeconfig",
    "serviceaccount-ca",
)
_PRIVILEGED = "pod-security.kubernetes.io"
_OWNED = "label operator.openshift.io/controller-instance-name"
_REVISION_CONTROLLER = "kube-scheduler-RevisionController"

REFERENCE: Mapping[str, Mapping[str, str]] = {
    _TYPES: dict.fromkeys(_AT_REST, _YES),
    _STATES: _AT_REST,
    _MESSAGES: {
        "NodeInstallerProgressing": "1 node is at revision N",
        "StaticPodsAvailable": "1 nodes are active; 1 node is at revision N",
        "NodeControllerDegraded": "All master nodes are ready",
    },
    _FIELDS: {
        "status.conditions": _YES,
        "status.latestAvailableRevision": _YES,
        "status.nodeStatuses": _YES,
        "status.nodeStatuses.nodeName": _YES,
        "status.nodeStatuses.currentRevision": _YES,
        "spec.observedConfig.servingInfo.cipherSuites": _SUITES,
        "spec.observedConfig.servingInfo.minTLSVersion": "VersionTLS12",
    },
    _OPERATOR: {
        "Available at rest": "True, AsExpected",
        "Progressing at rest": "False, AsExpected",
        "Degraded at rest": "False, AsExpected",
        "Upgradeable at rest": "True, AsExpected",
        "EvaluationConditionsDetected at rest": "Unknown, NoData",
        "message of Available at rest": (
            "StaticPodsAvailable: 1 nodes are active; 1 node is at revision N"
        ),
        "message of Progressing at rest": "NodeInstallerProgressing: 1 node is at revision N",
        "message of Degraded at rest": "NodeControllerDegraded: All master nodes are ready",
        "message of Upgradeable at rest": "All is well",
        "version of operator": "the release's",
        "version of raw-internal": "the release's",
        "version of kube-scheduler": "kube-scheduler's, without v",
        "related: kubeschedulers.operator.openshift.io/cluster": _YES,
        "related: schedulers.config.openshift.io/": _YES,
        "related: namespaces/openshift-config": _YES,
        "related: namespaces/openshift-config-managed": _YES,
        "related: namespaces/openshift-kube-scheduler": _YES,
        "related: namespaces/openshift-kube-scheduler-operator": _YES,
        "related: podnetworkconnectivitychecks.controlplane.operator.openshift.io/ "
        "in openshift-kube-apiserver": _YES,
        "related: clusterrolebindings.rbac.authorization.k8s.io/"
        "system:openshift:operator:cluster-kube-scheduler-operator": _YES,
        "printer columns": "Version, Available, Progressing, Degraded, Since",
    },
    _DURING: {
        "NodeInstallerProgressing": "False, AllNodesAtLatestRevision\nTrue, no reason",
        "StaticPodsAvailable": "True, no reason",
        "ClusterOperator Available": "True, AsExpected",
        "ClusterOperator Progressing": "False, AsExpected\nTrue, NodeInstaller",
        "ClusterOperator Degraded": "False, AsExpected",
        "ClusterOperator Upgradeable": "True, AsExpected",
        "ClusterOperator EvaluationConditionsDetected": "Unknown, NoData",
        "first message of NodeInstallerProgressing": (
            "1 node is at revision N; 0 nodes have achieved new revision N"
        ),
    },
    _OBJECTS: {
        **{f"ConfigMap {name}": _YES for name in _REVISIONED},
        **{f"ConfigMap {name}-N": _YES for name in _REVISIONED},
        "ConfigMap revision-status-N": _YES,
        "Secret kube-scheduler-client-cert-key": _YES,
        "Secret localhost-recovery-client-token": _YES,
        "Secret localhost-recovery-client-token-N": _YES,
        "Secret serving-cert": _YES,
        "Secret serving-cert-N": _YES,
        "ServiceAccount installer-sa": _YES,
        "ServiceAccount localhost-recovery-client": _YES,
        "ServiceAccount openshift-kube-scheduler-sa": _YES,
        "Service scheduler": _YES,
        "Lease kube-scheduler": _YES,
        "Lease cert-recovery-controller-lock": _YES,
        "Pod openshift-kube-scheduler-NODE": _YES,
        "Pod installer-N-NODE": _YES,
        "Pod revision-pruner-N-NODE": _YES,
        "NetworkPolicy default-deny-all": _YES,
        "NetworkPolicy installer-pruner": _YES,
        "Role prometheus-k8s": _YES,
        "RoleBinding prometheus-k8s": _YES,
        "Role system:openshift:sa-listing-configmaps": _YES,
        "RoleBinding system:openshift:sa-listing-configmaps": _YES,
    },
    _METADATA: {
        f"Namespace {NAMESPACE}: label openshift.io/run-level": "0",
        f"Namespace {NAMESPACE}: label openshift.io/cluster-monitoring": "true",
        f"Namespace {NAMESPACE}: label {_PRIVILEGED}/enforce": "privileged",
        f"Namespace {NAMESPACE}: label {_PRIVILEGED}/audit": "privileged",
        f"Namespace {NAMESPACE}: label {_PRIVILEGED}/warn": "privileged",
        f"Namespace {NAMESPACE}: annotation openshift.io/node-selector": "",
        "Pod openshift-kube-scheduler-NODE: label app": "openshift-kube-scheduler",
        "Pod openshift-kube-scheduler-NODE: label scheduler": "true",
        "Pod openshift-kube-scheduler-NODE: label revision": "N",
        "Pod openshift-kube-scheduler-NODE: "
        "annotation kubectl.kubernetes.io/default-container": "kube-scheduler",
        "Pod openshift-kube-scheduler-NODE: annotation target.workload.openshift.io/management": (
            '{"effect": "PreferredDuringScheduling"}'
        ),
        "Pod installer-N-NODE: label app": "installer",
        "ConfigMap revision-status-N: annotation operator.openshift.io/revision-ready": "true",
        f"ConfigMap revision-status-N: {_OWNED}": _REVISION_CONTROLLER,
        f"ConfigMap config-N: {_OWNED}": _REVISION_CONTROLLER,
        f"ConfigMap kube-scheduler-pod-N: {_OWNED}": _REVISION_CONTROLLER,
        f"ConfigMap scheduler-kubeconfig-N: {_OWNED}": _REVISION_CONTROLLER,
        f"ConfigMap serviceaccount-ca-N: {_OWNED}": _REVISION_CONTROLLER,
        "ConfigMap serviceaccount-ca: annotation openshift.io/owning-component": "kube-scheduler",
        "Service scheduler: label prometheus": "kube-scheduler",
        "Service scheduler: "
        "annotation service.beta.openshift.io/serving-cert-secret-name": "serving-cert",
    },
    _KEYS: {
        "config": "config.yaml",
        "kube-scheduler-pod": "forceRedeploymentReason, pod.yaml, version",
        "scheduler-kubeconfig": "kubeconfig",
        "serviceaccount-ca": "ca-bundle.crt",
        "revision-status-N": "reason, revision",
    },
    _POD: {
        "host network": "true",
        "priority": "2000001000 system-node-critical",
        "tolerations": "Exists",
        "init containers": "wait-for-host-port",
        "containers": (
            "kube-scheduler, kube-scheduler-cert-syncer, kube-scheduler-recovery-controller"
        ),
        "volumes": "cert-dir, resource-dir, tmp, var-run-kubernetes",
        "command": "hyperkube kube-scheduler",
        "ports": "10259",
        "requests": "cpu 15m, memory 50Mi",
        "mounts": (
            "/etc/kubernetes/static-pod-certs, /etc/kubernetes/static-pod-resources, /tmp, "
            "/var/run/kubernetes"
        ),
        "root file system": "read-only",
        "capabilities dropped": "none",
        "image pull policy": "IfNotPresent",
        "termination message policy": "FallbackToLogsOnError",
        "startup probe": "none",
        "readiness probe": "HTTPS /healthz of port 10259, first after 45 s, every 10 s",
        "liveness probe": "HTTPS /healthz of port 10259, first after 45 s, every 10 s",
    },
    _FLAGS: {
        "--config": "/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml",
        "--cert-dir": "/var/run/kubernetes",
        "--authentication-kubeconfig": _KUBECONFIG,
        "--authorization-kubeconfig": _KUBECONFIG,
        # The sandbox's gates (cluster/openshift.py), each of which the reference passes on.
        "--feature-gates": (
            "AdminNetworkPolicy=true\nNodeInclusionPolicyInPodTopologySpread=true\n"
            "RouteExternalCertificate=false\nSchedulerAsyncAPICalls=false"
        ),
        "-v": "2",
        "--tls-cert-file": "/etc/kubernetes/static-pod-resources/secrets/serving-cert/tls.crt",
        "--tls-private-key-file": (
            "/etc/kubernetes/static-pod-resources/secrets/serving-cert/tls.key"
        ),
        "--tls-cipher-suites": _SUITES,
        "--tls-min-version": "VersionTLS12",
        "order": (
            "--config --cert-dir --authentication-kubeconfig --authorization-kubeconfig "
            "--feature-gates -v --tls-cert-file --tls-private-key-file --tls-cipher-suites "
            "--tls-min-version"
        ),
    },
    _CONFIG: {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection.acceptContentTypes": "",
        "clientConnection.burst": "0",
        "clientConnection.contentType": "",
        "clientConnection.kubeconfig": _KUBECONFIG,
        "clientConnection.qps": "0",
        "enableContentionProfiling": "false",
        "enableProfiling": "false",
        "leaderElection.leaderElect": "true",
        "leaderElection.leaseDuration": "137s",
        "leaderElection.renewDeadline": "107s",
        "leaderElection.retryPeriod": "26s",
        "leaderElection.resourceLock": "leases",
        "leaderElection.resourceName": "",
        "leaderElection.resourceNamespace": NAMESPACE,
        "profiles.0.schedulerName": "default-scheduler",
        "profiles.0.pluginConfig.0.name": "NodeResourcesFit",
        "profiles.0.pluginConfig.0.args.scoringStrategy.type": "MostAllocated",
        "profiles.0.plugins.score.disabled.0.name": "NodeResourcesBalancedAllocation",
        "profiles.0.plugins.score.enabled.0.name": "NodeResourcesFit",
        "profiles.0.plugins.score.enabled.0.weight": "5",
        "profiles.0.plugins: extension points without a value": _UNSET_POINTS,
    },
    _INSTALLER: {
        "containers": "installer",
        "service account": "installer-sa",
        "its token": "mounted",
        "privileged containers": "installer",
        "restart policy": "Never",
        "owner": "ConfigMap revision-status-N",
        "paths of the node": "/etc/kubernetes/, /var/lock",
    },
    _EVENTS: {
        "ConfigMapUpdated": _YES,
        "StartingNewRevision": _YES,
        "ConfigMapCreated": _YES,
        "SecretCreated": _YES,
        "RevisionTriggered": _YES,
        "NodeTargetRevisionChanged": _YES,
        "PodCreated": _YES,
        "StaticPodInstallerCompleted": _YES,
        "NodeCurrentRevisionChanged": _YES,
        "OperatorStatusChanged": _YES,
    },
    _EVENT_MESSAGES: {
        "StartingNewRevision": (
            'new revision N triggered by "required configmap/config has changed"'
        ),
        "ConfigMapUpdated": (
            "Updated ConfigMap/config -n openshift-kube-scheduler:\n"
            "cause by changes in data.config.yaml"
        ),
    },
    _ABOUT: {"involved object": "Deployment openshift-kube-scheduler-operator"},
}

_WITH_REASON = (
    "a condition always has a reason, as Kubernetes' API conventions require;"
    " AsExpected is the reference's own reason"
)
_GRAMMAR = "in the singular"
_RECOVERY = (
    "it served the certificate sidecars; here a DaemonSet with a renewed token does their work"
)
_RENEWED = "no part of a revision: the cert-syncer copies it, and a renewal restarts no scheduler"
_TEMPLATE = "rendered from the template for all platforms, with the needs of every scheduler"
_MANAGED_BY = (
    "all objects of the operator have `app.kubernetes.io/managed-by`; there "
    "are no controllers to name"
)

REASONS: tuple[Reason, ...] = (
    # --- KubeScheduler ------------------------------------------------------------------------
    Reason(
        _TYPES,
        "KubeSchedulerStaticResourcesDegraded",
        "`KubeControllerManagerStaticResourcesDegraded` with the right name",
    ),
    Reason(
        _TYPES,
        "PreflightDegraded",
        "kube-scheduler itself checks a revision before any node is touched, and may refuse it",
    ),
    Reason(
        _TYPES,
        "UnsupportedConfigOverridesDegraded",
        "malformed overrides are reported instead of ignored",
    ),
    Reason(
        _TYPES,
        "OperatorSettingsDegraded",
        "OperatorSettings is kept at its last accepted version or not used",
    ),
    Reason(
        _TYPES,
        "SchedulerExtendersDegraded",
        "a SchedulerExtender is kept at its last accepted version or not used",
    ),
    Reason(
        _TYPES,
        "SchedulerProfilesDegraded",
        "a SchedulerProfile is kept at its last accepted version or not used",
    ),
    Reason(_TYPES, "SecondarySchedulersDegraded", "a SecondaryScheduler is Degraded"),
    Reason(
        _TYPES,
        "HandEdits",
        "informational: files of a scheduler that were edited by hand on a node",
    ),
    Reason(_TYPES, "KubeadmUpgrade", "informational: upgrades by kubeadm; never True here"),
    Reason(
        _TYPES,
        "NextVersionUpgradeable",
        "the next minor version would refuse a field of the configuration",
    ),
    Reason(_TYPES, "VersionSkew", "informational: the versions of the schedulers"),
    Reason(
        _TYPES,
        "EtcdRestored",
        "informational: etcd was restored from a backup while the operator ran",
    ),
    Reason(
        _TYPES,
        "WritesDegraded",
        "another client or an older CustomResourceDefinition undoes what the operator writes",
    ),
    Reason(_TYPES, "LoadPoliciesDegraded", "a LoadPolicy is not in effect, or the load is unknown"),
    Reason(_TYPES, "PodsWithoutScheduler", "informational: Pods with an unknown schedulerName"),
    Reason(_TYPES, "IneffectiveSettings", "informational: settings without effect here"),
    Reason(
        _TYPES,
        "UnknownScheduler",
        "informational: an unmanaged scheduler serves a schedulerName that is already served",
    ),
    Reason(_TYPES, "UnknownLeaseHolder", "always False here: it concerns plain clusters"),
    Reason(_TYPES, "ConfigurationWarnings", "informational: accepted settings that may surprise"),
    Reason(_STATES, "*Degraded", _WITH_REASON, here="False, AsExpected"),
    Reason(_STATES, "StaticPodsAvailable", _WITH_REASON, here="True, AsExpected"),
    Reason(_MESSAGES, "StaticPodsAvailable", _GRAMMAR),
    Reason(_FIELDS, "status.observedGeneration", "tools wait for it; the reference never sets it"),
    Reason(_FIELDS, "status.readyReplicas", "how many schedulers are Ready, at a glance"),
    Reason(
        _FIELDS,
        "status.generations",
        "the generation of the Scheduler that was observed, for which `rollout watch` waits",
    ),
    Reason(_FIELDS, "status.version", "the operator that wrote the status"),
    # --- ClusterOperator ----------------------------------------------------------------------
    Reason(_OPERATOR, "message of Available at rest", _GRAMMAR),
    Reason(
        _OPERATOR,
        "related: schedulers*",
        "the reference names the kind; here the only object of the kind is named",
    ),
    Reason(
        _OPERATOR,
        "related: *.kube-scheduler-operator.dev/",
        "the operator's own kinds, which must-gather then collects",
    ),
    Reason(
        _OPERATOR,
        "related: podnetworkconnectivitychecks*",
        "they belong to another operator; this one needs none",
    ),
    Reason(
        _OPERATOR,
        "related: clusterrolebindings*",
        "it binds the reference to cluster-admin, which nothing here uses",
    ),
    # --- during -------------------------------------------------------------------------------
    Reason(
        _DURING,
        "NodeInstallerProgressing",
        f"{_WITH_REASON}; while the condition is True, the reason is RollingOut",
    ),
    Reason(
        _DURING,
        "StaticPodsAvailable",
        (
            'it reports whether Pods are scheduled, not whether some node "has a '
            'revision": the only scheduler is unavailable for seconds, less than '
            "ClusterOperator's inertia of 30 s"
        ),
    ),
    Reason(_DURING, "ClusterOperator Progressing", "the reason follows the condition's"),
    Reason(
        _DURING,
        "first message of NodeInstallerProgressing",
        "it also names the revision, and what each node waits for",
    ),
    # --- objects ------------------------------------------------------------------------------
    Reason(_OBJECTS, "ConfigMap kube-scheduler-cert-syncer-kubeconfig*", _RECOVERY),
    Reason(_OBJECTS, "Secret localhost-recovery-client-token*", _RECOVERY),
    Reason(_OBJECTS, "ServiceAccount localhost-recovery-client", _RECOVERY),
    Reason(_OBJECTS, "Lease cert-recovery-controller-lock", _RECOVERY),
    Reason(_OBJECTS, "Secret serving-cert-N", _RENEWED),
    Reason(
        _OBJECTS,
        "ServiceAccount openshift-kube-scheduler-sa",
        "unused: static Pods have no ServiceAccount",
    ),
    Reason(
        _OBJECTS,
        "Pod revision-pruner-N-NODE",
        "the installer removes old directories after a success: nothing additional to run",
    ),
    Reason(
        _OBJECTS,
        "Role* kube-scheduler-operator-extender",
        "agents of SchedulerExtenders; OpenShift's operator has no extenders",
    ),
    Reason(
        _OBJECTS,
        "ServiceAccount scheduler-extender*",
        "agents of SchedulerExtenders; OpenShift's operator has no extenders",
    ),
    Reason(
        _OBJECTS,
        "NetworkPolicy kube-scheduler-simulation",
        "lets the operator reach the Pod in which it simulates an edit (spec.placementCheck)",
    ),
    Reason(
        _OBJECTS,
        "NetworkPolicy secondary-schedulers",
        "secondary schedulers (SecondaryScheduler); OpenShift has a separate operator for them",
    ),
    Reason(
        _OBJECTS,
        "*load-annotator",
        (
            "the annotator, which writes the load of nodes into their annotations "
            "while a LoadPolicy exists"
        ),
    ),
    Reason(
        _OBJECTS,
        "ServiceAccount load-kubelet-stats",
        "what kubelets see of the annotator, whose own token goes to the API server only",
    ),
    Reason(
        _OBJECTS,
        "Role* system:openshift:sa-listing-configmaps",
        "it served Policy, which Kubernetes 1.23 removed",
    ),
    Reason(
        _OBJECTS,
        "Pod openshift-kube-scheduler-guard-NODE",
        "a guard also on a single node, because it watches its scheduler's kubeconfig",
    ),
    Reason(
        _OBJECTS,
        "* kube-scheduler-cert-syncer*",
        "a DaemonSet copies certificates; its token is bound to its Pod and renewed",
    ),
    Reason(
        _OBJECTS,
        "ServiceAccount cert-syncer-sa",
        "a DaemonSet copies certificates; its token is bound to its Pod and renewed",
    ),
    Reason(
        _OBJECTS,
        "Role* kube-scheduler-operator",
        "the operator is not cluster-admin: it has a Role in each namespace that it works in",
    ),
    Reason(
        _OBJECTS,
        "Role* system:openshift:leader-locking-kube-scheduler",
        "the reference has it in kube-system, for locks that kube-scheduler no longer uses",
    ),
    # --- labels, annotations, keys ------------------------------------------------------------
    Reason(_METADATA, f"*: {_OWNED}", _MANAGED_BY),
    Reason(
        _KEYS,
        "kube-scheduler-pod",
        (
            "a new build of the operator must not restart schedulers, so its version "
            "is not part of a revision; a stub kubeconfig is, for the preflight"
        ),
    ),
    Reason(
        _KEYS,
        "revision-status-N",
        "also the hash of the content, and the settings for it, for `rollout undo`",
    ),
    # --- static pod ---------------------------------------------------------------------------
    Reason(
        _POD,
        "init containers",
        (
            "the installer waits until the old scheduler has exited and the port is "
            "free before it writes a new manifest"
        ),
    ),
    Reason(_POD, "containers", "a DaemonSet copies certificates: two sidecars less"),
    Reason(_POD, "volumes", "kube-scheduler writes no temporary files"),
    Reason(_POD, "mounts", "kube-scheduler writes no temporary files"),
    Reason(_POD, "requests", "the CPU request of kubeadm's scheduler"),
    Reason(_POD, "capabilities dropped", "kube-scheduler needs none"),
    Reason(
        _POD,
        "startup probe",
        (
            "a scheduler is Ready seconds after its start instead of 45 s; a slow one"
            " has four minutes"
        ),
    ),
    Reason(
        _POD,
        "readiness probe",
        "`/readyz` also waits for the scheduler's caches; every second, so that a rollout does not "
        "wait",
    ),
    Reason(
        _POD,
        "liveness probe",
        "`/livez`, as with kubeadm; the startup probe replaces the delay",
    ),
    # --- flags and configuration --------------------------------------------------------------
    Reason(
        _FLAGS,
        "--feature-gates",
        "only gates that this kube-scheduler has: a stock one exits at an unknown gate",
    ),
    Reason(_FLAGS, "--tls-cert-file", _RENEWED),
    Reason(_FLAGS, "--tls-private-key-file", _RENEWED),
    Reason(_CONFIG, "clientConnection.*", "an empty value is equivalent to none"),
    Reason(
        _CONFIG,
        "profiles.0.plugins: extension points without a value",
        (
            "an empty value is equivalent to none, and an older kube-scheduler may "
            "not have every extension point"
        ),
    ),
    Reason(_CONFIG, "leaderElection.resourceName", "the same Lease, explicitly"),
    # --- installer ----------------------------------------------------------------------------
    Reason(
        _INSTALLER,
        "containers",
        "kube-scheduler itself checks the revision (`preflight`), in addition to the installer",
    ),
    Reason(_INSTALLER, "its token", "everything that it needs is mounted: it never uses the API"),
    Reason(_INSTALLER, "privileged containers", "it may write one directory only"),
    Reason(
        _INSTALLER,
        "restart policy",
        "an installer that was killed continues where it stopped; a definitive result ends it",
    ),
    Reason(
        _INSTALLER,
        "paths of the node",
        (
            "its lock is below /etc/kubernetes; it only reads Pods, their logs and "
            "cgroups, to detect that schedulers exit and start"
        ),
    ),
    # --- events -------------------------------------------------------------------------------
    Reason(
        _EVENTS,
        "ConfigMapCreated",
        "no event per copy: `RevisionTriggered` means that all of them exist",
    ),
    Reason(_EVENTS, "SecretCreated", "no Secret is part of a revision"),
    Reason(_EVENTS, "PodCreated", "`InstallerPodCreated`, with revision and node"),
    Reason(
        _EVENTS,
        "InstallerPodCreated",
        "`PodCreated` there, without revision and node",
    ),
    Reason(
        _EVENTS,
        "StaticPodInstallerCompleted",
        (
            "installers have no access to the API; `NodeCurrentRevisionChanged` has "
            "their result, with the duration of each step"
        ),
    ),
    Reason(
        _EVENTS,
        "OperatorStatusChanged",
        (
            "created when a Degraded condition changes; events of the revision and "
            "its nodes report the start and end of a rollout"
        ),
    ),
    Reason(_EVENTS, "CertificateUpdated", "the certificate syncer, which works independently"),
    Reason(_EVENTS, "RevisionsPruned", "deletions are reported"),
    Reason(_EVENT_MESSAGES, "ConfigMapUpdated", "the same in one line; `diff` shows the changes"),
)
