"""The site: it builds without warnings, works as files, and what a person looks for is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from pages import site, site_fields, site_navigation, site_source

from .conftest import VERSIONS

pytestmark = pytest.mark.timeout(300, func_only=True)  # the first one builds the site

SEARCHES: Final = {
    "pod pending": ("symptoms", "placements", "troubleshooting"),
    "uninstall": ("operations",),
    "upgrade": ("upgrading",),
    "helm values": ("operations", "validating"),
    "argo cd": ("gitops",),
    "EKS": ("managed",),
    "bin packing": ("packing",),
    "node load annotations": ("load-aware", "load-programs"),
    "crane-scheduler": ("converting", "load-aware"),
    "runbook": ("alerts",),
    "KubeSchedulerPodsGated": ("alerts",),
    "PreflightDegraded": ("operations",),
    "rbac": ("rights",),
    "UnknownPlugin": ("rules",),
    "rollback": ("gitops", "kubectl-scheduler"),
    "grafana": ("dashboards",),
    "kube-prometheus-stack": ("metrics",),
    "target down connection refused": ("metrics", "symptoms"),
    "dashboard no data": ("metrics", "symptoms", "dashboards"),
    "scheduler_e2e_scheduling_duration_seconds": ("metrics",),
    "extender timeout": ("extenders", "extenders-faults"),
    "second scheduler": ("secondary-schedulers",),
    "supported kubernetes versions": ("versions",),
    "quickstart": ("getting-started",),
    "defaultConstraints": ("rules", "autoscalers"),
    "feature gates": ("configuration",),
    "pods pending after node added": ("placements", "symptoms"),
    "change scheduler profile": ("configuration", "guides/one-object"),
    "argo cd out of sync": ("gitops",),
    "prometheus not installed": ("metrics", "symptoms"),
    "how to install": ("getting-started", "project/README"),
    "install with helm": ("operations", "project/README"),
    "remove operator": ("operations",),
    "rollback configuration": ("gitops", "kubectl-scheduler"),
    "undo an edit": ("kubectl-scheduler",),
    "scheduler log level": ("guides/one-object", "configuration"),
    "edit kube-scheduler.yaml": ("migrate/kubeadm", "adoption", "operations"),
    "two schedulers same node": ("assignment", "managed"),
    "why is my pod on this node": ("placements",),
    "drain node": ("placements", "operations"),
    "permission denied forbidden": ("rights",),
    "image pull error operator": ("troubleshooting", "symptoms"),
    "air gapped registry": ("where-it-runs",),
    "kubeadm upgrade": ("kubeadm", "upgrading"),
    "autoscaler does not add nodes": ("autoscalers",),
    "custom plugin": ("secondary-schedulers",),
    "scheduler crash loop": ("traps", "troubleshooting"),
    "validate in CI": ("reports",),
    "github actions": ("reports",),
    "resources of the scheduler pod": ("operator-settings",),
    "spread pods across zones": ("placements", "packing"),
    "high availability standby": ("operations",),
    "what is a revision": ("glossary", "concepts"),
    "web ui console": ("console",),
    "kind cluster": ("getting-started",),
    "openshift": ("migrate/openshift", "operations"),
    "nodes unbalanced load": ("load-aware", "guides/real-load"),
    "certificate expired": ("alerts", "troubleshooting"),
    "webhook timeout": ("assignment",),
    "no matches for kind": ("symptoms",),
    "downgrade": ("upgrading", "versions"),
    "must-gather support": ("kubectl-scheduler",),
    "terminology": ("glossary",),
    "pause operator": ("operations",),
    "approve an edit": ("operator-settings", "kubectl-scheduler"),
    "flux kustomization not ready": ("gitops",),
}
"""What a person types, and the pages of which one is among the first three results."""

NAMES: Final = (
    "index.html",
    "search.html",
    *(
        str(site_navigation.site_path(page).with_suffix(".html"))
        for page in site_navigation.load(site_fields.pages()).listed
    ),
)
"""The pages of the navigation, and those that people open first."""


class _Links(HTMLParser):
    """What a page links to, loads and can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values["id"]} if "id" in values else set()
        self.anchors |= {values["name"]} if tag == "a" and "name" in values else set()
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        loads = "src" in values or (tag == "link" and values.get("rel") in ("stylesheet", "icon"))
        if loads:
            self.loaded.append(values.get("src") or values["href"])


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[Path, _Links]:
    found = {}
    for path in sorted(built.rglob("*.html")):
        found[path] = _Links()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page()
    opened.on("request", lambda request: outside(request.url))
    yield opened
    opened.close()


def outside(address: str) -> None:
    assert urlsplit(address).scheme in ("file", "data"), f"{address} is loaded"


def test_every_page_of_the_repository_is_on_the_site_once(built: Path) -> None:
    navigation = site_navigation.load(site_fields.pages())
    known = {*navigation.listed, *navigation.unlisted}
    docs = site_navigation.SOURCE.parent
    missing = {
        path.relative_to(docs.parent)
        for path in docs.rglob("*.md")
        if path.relative_to(docs.parent) not in {Path(each) for each in known}
    }
    assert missing == set(), "docs/site.yaml has no place for them"
    for each in known:
        assert (built / site_navigation.site_path(each).with_suffix(".html")).is_file()


