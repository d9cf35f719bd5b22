from __future__ import annotations

import pytest

from kube_scheduler_operator.base import quantities
from kube_scheduler_operator.base.quantities import amounts, quantity


@pytest.mark.parametrize(
    ("text", "base", "milli"),
    [
        ("0", 0, 0),
        ("250m", 1, 250),
        ("1.5", 2, 1500),
        ("2", 2, 2000),
        (".5", 1, 500),
        ("100u", 1, 1),
        ("1n", 1, 1),
        ("512Mi", 512 * 2**20, 512 * 2**20 * 1000),
        ("1Gi", 2**30, 2**30 * 1000),
        ("1G", 10**9, 10**12),
        ("2e3", 2000, 2_000_000),
        ("2E3", 2000, 2_000_000),
        ("1E", 10**18, 2**63 - 1),
        ("1Ei", 2**60, 2**63 - 1),
        ("12e-1", 2, 1200),
        ("-1", -1, -1000),
        ("9999999999E", 2**63 - 1, 2**63 - 1),
    ],
)
def test_quantities_are_parsed_like_go(text: str, base: int, milli: int) -> None:
    assert quantity(text) == float(base)
    assert quantity(text, milli=True) == float(milli)


@pytest.mark.parametrize(
    "text", ["", "x", "1 Gi", "1Xi", "1e", "--1", "1ee3", "٣", "1KiB", "1e9999"]
)
def test_invalid_quantity_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 250m|unknown suffix"):
        quantity(text)


def test_resource_lists_have_millicores_and_base_units() -> None:
    resources = {"cpu": 2, "memory": "1Ki", "nvidia.com/gpu": "3", "bad": "much", "none": None}
    assert amounts(resources) == {"cpu": 2000.0, "memory": 1024.0, "nvidia.com/gpu": 3.0}
    assert amounts(None) == amounts([]) == {}


def test_a_long_quantity_is_not_cached() -> None:
    before = quantities._cached.cache_info().currsize
    assert quantity("0" * 1000 + "1") == 1.0
    assert quantities._cached.cache_info().currsize == before
