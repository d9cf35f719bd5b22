"""One step of a rollout: what each node should do next.

At most one node is on its way at any time. Its installer pod checks the configuration with the
operand's own binary, swaps the static pod and judges the new scheduler by itself; the step only
starts it, reads what came of it and writes that down. A node's `currentRevision` is written when
the installer called the new scheduler healthy and its mirror pod agrees.
"""

from __future__ import annotations

import json
from dataclasses import replace

from .. import names
from ..kube.resource import PODS
from ..manifests.render import InstallerSettings, installer_pod_name, render_installer_pod
from ..plan import Create, Delete, Event
from ..revision.history import PARTS, Revision
from ..revision.revise import Revised
from ..snapshot import Snapshot
from .drift import astray
from .installer import Installer, Stage
from .look import look
from .nodes import Entry, read_entry, reconcile_entries, worth
from .outcome import (
    acknowledge,
    attempt_failed,
    finished,
    judge_running,
    record_installed,
    refused,
)
from .prune import protected
from .stepped import Stepped


def step(snapshot: Snapshot, revised: Revised) -> Stepped:
    """Decide the next step of every node."""
    out = look(snapshot)
    before = tuple(read_entry(raw) for raw in snapshot.status.get("nodeStatuses") or ())
    out.entries = reconcile_entries(before, snapshot.nodes)
    if [entry.node for entry in out.entries] != [entry.node for entry in before]:
        # The API refuses revisions in an element that is just being added; the write of this
        # change brings the next pass.
        out.wake(0)
        return out

    out.entries = tuple(acknowledge(snapshot, entry, out, revised) for entry in out.entries)
    moving = next((entry for entry in out.entries if entry.target), None)
    if moving is not None:
        _replace(out, _advance(snapshot, revised, out, moving))
    else:
        chosen = _choose(snapshot, revised, out)
        if chosen is not None and revised.wanted is not None:
            target = revised.wanted.number
            _replace(out, replace(chosen, target=target))
            message = (
                f'node "{chosen.node}": {chosen.current or "no revision"} -> revision {target}'
            )
            if chosen.current == target:
                message = f'node "{chosen.node}" does not run revision {target}: putting it back'
                _forget_attempts(out, chosen, target)
            out.events.append(Event("NodeTargetRevisionChanged", message))
    judge_running(snapshot, revised, out)
    record_installed(snapshot, revised, out)
    _clean_up(snapshot, out)
    return out


def _forget_attempts(out: Stepped, entry: Entry, revision: int) -> None:
    """Delete installer pods that ended long ago and whose results would be taken for new ones."""
    for found in out.installers:
        if found.node == entry.node and found.revision == revision and not found.leaving:
            out.actions.append(Delete(PODS, found.pod))


def _replace(out: Stepped, entry: Entry) -> None:
    out.entries = tuple(entry if old.node == entry.node else old for old in out.entries)


# --- choosing ---------------------------------------------------------------------------------


def _choose(snapshot: Snapshot, revised: Revised, out: Stepped) -> Entry | None:
    """The node to move next: the worst first, the holder of the scheduler's Lease last."""
    wanted = revised.wanted
    if wanted is None or not wanted.ready:
        return None
    strayed = astray(snapshot, out)
    behind = [
        entry
        for entry in out.entries
        if entry.current < wanted.number
        or (entry.current == wanted.number and entry.node in strayed)
    ]
    able = [entry for entry in behind if entry.node not in out.not_ready]
    for entry in behind:
        if entry.node in out.not_ready:
            out.waiting[entry.node] = "the node is not Ready"
    if not able:
        return None
    for entry in out.entries:
        pod = out.operands.get(entry.node)
        unwell = entry.node not in out.not_ready and (pod is None or not pod.ready)
        if entry.current == wanted.number and unwell and entry.node not in strayed:
            # Two schedulers down is worse than one behind.
            out.waiting[entry.node] = f"revision {wanted.number} is not Ready here"
            return None
    for found in out.installers:
        if found.over or found.node in out.not_ready:
            continue
        if found.node in snapshot.nodes:
            out.waiting[found.node] = f"{found.name} has not ended yet"
            return None
    return min(able, key=lambda entry: worth(snapshot, out.operands, entry))


# --- a node on its way ------------------------------------------------------------------------


