"""Hand-written configurations, one for every rule, and their building blocks."""

from __future__ import annotations

from typing import Any

FIT = "NodeResourcesFit"
SPREAD = "PodTopologySpread"
ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
EXTENDER = {"urlPrefix": "http://127.0.0.1:1/x"}
GPU = {"name": "example.com/gpu"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def plugins(point: str, *enabled: str, disabled: tuple[str, ...] = ()) -> dict[str, Any]:
    sets = {
        "enabled": [{"name": name} for name in enabled],
        "disabled": [{"name": name} for name in disabled],
    }
    return profile(plugins={point: sets})


def args(plugin: str, **fields: Any) -> dict[str, Any]:
    return profile(pluginConfig=[{"name": plugin, "args": fields}])


def fit(**strategy: Any) -> dict[str, Any]:
    return args(FIT, scoringStrategy=strategy)


def ratio(*shape: tuple[int, int]) -> dict[str, Any]:
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    return fit(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": points})


def affinity(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [requirement]}]
    return args("NodeAffinity", addedAffinity={REQUIRED: {"nodeSelectorTerms": terms}})


def field_affinity(**requirement: Any) -> dict[str, Any]:
    terms = [{"weight": 1, "preference": {"matchFields": [requirement]}}]
    return args("NodeAffinity", addedAffinity={PREFERRED: terms})


def election(**fields: str) -> dict[str, Any]:
    return {"leaderElection": fields}


def extenders(*changes: dict[str, Any]) -> dict[str, Any]:
    return {"extenders": [{**EXTENDER, **change} for change in changes]}


def without(plugin: str, config: dict[str, Any]) -> dict[str, Any]:
    fields = {**config["profiles"][0], **plugins("multiPoint", disabled=(plugin,))["profiles"][0]}
    return {**config, "profiles": [fields]}


GOOD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "every scalar at the top": {
        "parallelism": 1, "percentageOfNodesToScore": 100, "podInitialBackoffSeconds": 5,
        "podMaxBackoffSeconds": 5, "delayCacheUntilActive": True, "enableProfiling": True,
    },
    "client": {"clientConnection": {"qps": 0.5, "burst": 0, "contentType": "application/json"}},
    "zero lease means the default": election(leaseDuration="0s"),
    "lease in other units": election(leaseDuration="1m30.5s", retryPeriod="300ms"),
    "no leader election, so no rules": {"leaderElection": {
        "leaderElect": False, "leaseDuration": "1s", "resourceLock": "endpoints"}},
    "two profiles": {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]},
    "no profiles": {"profiles": []},
    "disabling what is not there": plugins("score", disabled=("NoSuch",)),
    "arguments of what is not there": args("NoSuch", anything=1),
    "arguments of what takes none": args("ImageLocality", anything=1),
    "a plugin without arguments": profile(pluginConfig=[{"name": FIT}]),
    "a plugin that is off by default": plugins("filter", "NodeDeclaredFeatures"),
    "another plugin that is off by default": plugins("multiPoint", "GangScheduling"),
    "negative weight that others make up for": profile(
        plugins={"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": -1}]}}),
    "typed arguments": args(FIT, apiVersion="kubescheduler.config.k8s.io/v1", kind=f"{FIT}Args"),
    "most allocated": fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 100}]),
    "weight 0 means 1": fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 0}]),
    "a resource without name": fit(type="LeastAllocated", resources=[{}]),
    "ratio": ratio((0, 0), (100, 10)),
    "a shape that is not used": fit(type="LeastAllocated", requestedToCapacityRatio={
        "shape": [{"utilization": 0, "score": 0}]}),
    "wrong arguments of what is not built": without(FIT, fit(type="Nope")),
    "ignored resources": args(FIT, ignoredResources=["example.com/gpu", "cpu"],
                              ignoredResourceGroups=["example.com"]),
    "default constraints": args(SPREAD, defaultingType="List", defaultConstraints=[ZONE]),
    "bad node policies are not looked at": args(SPREAD, defaultingType="List",
        defaultConstraints=[{**ZONE, "nodeAffinityPolicy": "Nope", "minDomains": -1}]),
    "no preemption by share": args("DefaultPreemption", minCandidateNodesPercentage=0),
    "affinity": affinity(key="a.b/c", operator="In", values=["d"]),
    "affinity by field": field_affinity(key="metadata.name", operator="In", values=["n"]),
    "affinity by any field": field_affinity(key="nope", operator="NotIn", values=["n"]),
    "an empty term": args("NodeAffinity", addedAffinity={REQUIRED: {"nodeSelectorTerms": [{}]}}),
    "filter timeout": args("DynamicResources", filterTimeout="0s"),
    "no binding timeout": args("VolumeBinding", bindTimeoutSeconds=0),
    "empty shape": args("VolumeBinding", bindTimeoutSeconds=1),
    "extender": extenders({"filterVerb": "f", "prioritizeVerb": "p", "weight": 1,
                           "httpTimeout": "1s", "nodeCacheCapable": True, "ignorable": True}),
    "extender without address": {"extenders": [{"urlPrefix": ""}]},
    "managed resources": extenders({"managedResources": [{**GPU, "ignoredByScheduler": True}]}),
    "insecure extender": extenders({"enableHTTPS": True, "tlsConfig": {"insecure": True}}),
    "only one bind plugin": plugins("bind", "DefaultBinder", disabled=("*",)),
}  # fmt: skip

