"""Loads the programs of hack/, which Python cannot import by their names."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

HACK = Path(__file__).resolve().parents[2] / "hack"


def load_program(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader(f"{name.replace('-', '_')}_program", str(HACK / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, loader.name, module)  # where its dataclass looks for types
    loader.exec_module(module)
    return module
