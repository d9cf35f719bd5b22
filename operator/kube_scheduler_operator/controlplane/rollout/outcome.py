"""What came of an attempt to install a revision, and of a revision that already runs.

An installer's word is taken for what happened on its node; what the API shows of the scheduler has
to agree before a node counts as moved, and can prove a revision wrong later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...base import names
from ...base.objects import annotation
from ...base.times import rfc3339, timestamp
from ...model.api_outage import accountable_since, is_excused
from ...model.operand_pods import Operand
from ...model.plan import Event
from ...model.snapshot import Snapshot
from ...programs.node.result import Verdict
from ..revision.history import Revision
from ..revision.revise import Revised
from ..revision.write import record_outcome
from . import installer_pods as installers
from .installer_pods import Installer
from .node_statuses import Entry
from .result import Stepped

UNCERTAIN: Final = 3.0
"""Seconds by which a scheduler may have been Ready for less long than the API shows it.

One because its times are whole seconds; two because what it shows may be over: an installer that
was stopped may just be putting the last good manifest back.
"""


def finished(
    snapshot: Snapshot,
    revised: Revised,
    out: Stepped,
    entry: Entry,
    found: Installer,
    revision: Revision | None,
) -> Entry:
    """Read the result of an installer that has ended."""
    result = found.result
    assert result is not None  # noqa: S101 - that is what DONE means
    if result.result is Verdict.INSTALLED:
        return _installed(snapshot, out, entry, found, revision)
    if result.result is Verdict.SUPERSEDED:
        # Numbers are about to catch up with what is on the node; meanwhile do not ask it again.
        return attempt_failed(snapshot, out, entry, entry.target, result.reason)
    words = f": {result.last_words}" if result.last_words else ""
    message = f'revision {entry.target} failed on node "{entry.node}": {result.reason}{words}'
    under = revised.revision(result.last_good_revision)
    if result.result is Verdict.ROLLED_BACK:
        back = (
            f"revision {result.last_good_revision}"
            if result.last_good_revision
            else "the stock one"
        )
        return _failed(snapshot, out, entry, revision, f"{message}; {back} runs again")
    if under is not None and under.bad:
        # What the node fell back to had failed as well: only a new revision helps.
        return _failed(snapshot, out, entry, revision, message, names.REASON_OPERAND_FAILED)
    # Neither scheduler gets healthy: the node is to blame, the revision may be fine elsewhere.
    reason = names.REASON_OPERAND_FAILED
    return attempt_failed(snapshot, out, entry, entry.target, message, reason)


def _installed(
    snapshot: Snapshot, out: Stepped, entry: Entry, found: Installer, revision: Revision | None
) -> Entry:
    """The installer saw it healthy; the API has to agree, but not for ever."""
    pod = out.operands.get(entry.node)
    begun_with = found.result.kubeconfig if found.result else ""
    # Started again with another kubeconfig, a revision looks as before until the mirror pod is new.
    shown = (
        pod is not None
        and pod.revision == entry.target
        and (not begun_with or pod.kubeconfig == begun_with)
    )
    if pod is not None and shown and pod.ready:
        steps = found.result.steps if found.result else {}
        took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in steps.items())
        message = f'node "{entry.node}" is on revision {entry.target} ({took})'
        out.events.append(Event("NodeCurrentRevisionChanged", message))
        if found.result and found.result.strangers:
            left = ", ".join(found.result.strangers)
            message = f'node "{entry.node}": left alone, for no revision has such a name: {left}'
            out.events.append(Event("UnknownDirectories", message, "Warning"))
        current = max(entry.current, entry.target)
        return replace(entry.forgiven(), current=current, target=0)
    late = entry.node not in out.not_ready and _is_late(snapshot, found, pod if shown else None)
    if pod is not None and shown and (late or _crash_loops(snapshot, pod)):
        words = f": {installers.scheduler_sentence(pod.last_words)}" if pod.last_words else ""
        message = (
            f'revision {entry.target} became healthy on node "{entry.node}" and did not stay so'
        )
        reason = names.REASON_OPERAND_FAILED
        return _failed(snapshot, out, entry, revision, f"{message}{words}", reason)
    if late:
        message = f"revision {entry.target} was installed, but the API does not show it running"
        reason = names.REASON_OPERAND_FAILED
        return attempt_failed(snapshot, out, entry, entry.target, message, reason)
    out.waiting[entry.node] = f"the API does not show revision {entry.target} as Ready yet"
    out.wake(2.0)
    return entry


def _is_late(snapshot: Snapshot, found: Installer, pod: Operand | None) -> bool:
    """Whether the API should show the installed scheduler, `pod`, as Ready by now."""
    since = accountable_since(snapshot)
    if since is None or (pod is not None and pod.crash_looping and is_excused(snapshot, pod)):
        return False
    # The kubelet may have let it wait for minutes because of what is excused.
    moments = (since, found.ended, pod.started if pod is not None else None)
    begun = max(moment for moment in moments if moment is not None)
    return (snapshot.now - begun).total_seconds() >= snapshot.settings.rollout.health_timeout


def _failed(
    snapshot: Snapshot,
    out: Stepped,
    entry: Entry,
    revision: Revision | None,
    message: str,
    reason: str = names.REASON_OPERAND_FALLBACK,
) -> Entry:
    """The revision is to blame: no node may be brought to it any more."""
    time = _now(snapshot)
    if revision is not None:
        event = Event("NodeInstallerFailed", message, "Warning")
        out.judge(revision, record_outcome(revision, names.OUTCOME_FAILED, message, time, event))
    fallback = reason == names.REASON_OPERAND_FALLBACK
    failed = entry.failed(entry.target, reason, message, time, fallback=fallback)
    return replace(failed, target=0)


def refused(
    snapshot: Snapshot, out: Stepped, entry: Entry, found: Installer, revision: Revision
) -> Entry:
    """The operand's own binary said no: this revision is over, and no node was touched."""
    if revision.outcome == names.OUTCOME_INSTALLED:
        message = f"kube-scheduler refuses here what it accepted elsewhere: {found.message}"
        return attempt_failed(snapshot, out, entry, revision.number, message)
    event = Event(
        "RevisionRefused",
        f"kube-scheduler refused revision {revision.number}: {found.message}",
        "Warning",
    )
    time = _now(snapshot)
    outcome = names.OUTCOME_REFUSED
    out.judge(revision, record_outcome(revision, outcome, found.message, time, event))
    return replace(entry, target=0)


