"""The pure parts of the site: navigation, links that leave docs/, pages of fields, versions."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from cluster import paths
from pages import site, site_fields, site_navigation, site_search, site_source


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "deploy" / "kubeadm").mkdir(parents=True)
    (tmp_path / "deploy" / "kubeadm" / "all.yaml").write_text("kind: List\n")
    (tmp_path / "README.md").write_text("# Name\n\nOne thing. Another: [docs/b.md](docs/b.md).\n")
    (tmp_path / "docs" / "a.md").write_text(
        "# A\n\n[r](../README.md#x), [d](../deploy/kubeadm), [f](../deploy/kubeadm/all.yaml),\n"
        "[t](../tests/test_a.py), [b](b.md#c), [b.md](b.md#c), [w](https://example.com)\n\n"
        "```console\n$ [not](a-link.md)\n```\n"
    )
    (tmp_path / "docs" / "b.md").write_text("# B\n")
    (tmp_path / "docs" / "site.yaml").write_text(
        "sections: [{title: T, pages: [a.md, ../README.md, later/*.md, fields/*.md]}]\n"
        "unlisted: [b.md]\nkeywords: {b.md: [second]}\n"
    )
    return tmp_path


def navigation(repository: Path, *generated: str) -> site_navigation.Navigation:
    return site_navigation.load(generated, source=repository / "docs" / "site.yaml")


def test_a_pattern_may_match_nothing_and_generated_pages_have_their_place(repository: Path) -> None:
    listed = [str(page) for page in navigation(repository, "fields/k.md").listed]
    assert listed == ["docs/a.md", "README.md", "docs/fields/k.md"]


def test_a_page_that_is_missing_or_there_twice_is_an_error(repository: Path) -> None:
    file = repository / "docs" / "site.yaml"
    file.write_text(file.read_text().replace("unlisted: [b.md]", "unlisted: [b.md, a.md]"))
    with pytest.raises(ValueError, match=r"there twice: docs/a\.md"):
        navigation(repository)
    (repository / "docs" / "a.md").unlink()
    with pytest.raises(ValueError, match=r"a\.md does not exist"):
        navigation(repository)


@pytest.mark.parametrize(
    ("forge", "code"),
    [("", "t"), ("https://example.com/r/", "[t](https://example.com/r/tests/test_a.py)")],
)
def test_links_lead_to_pages_and_files_of_the_site(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, forge: str, code: str
) -> None:
    made = tmp_path_factory.mktemp("pages")
    source = site_source.Source(navigation(repository), {}, forge, repository)
    site_source.write(source, made)
    assert (made / "a.md").read_text() == (
        "# A\n\n[r](project/README.md#x), [d](files/deploy/kubeadm/index.md), "
        f"[f](files/deploy/kubeadm/all.yaml),\n{code}, [b](b.md#c), [B](b.md#c), "
        "[w](https://example.com)\n\n```text\n$ [not](a-link.md)\n```\n"
    )
    assert (made / "files/deploy/kubeadm/all.yaml").read_text() == "kind: List\n"
    assert "[`all.yaml`](all.yaml)" in (made / "files/deploy/kubeadm/index.md").read_text()
    assert (made / "b.md").read_text().startswith("---\nmyst:\n")
    assert "Another: [B](../b.md)." in (made / "project/README.md").read_text()
    assert "* [Name](project/README.md): One thing." in (made / "index.md").read_text()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# T\n\nOne [link](a.md) of it. Two.\n", "One link of it."),
        ("# T\n\n<!-- c -->\n\n```\nx\n```\n\nThen this:\n\n| a |\n", "Then this."),
        ("# T\n\n| a |\n|---|\n", ""),
        ("# T\n\n`a` has two: x, y. More.\n", "`a` has two: x, y."),
        ("# T\n\nThat of 1.35. `b` is next.\n", "That of 1.35."),
        ("# T\n\n1. One\n\n* Two\n\n![p](p.svg)\n", ""),
    ],
)
def test_a_page_is_introduced_by_its_first_sentence(text: str, sentence: str) -> None:
    assert site_source.first_sentence(text) == sentence


@pytest.mark.parametrize("page", site_navigation.load().listed, ids=str)
def test_a_page_begins_with_a_sentence_about_it(page: PurePosixPath) -> None:
    """The first page of the site shows it, and a reader who comes from a search reads it first."""
    text = (paths.REPOSITORY / page).read_text()
    head = re.sub(r"<!--.*?-->\n", "", text.partition("\n")[2], flags=re.DOTALL).lstrip()
    about = site_source.first_sentence(head.partition("\n\n")[0])
    assert about, "a heading, code, a list or a table comes first"
    assert 3 < len(about.split()) <= 45, about


def test_the_words_of_a_section_are_counted_without_those_of_the_sections_in_it() -> None:
    """A row is about what its first cell has; a word of two is found by each."""
    page = (
        "<p>menu</p><section id='a'><h1>Pods <code>x</code><a>¶</a></h1><p>pods 12</p>"
        "<section id='b'><h2>Low</h2><table><tr><td>nodeSelector</td><td>low</td></tr>"
        "<tr><td>two nodes</td><td>nodes</td></tr></table></section><p>end</p></section>"
    )
    outer, inner = site_search.sections(page)
    assert (outer.anchor, outer.heading) == ("a", "Pods x")
    assert outer.words == {"pods": 2, "x": 1, "end": 1}
    assert inner.words == {"low": 2, "two": 2, "nodes": 3} | dict.fromkeys(
        ("nodeselector", "node", "selector"), 8
    )


def test_every_kind_has_a_page_with_its_fields() -> None:
    pages = site_fields.pages()
    assert len(pages) == len(list(site_fields.CRDS.glob("*.*.yaml")))
    text = pages["fields/secondaryschedulers.md"]
    assert "| `spec.assign.namespaceSelector` | object |" in text
    assert "| `spec.profiles[].schedulerName` |" in text


def test_a_description_cannot_be_markup() -> None:
    assert site_fields.plain("a | b\n<c> *d*") == r"a \| b \<c\> \*d\*"


def test_versions_are_ordered_by_their_numbers(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.10.0-rc.1", "main"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "searchindex.js").touch()
    site.write_versions(tmp_path)
    assert (tmp_path / "versions.js").read_text() == (
        'window.siteVersions = ["0.10.0", "0.10.0-rc.1", "0.9.0", "main"];\n'
    )
    assert "0; url=0.10.0/index.html" in (tmp_path / "index.html").read_text()


def test_the_path_of_a_page_outside_of_docs_is_below_project() -> None:
    assert site_navigation.site_path(PurePosixPath("hack/README.md")) == PurePosixPath(
        "project/hack/README.md"
    )
