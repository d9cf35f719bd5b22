"""The removal of annotations, beside an annotator that has not ended yet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.annotator import cleanup


class Elector:
    """Loses the Lease while annotations are removed for the first time."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.acquired = 0

    async def acquire(self) -> None:
        self.acquired += 1

    async def hold(self) -> None:
        if self.acquired > 1:
            await asyncio.Event().wait()

    async def release(self) -> None:
        pass


def test_a_removal_that_loses_the_lease_continues_when_it_has_it_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended: list[str] = []

    async def clean(*_: Any) -> int:
        await asyncio.sleep(0.01)
        ended.append("clean")
        return 3

    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u}]}"
    )
    monkeypatch.setattr(cleanup, "LeaderElector", Elector)
    monkeypatch.setattr(cleanup, "clean", clean)
    assert cleanup.run(str(kubeconfig), "namespace", ["own"]) == 0
    assert ended == ["clean"]
