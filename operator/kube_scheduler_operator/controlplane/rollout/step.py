"""One step of a rollout: what each node should do next.

Every node that is behind gets an installer pod at once. Each checks the configuration with the
operand's own binary, puts the revision on its node's disk, and waits. When all have said yes, one
after the other gets its go-ahead: it swaps the static pod and judges the new scheduler by itself;
the step only reads what came of it and writes that down. So at most one scheduler is down at any
time, and none is touched if the revision is refused or cannot be had on some node. A node's
`currentRevision` is written when its installer called the new scheduler healthy and the mirror pod
agrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...kube.resource import PODS
from ...manifests.pods import installer_pod_name
from ...model.api_outage import aftermath
from ...model.plan import Delete, Event
from ...model.snapshot import Snapshot
from ..revision.revise import Revised
from .drift import astray
from .installer_pods import Stage
from .installers import carry_on, forget_attempts, give_go_ahead, prepare, start, wait
from .node_statuses import Entry, not_ready_since, read_entry, reconcile_entries, worth
from .outcome import acknowledge, finished, judge_running, record_installed
from .result import Stepped


def step(snapshot: Snapshot, revised: Revised, out: Stepped) -> Stepped:
    """Decide the next step of every node; `out` says what was seen and is filled in."""
    before = tuple(read_entry(raw) for raw in snapshot.status.get("nodeStatuses") or ())
    out.entries = reconcile_entries(before, snapshot.nodes)
    if [entry.node for entry in out.entries] != [entry.node for entry in before]:
        # The API refuses revisions in an element that is just being added; the write of this
        # change brings the next pass.
        out.wake(0)
        return out

    out.entries = tuple(acknowledge(snapshot, entry, out, revised) for entry in out.entries)
    moving = next((entry for entry in out.entries if entry.target), None)
    if moving is not None and _has_lost_its_turn(snapshot, out, moving):
        message = f"{out.not_ready[moving.node]}: the others go on without it"
        out.events.append(Event("NodeTargetRevisionChanged", message, "Warning"))
        out.put(replace(moving, target=0))
    elif moving is not None:
        out.put(_advance(snapshot, revised, out, moving))
    waiting = _move(snapshot, revised, out)
    judge_running(snapshot, revised, out)
    record_installed(snapshot, revised, out)
    _clean_up(snapshot, out, waiting)
    return out


def _move(snapshot: Snapshot, revised: Revised, out: Stepped) -> set[str]:
    """Choose who is next, if nobody is on its way, and prepare the others: their pods' names."""
    wanted = revised.wanted
    if wanted is None or not wanted.ready or wanted.number in out.judged:
        return set()
    strayed = astray(snapshot, out)
    behind = [entry for entry in _behind(out, wanted.number, strayed) if not entry.target]
    for entry in behind:
        if entry.node in out.not_ready:
            out.waiting[entry.node] = "the node is not Ready"
    able = [entry for entry in behind if entry.node not in out.not_ready]
    chosen = None
    if not any(entry.target for entry in out.entries):
        chosen = _choose(snapshot, out, able, wanted.number, strayed)
    if chosen is not None:
        _announce(snapshot, revised, out, chosen, wanted.number, strayed)
    for entry in able:
        if entry is not chosen and wanted.number not in out.judged:
            out.put(prepare(snapshot, revised, out, entry, wanted))
    if wanted.number in out.judged:
        return set()
    return {
        installer_pod_name(entry.node, wanted.number, entry.attempts(wanted.number))
        for entry in _behind(out, wanted.number, strayed)
    }


def _behind(out: Stepped, wanted: int, strayed: Mapping[str, str]) -> list[Entry]:
    """The nodes that are to be brought to the wanted revision, or back to it."""
    return [
        entry
        for entry in out.entries
        if entry.current < wanted or (entry.current == wanted and entry.node in strayed)
    ]


# --- choosing ---------------------------------------------------------------------------------


def _choose(
    snapshot: Snapshot,
    out: Stepped,
    able: list[Entry],
    wanted: int,
    strayed: Mapping[str, str],
) -> Entry | None:
    """The node to move next: the worst first, the holder of the scheduler's Lease last."""
    if not able:
        return None
    for entry in out.entries:
        pod = out.operands.get(entry.node)
        unwell = entry.node not in out.not_ready and (pod is None or not pod.ready)
        if entry.current == wanted and unwell and entry.node not in strayed:
            # Two schedulers down is worse than one behind.
            out.waiting[entry.node] = f"revision {wanted} is not Ready here"
            return None
    if not _nobody_else_may_swap(snapshot, out):
        return None
    left, why = aftermath(snapshot)
    if left > 0:
        out.wake(left)
        out.waiting.update({entry.node: why for entry in able})
        return None
    if len(able) > 1 and not all(_said_yes(out, entry, wanted) for entry in able):
        return None  # a single node asks and goes in one
    return min(able, key=lambda entry: worth(snapshot, out.operands, entry))


