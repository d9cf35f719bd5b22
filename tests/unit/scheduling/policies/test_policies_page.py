"""docs/policies.md lists all policies and arguments, and its example works."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kube_scheduler_operator.scheduling.policies.arguments import Described, described
from kube_scheduler_operator.scheduling.policies.policy import (
    ArgumentsError,
    catalogue,
    make,
    policy_class,
    read_arguments,
)

from .playing import Play, node, pod

DOOR = "kube_scheduler_operator.policies"
PAGE = Path(__file__).resolve().parents[4] / "docs" / "policies.md"
BUILT_IN = sorted(name for name, entry in catalogue().items() if not entry.distribution)
MARKER = "<!-- arguments: {} -->\n"
HEAD = "| Argument | Default | Meaning | Variable |\n|---|---|---|---|\n"


def table(name: str) -> str:
    """The expected table of a policy's arguments."""
    policy = policy_class(name)
    variables = {attribute: variable for variable, attribute in policy.env.items()}
    rows = []
    for each in described(policy.Arguments):
        variable = variables.get(each.attribute)
        text = each.meaning.text + allowed(each)
        shown = f"`{variable}`" if variable else ""
        rows.append(f"| `{each.name}` | {default(each.default)} | {text} | {shown} |\n")
    return HEAD + "".join(rows)


def default(value: Any) -> str:
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Mapping):
        return "`{" + ", ".join(f"{key}: {amount:g}" for key, amount in value.items()) + "}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def allowed(each: Described) -> str:
    meaning = each.meaning
    if each.type is str and meaning.choices:
        return f" ({', '.join(f'`{choice}`' for choice in meaning.choices if choice)})"
    bounds = [
        f"more than {meaning.least:g}" if meaning.above else f"{meaning.least:g} or more",
        f"up to {meaning.most:g}",
    ]
    known = [
        text for text, bound in zip(bounds, (meaning.least, meaning.most), strict=True)
        if abs(bound) != float("inf")
    ]  # fmt: skip
    return f" ({', '.join(known)})" if known else ""


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_page_has_the_arguments_of_every_policy(
    name: str, request: pytest.FixtureRequest
) -> None:
    page, marker = PAGE.read_text(), MARKER.format(name)
    before, found, after = page.partition(marker)
    assert found, f"docs/policies.md has no {marker}"
    assert f"\n## {name}\n" in before
    listed = re.match(r"\n?((?:\|.*\n)*)", after)
    assert listed
    if request.config.getoption("--update"):
        rest = after[listed.end() :].lstrip("\n")
        PAGE.write_text(f"{before}{marker}\n{table(name)}\n{rest}")
        return
    assert listed[1] == table(name), "run with --update"


def test_every_policy_is_on_the_page_once() -> None:
    page = PAGE.read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| .* \| .* \|$", page, re.MULTILINE)
    listed = {name: rejects for name, rejects in rows if name in BUILT_IN}
    assert sorted(listed) == BUILT_IN
    for name, rejects in listed.items():
        assert (rejects != "nothing") == (policy_class(name).filters and name != "foo")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's example as an installed distribution."""
    (tmp_path / "few_siblings.py").write_text(block("python"))
    info = tmp_path / "few_siblings-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: few-siblings\nVersion: 1.0\n")
    project = tomllib.loads(block("toml"))["project"]
    assert project["name"] == "few-siblings"
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("few_siblings", None)


def test_the_example_is_short() -> None:
    assert len([line for line in block("python").splitlines() if line.strip()]) <= 30


@pytest.mark.usefixtures("installed")
def test_the_example_works() -> None:
    assert catalogue()["few-siblings"].distribution == "few-siblings"
    play = Play("foo", [node("a"), node("b")])
    play.cluster.set_pod(pod("p", on="a", labels={"app": "web"}))
    policy = make("few-siblings", {}, play.cluster)
    play.cluster.set_pod(pod("q", on="a", labels={"app": "web"}))
    play.cluster.set_pod(pod("r", on="b", labels={"app": "other"}))

    def scores(app: str) -> list[int]:
        found = policy.score(play.pod(pod(labels={"app": app})), np.array([1, 0]))
        assert found is not None
        return [int(each) for each in found]

    assert scores("web") == [10, 8]
    assert scores("new") == [10, 10]
    for at in range(20):
        play.cluster.set_pod(pod(f"many{at}", on="a", labels={"app": "web"}))
    assert scores("web") == [10, 0]
    with pytest.raises(ArgumentsError, match=r"arguments.label: this must be a string"):
        read_arguments("few-siblings", {"label": 3})


def published() -> list[tuple[str, str]]:
    """What built-in policies import of the modules that other distributions can import."""
    builtin = Path(policy_class("congestion").__module__.replace(".", "/")).parent
    folder = PAGE.parents[1] / "operator" / builtin
    return sorted(
        {
            (str(node.module), alias.name)
            for path in folder.glob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.level == 2 and "." not in str(node.module)
            for alias in node.names
            if importlib.util.find_spec(f"{DOOR}.{node.module}")
        }
    )


@pytest.mark.parametrize(("module", "name"), published())
def test_what_built_in_policies_use_can_be_imported_by_others(module: str, name: str) -> None:
    own = importlib.import_module(f"kube_scheduler_operator.scheduling.policies.{module}")
    door = importlib.import_module(f"{DOOR}.{module}")
    assert getattr(door, name) is getattr(own, name)
    assert name in door.__all__


def test_a_policy_needs_nothing_but_the_published_modules() -> None:
    modules = {module for module, _ in published()}
    assert {"arrays", "cluster", "node_loads", "node_policy", "pods", "policy"} <= modules


def test_the_image_of_the_example_is_built_without_the_operators_programs() -> None:
    _, built = PAGE.read_text().split("FROM kube-scheduler-operator\n")
    instructions = [line.split()[0] for line in built.split("```")[0].splitlines()]
    assert set(instructions) == {"COPY", "ENV"}  # the operator's image has no pip