def attempt_failed(
    snapshot: Snapshot,
    out: Stepped,
    entry: Entry,
    revision: int,
    message: str,
    reason: str = names.REASON_INSTALLER_FAILED,
) -> Entry:
    """Something other than the revision is to blame: it will be tried again."""
    out.events.append(Event("NodeInstallerFailed", f'node "{entry.node}": {message}', "Warning"))
    return entry.failed(revision, reason, message, _now(snapshot), fallback=False)


# --- what already runs ------------------------------------------------------------------------


def acknowledge(snapshot: Snapshot, entry: Entry, out: Stepped, revised: Revised) -> Entry:
    """Write down what a node evidently runs although nobody waits for it.

    So it is after KubeScheduler was deleted and made again, and after an installer was stopped
    when it had already swapped the scheduler.
    """
    pod = out.operands.get(entry.node)
    if entry.target or entry.node in out.not_ready or pod is None or not pod.ready:
        return entry
    known = revised.revision(pod.revision)
    if known is None or not known.ready or known.bad or known.hash != pod.content_hash:
        return entry
    if known.number <= entry.current:
        return entry
    settling = snapshot.settings.rollout.settling_time + UNCERTAIN
    age = (snapshot.now - pod.ready_since).total_seconds() if pod.ready_since else settling
    left = settling - age
    if left > 0:
        out.wake(left)
        return entry
    message = f'node "{entry.node}" runs revision {known.number} already'
    out.events.append(Event("NodeCurrentRevisionChanged", message))
    return replace(entry.forgiven(), current=known.number)


def _crash_loops(snapshot: Snapshot, pod: Operand) -> bool:
    """Whether a scheduler crashes again and again, and nothing but its revision explains it."""
    often = pod.restarts >= snapshot.settings.rollout.crash_restarts
    return pod.crash_looping and often and not is_excused(snapshot, pod)


def judge_running(snapshot: Snapshot, revised: Revised, out: Stepped) -> None:
    """Blame a revision whose scheduler began to crash soon after it had counted as healthy.

    One that runs although nobody waits for it (see _acknowledge) has no such merits.
    """
    rule = snapshot.settings.rollout
    for entry in out.entries:
        pod = out.operands.get(entry.node)
        if entry.target or entry.node in out.not_ready or pod is None or pod.ready:
            continue
        revision = revised.revision(pod.revision)
        if revision is None or revision.bad or not _crash_loops(snapshot, pod):
            continue
        since = timestamp(annotation(revision.status, names.OUTCOME_TIME_ANNOTATION))
        young = since is not None and (snapshot.now - since).total_seconds() <= rule.probation
        if young or revision.number > entry.current:
            words = f": {installers.scheduler_sentence(pod.last_words)}" if pod.last_words else ""
            message = (
                f'revision {revision.number} was installed on node "{entry.node}" and then '
                f"crashed again and again{words}"
            )
            event = Event("RevisionFailed", message, "Warning")
            outcome = names.OUTCOME_FAILED
            out.judge(revision, record_outcome(revision, outcome, message, _now(snapshot), event))


def record_installed(snapshot: Snapshot, revised: Revised, out: Stepped) -> None:
    """A revision counts as good from the first node on which it was healthy."""
    wanted = revised.wanted
    busy = {entry.target for entry in out.entries}
    current = {entry.current for entry in out.entries}
    for revision in revised.history:
        gone = (names.OUTCOME_SUPERSEDED, names.OUTCOME_WITHDRAWN)
        done = revision.outcome not in ("", *gone)
        if done or not revision.ready or revision.number in out.judged:
            continue
        if revision.number in current:
            outcome, message = names.OUTCOME_INSTALLED, ""
        elif revision.outcome in gone:
            continue
        elif wanted is not None and revision.number < wanted.number and revision.number not in busy:
            outcome, message = names.OUTCOME_SUPERSEDED, "a newer revision came first"
        else:
            continue
        out.afterwards.extend(record_outcome(revision, outcome, message, _now(snapshot)))


def _now(snapshot: Snapshot) -> str:
    return rfc3339(snapshot.now)
