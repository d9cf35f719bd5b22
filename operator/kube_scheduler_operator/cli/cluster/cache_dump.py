"""Parses the cache dump in a scheduler's log and compares it with the API.

The format is defined in k8s.io/kubernetes/pkg/scheduler/backend/cache/debugger/dumper.go. In klog's
text format, a value of several lines is `key=<`, the lines, each after a tab, and ` >`; in its JSON
format it is a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ...base.limits import FOREIGN_NAME
from ..console.output import format_table, text_of

_NODES: Final = "Dump of cached NodeInfo"
_QUEUE: Final = "Dump of scheduling queue"
_MISMATCH: Final = "Cache mismatch"
_POD: Final = re.compile(
    r"^name: (?P<name>\S*), namespace: (?P<namespace>\S*), uid: (?P<uid>\S*), "
    r"phase: (?P<phase>\S*), nominated node: ?(?P<nominated>\S*)$"
)
_NUMBER: Final = re.compile(r"(MilliCPU|Memory|EphemeralStorage|AllowedPodNumber):(-?\d+)")
_SCALARS: Final = re.compile(r"ScalarResources:map\[([^]]*)\]")
_NAMES: Final = {
    "MilliCPU": "milliCPU",
    "Memory": "memory",
    "EphemeralStorage": "ephemeralStorage",
    "AllowedPodNumber": "pods",
}


@dataclass(frozen=True, slots=True)
class CachedPod:
    namespace: str
    name: str
    uid: str
    phase: str
    nominated: str

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class CachedNode:
    name: str
    deleted: bool  # whether the node was deleted while the cache still has pods of it
    requested: Mapping[str, int]  # milliCPU, memory and ephemeralStorage in bytes, others by name
    allocatable: Mapping[str, int]  # the same, and the number of pods
    pods: tuple[CachedPod, ...]  # including assumed ones
    nominated: tuple[CachedPod, ...]  # those that will run there after preemption


@dataclass(frozen=True, slots=True)
class CacheDump:
    """The dump after one SIGUSR2."""

    nodes: tuple[CachedNode, ...]  # by name
    queue: tuple[CachedPod, ...]
    summary: str  # the number of pods in each part of the queue
    mismatches: tuple[str, ...]  # found by the scheduler's own comparison with its listers


def parse(log: str) -> CacheDump | None:
    """Return the last complete dump in a log; None if it has none (yet)."""
    nodes: tuple[CachedNode, ...] | None = None
    mismatches: list[str] = []
    dump: CacheDump | None = None
    for message, values in _entries(log.splitlines()):
        if message == _MISMATCH:
            mismatches.append(", ".join(f"{key}: {value}" for key, value in values.items()))
        elif message == _NODES:
            nodes = _nodes(values.get("nodes", ""))
        elif message == _QUEUE and nodes is not None:
            queue = tuple(_pods(values.get("pods", "").splitlines()))
            dump = CacheDump(nodes, queue, values.get("summary", ""), tuple(mismatches))
            nodes, mismatches = None, []
    return dump


def without_pod(dump: CacheDump, uid: str) -> CacheDump:
    """Return a dump without a pod, such as the one that asked for it and is deleted since."""
    nodes = tuple(
        replace(node, pods=tuple(pod for pod in node.pods if pod.uid != uid)) for node in dump.nodes
    )
    return replace(dump, nodes=nodes)


def _entries(lines: list[str]) -> Iterable[tuple[str, dict[str, str]]]:
    for index, line in enumerate(lines):
        if not any(message in line for message in (_NODES, _QUEUE, _MISMATCH)):
            continue
        if line.startswith("{"):
            try:
                document = json.loads(line)
            except ValueError:
                continue
            yield (
                str(document.get("msg", "")),
                {key: _plain(value) for key, value in document.items()
                 if key in ("nodes", "pods", "summary") or key.startswith(("missed", "redundant"))},
            )  # fmt: skip
            continue
        _, bracket, rest = line.partition('] "')
        message, quote, rest = rest.partition('"')
        if bracket and quote:
            yield message, dict(_values(rest, lines[index + 1 :]))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _values(rest: str, following: list[str]) -> Iterable[tuple[str, str]]:
    """Parse `key=value` pairs of klog's text format (k8s.io/klog/v2/internal/serialize)."""
    decoder = json.JSONDecoder()
    rest = rest.strip()
    while rest:
        key, equals, rest = rest.partition("=")
        if not equals:
            return
        if rest == "<":
            block: list[str] = []
            for line in following:
                if line.startswith(" >"):
                    following = following[len(block) + 1 :]
                    rest = line.removeprefix(" >").strip()
                    break
                block.append(line.removeprefix("\t"))
            else:
                return  # truncated
            yield key, "\n".join(block)
            continue
        try:
            value, end = decoder.raw_decode(rest)
        except ValueError:
            word, _, after = rest.partition(" ")
            value, end = word, len(rest) - len(after)
        yield key, _plain(value)
        rest = rest[end:].strip()


def _nodes(text: str) -> tuple[CachedNode, ...]:
    nodes = []
    for block in re.split(r"^(?=Node name: )", text, flags=re.MULTILINE):
        lines = block.splitlines()
        if not lines:
            continue
        facts = {key: value for key, _, value in (line.partition(":") for line in lines)}
        ends = [i for i, line in enumerate(lines) if line.startswith("Nominated Pods(")]
        split = ends[0] if ends else len(lines)
        nodes.append(
            CachedNode(
                name=facts.get("Node name", "").strip(),
                deleted=facts.get("Deleted", "").strip() == "true",
                requested=_resources(facts.get("Requested Resources", "")),
                allocatable=_resources(facts.get("Allocatable Resources", "")),
                pods=tuple(_pods(lines[:split])),
                nominated=tuple(_pods(lines[split:])),
            )
        )
    return tuple(sorted(nodes, key=lambda node: node.name))


