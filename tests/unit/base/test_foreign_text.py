"""Foreign text is shown as one short line of visible characters."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base.foreign_text import (
    foreign,
    foreign_lines,
    is_visible,
    json_text,
    one_line,
    visible,
)

from ...hostile import TEXTS, expect_harmless

texts = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("default-scheduler", "default-scheduler"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x1b[31m\x07\x00\x7f\x9b", r"\u001b[31m\u0007\u0000\u007f\u009b"),
        ("\u202e\u2066\u061c\u200f", r"\u202e\u2066\u061c\u200f"),
        ("\u2028\u2029\x85", r"\u2028\u2029\u0085"),
        ("a\u00adb\u200b\ufeff\u3164\ufe0f", r"a\u00adb\u200b\ufeff\u3164\ufe0f"),
        ("\U000e0041\U0010fffd\ue000\ufdd0\U0001ffff",
         r"\U000e0041\U0010fffd\ue000\ufdd0\U0001ffff"),
        ("\ud800", r"\ud800"),
        (r"C:\path \u001b", r"C:\path \u001b"),
        ("ä 日本語 \u3000\u00a0 e\u0301 😀 \u0378", "ä 日本語 \u3000\u00a0 e\u0301 😀 \u0378"),
    ],
)  # fmt: skip
def test_what_is_not_visible_is_written_out(text: str, shown: str) -> None:
    assert one_line(text) == shown
    assert foreign(text, 1000) == shown


def test_no_character_of_a_category_without_an_appearance_stays() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            assert one_line(character) != character, ascii(character)


@given(texts, st.integers(1, 60))
def test_it_is_short_and_harmless_and_a_second_run_changes_nothing(text: str, limit: int) -> None:
    shown = foreign(text, limit)
    assert len(shown) <= limit
    expect_harmless(shown)
    assert foreign(shown, limit) == shown
    assert one_line(shown) == shown


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("abc\x1bdefg", 9, "abc…"),  # never the half of a character that is written out
        ("abc\nd", 5, "abc…"),
        ("\x1b", 5, "…"),
    ],
)
def test_what_is_cut_ends_with_an_ellipsis(text: str, limit: int, shown: str) -> None:
    assert foreign(text, limit) == shown


@given(texts)
def test_lines_of_our_own_stay_lines(text: str) -> None:
    assert visible(text).split("\n") == [one_line(line) for line in text.split("\n")]
    assert is_visible(text) == (visible(text) == text)


def test_each_text_is_one_line() -> None:
    assert foreign_lines(["a\nb", "c"], 100) == "a\\nb\nc"


@given(st.dictionaries(texts, texts))
def test_json_loses_nothing(value: dict[str, str]) -> None:
    text = json_text(value)
    expect_harmless(text)
    assert json.loads(text) == value


def test_json_keeps_other_alphabets() -> None:
    assert json_text({"a": "日本語\n"}, indent=2) == '{\n  "a": "日本語\\n"\n}'


@pytest.mark.parametrize("name", TEXTS)
def test_every_hostile_text_is_harmless(name: str) -> None:
    expect_harmless(one_line(TEXTS[name]))
    with pytest.raises(AssertionError):
        expect_harmless(TEXTS[name])


@pytest.mark.parametrize(
    "text",
    [
        "\u26a0\ufe0f Gr\u00f6\u00dfe",
        "\U0001f469\u200d\U0001f4bb",
        "\u2764\ufe0f\u200d\U0001f525",
        "\u0632\u0645\u0627\u0646\u200c\u0628\u0646\u062f",
        "\u0924\u200d\u0924",
    ],
    ids=["emoji", "several", "form and several", "Persian", "Hindi"],
)
def test_what_emoji_and_words_are_made_of_stays(text: str) -> None:
    assert foreign(text, 100) == visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200db", "a\\u200db"),
        ("\U0001f469\u200da", "\U0001f469\\u200da"),
        ("default\ufe0f", "default\\ufe0f"),
        ("\u0632\u200c", "\u0632\\u200c"),
        ("\U0001f469\u202e\U0001f4bb", "\U0001f469\\u202e\U0001f4bb"),
    ],
)
def test_joiners_elsewhere_are_written_out(text: str, shown: str) -> None:
    assert foreign(text, 100) == shown
