"""Runs Argo CD's health checks as Argo CD does: in Lua 5.1, with the object as `obj`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml
from lupa import lua51

from kube_scheduler_operator.kube.resource import Resource

Object = dict[str, Any]

FOLDER: Final = Path(__file__).parents[3] / "deploy" / "gitops" / "argocd"


def folder(resource: Resource) -> Path:
    return FOLDER / "resource_customizations" / resource.group / resource.kind


def script(resource: Resource) -> str:
    return (folder(resource) / "health.lua").read_text(encoding="utf-8")


def fixtures(resource: Resource) -> dict[str, Object]:
    """The objects of the tests, by the name of their state."""
    files = sorted((folder(resource) / "testdata").glob("*.yaml"))
    return {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}


def health(obj: Object) -> dict[str, str]:
    """Status and message that the check of the object's kind returns."""
    group = obj["apiVersion"].partition("/")[0]
    file = FOLDER / "resource_customizations" / group / obj["kind"] / "health.lua"
    lua = lua51.LuaRuntime(register_eval=False, register_builtins=False)
    lua.globals().obj = _table(lua, obj)
    result = lua.execute(file.read_text(encoding="utf-8"))
    return {key: str(result[key]) for key in ("status", "message")}


def _table(lua: Any, value: Any) -> Any:
    match value:
        case dict():
            return lua.table_from({key: _table(lua, child) for key, child in value.items()})
        case list():
            return lua.table_from([_table(lua, child) for child in value])
        case _:
            return value
