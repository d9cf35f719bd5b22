"""Values as YAML that kube-scheduler and kubectl read as the same values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..foreign_text import is_visible, json_text, visible

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_ONE_LINE: Final = 2**31
"""Columns of the output: PyYAML breaks longer lines at spaces; kubectl does not."""
_KEYWORDS: Final = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


class BlockText(str):
    """A text of several lines that is written as a literal block."""

    __slots__ = ()


def yaml_text(documents: Iterable[Any]) -> str:
    """Write YAML that kube-scheduler and kubectl read as these values, without anchors.

    Invisible characters are escaped, so that they are not lost. A text is written in one line, so
    that it cannot forge lines. Strings such as `y` and `1e1`, which are booleans or numbers to
    kube-scheduler, are quoted; PyYAML leaves them plain.
    """
    import yaml

    from .values import scalar
    from .yaml_scanner import Scalar

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        if "\n" in text or not is_visible(text):
            return dumper.represent_scalar("tag:yaml.org,2002:str", text, '"')
        read = scalar(Scalar(0, text))
        style = None if read == text else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    def represent_block(dumper: yaml.SafeDumper, text: BlockText) -> yaml.ScalarNode:
        style = "|" if is_visible(text) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, represent)
    Dumper.add_representer(BlockText, represent_block)
    # PyYAML only escapes in double quotes, and only what it considers unprintable.
    return visible(
        yaml.dump_all(documents, None, Dumper, sort_keys=False, allow_unicode=True, width=_ONE_LINE)
    )


def flow(value: Any) -> str:
    """Write a value as YAML in one line."""
    if isinstance(value, Mapping):
        fields = (f"{flow(str(key))}: {flow(item)}" for key, item in value.items())
        return f"{{{', '.join(fields)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _KEYWORDS:
        return value
    return json_text(value, default=str)
