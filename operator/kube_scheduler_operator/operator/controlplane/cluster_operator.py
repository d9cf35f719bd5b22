"""The ClusterOperator "kube-scheduler": KubeScheduler's conditions, summarised.

It is reported even while KubeScheduler does not exist.

`…Degraded` conditions become Degraded, `…Available` ones Available, and so on. A bad condition
counts only after its inertia, so that a planned restart raises no alarm. Until then it appears
neither in the reason nor in the message of a bad result. (OpenShift's operator includes it as soon
as any other condition counts; see docs/openshift-differences.md.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.management import REMOVED, UNMANAGED
from ...base.platform import Platform
from ...base.times import seconds_left
from ...kube.resource import (
    CLUSTER_OPERATORS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)
from ..model import operand_pods
from ..model.apply import new_object
from ..model.plan import Create, Plan, Replace, soonest
from ..model.snapshot import Snapshot
from ..status.conditions import ALWAYS_FALSE, AS_EXPECTED, Condition, Status, merge_conditions
from ..status.running import images_that_run
from .conditions import without_kubescheduler
from .managed import scheduler_conditions
from .operand_image import operand_image, operand_version

_OPERATOR: Final = "operator"
_RAW_INTERNAL: Final = "raw-internal"
"""OpenShift's name for the operator's version as soon as it runs."""

_OWN_KINDS: Final = (
    SCHEDULER_PROFILES,
    SCHEDULER_EXTENDERS,
    SECONDARY_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
)
_UNMANAGED: Final = "the operator changes no {} until it is Managed again"


def report_cluster_operator(
    snapshot: Snapshot, conditions: Sequence[Mapping[str, Any]], progress: str = ""
) -> Plan:
    """The write of the ClusterOperator, and when it may change by itself.

    `conditions` are KubeScheduler's new ones; `progress` is that of a removal.
    """
    desired, requeue_after = desired_cluster_operator(
        snapshot, conditions, _versions(snapshot), progress
    )
    if desired is None:
        return Plan(requeue_after=requeue_after)
    if snapshot.cluster_operator is None:
        # The API ignores status at creation; it is written once the object exists.
        without_status = {key: value for key, value in desired.items() if key != "status"}
        return Plan(reports=(Create(CLUSTER_OPERATORS, without_status),), requeue_after=0.0)
    write = Replace(CLUSTER_OPERATORS, desired, "status")
    return Plan(reports=(write,), requeue_after=requeue_after)


def report_without_kubescheduler(snapshot: Snapshot) -> Plan:
    """Report that KubeScheduler is missing: not an uninstall, so all schedulers stay."""
    since = "2000-01-01T00:00:00Z"  # older than any inertia: not a transient problem
    available, running = scheduler_conditions(snapshot), "SecondarySchedulers"
    if snapshot.platform.owns_static_pods:
        available, running = (without_kubescheduler(snapshot),), "schedulers"
    message = (
        f'KubeScheduler "cluster" does not exist; {running} keep running unchanged; to continue, '
        'create it: kubectl create -f - <<< \'{"apiVersion":"operator.openshift.io/v1",'
        '"kind":"KubeScheduler","metadata":{"name":"cluster"},"spec":{}}\''
    )
    missing = Condition("KubeSchedulerDegraded", "True", "NotFound", message)
    conditions = (*available, missing)
    raw = [{**asdict(condition), "lastTransitionTime": since} for condition in conditions]
    return report_cluster_operator(snapshot, raw)


def _versions(snapshot: Snapshot) -> dict[str, str]:
    """The certain versions: the operand's only if all its pods run the same image."""
    own = snapshot.settings.operator_version
    images = _images(snapshot)
    if snapshot.platform.cluster_config:
        return _versions_of_the_release(snapshot, own, images)
    versions = {_OPERATOR: own}
    if len(images) == 1:
        versions[names.OPERAND] = str(operand_version(snapshot, images.pop()))
    return versions


def _images(snapshot: Snapshot) -> set[str]:
    """The images of all schedulers: the control plane's, else those of SecondarySchedulers."""
    if snapshot.platform.owns_static_pods:
        return {operand_pods.read(pod).image for pod in snapshot.operand_pods.values()}
    schedulers = snapshot.secondaries.schedulers.values()
    return {image for scheduler in schedulers for image in images_that_run(scheduler)}


def _versions_of_the_release(snapshot: Snapshot, own: str, images: set[str]) -> dict[str, str]:
    """The names and spellings of a release payload, which ends an upgrade by comparing them.

    The operator's version is reported once every scheduler runs the image of its release.
    """
    image = operand_image(snapshot)
    if images != {image}:
        return {_RAW_INTERNAL: own}
    tagged = str(operand_version(snapshot, image)).removeprefix("v")
    operand = snapshot.settings.operand_version or tagged
    return {_RAW_INTERNAL: own, _OPERATOR: own, names.OPERAND: operand}


