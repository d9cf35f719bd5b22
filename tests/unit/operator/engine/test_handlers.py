"""The kopf handlers cover every watched kind, and only the operator's process imports kopf."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import PLATFORMS, Platform
from kube_scheduler_operator.operator.engine import handlers
from kube_scheduler_operator.operator.engine.watches import watches


def registered() -> set[tuple[str, str, str]]:
    """Group, version and plural of every `@kopf.on.event`."""
    (function,) = (
        node
        for node in ast.parse(inspect.getsource(handlers)).body
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "changed"
    )
    kinds: set[tuple[str, str, str]] = set()
    for decorator in function.decorator_list:
        assert isinstance(decorator, ast.Call)
        api_version, plural = (ast.literal_eval(argument) for argument in decorator.args)
        group, _, version = api_version.rpartition("/")
        kinds.add((group, version, plural))
    return kinds


def watched(platform: Platform) -> set[tuple[str, str, str]]:
    kinds = (spec.resource for spec in watches(platform))
    return {(kind.group, kind.version, kind.plural) for kind in kinds}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
def test_every_watched_kind_has_a_handler(platform: Platform) -> None:
    assert watched(platform) <= registered()


def test_every_handler_is_for_a_kind_that_some_platform_watches() -> None:
    assert registered() == set().union(*map(watched, PLATFORMS.values()))


async def test_a_handler_only_passes_on_the_event() -> None:
    delivered: list[Any] = []

    class Memo:
        def deliver(self, resource: Any, event: Any) -> None:
            delivered.append((resource, event))

    changed: Callable[..., Any] = handlers.changed
    result = await changed(event={"type": None}, resource="pods", memo=Memo())
    assert delivered == [("pods", {"type": None})]
    assert result is None


@pytest.mark.parametrize(
    "statement",
    [
        "from kube_scheduler_operator.__main__ import main; main(['--help'])",
        "from kube_scheduler_operator.__main__ import main; main(['operator', '--help'])",
        "import kube_scheduler_operator.operator.engine.snapshots",
        "import kube_scheduler_operator.operator.engine.intake",
    ],
    ids=["help", "help-of-the-operator", "snapshots", "intake"],
)
def test_only_the_operators_process_imports_kopf(statement: str) -> None:
    program = (
        f"import sys\ntry:\n    {statement}\nexcept SystemExit:\n    pass\n"
        "print('kopf' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout.splitlines()[-1] == "False"
