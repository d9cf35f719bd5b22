"""The dashboard of the operator and of its rollouts."""

from __future__ import annotations

from typing import Final

from .panels import Dashboard, Row, panel, per_second, quantile

_P: Final = "kube_scheduler_operator_"
_JOB: Final = 'job=~".*kube-scheduler-operator"'
_WITHOUT: Final = "without (instance, pod)"

WAITING: Final = Row(
    "Pods that wait",
    (
        panel(
            "Pods without a node, by cause",
            "Read from the Pods, so it is known on managed control planes, too. unschedulable: no "
            "node fits; not_attempted: no scheduler has tried, so none runs, or none has the Pod's "
            "schedulerName; gated: a controller holds the Pod; unknown: its PodGroup or its "
            "ResourceClaims may hold it.",
            "short",
            (f"sum by (cause) (max {_WITHOUT} ({_P}waiting_pods))", "{{cause}}"),
            stacked=True,
        ),
        panel(
            "The oldest Pod without a node, by cause",
            "Age of the oldest Pod of each cause and schedulerName. not_attempted beyond a minute "
            "is a fault (alert KubeSchedulerPodsNotAttempted); gated can be right for days.",
            "s",
            (
                f"time() - min by (cause, scheduler) ({_P}waiting_pods_oldest_timestamp_seconds)",
                "{{cause}} {{scheduler}}",
            ),
        ),
    ),
)

SCHEDULERS: Final = Row(
    "Schedulers of the control plane",
    (
        panel(
            "Active scheduler",
            "1: the scheduler of the node holds the Lease and renews it. 0 on all nodes: new Pods "
            "stay Pending (alert KubeSchedulerNoActiveScheduler).",
            "short",
            (f"max {_WITHOUT} ({_P}active_scheduler)", "{{node}}"),
            width=8,
        ),
        panel(
            "Ready schedulers",
            "1: the scheduler of the node is Ready and can take over. 0 for long: `kubectl "
            "scheduler status` has its termination message.",
            "short",
            (f"max {_WITHOUT} ({_P}node_scheduler_ready)", "{{node}}"),
            width=8,
        ),
        panel(
            "Age of the schedulers' Lease",
            "Time since the active scheduler renewed its Lease, which it does every two seconds. "
            "Above 15 s: no scheduler is active.",
            "s",
            (f"min {_WITHOUT} ({_P}lease_age_seconds)", "Lease"),
            width=8,
        ),
        panel(
            "Minor versions behind the API server",
            "0 or 1 is supported. Other values: an upgrade did not finish on the node.",
            "short",
            (f"max {_WITHOUT} ({_P}node_version_skew)", "{{node}}"),
            width=8,
        ),
        panel(
            "Nodes that drift",
            "1: the node runs something else than its revision, or a file was edited by hand. For "
            "longer than seconds: another program writes the files.",
            "short",
            (f"max {_WITHOUT} ({_P}node_drifted)", "{{node}}"),
            width=8,
        ),
        panel(
            "Certificates: time until they expire",
            "Below a week: what renews the certificate does not.",
            "s",
            (
                f"min {_WITHOUT} ({_P}certificate_expiry_timestamp_seconds) - time()",
                "{{certificate}} {{node}}",
            ),
            width=8,
        ),
    ),
)