def _advance(snapshot: Snapshot, revised: Revised, out: Stepped, entry: Entry) -> Entry:
    name = installer_pod_name(entry.node, entry.target, entry.attempt)
    found = next((i for i in out.installers if i.name == name and not i.leaving), None)
    revision = next((r for r in revised.history if r.number == entry.target), None)

    if found is not None and found.stage is Stage.DONE:
        return finished(snapshot, revised, out, entry, found, revision)
    if found is not None and found.swapping:
        # It owns the swap to its end: stopped now, it could leave an unproven scheduler behind.
        return _wait(snapshot, out, entry, found)
    wanted = revised.wanted
    if wanted is not None and wanted.number != entry.target:
        out.events.append(
            Event(
                "NodeTargetRevisionChanged",
                f'node "{entry.node}": revision {wanted.number} instead of {entry.target}, '
                "which it had not reached",
            )
        )
        target = wanted.number if entry.current < wanted.number else 0
        return replace(entry, target=target)
    if revision is None or revision.bad or wanted is None:
        return replace(entry, target=0)
    if found is not None and found.stage is Stage.REFUSED:
        return refused(snapshot, out, entry, found, revision)
    if found is not None and found.stage is Stage.LOST:
        return attempt_failed(snapshot, out, entry, found.message)
    if found is None:
        return _start(snapshot, revised, out, entry, revision, name)
    return _wait(snapshot, out, entry, found)


def _wait(snapshot: Snapshot, out: Stepped, entry: Entry, found: Installer) -> Entry:
    out.waiting[entry.node] = _progress(found)
    if found.created:
        # Being pending for too long becomes a condition; nothing else would wake the pass for it.
        pending = (snapshot.now - found.created).total_seconds()
        out.wake(max(snapshot.settings.rollout.pending_tolerance - pending, 5.0))
    return entry


def _progress(found: Installer) -> str:
    if found.waiting:
        return f"the {found.stage.value} container waits: {found.waiting[0]}: {found.waiting[1]}"
    words = {
        Stage.PENDING: "the installer pod is starting",
        Stage.PREFLIGHT: "kube-scheduler checks the configuration",
        Stage.INSTALLING: "the scheduler is being swapped",
    }
    text = words.get(found.stage, found.stage.value)
    return f"{text}: {found.message}" if found.message else text


def _start(
    snapshot: Snapshot,
    revised: Revised,
    out: Stepped,
    entry: Entry,
    revision: Revision,
    name: str,
) -> Entry:
    rollout = snapshot.settings.rollout
    failed_at = entry.failed_at if entry.attempt else None
    if failed_at and out.backs_off(snapshot, entry.node, entry.attempt, failed_at):
        return entry
    leaving = [i.name for i in out.installers if i.node == entry.node and i.leaving]
    if leaving or name in snapshot.installer_pods:
        out.waiting[entry.node] = f"{(*leaving, name)[0]} is being stopped"
        return entry
    if entry.node in out.not_ready:
        out.waiting[entry.node] = "the node is not Ready"
        return entry
    if not revision.complete:
        missing = sorted(set(PARTS) - set(revision.copies))
        out.waiting[entry.node] = f"revision {revision.number} has lost {', '.join(missing)}"
        return entry
    pod = json.loads((revision.copies[names.POD].get("data") or {})[names.POD_KEY])
    container = pod["spec"]["containers"][0]
    rendered = render_installer_pod(
        snapshot.platform,
        entry.node,
        revision.number,
        entry.attempt,
        operand_image=container["image"],
        operator_image=snapshot.settings.operator_image,
        arguments=container["args"],
        owner_uid=str(revision.status["metadata"]["uid"]),
        settings=InstallerSettings(
            rollout.health_timeout,
            rollout.settling_time,
            keep=tuple(sorted(protected(snapshot, revised.history, out))),
        ),
        content_hash=revision.hash,
    )
    out.waiting[entry.node] = "the installer pod is starting"
    event = Event("InstallerPodCreated", f'installing revision {revision.number} on "{entry.node}"')
    out.actions.append(Create(PODS, rendered, events=(event,)))
    return entry


def _clean_up(snapshot: Snapshot, out: Stepped) -> None:
    """Delete installer pods that nobody waits for; finished ones stay for their logs."""
    wanted = {
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
