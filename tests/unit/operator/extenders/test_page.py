"""docs/extenders.md and its examples: all of it is accepted, and no field is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import assets, names
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

DOCS = Path(__file__).resolve().parents[4] / "docs"
PAGE = (DOCS / "extenders.md").read_text()
EXAMPLES = sorted(set(re.findall(r"\(examples/([\w.-]+)\)", PAGE)))


def accepted(text: str, minor: int = 35) -> None:
    result = validate([("f", text)], CheckOptions(Gates(Version(1, minor))))
    assert result.findings == (), result.findings


@pytest.mark.parametrize("minor", [29, 35, 37])
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_accepted_without_a_warning(name: str, minor: int) -> None:
    accepted((DOCS / "examples" / name).read_text(), minor)


def test_the_pages_own_yaml_is_accepted() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    accepted(shown)


def test_every_field_is_in_the_table() -> None:
    crd = yaml.safe_load(assets.text("crds", f"{names.SCHEDULEREXTENDERS}.yaml"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    section = PAGE.partition("## Fields")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    reported = {field for row in rows for field in re.findall(r"`([\w.]+)`", row)}
    spec: dict[str, Any] = schema["properties"]["spec"]["properties"]
    fields = {key for key in spec if key not in ("agent", "verbs")}
    fields |= {f"verbs.{key}" for key in spec["verbs"]["properties"]}
    agent = spec["agent"]["properties"]
    fields |= {f"agent.{key}" for key in agent if key != "podSelector"}
    fields |= {f"agent.podSelector.{key}" for key in agent["podSelector"]["properties"]}
    assert reported == fields
