"""One cluster in twenty states: every command and condition against what is true there.

The operator's own reconcile reports, the commands read the same objects, and a row of the table has
the truth. No two may disagree, and none may be silent about what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.base.recognition import PlatformDecision, Recognition
from kube_scheduler_operator.base.times import timestamp
from kube_scheduler_operator.cli.rollout import follow_rollout
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    LEASES,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    SECONDARY_SCHEDULERS,
    SERVICES,
    Resource,
)
from kube_scheduler_operator.operator.model.snapshot import AssignmentWay, Snapshot
from kube_scheduler_operator.operator.status.conditions import condition_in
from kube_scheduler_operator.simulate import diagnosis, pending, why
from kube_scheduler_operator.simulate.diagnosis import Diagnosis
from kube_scheduler_operator.simulate.kinds import Object as WorldObject
from kube_scheduler_operator.simulate.probes import Acceptance
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.shared_runs import Runs
from kube_scheduler_operator.simulate.world import World

from ... import builders
from ...consistency import (
    OUTDATED,
    Truth,
    expect_assigned,
    expect_check,
    expect_secondary,
    expect_status,
    expect_waiting,
    expect_watch,
    kinds_of,
)
from ...imitation import kube_scheduler
from ...imitation.kubelet import lease_spec
from ...imitation.workloads import roll_out
from ..fake_cluster import FakeCluster
from .conftest import Cluster
from .published import publish

SPACE = MANAGED.target_namespace
OURS, PACKED = "managed-scheduler", "packed"
BOTH = frozenset({OURS, PACKED})
OPERATOR = (MANAGED.operator_namespace, MANAGED.operator.lease)
EKS = PlatformDecision(
    Recognition(MANAGED, "EKS", "the API server is v1.35.4-eks-1"), remember=True
)
POLICY = (MUTATING_POLICIES, MUTATING_POLICY_BINDINGS)
GOOD_PROFILE: dict[str, Any] = {"percentageOfNodesToScore": 7}
BAD_PROFILE: dict[str, Any] = {"percentageOfNodesToScore": "many"}
REFUSAL = "no plugin x"


class OneCluster(FakeCluster):
    """The operator, its managed scheduler and a SecondaryScheduler that gets Pods by assignment."""

    def __init__(self) -> None:
        super().__init__(MANAGED, EKS)
        self.leads = {OURS, PACKED}
        self.operator_runs = True
        self.unlimited = False
        self.good = ""  # the only configuration that the kube-scheduler of `packed` takes
        for kind in POLICY:
            self.make(kind, names.ASSIGNMENT)
        self.make(
            DEPLOYMENTS,
            MANAGED.operator.deployment,
            MANAGED.operator_namespace,
            spec={"replicas": 2},
            status={"observedGeneration": 1, "readyReplicas": 2},
        )
        self.profile("good", PACKED, **GOOD_PROFILE)
        self.packed()
        self.settle()

    def packed(self, **spec: Any) -> None:
        profiles = [{"schedulerName": PACKED}]
        assign = {"podSelector": {"matchLabels": {"app": "batch"}}}
        self.secondary(PACKED, **{"profiles": profiles, "assign": assign, "replicas": 2, **spec})

    def make(
        self, resource: Resource, name: str, namespace: str | None = None, **fields: Any
    ) -> None:
        """An object of the installation, or of another client."""
        place = {"namespace": namespace} if namespace else {}
        metadata = {"name": name, "generation": 1, **place}
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        self.keep(resource, {**head, **fields})

    # --- the operator ---------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        self.renew()
        taken = super().snapshot()
        seen = {
            place: renewed
            for place, lease in taken.secondaries.leases.items()
            if (renewed := timestamp(lease["spec"].get("renewTime"))) is not None
        }
        secondaries = replace(taken.secondaries, leases_seen=seen)
        return replace(taken, secondaries=secondaries, assignment_way=self.way)

    @property
    def way(self) -> AssignmentWay:
        """As the operator finds it out (tests/unit/operator/engine has its requests)."""
        if all(self.find(kind, names.ASSIGNMENT) is not None for kind in POLICY):
            return AssignmentWay.POLICY
        if self.find(MUTATING_WEBHOOKS, names.ASSIGNMENT) is not None:
            service = self.find(SERVICES, names.WEBHOOK, MANAGED.operator_namespace)
            return AssignmentWay.WEBHOOK if service else AssignmentWay.NO_SERVICE
        return AssignmentWay.NONE_POLICY

    def renew(self) -> None:
        """Each leader renews its Lease."""
        for name in self.leads:
            for pod in self.pods(name)[:1]:
                self.lease(SPACE, name, f"{pod['metadata']['name']}_x")
        if self.operator_runs:
            self.lease(*OPERATOR, "operator-0_x")

    def lease(self, namespace: str, name: str, holder: str) -> None:
        self.make(LEASES, name, namespace, spec=lease_spec(holder, self.clock.stamp()))

    def _run_workloads(self) -> None:
        for deployment in self.list(DEPLOYMENTS):
            metadata = deployment["metadata"]
            labels = deployment["spec"].get("template", {}).get("metadata", {}).get("labels", {})
            is_refused = self.good and labels.get(names.CONFIG_HASH_LABEL) != self.good
            is_new = (
                deployment.get("status", {}).get("observedGeneration") != metadata["generation"]
            )
            if metadata["name"] == PACKED and is_refused and is_new:
                roll_out(self.server, deployment, self.clock.stamp(), REFUSAL)
        super()._run_workloads()

    def later(self, seconds: float = 120.0) -> None:
        """Time passes; each process that runs works."""
        self.clock.run(seconds)
        self.renew()
        if self.operator_runs:
            self.settle()

    # --- what breaks ----------------------------------------------------------------------------

    def pods(self, name: str) -> list[Any]:
        return [
            pod
            for pod in self.server.list(PODS, SPACE)
            if pod["metadata"].get("labels", {}).get(names.SECONDARY_LABEL) == name
        ]

    def stop_operator(self) -> None:
        self.operator_runs = False

    def stop_leading(self, name: str) -> None:
        self.leads.discard(name)

    def without_pods(self, name: str) -> None:
        self.stop_leading(name)
        for pod in self.pods(name):
            self.server.finalize("kubelet", PODS.ref(pod))

    def without_deployment(self, name: str) -> None:
        self.without_pods(name)
        self.server.finalize("user", DEPLOYMENTS.named(name, SPACE))

    def unpullable(self, name: str) -> None:
        """The Pods come again on nodes that cannot pull their image."""
        self.stop_leading(name)
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
        for pod in self.pods(name):
            image = pod["spec"]["containers"][0]["image"]
            status = {"name": names.OPERAND, "image": image, "ready": False, "state": waiting}
            self.keep(PODS, {**pod, "status": {"phase": "Pending", "containerStatuses": [status]}})


# --- the commands ---------------------------------------------------------------------------------


class Commands:
    """`kubectl scheduler` over the same objects; each Pod fits: answers are about schedulers."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.program = kube_scheduler.install(folder / "kube-scheduler")
        self.unlimited = False
        cluster.api.routes["/version"] = self._version
        cluster.api.routes["/subjectaccessreviews"] = self._review

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"gitVersion": kube_scheduler.VERSION})

    async def _review(self, request: web.Request) -> web.Response:
        attributes = (await request.json())["spec"].get("resourceAttributes") or {}
        allowed = attributes.get("verb") != "*" or self.unlimited
        return web.json_response({"status": {"allowed": allowed}}, status=201)

    def see(self, operators: OneCluster) -> None:
        publish(operators, self.cluster)
        self.unlimited = operators.unlimited
        api = self.cluster.api
        api.served |= {*POLICY, MUTATING_WEBHOOKS, SERVICES, NODES, PODS}
        self.cluster.put(NODES, builders.node("n1", resources={"cpu": "4", "pods": "9"}))
        for name in (OURS, PACKED):
            waits = builders.pod(f"waits-{name}", namespace="shop", schedulerName=name)
            self.cluster.put(PODS, {**waits, "status": {"phase": "Pending"}})

    async def document(self, *arguments: str) -> tuple[int, Any]:
        done = await self.cluster.run(*arguments, "--platform", "managed", "-o", "json")
        assert done.out, done.err
        return done.code, json.loads(done.out)

    async def simulate(self, *arguments: str) -> Any:
        _, found = await self.document(*arguments, "--kube-scheduler", str(self.program))
        return found


