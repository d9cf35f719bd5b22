"""docs/kubectl-scheduler-output.md: the real output of every command of `kubectl scheduler`.

A cluster with three nodes is edited, broken and repaired while every command runs against it.
A chapter is a function that changes the cluster and returns its sections of the page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from cluster import nodes, paths
from cluster.console import say, step
from cluster.observe import KUBESCHEDULER, cluster_operator, delete_pod, schedule_pod, until
from cluster.releases import DEFAULT
from pages.asked import POD, asked
from pages.customised import write_files
from pages.stage import PREFIX, VIEWER, Stage
from pages.terminal import sizes
from pages.text import ALL, Keep, Section, Shown, index, page, tree
from pages.waiting import FILE, WORKLOAD, write_cluster, write_workload

PAGE = paths.REPOSITORY / "docs" / "kubectl-scheduler-output.md"
COMMANDS = (
    "check",
    "status",
    "console",
    "report",
    "history",
    "diff",
    "plugins",
    "why",
    "pending",
    "nodes",
    "simulate",
    "rollout watch",
    "rollout undo",
    "rollout approve",
    "pprof",
    "dump-cache",
    "must-gather",
    "compose",
    "validate",
    "schema",
    "convert",
    "adopt",
    "version",
    "completion",
)
"""All commands; a test compares them with the program's parser."""

_TITLE = "Output of kubectl scheduler"
_INTRODUCTION = """\
Every command of `kubectl scheduler` ([description](kubectl-scheduler.md)) against one cluster
with three control-plane nodes and kube-scheduler {version}: healthy, after edits, after a mistake,
with a revision that cannot run, for a user without rights, and with a node that is off.
`hack/cli-docs` generates this page from the printed output, including times and identities. Only
lines in the middle of long outputs (`… N lines more`) and ends of very long lines are left out.

{index}"""

_LONG = Keep(34)
_CANNOT_RUN = {"arguments": {"bind-address": "203.0.113.77"}}
"""No node has this address (RFC 5737), so a scheduler ends at once; no check can know that."""

_READER = (
    "kubectl create clusterrole scheduler-reader --verb=get,list --resource="
    "schedulers.config.openshift.io,kubeschedulers.operator.openshift.io,"
    "clusteroperators.config.openshift.io,leases.coordination.k8s.io,nodes"
)
_BOUND = (
    "kubectl create clusterrolebinding scheduler-reader --clusterrole=scheduler-reader "
    "--serviceaccount=default:viewer"
)
_OLD = """\
apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
metricsBindAddress: 0.0.0.0:10251
profiles:
- plugins:
    score:
      disabled:
      - name: NodeResourcesLeastAllocated
      enabled:
      - name: NodeResourcesMostAllocated
        weight: 5
"""
_MINE = """\
apiVersion: config.openshift.io/v1
kind: Scheduler
metadata:
  name: cluster
spec:
  profile: NoScoring
"""

_GATE: Final = "operatorsettings.yaml"
_CHECKED: Final = """\
apiVersion: kube-scheduler-operator.dev/v1alpha1
kind: OperatorSettings
metadata:
  name: cluster
spec:
  placementCheck:
    mode: Gate
"""
_TERM: Final = {"matchExpressions": [{"key": "example.com/pool", "operator": "Exists"}]}
_REQUIRED: Final = {"nodeSelectorTerms": [_TERM]}
_ADDED: Final = {"requiredDuringSchedulingIgnoredDuringExecution": _REQUIRED}
_AFFINITY: Final = {"name": "NodeAffinity", "args": {"addedAffinity": _ADDED}}
_POOL: Final = {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [_AFFINITY]}]}
"""Pods fit on nodes with a label that no node has."""

_RIGHT: Final = "my-scheduler-config.yaml"
_CONFIGURATION: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  resourceName: my-scheduler
profiles:
- schedulerName: my-scheduler
  plugins:
    filter:
      disabled:
      - name: NodeResourcesFit
    score:
      disabled:
      - name: NodeResourcesLeastAllocated
      enabled:
      - name: ImageLocality
        weight: 10
