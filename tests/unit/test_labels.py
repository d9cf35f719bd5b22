"""A label proves nothing: everyone who may write an object of a namespace sets its labels.

So no selector of labels looks into all namespaces, where it would find the objects of tenants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube_scheduler_operator.kube import resource
from kube_scheduler_operator.simulate import kinds

PACKAGE = Path(__file__).resolve().parents[2] / "operator" / "kube_scheduler_operator"
CLIENT = PACKAGE / "kube"
SELECTORS = {"label_selector", "or_label_selectors", "labels"}
CLUSTER_SCOPED = {
    name
    for module in (kinds, resource)
    for name, one in vars(module).items()
    if isinstance(one, resource.Resource) and not one.namespaced
}
NAMESPACED = {
    name
    for module in (kinds, resource)
    for name, one in vars(module).items()
    if isinstance(one, resource.Resource) and one.namespaced
}

STORES = {"view", "_view"}
"""Of what is watched, which is in the namespaces of WatchSpecs."""

EVERYWHERE = {
    ("cli/adoption/cluster_facts.py", "DEPLOYMENTS"): "other operators and schedulers are found",
    ("cli/adoption/cluster_facts.py", "PODS"): "the Pods of a node, by a field",
    ("cli/commands/dump_cache.py", "PODS"): "all Pods are compared with the scheduler's cache",
}
"""Lists of a namespaced kind in all namespaces; none of them takes an object for ours."""


def problems(text: str, name: str = "") -> Iterator[str]:
    """Each use of a selector that may look into all namespaces."""
    if not any(word in text for word in (".list", "WatchSpec", "labelSelector=")):
        return
    tree = ast.parse(text)
    functions = {
        inner: outer
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(outer)
        if inner is not outer
    }
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if problem := _problem(node, functions.get(node), name):
                yield f"{name}:{node.lineno}: {problem}"
        elif isinstance(node, ast.Attribute) and node.attr == "list" and node not in called:
            yield f"{name}:{node.lineno}: a list that is passed on cannot be checked; call it here"
        elif isinstance(node, ast.Constant) and "labelSelector=" in str(node.value):
            yield f"{name}:{node.lineno}: write label_selector of a list instead"


def _problem(
    call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef | None, name: str
) -> str:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if isinstance(call.func, ast.Name):
        called = call.func.id
    if called not in ("list", "WatchSpec") or not call.args:
        return ""  # list() of Python, or a list of another thing
    if isinstance(call.func, ast.Name) and called == "list":
        return ""
    if isinstance(call.func, ast.Attribute) and _last(call.func.value) in STORES:
        return ""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in keywords or any(isinstance(each, ast.Starred) for each in call.args):
        return "write the arguments out"
    kind = _last(call.args[0])
    namespace = call.args[1] if len(call.args) > 1 else keywords.get("namespace")
    if kind in CLUSTER_SCOPED:
        return ""
    if keywords.keys() & SELECTORS:
        return (
            "" if _names_one(namespace, function) else "name the namespace: a label proves nothing"
        )
    if called == "list" and kind in NAMESPACED and namespace is None:
        return "" if (name, kind) in EVERYWHERE else "name the namespace, or add it to EVERYWHERE"
    return ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _names_one(
    node: ast.expr | None, function: ast.FunctionDef | ast.AsyncFunctionDef | None
) -> bool:
    """Whether an expression is the name of one namespace, as far as it shows that."""
    if isinstance(node, ast.Attribute):
        return _last(node.value) != "args"  # flags may be missing
    if isinstance(node, ast.Call):
        return _last(node.func) == "str"
    if not isinstance(node, ast.Name):
        return False
    arguments = (
        function.args if function is not None else ast.arguments([], [], None, [], [], None, [])
    )
    own = {one.arg: one for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    if node.id not in own:
        return True  # a local variable; mypy knows its type
    annotation = own[node.id].annotation
    return annotation is not None and ast.unparse(annotation) == "str"


def test_no_selector_looks_into_all_namespaces() -> None:
    found = [
        problem
        for path in sorted(PACKAGE.rglob("*.py"))
        if CLIENT not in path.parents
        for problem in problems(path.read_text(), str(path.relative_to(PACKAGE)))
    ]
    assert found == []


def test_what_is_listed_everywhere_is_still_listed() -> None:
    for name, kind in EVERYWHERE:
        text = (PACKAGE / name).read_text().replace("list(kinds.", "list(")
        assert f"list({kind}" in text, f"remove {name}, {kind}"


@pytest.mark.parametrize(
    "line",
    [
        "api.list(CONFIG_MAPS, label_selector=x)",
        "api.list(kinds.PODS, None, label_selector=x)",
        "api.list(PODS, '', label_selector=x)",
        "api.list(PODS, namespace=None, label_selector=x)",
        "api.list(kind, label_selector=x)",
        "api.list(kind, optional, label_selector=x)",
        "api.list(kind, anything, label_selector=x)",
        "api.list(kind, args.namespace, label_selector=x)",
        "api.list(kind, given or None, label_selector=x)",
        "api.list(kind, a if b else None, label_selector=x)",
        "api.list(PODS)",
        "api.list(kind, **options)",
        "api.list(*both, label_selector=x)",
        "partial(api.list, PODS)(label_selector=x)",
        "WatchSpec(PODS, label_selector=x)",
        "WatchSpec(kinds.PODS, or_label_selectors=x)",
        "api.get_path(f'/api/v1/pods?labelSelector={x}')",
    ],
)
def test_the_rule_finds(line: str) -> None:
    code = f"async def f(optional: str | None, anything, sure: str) -> None:\n    {line}\n"
    assert list(problems(code))


@pytest.mark.parametrize(
    "line",
    [
        "api.list(NODES, label_selector=x)",
        "api.list(kinds.CLUSTER_ROLE_BINDINGS, label_selector=x)",
        "api.list(PODS, sure, label_selector=x)",
        "api.list(PODS, platform.target_namespace, label_selector=x)",
        "api.list(PODS, str(spec['namespace']), label_selector=x)",
        "WatchSpec(PODS, platform.target_namespace, label_selector=x)",
        "api.list(kind)",
        "list(pods)",
    ],
)
def test_the_rule_accepts(line: str) -> None:
    code = f"async def f(optional: str | None, anything, sure: str) -> None:\n    {line}\n"
    assert list(problems(code)) == []
