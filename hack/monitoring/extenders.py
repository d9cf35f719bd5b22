"""The dashboard of extenders and of the programs that measure load."""

from __future__ import annotations

from typing import Final

from .panels import INTERVAL, Dashboard, Row, panel, per_second, quantile

_P: Final = "kube_scheduler_operator_extender_"
_L: Final = "load_annotator_"

CALLS: Final = Row(
    "Extenders",
    (
        panel(
            "Calls",
            "Requests of kube-scheduler per second. None while Pods are scheduled: no profile "
            "calls the extender.",
            "ops",
            (per_second(f"{_P}call_duration_seconds_count", "agent, verb"), "{{agent}} {{verb}}"),
        ),
        panel(
            "Duration of a call (99th percentile)",
            "kube-scheduler waits for each call, so this adds to every attempt. Near the "
            "extender's timeout: attempts fail, or ignore the extender.",
            "s",
            (quantile(0.99, f"{_P}call_duration_seconds", "agent, verb"), "{{agent}} {{verb}}"),
        ),
        panel(
            "Failed calls and errors of policies",
            "Any lasting rate is a fault; the extender's log has it.",
            "ops",
            (per_second(f"{_P}call_errors_total", "agent, verb"), "call {{agent}} {{verb}}"),
            (per_second(f"{_P}policy_errors_total", "agent, policy"), "{{agent}} {{policy}}"),
        ),
        panel(
            "Rejected nodes",
            "Share of the nodes in requests that were rejected. Near 100 %: Pods stay Pending "
            "because of the extender.",
            "percentunit",
            (
                per_second(f"{_P}nodes_rejected_total", "agent, verb")
                + f" / (sum by (agent, verb) (rate({_P}nodes_asked_total[{INTERVAL}])) > 0)",
                "{{agent}} {{verb}}",
            ),
        ),
        panel(
            "Nodes rejected by each policy",
            "Nodes per second. A policy that rejects nearly all: its limits or its load data are "
            "wrong.",
            "ops",
            (
                per_second(f"{_P}policy_rejected_nodes_total", "agent, policy"),
                "{{agent}} {{policy}}",
            ),
        ),
        panel(
            "Unknown nodes in requests",
            "Nodes that the extender's view does not have, per second. For more than seconds after "
            "a node joined: its watch is behind.",
            "ops",
            (per_second(f"{_P}nodes_unknown_total", "agent, verb"), "{{agent}} {{verb}}"),
        ),
        panel(
            "Configuration and view",
            "config_valid 0: the file is invalid, the previous one is in use. Fewer nodes than the "
            "cluster has: the view is incomplete.",
            "short",
            (f"min by (instance) ({_P}config_valid)", "valid {{instance}}"),
            (f"max by (instance) ({_P}nodes)", "nodes {{instance}}"),
        ),
        panel(
            "Watches",
            "Time since a watch received data. Minutes: decisions use an old view.",
            "s",
            (f"max by (resource) ({_P}watch_age_seconds)", "{{resource}}"),
        ),
        panel(
            "Refused requests, failed watches, dropped events",
            "Refused: invalid HTTP or over a limit, by status. Failed list and watch requests: the "
            "API server, or a missing right.",
            "ops",
            (per_second(f"{_P}refused_requests_total", "code"), "refused {{code}}"),
            (per_second(f"{_P}watch_failures_total", "resource"), "watch {{resource}}"),
            (per_second(f"{_P}events_dropped_total", ""), "events dropped"),
            quiet="refused_requests_total has a series for each code that has occurred",
        ),
    ),
)

LOAD: Final = Row(
    "Load of nodes",
    (
        panel(
            "Nodes by the state of their load",
            "known: policies see the node's load. stale and missing: the source does not answer "
            "for these nodes, and policies treat their load as unknown.",
            "short",
            (f"max by (state) ({_L}nodes)", "{{state}}"),
            stacked=True,
        ),
        panel(
            "Duration of a cycle",
            "Time until every node that answers was measured and written. Longer than the period "
            "of the policy: load is older than configured.",
            "s",
            (f"max({_L}cycle_seconds)", "cycle"),
        ),
        panel(
            "Writes and polls",
            "PATCHes of nodes by reason, and polls by result, per second. failed and conflict for "
            "long: rights, or another program that writes the annotation.",
            "ops",
            (per_second(f"{_L}patches_total", "reason"), "patch {{reason}}"),
            (per_second(f"{_L}looks_total", "result"), "poll {{result}}"),
        ),
        panel(
            "Leading annotators",
            "1 is right. 0: no load is written, and policies soon treat all load as unknown.",
            "short",
            (f"sum({_L}leader)", "leaders"),
        ),
        panel(
            "CPU in use (five minutes)",
            "Of each node, as node-metrics measures it. A node near 100 % that still gets Pods: "
            "no policy uses the load.",
            "percent",
            ("node_cpu_usage_avg_5m", "{{instance}}"),
        ),
        panel(
            "Memory in use (five minutes)",
            "Of each node, as node-metrics measures it. Near 100 %: the kubelet evicts Pods, or "
            "the kernel kills them.",
            "percent",
            ("node_mem_usage_avg_5m", "{{instance}}"),
        ),
    ),
)

BOARD: Final = Dashboard(
    "extenders",
    "kube-scheduler: extenders and load",
    "Calls of extenders, their policies, and the load of nodes that these use.",
    (CALLS, LOAD),
)