ROLLOUTS: Final = Row(
    "Rollouts",
    (
        panel(
            "Revision of each node",
            "Nodes move to the newest revision one after the other. A node that stays behind: "
            "`kubectl scheduler rollout watch` shows what it waits for.",
            "short",
            (f"max {_WITHOUT} ({_P}latest_available_revision)", "newest"),
            (f"max {_WITHOUT} ({_P}node_current_revision)", "current {{node}}"),
            (f"max {_WITHOUT} ({_P}node_running_revision)", "running {{node}}"),
        ),
        panel(
            "Current rollout",
            "Time since the current rollout began; empty without one. Above 20 minutes: alert "
            "KubeSchedulerRolloutStuck.",
            "s",
            (f"time() - max {_WITHOUT} ({_P}rollout_started_timestamp_seconds)", "since"),
            quiet="there is no rollout most of the time",
        ),
        panel(
            "Duration of rollouts by outcome (90th percentile)",
            "Time from a complete revision to its outcome on all nodes. refused and failed: the "
            "last good revision is in use.",
            "s",
            (quantile(0.9, f"{_P}rollout_duration_seconds", "outcome"), "{{outcome}}"),
        ),
        panel(
            "Failures",
            "Revisions that kube-scheduler refused before they reached a node, and failed "
            "installations by reason, per hour. `kubectl scheduler history` has the messages.",
            "short",
            (f"sum(increase({_P}preflight_failures_total[1h]))", "refused"),
            (f"sum by (reason) (increase({_P}installer_failures_total[1h]))", "{{reason}}"),
            quiet="installer_failures_total has a series for each reason that has occurred",
        ),
        panel(
            "Quarantine",
            "1: the requested configuration was refused or failed and is not retried until it "
            "changes; schedulers run the last good one.",
            "short",
            (f"max {_WITHOUT} ({_P}quarantined)", "{{outcome}}"),
        ),
        panel(
            "Conditions that report a problem",
            "Conditions …Degraded of the KubeScheduler that are True. docs/operations.md explains "
            "each.",
            "short",
            (f'max by (type) ({_P}condition{{type=~".+Degraded"}})', "{{type}}"),
        ),
    ),
)

OPERATOR: Final = Row(
    "The operator itself",
    (
        panel(
            "Time since the last successful reconcile",
            "Above ten minutes: edits have no effect (alert KubeSchedulerOperatorStuck).",
            "s",
            (
                f"time() - max {_WITHOUT} ({_P}last_successful_pass_timestamp_seconds)",
                "since",
            ),
        ),
        panel(
            "Reconciles by result",
            "error: a request failed; the operator retries. A lasting rate of error: its log has "
            "the request.",
            "ops",
            (per_second(f"{_P}passes_total", "result"), "{{result}}"),
        ),
        panel(
            "Duration of a reconcile (99th percentile)",
            "With its writes. Above a second: the API server is slow.",
            "s",
            (quantile(0.99, f"{_P}pass_duration_seconds", ""), "reconcile"),
        ),
        panel(
            "The oldest watch",
            "Time since the watch of a resource last received data, of the replica that is worst. "
            "Above five minutes: changes go unnoticed (alert KubeSchedulerOperatorWatchDead).",
            "s",
            (f"topk(5, max by (resource) ({_P}watch_age_seconds))", "{{resource}}"),
        ),
        panel(
            "Requests to the API by code",
            "403: a missing right. 409: a conflict, which is retried. 429 and 5xx: the API server "
            "is overloaded or ill.",
            "ops",
            (
                per_second("rest_client_requests_total", "code", _JOB),
                "{{code}}",
            ),
        ),
        panel(
            "Requests to the API (99th percentile)",
            "Above a second: the API server is slow, and rollouts are, too.",
            "s",
            (
                quantile(
                    0.99, "rest_client_request_duration_seconds", "verb",
                    _JOB,
                ),
                "{{verb}}",
            ),
        ),
        panel(
            "Contained errors and writes that do not last",
            "Unexpected errors that were contained in one object, per hour, and objects that "
            "another program writes back. Any is worth a report.",
            "short",
            (f"sum by (scope) (increase({_P}contained_errors_total[1h]))", "error: {{scope}}"),
            (f"sum by (resource, reason) ({_P}futile_writes)", "{{resource}} {{reason}}"),
            quiet="a series begins with the first error",
        ),
        panel(
            "Memory",
            "Resident memory of each replica. Growth without end: report it.",
            "bytes",
            (
                f"process_resident_memory_bytes{{{_JOB}}}",
                "{{pod}} {{instance}}",
            ),
        ),
    ),
)  # fmt: skip

BOARD: Final = Dashboard(
    "operator",
    "kube-scheduler-operator",
    "Waiting Pods, the control plane's schedulers, rollouts, and the operator itself.",
    (WAITING, SCHEDULERS, ROLLOUTS, OPERATOR),
)
