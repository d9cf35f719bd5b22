"""Every sentence of the text is made from what the JSON has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import pytest

from kube_scheduler_operator.base.decoding import FirstProblem, decode
from kube_scheduler_operator.base.field_types import KUBERNETES, document_of, hints_of, type_of
from kube_scheduler_operator.cli.cluster import answers
from kube_scheduler_operator.cli.console.output import text_of
from kube_scheduler_operator.cli.simulation import explanation, question
from kube_scheduler_operator.cli.simulation.answer import SimulationAnswer
from kube_scheduler_operator.cli.simulation.answer_text import answer_lines
from kube_scheduler_operator.cli.simulation.explanation_text import (
    diagnosis_lines,
    pod_lines,
    waiting_lines,
)
from kube_scheduler_operator.cli.simulation.placements import EditAnswer
from kube_scheduler_operator.config.language.schema import DEFAULT_SCHEDULER
from kube_scheduler_operator.kube.resource import PODS
from kube_scheduler_operator.simulate import pending, why
from kube_scheduler_operator.simulate.decided_by import framed
from kube_scheduler_operator.simulate.diagnosis import Decision, Diagnosis, GroupDiagnosis
from kube_scheduler_operator.simulate.group_diagnosis import GroupDecision
from kube_scheduler_operator.simulate.new_nodes import FITS
from kube_scheduler_operator.simulate.pending import WaitingPods
from kube_scheduler_operator.simulate.probes import Acceptance

from .... import builders
from ..conftest import Cluster
from .simulated_world import MINE, UNKNOWN, World

pytestmark = pytest.mark.timeout(180, func_only=True)

NODES: Final = 20


def read(kind: Any, document: Any) -> Any:
    """The answer that a document is made from."""
    return decode(type_of(kind), document, run=FirstProblem(ignore_unknown=True))


def of_pod(answer: Diagnosis) -> Iterable[str]:
    return framed(answer.decided_by, pod_lines(answer, NODES), answer.notes)


def of_group(answer: GroupDiagnosis) -> Iterable[str]:
    return framed(answer.decided_by, diagnosis_lines(answer), answer.notes)


def of_waiting(answer: WaitingPods) -> Iterable[str]:
    return framed(answer.decided_by, waiting_lines(answer), answer.notes)


def of_simulation(answer: SimulationAnswer) -> Iterable[str]:
    return answer_lines(answer, NODES)


TEXTS: Final[dict[Any, Callable[[Any], Iterable[str]]]] = {
    Diagnosis: of_pod,
    GroupDiagnosis: of_group,
    WaitingPods: of_waiting,
    SimulationAnswer: of_simulation,
    EditAnswer: EditAnswer.lines,
}


# --- commands -------------------------------------------------------------------------------------


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path) -> World:
    return World(cluster, tmp_path)


GROUPS: Final = ("--feature-gates", "GenericWorkload=true")
COMMANDS: Final[dict[str, tuple[Any, tuple[str, ...]]]] = {
    "a pod that waits": (Diagnosis, ("why", "-n", "shop", f"waits-{DEFAULT_SCHEDULER}")),
    "a pod that fits nowhere": (Diagnosis, ("why", "-n", "shop", "large")),
    "a pod that runs": (Diagnosis, ("why", "-n", "shop", f"runs-{MINE}")),
    "a pod that nothing serves": (Diagnosis, ("why", "-n", "shop", f"waits-{UNKNOWN}")),
    "a group": (GroupDiagnosis, ("why", "-n", "shop", "podgroup/train", *GROUPS)),
    "a group that nothing reads": (GroupDiagnosis, ("why", "-n", "shop", "podgroup/train")),
    "a pod of a group": (Diagnosis, ("why", "-n", "shop", "train-0", *GROUPS)),
    "all pods that wait": (WaitingPods, ("pending",)),
    "all pods that wait, with groups": (WaitingPods, ("pending", *GROUPS)),
    "a workload": (SimulationAnswer, ("simulate", "-f", MINE, "--repeat", "2")),
    "a workload, as often as possible": (SimulationAnswer, ("simulate", "-f", MINE, "--max")),
    "a drain": (SimulationAnswer, ("simulate", "--drain", "n1", "--without-node", "n2")),
    "configurations": (SimulationAnswer, ("simulate", "--replay", "--profile", "BinPacking")),
}


Printed = list[tuple[Any, str]]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Printed:
    """The documents and the texts of commands, each of one run: chance decides ties."""
    found: Printed = []
    for module in (explanation, question, answers):
        monkeypatch.setattr(
            module, "print_document", lambda document, _, text: found.append((document, text))
        )
    return found


@pytest.mark.parametrize("case", COMMANDS)
async def test_a_command_prints_what_its_json_has(
    world: World, case: str, printed: Printed
) -> None:
    world.pod("large", DEFAULT_SCHEDULER, cpu="9")
    world.group("train", least=4, waiting=3)
    kind, command = COMMANDS[case]
    await world.run(*(world.workload(MINE) if word == MINE else word for word in command))
    ((document, text),) = printed
    answer = read(kind, json.loads(json.dumps(document)))
    assert text_of(TEXTS[kind](answer)) == text


FAILED_ATTEMPT: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulerError",
    "message": "running Score plugins: failed",
}


@pytest.mark.parametrize(
    ("scheduler", "fields", "outcome", "texts"),
    [
        (
            DEFAULT_SCHEDULER,
            {"status": {"phase": "Pending", "conditions": [FAILED_ATTEMPT]}},
            "failed",
            ["Its last attempt ended with an error: running Score plugins: failed"],
        ),
        (
            UNKNOWN,
            {"schedulingGates": [{"name": "example.com/wait"}]},
            "gated",
            ['"example.com/wait"', f'No scheduler serves its spec.schedulerName "{UNKNOWN}"'],
        ),
    ],
)
async def test_why_and_pending_agree(
    world: World,
    scheduler: str,
    fields: dict[str, Any],
    outcome: str,
    texts: list[str],
    printed: Printed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def accepted(
        _world: Any, _options: Any, pods: list[Any], *_runs: Any
    ) -> list[Acceptance]:
        return [Acceptance(frozenset({"n1"})) for _ in pods]

    async def fits(inquiry: Any) -> None:
        inquiry._answer.candidates, inquiry._answer.decision = ["n1"], Decision("n1")

    monkeypatch.setattr(pending, "acceptances", accepted)
    monkeypatch.setattr(why._Inquiry, "run", fits)
    made = builders.pod(
        "one", namespace="shop", containers=[builders.container({"cpu": "1"})],
        schedulerName=scheduler, **fields,
    )  # fmt: skip
    world.cluster.put(PODS, made)
    await world.run("why", "-n", "shop", "one")
    await world.run("pending")
    (explained, text), (waiting, _) = printed
    assert explained["outcome"] == outcome
    kinds = {name: group["kind"] for group in waiting["groups"] for name in group["pods"]}
    assert kinds["shop/one"] == outcome
    assert all(part in text for part in texts), text


async def test_an_edit_prints_what_its_json_has(world: World) -> None:
    spec = {**world.schedulers.obj["spec"], "config": {"parallelism": 8}}
    file = world.folder / "edited.json"
    file.write_text(json.dumps({**world.schedulers.obj, "spec": spec}))
    command = ("diff", "-f", str(file), "--placements")
    text = (await world.run(*command, "-o", "words")).out
    document = json.loads((await world.run(*command, "-o", "json")).out)
    lines = [*document["words"], *EditAnswer.lines(read(EditAnswer, document["placements"]))]
    assert text_of(lines) == text.rstrip("\n")
    first, second = document["placements"]["decidedBy"]["configurations"]
    assert "parallelism" not in first["configuration"]
    assert second["configuration"]["parallelism"] == 8


# --- every field ----------------------------------------------------------------------------------


def filled(hint: Any, name: str = "x") -> Any:
    """A value of an annotated type, with something in each field that documents have."""
    if is_dataclass(hint) and isinstance(hint, type):
        own = [field for field in fields(hint) if KUBERNETES.of(field)]
        types = hints_of(hint)
        return hint(**{field.name: filled(types[field.name], field.name) for field in own})
    origin, arguments = get_origin(hint), get_args(hint)
    if type(None) in arguments:
        return filled(arguments[0], name)
    if origin is tuple:
        return (filled(arguments[0], name),)
    if origin is list or "Sequence" in str(origin):
        return [filled(arguments[0], name)]
    if origin is not None:  # a mapping
        return {name: filled(arguments[1], name)}
    return {bool: True, int: 2, float: 2.5, str: name}.get(hint, name)


def sample(kind: Any) -> Any:
    made = filled(kind)
    decided_by = replace(made.decided_by, version="1.37.2")
    decided_by = replace(decided_by, cluster=replace(decided_by.cluster, version="1.35.4"))
    return replace(made, decided_by=decided_by)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_document_has_all_of_an_answer(kind: Any) -> None:
    answer = sample(kind)
    document = json.loads(json.dumps(document_of(answer)))
    assert read(kind, document) == answer


WAITS: Final[dict[str, Any]] = {"node": "", "problem": "", "candidates": []}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"problem": ""},
        {"node": "", "problem": ""},
        {"node": "", "problem": "", "idle": ""},
        {"node": "", "problem": "", "idle": "", "error": ""},
        WAITS,
        {**WAITS, "groups": [], "fixes": []},
    ],
)
def test_each_text_about_a_pod_is_made_from_its_document(changed: dict[str, Any]) -> None:
    answer = replace(sample(Diagnosis), **changed)
    if answer.group is not None:
        answer.group = replace(answer.group, problem="", unread="")
    new_nodes = [replace(one, outcome=FITS) for one in answer.new_nodes]
    answer = replace(answer, new_nodes=new_nodes)
    text = list(of_pod(answer))
    assert list(of_pod(read(Diagnosis, document_of(answer)))) == text
    assert text[0].startswith("kube-scheduler 1.37.2 decides here, not 1.35.4")


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"problem": ""},
        {"problem": "", "unread": "", "exists": False},
        {"problem": "", "unread": ""},
        {"problem": "", "unread": "", "unenforced": ""},
        {"problem": "", "unread": "", "missing": 0, "gates_hold": False},
        {"problem": "", "unread": "", "missing": 0, "decision": GroupDecision()},
    ],
)
def test_each_text_about_a_group_is_made_from_its_document(changed: dict[str, Any]) -> None:
    answer = sample(GroupDiagnosis)
    answer = replace(answer, group=replace(answer.group, **changed))
    text = list(of_group(answer))
    assert list(of_group(read(GroupDiagnosis, document_of(answer)))) == text
    assert any(line.startswith("What would help the group") for line in text)
