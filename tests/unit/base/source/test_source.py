"""YAML and JSON with positions; tests/integration compares scalars with kube-scheduler."""

from __future__ import annotations

import codecs
import time
import tracemalloc
from typing import Any

import pytest

from kube_scheduler_operator.base.source.reader import Position, read


def value(text: str | bytes) -> Any:
    (document,), error = read(text)
    assert error is None
    return document.value


TEXT = """\
# a comment
profiles:
- schedulerName: a
  plugins:
    score: {enabled: [{name: X, weight: 1}, {name: Y}]}
- schedulerName: b
"""


@pytest.mark.parametrize(
    ("path", "line", "column", "depth"),
    [
        ((), 2, 1, 0),
        (("profiles",), 2, 1, 1),
        (("profiles", 0), 3, 3, 2),
        (("profiles", 1, "schedulerName"), 6, 3, 3),
        (("profiles", 0, "plugins", "score", "enabled", 1, "name"), 5, 46, 7),
        (("profiles", 0, "plugins", "filter"), 4, 3, 3),
        (("profiles", 2), 2, 1, 1),
        (("nothing", "of", "it"), 2, 1, 0),
    ],
)
def test_the_position_of_a_path_or_of_its_deepest_parent(
    path: Any, line: int, column: int, depth: int
) -> None:
    ((document,), _) = read(TEXT)
    assert document.position(path) == Position(line, column)
    assert document.depth(path) == depth


def test_json_has_positions_as_well() -> None:
    ((document,), error) = read('{\n\t"a": [1, {"b":\t2}],\n\t"ü": "\\/\\ud83d\\ude00"\n}\n')
    assert error is None
    assert document.position(("a", 1, "b")) == Position(2, 12)
    assert document.position(("ü",)) == Position(3, 2)
    assert document.value == {"a": [1, {"b": 2}], "ü": "/😀"}


@pytest.mark.parametrize(
    "between", ["\n", "\n---\n", "\n---  # next\n---\n\n", " "], ids=["line", "---", "two", "space"]
)
def test_a_stream_of_json_documents_is_read_as_kubectl_reads_it(between: str) -> None:
    documents, error = read('{"kind": "A"}' + between + '{"kind":\n "B", "kind": "C"}\n---\n')
    assert error is None
    assert [document.value for document in documents] == [{"kind": "A"}, {"kind": "C"}]
    assert [document.index for document in documents] == [0, 1]
    assert documents[1].position(("kind",)).line == between.count("\n") + 2
    assert [len(document.flaws) for document in documents] == [0, 1]


@pytest.mark.parametrize(
    "separator", ["---\n", "--- # next\n", "---\r\n", "---\n---\n", "# c\n---\n"]
)
@pytest.mark.parametrize("second", ["kind: B\n", "{kind: B}\n", "kind: B\n---"])
def test_documents_in_yaml_may_follow_one_in_json(separator: str, second: str) -> None:
    documents, error = read(f'{{"kind": "A"}}\n{separator}{second}')
    assert error is None
    assert [document.value for document in documents] == [{"kind": "A"}, {"kind": "B"}]
    line, column = 2 + separator.count("\n"), 1 + second.startswith("{")
    assert documents[1].position(("kind",)) == Position(line, column)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"kind": "A"}\nB: 1\n', 2, "text follows the JSON document"),
        ('{"kind": "A"} ---\n{"kind": "B"}', 1, "text follows the JSON document"),
        ('{"kind": "A"}\n---\n{"kind": ]}', 3, ""),
        (
            '{"apiVersion": "kubescheduler.config.k8s.io/v1"}\n---\n{"kind": "B"}',
            2,
            "text follows the JSON document",
        ),
    ],
)
def test_what_kubectl_or_kube_scheduler_does_not_read_is_an_error(
    text: str, line: int, message: str
) -> None:
    documents, error = read(text)
    assert documents == []
    assert error is not None
    assert error.position.line == line
    assert message in str(error)


