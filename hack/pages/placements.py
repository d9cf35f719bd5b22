"""docs/placements.md: questions about pods and nodes by symptom, with the real output.

The cluster is in files, so only a kube-scheduler is needed.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final

from cluster import paths
from cluster.releases import DEFAULT
from pages.terminal import Terminal
from pages.text import Section, page
from pages.waiting import FILE, WORKLOAD, write_cluster, write_workload

PAGE = paths.REPOSITORY / "docs" / "placements.md"
PICTURE = paths.REPOSITORY / "docs" / "placements.svg"
LARGE: Final = "large.json"
EDITED: Final = "edited.yaml"
PODS, NODES = 400, 60
_TITLE = "Pods and their nodes, by symptom"
_INTRODUCTION = f"""\
What to run when pods are not where they should be. The commands read the cluster of your
kubeconfig; here they read a file (`--from-files`), as `kubectl get nodes,pods,pdb -A -o json`
prints it. If the Pods refer to kinds that the file lacks, such as claims, a note has the command
that prints them. The real kube-scheduler ({DEFAULT}) decides in all of them, over a copy of the
cluster, and nothing in the cluster changes. [All flags](kubectl-scheduler.md#why).
`hack/placement-docs` generates this page from the printed output."""
_SIZES: Final = (("100m", "256Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"))
_EDIT: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {key: topology.kubernetes.io/zone, operator: In, values: [a]}
"""


def demonstrate(terminal: Terminal) -> list[Section]:
    """All sections of the page; draws the picture.

    Raises:
        SandboxError: a command did not end.
    """
    folder = terminal.folder
    (folder / FILE).write_text(write_cluster())
    (folder / WORKLOAD).write_text(write_workload())
    (folder / LARGE).write_text(_large_cluster())
    (folder / EDITED).write_text(_EDIT)

    def run(words: str, code: int = 0) -> tuple[Any, ...]:
        return (terminal.run(f"kubectl scheduler {words}", code=code),)

    sections = [
        Section(
            "A pod is Pending",
            "`why` shows what excludes each node, with kube-scheduler's own words in brackets, and "
            "what would help.\nEvery change that it names was tried, in the order in which a "
            "person would try them: mend the cluster, mend the rule, ask for less, add\n"
            "a node, drop a rule.",
            (run(f"why shop/web-1 --from-files {FILE}"),),
        ),
        Section(
            "Many pods are Pending",
            "`pending` groups them by cause. Begin with the largest group: `helps` is what helps "
            "its oldest pod, and `next` the command that shows each node.",
            (run(f"pending --from-files {FILE}"),),
        ),
        Section(
            "A pod is on the wrong node",
            "`why` of a running pod shows the score of every plugin for every node. A tie is "
            "decided in kube-scheduler's own way: then\nno plugin "
            "preferred another node, and a stronger preference or a rule is needed.",
            (run(f"why shop/web-0 --from-files {FILE}"),),
        ),
        Section(
            "Will this fit",
            "A workload that does not exist yet; `--max` shows how many of its pods fit. The exit "
            "code is 0 if all fit.",
            (
                run(f"simulate -f {WORKLOAD} --from-files {FILE}"),
                run(f"simulate -f {WORKLOAD} --max --from-files {FILE}"),
            ),
        ),
        Section(
            "Can this node be drained, and would new nodes help",
            "PodDisruptionBudgets are respected. A new node is like an existing one.",
            (
                run(f"simulate --drain worker-2 --from-files {FILE}", code=1),
                run(
                    f"simulate --drain worker-2 --add-nodes 1xworker-1 --from-files {FILE}", code=1
                ),
            ),
        ),
        Section(
            "What will another profile do",
            "An edit of a profile changes no running pod, but the next ones. `--replay` places all "
            "running pods again, in\nthe order of their creation. Two profiles beside each other, "
            f"for {PODS} pods on {NODES} nodes; `--svg` draws them:\n\n"
            f"![{PODS} pods with two profiles]({PICTURE.name})",
            (
                run(
                    "simulate --replay --profile LowNodeUtilization --profile HighNodeUtilization "
                    f"--repeat 10 --nodes 3 --svg nodes.svg --from-files {LARGE}"
                ),
            ),
        ),
    ]
    PICTURE.write_text((folder / "nodes.svg").read_text())
    filtering = Section(
        "What will this edit do",
        "A configuration with a required node affinity, compared with today's. In a cluster, "
        "`kubectl scheduler diff -f\nFILE --placements` reports the same for an edited Scheduler, "
        "KubeScheduler, SchedulerProfile or\nKubeSchedulerConfiguration, and which running pods "
        "could no longer be placed.\n\n"
        "The operator does this itself before it rolls out an edit, and can hold it until it is "
        "approved:\n[Edits that move Pods](operator-settings.md#edits-that-move-pods).",
        (run(f"simulate --replay --config {EDITED} --nodes 3 --from-files {LARGE}", code=1),),
    )
    return [*sections, filtering]


def written(sections: list[Section]) -> str:
    """The page."""
    return page(_TITLE, _INTRODUCTION, sections)


def _large_cluster() -> str:
    """Nodes of one size, and pods of four sizes on nodes of any rank."""
    chance = random.Random("placements")
    nodes = [_node(number) for number in range(NODES)]
    pods = [_pod(number, chance) for number in range(PODS)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]})


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number:02d}"
    amounts = {"cpu": "6", "memory": "24Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": "abc"[number % 3],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "nodeInfo": {"kubeletVersion": DEFAULT},
        },
    }


def _pod(number: int, chance: random.Random) -> dict[str, Any]:
    cpu, memory = chance.choice(_SIZES)
    container = {
        "name": "main",
        "image": "example",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "app"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"app-{number:03d}",
            "namespace": "shop",
            "creationTimestamp": "2026-01-02T08:00:00Z",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": f"node-{number % NODES:02d}",
            "containers": [container],
        },
        "status": {"phase": "Running"},
    }
