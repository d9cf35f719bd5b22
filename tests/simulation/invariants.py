"""What must hold after every step of every history, each rule a function with its name.

The rules look at the truth: the API server's objects and the machines, never at what the operator
assumes. Where the operator observes changes late, they allow for that delay.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.objects import label
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    KUBE_SCHEDULERS,
    NODES,
    OPERATOR_SETTINGS,
    PODS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    SERVICE_ACCOUNTS,
)
from kube_scheduler_operator.node.protocol.upgrade_request import tag_of, version_of
from kube_scheduler_operator.operator.controlplane.revision.history import Revision, read
from kube_scheduler_operator.operator.engine.watches import SECONDARY_KINDS

from ..imitation.connection import ACTOR
from .scheduler import GOOD

if TYPE_CHECKING:
    from ..imitation.apiserver import Change
    from .machine import Machine
    from .world import World

GRACE = 3.0
"""Seconds after which the operator is expected to know."""

BUSY = 120
"""Writes within one second that no honest plan needs."""

UNNOTICED = 60.0
"""Seconds after which an outage must be in the conditions."""

Status = Mapping[str, Any]


class ViolatedError(AssertionError):
    """A rule does not hold."""


class Invariants:
    """Watches a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.contents: dict[int, dict[str, Any]] = {}
        self.newest = 0
        self.writes: deque[float] = deque()
        self.unhealthy_since: dict[str, float] = {}
        self.down_since: dict[str, float] = {}
        self.removed_until = -math.inf
        self.up_since: dict[str, float] = {}
        self.vanished: dict[str, float] = {}
        self.unschedulable_since: float | None = None
        self.checks = 0

    @classmethod
    def rules(cls) -> set[str]:
        """The names of all rules."""
        return set(re.findall(r'\.fail\(\s*"([^"]+)"', inspect.getsource(cls)))

    # --- after every committed write ------------------------------------------------------------
    def changed(self, change: Change) -> None:
        self._note(change)
        if change.actor != ACTOR:
            return
        self._writes_in_moderation(change)
        self._touches_only_its_own(change)
        resource = change.ref.resource
        if resource == CONFIG_MAPS:
            self._config_map_changed(change)
        labels = change.new["metadata"].get("labels") or {}
        if (
            labels.get("app") == names.INSTALLER
            and "deletionTimestamp" not in (change.new["metadata"])
        ):
            if change.kind == "ADDED":
                self._prepares_only_what_may_be_installed(change)
            if change.kind != "DELETED":
                self._swaps_only_what_was_announced(change)
        if resource == KUBE_SCHEDULERS:
            old = (change.old or {}).get("status") or {}
            new = change.new.get("status") or {}
            self._advertises_only_complete_revisions(old, new)
            self._current_means_healthy(old, new)
            self._nodes_move_one_after_the_other(old, new)

    def _note(self, change: Change) -> None:
        """Note what later checks need, also of writes of other clients."""
        if change.ref.resource == CONFIG_MAPS:
            if change.kind == "DELETED" or change.actor != ACTOR:
                self.vanished[change.ref.name] = self.world.clock.now
            self._note_revisions()
        if change.ref.resource == KUBE_SCHEDULERS:
            states = [(obj or {}).get("spec", {}) for obj in (change.old, change.new)]
            if any(spec.get("managementState") == "Removed" for spec in states):
                self.removed_until = self.world.clock.now

    def _config_map_changed(self, change: Change) -> None:
        if change.kind == "DELETED":
            self._only_unused_revisions_are_pruned(change)
            return
        self._numbers_have_no_gaps(change)
        self._is_ready_only_when_complete(change)
        self._content_never_changes(change)
        self._only_bad_revisions_fail(change)

    def _note_revisions(self) -> None:
        for revision in self.world.revisions:
            if revision.ready and revision.intact and revision.number not in self.contents:
                self.contents[revision.number] = dict(revision.content.parts)
                self.newest = max(self.newest, revision.number)

    def _writes_in_moderation(self, change: Change) -> None:
        now = self.world.clock.now
        self.writes.append(now)
        while self.writes[0] < now - 1.0:
            self.writes.popleft()
        if len(self.writes) > BUSY:
            self.fail(
                "the operator runs hot", f"{len(self.writes)} writes within 1 s: {change.ref}"
            )

    def _touches_only_its_own(self, change: Change) -> None:
        ref = change.ref
        ours = ref.namespace == self.world.platform.target_namespace
        if ref.resource == KUBE_SCHEDULERS and change.old is not None:
            old, new = change.old["spec"], change.new["spec"]
            changed = {key for key in {*old, *new} if old.get(key) != new.get(key)}
            allowed = change.kind == "MODIFIED" and changed <= {"observedConfig"}
        elif ref.resource in (OPERATOR_SETTINGS, SCHEDULER_PROFILES, SECONDARY_SCHEDULERS):
            same = (change.old or {}).get("spec") == change.new["spec"]
            allowed = change.kind == "MODIFIED" and same
            if not self.world.platform.owns_static_pods:
                allowed |= ref.name == self.world.settings.managed_scheduler
        elif ref.resource == CLUSTER_OPERATORS:
            allowed = ref.name == names.CLUSTEROPERATOR and change.kind != "DELETED"
        elif label(change.new, names.SECONDARY_LABEL) and ref.resource != PODS:
            # Made for a secondary scheduler; the operator itself deletes only its old ConfigMaps.
            gone = change.kind == "DELETED"
            allowed = ref.resource in SECONDARY_KINDS and (ref.resource == CONFIG_MAPS or not gone)
        elif ref.resource == PODS and self.world.platform.owns_static_pods:
            only_deleted = change.old is None or "deletionTimestamp" in change.new["metadata"]
            allowed = ours and (
                only_deleted
                or change.kind == "DELETED"
                or _only_gets_permission(change.old or {}, change.new)
            )
        else:
            allowed = ours and ref.resource in (CONFIG_MAPS, SERVICE_ACCOUNTS, DISRUPTION_BUDGETS)
        if not allowed:
            self.fail("it writes only what it owns", f"{change.kind} {ref}")

    def _numbers_have_no_gaps(self, change: Change) -> None:
        name = change.ref.name
        prefix = f"{names.REVISION_STATUS}-"
        if change.kind != "ADDED" or not name.startswith(prefix):
            return
        number = int(name.removeprefix(prefix))
        newest = max([self.newest, *(machine.shown for machine in self.world.machines.values())])
        if number > newest + 1:
            self.fail("revisions have no gaps", f"{name} although the newest is {newest}")
        if number < newest:
            self.fail("numbers only grow", f"{name} although the newest is {newest}")

    def _is_ready_only_when_complete(self, change: Change) -> None:
        was_ready = change.old is not None and any(
            revision.ready for revision in read({change.ref.name: change.old}, KUBEADM.parts)
        )
        for revision in read({change.ref.name: change.new}, KUBEADM.parts):
            if revision.ready and not was_ready:
                self._is_complete(revision.number, "a revision is ready only when it is complete")

    def _is_complete(self, number: int, rule: str) -> None:
        now = self.world.clock.now
        missing = []
        revision = next((r for r in self.world.revisions if r.number == number), None)
        if revision is None or not revision.ready:
            missing.append(f"{names.REVISION_STATUS}-{number}")
        objects = self.world.server.objects
        refs = [self.world.config_map_ref(f"{part}-{number}") for part in KUBEADM.parts]
        missing += [ref.name for ref in refs if not objects.get(ref, {}).get("immutable")]
        # An object that another client has just deleted may not be observed yet.
        missing = [name for name in missing if now - self.vanished.get(name, -1e9) > GRACE]
        if missing:
            self.fail(rule, f"revision {number} lacks {missing}")

    def _content_never_changes(self, change: Change) -> None:
        for part in KUBEADM.parts:
            prefix = f"{part}-"
            digits = change.ref.name.removeprefix(prefix)
            if not change.ref.name.startswith(prefix) or not digits.isdecimal():
                continue
            known = self.contents.get(int(digits))
            if known is not None and known[part] != change.new.get("data"):
                self.fail("the content of a revision never changes", str(change.ref))

    def _only_bad_revisions_fail(self, change: Change) -> None:
        for revision in read({change.ref.name: change.new}, KUBEADM.parts):
            parts = self.contents.get(revision.number)
            if revision.outcome != names.OUTCOME_FAILED or parts is None:
                continue
            config = json.loads(parts[names.CONFIG][names.CONFIG_KEY])
            behavior = self.world.script.get(config.get("percentageOfNodesToScore", -1), GOOD)
            image = json.loads(parts[names.POD][names.POD_KEY])["spec"]["containers"][0]["image"]
            of_image = [m.of_image.get(image, GOOD) for m in self.world.machines.values()]
            if behavior.is_harmless and all(one.is_harmless for one in of_image):
                self.fail(
                    "only a bad revision is marked as failed", f"{change.ref}: {revision.message}"
                )

    def _only_unused_revisions_are_pruned(self, change: Change) -> None:
        old = change.old or {}
        for revision in read({change.ref.name: old}, KUBEADM.parts):
            if not revision.ready or names.MANAGED_BY_LABEL not in old["metadata"]["labels"]:
                continue  # never finished, or hidden from the operator and about to be made again
            removed = self.world.kubescheduler["spec"].get("managementState") == "Removed"
            advertised = self.world.status.get("latestAvailableRevision", 0)
            if removed and revision.number > advertised:
                self.contents.pop(
                    revision.number, None
                )  # it was never used: the number is free again
            needed: set[int | None] = set() if removed else {self.newest}
            for entry in self.world.entries:
                needed |= {entry.get("currentRevision"), entry.get("targetRevision")}
            needed |= {machine.shown for machine in self.world.machines.values() if machine.up}
            if revision.number in needed:
                self.fail("only unused revisions are pruned", f"{change.ref}; needed: {needed}")

    def _swaps_only_what_was_announced(self, change: Change) -> None:
        pod = change.new
        if names.PERMISSION_ANNOTATION not in pod["metadata"].get("annotations", {}):
            return
        node, number = pod["spec"]["nodeName"], _revision_of(pod)
        entry = next((e for e in self.world.entries if e["nodeName"] == node), {})
        if entry.get("targetRevision") != number:
            self.fail("a node's target is announced first", f"{change.ref}, but {entry}")
        revision = next((r for r in self.world.revisions if r.number == number), None)
        if revision is not None and revision.bad:
            self.fail("a bad revision is not installed", f"{change.ref}: {revision.outcome}")

    def _prepares_only_what_may_be_installed(self, change: Change) -> None:
        pod = change.new
        node = pod["spec"]["nodeName"]
        if names.INSTALLER_REVISION_LABEL not in pod["metadata"]["labels"]:
            state = self.world.kubescheduler.get("spec", {}).get("managementState")
            if state != "Removed" and self.world.clock.now - self.removed_until > GRACE:
                self.fail("a node is restored only during removal", str(change.ref))
            return
        number = _revision_of(pod)
        entry = next((e for e in self.world.entries if e["nodeName"] == node), {})
        if entry.get("lastFailedRevision") == number and "lastFailedTime" in entry:
            self._gives_a_node_time(change, entry)
        if number < entry.get("currentRevision", 0):
            self.fail("no older revision replaces a newer one", f"{change.ref}, but {entry}")
        self._is_complete(number, "only complete revisions are installed")
        revision = next((r for r in self.world.revisions if r.number == number), None)
        if revision is not None and revision.bad:
            self.fail("a bad revision is not installed", f"{change.ref}: {revision.outcome}")

    def _gives_a_node_time(self, change: Change, entry: Status) -> None:
        failures = entry.get("lastFailedCount", 0) + entry.get("lastFallbackCount", 0)
        failed = datetime.fromisoformat(entry["lastFailedTime"].replace("Z", "+00:00"))
        passed = (self.world.clock.wall() - failed).total_seconds()
        if passed < min(10.0 * 1.5 ** min(failures, 30), 600.0) - 1.0:
            detail = f"{change.ref} {passed:.1f} s after failure {failures}"
            self.fail("attempts are not made in a hurry", detail)

    def _advertises_only_complete_revisions(self, old: Status, new: Status) -> None:
        latest = new.get("latestAvailableRevision", 0)
        if latest and latest != old.get("latestAvailableRevision", 0):
            self._is_complete(latest, "only a complete revision is advertised")

    def _current_means_healthy(self, old: Status, new: Status) -> None:
        before = {e["nodeName"]: e.get("currentRevision", 0) for e in old.get("nodeStatuses") or ()}
        for entry in new.get("nodeStatuses") or ():
            current, node = entry.get("currentRevision", 0), entry["nodeName"]
            machine = self.world.machines.get(node)
            if current == before.get(node, 0) or machine is None:
                continue
            settling = self.world.settings.rollout.settling_time
            process = machine.process
            steady = (
                process is not None
                and process.manifest.revision == current
                and process.ready_since is not None
                and self.world.clock.now - process.ready_since >= settling
            )
            if not steady and current not in machine.proven:
                self.fail("currentRevision means healthy", f"{node}: {current} was never healthy")
            if not machine.healthy and self._known_unhealthy_for(node) > GRACE:
                self.fail("currentRevision means healthy", f"{node} is not Ready any more")

    def _nodes_move_one_after_the_other(self, old: Status, new: Status) -> None:
        before = {e["nodeName"]: e.get("targetRevision", 0) for e in old.get("nodeStatuses") or ()}
        for entry in new.get("nodeStatuses") or ():
            node, target = entry["nodeName"], entry.get("targetRevision", 0)
            if not target or before.get(node) == target or node not in self.world.machines:
                continue
            if before.get(node) == 0:
                self._may_move(node, target, new)
            revision = next((r for r in self.world.revisions if r.number == target), None)
            if revision is not None and revision.bad:
                self.fail("no node is brought to a bad revision", f"{node} -> {target}")

    def _may_move(self, node: str, target: int, status: Status) -> None:
        machines = self.world.machines
        down_since = self.down_since.get(node)
        if down_since is not None and self.world.clock.now - down_since > GRACE:
            self.fail("a node that is not Ready is skipped", f"{node} -> {target}")
        others = [m for name, m in machines.items() if name != node and m.up]
        entries = status.get("nodeStatuses") or ()
        is_repair = any(
            e.get("currentRevision") == target for e in entries if e["nodeName"] == node
        )
        if not is_repair:
            self._all_nodes_agree(node, target, status)
        if any(m.swapping for m in others):
            self.fail("one node at a time", f"{node} -> {target} while another one swaps")
        process = machines[node].process
        if not others or process is None or process.ready_since is None:
            return
        known = self.world.clock.now - process.ready_since > GRACE
        if known and all(self._unhealthy_for(m.name) > GRACE for m in others):
            self.fail("a scheduler always runs", f"{node} -> {target}, but no other is healthy")
        for entry in () if is_repair else entries:
            other = machines.get(entry["nodeName"])
            moved = entry.get("currentRevision") == target and other in others
            if moved and self._unhealthy_for(entry["nodeName"]) > GRACE:
                self.fail("the next node waits until the first is Ready", f"{node} -> {target}")

    def _all_nodes_agree(self, node: str, target: int, status: Status) -> None:
        """No node changes its scheduler for a revision that another one cannot have."""
        now = self.world.clock.now
        for entry in status.get("nodeStatuses") or ():
            other = self.world.machines.get(entry["nodeName"])
            if other is None or not other.up or entry["nodeName"] == node:
                continue
            steady = now - max(self.up_since.get(other.name, 0.0), other.born) > GRACE
            behind = entry.get("currentRevision", 0) < target and other.shown < target
            if steady and behind and target not in other.staged and not self._waits(other, target):
                self.fail(
                    "all nodes agree before one moves", f"{node} -> {target} without {other.name}"
                )

    def _waits(self, machine: Machine, target: int) -> bool:
        """Whether kubeadm works on a machine, or has not upgraded it yet."""
        pod = self.world.config_map(f"{names.POD}-{target}")["data"][names.POD_KEY]
        image = json.loads(pod)["spec"]["containers"][0]["image"]
        if machine.work or machine.stock_image:
            return True
        return version_of(image) != version_of(machine.api_server)

    def _unhealthy_for(self, node: str) -> float:
        """Seconds since it could have been seen."""
        since = self.unhealthy_since.get(node)
        if since is None:
            return 0.0
        return self.world.clock.now - max(since, self.up_since.get(node, since))

    def _known_unhealthy_for(self, node: str) -> float:
        """Seconds during which the operator could have seen it."""
        since = self.unhealthy_since.get(node)
        if since is None:
            return 0.0
        return min(self._unhealthy_for(node), self.world.clock.now - self.world.server.back_since)

    # --- after every step -----------------------------------------------------------------------
    def check(self) -> None:
        self.checks += 1
        world = self.world
        for name, machine in world.machines.items():
            if machine.up:
                if self.down_since.pop(name, None) is not None:
                    self.up_since[name] = world.clock.now
            else:
                self.down_since.setdefault(name, world.clock.now)
            if machine.healthy:
                self.unhealthy_since.pop(name, None)
            else:
                self.unhealthy_since.setdefault(name, world.clock.now)
        self._at_most_one_machine_swaps()
        self._no_machine_is_left_without_a_manifest()
        self._no_scheduler_is_newer_than_its_api_server()
        self._an_outage_is_not_called_available()
        operator = world.operator
        if operator.connection.unconditional:
            self.fail("every write is conditional", str(operator.connection.unconditional))
        for error in operator.connection.answers:
            if error.status == 422:
                self.fail("it asks for nothing invalid", str(error))
        operator.connection.answers.clear()

    def _at_most_one_machine_swaps(self) -> None:
        swapping = [m.name for m in self.world.machines.values() if m.swapping]
        if len(swapping) > 1:
            self.fail("one node at a time", f"{swapping} swap at once")

    def _no_machine_is_left_without_a_manifest(self) -> None:
        for machine in self.world.machines.values():
            if (
                machine.up
                and machine.manifest is None
                and not machine.swapping
                and not machine.removed
                and machine.journal is None
            ):
                self.fail("no node is left without a scheduler", machine.name)

    def _no_scheduler_is_newer_than_its_api_server(self) -> None:
        for machine in self.world.machines.values():
            manifest, server = machine.manifest, machine.api_server
            if manifest is None or not manifest.revision or machine.work:
                continue
            if tag_of(manifest.image) == tag_of(server):
                continue
            own, of_server = version_of(manifest.image), version_of(server)
            if own is not None and of_server is not None and own > of_server:
                detail = f"{machine.name}: {manifest.image} beside {server}"
                self.fail("no scheduler is newer than its API server", detail)

    def _an_outage_is_not_called_available(self) -> None:
        world = self.world
        now = world.clock.now
        operator = world.operator
        if any(m.healthy for m in world.machines.values()):
            self.unschedulable_since = None
            return
        if self.unschedulable_since is None:
            self.unschedulable_since = now
        able = operator.alive and not operator.connection.faults and not operator.trouble
        known_for = now - max(self.unschedulable_since, operator.started_at)
        claimed = world.condition(names.STATIC_PODS_AVAILABLE) == "True"
        if able and known_for > UNNOTICED and claimed:
            self.fail("Available means that pods get scheduled", f"outage of {known_for:.0f} s")

    def fail(self, rule: str, detail: str) -> None:
        raise ViolatedError(f"{rule}: {detail}\n{self.world}")


