"""Random configurations, mostly of valid parts."""

from __future__ import annotations

from random import Random
from typing import Any

from kube_scheduler_operator.config.language.plugins.in_tree_plugins import PLUGINS, plugins
from kube_scheduler_operator.config.language.schema import POINTS, POINTS_SINCE
from kube_scheduler_operator.config.language.versions import Version

from .mutations import DURATIONS
from .seeds import CERTIFICATE, KEY, OTHER_KEY, entries, extenders

WEIGHTS = (None, None, 0, 1, 3, 100, 2**31 - 1, -1, -(2**31))


def points_of(minor: int) -> list[str]:
    """The extension points of 1.`minor`, and multiPoint."""
    return [point for point in (*POINTS, "multiPoint") if POINTS_SINCE.get(point, 0) <= minor]


def plugin_lists(rng: Random, minor: int) -> dict[str, Any]:
    """Plugins enabled and disabled at a few points; seven in eight where they belong."""
    known = plugins(Version(1, minor))
    found: dict[str, Any] = {}
    for point in rng.sample(points_of(minor), rng.randint(1, 4)):
        fitting = [name for name, one in known.items() if one.implements(point, minor)]
        if point == "multiPoint" or not fitting:
            fitting = list(known)
        enabled = []
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            name = rng.choice(fitting if rng.random() < 0.93 else list(PLUGINS))
            weight = rng.choice(WEIGHTS)
            enabled.append({"name": name} | ({} if weight is None else {"weight": weight}))
        disabled = rng.sample([*known, "NoSuch"], rng.choice((0, 0, 1, 2)))
        if rng.random() < (0.08 if point in ("multiPoint", "bind", "queueSort") else 0.3):
            disabled.append("*")
        found[point] = {
            "enabled": enabled, "disabled": [{"name": name} for name in disabled],
        }  # fmt: skip
    return found


def several_profiles(rng: Random, minor: int) -> list[dict[str, Any]]:
    """Two to four profiles, mostly with names of their own and the same queue."""
    names = rng.sample(["a", "b", "c", "d", "default-scheduler"], rng.randint(2, 4))
    if rng.random() < 0.15:
        names[-1] = rng.choice([names[0], ""])
    queues: list[Any] = [
        None, {}, {"enabled": [{"name": "PrioritySort"}]},
        {"enabled": [{"name": "PrioritySort", "weight": 1}]},
        {"disabled": [{"name": "PrioritySort", "weight": 1}]},
        {"enabled": [{"name": "PrioritySort"}], "disabled": [{"name": "*"}]},
    ]  # fmt: skip
    args: list[Any] = [None, None, {}, {"x": 1}, {"x": True}, {"x": 1, "y": [2]}]
    queue, arg = rng.choice(queues[1:]), rng.choice(args)
    found = []
    for name in names:
        profile: dict[str, Any] = {"schedulerName": name}
        if rng.random() < 0.1:
            queue = rng.choice(queues)
        if queue is not None:
            profile["plugins"] = {"queueSort": queue}
        if rng.random() < 0.1:
            arg = rng.choice(args)
        if arg is not None:
            profile["pluginConfig"] = [{"name": "PrioritySort", "args": arg}]
        if rng.random() < 0.3:
            profile["percentageOfNodesToScore"] = rng.choice((0, 1, 50, 100))
        if rng.random() < 0.2:
            lists = {"score": {"disabled": [{"name": "*"}]}}
            profile["plugins"] = {**profile.get("plugins", {}), **lists}
        if rng.random() < 0.05:
            del profile["schedulerName"]
        found.append(profile)
    return found


