"""The table of providers, and `--for`."""

from __future__ import annotations

import re
import sys

import pytest

from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.providers.table import PROVIDERS, find_provider


def test_every_provider_has_a_module_that_cites_its_source() -> None:
    for provider in PROVIDERS.values():
        text = sys.modules[provider.write.__module__].__doc__ or ""
        name = provider.name.removesuffix("-patches")
        parts = re.split(r"\n(?=[\w, -]+: )", text)
        cited = "\n".join(part for part in parts if name in part.partition(":")[0].lower())
        # A commit or a version: what the module was written after.
        assert re.search(r"\bat [0-9a-f]{7}\b|\d+\.\d+\.\d+", cited), provider.name
        # A commit, a version or the version of an API: what the format was written after.
        assert re.search(r"\bat [0-9a-f]{7}\b|\d+\.\d+\.\d+", provider.source)


@pytest.mark.parametrize(
    ("word", "name", "release"),
    [
        ("aks", "aks", None),
        ("talos:1.14", "talos", Version(1, 14)),
        ("k3s:v1.35.4+k3s1", "k3s", Version(1, 35, 4)),
        ("cluster-autoscaler:1.36", "cluster-autoscaler", Version(1, 36)),
    ],
)
def test_a_word_names_a_provider_and_a_release(
    word: str, name: str, release: Version | None
) -> None:
    assert find_provider(word) == (PROVIDERS[name], release)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("kubeadmn", 'did you mean "kubeadm"'),
        ("gke", '"gke" is not aks, eks, '),
        ("", '"" is not aks, '),
        ("talos:", "is not a Kubernetes version"),
        ("talos:new", "'new' is not a Kubernetes version"),
    ],
)
def test_a_wrong_word_is_refused(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        find_provider(word)
