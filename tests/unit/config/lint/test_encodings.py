"""Configurations in files that cloud-init and Ignition write to a node, in their encodings."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any
from urllib.parse import quote

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.forms.embedded import decoded
from kube_scheduler_operator.config.lint.validate import validate

from ....expect import findings

OPTIONS = CheckOptions(Gates(Version(1, 35)))
TEXT = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "leaderElection: {leaderElect: false}\nprofiles: [{schedulerName: mine}]\nparalelism: 1\n"
)
ENCODED = base64.b64encode(TEXT.encode()).decode()
COMPRESSED = base64.b64encode(gzip.compress(TEXT.encode())).decode()
FIELDS = [
    {"content": TEXT},
    {"content": TEXT, "encoding": "text/plain"},
    {"content": ENCODED, "encoding": "b64"},
    {"content": ENCODED, "encoding": "Base64"},
    {"content": COMPRESSED, "encoding": "gz+b64"},
    {"content": COMPRESSED, "encoding": "gzip+base64"},
    {"source": f"data:,{quote(TEXT)}"},
    {"source": f"data:text/plain;charset=utf-8;base64,{ENCODED}"},
    {"source": f"data:;base64,{COMPRESSED}", "compression": "gzip"},
]


def reported(document: dict[str, Any]) -> list[tuple[str, str]]:
    files = [("found.json", json.dumps(document))]
    return findings(validate(files, OPTIONS, found=["found.json"]), "path", "reason")


@pytest.mark.parametrize("fields", FIELDS)
def test_an_encoded_file_is_decoded(fields: dict[str, str]) -> None:
    key = next(iter(fields))
    assert decoded(fields[key], fields) == TEXT
    document: dict[str, Any] = {"write_files": [{"path": "/etc/s.yaml", **fields}]}
    if key == "source":
        files = [{"path": "/etc/s.yaml", "contents": fields}]
        document = {"ignition": {"version": "3.5.0"}, "storage": {"files": files}}
    assert reported(document) == [("paralelism", "UnknownField")]


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "%", "encoding": "b64"},
        {"content": "bm8gZ3ppcA==", "encoding": "gz+b64"},
        {"content": "/w==", "encoding": "b64"},
        {"content": "data:;base64,%%%"},
        {"content": "data:"},
        {"content": "x", "encoding": ["b64"]},
    ],
)
def test_what_cannot_be_decoded_is_not_a_configuration(fields: dict[str, Any]) -> None:
    assert "KubeScheduler" not in decoded(fields["content"], fields)
    assert reported({"write_files": [fields]}) == [("", "NothingToCheck")]


def test_a_compressed_file_is_read_up_to_a_mebibyte() -> None:
    large = base64.b64encode(gzip.compress(b"a" * (1 << 24))).decode()
    assert len(decoded(large, {"encoding": "gz+b64"})) == 1 << 20