async def _accepted(
    _world: World, _options: RunOptions, pods: list[WorldObject], _runs: Runs
) -> list[Acceptance]:
    return [Acceptance(frozenset({"n1"})) for _ in pods]


class _Inquiry:
    """Every Pod fits."""

    def __init__(
        self, _runs: Runs, _world: World, _pod: Any, _options: Any, _gates: Any, answer: Diagnosis
    ) -> None:
        self._answer = answer

    async def run(self) -> None:
        self._answer.candidates = ["n1"]
        self._answer.decision = diagnosis.Decision("n1")


@pytest.fixture
def commands(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setattr(pending, "acceptances", _accepted)
    monkeypatch.setattr(why, "_Inquiry", _Inquiry)
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.01)
    return Commands(cluster, tmp_path)


# --- what is true ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class State(Truth):
    """What happens to the cluster, and what is true then."""

    happens: Callable[[OneCluster], object] = lambda _: None


def _and(*steps: Callable[[OneCluster], object]) -> Callable[[OneCluster], None]:
    def happen(one: OneCluster) -> None:
        for step in steps:
            step(one)

    return happen


def _remove(*kinds: Resource) -> Callable[[OneCluster], None]:
    def happen(one: OneCluster) -> None:
        for kind in kinds:
            one.server.finalize("user", kind.named(names.ASSIGNMENT))

    return happen


