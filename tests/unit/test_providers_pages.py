"""docs/providers.md and docs/autoscalers.md match what `compose --for` does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.providers.table import PROVIDERS
from kube_scheduler_operator.config.lint.validate import validate

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "autoscaled.yaml"
AUTOSCALERS = (DOCS / "autoscalers.md").read_text()


def test_the_page_lists_every_provider() -> None:
    rows = re.findall(
        r"^\| `([a-z][a-z0-9-]*)` \|", (DOCS / "providers.md").read_text(), re.MULTILINE
    )
    assert rows == list(PROVIDERS)


@pytest.mark.parametrize(
    ("word", "first"), [("cluster-autoscaler", "apiVersion"), ("karpenter", "podTopologySpread")]
)
def test_the_page_shows_what_compose_prints(
    word: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compose", "-f", str(EXAMPLE), "--for", word]) == 0
    printed = capsys.readouterr().out
    blocks = re.findall(r"^```yaml\n(.*?)^```", AUTOSCALERS, re.MULTILINE | re.DOTALL)
    shown: list[Any] = [yaml.safe_load(each) for each in blocks if each.startswith(first)]
    assert shown == [yaml.safe_load(printed)]


@pytest.mark.parametrize("minor", range(33, 37))
def test_the_example_is_valid(minor: int) -> None:
    options = CheckOptions(Gates(Version(1, minor)))
    report = validate([(EXAMPLE.name, EXAMPLE.read_bytes())], options)
    assert report.starts
    assert report.count("error") == 0
