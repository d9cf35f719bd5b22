"""Conversion of crane-scheduler's configuration to a LoadPolicy and a SchedulerExtender.

crane's plugin Dynamic needs crane's scheduler image. An extender with the policy load-aware does
the same for the stock kube-scheduler. The rest of the configuration is converted like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...base.findings import Path, Problem
from ...base.go_values import duration_text
from ...base.objects import entries, mapping
from ...kube.resource import LOAD_POLICIES, SCHEDULER_EXTENDERS
from ...scheduling.load.policy import LoadPolicy, LoadPolicyError
from ...scheduling.load.policy_files import CRANE_GROUP, CRANE_KIND, LoadedPolicy, from_document
from ..language.schema import DEFAULT_SCHEDULER
from ..language.validation.configuration import Target
from .changes import Change, ConversionError, ConversionLog
from .convert import check_types, convert
from .operator_objects import (
    ConvertedObjects,
    control_plane_objects,
    operator_object,
    secondary_objects,
)

POLICY_NAME: Final = "default"
EXTENDER_NAME: Final = "load-aware"
SECOND_NAME: Final = "crane-scheduler"
"""The name of a second scheduler in crane's charts and manuals."""
DYNAMIC: Final = "Dynamic"
TOPOLOGY: Final = "NodeResourceTopologyMatch"
DEFAULT_PATH: Final = "/etc/kubernetes/dynamic-scheduler-policy.yaml"
"""Default of the plugin's argument policyConfigPath."""


@dataclass(slots=True)
class DynamicUse:
    """The use of Dynamic in a profile."""

    path: Path  # of the profile
    name: str  # its schedulerName
    weights: dict[str, int] = field(default_factory=dict)  # point that enables it -> its weight
    policy_path: str = DEFAULT_PATH  # of its policy on the node

    @property
    def filters(self) -> bool:
        return not self.weights.keys().isdisjoint(("filter", "multiPoint"))

    @property
    def scores(self) -> bool:
        return not self.weights.keys().isdisjoint(("score", "multiPoint"))

    @property
    def weight(self) -> int:
        """The weight of its scores."""
        return self.weights.get("score") or self.weights.get("multiPoint") or 1


@dataclass(frozen=True, slots=True)
class DynamicConfig:
    """A configuration without crane's plugins, and how it used them."""

    rest: Mapping[str, Any]  # the configuration without them, in its old version
    uses: tuple[DynamicUse, ...]  # in the order of the profiles
    names: tuple[str, ...]  # the schedulerNames of all profiles
    changes: tuple[Change, ...] = ()  # except the replacement of Dynamic

    @property
    def policy_path(self) -> str:
        """The path of the first policy on the node."""
        return self.uses[0].policy_path


def read_dynamic(document: Any) -> DynamicConfig | None:
    """Read a configuration; return None if it does not enable Dynamic."""
    profiles = mapping(document).get("profiles")
    if not isinstance(profiles, list):
        return None
    try:
        check_types(document)
    except ConversionError:
        return None  # the conversion reports it
    report = ConversionLog()
    profiles = [profile or {} for profile in profiles]
    uses = [_use(profile, ("profiles", index), report) for index, profile in enumerate(profiles)]
    enabled = tuple(use for use in uses if use.weights)
    if not enabled:
        return None
    rest = {**document, "profiles": [_without_cranes_plugins(profile) for profile in profiles]}
    return DynamicConfig(rest, enabled, tuple(use.name for use in uses), report.changes())


def _use(profile: Mapping[str, Any], path: Path, report: ConversionLog) -> DynamicUse:
    use = DynamicUse(path, str(profile.get("schedulerName") or DEFAULT_SCHEDULER))
    for point, sets in mapping(profile.get("plugins")).items():
        for index, entry in enumerate(map(mapping, entries(mapping(sets).get("enabled")))):
            if entry.get("name") == DYNAMIC:
                use.weights[point] = int(entry.get("weight") or 0)
            elif entry.get("name") == TOPOLOGY:
                why = (
                    "no policy of the operator uses the NUMA topology of crane's agent "
                    "(NodeResourceTopology of topology.crane.io): pods are placed without it, and "
                    "the kubelet's topology manager still aligns or rejects them"
                )
                where = (*path, "plugins", point, "enabled", index)
                report.lost(where, f"{TOPOLOGY} removed", why)
    for index, entry in enumerate(map(mapping, entries(profile.get("pluginConfig")))):
        arguments, why = entry.get("args"), "the plugin is removed as well"
        if entry.get("name") == DYNAMIC:
            if isinstance(arguments, Mapping):
                use.policy_path = str(arguments.get("policyConfigPath") or DEFAULT_PATH)
            why = f"the LoadPolicy replaces {use.policy_path} on the nodes"
        if entry.get("name") in (DYNAMIC, TOPOLOGY):
            where = (*path, "pluginConfig", index)
            report.same(where, f"arguments of {entry['name']} removed", why)
    return use


