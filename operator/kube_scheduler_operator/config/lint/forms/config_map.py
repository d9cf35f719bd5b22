"""ConfigMaps and Secrets with files of kube-scheduler.

Of a Secret only the files that are kube-scheduler's are read; no other content is ever quoted.
Source: Kubernetes 1.35, core/v1.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.decoding import INVALID_TYPE, INVALID_VALUE
from ....base.findings import Path, Problem
from ....base.objects import mapping
from ....base.source.reader import Document
from ...language.schema import KIND
from .document_fields import label_of, name_of, namespace_of, text, value_of
from .embedded import CONFIGURATION
from .form import Contents, Text

CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"  # noqa: S105  # a kind
SECTIONS: Final = {CONFIG_MAP: ("data", "binaryData"), SECRET: ("stringData", "data")}
"""Kind -> the field with files as they are, and the one with files in base64."""
_FOLDED: Final = re.compile(rf"(?:apiVersion|kind): *\S+ +(?:apiVersion|kind): *\S*{KIND[:13]}")


def read(document: Document) -> Contents | None:
    value = value_of(document)
    kind = text(value.get("kind"))
    if value.get("apiVersion") != "v1" or kind not in SECTIONS:
        return None
    return Contents(texts=tuple(_texts(document, kind)), problems=tuple(_problems(value, kind)))


def _problems(value: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    """Report a configuration that is not the text of a key, as far as it is recognized."""
    for section in SECTIONS[kind]:
        content = value.get(section)
        if isinstance(content, str) and CONFIGURATION.search(content):
            message = "must be a map from file names to texts, not a text"
            yield Problem(INVALID_TYPE, (section,), message, "write it below a key: config.yaml: |")
        for key, file in mapping(content).items():
            path = (section, key)
            if isinstance(file, Mapping) and file.get("kind") == KIND:
                message = "must be a text, not an object: the API server rejects it"
                yield Problem(INVALID_TYPE, path, message, f"write a | after the colon: {key}: |")
            elif isinstance(file, str) and (problem := _wrong_encoding(file, path, kind)):
                yield problem
            elif isinstance(file, str) and _FOLDED.match(file) and section == SECTIONS[kind][0]:
                message = "the lines of this text are one, because it is folded (>)"
                yield Problem(INVALID_VALUE, path, message, f"write a | after the colon: {key}: |")


def _wrong_encoding(content: str, path: Path, kind: str) -> Problem | None:
    """Report a configuration that is text instead of base64, or base64 once too often."""
    section = path[0]
    plain, encoded = SECTIONS[kind]
    if section == encoded and (file := _decoded(content)) is None:
        if CONFIGURATION.search(content) is None:
            return None
        message = f"must be base64: the API server rejects the {kind}"
        return Problem(INVALID_VALUE, path, message, f"move it to {plain}")
    if section == plain:
        file = content
    if file is None or CONFIGURATION.search(_decoded(file) or "") is None:
        return None
    message = "the file is base64, which kube-scheduler does not decode"
    fix = f"move it to {encoded}" if section == plain else "encode the configuration once"
    return Problem(INVALID_VALUE, path, message, fix)


def _texts(document: Document, kind: str) -> Iterator[Text]:
    value = value_of(document)
    owner, namespace, name = label_of(value), namespace_of(value), name_of(value)
    for section in SECTIONS[kind]:
        for key, content in mapping(value.get(section)).items():
            if not isinstance(content, str):
                continue
            file = _decoded(content) if section == SECTIONS[kind][1] else content
            if file is not None:
                yield Text((section, key), file, owner, kind, namespace, name, str(key))


def _decoded(content: str) -> str | None:
    """Decode a file; None if the API server would reject the value, or if it is not text.

    Go's decoder, which the API server uses, ignores line breaks.
    """
    try:
        joined = content.replace("\n", "").replace("\r", "")
        return base64.b64decode(joined, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
