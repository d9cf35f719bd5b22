"""ConfigMaps, Secrets, and any other document with a whole configuration somewhere in it.

Helm values of any chart, HelmRelease, HelmChart, Application, cloud-config, MachineConfig and
playbooks of Ansible, for example. A KubeSchedulerConfiguration is a text, or a part of the document
with its own `kind`; Volcano's configuration is a text. A text may be encoded, as files of
cloud-init and Ignition are.

Sources: Kubernetes 1.35, core/v1 (ConfigMap, Secret); cloud-init 25, module write_files
(`encoding`); Ignition's specification 3.5 (`source`, a URL of RFC 2397, and `compression`).
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from ....base.decoding import INVALID_TYPE, INVALID_VALUE
from ....base.findings import Path, Problem
from ....base.objects import mapping
from ....base.source.reader import Document
from ....base.source.tree import SourceNode
from ...language.schema import KIND
from .document_fields import label_of, name_of, namespace_of, text, value_of
from .form import Contents, Part, Text
from .volcano import looks_like_volcano

CONFIGURATION: Final = re.compile(rf"""^[\s{{,]*["']?kind["']?\s*:\s*["']?{KIND}\b""", re.MULTILINE)
"""The line that makes a text a configuration, even if it is broken."""
_STARTS: Final = re.compile(
    r"""^[\s{,]*["']?kind["']?\s*:\s*["']?(?:Pod|DaemonSet|Deployment|ClusterConfiguration)\b"""
    r"""|^ExecStart[ \t]*=[^\n]*kube-scheduler\b"""
    r"""|^["']?kube-scheduler-arg\+?["']?[ \t]*:""",
    re.MULTILINE,
)
"""The line of an object, a unit or k3s' config.yaml that starts a kube-scheduler, or has kubeadm
start one."""
_OBJECTS: Final = frozenset(
    {
        "ConfigMap",
        "Pod",
        "Deployment",
        "DaemonSet",
        "StatefulSet",
        "ClusterConfiguration",
        "ClusterConfig",
    }
)
"""Kinds of objects in other documents: lists of Jsonnet, values of charts, tasks of Ansible, and
k0sctl's `spec.k0s.config`."""
DEEPEST: Final = 12
"""Levels below which no chart keeps a configuration."""
LARGEST: Final = 1 << 20
"""Bytes of a compressed file that are read: a ConfigMap of Kubernetes cannot be larger."""
_URL: Final = "data:"
_BASE64: Final = ("b64", "base64")
_GZIP: Final = ("gz", "gzip")


def read(document: Document) -> Contents | None:
    value = value_of(document)
    is_list = isinstance(document.root.data, list)  # a playbook of Ansible, or output of Jsonnet
    if not (value or is_list) or value.get("kind") == KIND:
        return None
    return with_embedded(document, Contents()) or None


def with_embedded(document: Document, contents: Contents) -> Contents:
    """Add what is anywhere else in a document to what the fields of its form have."""
    owner = label_of(value_of(document)) or "file"
    known = [text.at for text in contents.texts]
    known += [outer for part in contents.parts for _, outer in part.fields]
    texts: list[Text] = []
    parts: list[Part] = []
    for path, node in _walk(document.root, (), 0, {}):
        if any(path[: len(each)] == each for each in known):
            continue
        if isinstance(node.data, str):
            siblings = mapping(document.data(path[:-1]))
            # Ignition has the path beside `contents`, which has the text; Ansible has `dest`.
            targets = (siblings.get("path"), document.data((*path[:-2], "path")))
            target = next(filter(None, map(text, (*targets, siblings.get("dest")))), "")
            content = decoded(node.data, siblings)
            texts.append(Text(path, content, target or owner, node_path=target))
        else:
            parts.append(
                Part(node, label_of(node.data) if _is_object(node) else owner, (((), path),))
            )
    return replace(contents, texts=(*contents.texts, *texts), parts=(*contents.parts, *parts))


def decoded(content: str, siblings: Mapping[str, Any]) -> str:
    """Decode the text in a field; return the field itself if it is not encoded.

    `siblings` is the map that has it, with the fields `encoding` and `compression`.
    """
    encodings = str(siblings.get("encoding") or "").lower().split("+")
    if content.startswith(_URL):
        head, _, rest = content.partition(",")
        encodings = [str(siblings.get("compression") or "")]
        if head.endswith(";base64"):
            encodings.append("base64")
        data = unquote_to_bytes(rest)
    else:
        data = content.encode()
    try:
        for encoding in reversed(encodings):
            if encoding in _BASE64:
                data = base64.b64decode(data)
            elif encoding in _GZIP:
                data = zlib.decompressobj(wbits=31).decompress(data, LARGEST)
        return data.decode()
    except (binascii.Error, ValueError, zlib.error):
        return content


def _is_kube_schedulers(text: str) -> bool:
    """Report whether a text is a configuration, or an object that may start a kube-scheduler."""
    if KIND in text and CONFIGURATION.search(text) is not None:
        return True
    if "scheduler" in text and _STARTS.search(text) is not None:
        return True
    return "tiers" in text and looks_like_volcano(text)


def _is_object(node: SourceNode) -> bool:
    """Report whether a part of a document is an object that has a form of its own."""
    kind = mapping(node.data).get("kind")
    return kind in _OBJECTS and isinstance(node.data.get("apiVersion"), str)


def _walk(
    node: SourceNode, path: Path, depth: int, parent: Mapping[str, Any]
) -> Iterator[tuple[Path, SourceNode]]:
    if depth > DEEPEST:
        return
    if isinstance(node.data, str):
        if _is_kube_schedulers(decoded(node.data, parent)):
            yield path, node
    elif (
        path and isinstance(node.data, dict) and (node.data.get("kind") == KIND or _is_object(node))
    ):
        yield path, node
    else:
        for key, (_, child) in node.fields.items():
            yield from _walk(child, (*path, key), depth + 1, mapping(node.data))
        for index, child in enumerate(node.items):
            yield from _walk(child, (*path, index), depth + 1, {})


# --- ConfigMaps and Secrets ----------------------------------------------------------------------
# Of a Secret only the files that are kube-scheduler's are read; no other content is ever quoted.

CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"  # noqa: S105  # a kind
SECTIONS: Final = {CONFIG_MAP: ("data", "binaryData"), SECRET: ("stringData", "data")}
"""Kind -> the field with files as they are, and the one with files in base64."""
_FOLDED: Final = re.compile(rf"(?:apiVersion|kind): *\S+ +(?:apiVersion|kind): *\S*{KIND[:13]}")


def read_config_map(document: Document) -> Contents | None:
    value = value_of(document)
    kind = text(value.get("kind"))
    if value.get("apiVersion") != "v1" or kind not in SECTIONS:
        return None
    return Contents(
        texts=tuple(_config_map_texts(document, kind)),
        problems=tuple(_config_map_problems(value, kind)),
    )


def _config_map_problems(value: Mapping[str, Any], kind: str) -> Iterator[Problem]:
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
    if section == encoded and (file := _from_base64(content)) is None:
        if CONFIGURATION.search(content) is None:
            return None
        message = f"must be base64: the API server rejects the {kind}"
        return Problem(INVALID_VALUE, path, message, f"move it to {plain}")
    if section == plain:
        file = content
    if file is None or CONFIGURATION.search(_from_base64(file) or "") is None:
        return None
    message = "the file is base64, which kube-scheduler does not decode"
    fix = f"move it to {encoded}" if section == plain else "encode the configuration once"
    return Problem(INVALID_VALUE, path, message, fix)


def _config_map_texts(document: Document, kind: str) -> Iterator[Text]:
    value = value_of(document)
    owner, namespace, name = label_of(value), namespace_of(value), name_of(value)
    for section in SECTIONS[kind]:
        for key, content in mapping(value.get(section)).items():
            if not isinstance(content, str):
                continue
            file = _from_base64(content) if section == SECTIONS[kind][1] else content
            if file is not None:
                yield Text((section, key), file, owner, kind, namespace, name, str(key))


def _from_base64(content: str) -> str | None:
    """Decode a file; None if the API server would reject the value, or if it is not text.

    Go's decoder, which the API server uses, ignores line breaks.
    """
    try:
        joined = content.replace("\n", "").replace("\r", "")
        return base64.b64decode(joined, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
