"""The site: the pages of docs/ in one folder for each version, beside each other, for any server.

A folder needs no server: it works as files, its search too. Nothing in it is loaded from elsewhere.
"""

from __future__ import annotations

import html
import io
import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from cluster import paths
from pages import site_fields, site_navigation, site_search, site_source

DEFAULT: Final = paths.REPOSITORY / "build" / "site"
_THEME: Final = Path(__file__).parent / "site_theme"
_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]*")
_VERSIONS: Final = "versions.js"
"""Beside the folders of versions: their names, for the menu of every page of every version."""

_ACCESSIBLE: Final = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    "<pre>": '<pre tabindex="0">',
}
"""What the theme leaves out for readers without a mouse or a screen; axe checks the result."""


class SiteError(Exception):
    """The site cannot be built: what is wrong, one line each."""


def version() -> str:
    """The version of this checkout."""
    text = (paths.REPOSITORY / "operator/kube_scheduler_operator/__init__.py").read_text()
    return str(re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0])


def build(folder: Path, name: str, repository: str = "") -> None:
    """Build the pages of this checkout into `folder/name`, and list all versions of `folder`.

    Args:
        folder: of all versions; others in it stay as they are.
        name: of this one, as the menu shows it.
        repository: address at a forge to which links to code lead; without it they are text.

    Raises:
        SiteError: the name is not one, or a page has a mistake.
    """
    if not _NAME.fullmatch(name):
        raise SiteError(f'version "{name}": letters, digits, ".", "+", "_" and "-" are allowed')
    generated = site_fields.pages()
    try:
        navigation = site_navigation.load(generated)
    except ValueError as error:
        raise SiteError(str(error)) from error
    source = site_source.Source(navigation, generated, repository)
    with tempfile.TemporaryDirectory(prefix="site-") as scratch:
        pages, made = Path(scratch, "pages"), Path(scratch, "made")
        site_source.write(source, pages)
        _run_sphinx(pages, made, _settings(name))
        site_search.write(made, _keywords(navigation))
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(made, folder / name)
    write_versions(folder)


def write_versions(folder: Path) -> None:
    """List the versions that a folder has, newest first, for their menus and as its first page."""
    found = sorted(
        (path.parent.name for path in folder.glob("*/searchindex.js")), key=_order, reverse=True
    )
    (folder / _VERSIONS).write_text(f"window.siteVersions = {json.dumps(found)};\n")
    items = "\n".join(
        f'<li><a href="{html.escape(n)}/index.html">{html.escape(n)}</a></li>' for n in found
    )
    (folder / "index.html").write_text(
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f'<meta http-equiv="refresh" content="0; url={html.escape(found[0])}/index.html">\n'
        "<title>kube-scheduler-operator: versions of the documentation</title>\n"
        f"<main><h1>Versions of the documentation</h1>\n<ul>\n{items}\n</ul></main>\n</html>\n"
    )


def _order(name: str) -> tuple[bool, list[int], str]:
    """Numbers by their size, other names (a branch) after all of them."""
    numbers = [int(each) for each in re.findall(r"\d+", name.partition("-")[0])]
    return name.lstrip("v")[:1].isdigit(), numbers, "" if "-" in name else "~"


def _keywords(navigation: site_navigation.Navigation) -> dict[str, tuple[str, ...]]:
    """What people type, by the page that they look for."""
    return {
        str(site_navigation.site_path(page).with_suffix("")): words
        for page, words in navigation.keywords.items()
    }


def _run_sphinx(pages: Path, made: Path, settings: Mapping[str, Any]) -> None:
    # Sphinx is a tool of developers; what else of hack/ is imported does without.
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    written = io.StringIO()
    with warnings.catch_warnings(), patch_docutils(), docutils_namespace():
        # MyST uses parts of Sphinx that version 11 removes.
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        Sphinx(
            srcdir=pages,
            confdir=None,
            outdir=made,
            doctreedir=made.with_name("doctrees"),
            buildername="html",
            confoverrides=dict(settings),
            status=None,
            warning=written,
        ).build()
    if text := re.sub(r"\x1b\[[0-9;]*m", "", written.getvalue()).strip():
        raise SiteError(_in_repository(text.splitlines(), pages))
    (made / ".buildinfo").unlink(missing_ok=True)
    for page in made.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for incomplete, accessible in _ACCESSIBLE.items():
            text = text.replace(incomplete, accessible)
        page.write_text(text, encoding="utf-8")


def _settings(name: str) -> dict[str, Any]:
    return {
        "project": "kube-scheduler-operator",
        "version": name,
        "release": name,
        "extensions": ["myst_parser"],
        "html_theme": "furo",
        "html_title": f"kube-scheduler-operator {name}",
        "html_static_path": [str(_THEME / "static")],
        "html_css_files": ["site.css"],
        "html_js_files": [f"../../{_VERSIONS}", "versions.js"],
        "html_copy_source": False,
        "html_show_sourcelink": False,
        "html_show_copyright": False,
        "templates_path": [str(_THEME / "templates")],
        "html_sidebars": {
            "**": [
                "sidebar/brand.html",
                "sidebar/search.html",
                "sidebar/versions.html",
                "sidebar/scroll-start.html",
                "sidebar/navigation.html",
                "sidebar/scroll-end.html",
            ]
        },
        "highlight_language": "text",
        # A block with a part left out (…) cannot be parsed; it is shown without some colours.
        # One page may begin with sections below those of its commands.
        "suppress_warnings": ["misc.highlighting_failure", "myst.header"],
        # GitHub's anchors, for every level of headings.
        "myst_heading_anchors": 6,
        "nitpicky": True,
    }


def _in_repository(lines: Iterable[str], pages: Path) -> str:
    return "\n".join(line.replace(f"{pages}/", "docs/") for line in lines)
