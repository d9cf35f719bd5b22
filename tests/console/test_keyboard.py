"""What a person does with the keyboard alone, and without JavaScript."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from playwright.sync_api import Browser, Page, expect

from ..browser import window
from .conftest import served
from .states import STATES
from .test_pages import open_page

pytestmark = pytest.mark.timeout(180)

FOCUSED = "(document.activeElement.innerText || '').trim()"
MOST_KEYS = 60


def tab_to(page: Page, words: str) -> None:
    """Press Tab until an element with these words has the focus, and shows it."""
    for _ in range(MOST_KEYS):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == words:
            break
    assert page.evaluate(FOCUSED) == words
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) != "none", f"the focus on {words} is not shown"


def test_from_the_first_page_to_why_of_a_pod_and_a_copied_command(
    consoles: Mapping[str, str], browser: Browser
) -> None:
    with window(browser) as page:
        page.goto(consoles["broken"])
        page.wait_for_url("**/now")
        tab_to(page, "Skip to the content")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("Shift+Tab")
        page.goto(page.url)
        tab_to(page, "Waiting Pods")
        page.keyboard.press("Enter")
        page.wait_for_url("**/waiting")
        expect(page.get_by_role("heading", name="By cause, and what would help")).to_be_visible()
        expect(page.locator("main [role=status]")).to_have_count(0)
        tab_to(page, "shop/web-0")
        page.keyboard.press("Enter")
        page.wait_for_url("**/why?namespace=shop&pod=web-0")
        tab_to(page, "What was tried, field by field")
        page.keyboard.press("Enter")
        expect(page.get_by_role("cell", name="Pod shop/web-0").first).to_be_visible()
        tab_to(page, "Copy")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Copied the command")).to_be_focused()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "kubectl scheduler why web-0 -n shop --context=prod-eu-west-1"


def test_every_command_has_a_button_also_in_an_answer_that_comes_later(
    consoles: Mapping[str, str], browser: Browser
) -> None:
    with window(browser) as page:
        for name in STATES["broken"]:
            open_page(page, consoles["broken"], name)
            commands = page.locator(".command").count()
            expect(page.locator(".command button")).to_have_count(commands)


def test_a_form_is_filled_and_sent(consoles: Mapping[str, str], browser: Browser) -> None:
    with window(browser) as page:
        open_page(page, consoles["broken"], "why")
        page.get_by_label("Pod, or KIND/NAME of a workload").focus()
        page.keyboard.press("Control+A")
        page.keyboard.type("deploy/web")
        page.keyboard.press("Enter")
        page.wait_for_url("**/why?namespace=shop&pod=deploy%2Fweb")


def test_a_live_page_keeps_the_focus_when_it_changes(browser: Browser) -> None:
    world = dict(STATES["healthy"])
    with served(world) as address, window(browser) as page:
        page.goto(address)
        page.wait_for_url("**/now")
        tab_to(page, "Copy")
        world["now"] = STATES["broken"]["now"]
        expect(page.get_by_role("heading", name="Problems")).to_be_visible(timeout=15_000)
        page.wait_for_timeout(300)
        assert page.evaluate("document.activeElement !== document.body")


def test_pages_are_read_without_javascript(consoles: Mapping[str, str], browser: Browser) -> None:
    with window(browser, scripts=False) as page:
        for name in STATES["broken"]:
            base, _, query = consoles["broken"].partition("?")
            page.goto(f"{base}{name}?{query}")
            expect(page.locator("main .asof")).to_have_count(1)
            assert (
                page.locator("main button:visible").count()
                == page.locator("main form button").count()
            ), "a button that does nothing"
        page.goto(f"{base}waiting")
        page.get_by_role("link", name="Show the causes").click()
        expect(page.get_by_text("helps")).not_to_have_count(0)
        page.get_by_role("link", name="Why shop/web-0 waits").click()
        expect(page.get_by_text("It fits on none of 3 nodes")).to_be_visible()
