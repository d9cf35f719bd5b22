"""Rules about what starts kube-scheduler, and about the places that a configuration is for."""

from __future__ import annotations

from typing import Final

from .rule import BOTH, ERRORS, WARNINGS, Rule, configuration, extender, profile

_OWN: Final = "leaderElection: {resourceName: mine}\nprofiles: [{schedulerName: mine}]\n"


def _bare(text: str) -> str:
    """Remove clientConnection, which providers set themselves."""
    return "".join(line for line in text.splitlines(True) if "clientConnection" not in line)


def _deployment(flag: str, volume: str = "", *, replicas: int = 1) -> str:
    """Write a Deployment of kube-scheduler, with a volume at /etc/scheduler."""
    mounts = (
        "        volumeMounts: [{name: config, mountPath: /etc/scheduler}]\n"
        f"      volumes: [{{name: config, {volume}}}]\n"
        if volume
        else ""
    )
    return (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: mine, namespace: kube-system}\n"
        f"spec:\n  replicas: {replicas}\n  template:\n    spec:\n      serviceAccountName: mine\n"
        "      containers:\n      - name: kube-scheduler\n"
        "        image: registry.k8s.io/kube-scheduler:v1.35.4\n"
        f"        command: [kube-scheduler{flag}]\n{mounts}"
    )


def _config_map(body: str, namespace: str = "kube-system") -> str:
    lines = "".join(f"    {line}\n" for line in configuration(body).splitlines())
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: mine, namespace: {namespace}}}\n"
        f"data:\n  config.yaml: |\n{lines}"
    )


_CONFIG: Final = ", --config=/etc/scheduler/config.yaml"
_VOLUME: Final = "configMap: {name: mine}"
_MOUNTED: Final = _deployment(_CONFIG, _VOLUME)

