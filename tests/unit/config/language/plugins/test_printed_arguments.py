"""Arguments that kube-scheduler prints as they were written; every case was seen to end it."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base.source.reader import read
from kube_scheduler_operator.config.lint.configurations import unprintable_arguments

HEAD = b'{"profiles": [{"pluginConfig": [{"name": "%s", "args": %s}]}]}'
PATH = ("profiles", 0, "pluginConfig", 0, "args")


def found(content: bytes) -> list[tuple[object, str]]:
    (document,), error = read(content)
    assert error is None
    return [*unprintable_arguments(document, 35)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (b'{"a": "x\xb7y"}', "0xb7 is not UTF-8"), (b'"\xe2\x82"', "is not UTF-8"),
        (b'{"x\xb7": 1}', "0xb7 is not UTF-8"), (b'["x\xb7"]', "0xb7 is not UTF-8"),
        (rb'"\ud83d\ude00"', ""), (rb'"\ud800"', ""), (rb'"\/"', ""), (b'"\x7f"', "U+007F"),
        (b'{"%s": 1}' % (b"k" * 1023), ""), (b'{"%s": 1}' % (b"<" * 200), ""),
    ],
)  # fmt: skip
def test_json_that_is_not_yaml_is_reported(arguments: bytes, message: str) -> None:
    ((path, error),) = found(HEAD % (b"ImageLocality", arguments))
    assert path == PATH
    assert message in error


@pytest.mark.parametrize(
    "arguments",
    [
        b"{}", b"null", b'{"a": "\xef\xbf\xbd"}', rb'"\u007f"', rb'"\ufffe"', b'{\t"a"\t:\n1}',
        b'{"%s": 1}' % (b"k" * 1000), "\"\U0001f600\"".encode(), b'{"a": 1, "A": 2}',
    ],
)  # fmt: skip
def test_json_that_is_yaml_is_printed(arguments: bytes) -> None:
    assert found(HEAD % (b"ImageLocality", arguments)) == []


@pytest.mark.parametrize("plugin", [b"NodeAffinity", b"Coscheduling"])
def test_arguments_that_are_decoded_or_dropped_are_not_printed_as_written(plugin: bytes) -> None:
    assert found(HEAD % (plugin, b'{"a": "x\xb7y"}')) == []


def test_arguments_of_yaml_are_printed_as_json() -> None:
    entry = b"profiles: [{pluginConfig: [{name: ImageLocality, args: {? %s : 1}}]}]"
    assert found(entry % (b"k" * 1000)) == []
    ((path, _),) = found(entry % (b"k" * 1023))
    assert path == PATH
