"""Valid configurations in which every field of kube-scheduler 1.x has a value: to be mutated."""

from __future__ import annotations

import base64
from typing import Any

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import default_plugins, plugins
from kube_scheduler_operator.config.language.versions import Version

from .model import API_VERSION, typed


def _pem(kind: str, der: str) -> str:
    text = f"-----BEGIN {kind}-----\n{der}\n-----END {kind}-----\n"
    return base64.b64encode(text.encode()).decode()


# Made for these tests and used nowhere else.
CERTIFICATE = _pem(
    "CERTIFICATE",
    "MIIBfDCCASOgAwIBAgIUBgA311MaTBuPE5/doxVLD9blT1QwCgYIKoZIzj0EAwIwEzERMA8GA1UEAwwI"
    "ZXh0ZW5kZXIwIBcNMjYxMTIyMTMzNTQxWhgPMjEyNjEwMjkxMzM1NDFaMBMxETAPBgNVBAMMCGV4dGVu"
    "ZGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEbLu4STKArfSGCzOF/NudeZS/hD6rB3luKO4SHjZ0"
    "IeY1NSjby2MMLJvEVl0nlxARQwwZpQ/C9fISAUa6MlTn4qNTMFEwHQYDVR0OBBYEFGKFetl/+QWDcJDD"
    "z6hBwaNEpEQbMB8GA1UdIwQYMBaAFGKFetl/+QWDcJDDz6hBwaNEpEQbMA8GA1UdEwEB/wQFMAMBAf8w"
    "CgYIKoZIzj0EAwIDRwAwRAIgJVPIgbH3IDAYQu6+w1WsOGtLOXXmOlxI4Ph1BO/yDjwCIAK2GTkjCvXq"
    "Jr2TbXGSm3jrGed2k/zaJj/uzhKcb0nL",
)
KEY = _pem(
    "PRIVATE KEY",
    "MHcCAQEEIHkpgWaJDaUzI/L0ScTXk/nsoQKtRcZcbGDgVp3MNzxAoAoGCCqGSM49AwEHoUQDQgAEbLu4"
    "STKArfSGCzOF/NudeZS/hD6rB3luKO4SHjZ0IeY1NSjby2MMLJvEVl0nlxARQwwZpQ/C9fISAUa6MlTn"
    "4g==",
)
OTHER_KEY = _pem(
    "PRIVATE KEY",
    "MHcCAQEEIGghO7u6q4eVt5nXr60HtH4KQJNaKHK63aoBA/qi/arWoAoGCCqGSM49AwEHoUQDQgAEXTnH"
    "QMXJlUh6LvahSMqe27ghM6sbX5n5mMVO/ejgATw6pp0VIsXi2ETwLV2kfjWN7fHHpm0VlWfpcz3PCeht"
    "XA==",
)
ZONE = {
    "maxSkew": 1,
    "topologyKey": "topology.example.com/zone",
    "whenUnsatisfiable": "DoNotSchedule",
}


def seeds(minor: int) -> dict[str, dict[str, Any]]:
    """The configurations by name; kube-scheduler 1.`minor` accepts all of them."""
    return {
        "top": typed(top()),
        "plugins": typed({"profiles": [{"schedulerName": "a", "plugins": lists(minor)}]}),
        "args": typed({"profiles": [{"pluginConfig": entries(minor)}]}),
        "profiles": typed(several()),
        "extenders": typed({"extenders": extenders()}),
    }


def top() -> dict[str, Any]:
    return {
        "parallelism": 8,
        "leaderElection": {
            "leaderElect": True, "leaseDuration": "137s", "renewDeadline": "1m47s",
            "retryPeriod": "26s", "resourceLock": "leases", "resourceName": "mine",
            "resourceNamespace": "there",
        },
        "clientConnection": {
            "acceptContentTypes": "application/json", "contentType": "application/json",
            "qps": 0.1, "burst": 7,
        },
        "enableProfiling": False,
        "enableContentionProfiling": False,
        "percentageOfNodesToScore": 40,
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": 20,
        "delayCacheUntilActive": True,
        "profiles": [{"schedulerName": "mine", "percentageOfNodesToScore": 30}],
    }  # fmt: skip