def test_nested_args_of_json_are_not_copied_for_each_level() -> None:
    levels, size = 90, 100_000
    tracemalloc.start()
    try:
        (document,), _ = read('{"args":' * levels + f'"{"a" * size}"' + "}" * levels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size * levels / 2
    assert document.json_text(("args",) * levels) == b'"' + b"a" * size + b'"'
    assert document.json_text(("other",)) is None


def test_several_documents_and_empty_ones() -> None:
    documents, error = read("---\n---\na: 1\n---\nb: 2\n")
    assert error is None
    assert [each.value for each in documents] == [{"a": 1}, {"b": 2}]
    assert documents[1].root.position == Position(5, 1)
    assert read("# nothing\n") == ([], None)


def test_nulls_are_absent_fields() -> None:
    assert value("a: ~\nb: {c: null, d: [null, {e: }]}\n") == {"b": {"d": [None, {}]}}


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, 'duplicate key "a", first in line 1'),
        ('{"a": 1,\n "a": 2}', 2, 2, 'duplicate key "a", first in line 1'),
        ("- &x {a: 1}\n- <<: *x\n  a: 2\n", 3, 3, 'duplicate key "a"'),
        ("1: a\n'1': b\n", 2, 1, 'duplicate key "1"'),
        ("a: .inf\n", 1, 4, "is not a JSON number"),
        ("? [a]\n: 1\n", 1, 3, "write a string"),
    ],
)
def test_flaws_have_their_positions(text: str, line: int, column: int, part: str) -> None:
    ((document,), error) = read(text)
    assert error is None
    (flaw,) = document.flaws
    assert (flaw.position, part in flaw.message) == (Position(line, column), True)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [b\n", 2),
        ("a:\n\t- b\n", 2),
        ("a: b: c\n", 1),
        ("a: *nowhere\n", 1),
        ("a: &x [*x]\n", 1),
        ("a: \x01\n", 1),
        ("a: &x\n  <<: *x\n", 2),
        ('{"a": 1,}', 1),
        ("{a: 1}", 1),
        ('{"a": 1}\nb: 1\n', 2),
        ('{"a": tru}', 1),
        ('{"a": "x\n"}', 1),
        ("{" * 3, 1),
        ('{"a":' * 600, 1),
    ],
)
def test_parse_errors_have_their_line(text: str, line: int) -> None:
    documents, error = read(text)
    assert documents == []
    assert error is not None
    assert error.position.line == line
    assert error.message


def test_documents_before_a_parse_error_are_returned() -> None:
    documents, error = read("a: 1\n---\nb: [\n")
    assert [each.value for each in documents] == [{"a": 1}]
    assert error is not None


def test_nested_aliases_are_limited() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for index in range(1, 9):
        lines.append(f"a{index}: &a{index} [{', '.join([f'*a{index - 1}'] * 10)}]")
    _, error = read("\n".join(lines))
    assert error is not None
    assert "aliases" in error.message


DEEP = {
    "flow lists": ("x: " + "[" * 5000, 1, 103),
    "flow maps": ("x: " + "{a: " * 5000, 1, 400),
    "compact lists": ("- " * 5000 + "a", 1, 201),
    "keys that are maps": ("? " * 5000 + "a", 1, 201),
    "the second document": ("a: 1\n---\n" + "- " * 5000 + "a", 3, 201),
    "JSON": ('{"a": ' + "[" * 5000, 1, 107),
    "aliases": (
        "a: &a " + "[" * 60 + "]" * 60 + "\nb: &b " + "[" * 60 + "*a" + "]" * 60, 1, 46,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_the_first_value_that_is_nested_too_deeply_ends_parsing(name: str) -> None:
    text, line, column = DEEP[name]
    documents, error = read(text)
    assert error is not None
    assert "more than 100 levels deep" in error.message
    assert error.position == Position(line, column)
    assert len(documents) == (name == "the second document")


def test_a_hundred_levels_are_readable() -> None:
    assert value("a: " + "[" * 99 + "]" * 99)["a"]


DIGITS = "1" * 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"a: {DIGITS}", DIGITS),
        (f"a: 0x{DIGITS}", f"0x{DIGITS}"),
        ('{"a": "\\ud800 \\ud83d\\ude00"}', "\ufffd \U0001f600"),
    ],
)
def test_values_that_python_does_not_represent_are_as_in_go(text: str, expected: str) -> None:
    assert value(text)["a"] == expected


