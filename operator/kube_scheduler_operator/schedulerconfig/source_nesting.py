"""The nesting of a YAML text, measured before a parser that recurses into it.

libyaml's composer recurses on the C stack without a limit, so 500 kB of `[` would end the process,
and the time of its scanner grows with the square of the nesting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from .source_tree import DEEPEST, Position


@dataclass(frozen=True, slots=True)
class DeepDocument:
    """A document that is nested more than DEEPEST levels deep.

    Attributes:
        index: number of documents before it.
        position: of the first value below the last permitted level.
    """

    index: int
    position: Position


def find_deep_document(text: str, loader: Any) -> DeepDocument | None:
    """The first document of a YAML text that is nested too deeply; aliases are not followed.

    The text is not examined beyond its first syntax error.
    """
    if len(text) <= DEEPEST:
        return None
    depth, index = 0, -1
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent):
                depth, index = 0, index + 1
            elif isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    mark: Any = event.start_mark
                    return DeepDocument(index, Position(mark.line + 1, mark.column + 1))
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return None  # the parser reports it
    return None
