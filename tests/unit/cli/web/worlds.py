"""Answers as the pages of the console show them: healthy, broken, and written by strangers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kube_scheduler_operator.cli.answers.comparison import Comparison
from kube_scheduler_operator.cli.answers.effective import Running, effective_of
from kube_scheduler_operator.cli.answers.history import RevisionEntry
from kube_scheduler_operator.cli.answers.status import (
    Assignment,
    ExtenderState,
    LoadPolicyState,
    NodeState,
    ObjectWarning,
    ProfileState,
    SecondaryState,
    SettingsState,
    Status,
    StatusProblem,
)
from kube_scheduler_operator.cli.cluster.compare import ParsedRevision
from kube_scheduler_operator.cli.cluster.revisions import LaterRevision
from kube_scheduler_operator.cli.web.pages.extenders import of_status
from kube_scheduler_operator.cli.web.pages.rollout import Lane, RolloutAnswer
from kube_scheduler_operator.config.language.plugins.plugin_origins import BASE, OVERRIDE, Layer

IMAGE: Final = "registry.k8s.io/kube-scheduler:v1.35.4"


def _node(name: str, **changes: Any) -> NodeState:
    facts: dict[str, Any] = {"revision": 2, "target": 0, "runs": 2, "ready": True, "restarts": 0}
    return NodeState(**({"node": name, **facts, "image": IMAGE, "leader": False} | changes))


def _configuration() -> Running:
    fit = {"scoringStrategy": {"type": "LeastAllocated"}}
    base = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": "NodeResourcesFit", "args": fit}],
            }
        ]
    }
    override = {"parallelism": 32}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", **base, **override}
    parsed = ParsedRevision(config, ("--config=/etc/config.yaml", "-v=2"), IMAGE, {}, {})
    return Running("revision 2", parsed, [Layer(BASE, base), Layer(OVERRIDE, override)])


HEALTHY_STATUS: Final = Status(
    healthy=True,
    profile="LowNodeUtilization",
    profile_changed_by="",
    log_level="Normal",
    management_state="Managed",
    revision=2,
    later_revisions=(),
    lease_holder="control-plane-1_f3a",
    lease_problem="",
    profiling_since=0,
    silence="",
    conditions={
        "Available": "True",
        "Degraded": "False",
        "Progressing": "False",
        "Upgradeable": "True",
    },
    progress="",
    progressing=False,
    problems=(),
    not_observed=(),
    warnings=(),
    assignments=(),
    managed=False,
    platform="",
    secondary_schedulers=(),
    events_in="kube-scheduler-operator",
    nodes=[_node("control-plane-1", leader=True), *map(_node, ("control-plane-2", "c-3"))],
    load_policies=[
        LoadPolicyState(
            "default", "node-metrics", {"measured": 5, "stale": 0}, "True", "True", "5 of 5 nodes"
        )
    ],
    scheduler_profiles=[ProfileState("batch", "batch", "", "Accepted", 1, 1, "")],
    operator_settings=(),
    scheduler_extenders=[
        ExtenderState("load", "", "Accepted", "True", "https://127.0.0.1:10290/load", 3, 3)
    ],
)

BROKEN_STATUS: Final = replace(
    HEALTHY_STATUS,
    healthy=False,
    later_revisions=[LaterRevision(3, "failed", "the scheduler ended with exit code 1")],
    conditions={"Available": "False", "Degraded": "True", "Progressing": "True"},
    progress="moving to revision 3; 2 nodes are at revision 2",
    progressing=True,
    silence="the operator's Lease has not been renewed for 3 minutes",
    profiling_since=1,
    problems=[
        StatusProblem(
            "NodeInstallerDegraded",
            "InstallerPodFailed",
            'node "control-plane-2": the scheduler ended with exit code 1\nunknown flag: --nope',
            "kubectl scheduler rollout undo",
        ),
        StatusProblem("leader", "Observed", "no scheduler holds the Lease", ""),
    ],
    not_observed=["whether the webhook answers: no permission to list webhooks"],
    warnings=[ObjectWarning("LoadPolicy default", "2 nodes have no load")],
    nodes=[
        _node("control-plane-1", leader=True),
        _node("control-plane-2", target=3, ready=False, restarts=4),
        _node(
            "a-node-with-a-name-as-long-as-clouds-give-them.example.internal", runs=0, revision=0
        ),
    ],
    load_policies=[LoadPolicyState("default", "", {}, "Unknown", "False", "")],
    scheduler_profiles=[
        ProfileState("batch", "", "", "Invalid", 2, 1, "not used\nspec.plugins: no plugin Foo"),
        ProfileState("new", "", "managed", "", 1, 0, ""),
    ],
    scheduler_extenders=[ExtenderState("load", "managed", "", "Unknown", "", 0, 3)],
    secondary_schedulers=[SecondaryState("managed", 1, 2, "False", IMAGE, "")],
    assignments=[Assignment("managed", assigned=False, message="the policy is not installed")],
    operator_settings=[SettingsState("cluster", ("priorityClass",), "Hold", "", "")],
    notes=["SchedulerProfiles are not shown: no permission to list schedulerprofiles"],
)

REVISIONS: Final = [
    RevisionEntry(
        3,
        "2026-01-03T00:00:00Z",
        "edit",
        "failed",
        "the scheduler ended with exit code 1",
        "2 Pods could no longer be placed",
        "2026-01-03T00:05:00Z",
        (),
        "cafe",
        2,
        ["--nope=1 added"],
        ["KubeScheduler: spec.unsupportedConfigOverrides"],
    ),
    RevisionEntry(
        2, "2026-01-02T00:00:00Z", "edit", "installed", "", "", "", ("a", "b"), "f00", 1, [], []
    ),
    RevisionEntry(
        1, "2026-01-01T00:00:00Z", "first", "installed", "", "", "", (), "b", None, None, []
    ),
]

ROLLOUT: Final = RolloutAnswer(
    scheduler="",
    outcome="in progress",
    message="",
    problem="NodeInstallerDegraded: retried in 20 seconds",
    target="3",
    pods="",
    lanes=[
        Lane("control-plane-1", 3, 0, "", ""),
        Lane("control-plane-2", 2, 3, "waits for the kubelet to let go of the old Pod", ""),
        Lane("control-plane-3", 2, 0, "", 'revision 3 failed on node "control-plane-3"'),
    ],
    pending={"SchedulerExtender load": "its agents are not Ready"},
    revisions=REVISIONS,
    configurations=(),
)

COMPARISON: Final = Comparison(
    "revision-2",
    "revision-3",
    ["--nope=1 added", "profile default-scheduler: weight of NodeResourcesFit: 1 → 5"],
    [
        "--- revision-2",
        "+++ revision-3",
        "@@ -1,2 +1,2 @@",
        " parallelism: 16",
        "-a: 1",
        "+a: 2",
        "--- revision-2/flags",
        "+++ revision-3/flags",
        "@@ -1 +1 @@",
        "---v=2",
        "+--v=3",
    ],
)

HEALTHY: Final[dict[str, Any]] = {
    "now": HEALTHY_STATUS,
    "rollout": replace(
        ROLLOUT,
        outcome="done",
        problem="",
        target="2",
        pending={},
        lanes=[Lane("control-plane-1", 2, 0, "", ""), Lane("control-plane-2", 2, 0, "", "")],
        revisions=REVISIONS[1:],
    ),
    "compare": replace(COMPARISON, words=(), lines=()),
    "decides": effective_of(_configuration()),
    "extenders": of_status(HEALTHY_STATUS),
}
"""By the name of the page."""

BROKEN: Final[dict[str, Any]] = {
    "now": BROKEN_STATUS,
    "rollout": ROLLOUT,
    "compare": COMPARISON,
    "decides": effective_of(_configuration()),
    "extenders": of_status(BROKEN_STATUS),
}
