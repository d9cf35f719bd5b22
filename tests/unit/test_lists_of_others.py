"""What lists or watches objects states here who writes them, and what bounds what is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import kube_scheduler_operator

PACKAGE: Final = Path(kube_scheduler_operator.__file__).parent

METHODS: Final = {"get_text", "list", "pages", "select", "stream"}
CLIENTS: Final = {"_api", "_client", "api", "client", "dry"}
CLASSES: Final = {"Reflector", "WatchSpec"}

ADMINISTRATORS: Final = "are of a kind that administrators or nodes write; each is at most 8 MiB"
OWN: Final = "are in the operator's namespaces, in which no tenant has rights"
ONE: Final = "are those with one name"
USERS: Final = "are in the namespace that the user of the command chose"
KEPT: Final = "may be of tenants; of each one a bounded part is kept"
FEW: Final = (
    "may be of tenants; those that count are few, and the others are dropped as they are read"
)
SOME_FIELDS: Final = "may be of tenants; some fields of a bounded number are read, as they arrive"
OTHERS: Final = "are what its caller lists"

LISTS: Final = {
    "cli/adoption/assignment_trials.py": {"try_assignments": ADMINISTRATORS},
    "cli/adoption/cluster_facts.py": {
        "_certificates": ADMINISTRATORS, "_host_pods": FEW, "_operator_pods": OWN,
        "_schedulers": FEW, "_unlimited": ADMINISTRATORS, "_webhooks": ADMINISTRATORS,
        "common_facts": ADMINISTRATORS, "facts_after": ADMINISTRATORS,
        "facts_of_pods": ADMINISTRATORS,
    },
    "cli/adoption/input.py": {"_recorded": OWN},
    "cli/cluster/operands.py": {"_is_worker": ONE, "list_operand_pods": OWN},
    "cli/cluster/operator_objects.py": {
        "list_by_name": ADMINISTRATORS, "list_config_maps": OWN, "list_names": KEPT,
    },
    "cli/cluster/scheduler_contents.py": {"list_scheduler_pods": OWN, "read_config_maps": OWN},
    "cli/commands/dump_cache.py": {"_compare": KEPT, "_dump": ONE, "_image": OWN},
    "cli/commands/must_gather.py": {
        "_Gatherer._labelled": OWN, "_Gatherer._list": OWN, "_Gatherer._log": ONE,
    },
    "cli/commands/rollout.py": {"_with_loads": OWN},
    "cli/commands/uninstall.py": {
        "_Uninstall._delete_all": ADMINISTRATORS, "_Uninstall._left": OWN,
        "_Uninstall._left_of_load_policies": OWN,
        "_Uninstall._left_of_secondaries": ADMINISTRATORS, "_Uninstall._remove": ADMINISTRATORS,
    },
    "cli/simulation/agent_endpoints.py": {
        "_of_control_plane": OWN, "find_agents": ADMINISTRATORS,
    },
    "cli/simulation/in_cluster.py": {"JobSimulator.prepare": USERS},
    "cli/simulation/refused_schedulers.py": {"refused_in_cluster": ADMINISTRATORS},
    "cli/simulation/run.py": {"own_objects": ADMINISTRATORS},
    "cli/web/pages/waiting.py": {"_shown": SOME_FIELDS},
    "cli/simulation/running_scheduler.py": {"running_schedulers": ADMINISTRATORS},
    "cli/simulation/self_test.py": {"_clean_up": USERS, "_observe": USERS},
    "kube/reflector.py": {"Reflector._list": OTHERS, "Reflector._watch": OTHERS},
    "operator/engine/detect_platform.py": {
        "_has_infrastructure": ADMINISTRATORS, "_nodes": ADMINISTRATORS,
    },
    "operator/engine/polling.py": {
        "Poller._look_up": ONE, "Poller.poll_bindings.read": SOME_FIELDS,
        "Poller.poll_pods.read": SOME_FIELDS, "Poller.poll_waiting": SOME_FIELDS,
    },
    "operator/engine/watches.py": {
        "_load_watches": OWN, "_platform_watches": OWN, "_secondary_watches": OWN,
        "_shared_watches": ADMINISTRATORS, "_static_pod_watches": OWN,
    },
    "scheduling/annotator/cleanup.py": {"clean": ADMINISTRATORS},
    "scheduling/annotator/program.py": {"AnnotatorProgram._annotate": KEPT},
    "scheduling/extender/binding_rule.py": {"bindable_uid": ONE},
    "scheduling/extender/cluster_feed.py": {"ClusterFeed._reflector": KEPT},
    "scheduling/rl_monitor/monitor.py": {"_learn": KEPT},
    "simulate/job_run.py": {"SimulationJob._events": KEPT, "SimulationJob.pod": USERS},
    "simulate/read_cluster.py": {"_list": KEPT, "read_nodes": KEPT},
}  # fmt: skip
"""File -> function -> of whom the objects are that it lists."""


def listing(package: Path) -> Iterator[tuple[str, str]]:
    """The file and the function of every list, watch and log that is read."""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text()
        if any(f".{name}(" in text for name in METHODS) or any(name in text for name in CLASSES):
            file = path.relative_to(package).as_posix()
            yield from ((file, function) for function in _calls(ast.parse(text), ""))


def _calls(node: ast.AST, function: str) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.Call) and _lists(node.func):
        yield function
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, function)


def _lists(called: ast.AST) -> bool:
    if isinstance(called, ast.Name):
        return called.id in CLASSES
    if not isinstance(called, ast.Attribute) or called.attr not in METHODS:
        return False
    of = called.value
    return (of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")) in CLIENTS


def test_every_list_states_of_whom_the_objects_are() -> None:
    stated = {(file, function) for file, each in LISTS.items() for function in each}
    found = set(listing(PACKAGE))
    assert found - stated == set(), (
        "these list or watch objects: state who writes them; keep a bounded part of what a tenant "
        "writes, show it as one line, and let it decide nothing about others"
    )
    assert stated - found == set(), "these list nothing: remove them here"


@pytest.mark.parametrize(
    "code",
    [
        "async def f(api):\n    await api.list(PODS)",
        "async def f(self):\n    await self._client.select(PODS, FIELDS)",
        "def f(client):\n    Reflector(client, PODS)",
        "def f():\n    yield WatchSpec(PODS)",
    ],
)
def test_a_new_list_is_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "module.py").write_text(code)
    assert list(listing(tmp_path)) == [("module.py", "f")]