def _webhook(one: OneCluster) -> None:
    _remove(*POLICY)(one)
    service = {"name": names.WEBHOOK, "namespace": MANAGED.operator_namespace}
    trusted = {"caBundle": "eA==", "service": service}
    hook = {"name": "assign", "clientConfig": trusted, "failurePolicy": "Ignore"}
    one.make(MUTATING_WEBHOOKS, names.ASSIGNMENT, webhooks=[hook])
    one.make(SERVICES, names.WEBHOOK, MANAGED.operator_namespace, spec={})


def _without_service(one: OneCluster) -> None:
    _webhook(one)
    one.server.finalize("user", SERVICES.named(names.WEBHOOK, MANAGED.operator_namespace))


def _scaled_to_zero(one: OneCluster) -> None:
    one.stop_operator()
    one.make(
        DEPLOYMENTS,
        MANAGED.operator.deployment,
        MANAGED.operator_namespace,
        spec={"replicas": 0},
        status={"observedGeneration": 1},
    )


def _not_installed(one: OneCluster) -> None:
    one.stop_operator()
    ref = DEPLOYMENTS.named(MANAGED.operator.deployment, MANAGED.operator_namespace)
    one.server.finalize("user", ref)


def _unlimited(one: OneCluster) -> None:
    one.unlimited = True


def _refused(one: OneCluster) -> None:
    one.good = str(one.get(SECONDARY_SCHEDULERS, PACKED)["status"]["configHash"])
    one.packed(profiles=[{"schedulerName": PACKED, "percentageOfNodesToScore": 3}])


def _lost_config_map(one: OneCluster) -> None:
    one.stop_operator()
    for obj in one.server.list(CONFIG_MAPS, SPACE):
        if obj["metadata"]["name"].startswith(f"{PACKED}-config-"):
            one.server.finalize("user", CONFIG_MAPS.ref(obj))


STATES: dict[str, State] = {
    "healthy": State(),
    "the operator has stopped": State(
        OneCluster.stop_operator, observes=False, checks=OUTDATED, text="has not renewed it"
    ),
    "the operator is scaled to 0": State(
        _scaled_to_zero, observes=False, checks=OUTDATED, text="is scaled to 0"
    ),
    "the operator is not installed": State(
        _not_installed, observes=False, checks=OUTDATED, text="is not installed"
    ),
    "no Pod": State(
        lambda one: one.without_pods(PACKED),
        idle={PACKED}, down={PACKED}, assigns=False, ready=False,
        checks=("conditions", "objects"), text=PACKED,
    ),
    "no Pod of the managed scheduler": State(
        lambda one: one.without_pods(OURS),
        idle={OURS}, down={OURS}, checks=("conditions", "objects"), text=OURS,
    ),
    "the operator has stopped, then the Pods went": State(
        _and(OneCluster.stop_operator, lambda one: one.without_pods(PACKED)),
        observes=False, idle={PACKED}, down={PACKED}, checks=OUTDATED, text="has no Pod",
    ),
    "the operator has stopped, then the Deployment went": State(
        _and(OneCluster.stop_operator, lambda one: one.without_deployment(PACKED)),
        observes=False, idle={PACKED}, down={PACKED},
        checks=OUTDATED, text="has no Deployment",
    ),
    "the operator has stopped, then the managed scheduler went": State(
        _and(OneCluster.stop_operator, lambda one: one.without_deployment(OURS)),
        observes=False, idle={OURS}, down={OURS}, checks=OUTDATED, text="has no Deployment",
    ),
    "no image": State(
        lambda one: one.unpullable(PACKED),
        idle={PACKED}, down={PACKED}, assigns=False, ready=False,
        checks=("conditions", "objects", "images"), text="cannot have the image",
    ),
    "no image, and the operator has stopped": State(
        _and(OneCluster.stop_operator, lambda one: one.unpullable(OURS)),
        observes=False, idle={OURS}, down={OURS},
        checks=(*OUTDATED, "images"), text="cannot have the image",
    ),
    "no leader": State(
        lambda one: one.stop_leading(PACKED),
        idle={PACKED}, down={PACKED}, assigns=False, ready=False,
        checks=("conditions", "objects"), text=f"{SPACE}/{PACKED}",
    ),
    "the policy's binding is deleted": State(
        _remove(MUTATING_POLICY_BINDINGS), assigns=False, text="with its binding"
    ),
    "the webhook is deleted": State(
        _and(_webhook, _remove(MUTATING_WEBHOOKS)),
        assigns=False, text="MutatingWebhookConfiguration",
    ),
    "a configuration is refused": State(
        _refused, ready=False, checks=("conditions", "objects"), text=REFUSAL
    ),
    "the webhook's Service is deleted": State(
        _without_service, assigns=False, text="has no Service"
    ),
    "the operator, which serves the webhook, is scaled to 0": State(
        _and(_webhook, _scaled_to_zero), observes=False, assigns=False,
        checks=OUTDATED, text="which serves webhook",
    ),
    "the accounts are administrators": State(
        _unlimited, checks=("operator-rights",), text="may do everything"
    ),
    "a profile is invalid": State(
        lambda one: one.profile("good", PACKED, **BAD_PROFILE), ready=False,
        checks=("conditions", "objects"), text="percentageOfNodesToScore",
    ),
    "a new profile names no scheduler": State(
        lambda one: one.profile("lost", "nowhere", **GOOD_PROFILE),
        checks=("conditions", "objects"), text="nowhere",
    ),
    "the configuration of a scheduler is lost": State(
        _lost_config_map, observes=False, down={PACKED}, checks=OUTDATED,
        text=f"no ConfigMap {SPACE}/{PACKED}-config-",
    ),
}  # fmt: skip


