"""Decoding of nulls, bytes and floats like Go, and validation of TLS data."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.validation.extenders import (
    unusable_authority,
    unusable_pair,
)
from kube_scheduler_operator.config.language.versions import Version

from ....configurations.completed import decoded_config
from ....configurations.model import typed
from ....configurations.seeds import CERTIFICATE, KEY, OTHER_KEY


def paths(config: dict[str, Any]) -> list[str]:
    problems = validate_config(typed(config), Target(Gates(Version(1, 35))))
    return [format_path(problem.path) for problem in problems]


def tls(**fields: Any) -> dict[str, Any]:
    return {"extenders": [{"urlPrefix": "http://127.0.0.1:1", "tlsConfig": fields}]}


def args(plugin: str, **fields: Any) -> dict[str, Any]:
    return {"profiles": [{"pluginConfig": [{"name": plugin, "args": fields}]}]}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({"parallelism": None, "profiles": None}, [], id="nothing"),
        pytest.param({"profiles": [None], "extenders": [None]}, [], id="empty entries"),
        pytest.param(args("DynamicResources", filterTimeout=None), [], id="optional duration"),
        pytest.param({"leaderElection": {"retryPeriod": None}}, ["leaderElection.retryPeriod"],
                     id="duration"),
        pytest.param({"noSuch": None}, ["noSuch"], id="unknown field"),
        pytest.param(args("NodeResourcesFit", ignoredResources=[None]),
                     ["profiles[0].pluginConfig[0].args.ignoredResources[0]"], id="empty name"),
        pytest.param(tls(certData=[1, None, 255]), [], id="numbers for bytes"),
        pytest.param(tls(certData=[256]), ["extenders[0].tlsConfig.certData"], id="no bytes"),
        pytest.param({"clientConnection": {"qps": 3.4e38}}, [], id="large"),
        pytest.param({"clientConnection": {"qps": 3.5e38}}, ["clientConnection.qps"],
                     id="too large"),
    ],
)  # fmt: skip
def test_nulls_bytes_and_floats(config: dict[str, Any], expected: list[str]) -> None:
    assert paths(config) == expected


def test_a_decoded_copy_has_no_nulls_and_shares_no_data() -> None:
    config = args("NodeResourcesFit", scoringStrategy={"resources": [None, {"name": None}]})
    found = decoded_config({**config, "extenders": None, "noSuch": 1}, 35)
    entry = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"resources": [{}, {}]}}}
    assert found == {"profiles": [{"pluginConfig": [entry]}]}
    assert found["profiles"] is not config["profiles"]


def test_arguments_of_out_of_tree_plugins_are_unchanged() -> None:
    config = args("ImageLocality", x=None, y=[None])
    assert decoded_config(config, 35) == config


@pytest.mark.parametrize(
    ("certificate", "key", "usable"),
    [
        (CERTIFICATE, KEY, True), (CERTIFICATE, OTHER_KEY, False), (KEY, KEY, False),
        (CERTIFICATE, CERTIFICATE, False),
    ],
)  # fmt: skip
def test_a_certificate_needs_its_matching_key(certificate: str, key: str, usable: bool) -> None:
    found = unusable_pair(base64.b64decode(certificate), base64.b64decode(key))
    assert (found == "") == usable


def test_a_ca_bundle_needs_one_certificate() -> None:
    good = base64.b64decode(CERTIFICATE)
    damaged = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert unusable_authority(damaged + good) == ""
    assert unusable_authority(damaged) != ""
    assert unusable_authority(base64.b64decode(KEY)) != ""