BAD: dict[str, dict[str, Any]] = {
    "arguments that end like their type": args("NodeResourcesFitArgs", scoringStrategy={}),
    "unknown field": {"paralellism": 1},
    "wrong case": {"Parallelism": 1},
    "serving": {"servingInfo": {"minTLSVersion": "VersionTLS12"}},
    "unknown field of a profile": profile(plugin={}),
    "point of a newer version": plugins("placementScore"),
    "unknown field of arguments": args(FIT, strategy=1),
    "unknown field of an extender": extenders({"filterverb": "f"}),
    "unknown field of a constraint": args(SPREAD, defaultConstraints=[{**ZONE, "x": 1}]),
    "text for a number": {"parallelism": "1"},
    "fraction for an integer": {"parallelism": 1.5},
    "too large": {"parallelism": 2**31},
    "number for text": profile(schedulerName=1),
    "map for a list": {"profiles": {}},
    "number for a duration": extenders({"httpTimeout": 5}),
    "duration without unit": extenders({"httpTimeout": "5"}),
    "empty duration": election(leaseDuration=""),
    "not base64": extenders({"tlsConfig": {"caData": "%"}}),
    "arguments of another type": args(FIT, kind="InterPodAffinityArgs"),
    "arguments that are not an object": profile(pluginConfig=[{"name": FIT, "args": [1]}]),
    "parallelism": {"parallelism": 0},
    "percentage": {"percentageOfNodesToScore": 101},
    "percentage of a profile": profile(percentageOfNodesToScore=-1),
    "backoff": {"podInitialBackoffSeconds": 0},
    "backoff order": {"podInitialBackoffSeconds": 11},
    "burst": {"clientConnection": {"burst": -1}},
    "lock": election(resourceLock="endpoints"),
    "lease not longer than deadline": election(leaseDuration="10s"),
    "negative retry": election(retryPeriod="-1s"),
    "second profile without name": {"profiles": [{"schedulerName": "a"}, {}]},
    "a name with a control character": profile(schedulerName="a\x7f"),
    "profile with an empty name": profile(schedulerName=""),
    "same name twice": {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
    "no queue sort": plugins("queueSort", disabled=("*",)),
    "different queues": {"profiles": [
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}},
    ]},
    "different queue arguments": {"profiles": [
        {"schedulerName": "a"},
        {"schedulerName": "b", "pluginConfig": [{"name": "PrioritySort", "args": {"x": 1}}]},
    ]},
    "no binder": plugins("bind", disabled=("*",)),
    "unknown plugin": plugins("score", "NoSuch"),
    "unknown plugin everywhere": plugins("multiPoint", "NoSuch"),
    "removed plugin": plugins("filter", "EBSLimits"),
    "removed plugin everywhere": plugins("multiPoint", "GCEPDLimits"),
    "arguments of a removed plugin": args("CinderLimits"),
    "plugin at a point that it does not have": plugins("filter", "ImageLocality"),
    "plugin twice at a point": plugins("score", "ImageLocality", "ImageLocality"),
    "plugin twice everywhere": plugins(
        "multiPoint", "ImageLocality", "ImageLocality", "PrioritySort", "DefaultBinder",
        disabled=("*",)),
    "arguments twice": profile(pluginConfig=[{"name": FIT}, {"name": FIT}]),
    "strategy": fit(type="Nope"),
    "negative weight": profile(plugins={"score": {"enabled": [{"name": FIT, "weight": -1}]}}),
    "no strategy": fit(resources=[{"name": "cpu"}]),
    "resource weight": fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
    "empty ratio": ratio(),
    "unsorted ratio": ratio((5, 1), (5, 2)),
    "ratio out of range": ratio((101, 1)),
    "ratio score out of range": ratio((0, 11)),
    "ignored resource": args(FIT, ignoredResources=["a b"]),
    "ignored group": args(FIT, ignoredResourceGroups=["example.com/x"]),
    "balanced weight": args("NodeResourcesBalancedAllocation",
                            resources=[{"name": "cpu", "weight": 2}]),
    "balanced twice": args("NodeResourcesBalancedAllocation",
                           resources=[{"name": "cpu"}, {"name": "cpu"}]),
    "preemption": args("DefaultPreemption", minCandidateNodesPercentage=101),
    "no preemption at all": args("DefaultPreemption", minCandidateNodesPercentage=0,
                                 minCandidateNodesAbsolute=0),
    "hard affinity": args("InterPodAffinity", hardPodAffinityWeight=101),
    "constraints without List": args(SPREAD, defaultConstraints=[ZONE]),
    "defaulting": args(SPREAD, defaultingType="Lists"),
    "skew": args(SPREAD, defaultingType="List", defaultConstraints=[{**ZONE, "maxSkew": 0}]),
    "topology key": args(SPREAD, defaultingType="List",
                         defaultConstraints=[{**ZONE, "topologyKey": "a b"}]),
    "selector": args(SPREAD, defaultingType="List",
                     defaultConstraints=[{**ZONE, "labelSelector": {}}]),
    "selector of another type": args(SPREAD, defaultingType="List", defaultConstraints=[
        {**ZONE, "labelSelector": {"matchLabels": ["a"]}}]),
    "constraint twice": args(SPREAD, defaultingType="List", defaultConstraints=[ZONE, ZONE]),
    "affinity operator": affinity(key="a", operator="in", values=["b"]),
    "affinity without values": affinity(key="a", operator="In"),
    "affinity with values": affinity(key="a", operator="Exists", values=["b"]),
    "affinity number": affinity(key="a", operator="Gt", values=["x"]),
    "affinity key": affinity(key="a b", operator="Exists"),
    "affinity value": affinity(key="a", operator="In", values=["b c"]),
    "affinity by two names": field_affinity(key="metadata.name", operator="In", values=["a", "b"]),
    "negative timeout": args("VolumeBinding", bindTimeoutSeconds=-1),
    "shape without its gate": args("VolumeBinding", shape=[{"utilization": 0, "score": 0}]),
    "binding timeout without its gate": args("DynamicResources", bindingTimeout="5s"),
    "negative filter timeout": args("DynamicResources", filterTimeout="-1s"),
    "extender weight": extenders({"prioritizeVerb": "p"}),
    "two binders": extenders({"bindVerb": "b"}, {"bindVerb": "b"}),
    "native resource": extenders({"managedResources": [{"name": "cpu"}]}),
    "resource twice": extenders({"managedResources": [GPU]}, {"managedResources": [GPU]}),
    "insecure with CA": extenders({"tlsConfig": {"insecure": True, "caData": "eA=="}}),
    "ignored resource without its plugin": without(FIT, {
        **extenders({"managedResources": [{**GPU, "ignoredByScheduler": True}]}),
        "profiles": [{}]}),
}  # fmt: skip

OTHERWISE: dict[str, range] = {
    "a plugin that is off by default": range(35),
    "another plugin that is off by default": range(35),
    "a shape that is not used": range(36, 99),
    "shape without its gate": range(37, 99),
    "binding timeout without its gate": range(36, 99),
    "point of a newer version": range(36, 99),
}
"""In which minor versions it is the other way around."""
