"""The JSON Schema of KubeSchedulerConfiguration, for editors: completion and early diagnostics.

It is generated from the tables of the validation, for one version of Kubernetes. It never rejects
more than kube-scheduler: the check evaluates rules that depend on other fields, on feature gates or
on the image, and names of plugins are suggestions. Editors support draft 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...base.go_values import duration_text, nanoseconds
from .feature_gates import Gates
from .plugins.default_args import defaulted_args
from .plugins.in_tree_plugins import listable_plugins, plugins
from .schema import (
    API_VERSION,
    ARGS,
    BOOL,
    CONFIGURATION,
    DURATION,
    INT32,
    INT64,
    KIND,
    PLUGIN_SET,
    STRING,
    TIMINGS,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    args_struct,
)
from .versions import Version

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_LIMITS: Final = {INT32: 2**31, INT64: 2**63}
_DURATION: Final = r"^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$"
_PLUGIN_LISTS: Final = "profiles[].plugins."

_RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "parallelism": {"minimum": 1},
    "percentageOfNodesToScore": {"minimum": 0, "maximum": 100},
    "podInitialBackoffSeconds": {"minimum": 1},
    "podMaxBackoffSeconds": {"minimum": 1},
    "clientConnection.burst": {"minimum": 0},
    "percentageOfPlacementsToScore": {"minimum": 0, "maximum": 100},
    "profiles[].percentageOfNodesToScore": {"minimum": 0, "maximum": 100},
    "profiles[].percentageOfPlacementsToScore": {"minimum": 0, "maximum": 100},
}  # fmt: skip
"""Path -> what validation/configuration.py requires regardless of other fields."""

_ARGUMENT_RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "DefaultPreemption.minCandidateNodesPercentage": {"minimum": 0, "maximum": 100},
    "DefaultPreemption.minCandidateNodesAbsolute": {"minimum": 0},
    "InterPodAffinity.hardPodAffinityWeight": {"minimum": 0, "maximum": 100},
    "NodeResourcesBalancedAllocation.resources[].weight": {"minimum": 0, "maximum": 1},
    "NodeResourcesFit.scoringStrategy": {"required": ["type"]},
    "NodeResourcesFit.scoringStrategy.type": {
        "type": STRING, "enum": ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"],
    },
    "NodeResourcesFit.scoringStrategy.resources[].weight": {"minimum": 0, "maximum": 100},
    "PodTopologySpread.defaultConstraints[]": {"required": ["maxSkew", "topologyKey",
                                                            "whenUnsatisfiable"]},
    "PodTopologySpread.defaultConstraints[].maxSkew": {"type": "integer", "minimum": 1},
    "PodTopologySpread.defaultConstraints[].topologyKey": {"type": STRING, "minLength": 1},
    "PodTopologySpread.defaultConstraints[].whenUnsatisfiable": {
        "type": STRING, "enum": ["DoNotSchedule", "ScheduleAnyway"],
    },
    "VolumeBinding.bindTimeoutSeconds": {"minimum": 0},
}  # fmt: skip
"""Path -> what validation/plugin_args.py requires of the plugins that run."""

_SUGGESTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "leaderElection.resourceLock": ("leases",),
    "clientConnection.kubeconfig": ("/etc/kubernetes/scheduler.conf",),
    "clientConnection.contentType": (
        "application/vnd.kubernetes.protobuf", "application/json",
    ),
    "profiles[].schedulerName": ("default-scheduler",),
    "NodeResourcesFit.scoringStrategy.type": (
        "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio",
    ),
    "PodTopologySpread.defaultingType": ("System", "List"),
    "PodTopologySpread.defaultConstraints[].whenUnsatisfiable": (
        "DoNotSchedule", "ScheduleAnyway",
    ),
    "PodTopologySpread.defaultConstraints[].topologyKey": (
        "topology.kubernetes.io/zone", "kubernetes.io/hostname",
    ),
}  # fmt: skip
"""Path -> usual values that editors suggest; others are also valid."""

_DEFAULTS: Final[Mapping[str, Any]] = {
    "parallelism": 16,
    "percentageOfNodesToScore": 0,
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 10,
    "enableProfiling": True,
    "enableContentionProfiling": True,
    "leaderElection.leaderElect": True,
    **{f"leaderElection.{field}": default for field, default in TIMINGS.items()},
    "leaderElection.resourceLock": "leases",
    "leaderElection.resourceName": "kube-scheduler",
    "leaderElection.resourceNamespace": "kube-system",
    "clientConnection.contentType": "application/vnd.kubernetes.protobuf",
    "clientConnection.qps": 50,
    "clientConnection.burst": 100,
    "extenders[].httpTimeout": "5s",
    "InterPodAffinity.ignorePreferredTermsOfExistingPods": False,
}
"""Path -> default (pkg/scheduler/apis/config/v1/defaults.go); default_args.py has the others."""


def configuration_schema(version: Version) -> dict[str, Any]:
    """Generate the schema for the kube-scheduler of one version."""
    return _Builder(version).configuration()


class _Builder:
    def __init__(self, version: Version) -> None:
        self.minor = version.minor
        self.defaults = _defaults(version)  # path -> default value
        self._listable = listable_plugins(version)
        self._plugins = plugins(version)

    def configuration(self) -> dict[str, Any]:
        schema = self.of(CONFIGURATION, "")
        fields = schema["properties"]
        fields["apiVersion"] = {"const": API_VERSION, "description": "API version of this file."}
        fields["kind"] = {"const": KIND, "description": "Kind of this file."}
        schema["required"] = ["apiVersion", "kind"]
        schema["type"] = "object"
        return schema

    def of(self, kind: Type, path: str) -> dict[str, Any]:
        """Generate the schema of the value at a path; as in Go, null means unset."""
        if kind is PLUGIN_SET:
            schema = self._plugin_set(path)
        elif isinstance(kind, Struct):
            schema = self._struct(kind, path)
        elif isinstance(kind, List):
            schema = {"type": ["array", "null"], "items": self.of(kind.item, f"{path}[]")}
        elif isinstance(kind, Map):
            values = self.of(kind.item, f"{path}{{}}")
            schema = {"type": ["object", "null"], "additionalProperties": values}
        else:
            schema = _scalar(kind)
        schema |= _RULES.get(path, {})
        if path in _SUGGESTIONS:
            schema = _suggesting(schema, _SUGGESTIONS[path])
        if text := _described(path):
            schema["description"] = text
        if path in self.defaults:
            default = self.defaults[path]
            # As Go prints it: 600s is 10m0s.
            schema["default"] = duration_text(nanoseconds(default)) if kind == DURATION else default
        return schema

    def _struct(self, kind: Struct, path: str) -> dict[str, Any]:
        prefix = f"{path}." if path else ""
        fields = {
            name: self.of(kind.fields[name], prefix + name) for name in kind.known(self.minor)
        }
        for name, field in fields.items():
            if kind.fields[name] == DURATION and name not in kind.optional:
                field["type"] = STRING  # the only type whose null Go does not accept
        schema = {
            "type": ["object", "null"],
            "properties": fields,
            "additionalProperties": False,
        }
        if path == "profiles[]":
            schema["allOf"] = [_rules_of_running_plugins()]
        if path == "profiles[].pluginConfig[]":
            known = [name for name in self._plugins if name in ARGS]
            fields["name"] = _suggesting(fields["name"], self._plugins)
            schema["allOf"] = [
                _if_named(name, {**self.of(struct, name), "description": f"Arguments of {name}."})
                for name in known
                if (struct := args_struct(name, self.minor)) is not None
            ]
        return schema

    def _plugin_set(self, path: str) -> dict[str, Any]:
        point = path.removeprefix(_PLUGIN_LISTS)
        known = {**self._plugins} if point == "multiPoint" else {
            name: plugin
            for name, plugin in self._listable.items()
            if plugin.implements(point, self.minor)
        }  # fmt: skip
        schema = self._struct(PLUGIN_SET, path)
        for key, more in (("enabled", ()), ("disabled", ("*",))):
            entry = schema["properties"][key]["items"]["properties"]
            entry["name"] = _suggesting(entry["name"], (*more, *known))
        return schema


def _scalar(kind: Scalar) -> dict[str, Any]:
    if kind == STRING:
        return {"type": [STRING, "null"]}
    if kind == BOOL:
        return {"type": ["boolean", "null"]}
    if kind == DURATION:
        return {"type": [STRING, "null"], "pattern": _DURATION}
    if kind in _LIMITS:
        limit = _LIMITS[kind]
        return {"type": ["integer", "null"], "minimum": -limit, "maximum": limit - 1}
    if kind == "float":
        return {"type": ["number", "null"]}
    if kind == "bytes":
        return {"type": [STRING, "array", "null"]}
    return {}


def _suggesting(schema: Mapping[str, Any], values: Iterable[str]) -> dict[str, Any]:
    """Add values that an editor suggests without rejecting others."""
    offered = list(dict.fromkeys(values))
    if not offered:  # no plugin works at this extension point
        return dict(schema)
    rest = {key: value for key, value in schema.items() if key in ("description", "default")}
    strict = {key: value for key, value in schema.items() if key not in rest}
    return {**rest, "anyOf": [{"enum": offered}, strict]}


def _if_named(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
        "then": {"properties": {"args": args}},
    }


def _rules_of_running_plugins() -> dict[str, Any]:
    """Generate the rules for arguments in a profile that disables none of these default plugins.

    kube-scheduler does not validate the arguments of a plugin that it does not build.
    """
    by_plugin: dict[str, list[dict[str, Any]]] = {}
    for path, rule in _ARGUMENT_RULES.items():
        plugin, _, field = path.partition(".")
        by_plugin.setdefault(plugin, []).append(_at(field, rule))
    named = {"properties": {"name": {"enum": ["*", *by_plugin]}}, "required": ["name"]}
    complete = {"properties": {"disabled": {"not": {"contains": named}}}}
    rules = [_if_named(name, {"allOf": fields}) for name, fields in by_plugin.items()]
    return {
        "if": {"properties": {"plugins": {"additionalProperties": complete}}},
        "then": {"properties": {"pluginConfig": {"items": {"allOf": rules}}}},
    }


def _at(path: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    """Wrap a rule for the field at a path such as `resources[].weight`."""
    for part in reversed(path.split(".")):
        inner = {"items": rule} if part.endswith("[]") else rule
        rule = {"properties": {part.removesuffix("[]"): inner}}
    return dict(rule)


def _described(path: str) -> str:
    """Describe a field, a list of plugins, or an entry that several lists share."""
    if path in DESCRIPTIONS:
        return DESCRIPTIONS[path]
    last = path.rpartition(".")[2]
    if path.startswith(_PLUGIN_LISTS):
        entry = f"plugin.{last}"
        return DESCRIPTIONS.get(entry) or DESCRIPTIONS.get(last, "")
    parts = path.split(".")
    return DESCRIPTIONS.get(".".join(parts[-2:]), "") if len(parts) > 1 else ""


def _defaults(version: Version) -> dict[str, Any]:
    """Map paths to the defaults of a version."""
    defaults = dict(_DEFAULTS)

    def walk(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                walk(item, f"{path}.{key}")
        elif value is not None:
            defaults[path] = value

    for plugin in ARGS:
        walk(defaulted_args(plugin, {}, Gates(version)), plugin)
    return defaults


# --- descriptions --------------------------------------------------------------------------------

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "": "Configuration of kube-scheduler, which it reads with --config.",
    "parallelism": "Number of goroutines that filter and score nodes. Greater than 0.",
    "leaderElection": "Leader election between replicas of this scheduler.",
    "leaderElection.leaderElect": "Whether only one of several replicas schedules.",
    "leaderElection.leaseDuration": "Time after which other replicas take over from a leader "
    "that does not renew its Lease. Greater than renewDeadline.",
    "leaderElection.renewDeadline": "Time after which a leader that cannot renew its Lease stops. "
    "Greater than 1.2 times retryPeriod.",
    "leaderElection.retryPeriod": "Time between two attempts to get or renew the Lease.",
    "leaderElection.resourceLock": "Kind of object that is the lock. Only leases.",
    "leaderElection.resourceName": "Name of the Lease. Different schedulers need different Leases.",
    "leaderElection.resourceNamespace": "Namespace of the Lease.",
    "clientConnection": "Connection to the API server.",
    "clientConnection.kubeconfig": "Path of a kubeconfig. Empty: the ServiceAccount of the Pod. "
    "With a configuration file, kube-scheduler ignores the flag --kubeconfig.",
    "clientConnection.acceptContentTypes": "Accept header of requests.",
    "clientConnection.contentType": "Content type of requests.",
    "clientConnection.qps": "Requests per second.",
    "clientConnection.burst": "Requests that may exceed qps for a moment.",
    "enableProfiling": "Whether /debug/pprof is served.",
    "enableContentionProfiling": "Whether profiles include lock contention.",
    "percentageOfNodesToScore": "Share of nodes, in percent, after which kube-scheduler stops "
    "looking for more feasible ones. 0: adaptive, 50 to 5 by the size of the cluster.",
    "percentageOfPlacementsToScore": "Share of the placements of a group of Pods, in percent, "
    "after which kube-scheduler stops looking for more feasible ones. 0: adaptive, 100 to 5 by the "
    "number of nodes in them. Needs the feature gate TopologyAwareWorkloadScheduling.",
    "podInitialBackoffSeconds": "Seconds before the first retry of an unschedulable Pod.",
    "podMaxBackoffSeconds": "Maximum seconds between two retries of an unschedulable Pod.",
    "profiles": "Profiles of this scheduler. A Pod chooses one with spec.schedulerName.",
    "extenders": "HTTP servers that kube-scheduler calls for the Pods of all profiles.",
    "delayCacheUntilActive": "Whether only the leader watches objects. Saves memory of the other "
    "replicas; the next leader starts later.",
    "profiles[].schedulerName": "Name that Pods set in spec.schedulerName. Pods that name no "
    "scheduler have default-scheduler.",
    "profiles[].percentageOfNodesToScore": "The same for the Pods of this profile only.",
    "profiles[].percentageOfPlacementsToScore": "The same for the Pods of this profile only.",
    "profiles[].plugins": "Plugins by extension point, merged with the default ones.",
    "profiles[].pluginConfig": "Arguments of plugins.",
    "profiles[].pluginConfig[].name": "Name of the plugin.",
    "profiles[].pluginConfig[].args": "Arguments of the plugin.",
    "enabled": "Plugins that are added after the default ones, or replace the default one of the "
    "same name.",
    "disabled": 'Default plugins that are removed. "*" removes all.',
    "plugin.name": "Name of the plugin.",
    "plugin.weight": "Factor of the plugin's score, where it scores. 0 means 1.",
    "multiPoint": "All extension points that a plugin implements. A list of a single extension "
    "point counts more.",
    "preEnqueue": "Plugins that can keep a Pod out of the active queue.",
    "queueSort": "The plugin that orders Pods in the queue. Exactly one, the same in all profiles.",
    "preFilter": "Plugins that prepare data for filter, or reject a Pod at once.",
    "filter": "Plugins that reject nodes.",
    "postFilter": "Plugins that run if no node is feasible, such as preemption.",
    "preScore": "Plugins that prepare data for score.",
    "score": "Plugins that rank the feasible nodes, by their weight.",
    "reserve": "Plugins that reserve resources before a Pod is bound.",
    "permit": "Plugins that delay or deny the binding of a Pod.",
    "preBind": "Plugins that work before a Pod is bound.",
    "bind": "Plugins that bind a Pod; the first one that handles it.",
    "postBind": "Plugins that are informed of a binding.",
    "placementGenerate": "Plugins that propose sets of nodes for a group of Pods.",
    "placementFeasible": "Plugins that decide whether a set of nodes takes enough Pods of a group.",
    "placementScore": "Plugins that rank sets of nodes for a group of Pods.",
    "podGroupPostFilter": "Plugins that run if a group of Pods does not fit.",
    "extenders[].urlPrefix": "URL of the extender, to which a verb is appended.",
    "extenders[].filterVerb": "Path of the call that rejects nodes. Empty: not called.",
    "extenders[].prioritizeVerb": "Path of the call that scores nodes. Empty: not called.",
    "extenders[].preemptVerb": "Path of the call that limits preemption. Empty: not called.",
    "extenders[].bindVerb": "Path of the call that binds Pods. Only one extender can have it.",
    "extenders[].weight": "Factor of the extender's score. Positive with prioritizeVerb.",
    "extenders[].enableHTTPS": "Whether the extender is called with HTTPS.",
    "extenders[].tlsConfig": "TLS settings of the calls.",
    "extenders[].tlsConfig.insecure": "Whether the extender's certificate is not verified.",
    "extenders[].tlsConfig.serverName": "Name that the extender's certificate must have.",
    "extenders[].tlsConfig.certFile": "Path of the client certificate.",
    "extenders[].tlsConfig.keyFile": "Path of the key of the client certificate.",
    "extenders[].tlsConfig.caFile": "Path of the CA that signed the extender's certificate.",
    "extenders[].tlsConfig.certData": "Client certificate, PEM in base64.",
    "extenders[].tlsConfig.keyData": "Key of the client certificate, PEM in base64.",
    "extenders[].tlsConfig.caData": "CA of the extender's certificate, PEM in base64.",
    "extenders[].httpTimeout": "Maximum duration of a call. All Pods wait for it.",
    "extenders[].nodeCacheCapable": "Whether the extender knows nodes, so that calls carry only "
    "their names.",
    "extenders[].managedResources": "Resources that the extender manages. If set, it is called "
    "only for Pods that request one of them.",
    "extenders[].managedResources[].name": "Name of the resource.",
    "extenders[].managedResources[].ignoredByScheduler": "Whether NodeResourcesFit ignores it.",
    "extenders[].ignorable": "Whether scheduling continues if the extender does not answer.",
    "DefaultPreemption.minCandidateNodesPercentage": "Minimum share of nodes, in percent, that "
    "preemption examines.",
    "DefaultPreemption.minCandidateNodesAbsolute": "Minimum number of nodes that preemption "
    "examines.",
    "DynamicResources.filterTimeout": "Maximum time to filter one node.",
    "DynamicResources.bindingTimeout": "Maximum time to wait for the binding conditions of "
    "devices.",
    "InterPodAffinity.hardPodAffinityWeight": "Score of nodes for Pods whose required affinity "
    "selects this Pod.",
    "InterPodAffinity.ignorePreferredTermsOfExistingPods": "Whether preferred terms of running "
    "Pods are ignored, which is faster.",
    "NodeAffinity.addedAffinity": "Node affinity that all Pods of the profile have in addition.",
    "NodeResourcesBalancedAllocation.resources": "Resources whose use is balanced.",
    "NodeResourcesFit.ignoredResources": "Resources that are not checked.",
    "NodeResourcesFit.ignoredResourceGroups": "Groups of resources that are not checked: what "
    "precedes the slash.",
    "NodeResourcesFit.scoringStrategy": "How nodes are scored by the use of their resources.",
    "NodeResourcesFit.scoringStrategy.type": "LeastAllocated prefers empty nodes, "
    "MostAllocated full ones, "
    "RequestedToCapacityRatio follows a shape.",
    "NodeResourcesFit.scoringStrategy.resources": "Resources that count, with their weights.",
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio": "The shape for type "
    "RequestedToCapacityRatio.",
    "PodTopologySpread.defaultConstraints": "Constraints of Pods that have none. Needs "
    "defaultingType List.",
    "PodTopologySpread.defaultingType": "System: spread over hosts and zones as a preference. "
    "List: defaultConstraints, also if that is empty.",
    "VolumeBinding.bindTimeoutSeconds": "Maximum seconds to wait for volumes to be bound.",
    "VolumeBinding.shape": "Scores of nodes by the use of their storage; needs a feature gate.",
    "shape[].utilization": "Use of the resource in percent.",
    "shape[].score": "Score at this use, 0 to 10.",
    "resources[].name": "Name of the resource.",
    "resources[].weight": "Weight of the resource, 1 to 100. 0 means 1.",
}  # fmt: skip
"""Path -> description; the fields of an argument begin with the plugin's name."""
