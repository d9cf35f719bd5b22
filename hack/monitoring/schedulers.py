"""The dashboard of kube-schedulers, from the metrics that they serve themselves."""

from __future__ import annotations

from typing import Final

from .panels import INTERVAL, Dashboard, Row, panel, per_second, quantile

_JOB: Final = 'job=~"$job"'
_ATTEMPT: Final = "scheduler_scheduling_attempt_duration_seconds"
_BY_VERSION: Final = (
    f"histogram_quantile(0.99, sum by (le, git_version) (rate({_ATTEMPT}_bucket{{{_JOB}}}"
    f"[{INTERVAL}]) * on (job, instance) group_left (git_version) "
    f"kubernetes_build_info{{{_JOB}}}))"
)

QUEUES: Final = Row(
    "Queues",
    (
        panel(
            "Pods by queue",
            "active: about to be attempted; backoff: attempted a moment ago; unschedulable: fit on "
            "no node; gated: held before the queue. A growing active queue: the scheduler is "
            "slower than Pods arrive. A standby counts as well, so choose the job of one leader "
            "or read the maximum.",
            "short",
            (f"max by (job, queue) (scheduler_pending_pods{{{_JOB}}})", "{{queue}} {{job}}"),
        ),
        panel(
            "Unschedulable Pods by plugin",
            "Pods that fit on no node, once for each plugin that rejected nodes. The plugin is the "
            "cause: NodeResourcesFit is missing room, TaintToleration a taint, SchedulingGates a "
            "gate. `kubectl scheduler pending` names what would help.",
            "short",
            (
                f"max by (profile, plugin) (scheduler_unschedulable_pods{{{_JOB}}})",
                "{{plugin}} {{profile}}",
            ),
        ),
        panel(
            "Pods into queues, by event",
            "Pods per second that an event put into a queue. Many for one event, such as "
            "NodeUpdate, while few are bound: Pods are attempted again without success.",
            "ops",
            (
                per_second("scheduler_queue_incoming_pods_total", "queue, event", _JOB),
                "{{queue}} {{event}}",
            ),
        ),
        panel(
            "CPU requests of Pods, with and without a node",
            "Cores that Pods request, as the scheduler sees them. Much without a node for long: "
            "the cluster lacks room, or something else holds the Pods. From /metrics/resources.",
            "short",
            (
                f'sum(max by (namespace, pod) (kube_pod_resource_request{{{_JOB}, resource="cpu", '
                'node=""}))',
                "without a node",
            ),
            (
                f'sum(max by (namespace, pod) (kube_pod_resource_request{{{_JOB}, resource="cpu", '
                'node!=""}))',
                "on a node",
            ),
        ),
    ),
)

ATTEMPTS: Final = Row(
    "Attempts",
    (
        panel(
            "Attempts by result and profile",
            "scheduled: bound; unschedulable: no node fits; error: the attempt failed, for example "
            "because of an extender or the API server. Any lasting rate of error is a fault: see "
            "the scheduler's log.",
            "ops",
            (
                per_second("scheduler_schedule_attempts_total", "profile, result", _JOB),
                "{{result}} {{profile}}",
            ),
        ),
        panel(
            "Attempts that a Pod needed (99th percentile)",
            "Attempts until a Pod was bound. More than a few: Pods wait for room or for others.",
            "short",
            (quantile(0.99, "scheduler_pod_scheduling_attempts", "job", _JOB), "{{job}}"),
        ),
        panel(
            "Schedulers by version",
            "Running kube-schedulers by version. Two versions for longer than an upgrade: it did "
            "not finish.",
            "short",
            (
                f"count by (job, git_version) (kubernetes_build_info{{{_JOB}}})",
                "{{git_version}} {{job}}",
            ),
        ),
        panel(
            "What the scheduler's cache holds",
            "Nodes, Pods and Pods that are assumed to be bound. Assumed Pods that stay for "
            "minutes: bindings do not reach the API server.",
            "short",
            (f"max by (job, type) (scheduler_cache_size{{{_JOB}}})", "{{type}} {{job}}"),
        ),
    ),
)

LATENCY: Final = Row(
    "Latency",
    (
        panel(
            "Attempt, by result and profile (99th percentile)",
            "Time of one attempt with its binding. Above 1 s: look at the panels of extension "
            "points and plugins for the slow one.",
            "s",
            (quantile(0.99, _ATTEMPT, "profile, result", _JOB), "{{result}} {{profile}}"),
        ),
        panel(
            "Attempt, by version (99th percentile)",
            "The same by kube-scheduler's version. A version that is slower than the one before: "
            "compare the plugins below before the upgrade goes on.",
            "s",
            (_BY_VERSION, "{{git_version}}"),
        ),
        panel(
            "From the queue to a node",
            "Time from a Pod's first entry into the queue to its binding, without the time in "
            "which it was gated. It includes the wait for room, so minutes can be right with an "
            "autoscaler and are a fault without one.",
            "s",
            (
                quantile(0.5, "scheduler_pod_scheduling_sli_duration_seconds", "job", _JOB),
                "median {{job}}",
            ),
            (
                quantile(0.99, "scheduler_pod_scheduling_sli_duration_seconds", "job", _JOB),
                "99th percentile {{job}}",
            ),
        ),
        panel(
            "Extension points (99th percentile)",
            "Time of all plugins of an extension point, for an attempt. Bind above 0.5 s: the API "
            "server is slow. Filter and Score grow with the nodes that are examined "
            "(percentageOfNodesToScore).",
            "s",
            (
                quantile(
                    0.99, "scheduler_framework_extension_point_duration_seconds",
                    "extension_point", _JOB,
                ),
                "{{extension_point}}",
            ),
        ),
        panel(
            "The ten slowest plugins (99th percentile)",
            "Time of a plugin at an extension point, measured for one Pod in ten. One that stands "
            "out is what a profile can do without.",
            "s",
            (
                "topk(10, "
                + quantile(
                    0.99, "scheduler_plugin_execution_duration_seconds",
                    "plugin, extension_point", _JOB,
                )
                + ")",
                "{{plugin}} {{extension_point}}",
            ),
        ),
        panel(
            "Calls of plugins",
            "Calls of a plugin per second. A plugin that is missing is not enabled, or was skipped "
            "because Pods do not use what it checks.",
            "ops",
            (
                per_second("scheduler_plugin_evaluation_total", "plugin, extension_point", _JOB),
                "{{plugin}} {{extension_point}}",
            ),
        ),
    ),
)  # fmt: skip

PREEMPTION: Final = Row(
    "Preemption",
    (
        panel(
            "Preemptions",
            "Attempts per second to make room by deleting Pods of lower priority, also those that "
            "find no Pod to delete. A rate far above that of bound Pods: unschedulable Pods are "
            "tried again and again.",
            "ops",
            (per_second("scheduler_preemption_attempts_total", "job", _JOB), "{{job}}"),
        ),
        panel(
            "Victims of a preemption (mean)",
            "Pods that a preemption deleted, on average. Many: a large Pod replaces many small "
            "ones; PodDisruptionBudgets are kept only where another node is possible.",
            "short",
            (
                per_second("scheduler_preemption_victims_sum", "job", _JOB)
                + " / "
                + per_second("scheduler_preemption_victims_count", "job", _JOB),
                "{{job}}",
            ),
        ),
    ),
)

BOARD: Final = Dashboard(
    "schedulers",
    "kube-scheduler",
    "Queues, attempts, latency and preemption of kube-schedulers, by profile and version.",
    (QUEUES, ATTEMPTS, LATENCY, PREEMPTION),
    job="scheduler_pending_pods",
)