def arguments(rng: Random, minor: int) -> dict[str, Any]:
    """A profile with arguments of one to three plugins; some plugins are disabled."""
    fields = _fields()
    chosen = rng.sample(sorted(fields), rng.randint(1, 3))
    found = []
    for plugin in chosen:
        values = fields[plugin]
        taken = rng.sample(sorted(values), rng.randint(1, len(values)))
        args = {
            name: rng.choice(values[name][0] if rng.random() < 0.75 else values[name][1])
            for name in taken
        }
        found.append({"name": plugin, "args": args})
    profile: dict[str, Any] = {"pluginConfig": found}
    if rng.random() < 0.15:
        off = [{"name": rng.choice(chosen)}]
        profile["plugins"] = {"multiPoint": {"disabled": off}}
    if rng.random() < 0.05:
        found.append({"name": found[0]["name"]})
    return profile


def _fields() -> dict[str, dict[str, tuple[list[Any], list[Any]]]]:
    """Per plugin and field: (values that are right, values that may be wrong)."""
    good = {entry["name"]: entry["args"] for entry in entries(36)}
    affinity = good["NodeAffinity"]["addedAffinity"]
    constraint = good["PodTopologySpread"]["defaultConstraints"][0]
    shape = [{"utilization": 0, "score": 0}, {"utilization": 70, "score": 10}]
    ratio = "RequestedToCapacityRatio"
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"

    def needs(key: str, operator: str, *values: str, of: str = "matchExpressions") -> Any:
        one = {"key": key, "operator": operator, "values": list(values)}
        return {required: {"nodeSelectorTerms": [{of: [one]}]}}

    def strategy(kind: str, *points: tuple[int, int]) -> Any:
        shaped = [{"utilization": at, "score": score} for at, score in points]
        return {"type": kind, "requestedToCapacityRatio": {"shape": shaped}}

    return {
        "DefaultPreemption": {
            "minCandidateNodesPercentage": ([0, 1, 100], [-1, 101, 0]),
            "minCandidateNodesAbsolute": ([1, 2**31 - 1], [0, -1]),
        },
        "DynamicResources": {
            "filterTimeout": (["0s", "3s"], ["-1ns", "10"]),
            "bindingTimeout": (["1s", "1h"], ["999ms", "0s"]),
        },
        "InterPodAffinity": {
            "hardPodAffinityWeight": ([0, 100], [-1, 101]),
            "ignorePreferredTermsOfExistingPods": ([True, False], [None, "yes"]),
        },
        "NodeAffinity": {
            "addedAffinity": (
                [affinity, {}, None, {required: {"nodeSelectorTerms": []}}, {required: {}},
                 needs("a", "Exists"), needs("a", "Gt", "5"), needs("a", "NotIn", "b", ""),
                 needs("any key", "In", "x y", of="matchFields"),
                 {preferred: [{"weight": 0, "preference": needs("a b", "?")}]}],
                [needs("a", "Exists", "b"), needs("a b", "Exists"), needs("a", "In"),
                 needs("a", "Gt", "5", "6"), needs("a", "Lt", "x"), needs("a", "gt", "5"),
                 needs("a", "Gt", str(2**63)), needs("a", "In", "x y"), needs("a", "In", "b" * 64),
                 needs("a", "In", "b", "c", of="matchFields"), needs("", "Exists"),
                 needs("a", "Exists", of="matchFields"), {preferred: [{"weight": 1}]},
                 {preferred: [{"weight": 1, "preference": {"matchExpressions": [{}]}}]}],
            ),
        },
        "NodeResourcesBalancedAllocation": {
            "resources": ([[{"name": "cpu", "weight": 0}], [], [{}]],
                          [[{"name": "cpu"}, {"name": "cpu"}], [{"name": "cpu", "weight": 2}]]),
        },
        "NodeResourcesFit": {
            "ignoredResources": ([["cpu", "example.com/a"], []], [["a b"], [""], ["a/b/c"]]),
            "ignoredResourceGroups": ([["example.com"]], [["example.com/a"], ["-"]]),
            "scoringStrategy": (
                [{"type": "MostAllocated"}, strategy(ratio, (0, 0), (70, 10)), None,
                 {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 100}]}],
                [{"type": "mostAllocated"}, {}, strategy(ratio), strategy("MostAllocated", (1, 1)),
                 {"type": ratio}, strategy(ratio, (5, 1), (5, 1)), strategy(ratio, (0, 11)),
                 strategy(ratio, (101, 0)), strategy("LeastAllocated"),
                 {"type": ratio, "requestedToCapacityRatio": {}},
                 {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]},
                 {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": -1}]}],
            ),
        },
        "PodTopologySpread": {
            "defaultingType": (["List"], ["System", "", "list"]),
            "defaultConstraints": (
                [[], [constraint], [constraint, {**constraint, "topologyKey": "x"}]],
                [[constraint, constraint], [{**constraint, "maxSkew": 0}], [{}],
                 [{**constraint, "labelSelector": {"matchLabels": {"a": "b"}}}],
                 [{**constraint, "whenUnsatisfiable": "Never"}],
                 [{**constraint, "topologyKey": "a b"}]],
            ),
        },
        "VolumeBinding": {
            "bindTimeoutSeconds": ([0, 1, 2**63 - 1], [-1, 2**63]),
            "shape": ([None], [[], shape, shape[::-1]]),
        },
        "ImageLocality": {"x": ([1, None, [], {"y": 2}], ["z"])},
        "NoSuch": {"x": ([1], [2])},
    }  # fmt: skip


