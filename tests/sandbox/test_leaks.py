"""The search that ends the end-to-end tests finds what it is there for, and nothing else."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import controlplane, model, node_files
from cluster.api import Api, Object
from cluster.model import Sandbox

from ..e2e.leaks import Secret, leaks, secret, secret_in_file
from ..e2e.remains import Follower, logs, objects, secrets_of_api, secrets_of_files

KEY = b"""\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgb1sNLqXzQ0V9rUkE
m3VtYd8SxW2pT5cKjHfGzR7uA6OhRANCAATq0BnLw4eIoXy1CvMsPaD2iJhFtZkQ
c6UgEr5lWb8NYxKfVm9pAoS3TzHdjR1uGqLMwXe7Iy0sCvPk4BnOQaZt
-----END PRIVATE KEY-----
"""
LINES = KEY.splitlines()[1:-1]
CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ0V9\n-----END CERTIFICATE-----\n"
HEAD, PAYLOAD, SIGNATURE = b"eyJhbGciOiJFUzI1NiJ9", b"eyJpc3MiOiJrdWJlIn0", b"c2lnbmF0dXJl" * 4
TOKEN = b".".join((HEAD, PAYLOAD, SIGNATURE))
b64 = base64.b64encode


def made(content: bytes, public: bytes = b"") -> list[Secret]:
    found = secret("it", content, public)
    return [found] if found else []


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda value: value, id="raw"),
        pytest.param(lambda value: value.replace(b"\n", b"\n        "), id="indented"),
        pytest.param(lambda value: value.splitlines()[1], id="its first line"),
        pytest.param(lambda value: value.splitlines()[2] + b"...", id="its second line"),
        pytest.param(lambda value: json.dumps(value.decode()).encode(), id="JSON"),
        pytest.param(lambda value: json.dumps(json.dumps(value.decode())).encode(), id="nested"),
        pytest.param(lambda value: repr(value).encode(), id="Python"),
        pytest.param(b64, id="base64"),
        pytest.param(lambda value: b64(b"users:\n- " + value), id="base64 of more"),
        pytest.param(lambda value: b64(b"client-key-data: " + b64(value)), id="of a kubeconfig"),
    ],
)
def test_a_key_is_found_in_every_form(form: Callable[[bytes], bytes]) -> None:
    text = b"I1121 01:20:17.128676 8293 x.go:5] before " + form(KEY) + b" after\n" * 1000
    assert leaks(made(KEY), "there", text) == ["it is in there"]


@pytest.mark.parametrize("value", ["correct horse\nbattery staple", "ein längeres Kennwort"])
def test_any_other_value_is_found_as_well(value: str) -> None:
    raw = value.encode()
    for text in (raw, json.dumps(value).encode(), b64(raw), b64(b"{}" + raw + b"{}")):
        assert leaks(made(raw), "there", b"a " + text + b" b") == ["it is in there"]


def test_a_short_value_is_found_verbatim() -> None:
    for text in (b"12345678", b64(b"12345678")):
        assert leaks(made(b"12345678"), "there", b"a " + text + b" b") == ["it is in there"]


def test_a_kubeconfig_is_searched_for_by_what_is_secret_in_it() -> None:
    config = b"users:\n- user:\n    client-certificate-data: %s\n    client-key-data: %s\n" % (
        b64(CERTIFICATE),
        b64(KEY),
    )
    found = [each for each in (secret_in_file("admin.conf", config),) if each]
    assert leaks(found, "there", KEY)
    assert leaks(found, "there", config)
    assert leaks(found, "there", config.replace(b64(KEY), b"REDACTED")) == []


def test_an_issued_token_is_found_by_its_signature() -> None:
    assert leaks(made(TOKEN), "there", b"...." + SIGNATURE) == ["it is in there"]
    assert leaks(made(TOKEN), "there", HEAD) == []


def test_an_unknown_secret_is_found_by_its_format() -> None:
    assert leaks([], "there", KEY) == ["a private key is in there"]
    assert leaks([], "there", b"Authorization: Bearer " + TOKEN) == ["a token is in there"]


def test_certificates_are_not_secrets() -> None:
    assert made(CERTIFICATE) == []
    assert secret_in_file("manifest.yaml", b"kind: Pod\nspec: {serviceAccountToken: x}") is None
    assert made(b"true") == [], "what is so short would be everywhere"


def test_the_public_half_of_a_key_is_not_a_secret() -> None:
    """An elliptic key ends with the public one, which its certificate has in the same letters."""
    der = b"\0" * 48 + base64.b64decode(LINES[2])
    certificate = b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n" % b64(der)
    assert leaks(made(KEY, certificate), "there", certificate) == []
    assert leaks(made(KEY, certificate), "there", LINES[1])
    assert leaks(made(KEY), "there", LINES[2])


def test_a_secret_does_not_show_itself() -> None:
    (found,) = made(KEY)
    assert repr(found) == "Secret(name='it')"
    assert LINES[0].decode() not in str(leaks([found], "there", KEY))


# --- what is collected ----------------------------------------------------------------------------


@pytest.fixture
def box(state_root: Path) -> Sandbox:
    sandbox = Sandbox("dev", 2, model.make_nodes("dev", 1, 0))
    controlplane.make_certificates(sandbox)
    for node in sandbox.nodes:
        node_files.write(sandbox, node)
    return sandbox


def test_every_key_that_a_sandbox_has_is_known_and_no_certificate_is(box: Sandbox) -> None:
    found = list(secrets_of_files(box.state))
    names = {each.name for each in found}
    node = f"nodes/{box.nodes[0].name}"
    assert {f"{node}/etc/kubernetes/{name}.conf" for name in ("scheduler", "admin")} <= names
    assert f"{node}/var/lib/kubelet/pki/kubelet.key" in names
    assert "pki/sa.key" in names
    for path in box.state.rglob("*.key"):
        assert leaks(found, "there", path.read_bytes()), path
    for kind in ("*.crt", "*.pub"):
        for path in box.state.rglob(kind):
            assert leaks(found, "there", path.read_bytes()) == [], path


class SmallApi(Api):
    """Has one object of each kind, and the Secrets that it is given."""

    def __init__(self, secrets: list[Object], **annotations: str) -> None:
        self.secrets = secrets
        self.metadata = {"name": "x", "namespace": "ns", "annotations": annotations}

    def request(
        self, method: str, path: str, body: Object | str | None = None, *, content_type: str = ""
    ) -> Object:
        return {
            "items": self.secrets if path.endswith("/secrets") else [{"metadata": self.metadata}]
        }


def test_a_secret_of_the_api_that_is_in_an_object_is_found(box: Sandbox) -> None:
    values = {"tls.key": KEY, "tls.crt": CERTIFICATE, "namespace": b"kube-system"}
    held = {
        "metadata": {"name": "s", "namespace": "ns"},
        "type": "kubernetes.io/service-account-token",
        "data": {key: b64(value).decode() for key, value in values.items()},
    }
    api = SmallApi([held], note=json.dumps({"conf": KEY.decode()}))
    (known,) = secrets_of_api(api)
    found = [leak for place, text in objects(box, api) for leak in leaks([known], place, text)]
    assert "tls.key of Secret ns/s is in configmaps ns/x" in found
    assert not any("metadata of Secret" in leak for leak in found)
    clean = objects(box, SmallApi([held], note=CERTIFICATE.decode()))
    assert [leak for place, text in clean for leak in leaks([known], place, text)] == []


def test_logs_of_pods_that_have_gone_are_kept(box: Sandbox) -> None:
    pods = box.state / "nodes/dev-control-plane/var/log/pods"
    log = pods / "ns_installer-1_uid/installer/0.log"
    log.parent.mkdir(parents=True)
    log.write_text("first\n")
    follower = Follower(box.state)
    follower.sweep()
    with log.open("a") as file:
        file.write("second\n")
        log.rename(log.with_name("0.log.20260101-000000"))
        file.write("third\n")
    packed = log.with_name("0.log.20260101-000000.gz")
    packed.write_bytes(gzip.compress(b"packed\n"))
    follower.sweep()
    for path in log.parent.iterdir():
        path.unlink()
    log.write_text("second start\n")
    follower.start()
    follower.end()
    assert follower.trouble == set()
    texts = sorted(text for _, text in logs(follower.kept))
    assert texts == [b"first\nsecond\nthird\n", b"packed\n", b"second start\n"]
    place = next(place for place, text in logs(follower.kept) if text == b"packed\n")
    assert place.startswith("the log dev-control-plane/ns_installer-1_uid/installer/0.log")


def test_a_pod_that_goes_while_logs_are_kept_costs_only_its_own(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = box.state / "nodes/dev-control-plane/var/log/pods"
    for pod in ("a", "b", "c"):
        (pods / pod / "main").mkdir(parents=True)
        (pods / pod / "main/0.log").write_text(pod)
    scandir = os.scandir

    def vanishing(place: str) -> object:
        if str(place).endswith("/b"):
            raise FileNotFoundError(place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", vanishing)
    follower = Follower(box.state)
    follower.sweep()
    monkeypatch.undo()
    assert sorted(text for _, text in logs(follower.kept)) == [b"a", b"c"]
