"""Installer pods: made, waited for, and told that their turn has come."""

from __future__ import annotations

import json

from ...base import names
from ...kube.resource import PODS
from ...manifests.pods import InstallerSettings, installer_pod_name, render_installer_pod
from ...model.plan import Action, Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from ..revision.history import Revision
from ..revision.revise import Revised
from .installer_pods import Installer, Stage
from .node_statuses import Entry
from .outcome import attempt_failed, refused
from .prune import protected
from .result import Stepped


def prepare(
    snapshot: Snapshot, revised: Revised, out: Stepped, entry: Entry, wanted: Revision
) -> Entry:
    """See to it that a node whose turn has not come has the wanted revision checked and staged."""
    number = wanted.number
    found = out.installer(installer_pod_name(entry.node, number, entry.attempts(number)))
    if found is not None and found.stage is Stage.DONE and entry.current == number:
        forget_attempts(out, entry, number)
        return entry
    return carry_on(snapshot, revised, out, entry, wanted, found)


def carry_on(
    snapshot: Snapshot,
    revised: Revised,
    out: Stepped,
    entry: Entry,
    revision: Revision,
    found: Installer | None,
) -> Entry:
    """Bring a node closer to a revision, as far as `entry` says that it may go.

    Args:
        snapshot: what was seen.
        revised: all revisions.
        out: what the step found.
        entry: the node.
        revision: where it goes.
        found: the installer pod of this attempt, if there is one.
    """
    if found is None:
        start(snapshot, revised, out, entry, revision, out.actions)
        return entry
    if found.stage is Stage.REFUSED:
        return refused(snapshot, out, entry, found, revision)
    if found.stage is Stage.LOST:
        return attempt_failed(snapshot, out, entry, revision.number, found.message)
    if entry.target == revision.number and not found.go_ahead:
        give_go_ahead(out, found, out.actions)
    return wait(snapshot, out, entry, found)


def start(
    snapshot: Snapshot,
    revised: Revised,
    out: Stepped,
    entry: Entry,
    revision: Revision,
    actions: list[Action],
) -> None:
    """Create the installer pod of the next attempt, if nothing speaks against it.

    It may swap at once if `entry` says that its node is on its way to `revision`.

    Args:
        snapshot: what was seen.
        revised: all revisions.
        out: what the step found; says what is waited for if the pod cannot be made yet.
        entry: the node.
        revision: what to install.
        actions: where the write goes.
    """
    rollout = snapshot.settings.rollout
    attempt = entry.attempts(revision.number)
    name = installer_pod_name(entry.node, revision.number, attempt)
    failed_at = entry.failed_at if attempt else None
    if failed_at and out.backs_off(snapshot, entry.node, attempt, failed_at):
        return
    before = [i.name for i in out.installers if i.node == entry.node and i.busy]
    if before or name in snapshot.installer_pods:
        out.waiting[entry.node] = f"{(*before, name)[0]} is being stopped"
        return
    if entry.node in out.not_ready:
        out.waiting[entry.node] = "the node is not Ready"
        return
    if not revision.complete:
        lost = ", ".join(revision.missing)
        out.waiting[entry.node] = f"revision {revision.number} has lost {lost}"
        return
    pod = json.loads((revision.copies[names.POD].get("data") or {})[names.POD_KEY])
    container = pod["spec"]["containers"][0]
    rendered = render_installer_pod(
        snapshot.platform,
        entry.node,
        revision.number,
        attempt,
        operand_image=container["image"],
        operator_image=snapshot.settings.operator_image,
        arguments=container["args"],
        owner_uid=str(revision.status["metadata"]["uid"]),
        settings=InstallerSettings(
            rollout.health_timeout,
            rollout.settling_time,
            go_ahead=entry.target == revision.number,
            keep=tuple(sorted(protected(snapshot, revised.history, out))),
        ),
        content_hash=revision.hash,
    )
    out.waiting[entry.node] = "the installer pod is starting"
    event = Event("InstallerPodCreated", f'installing revision {revision.number} on "{entry.node}"')
    actions.append(Create(PODS, rendered, events=(event,)))


def give_go_ahead(out: Stepped, found: Installer, actions: list[Action]) -> None:
    """Tell an installer that it may swap."""
    metadata = found.pod["metadata"]
    annotations = {**(metadata.get("annotations") or {}), names.GO_AHEAD_ANNOTATION: names.GO_AHEAD}
    pod = {**found.pod, "metadata": {**metadata, "annotations": annotations}}
    actions.append(Replace(PODS, pod))
    out.waiting[found.node] = "the installer is told that its turn has come"


def wait(snapshot: Snapshot, out: Stepped, entry: Entry, found: Installer) -> Entry:
    """Nothing to do but to say what is waited for."""
    out.waiting.setdefault(entry.node, _progress(found))
    if found.created and found.stage is not Stage.STAGED:
        # Being pending for too long becomes a condition; nothing else would wake the pass for it.
        pending = (snapshot.now - found.created).total_seconds()
        out.wake(max(snapshot.settings.rollout.pending_tolerance - pending, 5.0))
    return entry


def _progress(found: Installer) -> str:
    if found.waiting:
        why = found.problem or f"{found.waiting[0]}: {found.waiting[1]}"
        return f"the installer pod waits: {why}"
    words = {
        Stage.PENDING: "the installer pod is starting",
        Stage.PREFLIGHT: "kube-scheduler checks the configuration",
        Stage.STAGING: "the revision is put on the node's disk",
        Stage.STAGED: "checked and staged, waiting for its turn",
        Stage.INSTALLING: "the scheduler is being swapped",
    }
    text = words.get(found.stage, found.stage.value)
    return f"{text}: {found.message}" if found.message else text


def forget_attempts(out: Stepped, entry: Entry, revision: int) -> None:
    """Delete installer pods that ended long ago and whose results would be taken for new ones."""
    for found in out.installers:
        ended = found.node == entry.node and found.revision == revision and found.over
        if ended and not found.leaving:
            out.actions.append(Delete(PODS, found.pod))
