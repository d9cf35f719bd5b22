"""The forms in which people keep configurations: tests/forms, each with the findings beside it.

`NAME.expect` has what a user reads. `pytest --update` rewrites it; read the difference.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.forms.table import FORMS
from kube_scheduler_operator.config.lint.reports.report import ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

from ....forms.corpus import CASES, Case

OPTIONS = CheckOptions(Gates(Version(1, 35)))


def checked(case: Case) -> ValidationReport:
    return validate(case.contents, OPTIONS)


def shown(report: ValidationReport) -> str:
    lines = []
    for each in report.findings:
        at = f"{each.file}:{each.position.line}:{each.position.column}"
        path = f"{each.path}: " if each.path else ""
        lines.append(f"{at}: {each.severity}: {path}{each.message} [{each.reason}]")
        lines.append(f"    fix: {each.fix}")
    lines += [f"note: {note}" for note in report.notes]
    kinds = ", ".join(kind or "broken" for _, kind in report.documents)
    lines.append(f"checked: {kinds or 'nothing'}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_form_has_the_findings_that_are_written_beside_it(
    case: Case, request: pytest.FixtureRequest
) -> None:
    text = shown(checked(case))
    if request.config.getoption("--update"):
        case.expectation.write_text(text)
    assert text == case.expectation.read_text()


def test_every_case_names_its_source_and_has_an_expectation() -> None:
    assert len(CASES) >= 120
    assert [case.name for case in CASES if not case.sources] == []
    written = {case.expectation for case in CASES}
    folder = Path(__file__).parents[3] / "forms"
    assert set(folder.rglob("*.expect")) == written


def test_every_form_has_a_case() -> None:
    read = set()
    for case in CASES:
        for document in case.documents():
            for form in FORMS:
                if form.read(document):
                    read.add(form)
                    break
    assert read == set(FORMS)


def test_the_page_lists_every_form() -> None:
    page = (Path(__file__).parents[4] / "docs" / "validating.md").read_text(encoding="utf-8")
    table = page.partition("| Form | Defined by |\n|---|---|\n")[2].partition("\n\n")[0]
    sources = [row.split("|")[2].strip() for row in table.splitlines()]
    for form, source in zip(FORMS, sources, strict=True):
        module = inspect.getmodule(form.reader)
        words = " ".join((module.__doc__ or "").split()) if module else ""
        # The project with its version; no document defines that a configuration is somewhere.
        assert source.partition(",")[0] in words or form is FORMS[-1], source


def test_no_secret_is_quoted() -> None:
    for case in CASES:
        assert "this-is-not-to-be-shown" not in shown(checked(case))
        assert "dGhpcy1pcy1ub3QtdG8tYmUtc2hvd24" not in shown(checked(case))


def test_positions_are_in_the_file_that_the_user_sees() -> None:
    for case in CASES:
        lengths = {name: len(text.splitlines()) for name, text in case.contents}
        for each in checked(case).findings:
            assert 1 <= each.position.line <= lengths[each.file] + 1, (case.name, each)
