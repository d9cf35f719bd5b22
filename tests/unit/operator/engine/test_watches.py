"""Every watched kind has a kopf handler, and only the operator's process imports kopf."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from kube_scheduler_operator.base.platform import PLATFORMS, Platform
from kube_scheduler_operator.kube.credentials import Access, Credentials
from kube_scheduler_operator.kube.kopf.imports import kopf
from kube_scheduler_operator.kube.kopf.watcher import Session, Watcher
from kube_scheduler_operator.operator.engine.watches import watches


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
def test_every_watched_kind_has_a_handler(platform: Platform) -> None:
    watcher = Watcher(watches(platform), on_event=lambda *_: None, on_listed=lambda _: None)
    credentials = Credentials(lambda: Access("https://api:6443"))
    registry = Session(watcher, credentials, asyncio.Event()).registry()
    for kind in watcher.kinds:
        handled = kopf.Resource(kind.group, kind.version, kind.plural, preferred=True)
        assert registry._watching.has_handlers(handled), kind


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
