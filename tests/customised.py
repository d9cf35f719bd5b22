"""Schedulers of kubeadm clusters that their owners customised, as manifests.

Each is what `kubeadm init --config … --patches …` writes: ClusterConfiguration's extraArgs,
extraEnvs and extraVolumes, and a patch of the static Pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Pod = dict[str, Any]
Change = Callable[[Pod, dict[str, Any]], None]

CERTIFICATES = {"name": "certs", "hostPath": {"path": "/etc/ssl/certs", "type": "Directory"}}


@dataclass(frozen=True)
class Customised:
    """A customised scheduler."""

    change: Change  # changes the Pod, and its container
    # names of the settings that adoption keeps (`PodSettings.names`, `flags.…`)
    kept: frozenset[str]
    config: Mapping[str, Any]  # fields of KubeSchedulerConfiguration that have the effect of flags


def customised(pod: Pod, *names: str) -> Pod:
    """A copy of the Pod with these customisations."""
    made = deepcopy(pod)
    for name in names:
        CUSTOMISED[name].change(made, made["spec"]["containers"][0])
    return made


CONFIG_FILE = "/etc/kubernetes/scheduler/config.yaml"
CONFIGURATION: Mapping[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 120},
    "leaderElection": {"leaderElect": True, "leaseDuration": "20s"},
    "parallelism": 8,
    "percentageOfNodesToScore": 70,
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
            "pluginConfig": [
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 50}},
            ],
        },
        {"schedulerName": "second"},
    ],
}
"""A configuration file that the scheduler of `with_config_file` reads."""


def with_config_file(pod: Pod) -> Pod:
    """A copy of the Pod that reads CONFIG_FILE from a directory of the node."""
    made = deepcopy(pod)
    container = made["spec"]["containers"][0]
    container["command"].append(f"--config={CONFIG_FILE}")
    path = CONFIG_FILE.rpartition("/")[0]
    made["spec"]["volumes"].append({"name": "config", "hostPath": {"path": path}})
    container["volumeMounts"].append({"name": "config", "mountPath": path, "readOnly": True})
    return made


def _flags(*words: str) -> Change:
    def change(_: Pod, container: dict[str, Any]) -> None:
        container["command"] += words

    return change


def _environment(_: Pod, container: dict[str, Any]) -> None:
    container.setdefault("env", []).extend(
        [
            {"name": "GOGC", "value": "50"},
            {"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"},
            {"name": "NO_PROXY", "value": "127.0.0.1,10.0.0.0/8,.svc,.cluster.local"},
        ]
    )


def _references(_: Pod, container: dict[str, Any]) -> None:
    limit = {"resourceFieldRef": {"divisor": "0", "resource": "limits.memory"}}
    address = {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostIP"}}
    container.setdefault("env", []).extend(
        [{"name": "GOMEMLIMIT", "valueFrom": limit}, {"name": "HOST_IP", "valueFrom": address}]
    )
    container["resources"] = {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}


def _volumes(pod: Pod, container: dict[str, Any]) -> None:
    pod["spec"]["volumes"].append(deepcopy(CERTIFICATES))
    mount = {"name": "certs", "mountPath": "/etc/ssl/certs", "readOnly": True}
    container["volumeMounts"].append(mount)


def _resources(_: Pod, container: dict[str, Any]) -> None:
    container["resources"] = {
        "requests": {"cpu": "250m", "memory": "300Mi"},
        "limits": {"memory": "1Gi"},
    }


def _annotations(pod: Pod, _: dict[str, Any]) -> None:
    metadata = pod["metadata"]
    metadata["annotations"] = {**metadata.get("annotations", {}), "example.com/team": "platform"}
    metadata["labels"]["example.com/tier"] = "gold"


def _security(pod: Pod, container: dict[str, Any]) -> None:
    pod["spec"]["securityContext"] = {"seccompProfile": {"type": "Unconfined"}}
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
    }


def _probes(_: Pod, container: dict[str, Any]) -> None:
    container["startupProbe"]["failureThreshold"] = 48
    container["livenessProbe"]["timeoutSeconds"] = 30
    container["readinessProbe"]["periodSeconds"] = 2


def _pod_fields(pod: Pod, _: dict[str, Any]) -> None:
    spec = pod["spec"]
    spec["priorityClassName"], spec["priority"] = "system-cluster-critical", 2000000000
    spec["terminationGracePeriodSeconds"] = 20
    spec["hostAliases"] = [{"ip": "10.0.0.9", "hostnames": ["extender.example"]}]
    spec["dnsPolicy"] = "Default"


_CLIENT = {"clientConnection": {"qps": 120.0, "burst": 240}, "enableProfiling": True}
_ELECTION = {"leaderElection": {"leaseDuration": "40s", "renewDeadline": "30s"}}

CUSTOMISED: Mapping[str, Customised] = {
    "flags": Customised(
        _flags("--v=4", "--tls-min-version=VersionTLS13", "--feature-gates=AllBeta=false"),
        frozenset({"flags.v", "flags.tls-min-version", "flags.feature-gates"}),
        {},
    ),
    "client": Customised(
        _flags("--kube-api-qps=120", "--kube-api-burst=240", "--profiling=true"),
        frozenset(),
        _CLIENT,
    ),
    "election": Customised(
        _flags("--leader-elect-lease-duration=40s", "--leader-elect-renew-deadline=30s"),
        frozenset(),
        _ELECTION,
    ),
    "environment": Customised(
        _environment, frozenset({"env.GOGC", "env.HTTPS_PROXY", "env.NO_PROXY"}), {}
    ),
    "references": Customised(
        _references, frozenset({"env.GOMEMLIMIT", "env.HOST_IP", "resources"}), {}
    ),
    "volumes": Customised(
        _volumes, frozenset({"volumes.certs", "volumeMounts./etc/ssl/certs"}), {}
    ),
    "resources": Customised(_resources, frozenset({"resources"}), {}),
    "annotations": Customised(
        _annotations,
        frozenset({"annotations.example.com/team", "labels.example.com/tier"}),
        {},
    ),
    "security": Customised(_security, frozenset({"pod.securityContext", "securityContext"}), {}),
    "probes": Customised(
        _probes, frozenset({"startupProbe", "livenessProbe", "readinessProbe"}), {}
    ),
    "pod": Customised(
        _pod_fields,
        frozenset(
            {
                "pod.dnsPolicy",
                "pod.hostAliases",
                "pod.priority",
                "pod.priorityClassName",
                "pod.terminationGracePeriodSeconds",
            }
        ),
        {},
    ),
}
