"""The way out: node after node what was there before the operator comes back, then our objects go.

The API is the only memory here as well. A node's entry in `status.nodeStatuses` stands for what is
still to be done there; a restore pod that has ended is an attempt, and its result says what came of
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...base import names
from ...base.objects import Object, label
from ...kube.resource import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    KUBE_SCHEDULERS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from ...manifests.pods import InstallerSettings, render_restore_pod, restore_pod_name
from ...model.plan import Action, Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from ...programs.node.result import Verdict
from .installer_pods import Installer
from .node_statuses import Entry, read_entry, worth
from .observe import look
from .result import Stepped


@dataclass(slots=True)
class Removal:
    """How far the way out is.

    Attributes:
        stepped: entries that are left, writes, and what is waited for.
        failures: node -> why the last attempt there did not succeed.
    """

    stepped: Stepped
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether no node has anything of the operator any more."""
        return not self.stepped.entries

    @property
    def progress(self) -> str:
        """One sentence for people."""
        if self.done:
            return (
                "what ran before the operator runs again, and nothing of the operator is left on "
                "the nodes or in the API; it can be uninstalled"
            )
        left = [entry.node for entry in self.stepped.entries]
        waits = {node: self.stepped.waiting.get(node, "comes later") for node in left}
        told = "; ".join(
            f"{node}: {self.failures[node]}; {wait}" if node in self.failures else f"{node}: {wait}"
            for node, wait in waits.items()
        )
        nodes = "1 node" if len(left) == 1 else f"{len(left)} nodes"
        return f"on {nodes} what ran before the operator is still to be brought back: {told}"


def remove(snapshot: Snapshot) -> Removal:
    """The next step on the way out."""
    out = look(snapshot)
    removal = Removal(out)
    out.entries = tuple(replace(entry, target=0) for entry in _left(snapshot, out))
    for entry in out.entries:
        failure = _failure(_last(out, entry.node))
        if failure:
            removal.failures[entry.node] = failure
    if not _is_quiet(snapshot, out):
        return removal
    out.entries = tuple(entry for entry in out.entries if not _restored(snapshot, out, entry))
    if out.entries:
        _try_next(snapshot, removal)
    else:
        out.afterwards.extend(_forget(snapshot))
    return removal


def _left(snapshot: Snapshot, out: Stepped) -> list[Entry]:
    """Nodes on which something of ours may be: those we know, and those that evidently run it."""
    known = [read_entry(raw) for raw in snapshot.status.get("nodeStatuses") or ()]
    uids = {name: str(node["metadata"].get("uid", "")) for name, node in snapshot.nodes.items()}
    kept = [e for e in known if e.node in uids and e.uid in ("", uids[e.node])]
    already = {entry.node for entry in kept}
    running = [node for node, pod in sorted(out.operands.items()) if pod.ours and node in uids]
    return [*kept, *(Entry(node, uids[node]) for node in running if node not in already)]


def _is_quiet(snapshot: Snapshot, out: Stepped) -> bool:
    """Whether no pod works on a node; installers that have not begun are sent away."""
    quiet = True
    for found in out.installers:
        if found.over or found.node not in snapshot.nodes:
            continue
        if found.revision and not found.swapping and not found.leaving:
            out.afterwards.append(Delete(PODS, found.pod))
        if found.node in out.not_ready and not found.revision:
            continue  # its turn may take for ever
        out.waiting[found.node] = f"{found.name} has not ended yet"
        quiet = False
    return quiet


def _last(out: Stepped, node: str) -> Installer | None:
    """The newest attempt on a node, the one that is made now included."""
    attempts = [found for found in out.installers if found.node == node and not found.revision]
    return max(attempts, key=_retry) if attempts else None


def _retry(found: Installer) -> int:
    arguments = found.pod["spec"]["containers"][0].get("args", ())
    return next((int(a.partition("=")[2]) for a in arguments if a.startswith("--retry=")), 0)


def _failure(last: Installer | None) -> str:
    if last is None or not last.over:
        return ""
    if last.result is None:
        return last.message
    if last.result.result is Verdict.RESTORED:
        return ""
    words = f": {last.result.last_words}" if last.result.last_words else ""
    return f"{last.result.reason}{words}"


