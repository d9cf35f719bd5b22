"""Debian's Chromium for tests of pages: how they look, and what is wrong with what it shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from cluster import npm_packages, packages

PICTURES: Final = "KSO_PICTURES"
"""The variable with the folder for pictures of pages; without it, none are taken."""

_STICKS_OUT: Final = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = each => each && (getComputedStyle(each).overflowX !== 'visible'
    || scrolls(each.parentElement));
  return [...document.body.querySelectorAll('*')]
    .filter(each => each.getBoundingClientRect().right > width + 1 && !scrolls(each.parentElement))
    .map(each => each.outerHTML.slice(0, 120));
}"""
# A field of a form scrolls its text.
_CUT: Final = """() => [...document.body.querySelectorAll('*:not(input)')]
  .filter(each => ['hidden', 'clip'].includes(getComputedStyle(each).overflowX)
    && each.scrollWidth > each.clientWidth + 1)
  .map(each => each.outerHTML.slice(0, 120))"""
_AXE: Final = "axe.run(document, {resultTypes: ['violations']})"


@dataclass(frozen=True)
class Look:
    """A window and the colours that its owner prefers."""

    name: str
    scheme: Literal["light", "dark"]
    width: int
    height: int = 900


LOOKS: Final = (
    Look("light", "light", 1280),
    Look("dark", "dark", 1280),
    Look("narrow", "light", 390, 844),
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    packages.ensure({"chromium": "chromium"})
    with sync_playwright() as playwright:
        # Root, which installs packages here, cannot use its sandbox.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that finds what people with disabilities cannot use."""
    return (npm_packages.provide() / "axe-core" / "axe.min.js").read_text()


@contextmanager
def window(browser: Browser, *, scripts: bool = True) -> Iterator[Page]:
    """A new window, with cookies of its own; what its pages report as errors fails the test."""
    permissions = ["clipboard-read", "clipboard-write"]
    context = browser.new_context(java_script_enabled=scripts, permissions=permissions)
    errors: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(f"{error}"))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    assert errors == []


def looked_at(page: Page, axe: str, *names: str) -> list[str]:
    """What is wrong with a page in windows of each look; a picture of each, if asked for."""
    *folders, name = names
    found = []
    for look in LOOKS:
        page.set_viewport_size({"width": look.width, "height": look.height})
        page.emulate_media(color_scheme=look.scheme)
        picture(page, *folders, f"{name}-{look.name}")
        found += [f"{look.name}: {each}" for each in problems(page, axe)]
    return found


def problems(page: Page, axe: str) -> list[str]:
    """What is wider than the window, what is cut off, and all that axe finds."""
    wide = [f"sticks out: {each}" for each in page.evaluate(_STICKS_OUT)]
    cut = [f"is cut off: {each}" for each in page.evaluate(_CUT)]
    page.evaluate(axe)
    found = [
        f"{each['id']}: {node['html'][:160]}"
        for each in page.evaluate(_AXE)["violations"]
        for node in each["nodes"]
    ]
    return [*wide, *cut, *found]


def picture(page: Page, *names: str) -> None:
    """Save a picture of the whole page as FOLDER/NAME/NAME.png, if pictures are asked for."""
    folder = os.environ.get(PICTURES)
    if folder:
        page.screenshot(path=Path(folder, *names).with_suffix(".png"), full_page=True)
