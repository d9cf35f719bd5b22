"""The text about a Pod, from an answer alone."""

from __future__ import annotations

from kube_scheduler_operator.base.limits import FOREIGN_NAME
from kube_scheduler_operator.cli.simulation.explanation_text import pod_lines, waiting_lines
from kube_scheduler_operator.simulate.decisions import NO_SCHEDULER
from kube_scheduler_operator.simulate.diagnosis import Awaited, Decision, Diagnosis, WorkloadPods
from kube_scheduler_operator.simulate.leaving import LeavingPod
from kube_scheduler_operator.simulate.pending import WaitingGroup, WaitingPods

ENDING = LeavingPod("shop/old", "n", terminates=True, since="2026-03-01T08:00:00Z")
HOLDING = LeavingPod("shop/urgent", "n", terminates=False, nominated=True)
RESIZED = LeavingPod("shop/wide", "n", terminates=False, amounts=("it holds 3 of cpu",))


def text(answer: Diagnosis) -> str:
    return "\n".join(pod_lines(answer, 20))


def test_what_a_tenant_writes_takes_few_lines() -> None:
    no_scheduler = Diagnosis("shop/p", "x" * 200_000, decision=Decision(reason=NO_SCHEDULER))
    assert len(text(no_scheduler)) < FOREIGN_NAME + 300
    gates = [f"{'x' * 100_000}{number}/gate" for number in range(2000)]
    gated = Diagnosis("shop/p", "s", gates=gates, gates_removed_by=["its controller does"])
    assert "…, … and 1990 more.\n" in text(gated).replace('"', "")
    assert len(text(gated)) < 11 * FOREIGN_NAME
    impossible = [f"no node has 1 of example.com/{number}" for number in range(2000)]
    large = text(Diagnosis("shop/p", "s", nodes=1, impossible=impossible))
    assert "  … and 1990 more resources.\n" in large
    assert len(large.splitlines()) < 20


def test_a_gated_pod_that_fits_waits_for_its_gates_alone() -> None:
    answer = Diagnosis("shop/p", "s", nodes=1, candidates=["n"], decision=Decision(node="n"))
    assert "If it still waits" in text(answer)
    answer.gates, answer.gates_removed_by = ["example.com/gate"], ["its controller does"]
    assert text(answer).endswith("kube-scheduler would place it on n then.")


def test_a_pod_whose_containers_do_not_run_has_the_next_command() -> None:
    answer = Diagnosis("shop/p", "s", node="n", candidates=["n"], decision=Decision(node="n"))
    assert text(answer).startswith("Pod shop/p runs on node n.\n")
    assert "n is the only node on which it fits." in text(answer)
    answer.phase = "Pending"
    first, second, *_ = text(answer).splitlines()
    assert first == "Pod shop/p has node n, and its containers do not run yet (phase Pending)."
    assert second.endswith("kubectl describe pod p -n shop")


def test_an_answer_about_one_pod_of_a_workload_counts_all() -> None:
    answer = Diagnosis("shop/p", "s", workload=WorkloadPods("Deployment shop/web", 2, 1))
    title = "Deployment shop/web: 2 of 3 pods have no node. The oldest of them:\n"
    assert text(answer).startswith(f"{title}Pod shop/p has no node.\n")
    answer.workload, answer.node = WorkloadPods("Deployment shop/web", 0, 3), "n"
    assert text(answer).startswith("Deployment shop/web: all 3 pods have a node. The oldest")
    answer.workload = WorkloadPods("Deployment shop/web", 0, 1)
    assert text(answer).startswith("Pod shop/p runs")


def test_each_cause_has_the_next_command() -> None:
    group = WaitingGroup("unschedulable", "Insufficient cpu", "", ["Job/a", "Job/b"], ["shop/p"])
    waiting = WaitingPods([group], [], None, [])
    assert "  next    kubectl scheduler why shop/p  # tries what helps" in waiting_lines(waiting)
    group.tried = True
    lines = list(waiting_lines(waiting))
    assert "  next    kubectl scheduler why shop/p" in lines
    other = "other workloads may need another change"
    assert f"  helps   shop/p: no change was found; {other}" in lines


def test_room_is_held_and_given_up_by_several_pods() -> None:
    awaited = [Awaited((ENDING, RESIZED, HOLDING), ("n",))]
    assert (
        "kube-scheduler keeps room for a nominated pod of the same or a higher priority: "
        "shop/urgent on n. Without, and once pod shop/old has ended (shop/old terminates since "
        "2026-03-01T08:00:00Z) and the resize of shop/wide has ended (it holds 3 of cpu), it fits "
        "on 1 node (n): this was tried."
    ) in text(Diagnosis("shop/p", "s", awaited=awaited))
    awaited = [Awaited((ENDING,), ("n",))]
    assert "\nOnce pod shop/old has ended" in text(Diagnosis("shop/p", "s", awaited=awaited))


def test_pods_that_would_be_preempted_are_a_part_of_what_waits() -> None:
    sentence = "kube-scheduler would preempt 1 pod with a lower priority on n: shop/v."
    decision = Decision(node="n", nominated="n", preempted=("shop/v",))
    answer = Diagnosis("shop/p", "s", decision=decision, preemption=[sentence])
    group = WaitingGroup("unschedulable", "Insufficient cpu", "", ["Pod/p"], ["shop/p"])
    group.tried, group.diagnosis = True, answer
    lines = list(waiting_lines(WaitingPods([group], [], None, [])))
    assert f"  now     shop/p: {sentence}" in lines
    answer.decision = Decision()
    assert not any(line.startswith("  now") for line in waiting_lines(
        WaitingPods([group], [], None, [])
    ))  # fmt: skip
