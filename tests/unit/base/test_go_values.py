"""Scalars with Go's syntax."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base.go_values import (
    boolean,
    duration_text,
    integer,
    is_extended_resource,
    is_label_value,
    is_qualified_name,
    nanoseconds,
    seconds,
)
from kube_scheduler_operator.config.language.versions import Version


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("15s", 15), ("1m30s", 90), ("1.5h", 5400), ("300ms", 0.3), ("-2s", -2), ("+2s", 2),
        ("0", 0), (".5s", 0.5), ("1.s", 1), ("1us", 1e-6), ("2m0s", 120),
    ],
)  # fmt: skip
def test_durations_are_parsed_like_go(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "15", "1d", "s", "1 s", "1s ", "-", "\uff11s"])
def test_durations_that_go_rejects_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 15s"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "nanoseconds_", "printed"),
    [
        ("1h30m", 5400 * 10**9, "1h30m0s"), ("600s", 600 * 10**9, "10m0s"), ("-0", 0, "0s"),
        ("1500µs", 1_500_000, "1.5ms"), ("0.4ns", 0, "0s"), ("999ns", 999, "999ns"),
        ("0.3333333333333333333h", 1200 * 10**9, "20m0s"), ("-90.5s", -90_500_000_000, "-1m30.5s"),
        ("2562047h47m16.854775807s", 2**63 - 1, "2562047h47m16.854775807s"),
        ("-2562047h47m16.854775808s", -(2**63), "-2562047h47m16.854775808s"),
    ],
)  # fmt: skip
def test_durations_are_exact_and_printed_like_go(
    text: str, nanoseconds_: int, printed: str
) -> None:
    assert nanoseconds(text) == nanoseconds_
    assert duration_text(nanoseconds_) == printed


@pytest.mark.parametrize(
    "text", ["2562047h47m16.854775808s", "-2562047h47m16.854775809s", "9" * 5000 + "ns"]
)
def test_the_longest_duration_is_that_of_go(text: str) -> None:
    with pytest.raises(ValueError, match="longer than 292 years"):
        nanoseconds(text)


def test_leading_zeros_of_a_duration_are_ignored() -> None:
    assert seconds("0" * 5000 + "1s") == 1


@pytest.mark.parametrize(("text", "value"), [("-7", -7), ("+007", 7), ("0" * 5000 + "1", 1)])
def test_integers(text: str, value: int) -> None:
    assert integer(text) == value


@pytest.mark.parametrize("text", ["9" * 20, "-" + "9" * 5000])
def test_an_integer_with_more_than_64_bits_is_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="is out of range"):
        integer(text)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("T", True), ("0", False)])
def test_booleans(text: str, value: bool) -> None:
    assert boolean(text) is value


@pytest.mark.parametrize("text", ["yes", "TrUe", ""])
def test_other_words_are_not_booleans(text: str) -> None:
    with pytest.raises(ValueError, match="neither true nor false"):
        boolean(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.com/gpu", True), ("gpu", True), ("a_b.c-d", True), ("x" * 63, True),
        ("", False), ("x" * 64, False), ("-a", False), ("/a", False), ("Example.com/a", False),
        ("a/b/c", False), ("a b", False), ("example..com/a", False),
    ],
)  # fmt: skip
def test_qualified_names(text: str, expected: bool) -> None:
    assert is_qualified_name(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), ("a.b_c", True), ("a/b", False), ("x" * 64, False)]
)
def test_label_values(text: str, expected: bool) -> None:
    assert is_label_value(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.com/gpu", True),
        ("cpu", False),
        ("kubernetes.io/x", False),
        ("requests.example.com/gpu", False),
        (f"{'d.' * 122}com/x", False),
    ],
)
def test_extended_resources(text: str, expected: bool) -> None:
    assert is_extended_resource(text) is expected


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.35.4", Version(1, 35, 4)),
        ("1.29", Version(1, 29)),
        ("v1.36.0-rc.1", Version(1, 36)),
        ("v1.34.2_vendor.3", Version(1, 34, 2)),
        ("v1.34.2+k3s1", Version(1, 34, 2)),
    ],
)
def test_versions_are_read_from_tags(text: str, version: Version) -> None:
    assert Version.parse(text) == version


@pytest.mark.parametrize("text", ["latest", "1", "v1.x", "", "1.2.3.4", "v01.2"])
def test_other_tags_are_not_versions(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a Kubernetes version such as v1\.35\.4"):
        Version.parse(text)


def test_versions_are_ordered_by_number_not_by_text() -> None:
    assert Version(1, 9) < Version(1, 29) < Version(1, 29, 10) < Version(1, 30)