def some_extenders(rng: Random) -> list[dict[str, Any]]:
    first = extenders()[0]
    simple: dict[str, tuple[list[Any], list[Any]]] = {
        "filterVerb": (["f", ""], [None]), "prioritizeVerb": (["", "p"], ["p"]),
        "weight": ([1, 2**63 - 1], [0, -1]), "bindVerb": (["", "b"], ["b"]),
        "enableHTTPS": ([True, False], [None]), "nodeCacheCapable": ([True, False], [None]),
        "ignorable": ([True, False], [None]), "httpTimeout": (["2s", "0s", "-1s"], ["2"]),
        "managedResources": (
            [[{"name": f"example.com/r{rng.randint(0, 9)}",
               "ignoredByScheduler": rng.random() < 0.5}], []],
            [[{"name": "example.com/r1"}], [{"name": "cpu"}], [{}], [{"name": "kubernetes.io/a"}]],
        ),
        "tlsConfig": (
            [{"insecure": True}, {}, None, first["tlsConfig"], {"caData": CERTIFICATE},
             {"certData": CERTIFICATE}, {"keyData": KEY}, {"certData": "eA=="},
             {"caData": "", "serverName": "x"}],
            [{"insecure": True, "caData": CERTIFICATE}, {"caData": KEY}, {"caData": "eA=="},
             {"certData": CERTIFICATE, "keyData": OTHER_KEY}, {"certData": KEY, "keyData": KEY},
             {"certData": CERTIFICATE, "keyData": CERTIFICATE}, {"caData": "%"}],
        ),
    }  # fmt: skip
    found = []
    for number in range(rng.randint(1, 3)):
        extender: dict[str, Any] = {"urlPrefix": f"http://127.0.0.1:{number + 1}/x"}
        for name in rng.sample(sorted(simple), rng.randint(2, 6)):
            extender[name] = rng.choice(simple[name][0 if rng.random() < 0.85 else 1])
        if extender.get("prioritizeVerb") and rng.random() < 0.8:
            extender.setdefault("weight", 1)
        found.append(extender)
    return found


def leader_election(rng: Random) -> dict[str, Any]:
    timings = ("20s", "15s", "12s", "10s", "5s", "2s", "1.2s", "0s", "100ms", "-1s", "1h")
    found: dict[str, Any] = {}
    for name in ("leaseDuration", "renewDeadline", "retryPeriod"):
        if rng.random() < 0.7:
            found[name] = rng.choice(timings if rng.random() < 0.9 else DURATIONS)
    others: dict[str, list[Any]] = {
        "leaderElect": [True, False, None],
        "resourceLock": ["leases", "", "endpoints", "Leases", "endpointsleases"],
        "resourceName": ["x", "", None], "resourceNamespace": ["x", "", None],
    }  # fmt: skip
    for name, values in others.items():
        if rng.random() < 0.3:
            found[name] = rng.choice(values)
    return found
