"""Probes are answered while the event loop is busy, and notice that it hangs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kube_scheduler_operator.operator.telemetry import server
from kube_scheduler_operator.operator.telemetry.server import SILENT_SECONDS, Pulse


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("age", "alive"), [(0.0, True), (SILENT_SECONDS, True), (SILENT_SECONDS + 1, False)]
)
def test_a_loop_that_hangs_is_not_alive(age: float, alive: bool) -> None:
    clock = Clock()
    found = Pulse(lambda: {"reconcile": None}, dict, lambda: None, clock)
    clock.now += age
    problem = None if alive else f"the event loop has been busy for {age:.0f} s"
    assert found.alive() == {"reconcile": None, "event-loop": problem}
    found.beat()
    assert found.alive()["event-loop"] is None


def test_checks_run_with_a_beat_only() -> None:
    """They read what belongs to the loop."""
    results = {"watches": "waiting"}
    seen: list[int] = []
    found = Pulse(lambda: results, lambda: results, lambda: seen.append(threading.get_ident()))
    results["watches"] = "listed"
    assert found.ready() == {"watches": "waiting"}
    assert found.alive()["watches"] == "waiting"
    found.beat()
    assert found.ready() == {"watches": "listed"}
    assert seen == 2 * [threading.get_ident()]


async def test_the_loop_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BEAT_SECONDS", 0.001)
    beats, enough = 0, asyncio.Event()

    def beat() -> None:
        nonlocal beats
        beats += 1
        if beats > 5:
            enough.set()

    running = asyncio.create_task(Pulse(dict, dict, beat).run())
    async with asyncio.timeout(20):
        await enough.wait()
    running.cancel()
