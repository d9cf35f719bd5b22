"""Rules about schedulers together: Leases, names, nodes, credentials and flags."""

from __future__ import annotations

from typing import Final

from .rule import BOTH, ERRORS, WARNINGS, Rule, configuration, kube_scheduler, own, profile

_OWN_LEASE: Final = "leaderElection: {resourceName: my-scheduler}\n"

RULES: Final = (
    Rule(
        "OtherScheduler",
        "The file is in another scheduler's format",
        "kube-scheduler reads a KubeSchedulerConfiguration, Volcano's vc-scheduler a file with "
        "actions and tiers. Neither reads the other's: kube-scheduler exits, vc-scheduler keeps "
        "its built-in configuration.",
        "Write the file in the format of the scheduler that reads it.",
        ERRORS,
        'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: predicates}]\n',
        flags=("--for", "upstream"),
    ),
    Rule(
        "NoKubeconfig",
        "The default scheduler's file names no kubeconfig",
        "With --config, kube-scheduler ignores --kubeconfig. Without "
        "clientConnection.kubeconfig it starts only in a Pod with a ServiceAccount, which a "
        "static Pod does not have. A path that begins with ~ does not exist: only shells replace "
        "it.",
        "Set clientConnection.kubeconfig, on kubeadm to /etc/kubernetes/scheduler.conf.",
        WARNINGS,
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
    ),
    Rule(
        "NoDefaultScheduler",
        "No profile of the control plane's scheduler is named default-scheduler",
        "Pods that name no scheduler get the schedulerName default-scheduler. They stay Pending, "
        "without an event.",
        "Name a profile default-scheduler, or add one with that name.",
        WARNINGS,
        kube_scheduler("unsupportedConfigOverrides:\n  profiles:\n  - schedulerName: my-scheduler"),
    ),
    Rule(
        "SharedLease",
        "Two schedulers use the same Lease",
        "Only the holder of a Lease schedules. The other scheduler waits, and its Pods stay "
        "Pending. Replicas of one scheduler share a Lease; different schedulers must not.",
        "Give one of the two a leaderElection.resourceName of its own.",
        WARNINGS,
        profile("schedulerName: my-scheduler"),
    ),
    Rule(
        "InvalidLease",
        "The API server rejects the name of the Lease",
        "kube-scheduler starts, never becomes the leader, and schedules nothing.",
        "Use lowercase letters, digits and hyphens.",
        WARNINGS,
        configuration("leaderElection: {resourceName: My_Lease}\n")
        + "profiles: [{schedulerName: my-scheduler}]\n",
    ),
    Rule(
        "SecondDefaultScheduler",
        "A second scheduler serves default-scheduler",
        "It has a Lease of its own, or none, and so it places the same Pods as the control "
        "plane's scheduler at the same time. Nodes are overcommitted.",
        "Give the profile a schedulerName of its own.",
        WARNINGS,
        configuration("leaderElection: {leaderElect: false}\n"),
    ),
    Rule(
        "SameSchedulerName",
        "Two schedulers serve one schedulerName",
        "Both place the same Pods without knowing the other's decisions, so nodes are "
        "overcommitted.",
        "Rename the profile in one of the two, or let both use one Lease.",
        WARNINGS,
        configuration(f"{_OWN_LEASE}profiles: [{{schedulerName: mine}}]\n"),
        configuration("leaderElection: {resourceName: other}\nprofiles: [{schedulerName: mine}]\n"),
    ),
    Rule(
        "SameNodes",
        "Two schedulers place Pods on the same nodes",
        "Each sees the other's Pods only after they are bound. Between both decisions the same "
        "space is used twice, and the kubelet rejects the second Pod, for example with OutOfcpu.",
        "Make them profiles of one scheduler, or separate their nodes with taints and node "
        "affinity.",
        WARNINGS,
        configuration(f"{_OWN_LEASE}profiles: [{{schedulerName: mine}}]\n"),
        configuration(
            "leaderElection: {resourceName: other}\nprofiles: [{schedulerName: others}]\n"
        ),
    ),
    Rule(
        "SchedulerNameTaken",
        "Another scheduler of the operator serves this schedulerName",
        "Two schedulers with one name overcommit nodes, so the operator rejects the second one.",
        "Use another schedulerName.",
        ERRORS,
        own("SecondaryScheduler", "first", "namespace: a\nprofiles: [{schedulerName: mine}]"),
        own("SecondaryScheduler", "second", "namespace: a\nprofiles: [{schedulerName: mine}]"),
    ),
    Rule(
        "LeaseTaken",
        "The name of the SecondaryScheduler is that of a Lease in use",
        "A SecondaryScheduler's Lease has its name. Only one of the schedulers that share a Lease "
        "schedules.",
        "Use another name.",
        ERRORS,
        own("SecondaryScheduler", "kube-scheduler", "namespace: a"),
    ),
    Rule(
        "InvalidArgument",
        "A flag or a feature gate has an invalid value",
        "kube-scheduler exits when it parses its command line.",
        "Correct the value as the message describes.",
        ERRORS,
        own("SecondaryScheduler", "mine", "namespace: a\nextraArguments: {tls-min-version: '1.2'}"),
    ),
    Rule(
        "UnknownArgument",
        "kube-scheduler does not have this flag",
        "kube-scheduler exits at an unknown flag. The flag is misspelt, was removed, or belongs "
        "to another version.",
        "Correct the flag, or use what the message names in its place.",
        BOTH,
        own("SecondaryScheduler", "mine", "namespace: a\nextraArguments: {policy-config-file: x}"),
    ),
    Rule(
        "VoidArgument",
        "kube-scheduler ignores this flag beside --config",
        "The operator always starts kube-scheduler with --config, and flags that a field of the "
        "configuration replaced have no effect then.",
        "Set the field that the message names.",
        WARNINGS,
        own("SecondaryScheduler", "mine", "namespace: a\nextraArguments: {profiling: 'false'}"),
    ),
    Rule(
        "ReservedArgument",
        "The operator sets this flag itself",
        "Another value would start the scheduler without its configuration, its port or its Lease.",
        "Remove the flag, or set the field that the message names.",
        ERRORS,
        own("SecondaryScheduler", "mine", "namespace: a\nextraArguments: {config: /etc/x.yaml}"),
    ),
    Rule(
        "UnsafeArgument",
        "The flag would give more rights than the object's author has",
        "With this flag the scheduler trusts other clients, shows its state to all, or sends its "
        "credentials elsewhere. The operator permits it in no object.",
        "Remove the flag.",
        ERRORS,
        own(
            "SecondaryScheduler",
            "mine",
            "namespace: a\nextraArguments: {authorization-always-allow-paths: /debug}",
        ),
    ),
    Rule(
        "UnknownFeatureGate",
        "kube-scheduler does not have this feature gate",
        "kube-scheduler exits at an unknown gate.",
        "Correct the name, or remove the gate: gates disappear some versions after they became "
        "the default.",
        ERRORS,
        own("SecondaryScheduler", "mine", "namespace: a\nfeatureGates: {NoSuchGate: true}"),
    ),
)