def lists(minor: int) -> dict[str, Any]:
    """Every extension point of any plugin, with an enabled and a disabled plugin."""
    known = plugins(Version(1, minor))
    defaults = [name for name, _ in default_plugins(Gates(Version(1, minor)))]
    points: dict[str, Any] = {
        "multiPoint": {
            "enabled": [{"name": "ImageLocality", "weight": 7}],
            "disabled": [{"name": "VolumeZone"}],
        }
    }
    for name in defaults:
        for point in known[name].points_at(minor):
            if name != "VolumeZone":
                points.setdefault(point, {"enabled": [{"name": name}], "disabled": []})
    points["score"] = {
        "enabled": [{"name": "NodeResourcesFit", "weight": 5}, {"name": "TaintToleration"}],
        "disabled": [{"name": "InterPodAffinity", "weight": 1}, {"name": "NodeAffinity"}],
    }
    points["postFilter"] = {"disabled": [{"name": "*"}]}
    return points


def entries(minor: int) -> list[dict[str, Any]]:
    """pluginConfig with every field of all arguments that 1.`minor` reads."""
    expression = {"key": "example.com/a", "operator": "In", "values": ["b", "c"]}
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}
    found: dict[str, dict[str, Any]] = {
        "DefaultPreemption": {"minCandidateNodesPercentage": 5, "minCandidateNodesAbsolute": 50},
        "InterPodAffinity": {
            "hardPodAffinityWeight": 10, "ignorePreferredTermsOfExistingPods": True,
        },
        "NodeAffinity": {"addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression], "matchFields": [name]}],
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 3, "preference": {"matchExpressions": [{**expression, "operator": "Gt",
                                                                   "values": ["5"]}]}},
            ],
        }},
        "NodeResourcesBalancedAllocation": {
            "resources": [{"name": "cpu", "weight": 1}, {"name": "example.com/gpu"}],
        },
        "NodeResourcesFit": {
            "ignoredResources": ["example.com/ignored"],
            "ignoredResourceGroups": ["example.org"],
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
                "requestedToCapacityRatio": {"shape": [
                    {"utilization": 0, "score": 0}, {"utilization": 100, "score": 10},
                ]},
            },
        },
        "PodTopologySpread": {
            "defaultingType": "List",
            "defaultConstraints": [
                {**ZONE, "minDomains": 2, "nodeAffinityPolicy": "Honor",
                 "nodeTaintsPolicy": "Ignore", "matchLabelKeys": ["app"]},
                {**ZONE, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
            ],
        },
        "VolumeBinding": {"bindTimeoutSeconds": 60},
        "ImageLocality": {"anything": [1, {"a": None}], "apiVersion": "x/y", "kind": "Z"},
    }  # fmt: skip
    if minor >= 34:
        found["DynamicResources"] = {"filterTimeout": "7s"}
    if minor >= 36:  # the gates are on
        found["DynamicResources"]["bindingTimeout"] = "90s"
    for plugin, args in found.items():
        if plugin != "ImageLocality":
            args |= {"apiVersion": API_VERSION, "kind": f"{plugin}Args"}
    return [{"name": plugin, "args": args} for plugin, args in found.items()]


def several() -> dict[str, Any]:
    queue = {"enabled": [{"name": "PrioritySort", "weight": 2}], "disabled": [{"name": "*"}]}
    args = [{"name": "PrioritySort", "args": {"x": 1}}]
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    return {
        "profiles": [
            {"schedulerName": "a", "plugins": {"queueSort": queue}, "pluginConfig": args},
            {"schedulerName": "b", "plugins": {"queueSort": queue}, "pluginConfig": [*args, fit]},
            {"schedulerName": "c", "plugins": {
                "queueSort": queue,
                "multiPoint": {"enabled": [{"name": "DefaultBinder"}],
                               "disabled": [{"name": "*"}]},
            }, "pluginConfig": args, "percentageOfNodesToScore": 0},
        ]
    }  # fmt: skip


def extenders() -> list[dict[str, Any]]:
    return [
        {
            "urlPrefix": "https://127.0.0.1:1/a", "filterVerb": "filter",
            "preemptVerb": "preempt", "prioritizeVerb": "prioritize", "weight": 3,
            "bindVerb": "bind", "enableHTTPS": True, "httpTimeout": "1s500ms",
            "nodeCacheCapable": True, "ignorable": True,
            "managedResources": [
                {"name": "example.com/gpu", "ignoredByScheduler": True},
                {"name": "example.com/nic"},
            ],
            "tlsConfig": {"serverName": "extender", "certData": CERTIFICATE, "keyData": KEY,
                          "caData": CERTIFICATE},
        },
        {"urlPrefix": "http://127.0.0.1:2", "tlsConfig": {"insecure": True}},
    ]  # fmt: skip
