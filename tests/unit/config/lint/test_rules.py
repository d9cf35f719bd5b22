"""The catalogue of rules: complete, and true of its own examples."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.config.lint.rules import RULES, Rule

from ....seeds import SEED
from .emitted_reasons import emitted_reasons
from .rule_examples import examples

PAGE = Path(__file__).parents[4] / "docs" / "rules.md"

NOT_FROM_FILES = {
    "FeatureGatesNotFound": "FeatureGate is an object of the cluster",
    "FeatureGatesNotRecorded": "FeatureGate is an object of the cluster",
    "KindNotServed": "only an API server serves kinds",
    "NamespaceNotAllowed": "only the operator knows which namespaces are permitted",
    "NoAPIServerURL": "Infrastructure is an object of the cluster",
    "NoOperandImage": "only the operator knows the image of running schedulers",
    "NotAdopted": "what was adopted is known in the cluster only",
    "NothingToCheck": "validate ends with exit code 2 and the same message",
    "NotOneDocument": "load policies of crane's programs; validate splits documents itself",
    "OperatorError": "a defect of this program",
    "Refused": "kube-scheduler itself, in a preflight",
    "SchedulerHasConfigFile": "the flags of the running scheduler",
    "SchedulerNameReplaced": "the scheduler in the provider's place exists in the cluster only",
    "SchedulerNotFound": "a scheduler that is not in the files may be in the cluster",
    "UnknownCustomization": "the CustomResourceDefinition reports InvalidValue there",
    "UnknownLogLevel": "the CustomResourceDefinition reports InvalidValue there",
    "UnknownProfile": "the CustomResourceDefinition reports InvalidValue there",
    "UnknownTLSProfile": "the CustomResourceDefinition reports InvalidValue there",
    "UnknownValue": "the CustomResourceDefinition reports InvalidValue there",
    "UnknownVersion": "validate writes a note for its whole run",
    "Unreadable": "load policies of crane's programs; validate reports Syntax",
    "VersionSkew": "the version of the API server is known in the cluster only",
    "UnsupportedConfigOverridesSet": "it concerns upgrades of the cluster only",
}  # fmt: skip
"""Reasons in the code of `validate` that it does not report, and why."""

UNAVOIDABLE = {
    "NoCipherSuite": {"UnsupportedCipherSuite"},
    "SchedulerNameTaken": {"SameSchedulerName"},
}
"""Other rules that the example of a rule also violates, because no file violates only that one."""


def found_in(folder: Path, files: dict[str, str], *flags: str) -> list[dict[str, Any]]:
    arguments = ["validate", *flags, "-o", "json"]
    for name, text in files.items():
        (folder / name).write_text(text)
        arguments += ["-f", str(folder / name)]
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        main(arguments)
    findings: list[dict[str, Any]] = json.loads(output.getvalue())["findings"]
    return findings


def test_every_reason_in_the_code_has_a_rule_or_cannot_come_from_a_file() -> None:
    emitted = set(emitted_reasons())
    assert emitted - set(RULES) - set(NOT_FROM_FILES) == set()
    assert set(RULES) - emitted == set()
    assert set(NOT_FROM_FILES) - emitted == set()
    assert set(NOT_FROM_FILES) & set(RULES) == set()


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_example_of_a_rule_triggers_it_and_no_other(rule: Rule, tmp_path: Path) -> None:
    findings = found_in(tmp_path, examples(rule), *rule.flags)
    reasons = {each["reason"] for each in findings}
    assert reasons - UNAVOIDABLE.get(rule.name, set()) == {rule.name}
    assert {each["severity"] for each in findings if each["reason"] == rule.name} <= set(
        rule.severities
    )


def test_rules_have_complete_texts() -> None:
    for rule in RULES.values():
        assert not rule.title.endswith("."), rule.name
        assert rule.meaning.endswith("."), rule.name
        assert rule.fix.endswith("."), rule.name
        assert rule.severities in (("error", "warning"), ("error",), ("warning",)), rule.name


def test_the_page_lists_every_rule_by_its_topic() -> None:
    head, *topics = PAGE.read_text().split("\n## ")
    tables, names = [], []
    for topic in topics:
        heading, *sections = topic.split("\n### ")
        rules = [RULES[section.partition("\n")[0]] for section in sections]
        rows = [f"| [{rule.name}](#{rule.name.lower()}) | {rule.title} |" for rule in rules]
        tables.append("\n".join((f"| {heading.strip()} | |", "|---|---|", *rows)))
        names += [rule.name for rule in rules]
    assert names == list(RULES)
    assert head.rstrip().endswith("\n\n" + "\n\n".join(tables))


def test_findings_of_damaged_examples_have_a_rule_with_their_severity(tmp_path: Path) -> None:
    """Deletes a line, or repeats one, in each example: most have another finding then."""
    random = Random(SEED)
    for rule in RULES.values():
        if max(map(len, examples(rule).values())) > 10_000:
            continue
        for _ in range(2):
            files = {name: damaged(text, random) for name, text in examples(rule).items()}
            for each in found_in(tmp_path, files, *rule.flags):
                assert each["severity"] in RULES[each["reason"]].severities, (files, each)


def damaged(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    index = random.randrange(len(lines))
    lines[index : index + 1] = [lines[index]] * random.choice([0, 2])
    return "".join(lines)