def _nobody_else_may_swap(snapshot: Snapshot, out: Stepped) -> bool:
    """Whether no installer has been told to swap that could still do so.

    One on a node out of reach cannot be told that its turn is over, but its pod can be deleted: the
    kubelet learns of both in one, and starts a pod that is being deleted never again.
    """
    for found in out.installers:
        if not found.busy or found.node not in snapshot.nodes:
            continue
        if found.node not in out.not_ready:
            out.waiting[found.node] = f"{found.name} has not ended yet"
            return False
        if not found.leaving:
            out.actions.append(Delete(PODS, found.pod))
            return False
    return True


def _said_yes(out: Stepped, entry: Entry, wanted: int) -> bool:
    """Whether the revision passed its check on a node and is on its disk.

    A result from the days of an earlier KubeScheduler is as good: it is read on the node's turn.
    """
    found = out.installer(installer_pod_name(entry.node, wanted, entry.attempts(wanted)))
    if found is None or (found.stage is Stage.DONE and entry.current == wanted):
        return False
    return found.stage in (Stage.STAGED, Stage.DONE)


def _announce(
    snapshot: Snapshot,
    revised: Revised,
    out: Stepped,
    chosen: Entry,
    wanted: int,
    strayed: Mapping[str, str],
) -> None:
    """Write down that it is this node's turn, and then tell its installer."""
    out.put(replace(chosen, target=wanted))
    message = f'node "{chosen.node}": {chosen.current or "no revision"} -> revision {wanted}'
    if chosen.current == wanted:
        message = f'node "{chosen.node}": {strayed[chosen.node]}'
    out.events.append(Event("NodeTargetRevisionChanged", message))
    found = out.installer(installer_pod_name(chosen.node, wanted, chosen.attempts(wanted)))
    revision = revised.revision(wanted)
    if found is None and revision is not None:
        start(snapshot, revised, out, replace(chosen, target=wanted), revision, out.afterwards)
    elif found is not None and found.over and chosen.current == wanted:
        forget_attempts(out, chosen, wanted)
    elif found is not None and not found.go_ahead:
        give_go_ahead(out, found, out.afterwards)


# --- a node on its way ------------------------------------------------------------------------


def _has_lost_its_turn(snapshot: Snapshot, out: Stepped, entry: Entry) -> bool:
    """Whether a node on its way is out of reach for so long that the others need not wait.

    Its installer pod is deleted before another node has its turn. The next one finds on the disk
    where the swap stopped, and goes on when it is this node's turn again.
    """
    if entry.node not in out.not_ready:
        return False
    others = [
        other
        for other in out.entries
        if other.current < entry.target and other.node not in {entry.node, *out.not_ready}
    ]
    since = not_ready_since(snapshot.nodes[entry.node])
    if not others or since is None:
        return False
    tolerance = snapshot.settings.rollout.pending_tolerance
    left = tolerance - (snapshot.now - since).total_seconds()
    if left > 0:
        out.wake(left)
    return left <= 0


def _advance(snapshot: Snapshot, revised: Revised, out: Stepped, entry: Entry) -> Entry:
    found = out.installer(installer_pod_name(entry.node, entry.target, entry.attempt))
    revision = revised.revision(entry.target)

    if found is not None and found.stage is Stage.DONE:
        return finished(snapshot, revised, out, entry, found, revision)
    if found is not None and found.swapping:
        # It owns the swap to its end: stopped now, it could leave an unproven scheduler behind.
        return wait(snapshot, out, entry, found)
    wanted = revised.wanted
    if wanted is not None and wanted.number != entry.target:
        message = (
            f'node "{entry.node}": revision {wanted.number} instead of {entry.target}, which it '
            "had not reached"
        )
        out.events.append(Event("NodeTargetRevisionChanged", message))
        return replace(entry, target=0)
    if revision is None or revision.bad or wanted is None:
        return replace(entry, target=0)
    if aftermath(snapshot)[0] > 0 and not (found is not None and found.go_ahead):
        return replace(entry, target=0)  # whose turn it is must be decided anew
    return carry_on(snapshot, revised, out, entry, revision, found)


def _clean_up(snapshot: Snapshot, out: Stepped, wanted: set[str]) -> None:
    """Delete installer pods that nobody waits for; finished ones stay for their logs."""
    wanted = wanted | {
        installer_pod_name(entry.node, entry.target, entry.attempt)
        for entry in out.entries
        if entry.target
    }
    for found in out.installers:
        if found.leaving or found.name in wanted or (found.over and found.revision):
            continue  # what a restore pod once said must not be taken for news later
        if found.swapping and found.node in snapshot.nodes:
            continue
        out.afterwards.append(Delete(PODS, found.pod))