"""

Chapter = Callable[[Stage], list[Section]]


def demonstrate(stage: Stage, sections: list[Section]) -> None:
    """Run all chapters, which fill `sections`.

    Raises:
        SandboxError: something did not happen that the page is about.
    """
    stage.rest()
    for chapter in _CHAPTERS:
        with step(f"chapter: {chapter.__name__}"):
            sections += chapter(stage)


def written(sections: Sequence[Section]) -> str:
    """The page."""
    table = index(COMMANDS, sections, PREFIX)
    return page(_TITLE, _INTRODUCTION.format(version=DEFAULT, index=table), sections)


def _section(title: str, text: str, *blocks: Sequence[Shown] | str) -> Section:
    return Section(
        title, text, tuple(one if isinstance(one, str) else tuple(one) for one in blocks)
    )


# --- healthy ----------------------------------------------------------------------------------
def healthy(stage: Stage) -> list[Section]:
    return [
        _section(
            "A healthy cluster",
            "The operator has adopted the stock schedulers; that was revision 1.",
            [stage.run("status")],
            [stage.run("status --verbose", _LONG)],
            [stage.run("status -o json", _LONG)],
            [stage.run("check")],
            [stage.run("check --schedule -o json", _LONG)],
            [stage.run("history")],
            [stage.run("version")],
            [stage.run_until_interrupted("console", "Ctrl-C")],
        )
    ]


def adopted(stage: Stage) -> list[Section]:
    write_files(stage.terminal.folder)
    return [
        _section(
            "What adoption does with a cluster",
            "`cp-1` and `cp-2` are directories with the scheduler's manifest and configuration "
            "file of two\nnodes, which have a proxy, another log level and two profiles; in "
            "`cp-2` the proxy has a password.\nWithout `-f` the command reads the Pods of the "
            "cluster.",
            [stage.run("adopt --dry-run -f cp-1")],
            [stage.run("adopt --dry-run -f cp-1 -f cp-2", code=1)],
            [stage.run("adopt --dry-run -f cp-1 -o yaml", _LONG)],
            [stage.run("adopt --as-profiles -f cp-1", Keep(40))],
        )
    ]


def edited(stage: Stage) -> list[Section]:
    return [
        _section(
            "An edit",
            "Another profile. All nodes check and stage the revision at once; then they\n"
            "activate it one after the other, the leader last.",
            [stage.patch("scheduler", {"profile": "HighNodeUtilization"}), stage.watch()],
            [stage.run("history")],
            [stage.run("history -o yaml", Keep(24))],
            [stage.run("diff 1 2", code=1)],
            [stage.run("diff 2 2")],
            [stage.run("diff 1 9", code=2)],
        )
    ]


def profiled(stage: Stage) -> list[Section]:
    leader = stage.leader()
    on = {"unsupportedConfigOverrides": {"enableProfiling": True}}
    return [
        _section(
            "Profiling that is already enabled",
            "If `enableProfiling` is already set, `pprof` rolls out no revision; it only creates,\n"
            "and removes, the ServiceAccount that may read profiles.",
            [stage.patch("kubescheduler", on), stage.watch()],
            [stage.run("status")],
            [stage.run("pprof goroutine -o goroutine.pprof")],
            [stage.run(f"pprof profile --node {leader} --seconds 2 -o cpu.pprof")],
            [stage.run("pprof trace --seconds 1 -o scheduler.trace")],
            [stage.terminal.run("ls -sh goroutine.pprof cpu.pprof scheduler.trace")],
            [stage.run("pprof heap --node nowhere -o heap.pprof", code=1)],
        )
    ]


def taken_back(stage: Stage) -> list[Section]:
    return [
        _section(
            "Undoing an edit",
            "`undo` restores the settings of an older revision; without `--yes` it asks first.",
            [stage.run("rollout undo --dry-run")],
            [stage.run("rollout undo --yes"), stage.watch()],
            [stage.run("rollout undo --to-revision 1 --dry-run")],
            [stage.run("rollout undo", code=1)],
            [stage.run("history", _LONG)],
        )
    ]


def held(stage: Stage) -> list[Section]:
    (stage.terminal.folder / _GATE).write_text(_CHECKED)
    schedule_pod(stage.api, name="placed", cpu="250m")
    checked = stage.terminal.run(f"kubectl apply -f {_GATE}")
    edited = stage.patch("kubescheduler", {"unsupportedConfigOverrides": _POOL})
    until(lambda: "held" in cluster_operator(stage.api)["Progressing"][1], 300, "nothing is held")
    shown = [
        _section(
            "An edit that is held",
            "With `spec.placementCheck`, an edit that would leave running Pods without a node "
            "waits for an\napproval.",
            [stage.terminal.run(f"cat {_GATE}"), checked],
            [edited, stage.watch(code=1)],
            [stage.run("status")],
            [stage.run("rollout approve --dry-run")],
            [stage.run("rollout approve --yes"), stage.watch()],
            [stage.run("history", Keep(14))],
        )
    ]
    stage.api.request("PATCH", KUBESCHEDULER, {"spec": {"unsupportedConfigOverrides": None}})
    stage.terminal.run(f"kubectl delete -f {_GATE}")
    stage.rest()
    delete_pod(stage.api, "placed")
    return shown


def heap(stage: Stage) -> list[Section]:
    return [
        _section(
            "A heap profile",
            "Profiling is off, so one revision enables it and another one disables it again.",
            [stage.run("pprof heap -o heap.pprof", timeout=600), stage.watch()],
            [stage.terminal.run("ls -sh heap.pprof")],
        )
    ]


def cached(stage: Stage) -> list[Section]:
    for number in range(3):
        schedule_pod(stage.api, name=f"pod-{number}", cpu="250m")
    schedule_pod(stage.api, name="wants-an-ssd", selector={"disk": "ssd"}, wait=False)
    time.sleep(1)  # for the scheduler to have tried
    return [
        _section(
            "The cache of a scheduler",
            "Three pods run, and one selects a label that no node has.",
            [stage.run("dump-cache")],
            [stage.run(f"dump-cache --node {stage.leader()} -o json", Keep(30))],
            [stage.run("dump-cache --node nowhere", code=1)],
        )
    ]


def waiting(stage: Stage) -> list[Section]:
    (stage.terminal.folder / FILE).write_text(write_cluster())
    (stage.terminal.folder / WORKLOAD).write_text(write_workload())
    return [
        _section(
            "Why a pod waits, and why it is where it is",
            "A cluster with four nodes in a file, as `kubectl get nodes,pods -A -o json` prints "
            "it; without\n`--from-files` the command reads the cluster of the kubeconfig.",
            [stage.run(f"why shop/web-1 --from-files {FILE}")],
            [stage.run(f"why shop/web-0 --from-files {FILE}")],
            [stage.run(f"why shop/web-1 --from-files {FILE} -o yaml", Keep(30))],
            [stage.run(f"pending --from-files {FILE}")],
        ),
        _section(
            "What nodes have free",
            "The same cluster.",
            [stage.run(f"nodes --from-files {FILE}")],
            [stage.run(f"nodes --fits cpu=500m,memory=1Gi --sort fits --from-files {FILE}")],
            [stage.run(f"nodes --from-files {FILE} -o yaml", Keep(40))],
            [stage.run(f"nodes --fits gpu=1 --from-files {FILE}", code=2)],
        ),
        _section(
            "Will this fit, and can this node be drained",
            "The same cluster, and a Deployment that does not exist yet.",
            [stage.run(f"simulate -f {WORKLOAD} --from-files {FILE}")],
            [stage.run(f"simulate -f {WORKLOAD} --max --from-files {FILE}")],
            [stage.run(f"simulate --drain worker-2 --from-files {FILE}", code=1)],
            [stage.run(f"simulate --add-nodes 1xworker-1 --from-files {FILE}", code=1)],
            [
                stage.run(
                    f"simulate --replay --profile HighNodeUtilization --from-files {FILE}",
                    code=1,
                )
            ],
        ),
    ]


def decided(stage: Stage) -> list[Section]:
    with asked(stage.sandbox) as url:
        return [
            _section(
                "What extenders decided",
                "An extender on the loopback of this machine, with safe-overload and safe-balance "
                "as one agent, was\ncalled for three nodes; in a cluster `--url` is not needed.",
                [stage.run(f"why {POD} --url {url} --details")],
            )
        ]


def gathered(stage: Stage) -> list[Section]:
    shown = stage.run("must-gather --dest report")
    found = sizes(stage.terminal.folder / "report")
    files = tree({f"report/{path}": size for path, size in found.items()})
    return [_section("A report", "The first four files of each folder.", [shown], files)]


# --- broken -----------------------------------------------------------------------------------
def misspelt(stage: Stage) -> list[Section]:
    plugins = {"score": {"enabled": [{"name": "NodeResourcesFitt"}]}}
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    overrides = {"unsupportedConfigOverrides": {"profiles": [profile]}}
    return [
        _section(
            "A misspelt plugin",
            "The configuration is rejected: no revision has it, and the schedulers keep running.",
            [stage.patch("kubescheduler", overrides), stage.watch(code=1)],
            [stage.run("status", code=1)],
            [stage.run("pprof heap -o second.pprof", code=1)],
            [stage.run("rollout undo --dry-run")],
            [stage.run("rollout undo --yes"), stage.watch()],
        )
    ]


def crashed(stage: Stage) -> list[Section]:
    patched = stage.patch("kubescheduler", {"unsupportedConfigOverrides": _CANNOT_RUN})
    watched = stage.watch(code=1)
    until(lambda: bool(stage.trouble("NodeInstallerDegraded")), 60, "nothing failed")
    until(
        lambda: cluster_operator(stage.api)["Degraded"][0] == "True", 60, "Degraded is not reported"
    )
    return [
        _section(
            "A revision that crashes",
            "No node has the address, which no check can detect. The first node tries it and "
            "restores the\nlast good scheduler; the others keep theirs, and the content is not "
            "tried again.",
            [patched, watched],
            [stage.run("status", code=1)],
            [stage.run("status --verbose", _LONG, code=1)],
            [stage.run("history", _LONG)],
            [stage.run("diff", code=1)],
            [stage.run("dump-cache", Keep(12, 2))],
            [stage.run("must-gather --dest report-of-a-failure")],
            [stage.run(f"rollout undo --to-revision {stage.latest()} --dry-run", code=1)],
            [stage.run("rollout undo --yes"), stage.watch()],
        )
    ]


def without_rights(stage: Stage) -> list[Section]:
    stage.rest()
    stage.make_viewer()

    def tried(words: str, code: int = 1) -> list[Shown]:
        return [stage.run(f"{words} --kubeconfig {VIEWER}", Keep(20, 4), code=code)]

    viewing = _section(
        "A user who may only view",
        f"`{VIEWER}` is that of a ServiceAccount with ClusterRole `view`, which includes this\n"
        "operator's kinds, but not Nodes. A command that needs more names the missing right and "
        "the rule\nthat grants it.",
        tried("status", 0),
        tried("history", 0),
        tried("diff"),
        tried("rollout watch", 0),
        tried("rollout undo --dry-run", 0),
        tried("pprof heap -o third.pprof"),
        tried("dump-cache"),
    )
    granted = [stage.terminal.run(_READER), stage.terminal.run(_BOUND)]
    stage.wait_for_viewer("get", "kubeschedulers")
    reading = _section(
        "A user who may read the operator's objects",
        "The same ServiceAccount after an administrator has granted it one more role. "
        "Commands that\nread work; commands that write name the missing right.",
        granted,
        tried("status", 0),
        tried("rollout undo --yes"),
        tried("dump-cache"),
        tried("must-gather --dest what-may-be-seen"),
    )
    return [viewing, reading]


def without_power(stage: Stage) -> list[Section]:
    dead = stage.sandbox.nodes[-1]
    nodes.power_off(stage.sandbox, dead)
    say(f"  {dead.name} is off; options are shown until the API server notices")
    options = _options(stage)
    until(
        lambda: dead.name in stage.trouble("NodeControllerDegraded"),
        180,
        "the node is not reported",
    )
    power_loss = _section(
        "A node that is off",
        f"`{dead.name}` is powered off. The others continue without it; ClusterOperator reports "
        "Degraded\nafter ten minutes. The node gets the revision when it is back.",
        [stage.run("status", code=1)],
        [
            stage.patch("scheduler", {"profile": "NoScoring"}),
            stage.run("rollout watch --timeout 40", code=1),
        ],
        [stage.run("status", code=1)],
        [stage.run("history", Keep(12))],
    )
    return [power_loss, _files(stage), options]


def _files(stage: Stage) -> Section:
    """Commands that ask no cluster."""
    folder = stage.terminal.folder
    (folder / _RIGHT).write_text(_CONFIGURATION)
    wrong = _CONFIGURATION.replace("ImageLocality", "ImageLocalty")
    (folder / "wrong.yaml").write_text(wrong)
    return _section(
        "A file before it is applied",
        "These commands need no cluster; without `--profile`, `plugins` shows what the cluster "
        "runs. In the\nsecond file only the plugin's name is fixed.",
        [stage.terminal.run("cat wrong.yaml"), stage.run("validate -f wrong.yaml", code=1)],
        [stage.run(f"validate -f {_RIGHT}")],
        [stage.run(f"validate --strict -f {_RIGHT} -o json", _LONG, code=1)],
        [stage.run(f"validate -f {_RIGHT} -o github")],
        [stage.run("validate --explain UselessDisabled")],
        [stage.run("schema --kubernetes-version 1.35", _LONG)],
        [stage.run("plugins --profile HighNodeUtilization", Keep(50))],
        [stage.run(f"plugins -f {_RIGHT} -o wide", _LONG)],
    )


def _options(stage: Stage) -> Section:
    (stage.terminal.folder / "my-scheduler.yaml").write_text(_MINE)
    (stage.terminal.folder / "old.yaml").write_text(_OLD)
    return _section(
        "All options",
        "`compose` and `convert` need no cluster; `my-scheduler.yaml` is a Scheduler with "
        "`profile: NoScoring`,\n`old.yaml` a configuration of v1beta1 that packs.",
        [stage.run("compose -f my-scheduler.yaml", _LONG)],
        [stage.run("compose -f my-scheduler.yaml --for k3s", _LONG)],
        [stage.run("convert -f old.yaml", _LONG)],
        [stage.run("completion bash", _LONG)],
        [stage.run("report --profile Packing", code=2)],
        [stage.terminal.run(f"{PREFIX} --version")],
        [stage.run("version --client")],
        [stage.terminal.run(f"{PREFIX} --help")],
        *([stage.run(f"{words} --help", ALL)] for words in with_groups(COMMANDS)),
    )


def with_groups(commands: Sequence[str]) -> list[str]:
    """The commands and the groups that they are in, each group before its first command."""
    found: dict[str, None] = {}
    for command in commands:
        words = command.split()
        for length in range(1, len(words) + 1):
            found[" ".join(words[:length])] = None
    return list(found)


_CHAPTERS: tuple[Chapter, ...] = (
    healthy,
    adopted,
    edited,
    profiled,
    taken_back,
    held,
    heap,
    cached,
    waiting,
    decided,
    gathered,
    misspelt,
    crashed,
    without_rights,
    without_power,
)