RULES: Final = (
    Rule(
        "NotRendered",
        "The file is a template that is not rendered",
        "Expressions of Helm, Jinja, ERB or envsubst are not YAML, or have no value yet, so the "
        "configuration that kube-scheduler will read is not known.",
        "Run helm template CHART | kubectl scheduler validate - or the like, which checks the "
        "result.",
        BOTH,
        configuration("{{- if .Values.few }}\nparallelism: 4\n{{- end }}\n"),
    ),
    Rule(
        "FileNotMounted",
        "The container does not have the file that --config names",
        "kube-scheduler exits, because the file does not exist in its container.",
        "Add a volume with the file and a volumeMount, or correct the path.",
        BOTH,
        _deployment(_CONFIG),
    ),
    Rule(
        "MissingKey",
        "The ConfigMap does not have the key that --config names",
        "A ConfigMap is mounted as one file for each key. Without the key the file does not "
        "exist, and kube-scheduler exits.",
        "Correct the file name in --config, or the key in the ConfigMap.",
        ERRORS,
        _deployment(", --config=/etc/scheduler/scheduler.yaml", _VOLUME),
        _config_map(_OWN),
    ),
    Rule(
        "OtherNamespace",
        "The ConfigMap is in another namespace than the Pod that mounts it",
        "A Pod mounts ConfigMaps and Secrets of its own namespace. Without one of that name "
        "there, the kubelet does not start the container.",
        "Create the ConfigMap in the namespace of the Pod.",
        WARNINGS,
        _MOUNTED,
        _config_map(_OWN, "default"),
    ),
    Rule(
        "ProbeFails",
        "The probe asks a port that kube-scheduler does not serve",
        "kube-scheduler 1.23 and later serve /healthz only with HTTPS, at --secure-port (10259) of "
        "--bind-address. A probe of port 10251, with HTTP, or of another address fails: the "
        "kubelet restarts the container again and again.",
        "Set the port 10259, the scheme HTTPS and, if --bind-address is 127.0.0.1 in a Pod with "
        "hostNetwork, the host 127.0.0.1.",
        WARNINGS,
        _deployment("").rstrip()
        + "\n        livenessProbe: {httpGet: {path: /healthz, port: 10251}}\n",
    ),
    Rule(
        "NoCommand",
        "The container of Kubernetes' image has flags and no command",
        "registry.k8s.io/kube-scheduler and its mirrors start /go-runner, which runs the program "
        "that its arguments name. It rejects flags of kube-scheduler, and the container exits with "
        '"flag provided but not defined".',
        "Set command to [kube-scheduler].",
        ERRORS,
        _deployment("").replace("command: [kube-scheduler]", "args: [--v=2]"),
    ),
    Rule(
        "NoConfigFlag",
        "A configuration is mounted, and no flag names it",
        "kube-scheduler runs with its defaults and does not read the mounted file.",
        "Add the flag --config with the path of the file.",
        WARNINGS,
        _deployment("", _VOLUME),
        _config_map(_OWN),
    ),
    Rule(
        "SeveralActive",
        "Several replicas schedule at the same time",
        "Without leader election each replica places the same Pods, without knowing the others' "
        "decisions.",
        "Set leaderElection.leaderElect to true, or replicas to 1.",
        WARNINGS,
        _deployment(_CONFIG, _VOLUME, replicas=2),
        _config_map("leaderElection: {leaderElect: false}\nprofiles: [{schedulerName: mine}]\n"),
    ),
    Rule(
        "LeaseForbidden",
        "The ServiceAccount may not update the Lease",
        "The scheduler never becomes the leader, so it schedules nothing, and its Pods stay "
        "Pending.",
        "Bind a Role with get and update on this Lease; the role system:kube-scheduler permits "
        "only the Lease kube-scheduler.",
        WARNINGS,
        _MOUNTED + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n"
        "metadata: {name: mine}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, "
        "name: system:kube-scheduler}\n"
        "subjects: [{kind: ServiceAccount, name: mine, namespace: kube-system}]\n",
        _config_map(_OWN),
    ),
    Rule(
        "UnknownSchedulerName",
        "Pods name a scheduler that no profile of the files serves",
        "The Pods stay Pending, without an event. The name is similar to that of a profile.",
        "Use the name of the profile.",
        WARNINGS,
        configuration(
            "leaderElection: {resourceName: my-scheduler}\n"
            "profiles: [{schedulerName: my-scheduler}]\n"
        ),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: mine}\nspec:\n"
        "  schedulerName: my-schedular\n  containers: [{name: c, image: nginx}]\n",
    ),
    Rule(
        "FieldNotSupported",
        "The place of --for does not support this field",
        "A provider accepts only some of kube-scheduler's fields, and ignores or rejects the "
        "others.",
        "Remove the field, or run the profile in a secondary scheduler.",
        BOTH,
        configuration("parallelism: 4\n"),
        flags=("--for", "eks"),
    ),
    Rule(
        "PluginNotSupported",
        "The place of --for does not support this plugin",
        "The provider lets users configure only some plugins.",
        "Remove the plugin, or run the profile in a secondary scheduler.",
        ERRORS,
        _bare(
            profile("schedulerName: mine\nplugins: {score: {disabled: [{name: DynamicResources}]}}")
        ),
        flags=("--for", "aks"),
    ),
    Rule(
        "ProfileNotSupported",
        "The place of --for does not support this profile",
        "The provider has one scheduler and lets users configure only its default profile.",
        "Run the profile in a secondary scheduler.",
        ERRORS,
        _bare(profile("schedulerName: mine")),
        flags=("--for", "eks"),
    ),
    Rule(
        "ReservedProfile",
        "The provider reserves the name of this profile",
        "AKS has a profile of this name for itself.",
        "Use another schedulerName.",
        ERRORS,
        _bare(profile("schedulerName: aks-system")),
        flags=("--for", "aks"),
    ),
    Rule(
        "ExtenderNotSimulated",
        "The autoscaler does not know what the extender rejects",
        "An autoscaler simulates scheduling without extenders. It counts on nodes that the "
        "extender rejects, and does not add others.",
        "Let the extender score instead of filter.",
        WARNINGS,
        extender("filterVerb: filter\nhttpTimeout: 1s\nignorable: true\nnodeCacheCapable: true"),
        flags=("--for", "cluster-autoscaler"),
    ),
)
