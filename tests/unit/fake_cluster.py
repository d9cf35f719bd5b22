"""A cluster without nodes for whole reconciles, in which nothing takes time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from kube_scheduler_operator.base.images import AllowedImages
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.recognition import PlatformDecision
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.resource import (
    DAEMON_SETS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.engine.snapshots import take_snapshot
from kube_scheduler_operator.operator.model.plan import PlacementQuestion, Plan
from kube_scheduler_operator.operator.model.snapshot import (
    CheckIdentity,
    PlacementAnswer,
    Snapshot,
)

from ..builders import OPERAND_IMAGE
from ..imitation.clock import BEGIN
from ..imitation.cluster import InstantCluster
from ..imitation.workloads import roll_out, run_on_nodes

LIMIT = 60


class FakeCluster(InstantCluster):
    """Deployments roll out at once.

    Attributes:
        allowed_images: the operator's setting.
        image: the operator's setting of kube-scheduler's image.
        simulate: answers the simulations that are requested; None: they have no answer.
        simulations: those that were requested, each once.
        agents_ready: whether the Pods of DaemonSets become Ready, one for each.
    """

    def __init__(
        self, platform: Platform = KUBEADM, decision: PlatformDecision | None = None
    ) -> None:
        super().__init__(platform)
        self._decision = decision
        self.agents_ready = True
        self.allowed_images = AllowedImages()
        self.image = OPERAND_IMAGE
        self.simulate: Callable[[PlacementQuestion], PlacementAnswer] | None = None
        self.simulations: list[PlacementQuestion] = []
        self._answers: dict[CheckIdentity, PlacementAnswer] = {}
        self.put(SCHEDULERS, "cluster")
        self.put(KUBE_SCHEDULERS, "cluster")

    # --- users ------------------------------------------------------------------------------

    def secondary(self, name: str, **spec: Any) -> None:
        self.put(SECONDARY_SCHEDULERS, name, namespace=KUBEADM.target_namespace, **spec)

    def profile(self, name: str, scheduler: str = "", **spec: Any) -> None:
        self.put(
            SCHEDULER_PROFILES, name, **({"scheduler": scheduler} if scheduler else {}), **spec
        )

    def extender(self, name: str, **spec: Any) -> None:
        self.put(SCHEDULER_EXTENDERS, name, **spec)

    # --- the operator -----------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The cluster a second after the last snapshot."""
        self.clock.run(1.0)
        settings = Settings(operand_image=self.image, allowed_images=self.allowed_images)
        return replace(
            take_snapshot(self.store, self.platform, settings, self.now),
            decision=self._decision,
            server_version="v1.35.4",
            answered_since=BEGIN - timedelta(hours=1),
            placement_answers=self._answers,
        )

    def reconcile(self) -> Plan:
        """The plan of a reconcile, a second after the last one; it must not change its input."""
        snapshot = self.snapshot()
        before = copy.deepcopy(snapshot)
        plan = reconcile(snapshot)
        assert snapshot == before, "a step changed the snapshot"
        assert reconcile(snapshot) == plan, "one snapshot gave two plans"
        return plan

    def step(self) -> Plan:
        """Reconcile once and execute the plan; workloads do not follow."""
        plan = self.reconcile()
        self.execute(plan)
        return plan

    def settle(self) -> list[str]:
        """Reconcile until there is nothing to write; returns the writes."""
        self.writes = []
        for _ in range(LIMIT):
            self._run_workloads()
            plan = self.reconcile()
            answered = self._run_simulations(plan)
            if not (plan.actions or plan.reports or plan.write_sets or answered):
                return self.writes
            self.execute(plan)
        raise AssertionError(f"writes do not stop: {self.writes}")

    def _run_simulations(self, plan: Plan) -> bool:
        """Answer the simulations of a plan; returns whether there are new answers."""
        asked = {question.identity: question for question in plan.simulations or ()}
        known = [question.identity for question in self.simulations]
        self.simulations += [q for identity, q in asked.items() if identity not in known]
        if self.simulate is None:
            return False
        answers = {
            identity: self._answers.get(identity) or self.simulate(question)
            for identity, question in asked.items()
        }
        is_new, self._answers = bool(answers.keys() - self._answers.keys()), answers
        return is_new

    def _run_workloads(self) -> None:
        for deployment in self.list(DEPLOYMENTS):
            generation = deployment["metadata"]["generation"]
            if deployment.get("status", {}).get("observedGeneration") != generation:
                roll_out(self.server, deployment, self.clock.stamp())
        for daemon_set in self.list(DAEMON_SETS):
            run_on_nodes(self.server, daemon_set, 1, int(self.agents_ready))