# --- the object -------------------------------------------------------------------------------


def desired_cluster_operator(
    snapshot: Snapshot,
    conditions: Sequence[Mapping[str, Any]],
    versions: Mapping[str, str],
    removal: str = "",
) -> tuple[dict[str, Any] | None, float | None]:
    """(the complete object, None if it is up to date; seconds until it may change by itself).

    `conditions` are KubeScheduler's new ones; `removal` is the progress of a removal. `versions`
    has the versions that are certain, by part; other parts keep theirs. Only the status differs
    from that of an existing object.
    """
    platform, existing, now = snapshot.platform, snapshot.cluster_operator, snapshot.now
    own = f'SecondaryScheduler "{snapshot.settings.managed_scheduler}"'
    paused = "scheduler of the control plane" if platform.owns_static_pods else own
    management = snapshot.management
    hands_off = {UNMANAGED: _UNMANAGED.format(paused), REMOVED: removal}
    requeue_after = None
    if management.state in hands_off:
        message = f"{management}: {hands_off[management.state]}"
        unions = [Condition(a.type, "Unknown", management.state, message) for a in AGGREGATES]
    else:
        unions, requeue_after = _summaries(platform, conditions, now)
    status_now: Mapping[str, Any] = (existing or {}).get("status") or {}
    status = dict(status_now)
    status["conditions"] = merge_conditions(status_now.get("conditions") or [], unions, now)
    if merged := _merged_versions(status_now.get("versions") or [], versions):
        status["versions"] = merged
    status["relatedObjects"] = related_objects(platform)
    if existing is not None and status == status_now:
        return None, requeue_after
    base = {**new_object(CLUSTER_OPERATORS, names.CLUSTEROPERATOR), "spec": {}}
    desired = {**base, **deepcopy(dict(existing or {})), "status": deepcopy(status)}
    return desired, requeue_after


def related_objects(platform: Platform) -> list[dict[str, str]]:
    """The objects to inspect next; must-gather collects them."""
    namespaces = dict.fromkeys(
        (
            *platform.source_namespaces,
            platform.operator_namespace,
            platform.target_namespace,
            platform.operand_namespace,
        )
    )
    return [
        {"group": "operator.openshift.io", "name": names.CLUSTER, "resource": "kubeschedulers"},
        {"group": "config.openshift.io", "name": names.CLUSTER, "resource": "schedulers"},
        *({"group": kind.group, "name": "", "resource": kind.plural} for kind in _OWN_KINDS),
        *({"group": "", "name": namespace, "resource": "namespaces"} for namespace in namespaces),
    ]


def _summaries(
    platform: Platform, conditions: Sequence[Mapping[str, Any]], now: datetime
) -> tuple[list[Condition], float | None]:
    parsed = [Condition.from_raw(raw) for raw in conditions]
    # Conditions that are always False have nothing to add to a healthy message.
    parsed = [replace(c, message="") if c.message.startswith(ALWAYS_FALSE) else c for c in parsed]
    # OpenShift's tools expect the types; elsewhere, a healthy ClusterOperator reads as a sentence.
    prefix = platform.cluster_config
    unions = [union(aggregate, parsed, now, prefix_healthy=prefix) for aggregate in AGGREGATES]
    summaries = [summary.condition for summary in unions]
    healthy = all(c.status == "False" for c in parsed if c.type.endswith(names.DEGRADED))
    if healthy and not platform.cluster_config:
        # kubectl shows the message of Degraded; without an error, what runs is more useful.
        runs = next((c.message for c in summaries if c.type == names.AVAILABLE), "")
        summaries = [replace(c, message=runs) if c.type == names.DEGRADED else c for c in summaries]
    return summaries, soonest(*(summary.requeue_after for summary in unions))


def _merged_versions(
    existing: Sequence[Mapping[str, Any]], certain: Mapping[str, str]
) -> list[dict[str, str]]:
    merged = {entry["name"]: entry["version"] for entry in existing} | dict(certain)
    return [{"name": name, "version": merged[name]} for name in sorted(merged)]


# --- the union of conditions with one suffix ----------------------------------------------------

NO_DATA: Final = "NoData"


@dataclass(frozen=True, slots=True)
class Inertia:
    """How long a condition must have been bad before the ClusterOperator shows it."""

    default: float = 0.0  # seconds
    by_type: tuple[tuple[str, float], ...] = ()  # (condition type, seconds) where it differs

    def of(self, type_: str) -> float:
        return dict(self.by_type).get(type_, self.default)


NO_INERTIA: Final = Inertia()