def test_there_are_twenty_states() -> None:
    assert len(STATES) >= 20


@pytest.fixture
def one() -> OneCluster:
    return OneCluster()


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
async def test_every_command_reports_what_is_true(
    one: OneCluster, commands: Commands, state: State
) -> None:
    state.happens(one)
    for _ in range(3):
        one.later()
    commands.see(one)
    _expect_conditions(one, state)
    await _expect_check(commands, state)
    expect_status(*await commands.document("status"), state)
    await _expect_simulations(commands, state)
    await _expect_watch(commands, state)


def _expect_conditions(one: OneCluster, state: State) -> None:
    for name in BOTH:
        expect_secondary(name, one.get(SECONDARY_SCHEDULERS, name), state)
    expect_assigned(one.get(SECONDARY_SCHEDULERS, PACKED), state)
    if state.observes:
        kubescheduler = one.get(KUBE_SCHEDULERS, names.CLUSTER)["status"]
        available = condition_in(kubescheduler, names.SCHEDULERS_AVAILABLE)["status"]
        assert (available == "True") is (not state.idle)
        overall = one.get(CLUSTER_OPERATORS, names.CLUSTEROPERATOR)["status"]
        assert condition_in(overall, "Available")["status"] == available


LOOKED_AT = (
    "operator", "operator-rights", "conditions", "objects", "secondary-schedulers", "assignment",
    "images",
)  # fmt: skip
"""The checks of what the imitation has."""


async def _expect_check(commands: Commands, state: State) -> None:
    _, document = await commands.document("check")
    shown = [result for result in document["checks"] if result["check"] in LOOKED_AT]
    failed = any(result["result"] == "failed" for result in shown)
    expect_check(int(failed), {**document, "checks": shown}, state)


async def _expect_simulations(commands: Commands, state: State) -> None:
    kinds = kinds_of(await commands.simulate("pending"))
    for name in BOTH:
        pod = f"shop/waits-{name}"
        expect_waiting(name, kinds[pod], await commands.simulate("why", pod), state)


async def _expect_watch(commands: Commands, state: State) -> None:
    """A rollout ends with success if an operator reports that its Pods are Ready."""
    seconds = "60" if state.observes and state.ready else "5"
    done = await commands.cluster.run(
        "rollout", "watch", "--scheduler", PACKED, "--timeout", seconds, "--platform", "managed"
    )
    expect_watch(done.code, done.out, state)


async def test_a_configuration_that_is_lost_is_not_known_to_any_command(
    one: OneCluster, commands: Commands
) -> None:
    _lost_config_map(one)
    commands.see(one)
    found = await commands.simulate("pending")
    kinds = kinds_of(found)
    assert kinds[f"shop/waits-{PACKED}"] == diagnosis.NOT_SIMULATED
    explained = await commands.simulate("why", f"shop/waits-{PACKED}")
    assert "is not known" in explained["problem"]
