"""Every page in every state: as wide as its window, nothing that axe finds, usable by keyboard."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from kube_scheduler_operator.cli.web import report

from ..browser import looked_at, window
from ..unit.cli.web.conftest import recorded
from .conftest import WHERE, cluster
from .states import STATES

pytestmark = pytest.mark.timeout(120)

CASES = [(state, name) for state, world in STATES.items() for name in world]


def open_page(page: Page, address: str, name: str) -> None:
    """Open a page with the token, and wait until it has its answers."""
    base, _, query = address.partition("?")
    page.goto(f"{base}{name}?{query}")
    expect(page.locator("main [role=status]")).to_have_count(0, timeout=30_000)


@pytest.mark.parametrize(("state", "name"), CASES)
def test_a_page_fits_and_axe_finds_nothing(
    state: str, name: str, consoles: Mapping[str, str], browser: Browser, axe: str
) -> None:
    with window(browser) as page:
        open_page(page, consoles[state], name)
        assert looked_at(page, axe, state, name) == []


@pytest.mark.parametrize("state", [*STATES])
def test_a_report_fits_and_axe_finds_nothing(
    state: str, browser: Browser, axe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PAGES", recorded(STATES[state]))
    made = report.report(cluster(), WHERE, "HighNodeUtilization")
    with ThreadPoolExecutor() as pool:  # this thread has the event loop of the browser
        html, _ = pool.submit(asyncio.run, made).result()
    file = tmp_path / "scheduler.html"
    file.write_text(html)
    with window(browser) as page:
        page.goto(file.as_uri())
        assert looked_at(page, axe, state, "report") == []