# Errors in an edit are shown at once. Other conditions also arise from temporary
# disturbances: an API server that restarts, a node that reboots.
DEGRADED_INERTIA: Final = Inertia(
    default=120.0,
    by_type=(
        (names.CONFIG_OBSERVATION_DEGRADED, 0.0),
        (names.TARGET_CONFIG_DEGRADED, 0.0),
        (names.OVERRIDES_DEGRADED, 0.0),
        (names.ADOPTION_DEGRADED, 0.0),
        (names.SCHEDULER_PROFILES_DEGRADED, 0.0),
        (names.SCHEDULER_EXTENDERS_DEGRADED, 0.0),
        (names.PREFLIGHT_DEGRADED, 0.0),
        (names.NODE_INSTALLER_DEGRADED, 0.0),
        (names.STATIC_PODS_DEGRADED, 30.0),
        (names.NODES_DEGRADED, 600.0),
    ),
)

# Longer than a planned restart of the only scheduler of a cluster takes.
AVAILABLE_INERTIA: Final = Inertia(default=30.0)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A condition of the ClusterOperator, made of those whose type ends in its own."""

    type: str
    good: Status
    inertia: Inertia = NO_INERTIA


AGGREGATES: Final = (
    Aggregate("Available", "True", AVAILABLE_INERTIA),
    Aggregate("Degraded", "False", DEGRADED_INERTIA),
    Aggregate("EvaluationConditionsDetected", "False"),
    Aggregate("Progressing", "False"),
    Aggregate("Upgradeable", "True"),
)


@dataclass(frozen=True, slots=True)
class Union:
    condition: Condition  # without `last_transition_time`
    # seconds until the first condition that is bad but too young outgrows its inertia
    requeue_after: float | None = None


def union(
    aggregate: Aggregate,
    conditions: Iterable[Condition],
    now: datetime,
    *,
    prefix_healthy: bool = True,
) -> Union:
    """One condition from those whose type ends in `aggregate.type`.

    If none matches: Unknown, reason NoData. If none has been bad for its inertia: the good status,
    reason AsExpected, and all messages, each after its type if `prefix_healthy`. Otherwise the
    opposite of the good status if a bad condition has it, else Unknown, with the reasons and
    messages of the bad conditions.
    """
    matching = [c for c in conditions if c.type.endswith(aggregate.type)]
    if not matching:
        return Union(Condition(aggregate.type, "Unknown", NO_DATA))

    bad: list[Condition] = []
    waits: list[float] = []
    for condition in sorted(matching, key=lambda c: c.type):
        if condition.status == aggregate.good:
            continue
        wait = _wait(condition, aggregate.inertia.of(condition.type), now)
        if wait > 0:
            waits.append(wait)
        else:
            bad.append(condition)
    requeue_after = min(waits, default=None)

    if not bad:
        shown = matching if prefix_healthy else [_dated(aggregate, c) for c in matching]
        message = _message(shown, "" if prefix_healthy else aggregate.good) or "All is well"
        return Union(Condition(aggregate.type, aggregate.good, AS_EXPECTED, message), requeue_after)
    opposite: Status = "False" if aggregate.good == "True" else "True"
    status: Status = opposite if any(c.status == opposite for c in bad) else "Unknown"
    reason = "::".join(sorted(_reason(c, aggregate.type) for c in bad))
    return Union(Condition(aggregate.type, status, reason, _message(bad)), requeue_after)


def _dated(aggregate: Aggregate, condition: Condition) -> Condition:
    """A condition for a good result; a bad one with its status, and when it counts."""
    if condition.status == aggregate.good:
        return condition
    inertia = aggregate.inertia.of(condition.type)
    what = f"{condition.type} is {condition.status}, which counts after {inertia:g} s"
    lines = [f"{what}: {line}" for line in condition.message.splitlines()] or [what]
    return replace(condition, status=aggregate.good, message="\n".join(lines))


def _wait(condition: Condition, inertia: float, now: datetime) -> float:
    """Seconds until `condition` counts; 0 or less if it does already."""
    since = condition.last_transition_time
    if since is None:  # an unknown duration does not hide a condition
        return 0.0
    # A time in the future comes from another clock; it must not add to the wait, or never end it.
    return min(seconds_left(now, since, inertia), inertia)


def _reason(condition: Condition, suffix: str) -> str:
    prefix = condition.type.removesuffix(suffix)
    return f"{prefix}_{condition.reason}" if condition.reason else prefix


def _message(conditions: Sequence[Condition], unprefixed: str = "") -> str:
    """All messages, each after its condition's type unless its status is `unprefixed`."""
    lines: list[str] = []
    for condition in conditions:
        distinct = dict.fromkeys(condition.message.splitlines())
        prefix = "" if condition.status == unprefixed else f"{condition.type}: "
        lines += [f"{prefix}{line}" for line in distinct]
    return "\n".join(lines)
