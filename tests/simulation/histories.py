"""Random histories: what users, nodes, the API server and bad luck can do, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.errors import ApiError, ApiRequest, from_response
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    KUBE_SCHEDULERS,
    PODS,
    SCHEDULER_PROFILES,
    SERVICE_ACCOUNTS,
    ObjectRef,
)

from .scheduler import REFUSAL, STOCK, Behavior
from .swap import Journal
from .world import World

REFUSED, UNHEALTHY, SLOW, CRASHES, CRASHES_LATER, EVICTED, PULL = range(41, 48)
SCRIPT = {
    REFUSED: Behavior(refused=REFUSAL),
    UNHEALTHY: Behavior(ready_after=None),
    SLOW: Behavior(pending_for=6.0, preflight_for=4.0, ready_after=6.0),
    CRASHES: Behavior(lifetimes=(0.5,)),
    CRASHES_LATER: Behavior(lifetimes=(18.0, 0.5)),
    EVICTED: Behavior(evictions=1),
    PULL: Behavior(pull_error_for=20.0),
}
GOOD = range(1, 9)
PROFILES: dict[str, dict[str, Any]] = {
    "good": {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}},
    "packed": {"base": "HighNodeUtilization"},
    "misspelt": {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}},
    "of another queue": {"plugins": {"queueSort": {"disabled": [{"name": "*"}]}}},
}
LAST = 33
"""The configuration that every history ends with."""


class History:
    """One history, written down as it happens."""

    seed_variable = "KSO_SEED"
    """The environment variable that repeats one history."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        # Of their own, so that what else happens in a history does not depend on them.
        self.other_rng = random.Random(f"profiles {seed}")
        self.hand_rng = random.Random(f"hands {seed}")
        self.log: list[str] = []
        nodes = self.rng.choice((1, 1, 1, 2, 3))
        lag = self.rng.choice((0.02, 0.2, 1.0))
        self.world = World(nodes=nodes, seed=seed, lag=lag, script=SCRIPT)
        self.note(f"{nodes} nodes, lag {lag:g} s")
        self._down: set[str] = set()
        self._added = 0
        self._renewals = 0
        self.disturbances = 0

    def note(self, text: str) -> None:
        self.log.append(f"{self.world.clock.now:8.2f} {text}")

    def play(self) -> None:
        """Begin, disturb, heal, and look what came of it."""
        actions = self._actions()
        weights = [weight for weight, _ in actions]
        self._pass_time()
        for _ in range(self.rng.randint(2, 6)):
            _, action = self.rng.choices(actions, weights)[0]
            wishes = (self._edit, self._change_profile, self._change_log_level, self._keep_few)
            self.disturbances += action not in wishes
            action()
            if self.other_rng.random() < 0.1:
                self._edit_a_profile()
            if self.hand_rng.random() < 0.15:
                self._edit_by_hand()
            self._pass_time()
        self._heal()
        self._check_the_end()

    def _pass_time(self) -> None:
        seconds = self.rng.choice((0.05, 0.3, 1.0, 3.0, 6.0, 12.0, 25.0))
        self.world.run(seconds * self.rng.uniform(0.5, 1.5))

    def _actions(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            (8, self._edit),
            (2, self._change_profile),
            (1, self._change_log_level),
            (5, self._kill_at_a_write),
            (1, self._kill),
            (2, self._power_off),
            (2, self._power_on),
            (1, self._replace_node),
            (1, self._add_or_remove_node),
            (3, self._delete_something),
            (1, self._forget_ready),
            (2, self._fail_writes),
            (1, self._lose_answers),
            (1, self._meddle),
            (1, self._relist),
            (1, self._recreate_kubescheduler),
            (1, self._hands_off),
            (2, self._keep_few),
            (1, self._remove),
            (1, self._change_a_manifest),
            (2, self._renew_kubeconfig),
            (3, self._lose_api_server),
        ]

    # --- what can happen ------------------------------------------------------------------------
    def _edit(self) -> None:
        good = self.rng.random() < 0.4
        percentage = self.rng.choice(GOOD) if good else self.rng.choice((*SCRIPT, None))
        self.note(f"edit {percentage}")
        self._spec(lambda: self.world.tune(percentage))

    def _spec(self, write: Callable[[], object]) -> None:
        if self.world.kubescheduler:
            write()

    def _change_profile(self) -> None:
        name = self.rng.choice(("", "LowNodeUtilization", "HighNodeUtilization", "Nonsense"))
        self.note(f"profile {name}")
        self.world.profile(name)

    def _edit_a_profile(self) -> None:
        name = self.other_rng.choice(("default-scheduler", "team-a", "team-b"))
        kind, spec = self.other_rng.choice(tuple(PROFILES.items()))
        exists = self.world.server.find(SCHEDULER_PROFILES, name) is not None
        if exists and self.other_rng.random() < 0.25:
            self.note(f"profile {name} deleted")
            self.world.retract(name)
        else:
            self.note(f"profile {name} {kind}")
            self.world.offer(name, **spec)

    def _change_log_level(self) -> None:
        level = self.rng.choice(("Normal", "Debug"))
        self.note(f"log level {level}")
        self._spec(lambda: self.world.spec(logLevel=level))

    def _keep_few(self) -> None:
        failed, succeeded = self.rng.choice((-1, 1, 2)), self.rng.choice((1, 1, 2))
        self.note(f"limits {failed}, {succeeded}")
        self._spec(
            lambda: self.world.spec(failedRevisionLimit=failed, succeededRevisionLimit=succeeded)
        )

    def _kill_at_a_write(self) -> None:
        connection = self.world.operator.connection
        connection.kill_at = connection.writes + self.rng.randint(1, 6)
        connection.kill_after_effect = self.rng.random() < 0.5
        self.note(f"kill in {connection.kill_at - connection.writes} writes")
        self._edit()
        self.world.run(self.rng.uniform(0.1, 20.0))
        connection.kill_at = None
        self._restart()

    def _kill(self) -> None:
        self.note("kill")
        self.world.operator.kill()
        self._pass_time()
        self._restart()

    def _restart(self) -> None:
        if not self.world.operator.alive:
            self.note("restart")
            self.world.operator.start()

    def _power_off(self) -> None:
        up = [name for name, machine in self.world.machines.items() if machine.up]
        if up:
            name = self.rng.choice(up)
            self.note(f"power off {name}")
            self.world.machines[name].fail()

    def _power_on(self) -> None:
        for name, machine in self.world.machines.items():
            if not machine.up:
                self.note(f"power on {name}")
                machine.recover()

    def _replace_node(self) -> None:
        name = self.rng.choice(sorted(self.world.machines))
        self.note(f"replace {name}")
        self.world.replace_node(name)

    def _add_or_remove_node(self) -> None:
        machines = self.world.machines
        if len(machines) > 1 and self.rng.random() < 0.5:
            name = self.rng.choice(sorted(machines))
            self.note(f"remove {name}")
            self.world.remove_node(name)
        elif len(machines) < 4:
            self._added += 1
            name = f"node-new-{self._added}"
            self.note(f"add {name}")
            self.world.add_node(name)

    def _renew_kubeconfig(self) -> None:
        """Often on all nodes at once, as a certificate's end makes people do."""
        everywhere = self.rng.random() < 0.5
        self._renewals += 1
        for name, machine in sorted(self.world.machines.items()):
            if everywhere or self.rng.random() < 0.5:
                self.note(f"another kubeconfig on {name}")
                machine.renew(f"renewed-{self._renewals}")

    def _owned(self) -> list[ObjectRef]:
        target = self.world.platform.target_namespace
        return [
            resource.ref(obj)
            for resource in (CONFIG_MAPS, SERVICE_ACCOUNTS, PODS, DISRUPTION_BUDGETS)
            for obj in self.world.server.list(resource, target)
        ]

    def _delete_something(self) -> None:
        owned = self._owned()
        if owned:
            ref = self.rng.choice(owned)
            self.note(f"delete {ref}")
            self.world.server.delete("user", ref)

    def _forget_ready(self) -> None:
        revisions = self.world.revisions
        if revisions:
            name = self.rng.choice(revisions).status["metadata"]["name"]
            self.note(f"annotations of {name} removed")
            target = self.world.platform.target_namespace
            self.world.server.edit(
                "user", CONFIG_MAPS, name, lambda o: o["metadata"].pop("annotations", 0), target
            )

    def _fail_writes(self) -> None:
        world, share = self.world, self.rng.choice((0.2, 0.6, 1.0))
        self.note(f"writes fail ({share:g})")

        def fault(verb: str, ref: ObjectRef, sub: str | None) -> ApiError | None:
            if self.rng.random() > share:
                return None
            request = ApiRequest(verb, ref.path, ref.resource, ref.namespace, ref.name, sub)
            return from_response(request, self.rng.choice((403, 500, 503, 429)), "no")

        world.operator.connection.faults.append(fault)
        self._edit()
        self._pass_time()
        world.operator.connection.faults.clear()
        self.note("writes succeed again")

    def _lose_api_server(self) -> None:
        """Several times in a row, as when it is upgraded, and the schedulers end each time."""
        for _ in range(self.rng.randint(1, 4)):
            seconds = self.rng.choice((3.0, 8.0, 20.0, 60.0))
            self.note(f"the API server is away for {seconds:g} s")
            self.world.outage(seconds)
            self._pass_time()

    def _lose_answers(self) -> None:
        self.note("answers are lost")
        connection = self.world.operator.connection
        connection.lost_answers = lambda: self.rng.random() < 0.3
        self._edit()
        self._pass_time()
        connection.lost_answers = lambda: False

    def _meddle(self) -> None:
        """Another client writes the same object, between reading and writing."""
        world, left = self.world, self.rng.randint(1, 8)

        def meddle() -> None:
            nonlocal left
            if left and world.kubescheduler and self.rng.random() < 0.5:
                left -= 1
                mark = str(world.server.version)
                world.server.edit(
                    "user",
                    KUBE_SCHEDULERS,
                    "cluster",
                    lambda o: o["metadata"].update(labels={"mark": mark}),
                )

        self.note("another client writes")
        world.operator.connection.before_write = meddle

    def _relist(self) -> None:
        self.note("relist")
        for informer in self.world.operator.informers:
            if self.rng.random() < 0.5 and self.world.operator.alive:
                informer.relist()

    def _recreate_kubescheduler(self) -> None:
        self.note("KubeScheduler deleted")
        if self.world.kubescheduler:
            self.world.server.delete("user", ObjectRef(KUBE_SCHEDULERS, None, "cluster"))
        self._pass_time()
        self._ensure_kubescheduler()

    def _ensure_kubescheduler(self) -> None:
        if not self.world.kubescheduler:
            self.note("KubeScheduler created")
            body = {"apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler", "spec": {}}
            self.world.server.create(
                "user", KUBE_SCHEDULERS, {**body, "metadata": {"name": "cluster"}}
            )

    def _hands_off(self) -> None:
        self.note("Unmanaged for a while")
        self._spec(lambda: self.world.spec(managementState="Unmanaged"))
        self._edit()
        self._pass_time()
        self._spec(lambda: self.world.spec(managementState="Managed"))

    def _remove(self) -> None:
        self.note("Removed for a while")
        self._spec(lambda: self.world.spec(managementState="Removed"))
        self._pass_time()
        self._spec(lambda: self.world.spec(managementState="Managed"))

    def _change_a_manifest(self) -> None:
        up = [machine for machine in self.world.machines.values() if machine.up]
        machine = self.rng.choice(up) if up else None
        if machine is None or machine.swapping:
            return
        if self.rng.random() < 0.7:
            self.note(f"a user puts a manifest on {machine.name}")
            machine.overwrite(STOCK)
        elif self.world.revisions:  # before, no kube-scheduler is configured for this node
            self.note(f"a user deletes the manifest of {machine.name}")
            machine.journal = machine.journal or Journal(machine.shown, 0)  # not the operator's
            machine.withdraw()

    def _edit_by_hand(self) -> None:
        """A person edits files on a node, or the label of a mirror pod."""
        machine = self.hand_rng.choice(sorted(self.world.machines.values(), key=lambda m: m.name))
        what = self.hand_rng.choice(("manifest", "manifest and label", "file", "mirror pod"))
        number = self.hand_rng.choice((1, 2, 99, 2**31, 2**63 - 1))
        mirror = self.world.server.objects.get(machine.mirror_ref)
        if what == "mirror pod" and mirror is not None:
            self.note(f"the label of {machine.name}'s mirror pod becomes {number}")
            labels = {names.REVISION_LABEL: str(number)}
            namespace = self.world.platform.operand_namespace
            self.world.server.edit(
                "user",
                PODS,
                mirror["metadata"]["name"],
                lambda pod: pod["metadata"]["labels"].update(labels),
                namespace,
            )
        elif machine.up and not machine.swapping and machine.shown > 0 and what != "mirror pod":
            self.note(f"a hand edit of the {what} on {machine.name}")
            if what == "file":
                machine.edit_a_file("edited")
            else:
                machine.edit_by_hand("edited", number if "label" in what else None)

    # --- the end --------------------------------------------------------------------------------
    def _heal(self) -> None:
        self.note("everything heals")
        self._restart()
        self._power_on()
        self._ensure_kubescheduler()
        self.world.profile("")
        for obj in self.world.server.list(SCHEDULER_PROFILES):
            self.world.offer(obj["metadata"]["name"], **PROFILES["good"])
        self.world.spec(managementState="Managed")
        self.world.tune(LAST)

    def _has_the_last_edit(self) -> bool:
        latest = self.world.status.get("latestAvailableRevision") or 0
        return latest > 0 and f'"percentageOfNodesToScore":{LAST}' in self.world.config(latest)

    def _check_the_end(self) -> None:
        world = self.world
        world.run(3.0)  # a late watch has not shown the last edit yet
        world.settle(900)
        # The operator writes nothing while it waits for a look at the disk of a node.
        world.run_until(self._has_the_last_edit, 120, "the last edit counts")
        world.settle(900)
        offered = sorted(o["metadata"]["name"] for o in world.server.list(SCHEDULER_PROFILES))
        assert [world.accepted(name) for name in offered] == ["True"] * len(offered)
        served = sorted({"default-scheduler", *offered}) if offered else []
        assert world.served == served, "the profiles that there are, and no others"
        world.run_until(world.is_guarded, 200, "guards stand, and every kubeconfig is taken up")
        if self.hand_rng.random() < 0.3:
            machine = min(world.machines.values(), key=lambda m: m.name)
            self.note(f"a last hand edit on {machine.name}")
            machine.edit_by_hand("edited at the end")
        world.run_until(self._is_as_installed, 300, "every hand edit is put back")
        world.settle(120)
        world.run(5.0)
        connection, events = world.operator.connection, len(world.operator.recorder.events)
        writes = connection.writes
        world.run(70.0)  # longer than any wait of the operator
        assert connection.writes == writes, f"{connection.writes - writes} writes without a cause"
        assert len(world.operator.recorder.events) == events
        for type_, good in (("Available", "True"), ("Degraded", "False"), ("Progressing", "False")):
            condition = world.operator_condition(type_)
            assert condition["status"] == good, condition

    def _is_as_installed(self) -> bool:
        return all(
            machine.manifest == machine.last_good and not machine.edited_file
            for machine in self.world.machines.values()
        )


H = TypeVar("H", bound=History)


def play(seed: int, kind: type[H] = History) -> H:  # type: ignore[assignment] # the default
    """Run one history; a failure prints how to repeat it."""
    history = kind(seed)
    try:
        history.play()
    except Exception as error:
        log = "\n".join(history.log)
        again = f"{kind.seed_variable}={seed}"
        raise AssertionError(f"history {seed} (again: {again}):\n{log}\n{error}") from error
    return history
