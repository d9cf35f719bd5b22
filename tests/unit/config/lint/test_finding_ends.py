"""Where findings end: behind the field that they are about, if it is in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base.source.encoding import LINE_BREAK
from kube_scheduler_operator.base.source.reader import read
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import FileFinding
from kube_scheduler_operator.config.lint.validate import validate

from ....forms.corpus import CASES

OPTIONS = CheckOptions(Gates(Version(1, 35)))
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def marked(text: str, each: FileFinding) -> str | None:
    """What a finding marks in its file; None if its end is not known."""
    end = each.position.end_column
    line = LINE_BREAK.split(text)[each.position.line - 1]
    return None if end is None else line[each.position.column - 1 : end - 1]


def only(text: str) -> str | None:
    [finding] = [
        each for each in validate([("a", text)], OPTIONS).findings if each.severity == "error"
    ]
    return marked(text, finding)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("paralelism: 4\n", "paralelism: 4"),
        ("paralelism: 4  # more\n", "paralelism: 4"),
        ("'paralelism': \"4\"\n", "'paralelism': \"4\""),
        ('"paralel\\x69sm": 4\n', '"paralel\\x69sm": 4'),
        ("paralelism:   'it''s'\n", "paralelism:   'it''s'"),
        ("paralelism: a b\t\n", "paralelism: a b"),
        ("paralelism: {a: 1}\n", "paralelism"),
        ("paralelism:\n  a: 1\n", "paralelism"),
        ("paralelism:\n  4\n", "paralelism"),
        ("paralelism: |\n  4\n", "paralelism"),
        ("paralelism: a\n  b\n", "paralelism"),
        ("paralelism: 'a\n  b'\n", "paralelism"),
        ("paralelism:\n", "paralelism"),
        ("parallelism: &four 4\npodMaxBackoff: *four\n", "podMaxBackoff: *four"),
        ("paralelism: !!int 4\n", "paralelism: !!int 4"),
        ("? paralelism\n: 4\n", "paralelism"),
        ("leaderElection: {leaderElekt: true, retryPeriod: 2s}\n", "leaderElekt: true"),
        ("leaderElection: {retryPeriod: 2s, leaderElekt: true}\n", "leaderElekt: true"),
        ("leaderElection: {leaderElekt: 'a, b' , retryPeriod: 2s}\n", "leaderElekt: 'a, b'"),
        ("leaderElection: {leaderElekt, retryPeriod: 2s}\n", "leaderElekt"),
        ("profiles: [5]\n", "5"),
        ("profiles:\n- 'five'\n", "'five'"),
        ("profiles: [a b ]\n", "a b"),
        ("profiles:\n- - a\n", None),
        ("parallelism: \N{PILE OF POO}\n", "parallelism: \N{PILE OF POO}"),
    ],
)
def test_a_field_is_marked_with_its_value(body: str, expected: str | None) -> None:
    text = HEAD + body
    findings = validate([("a", text)], OPTIONS).findings
    [finding] = [each for each in findings if each.severity == "error"]
    assert marked(text, finding) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("\n      - name: NoSuch\n        weight: 2\n", "name: NoSuch"),
        (" [{name: NoSuch, weight: 2}]\n", "name: NoSuch"),
        ("\n      - {weight: 2, name: NoSuch}\n", "name: NoSuch"),
        ("\n      - weight: 2\n", None),
        (" [{weight: 2}]\n", None),
        (" [[a], 5]\n", "[a]"),
        (" [{name: [a, b]}]\n", "name"),
    ],
)
def test_an_entry_of_a_list_is_marked(entries: str, expected: str | None) -> None:
    text = f"{HEAD}profiles:\n- plugins:\n    score:\n      enabled:{entries}"
    findings = validate([("a", text)], OPTIONS).findings
    first = next(each for each in findings if each.severity == "error")
    assert marked(text, first) == expected


def test_a_whole_entry_is_marked_by_its_first_field_or_its_braces() -> None:
    off = "disabled: [{name: NodeResourcesFit}]"
    for entry, expected in (
        ("disabled:\n      - name: NodeResourcesFit", "name: NodeResourcesFit"),
        (off, "{name: NodeResourcesFit}"),
    ):
        text = f"{HEAD}profiles:\n- plugins:\n    filter:\n      {entry}\n"
        findings = validate([("a", text)], OPTIONS).findings
        [finding] = [each for each in findings if each.reason == "SafetyFilterOff"]
        assert marked(text, finding) == expected


def test_what_is_missing_marks_nothing_or_the_key_of_its_parent() -> None:
    (document,), _ = read("a: 1\nb:\n- c: 2\nd: {e: 3}\n")
    assert document.position(()).end_column is None
    assert document.position(("x",)).end_column is None
    assert document.position(("b", 0, "x")).end_column is None
    assert document.position(("b", 0)).end_column == 7
    assert document.position(("d", "x")).end_column == 2


def test_a_field_in_json_is_marked() -> None:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        'paralel"ism': 4,
    }
    assert only(json.dumps(config)) == r'"paralel\"ism": 4'
    assert only(json.dumps(config, indent=1)) == r'"paralel\"ism": 4'
    assert only(json.dumps(config).replace(": 4", ":\n4")) == r'"paralel\"ism"'
    config['paralel"ism'] = {"a": 1}
    assert only(json.dumps(config)) == r'"paralel\"ism"'
    del config['paralel"ism']
    assert only(json.dumps({**config, "profiles": [5.5]})) == "5.5"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("|\n    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: KubeSchedulerConfiguration\n"
         "    paralelism: 4 # x\n", "paralelism: 4"),
        (json.dumps(f"{HEAD}paralelism: 4\n") + "\n", None),
        ('|\n    {"apiVersion": "kubescheduler.config.k8s.io/v1",\n     "kind": '
         '"KubeSchedulerConfiguration", "paralelism": 4}\n', '"paralelism": 4'),
    ],
)  # fmt: skip
def test_a_field_in_a_text_is_marked_in_the_file(value: str, expected: str | None) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  config.yaml: {value}"
    findings = validate([("a", text)], OPTIONS).findings
    [finding] = [each for each in findings if each.reason == "UnknownField"]
    found = marked(text, finding)
    if expected is None:  # the text is written in another form: its key, and where it is written
        assert found is not None
        assert found.startswith("config.yaml: ")
    else:
        assert found == expected


def test_what_is_marked_in_the_corpus_is_a_whole_token() -> None:
    ends = 0
    for case in CASES:
        texts = dict(case.contents)
        for each in validate(case.contents, OPTIONS).findings:
            text = marked(texts[each.file], each)
            if text is None:
                continue
            ends += 1
            assert text == text.strip(), (case.name, each)
            assert text, (case.name, each)
            assert text.count('"') % 2 == 0 or "'" in text, (case.name, each, text)
            assert not text.endswith(","), (case.name, each, text)
            for opened, closed in ("{}", "[]"):
                assert text.count(opened) == text.count(closed), (case.name, each, text)
    assert ends > 100


def test_the_length_of_a_position_does_not_count_in_comparisons() -> None:
    (long,), _ = read("a: bcd\n")
    (short,), _ = read("a: b\n")
    assert long.position(("a",)) == short.position(("a",))
    assert long.position(("a",)).end_column != short.position(("a",)).end_column