@pytest.mark.parametrize("number", [DIGITS, "1e999", "-1e999"])
def test_numbers_in_json_that_no_float64_has_are_flaws_with_their_path(number: str) -> None:
    ((document,), error) = read(f'{{"a": [{number}]}}')
    assert error is None
    (flaw,) = document.flaws
    assert (flaw.position, flaw.path) == (Position(1, 8), ("a", 0))
    assert "float64" in flaw.message


@pytest.mark.parametrize("text", ["a: !!binary \u00e9", "a: !!binary ="])
def test_values_that_go_cannot_read_are_errors_with_a_position(text: str) -> None:
    documents, error = read(text)
    assert documents == []
    assert error is not None
    assert error.position.line == 1
    assert error.position.column > 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a:}", {"a:": None}),
        ("[a:]", ["a:"]),
        ("{a: b:c}", {"a": "b:c"}),
        ("a: {b:}", {"a": {"b:": None}}),
        ("a: [b?c]", None),
        ("a: b?c", {"a": "b?c"}),
        ("a:\tb", {"a": "b"}),
        ("a: b\t# c", {"a": "b"}),
        ("- \ta", None),
        ("-\ta: 1", None),
        ("a\n b: 1", None),
        ("a: b\n c", {"a": "b c"}),
        ("a: 'b\n\n c'", {"a": "b\nc"}),
        ('a: "b\\\n  c"', {"a": "bc"}),
        ("a: |2\n   b\n", {"a": " b\n"}),
        ("a: >-\n  b\n  c\n\n  d\n", {"a": "b c\nd"}),
        ("? a\n: b", {"a": "b"}),
        ("[]: a", None),
        ("%YAML 1.1\n--- a", "a"),
        ("%YAML 1.2\n--- a", None),
        ("%TAG !e! tag:yaml.org,2002:\n--- !e!int '5'", 5),
        ("%FOO\n--- a", None),
        ("!!int x", None),
        ("!!float 5", 5),
        ("!!null x", None),
        ("!!timestamp 2020-01-01", "2020-01-01"),
        ("!!timestamp x", None),
        ("! 5", "5"),
        ("{~: a}", None),
        ("{1.5: a, 1e6: b, .inf: c, 0x10: d, yes: e}",
         {"1.5": "a", "1e+06": "b", ".inf": "c", "16": "d", "true": "e"}),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2**64),
        ("1e21", 1e21),
        ("1e400", "1e400"),
        (".5_0", ".5_0"),
        ("089", 89),
        ("a: &x [1]\nb: {<<: *x}", None),
        ("- &x {a: 1}\n- <<: [*x, {b: 2}]", [{"a": 1}, {"b": 2, "a": 1}]),
        ("'a' 'b'", None),
        ("a\x85b", "a b"),
        ("a\u2028b", "a\u2028b"),
        ("\ufeffa", "a"),
    ],
)  # fmt: skip
def test_texts_that_yaml_libraries_read_in_different_ways(text: str, expected: Any) -> None:
    """Values of sigs.k8s.io/yaml; None is an error."""
    documents, error = read(f"---\n{text}" if text[0] in "{'" else text)
    if expected is None:
        assert error is not None or documents[0].flaws or documents[0].root.data is None
    else:
        assert documents[0].root.data == expected
        assert documents[0].flaws == ()


@pytest.mark.parametrize(
    ("text", "line", "column", "name"),
    [
        ("a:\n\tb: 1\n", 2, 1, "a tab"),
        ("a: b\n\tc: 1\n", 2, 1, "a tab"),
        ("a: |\n\tb\n", 2, 1, "a tab"),
        ("a:\u00a01\nb: 2\n", 1, 3, "a no-break space (U+00A0)"),
        ("a:\n  b: 1\n \u00a0c: 2\n", 3, 2, "a no-break space (U+00A0)"),
        ("a: {b: \u201cc, d\u201d: 1}\ne: f: \u201cg\u201d\n", 2, 5, "a second colon"),
        ("a: [\u201c[\u201d]\n", 1, 5, "a typographic quote (U+201C)"),
        ("a: \u201cb: c\u201d\n", 1, 4, "a typographic quote (U+201C)"),
        ("a\uff1ab\nc: d\n", 1, 2, "a full-width colon (U+FF1A)"),
        ("a: 1\nb\u200b: 2\n: 3\n", 3, 1, "another key"),
        ("a: \x01\n", 1, 4, "U+0001"),
    ],
)
def test_the_character_that_breaks_a_file_is_named(
    text: str, line: int, column: int, name: str
) -> None:
    _, error = read(text)
    assert error is not None
    assert name in error.message
    assert error.position == Position(line, column)


