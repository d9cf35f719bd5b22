"""Whether a text has a secret in it, in any of the forms in which programs write secrets down.

A private key is searched for line by line, so neither indentation nor escaped line breaks nor a key
that is cut off hide it; everything is also searched for in base64, once and twice over, wherever in
the encoded text it begins. Two shapes are found without being known: keys and issued tokens.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

SHORTEST: Final = 8
"""Bytes; a shorter value would be found everywhere by chance."""

_ENCODED: Final = 20
"""Characters that base64 must have to be searched for as such; no shorter ones are cut out."""

_PEM: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_EMBEDDED: Final = re.compile(
    rb"^[ \t-]*\"?(?:client-key-data|token|password)\"?: *[\"']?([^\s\"',}]+)", re.MULTILINE
)
_TOKEN: Final = re.compile(rb"eyJ[\w-]{10,}\.(eyJ[\w-]{10,})\.([\w-]{20,})")
_RUN: Final = re.compile(rb"[A-Za-z0-9+/_-]{%d,}" % _ENCODED)
_SHAPES: Final = {
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a token": _TOKEN,
}


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret and its name; its repr does not contain it."""

    name: str  # what it is and where it belongs
    # the forms that are not base64, or too short to be recognised
    texts: frozenset[bytes] = field(repr=False)
    runs: frozenset[bytes] = field(repr=False)  # the forms that are base64 and nothing else


def secret(name: str, content: bytes, public: bytes = b"") -> Secret | None:
    """What must not be seen of a file, or of a value in a Secret; None if all of it may be.

    Args:
        name: what people call it.
        content: a key, certificates, a kubeconfig, a token or anything else.
        public: certificates and public keys, PEM: half of an elliptic key is in them as well.
    """
    return _of_parts(name, _confidential(content, _ders(content + b"\n" + public)))


def secret_in_file(name: str, content: bytes, public: bytes = b"") -> Secret | None:
    """The same for a file that need not have anything to do with secrets: keys and credentials."""
    return _of_parts(name, _known(content, _ders(content + b"\n" + public)))


def leaks(secrets: Iterable[Secret], place: str, text: bytes) -> list[str]:
    """Which secrets a text has: their names and the place, never the values."""
    runs = b"\n".join(set(_RUN.findall(text)))
    found = [
        each.name
        for each in secrets
        if any(form in runs for form in each.runs) or any(form in text for form in each.texts)
    ]
    if not found:
        found = [name for name, shape in _SHAPES.items() if shape.search(text)]
    return [f"{name} is in {place}" for name in found]


def _of_parts(name: str, parts: Iterable[bytes]) -> Secret | None:
    forms = {form for part in parts if len(part) >= SHORTEST for form in _forms(part)}
    if not forms:
        return None
    runs = {form for form in forms if _RUN.fullmatch(form)}
    return Secret(name, frozenset(forms - runs), frozenset(runs))


def _confidential(content: bytes, public: list[bytes]) -> Iterator[bytes]:
    known = list(_known(content, public))
    if known or _PEM.search(content):
        yield from known
    else:
        yield content.strip()


def _known(content: bytes, public: list[bytes]) -> Iterator[bytes]:
    """The lines of private keys, and what kubeconfigs hold."""
    for kind, body in _PEM.findall(content):
        if kind.endswith(b"PRIVATE KEY"):
            for line in body.split():
                raw = _decoded(line)
                if raw is None or not any(raw in der for der in public):
                    yield line
    for value in _EMBEDDED.findall(content):
        decoded = _decoded(value)
        if decoded is not None and b"PRIVATE KEY" in decoded:
            yield from _known(decoded, public)
        else:
            yield value
    for payload, signature in _TOKEN.findall(content):
        yield payload
        yield signature


def _ders(content: bytes) -> list[bytes]:
    """What certificates and public keys are made of, those in kubeconfigs too."""
    embedded = re.findall(rb"client-certificate-data\"?: *\"?([A-Za-z0-9+/=]+)", content)
    texts = [content, *(_decoded(value) or b"" for value in embedded)]
    return [
        der
        for text in texts
        for kind, body in _PEM.findall(text)
        if not kind.endswith(b"PRIVATE KEY") and (der := _decoded(b"".join(body.split())))
    ]


def _decoded(text: bytes) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _forms(part: bytes) -> Iterator[bytes]:
    yield part
    text = part.decode(errors="replace")
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode()
    for once in _encodings(part):
        if len(once) >= _ENCODED:
            yield once
            yield from (twice for twice in _encodings(once) if len(twice) >= _ENCODED)
    yield base64.b64encode(part).rstrip(b"=")


def _encodings(part: bytes) -> Iterator[bytes]:
    """How base64 of something bigger shows it: what it begins with depends on what is before it."""
    for before in range(3):
        whole = base64.b64encode(bytes(before) + part)
        yield whole[-(-before * 8 // 6) : (before + len(part)) * 8 // 6]
