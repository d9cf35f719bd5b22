"""From crane-scheduler to a LoadPolicy: a configuration with the plugin Dynamic, converted.

crane's plugins are in a scheduler binary of its own. What Dynamic does, an extender with the policy
load-aware does beside kube-scheduler itself; the rest of the configuration stays and is converted
like any other. Every difference is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.findings import Path, Problem, format_path
from ..load.policy import LoadPolicy, LoadPolicyError, Rules
from ..load.policy_files import CRANE_GROUP, CRANE_KIND, Loaded, from_document
from ..schedulerconfig.check import Target
from ..schedulerconfig.go_values import duration_text
from ..schedulerconfig.warnings import DEFAULT_SCHEDULER
from .changes import Change, Report
from .convert import convert
from .crane_dynamic import DYNAMIC, Dynamic
from .objects import Converted, own_object, scheduler_profiles, secondary_scheduler

POLICY_NAME: Final = "default"
EXTENDER_NAME: Final = "load-aware"
SECOND_NAME: Final = "crane-scheduler"
"""What crane's own charts and manuals call a second scheduler."""


def is_dynamic_policy(document: Any) -> bool:
    """True for crane's DynamicSchedulerPolicy."""
    return (
        isinstance(document, Mapping)
        and document.get("kind") == CRANE_KIND
        and str(document.get("apiVersion", "")).partition("/")[0] == CRANE_GROUP
    )


def convert_policy(document: Any) -> tuple[Loaded, tuple[Change, ...]]:
    """(the policy of a DynamicSchedulerPolicy, what of it counts for nothing or reads otherwise).

    Raises:
        LoadPolicyError: it is none.
    """
    if not is_dynamic_policy(document):
        message = f"this is no {CRANE_KIND} of {CRANE_GROUP}; give one"
        raise LoadPolicyError([Problem("UnknownKind", ("kind",), message)])
    loaded = from_document(document)
    report = Report()
    for note in loaded.notes:
        if note.reason == "Percentages":
            why = (
                "the filter keeps its limits; the score of crane-scheduler-plus was 0 on every "
                "node whose load was 1 % or more, and now says what its weights mean"
            )
            report.differs(note.path, "limits above 1 are percentages", why)
        else:
            report.same(note.path, "left out", note.message)
    return loaded, report.changes()


def load_policy_object(policy: LoadPolicy, *, prometheus: str = "") -> dict[str, Any]:
    """A LoadPolicy that says the same.

    Args:
        policy: its rules.
        prometheus: URL of the Prometheus that has crane's recording rules; empty: node-metrics.
    """
    source = {"type": "Prometheus", "prometheus": {"url": prometheus}} if prometheus else {}
    rules = policy.rules
    spec = {
        "source": source or {"type": "NodeMetrics"},
        "sync": [{"name": s.name, "period": _duration(s.period)} for s in rules.sync],
        "predicates": [{"name": p.name, "maxLimit": _limit(p.limit)} for p in rules.predicates],
        "priorities": [{"name": p.name, "weight": _number(p.weight)} for p in rules.priorities],
        "hotValues": [
            {"timeRange": _duration(hot.seconds), "count": hot.count} for hot in rules.hot_values
        ],
    }
    return own_object("LoadPolicy", POLICY_NAME, spec)


def convert_dynamic(
    dynamic: Dynamic,
    loaded: Loaded,
    changes: Sequence[Change],
    target: Target,
    *,
    second: str | None = None,
    namespace: str = "",
    prometheus: str = "",
) -> Converted:
    """Convert to objects that do the same beside kube-scheduler.

    Args:
        dynamic: the configuration.
        loaded: its policy.
        changes: what that said of itself.
        target: the scheduler that will read the result.
        second: the name of a SecondaryScheduler; None: the control plane's scheduler is configured.
        namespace: where that runs.
        prometheus: URL of the Prometheus that has crane's recording rules; empty: node-metrics.

    Raises:
        ConversionError: the rest of the configuration cannot be converted.
    """
    report = Report()
    conversion = convert(dynamic.rest, target)
    policy = _asked(dynamic, loaded.policy)
    served = {name: _served(name, second) for name in dynamic.names}
    objects = [load_policy_object(policy, prometheus=prometheus)]
    if second is None:
        objects += _for_control_plane(conversion.config, report)
    else:
        objects.append(secondary_scheduler(conversion.config, second, namespace, served, report))
    objects.append(_extender(dynamic, second, served, report))
    _tell(dynamic, report, prometheus=prometheus)
    all_changes = (*dynamic.changes, *changes, *conversion.changes, *report.changes())
    return Converted(tuple(objects), tuple(dict.fromkeys(all_changes)), conversion.problems)


# --- what stands for them ---------------------------------------------------------------------


