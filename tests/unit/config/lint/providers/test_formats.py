"""Every provider's output has the provider's form, and configurations that kube-scheduler takes."""

from __future__ import annotations

import jsonschema
import pytest
import yaml

from kube_scheduler_operator.base.source.yaml_text import yaml_text
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.providers.table import PROVIDERS
from kube_scheduler_operator.config.lint.validate import validate

from .cases import CASES, WORDS, case_for, configurations, is_configuration, kubernetes
from .outputs import write
from .schemas import BY_WORD


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("word", WORDS)
def test_the_output_has_the_form_of_the_provider(word: str, case: str) -> None:
    output = write(word, **case_for(word, case))
    own = [each.content for each in output.files if not is_configuration(each.content)]
    expected = BY_WORD.get(word)
    assert len(own) == (0 if expected is None else 1)
    for content in own:
        assert expected is not None
        jsonschema.validate(content, expected, cls=jsonschema.Draft202012Validator)
        # What is printed is read as these values.
        assert yaml.safe_load(yaml_text([content])) == content


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("word", WORDS)
def test_kube_scheduler_starts_with_every_configuration(word: str, case: str) -> None:
    version = kubernetes(word)
    output = write(word, **case_for(word, case))
    found = [config for each in output.files for config in configurations(each.content)]
    for config in found:
        gates = Gates(Version.parse(version))
        report = validate([("f", yaml_text([config]))], CheckOptions(gates))
        assert report.starts, report.findings
        assert [kind for _, kind in report.documents] == ["KubeSchedulerConfiguration"]
    assert bool(found) == (word not in ("eks", "gardener", "karpenter"))


def test_every_provider_has_a_form() -> None:
    assert {word.partition(":")[0] for word in WORDS} == set(PROVIDERS)
