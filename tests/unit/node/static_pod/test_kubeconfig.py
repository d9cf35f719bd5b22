"""The values that programs on a node read from the scheduler's kubeconfig."""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import x509
from kube_scheduler_operator.node.static_pod.kubeconfig import api_server, expires
from kube_scheduler_operator.node.static_pod.manifest import Probe


def config(*servers: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": f"cluster-{number}", "cluster": {"server": server}}
            for number, server in enumerate(servers)
        ],
        "contexts": [{"name": "default", "context": {"cluster": "cluster-0", "user": "scheduler"}}],
        "current-context": "default",
    }


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://10.0.0.1:6443", Probe("10.0.0.1", 6443, "/readyz")),
        ("https://[fd00::1]:6443/", Probe("fd00::1", 6443, "/readyz")),
        ("https://api.example.com", Probe("api.example.com", 443, "/readyz")),
        ("https://proxy:8443/k8s/c-1/", Probe("proxy", 8443, "/k8s/c-1/readyz")),
        ("http://10.0.0.1:8080", None),
        ("https://10.0.0.1:port", None),
        ("", None),
        (None, None),
    ],
)
@pytest.mark.parametrize("write", [json.dumps, partial(json.dumps, indent=2), yaml.safe_dump])
def test_the_api_server_of_a_kubeconfig(
    tmp_path: Path, write: Any, server: Any, expected: Any
) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(write(config(server)))
    assert api_server(path) == expected


def test_several_api_servers_give_no_probe(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(json.dumps(config("https://a:1", "https://b:1")))
    assert api_server(path) is None
    path.write_text(json.dumps(config("https://a:1", "https://a:1")))
    assert api_server(path) == Probe("a", 1, "/readyz")


@pytest.mark.parametrize("text", ["", "not: [a", "[]", json.dumps(config())])
def test_no_api_server_gives_no_probe(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(text)
    assert api_server(path) is None
    assert api_server(tmp_path / "missing") is None


@pytest.mark.parametrize("write", [json.dumps, partial(json.dumps, indent=2), yaml.safe_dump])
def test_expiry_of_the_embedded_certificate(
    tmp_path: Path, first_certificate: Any, write: Any
) -> None:
    path = tmp_path / "scheduler.conf"
    pem = first_certificate.certificate.read_bytes()
    user = {"client-certificate-data": base64.b64encode(pem).decode(), "client-key-data": "a2V5"}
    path.write_text(write({**config(), "users": [{"name": "scheduler", "user": user}]}))
    assert expires(path) == x509.expires(pem)
    assert expires(path) is not None


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"token": "x"},
        {"client-certificate": "/somewhere/else.crt"},
        {"client-certificate-data": "no"},
        {"client-certificate-data": "bm8="},
    ],
)
def test_no_expiry_without_an_embedded_certificate(tmp_path: Path, user: Any) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(json.dumps({**config(), "users": [{"name": "scheduler", "user": user}]}))
    assert expires(path) is None
    assert expires(tmp_path / "missing") is None
