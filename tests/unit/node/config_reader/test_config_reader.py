"""The reader reports what a configuration file has, and never a credential or a quotation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.node.config_reader.program import credentials, report
from kube_scheduler_operator.node.config_reader.report import ConfigReport
from kube_scheduler_operator.node.protocol.message import LIMIT

CONFIG = """
# hunter2 in a comment
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 8
extenders:
- urlPrefix: https://extender.example
  tlsConfig: {certFile: /etc/x.crt, keyFile: /etc/x.key}
"""


def written(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "config.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_the_content_is_reported_without_comments(tmp_path: Path) -> None:
    message = report(written(tmp_path, CONFIG)).serialise()
    found = ConfigReport.parse(message)
    assert found is not None
    assert found.config is not None
    assert found.config["parallelism"] == 8
    assert found.config["extenders"][0]["tlsConfig"]["keyFile"] == "/etc/x.key"
    assert "hunter2" not in json.dumps(found.config)


def test_the_command_writes_the_termination_message(tmp_path: Path) -> None:
    log = tmp_path / "log"
    file = written(tmp_path, CONFIG)
    assert main(["read-config", f"--file={file}", f"--termination-log={log}"]) == 0
    assert ConfigReport.parse(log.read_text()) == report(file)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: [hunter2", "syntax error at line 1, column"),
        ("- hunter2", "does not have one object"),
        ("", "does not have one object"),
        ("a: 1\n---\nb: hunter2\n", "does not have one object"),
        ("extenders: [{tlsConfig: {keyData: hunter2}}]", "in extenders[0].tlsConfig.keyData"),
        ("extenders: [{urlPrefix: 'https://me:hunter2@host'}]", "in extenders[0].urlPrefix"),
        ("profiles: [{pluginConfig: [{args: {apiToken: hunter2}}]}]", "args.apiToken"),
        ("a: 1\na: hunter2\n", "syntax error at line 2"),
        ("#" * (2**20 + 1), "larger than"),
        (b"\xff\xfe\x00hunter2", "the file"),
        ("{a: " * 300, "the file"),
    ],
)  # fmt: skip
def test_an_error_names_the_place_and_quotes_nothing(
    tmp_path: Path, text: str | bytes, error: str
) -> None:
    found = report(written(tmp_path, text))
    assert found.config is None
    assert error in found.error
    assert "hunter2" not in found.serialise()
    assert ConfigReport.parse(found.serialise()) == found


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    assert "cannot be read" in report(tmp_path / "x").error


def test_paths_of_credentials_are_not_credentials() -> None:
    config = {"tlsConfig": {"keyFile": "/etc/key"}, "tokenFile": "/t", "bearerToken": "/etc/token"}
    assert list(credentials(config)) == []


def test_a_document_that_does_not_fit_is_an_error_that_fits() -> None:
    message = ConfigReport({"x": os.urandom(5000).hex()}).serialise()
    assert len(message) <= LIMIT
    found = ConfigReport.parse(message)
    assert found is not None
    assert "when compressed" in found.error


def test_a_usual_document_with_ten_profiles_fits() -> None:
    profiles = [
        {
            "schedulerName": f"team-{number}",
            "plugins": {
                "score": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": "NodeResourcesFit", "weight": number}],
                }
            },
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "MostAllocated"}},
                }
            ],
        }
        for number in range(10)
    ]
    report_ = ConfigReport({"profiles": profiles})
    assert len(report_.serialise()) < LIMIT / 3
    assert ConfigReport.parse(report_.serialise()) == report_


BOMB = ConfigReport({"x": "a" * 2**19}).serialise()


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", '{"config": 7}', '{"config": "x"}', '{"config": "VPRomVPO"}']
)
def test_another_message_is_not_a_report(text: str) -> None:
    assert ConfigReport.parse(text) is None


def test_a_message_that_unpacks_to_more_than_a_config_map_is_not_a_report() -> None:
    import base64
    import zlib

    packed = base64.b85encode(zlib.compress(b'{"x":"' + b"a" * 2**22 + b'"}')).decode()
    assert ConfigReport.parse(json.dumps({"config": packed})) is None
    assert ConfigReport.parse(BOMB) is not None


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [None], {"a": None}])
def test_any_document_can_be_searched(value: Any) -> None:
    assert list(credentials(value)) == []