def _restored(snapshot: Snapshot, out: Stepped, entry: Entry) -> bool:
    """Whether the node is done: its program says so, and the API shows a scheduler not of ours."""
    last, pod = _last(out, entry.node), out.operands.get(entry.node)
    if last is None or last.result is None or last.result.result is not Verdict.RESTORED:
        return False
    if pod is None or pod.ours or not pod.ready:
        patience = snapshot.settings.rollout.health_timeout
        if last.ended is not None and (snapshot.now - last.ended).total_seconds() < patience:
            out.waiting[entry.node] = "the API does not show it as Ready yet"
            out.wake(2.0)
        return False
    message = f'node "{entry.node}" runs what it ran before the operator'
    if last.result.strangers:
        message += f"; left alone: {', '.join(last.result.strangers)}"
    out.events.append(Event("NodeSchedulerRestored", message))
    return True


def _try_next(snapshot: Snapshot, removal: Removal) -> None:
    """Start the next attempt, on one node."""
    out = removal.stepped
    for entry in out.entries:
        if entry.node in out.not_ready:
            out.waiting[entry.node] = "the node is not Ready"
    able = [entry for entry in out.entries if entry.node not in out.not_ready]
    # What did not run on one node will hardly run on the next.
    failing = [entry for entry in able if _failed(_last(out, entry.node))]
    for entry in sorted(failing or able, key=lambda e: worth(snapshot, out.operands, e)):
        if entry.node in out.waiting:
            return  # the API lags behind; then it is done
        last = _last(out, entry.node)
        retry = 0 if last is None else _retry(last) + 1
        if last is not None and _backs_off(snapshot, out, last, retry):
            continue
        if restore_pod_name(entry.node, retry) in snapshot.installer_pods:
            continue
        _start(snapshot, out, entry, retry)
        return


def _failed(last: Installer | None) -> bool:
    return last is not None and last.result is not None and last.result.failed


def _backs_off(snapshot: Snapshot, out: Stepped, last: Installer, retry: int) -> bool:
    pod = out.operands.get(last.node)
    if last.result is not None and pod is not None and not pod.ours and pod.ready:
        return False  # somebody brought another scheduler meanwhile, which is what was asked for
    # A pod that was lost as a whole, by eviction say, does not tell when that was.
    since = last.ended or last.created
    return since is not None and out.backs_off(snapshot, last.node, retry, since)


def _start(snapshot: Snapshot, out: Stepped, entry: Entry, retry: int) -> None:
    rule = snapshot.settings.rollout
    pod = render_restore_pod(
        snapshot.platform,
        entry.node,
        retry,
        snapshot.settings.operator_image,
        InstallerSettings(rule.health_timeout, rule.settling_time),
    )
    out.waiting[entry.node] = "the restore pod is starting"
    message = f'bringing back what ran on "{entry.node}" before the operator'
    out.actions.append(Create(PODS, pod, events=(Event("RestorePodCreated", message),)))


def _forget(snapshot: Snapshot) -> list[Action]:
    """Deletions of everything that the operator owns in the API."""
    owned = [
        *((CONFIG_MAPS, obj) for _, obj in sorted(snapshot.config_maps.items())),
        *((SECRETS, obj) for _, obj in sorted(snapshot.secrets.items()) if _is_ours(obj)),
        *((SERVICE_ACCOUNTS, obj) for _, obj in sorted(snapshot.service_accounts.items())),
        *((PODS, obj) for _, obj in sorted(snapshot.installer_pods.items())),
        *((PODS, obj) for _, obj in sorted(snapshot.guard_pods.items())),
        *((DISRUPTION_BUDGETS, obj) for _, obj in sorted(snapshot.disruption_budgets.items())),
    ]
    actions: list[Action] = [
        Delete(resource, obj)
        for resource, obj in owned
        if "deletionTimestamp" not in obj["metadata"]
    ]
    if "observedConfig" in snapshot.spec:
        spec = {key: value for key, value in snapshot.spec.items() if key != "observedConfig"}
        actions.append(Replace(KUBE_SCHEDULERS, {**(snapshot.kubescheduler or {}), "spec": spec}))
    return actions


def _is_ours(obj: Object) -> bool:
    return label(obj, names.MANAGED_BY_LABEL) == names.PROGRAM
