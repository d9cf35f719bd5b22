"""Configuration files of schedulers that are adopted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .customised import CONFIGURATION

_V1 = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}

FILES: Mapping[str, Mapping[str, Any]] = {
    "customised": CONFIGURATION,
    "no profiles": {**_V1, "parallelism": 4},
    "unnamed profile": {
        **_V1,
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "ImageLocality"}]},
                    "score": {
                        "enabled": [{"name": "NodeResourcesFit", "weight": 9}],
                        "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
                    },
                },
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {
                                "type": "MostAllocated",
                                "resources": [{"name": "cpu", "weight": 1}],
                            }
                        },
                    }
                ],
            }
        ],
    },
    "other names": {
        **_V1,
        "profiles": [
            {"schedulerName": "batch", "percentageOfNodesToScore": 30},
            {
                "schedulerName": "spread",
                "pluginConfig": [
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "defaultingType": "List",
                            "defaultConstraints": [
                                {
                                    "maxSkew": 1,
                                    "topologyKey": "topology.kubernetes.io/zone",
                                    "whenUnsatisfiable": "ScheduleAnyway",
                                }
                            ],
                        },
                    }
                ],
            },
        ],
    },
    "extenders": {
        **_V1,
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "x"}],
        "extenders": [
            {"urlPrefix": "http://a.example/scheduler", "filterVerb": "filter", "ignorable": True},
            {
                "urlPrefix": "https://b.example/scheduler",
                "prioritizeVerb": "prioritize",
                "weight": 3,
                "enableHTTPS": True,
                "httpTimeout": "2s",
                "nodeCacheCapable": True,
                "tlsConfig": {"caFile": "/etc/kubernetes/extender/ca.crt"},
                "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            },
        ],
    },
}