def _without_cranes_plugins(value: Any) -> Any:
    """Copy a profile, or a part of one, without their entries and lists that are empty then."""
    if isinstance(value, list):
        return [entry for entry in value if mapping(entry).get("name") not in (DYNAMIC, TOPOLOGY)]
    if isinstance(value, dict):
        kept = {key: _without_cranes_plugins(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ([], {})}
    return value


def is_dynamic_policy(document: Any) -> bool:
    return (
        isinstance(document, Mapping)
        and document.get("kind") == CRANE_KIND
        and str(document.get("apiVersion", "")).partition("/")[0] == CRANE_GROUP
    )


def convert_dynamic_policy(document: Any) -> tuple[LoadedPolicy, tuple[Change, ...]]:
    """Convert a DynamicSchedulerPolicy; the changes are its parts that are not kept.

    Raises:
        LoadPolicyError: it is another kind, or invalid.
    """
    if not is_dynamic_policy(document):
        message = f"must be a {CRANE_KIND} of {CRANE_GROUP}; pass one"
        raise LoadPolicyError([Problem("UnknownKind", ("kind",), message)])
    loaded = from_document(document)
    report = ConversionLog()
    for note in loaded.notes:
        if note.reason == "Percentages":
            why = (
                "the filter keeps its limits; crane-scheduler-plus scored 0 for every node with a "
                "load of 1 % or more, and now the weights apply"
            )
            report.differs(note.path, "limits above 1 converted from percentages", why)
        else:
            report.same(note.path, "removed", note.message)
    return loaded, report.changes()


def load_policy_object(policy: LoadPolicy, *, prometheus: str = "") -> dict[str, Any]:
    """Create a LoadPolicy with the same rules.

    `prometheus` is the URL of the Prometheus with crane's recording rules; empty: node-metrics.
    """
    source = {"type": "Prometheus", "prometheus": {"url": prometheus}} if prometheus else {}
    rules = policy.rules
    spec = {
        "source": source or {"type": "NodeMetrics"},
        "sync": [{"name": rule.name, "period": _duration(rule.period)} for rule in rules.sync],
        "predicates": [
            {"name": rule.name, "maxLimit": _limit(rule.limit)} for rule in rules.predicates
        ],
        "priorities": [
            {"name": rule.name, "weight": _number(rule.weight)} for rule in rules.priorities
        ],
        "hotValues": [
            {"timeRange": _duration(hot.seconds), "count": hot.count} for hot in rules.hot_values
        ],
    }
    return operator_object(LOAD_POLICIES, POLICY_NAME, spec)


@dataclass(frozen=True, slots=True)
class SecondScheduler:
    """The SecondaryScheduler that gets the settings of crane's scheduler."""

    name: str
    namespace: str  # the namespace of its Pods


def convert_dynamic(
    dynamic: DynamicConfig,
    loaded: LoadedPolicy,
    changes: Sequence[Change],
    target: Target,
    *,
    used: set[str],
    second: SecondScheduler | None = None,
    prometheus: str = "",
) -> ConvertedObjects:
    """Convert to objects with which the stock kube-scheduler behaves the same.

    `changes` are those of the policy's conversion. Without `second`, the control plane's scheduler
    gets the settings. `prometheus` is as in `load_policy_object`. `used` contains the names of
    other SchedulerExtenders; the new ones are added.

    Raises:
        ConversionError: the rest of the configuration cannot be converted.
    """
    report = ConversionLog()
    conversion = convert(dynamic.rest, target)
    policy = _used_rules(dynamic, loaded.policy)
    name = second.name if second is not None else None
    # Only the control plane serves the default schedulerName.
    served = {
        old: name if name is not None and old == DEFAULT_SCHEDULER else old for old in dynamic.names
    }
    objects = [load_policy_object(policy, prometheus=prometheus)]
    used.add(EXTENDER_NAME)
    if second is None:
        objects += _for_control_plane(conversion.config, used, report)
    else:
        objects += secondary_objects(
            conversion.config, second.name, second.namespace, served, used, report
        )
    objects.append(_extender(dynamic, name, served, report))
    _report_replacement(dynamic, report, prometheus=prometheus)
    all_changes = (*dynamic.changes, *changes, *conversion.changes, *report.changes())
    return ConvertedObjects(tuple(objects), tuple(dict.fromkeys(all_changes)), conversion.problems)


# --- objects ----------------------------------------------------------------------------------


def _used_rules(dynamic: DynamicConfig, policy: LoadPolicy) -> LoadPolicy:
    """Remove the rules that no profile uses."""
    filters = any(use.filters for use in dynamic.uses)
    scores = any(use.scores for use in dynamic.uses)
    rules = replace(
        policy.rules,
        predicates=policy.rules.predicates if filters else (),
        priorities=policy.rules.priorities if scores else (),
    )
    return LoadPolicy(rules)


def _extender(
    dynamic: DynamicConfig, second: str | None, served: Mapping[str, str], report: ConversionLog
) -> dict[str, Any]:
    agent: dict[str, Any] = {
        "policies": [{"name": "load-aware", "weight": 1}],
        "loadPolicy": POLICY_NAME,
    }
    first = dynamic.uses[0]
    verbs = {
        "filter": any(use.filters for use in dynamic.uses),
        "prioritize": any(use.scores for use in dynamic.uses),
    }
    if not all(verbs.values()):
        agent["verbs"] = verbs
    users = [use.name for use in dynamic.uses]
    if set(users) != set(dynamic.names):
        agent["schedulerNames"] = [served[name] for name in users]
        why = "an extender applies to all profiles, so the agent selects pods by schedulerName"
        report.same(first.path, f"load applied to pods of {', '.join(users)} only", why)
    weights = {use.weight for use in dynamic.uses if use.scores}
    if len(weights) > 1:
        what = f"weight set to {first.weight} for all profiles"
        report.differs((*first.path, "plugins", "score"), what, "an extender has one weight")
    for use in dynamic.uses[1:]:
        if (use.filters, use.scores) != (first.filters, first.scores):
            why = "an extender filters and scores in all its profiles or in none"
            report.differs((*use.path, "plugins"), f"{DYNAMIC} used as in {first.name}", why)
        if use.policy_path != first.policy_path:
            why = f"one LoadPolicy applies to all nodes; the policy of {first.name} is used"
            report.lost((*use.path, "pluginConfig"), f"{use.policy_path} removed", why)
    spec: dict[str, Any] = {"scheduler": second} if second is not None else {}
    spec |= {"agent": agent, "weight": first.weight}
    return operator_object(SCHEDULER_EXTENDERS, EXTENDER_NAME, spec)


def _for_control_plane(
    config: Mapping[str, Any], used: set[str], report: ConversionLog
) -> list[dict[str, Any]]:
    """Create the objects for the other settings; no SchedulerProfile for a default profile."""
    objects = control_plane_objects(config, used, report)
    return [
        obj
        for obj in objects
        if obj["metadata"]["name"] != DEFAULT_SCHEDULER or obj["spec"].keys() != {"base"}
    ]


def _report_replacement(dynamic: DynamicConfig, report: ConversionLog, *, prometheus: str) -> None:
    first = dynamic.uses[0]
    at: Path = (*first.path, "plugins")
    what = f"{DYNAMIC} replaced by SchedulerExtender {EXTENDER_NAME} with policy load-aware"
    report.same(at, what, "any stock kube-scheduler can use it, without crane's image")
    if any(use.scores for use in dynamic.uses):
        score = (*first.path, "plugins", "score")
        why = "an extender scores from 0 to 10, and 10 counts like a plugin's 100 with that weight"
        report.differs(score, "scores rounded to steps of 10 of 100", why)
        why = (
            "crane treats it as fully used and prefers every other node; load-aware gives it the "
            "median score of the others"
        )
        report.differs(score, "nodes with unknown or stale load scored as average", why)
        why = (
            "the extender counts every bound pod once, even while load is not measured; crane "
            "counts events and publishes them with the load"
        )
        report.differs(score, "hot values counted from pods", why)
    if prometheus:
        why = f"the annotator queries the same recording rules at {prometheus}"
        report.same(at, "load read from Prometheus", why)
    else:
        why = (
            "Prometheus is not needed; remove crane-scheduler-controller, and the DaemonSet "
            "node-metrics of crane-scheduler-plus, whose port of the nodes (19101) the new one "
            "needs; or pass --prometheus URL to keep using existing recording rules"
        )
        report.differs(at, "load measured by node-metrics", why)
    why = "it has the operator's key and is in UTC; spec.write: [crane] also writes crane's"
    report.differs(at, "seven node annotations replaced by one", why)


# --- values -----------------------------------------------------------------------------------


def _duration(seconds: float) -> str:
    """Format `3m` instead of Go's `3m0s`."""
    text = duration_text(round(seconds * 1e9))
    for tail in ("m0s", "h0m"):
        text = text[:-2] if text.endswith(tail) else text
    return text


def _limit(limit: float) -> str | float:
    percent = limit * 100
    return f"{round(percent)}%" if abs(percent - round(percent)) < 1e-9 else limit


def _number(weight: float) -> float | int:
    return int(weight) if weight == int(weight) else weight