def test_every_link_leads_to_a_page_and_a_heading(pages: dict[Path, _Links]) -> None:
    broken = []
    for path, found in pages.items():
        for link in found.links:
            address = urlsplit(link)
            if address.scheme or link.startswith("//"):
                assert address.scheme in ("https", "mailto"), f"{path.name}: {link}"
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            known = pages[target].anchors if target in pages else None
            anchor = unquote(address.fragment)
            if not target.exists() or (anchor and known is not None and anchor not in known):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(built: Path, pages: dict[Path, _Links]) -> None:
    assert [each for found in pages.values() for each in found.loaded if "//" in each] == []
    styles = "".join(path.read_text() for path in (built / "_static").rglob("*.css"))
    assert re.findall(r"(?:url\(|@import )['\"]?(?:https?:)?//", styles) == []


def test_a_page_is_markdown_that_the_forge_shows_as_well() -> None:
    """No directive and no role: GitHub would show them as text."""
    for path in site_navigation.SOURCE.parent.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^ *(```|:::)+\{", text, re.MULTILINE), path
        assert not text.startswith("---\n"), path


def test_a_mistake_in_a_page_ends_the_build_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, other = PurePosixPath("docs/traps.md"), PurePosixPath("docs/limits.md")
    part = site_navigation.Part("Few", (page, other))
    few = site_navigation.Navigation((part,), (), {})
    monkeypatch.setattr(site_navigation, "load", lambda generated: few)
    original = site_source.Source.text

    def changed(self: site_source.Source, each: PurePosixPath) -> str:
        text = original(self, each)
        return f"{text}\n[lost](limits.md#no-such-heading)\n" if each == page else text

    monkeypatch.setattr(site_source.Source, "text", changed)
    with pytest.raises(site.SiteError, match=r"docs/traps.md:\d+: WARNING: .*no-such-heading"):
        site.build(tmp_path, "0.1.0")
    assert not (tmp_path / "0.1.0").exists()


@pytest.mark.parametrize("name", ["", "../up", "a b", ".hidden", "<b>"])
def test_a_name_of_a_version_that_is_malformed_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(site.SiteError, match="are allowed"):
        site.build(tmp_path, name)


@pytest.mark.parametrize("typed", SEARCHES)
def test_what_a_person_types_finds_the_page(typed: str, built: Path, page: Page) -> None:
    page.goto((built / "search.html").as_uri() + f"?q={typed.replace(' ', '+')}")
    page.wait_for_selector("#search-results ul.search li a")
    page.wait_for_selector("#search-results p.search-summary")
    links = page.eval_on_selector_all(
        "#search-results ul.search li a", "all => all.map(each => each.getAttribute('href'))"
    )
    names = list(dict.fromkeys(link.partition(".html")[0] for link in links))
    assert set(names[:3]) & set(SEARCHES[typed]), names[:6]


def test_a_result_leads_to_its_section(built: Path, page: Page) -> None:
    page.goto((built / "search.html").as_uri() + "?q=uninstall+operator")
    first = page.locator("#search-results ul.search li a").first
    assert first.inner_text() == "Operations > Uninstall"
    assert (first.get_attribute("href") or "").startswith("operations.html#uninstall")


def test_some_of_the_words_are_enough(built: Path, page: Page) -> None:
    page.goto((built / "search.html").as_uri() + "?q=grafana+xyzzy")
    first = page.locator("#search-results ul.search li a").first
    assert (first.get_attribute("href") or "").startswith("dashboards.html")


def test_a_page_is_found_from_the_field_of_every_page(built: Path, page: Page) -> None:
    page.goto((built / "managed.html").as_uri())
    page.fill(".sidebar-search", "grafana")
    page.press(".sidebar-search", "Enter")
    page.wait_for_selector("#search-results ul.search li a[href^='dashboards.html']")


def test_all_versions_are_offered_the_newest_first(folder: Path, page: Page) -> None:
    page.goto((folder / VERSIONS[0] / "concepts.html").as_uri())
    menu = page.locator(".site-versions select")
    assert menu.locator("option").all_inner_texts() == ["0.10.0", "0.2.0-rc.1", "0.1.0"]
    assert menu.input_value() == "0.1.0"
    menu.select_option("0.10.0")
    page.wait_for_url("**/0.10.0/index.html")
    page.goto((folder / "index.html").as_uri())
    page.wait_for_url("**/0.10.0/index.html")


def test_every_entry_of_the_navigation_opens_its_page(built: Path, page: Page) -> None:
    navigation = site_navigation.load(site_fields.pages())
    page.goto((built / "index.html").as_uri())
    entries = page.eval_on_selector_all(
        ".sidebar-tree a.reference", "all => all.map(each => each.href)"
    )
    assert len(entries) == len(set(entries)) == len(navigation.listed)
    captions = page.locator(".sidebar-tree .caption").all_inner_texts()
    assert [each.lower() for each in captions] == [p.title.lower() for p in navigation.parts]
    for entry in entries:
        page.goto(entry)
        current = page.locator(".sidebar-tree .current-page > a")
        assert current.count() == 1, entry
        assert page.locator("h1").first.inner_text().strip()


@pytest.mark.parametrize(
    ("name", "scheme"),
    [*((name, "light") for name in NAMES), *((name, "dark") for name in NAMES[::8])],
)
def test_axe_finds_nothing_serious(
    name: str, scheme: Literal["light", "dark"], built: Path, browser: Browser, axe: str
) -> None:
    opened = browser.new_page(color_scheme=scheme)
    opened.goto((built / name).as_uri())
    opened.evaluate(axe)
    result = opened.evaluate("axe.run(document, {resultTypes: ['violations']})")
    opened.close()
    found = [
        (each["id"], each["nodes"][0]["html"][:120])
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert found == []


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_a_page_is_as_wide_as_the_window(width: int, built: Path, page: Page) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("index", "metrics", "operations", "rules", "fields/schedulers", "concepts"):
        page.goto((built / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.set_viewport_size({"width": 1280, "height": 800})