def _resources(text: str) -> dict[str, int]:
    """Parse `&{MilliCPU:100 … ScalarResources:map[example.com/gpu:1]}`; zeros are left out."""
    resources = {_NAMES[key]: int(value) for key, value in _NUMBER.findall(text)}
    scalars = _SCALARS.search(text)
    for item in scalars[1].split() if scalars else ():
        name, _, value = item.rpartition(":")
        resources[name] = int(value)
    return {name: value for name, value in resources.items() if value}


def _pods(lines: Iterable[str]) -> Iterable[CachedPod]:
    for line in lines:
        match = _POD.match(line)
        if match:
            yield CachedPod(match["namespace"], match["name"], match["uid"], match["phase"],
                      match["nominated"])  # fmt: skip


# --- against the API --------------------------------------------------------------------------


def compared_fields(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what `differences` needs: a large cluster has 100,000 Pods of some kB."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    scheduler = spec.get("schedulerName", "")
    return {
        "metadata": {key: metadata[key] for key in ("namespace", "name", "uid") if key in metadata},
        "spec": {
            "nodeName": spec.get("nodeName", ""),
            "schedulerName": scheduler if len(scheduler) <= FOREIGN_NAME else "",
        },
        "status": {"phase": status.get("phase")},
    }


def differences(
    dump: CacheDump,
    nodes: Iterable[str],
    pods: Iterable[Mapping[str, Any]],
    schedulers: Iterable[str],
) -> list[str]:
    """Compare the scheduler's view with the API, which was read a moment later.

    `schedulers` are the schedulerNames of this scheduler.
    """
    different = [f"mismatch reported by the scheduler: {text}" for text in dump.mismatches]
    real, cached = set(nodes), {node.name for node in dump.nodes if not node.deleted}
    different += [f"node {name}: not in the cache" for name in sorted(real - cached)]
    different += [
        f"node {name}: in the cache, but it does not exist" for name in sorted(cached - real)
    ]
    # The scheduler removes pods that have ended from its cache.
    alive = {
        pod["metadata"]["uid"]: pod
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    }
    placed = {pod.uid: (node.name, pod) for node in dump.nodes for pod in node.pods}
    queued = {pod.uid: pod for pod in dump.queue}
    served = set(schedulers)
    for uid, pod in alive.items():
        name = f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
        spec = pod.get("spec") or {}
        where = spec.get("nodeName", "")
        seen = placed[uid][0] if uid in placed else ""
        if where and seen != where:
            different.append(f"pod {name}: on {where}, but in the cache on {seen or 'no node'}")
        elif where and uid in queued:
            different.append(f"pod {name}: on {where}, but still in the queue")
        elif not where and seen:
            different.append(f"pod {name}: assumed on {seen}, not bound yet")
        elif not where and uid not in queued and spec.get("schedulerName") in served:
            different.append(
                f"pod {name}: pending, but not in the queue (it may be in a scheduling cycle)"
            )
    for uid, (node, cached_pod) in placed.items():
        if uid not in alive:
            different.append(f"pod {cached_pod.key}: in the cache on {node}, but deleted or ended")
    different += [f"pod {queued_pod.key}: in the queue, but deleted or ended"
             for uid, queued_pod in queued.items() if uid not in alive]  # fmt: skip
    return sorted(different)


def document(node: str, dump: CacheDump, different: list[str]) -> dict[str, Any]:
    """Return what `-o json` prints."""
    return {
        "scheduler": node,
        "differences": different,
        "nodes": [asdict(cached_node) for cached_node in dump.nodes],
        "queue": {"summary": dump.summary, "pods": [asdict(pod) for pod in dump.queue]},
    }


def render(node: str, dump: CacheDump, different: list[str]) -> str:
    nodes = [["NODE", "PODS", "CPU", "OF", "MEMORY", "OF", "OTHER", "NOMINATED"]]
    for cached in dump.nodes:
        other = {k: v for k, v in cached.requested.items() if k not in ("milliCPU", "memory")}
        nodes.append(
            [
                cached.name + (" (deleted)" if cached.deleted else ""),
                str(len(cached.pods)),
                f"{cached.requested.get('milliCPU', 0)}m",
                f"{cached.allocatable.get('milliCPU', 0)}m",
                _mebibytes(cached.requested.get("memory", 0)),
                _mebibytes(cached.allocatable.get("memory", 0)),
                " ".join(f"{name}={value}" for name, value in sorted(other.items())),
                str(len(cached.nominated) or ""),
            ]
        )
    pods = [["NODE", "NAMESPACE", "POD", "PHASE"]]
    pods += [[n.name, p.namespace, p.name, p.phase] for n in dump.nodes for p in n.pods]
    queue = [["QUEUED", "NAMESPACE", "PHASE", "NOMINATED"]]
    queue += [[p.name, p.namespace, p.phase, p.nominated] for p in dump.queue]
    lines = []
    for rows in (nodes, pods, queue):
        if len(rows) > 1:
            lines += [*format_table(rows), ""]
    lines.append(f"scheduler on {node}: {dump.summary}")
    lines.append("the cache and the API differ:" if different else "the cache and the API agree")
    return text_of([*lines, *(f"  - {line}" for line in different)])


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.0f}Mi"
