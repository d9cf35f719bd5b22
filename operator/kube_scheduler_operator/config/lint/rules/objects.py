"""Rules about the operator's own objects."""

from __future__ import annotations

from typing import Final

from .rule import BOTH, ERRORS, WARNINGS, Rule, kube_scheduler, own, scheduler

RULES: Final = (
    Rule(
        "NotAllowed",
        "The object's author may not set this",
        "The setting would give its author more rights than an object of this kind should: "
        "another image, ports, arguments of privileged programs, files of a node. As a warning "
        "it depends on the operator's settings in the cluster.",
        "Remove the setting, or have the cluster's administrator allow it as the message "
        "describes; docs/rights.md has the reasons.",
        BOTH,
        own("SecondaryScheduler", "mine", "namespace: a\nimage: example.com/mine:v1.35.4"),
        flags=("--kubernetes-version", "1.35"),
    ),
    Rule(
        "OwnedSetting",
        "The operator needs this setting as it is",
        "The operator finds, watches and replaces its schedulers by these settings.",
        "Remove the override.",
        ERRORS,
        kube_scheduler(
            "unsupportedConfigOverrides:\n  leaderElection: {resourceName: my-scheduler}"
        ),
    ),
    Rule(
        "TypeMetaMismatch",
        "The overrides are of another kind or version",
        "spec.unsupportedConfigOverrides is merged into a KubeSchedulerConfiguration of version "
        "v1.",
        "Remove apiVersion and kind from the overrides, and convert older fields with kubectl "
        "scheduler convert.",
        ERRORS,
        kube_scheduler(
            "unsupportedConfigOverrides:\n"
            "  apiVersion: kubescheduler.config.k8s.io/v1beta3\n"
            "  kind: KubeSchedulerConfiguration"
        ),
    ),
    Rule(
        "Malformed",
        "The value has a form that cannot be used",
        "The operator keeps the last accepted value of the field.",
        "Write the value in the form that the message describes.",
        BOTH,
        kube_scheduler("unsupportedConfigOverrides: {arguments: [v=4]}"),
    ),
    Rule(
        "UnsupportedCipherSuite",
        "kube-scheduler does not have this cipher suite",
        "Go implements only some of OpenSSL's cipher suites.",
        "Remove the suite, or use one that the message names.",
        WARNINGS,
        kube_scheduler(
            "tlsSecurityProfile:\n  type: Custom\n  custom:\n    minTLSVersion: VersionTLS12\n"
            "    ciphers: [ECDHE-RSA-AES128-GCM-SHA256, NO-SUCH-SUITE]"
        ),
    ),
    Rule(
        "NoCipherSuite",
        "kube-scheduler has none of the cipher suites",
        "It would use its default instead.",
        "Add a suite that kube-scheduler has, such as ECDHE-RSA-AES128-GCM-SHA256.",
        ERRORS,
        kube_scheduler(
            "tlsSecurityProfile:\n  type: Custom\n  custom:\n    minTLSVersion: VersionTLS12\n"
            "    ciphers: [NO-SUCH-SUITE]"
        ),
    ),
    Rule(
        "PolicyRemoved",
        "spec.policy has no effect",
        "Kubernetes 1.23 removed Policy.",
        "Clear spec.policy, and use spec.profile or spec.unsupportedConfigOverrides of the "
        "KubeScheduler.",
        WARNINGS,
        scheduler("policy: {name: my-policy}"),
    ),
    Rule(
        "SetElsewhere",
        "The setting has no effect on this platform, which has another object for it",
        "On OpenShift, FeatureGate and APIServer decide.",
        "Set the field of the object that the message names.",
        WARNINGS,
        kube_scheduler("featureGates: {SchedulerAsyncPreemption: false}"),
        flags=("--platform", "openshift"),
    ),
    Rule(
        "DecidedByTaints",
        "mastersSchedulable has no effect on this platform",
        "The taint of the control-plane nodes decides whether Pods run there.",
        "Add or remove the taint with the command in the message.",
        WARNINGS,
        scheduler("mastersSchedulable: true"),
    ),
    Rule(
        "DecidedByAdmission",
        "defaultNodeSelector has no effect on this platform",
        "The admission plugin PodNodeSelector of kube-apiserver decides.",
        "Configure the admission plugin as the message describes.",
        WARNINGS,
        scheduler("defaultNodeSelector: disk=ssd"),
    ),
    Rule(
        "NoControlPlaneNodes",
        "mastersSchedulable has no effect where the provider runs the control plane",
        "The control-plane nodes are not visible in the cluster.",
        "Remove the field.",
        WARNINGS,
        scheduler("mastersSchedulable: true"),
        flags=("--platform", "managed"),
    ),
    Rule(
        "NotSupported",
        "The setting has no effect on this platform",
        "What the operator runs there does not have it.",
        "Remove the field.",
        WARNINGS,
        own("OperatorSettings", "cluster", "pods: {env: [{name: GOGC, value: '50'}]}"),
        flags=("--platform", "openshift"),
    ),
    Rule(
        "EnabledByDefault",
        "The feature is enabled by default",
        "The customization adds nothing in this version of Kubernetes.",
        "Remove the field.",
        WARNINGS,
        scheduler("profileCustomizations: {dynamicResourceAllocation: Enabled}"),
    ),
    Rule(
        "CannotBeDisabled",
        "The feature cannot be disabled in this version",
        "The feature gate is locked.",
        "Remove the field.",
        WARNINGS,
        scheduler("profileCustomizations: {dynamicResourceAllocation: Disabled}"),
    ),
    Rule(
        "TooLarge",
        "The object is too large",
        "A configuration is stored in ConfigMaps, which the API server limits to 1 MiB.",
        "Shorten it, or divide it into several objects.",
        ERRORS,
        own(
            "SchedulerProfile",
            "mine",
            f"pluginConfig:\n- name: Mine\n  args: {{text: {'x' * 530_000}}}",
        ),
    ),
    Rule(
        "TooDeep",
        "The object is nested too deeply",
        "No configuration needs that many levels, and processing them could exhaust the stack.",
        "Use fewer levels.",
        ERRORS,
        kube_scheduler(f"unsupportedConfigOverrides: {'{a: ' * 70}1{'}' * 70}"),
    ),
    Rule(
        "AnotherPolicy",
        "A second LoadPolicy is not used",
        "A cluster has one load policy; the operator uses the older of two.",
        "Remove one of the two.",
        ERRORS,
        own("LoadPolicy", "first", ""),
        own("LoadPolicy", "second", ""),
    ),
    Rule(
        "WithoutEffect",
        "A setting of a load policy has no effect",
        "Another setting decides, or crane-scheduler ignores the value as well.",
        "Remove it.",
        BOTH,
        own(
            "LoadPolicy",
            "mine",
            "source: {type: MetricsServer, prometheus: {url: http://192.0.2.1}}",
        ),
    ),
    Rule(
        "Percentages",
        "Limits above 1 are read as percentages",
        "crane-scheduler's limits are fractions; those of crane-scheduler-plus are percentages.",
        "Write fractions between 0 and 1 if that is not intended.",
        WARNINGS,
        "apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\nspec:\n"
        "  syncPolicy: [{name: cpu_usage_avg_5m, period: 3m}]\n"
        "  predicate: [{name: cpu_usage_avg_5m, maxLimitPecent: 65}]\n",
    ),
    Rule(
        "Credentials",
        "An environment variable has credentials",
        "Its value would be stored in ConfigMaps and shown in Pods.",
        "Remove the variable, and have its target accept the nodes without credentials.",
        ERRORS,
        own(
            "OperatorSettings",
            "cluster",
            "pods:\n  env:\n  - {name: HTTPS_PROXY, value: 'http://user:secret@proxy.example.com'}",
        ),
    ),
    Rule(
        "InvalidQuantity",
        "A quantity of a resource is invalid",
        "The kubelet rejects the static Pod, or no scheduler starts with so little.",
        "Write a quantity such as 100m or 256Mi, with requests at most as large as limits.",
        ERRORS,
        own("OperatorSettings", "cluster", "pods: {resources: {limits: {memory: 200m}}}"),
    ),
)