@pytest.mark.parametrize(
    ("text", "line", "column", "name"),
    [
        ("----\na: 1\n", 1, 1, "dashes that do not separate documents; write ---"),
        (" ---\na: 1\n", 1, 1, "dashes that do not separate documents; write ---"),
        ("--\na: 1\nb: 2\n", 1, 1, "dashes that do not separate documents; write ---"),
        ("a: 1\n---x: 1\n--\nb: 2\n", 3, 1, "dashes that do not separate documents"),
        ("--- a: 1\nb: 2\n", 1, 1, "text follows --- on the same line; begin a new line"),
        ("a: 1\nb:2\nc: 3\n", 2, 1, "a colon without a space after it; add the space"),
        ("a:\n- b:\n    c:true\n    d: 2\n", 3, 1, "a colon without a space"),
        ("a: http://b\nc:1\n", 2, 1, "a colon without a space"),
        ("a: 1\nb = 2\n", 2, 1, "an equals sign after a key; write a colon and a space"),
        ("a:\n  b: 1\n   c: 2\n", 3, 4, "indented by 3 and line 2 by 2; indent both equally"),
        ("a:\n   b: 1\n\n  c: 2\n", 4, 3, "indented by 2 and line 2 by 3; indent both equally"),
        ("a: 1\n{{- if .x }}\nb: 2\n{{ end }}\n", 2, 1, "a template that is not rendered"),
        ("a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> x\n", 2, 1, "a conflict marker"),
        ("```yaml\na: 1\n```\n", 1, 1, "a Markdown code fence; remove this line"),
        ("a: [1\nb: 2\n", 2, 2, 'in the list that begins on line 1, found ":"; check quotes'),
    ],
)
def test_a_frequent_slip_is_named(text: str, line: int, column: int, name: str) -> None:
    _, error = read(text)
    assert error is not None
    assert name in error.message
    assert error.position == Position(line, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x\n  b:\n    - c: 1\n      d: *x\n", "an anchor contains itself"),
        ("a:\n  b: 1\n  c:\n    - *x\n", "no anchor &x precedes *x"),
        ("a:\n  - b: !!int x\n", "does not have the type of its tag"),
    ],
)
def test_a_cause_that_is_known_is_not_replaced(text: str, message: str) -> None:
    _, error = read(text)
    assert error is not None
    assert message in error.message


