"""Schedulers for which providers' files are written, and the configurations in these files."""

from __future__ import annotations

from typing import Any, Final

import yaml

from kube_scheduler_operator.config.lint.places import OWN_RELEASES

from .....builders import extender, profile
from .outputs import overrides
from .schemas import BY_WORD

V1 = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
HARD = {
    "pluginConfig": [
        {
            "name": "PodTopologySpread",
            "args": {
                "defaultingType": "List",
                "defaultConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                    }
                ],
            },
        }
    ]
}
CASES: Final[dict[str, dict[str, Any]]] = {
    "nothing": {},
    "packed": {"scheduler": {"profile": "HighNodeUtilization"}},
    "no scores": {"scheduler": {"profile": "NoScoring"}},
    "settings": {
        "kubescheduler": {
            "logLevel": "Debug",
            **overrides(
                percentageOfNodesToScore=40,
                parallelism=8,
                podMaxBackoffSeconds=8,
                clientConnection={"qps": 100},
                leaderElection={"leaseDuration": "30s"},
                arguments={
                    "feature-gates": "AllBeta=true",
                    "tls-cert-file": "/etc/kubernetes/pki/scheduler.crt",
                    "tls-private-key-file": "/etc/kubernetes/pki/scheduler.key",
                    "vmodule": ["a=1", "b=2"],
                },
            ),
        }
    },
    "profiles": {"profiles": (profile("spread", **HARD), profile("batch"))},
    "strategy": {
        "profiles": (profile("batch"),),
        "kubescheduler": overrides(
            profiles=[
                {
                    "schedulerName": "default-scheduler",
                    "pluginConfig": [
                        {
                            "name": "NodeResourcesFit",
                            "args": {
                                "scoringStrategy": {
                                    "type": "MostAllocated",
                                    "resources": [{"name": "cpu", "weight": 3}],
                                }
                            },
                        }
                    ],
                }
            ]
        ),
    },
    "extenders": {
        "extenders": (
            extender("agent", agent={"policies": [{"name": "safe-overload"}]}),
            extender(
                "gpu",
                url="https://10.96.14.7:8443/scheduler",
                verbs={"filter": "filter"},
                tls={"caFile": "/etc/kubernetes/pki/ca.crt"},
                managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}],
            ),
        )
    },
}
WORDS: Final = sorted({*BY_WORD, "cluster-autoscaler", "cluster-autoscaler:1.36"})


def kubernetes(word: str) -> str:
    name, _, release = word.partition(":")
    return release if release and name not in OWN_RELEASES else "1.35"


def case_for(word: str, case: str) -> dict[str, Any]:
    return {**CASES[case], "version": kubernetes(word)}


def is_configuration(content: Any) -> bool:
    return isinstance(content, dict) and content.get("kind") == V1["kind"]


def configurations(content: Any) -> list[dict[str, Any]]:
    """The KubeSchedulerConfigurations in a document."""
    if is_configuration(content):
        return [content]
    if not isinstance(content, dict):
        return []
    if content.get("kind") == "SchedulerConfiguration":
        return [yaml.safe_load(content["spec"]["rawConfig"])]
    talos = content.get("cluster", {}).get("scheduler") or content
    return [{**V1, **talos["config"]}] if "config" in talos else []