def _asked(dynamic: Dynamic, policy: LoadPolicy) -> LoadPolicy:
    """The policy without what no profile asked Dynamic for."""
    rules = policy.rules
    filters = any(use.filters for use in dynamic.uses)
    scores = any(use.scores for use in dynamic.uses)
    return LoadPolicy(
        Rules(
            rules.sync,
            rules.predicates if filters else (),
            rules.priorities if scores else (),
            rules.hot_values,
            rules.grace,
        )
    )


def _extender(
    dynamic: Dynamic, second: str | None, served: Mapping[str, str], report: Report
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
        why = "an extender is for all profiles of a scheduler, so the agent looks at schedulerName"
        report.same(first.path, f"load counts for pods of {', '.join(users)} only", why)
    weights = {use.weight for use in dynamic.uses if use.scores}
    if len(weights) > 1:
        what = f"the weight is {first.weight} in all profiles"
        report.differs((*first.path, "plugins", "score"), what, "an extender has one weight")
    for use in dynamic.uses[1:]:
        if (use.filters, use.scores) != (first.filters, first.scores):
            why = "an extender filters and scores in all profiles that it is for, or in none"
            report.differs((*use.path, "plugins"), f"{DYNAMIC} is as in {first.name}", why)
        if use.policy_path != first.policy_path:
            why = f"one LoadPolicy has all nodes; the policy of {first.name} is used"
            report.lost((*use.path, "pluginConfig"), f"{use.policy_path} left out", why)
    spec: dict[str, Any] = {"scheduler": second} if second is not None else {}
    spec |= {"agent": agent, "weight": first.weight}
    return own_object("SchedulerExtender", EXTENDER_NAME, spec)


def _for_control_plane(config: Mapping[str, Any], report: Report) -> list[dict[str, Any]]:
    """SchedulerProfiles for what is left; none for a profile that is kube-scheduler's own."""
    objects, left = scheduler_profiles(config)
    for name in left:
        why = (
            "no SchedulerProfile says this; if it is still wanted, put it into "
            "spec.unsupportedConfigOverrides of KubeScheduler"
        )
        report.lost((name,), "left out", why)
    for name in ("leaderElection", "clientConnection"):
        if name in config:
            why = "the control plane's scheduler has its own, which the operator knows"
            report.same((name,), "left out", why)
    return [
        obj
        for obj in objects
        if obj["metadata"]["name"] != DEFAULT_SCHEDULER or obj["spec"].keys() != {"base"}
    ]


def _served(name: str, second: str | None) -> str:
    """Under which name a profile runs: nobody but the control plane has the default one."""
    return second if second is not None and name == DEFAULT_SCHEDULER else name


def _tell(dynamic: Dynamic, report: Report, *, prometheus: str) -> None:
    first = dynamic.uses[0]
    at: Path = (*first.path, "plugins")
    what = f"{DYNAMIC} is the extender {EXTENDER_NAME} with the policy load-aware"
    report.same(at, what, "kube-scheduler itself runs then, of any version, without crane's image")
    if any(use.scores for use in dynamic.uses):
        score = (*first.path, "plugins", "score")
        why = "an extender's scores are 0 to 10, and 10 counts like a plugin's 100 of that weight"
        report.differs(score, "scores have steps of 10 of 100", why)
        why = (
            "crane counts it as fully used and so prefers every other node; here it has the median "
            "of the others"
        )
        report.differs(score, "a node whose load is not known, or stale, is average", why)
        why = (
            "the extender sees pods as they are bound, each of them once, also while nothing is "
            "measured; crane counts events and publishes them with the load"
        )
        report.differs(score, "hot values are counted from pods", why)
    if prometheus:
        why = f"the annotator asks {prometheus} for the same recording rules"
        report.same(at, "load is what Prometheus says", why)
    else:
        why = (
            "no Prometheus is needed; crane-scheduler-controller and its exporter can go, or give "
            "--prometheus URL to go on with recording rules that are there"
        )
        report.differs(at, "load is measured by node-metrics", why)
    why = "under our own key, in UTC; spec.write: [crane] writes those of crane as well"
    report.differs(at, "nodes have one annotation instead of seven", why)


# --- values -----------------------------------------------------------------------------------


def _duration(seconds: float) -> str:
    """`3m` rather than Go's `3m0s`."""
    text = duration_text(round(seconds * 1e9))
    for tail in ("m0s", "h0m"):
        text = text[:-2] if text.endswith(tail) else text
    return text


def _limit(limit: float) -> str | float:
    percent = limit * 100
    return f"{round(percent)}%" if abs(percent - round(percent)) < 1e-9 else limit


def _number(weight: float) -> float | int:
    return int(weight) if weight == int(weight) else weight


def policy_problem_text(error: LoadPolicyError) -> Iterator[str]:
    """What is wrong with a policy, one line each."""
    for problem in error.problems:
        where = format_path(problem.path)
        yield f"{where}: {problem.sentence}" if where else problem.sentence
