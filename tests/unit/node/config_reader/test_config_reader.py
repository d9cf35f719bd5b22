"""The reader reports what a configuration file has, and never a credential or a quotation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.config.migrate.convert import foreign_content
from kube_scheduler_operator.node.config_reader.program import credentials
from kube_scheduler_operator.node.config_reader.program import report as report_file
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


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def report(file: Path) -> ConfigReport:
    return report_file(file, foreign_content)


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
        (f"{HEAD}extenders: [{{tlsConfig: {{keyData: aHVudGVyMg==}}}}]",
         "in extenders[0].tlsConfig.keyData"),
        (f"{HEAD}extenders: [{{tlsConfig: {{keyData: [104, 117]}}}}]", "tlsConfig.keyData[0]"),
        (f"{HEAD}extenders: [{{urlPrefix: 'https://me:hunter2@host'}}]",
         "in extenders[0].urlPrefix"),
        (f"{HEAD}profiles: [{{pluginConfig: [{{args: {{apiToken: hunter2}}}}]}}]",
         "args.apiToken"),
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


KUBECONFIG = """
apiVersion: v1
kind: Config
users: [{name: kubernetes-admin, user: {client-key-data: aHVudGVyMg==}}]
"""
ENCRYPTION = """
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources: [{providers: [{aescbc: {keys: [{name: a, secret: aHVudGVyMg==}]}}]}]
"""
ARGS = "profiles: [{pluginConfig: [{name: %s, args: {%s}}]}]"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (KUBECONFIG, "not a KubeSchedulerConfiguration"),
        (ENCRYPTION, "not a KubeSchedulerConfiguration"),
        ("a: aHVudGVyMg==", "not a KubeSchedulerConfiguration"),
        (HEAD.replace("/v1", "/v7") + "parallelism: 8", "in a known version"),
        (f"{HEAD}users: aHVudGVyMg==", "does not have users,"),
        (f"{HEAD}clientConnection: {{client-key-data: aHVudGVyMg==}}", "clientConnection.client"),
        (f"{HEAD}parallelism: aHVudGVyMg==", "does not have parallelism,"),
        (HEAD + ARGS % ("NodeAffinity", "note: aHVudGVyMg=="), "pluginConfig[0].args.note"),
        (HEAD + ARGS % ("Own", "client-key-data: aHVudGVyMg=="), "args.client-key-data"),
        (HEAD + ARGS % ("Own", "passwords: {a: aHVudGVyMg==}"), "args.passwords.a"),
        (HEAD + ARGS % ("Own", "a: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t"), "args.a"),
        (HEAD + "".join(f"x{n}: aHVudGVyMg==\n" for n in range(999)), "and 994 others"),
    ],
)  # fmt: skip
def test_only_fields_of_a_schedulers_configuration_are_reported(
    tmp_path: Path, text: str, error: str
) -> None:
    """The path in --config of a Pod may name any file of a node, and those have its keys."""
    reported = report(written(tmp_path, text))
    assert reported.config is None
    assert error in reported.error
    assert "aHVudGVyMg" not in reported.serialise()
    assert ConfigReport.parse(reported.serialise()) == reported


@pytest.mark.parametrize("version", ["v1", "v1beta3", "v1beta2", "v1beta1", "v1alpha2"])
def test_every_version_is_reported(tmp_path: Path, version: str) -> None:
    text = HEAD.replace("/v1", f"/{version}") + "profiles: [{schedulerName: a}]\n"
    assert report(written(tmp_path, text)).config is not None


def test_arguments_of_other_plugins_are_reported(tmp_path: Path) -> None:
    reported = report(written(tmp_path, HEAD + ARGS % ("Own", "levels: [1, 2], note: x")))
    assert reported.config is not None
    assert reported.config["profiles"][0]["pluginConfig"][0]["args"]["levels"] == [1, 2]


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