def _only_gets_permission(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether only the permission to roll out, or the known hand edit, of a pod was changed."""
    annotations = {
        key: value
        for key, value in new["metadata"].get("annotations", {}).items()
        if key not in (names.PERMISSION_ANNOTATION, names.KNOWN_EDIT_ANNOTATION)
    }
    before = dict(old["metadata"].get("annotations", {}))
    before.pop(names.KNOWN_EDIT_ANNOTATION, None)
    return bool(
        annotations == before
        and new["spec"] == old["spec"]
        and new.get("status") == old.get("status")
    )


def _revision_of(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"]["labels"][names.INSTALLER_REVISION_LABEL])


def revisions_are_complete_and_in_order(revisions: tuple[Revision, ...]) -> None:
    """Nothing half-made is left, and no number is missing (of so few, none is pruned)."""
    numbers = [revision.number for revision in revisions]
    assert numbers == list(range(1, len(numbers) + 1)), numbers
    for revision in revisions:
        assert revision.ready, f"revision {revision.number} is not ready"
        assert revision.intact, f"revision {revision.number} is not what it was"
        assert revision.status["data"]["revision"] == str(revision.number)


def configuration(world: World, number: int) -> dict[str, Any]:
    """The KubeSchedulerConfiguration of a revision."""
    found: dict[str, Any] = json.loads(world.config(number))
    return found


__all__ = [
    "NODES",
    "Invariants",
    "ViolatedError",
    "configuration",
    "revisions_are_complete_and_in_order",
]