def test_a_template_as_a_value_is_named() -> None:
    documents, error = read("a: {{ .Values.a }}\n")
    assert error is None
    assert [flaw.message.partition(";")[0] for flaw in documents[0].flaws] == [
        "a template that is not rendered"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a: [", "[a", "{a: 1", '{"a": 1,}', "{'a': 1}", '{"a": N}', '{"a" 1}', '{"a": [1 2]}',
        '{"a": "b', '{"a": "\\q"}', '{"a": 1} x', "a: *b", "a: *", "a: &", "a: @b", 'a: "\\x1"',
        'a: "\\ud800"', 'a: "\\q"', "a: 'b", "a: !<b", "a: !b!", "a: !!int x", "%TAG x\n--- a",
        "%YAML 1.2\n---\na: 1", "%TAG ! \n---\na: 1", "<<: 5", "a: |x\n b", "a: |0\n b",
        "a: - b", "a: !%x b", "a: b: c", "a\nb: c", "? - a\n: b\n",
    ],
)  # fmt: skip
def test_every_error_has_a_fix(text: str) -> None:
    documents, error = read(text)
    messages = [flaw.message for each in documents for flaw in each.flaws]
    messages += [error.message] if error else []
    assert messages
    assert all("; " in message for message in messages), messages


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_bytes_with_a_byte_order_mark_are_read(encoding: str) -> None:
    assert value("a: \u00fc\U0001f600".encode(encoding)) == {"a": "\u00fc\U0001f600"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfea\x00:\x00 \x00\x00\xd8", "is not UTF-16"),
        (b"a: \xff", "0xff is not UTF-8"),
        (b"a\x00:\x00 \x001\x00", "this is UTF-16 without its byte order mark"),
        ("a: 1\n".encode("utf-32"), "or UTF-32; save the file as UTF-8"),
        (b"a: 1\0\n", "control character U+0000; remove it"),
        (b"a: caf\xe9\n", "0xe9 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_other_bytes_are_an_error_that_names_them(content: bytes, message: str) -> None:
    documents, error = read(content)
    assert documents == []
    assert error is not None
    assert message in error.message


def test_invalid_bytes_in_json_are_replaced_as_in_go() -> None:
    assert value(b'{"a": "\xff\xfe"}') == {"a": "\ufffd\ufffd"}


def test_json_behind_a_byte_order_mark_is_yaml() -> None:
    assert value(b'\xef\xbb\xbf{"a": 5.0, b: c}') == {"a": 5, "b": "c"}


def test_a_forbidden_character_matters_if_the_first_document_needs_its_block() -> None:
    (document,), error = read(b"a: 1\n---\n" + b"b: 2\n" * 200 + b"\x01")
    assert (document.index, document.root.data) == (0, {"a": 1})
    assert error is not None
    assert read(b"a: 1\n---\n\x01")[0] == []


@pytest.mark.parametrize(
    ("encoding", "tail"),
    [
        ("utf-8", b"\xe7"),
        ("utf-8", b"\xf21\n"),
        ("utf-8", b"\xc1"),
        ("utf-8-sig", b"\xf0\x9f\x98"),
        ("utf-16", b"x"),
        ("utf-16", b"\x00\xd8x"),
    ],
)
def test_a_cut_off_character_matters_if_the_first_document_reaches_it(
    encoding: str, tail: bytes
) -> None:
    (document,), error = read("a: 1\n---\nb: ".encode(encoding) + tail)
    assert (document.index, document.root.data) == (0, {"a": 1})
    assert error is not None
    assert error.position == Position(3, 4)
    assert read("a: ".encode(encoding) + tail)[0] == []


def test_documents_are_numbered_with_the_empty_ones() -> None:
    documents, _ = read("---\n# empty\n---\na: 1\n---\n~\n---\nb: 2\n")
    assert [each.index for each in documents] == [1, 3]


def test_the_items_of_lists_are_objects() -> None:
    head = "apiVersion: v1\nkind: List\nitems:\n"
    ((document,), _) = read(f"{head}- {{kind: A}}\n- apiVersion: v1\n  kind: List\n  items: [b]\n")
    assert [each.value for each in document.objects()] == [{"kind": "A"}, "b"]
    ((other,), _) = read("apiVersion: example.com/v1\nkind: List\nitems: [a]\n")
    assert other.objects() == [other]


LARGE = {
    "empty documents": "---\n" * 50_000,
    "documents": "---\na: 1\n" * 10_000,
    "tabs": "\t" * 200_000,
    "indentation with tabs": "\ta: 1\n" * 30_000,
    "typographic quotes": "x: \u201ca: b\u201d: c\n" * 10_000,
    "brackets": "x: " + "[" * 200_000,
    "items": "- " * 100_000,
    "anchors": "".join(f"k{index}: &a{index} 1\n" for index in range(10_000)),
    "duplicate keys": "a: 1\n" * 30_000,
    "colons": "a:" * 100_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_the_time_of_reading_grows_with_the_size_only(name: str) -> None:
    began = time.process_time()
    read(LARGE[name])
    assert time.process_time() - began < 20, "a second on a fast machine, minutes if quadratic"


@pytest.mark.parametrize(
    ("encoding", "mark", "key"),
    [("utf-8", codecs.BOM_UTF8, "b"), ("utf-16-le", codecs.BOM_UTF16_LE, "xb")],
)
def test_after_a_second_mark_lines_lose_a_character_in_the_first_512_bytes(
    encoding: str, mark: bytes, key: str
) -> None:
    # 400 characters: in UTF-16 the last line is in the second block.
    text = f"#\n {{a: 1,\n #{'y' * 380}\nxb: 2}}\n"
    assert value(mark + mark + text.encode(encoding)) == {"a": 1, key: 2}
