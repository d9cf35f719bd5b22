"""Certificates of the webhook: trusted before they are served, renewed before they expire."""

from __future__ import annotations

import base64
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kube_scheduler_operator.base import x509
from kube_scheduler_operator.operator.engine import webhook_certificates as module
from kube_scheduler_operator.operator.engine.webhook_certificates import (
    DAYS,
    RENEW_BEFORE,
    TRUST_SECONDS,
    bundle_of,
    data_of,
    encoded,
    issue,
    next_step,
    with_bundle,
)
from kube_scheduler_operator.serving.certificate import CertificateError

HOST = "kube-scheduler-operator-webhook.kube-scheduler-operator.svc"
NOW = datetime.now(UTC)


class Cluster:
    """A Secret and a configuration; each step is performed as the operator performs it."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}
        self.bundle = ""
        self.trusted_since = NOW
        self.now = NOW
        self.made = 0
        self.steps: list[str] = []

    def issue(self) -> dict[str, str]:
        """A certificate that is valid from now on; their number distinguishes them."""
        self.made += 1
        expiry = self.now + timedelta(days=DAYS)
        text = f"-----BEGIN CERTIFICATE-----\n{self.made} {expiry:%Y-%m-%d}\n{module._END}\n"
        return {"ca.crt": f"CA {text}", "tls.crt": text, "tls.key": f"key {self.made}"}

    def step(self) -> bool:
        found = next_step(
            self.data,
            self.bundle,
            self.now,
            (self.now - self.trusted_since).total_seconds(),
            self.issue,
        )
        if found is None:
            return False
        if found.data is not None:
            self.data = dict(found.data)
            self.steps.append("data")
        if found.bundle:
            self.bundle, self.trusted_since = found.bundle, self.now
            self.steps.append("bundle")
        return True

    def settle(self) -> list[str]:
        self.steps = []
        for _ in range(10):
            if not self.step():
                return self.steps
        raise AssertionError(self.steps)

    def trusts_what_is_served(self) -> bool:
        """The authority of the served certificate is trusted: both have the same number."""
        served = self.data["tls.crt"].split()[2]
        return any(part.split()[1:2] == [served] or f"\n{served} " in part
                   for part in self.bundle.split("CA "))  # fmt: skip


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    def expires(pem: bytes) -> datetime | None:
        words = pem.decode().split()
        return datetime.strptime(words[3], "%Y-%m-%d").replace(tzinfo=UTC)

    monkeypatch.setattr(x509, "expires", expires)
    return Cluster()


def test_the_first_certificate_is_stored_and_then_trusted(cluster: Cluster) -> None:
    assert cluster.settle() == ["data", "bundle"]
    assert cluster.made == 1
    assert cluster.trusts_what_is_served()
    assert cluster.settle() == []


def test_a_certificate_is_renewed_long_before_it_expires(cluster: Cluster) -> None:
    cluster.settle()
    cluster.now += timedelta(days=DAYS) - RENEW_BEFORE - timedelta(days=2)
    assert cluster.settle() == []
    cluster.now += timedelta(days=3)
    first = cluster.data["tls.crt"]
    assert cluster.settle() == ["data", "bundle"]
    assert cluster.data["tls.crt"] == first, "it is served until its successor is trusted"
    assert cluster.trusts_what_is_served()
    cluster.now += timedelta(seconds=TRUST_SECONDS - 1)
    assert cluster.settle() == []
    cluster.now += timedelta(seconds=2)
    assert cluster.step()
    assert cluster.data["tls.crt"] != first
    assert cluster.trusts_what_is_served()
    cluster.settle()
    assert cluster.trusts_what_is_served()
    assert cluster.made == 2


def test_what_is_served_is_trusted_at_every_moment_of_twenty_years(cluster: Cluster) -> None:
    cluster.settle()
    for _ in range(20 * 365):
        cluster.now += timedelta(days=1)
        while cluster.step():
            assert cluster.trusts_what_is_served()
        expiry = x509.expires(cluster.data["tls.crt"].encode())
        assert expiry is not None
        assert expiry - cluster.now > timedelta(days=100)
    assert cluster.made >= 20
    assert cluster.bundle.count("CA ") == 2, "authorities do not pile up"


@pytest.mark.parametrize("part", ["ca.crt", "tls.crt", "tls.key"])
def test_a_lost_part_is_made_again(cluster: Cluster, part: str) -> None:
    cluster.settle()
    del cluster.data[part]
    assert cluster.settle() == ["data", "bundle"]
    assert cluster.trusts_what_is_served()


def test_an_expired_certificate_is_replaced_at_once(cluster: Cluster) -> None:
    cluster.settle()
    cluster.now += timedelta(days=DAYS + 1)
    assert cluster.settle() == ["data", "bundle"]
    assert cluster.trusts_what_is_served()


def test_another_bundle_is_replaced(cluster: Cluster) -> None:
    cluster.settle()
    cluster.bundle = "of another client"
    assert cluster.settle() == ["bundle"]
    assert cluster.trusts_what_is_served()


# --- the objects ------------------------------------------------------------------------------


def test_texts_survive_a_secret_and_what_cannot_be_read_is_left_out() -> None:
    data = {"tls.crt": "ä", "tls.key": "k"}
    assert data_of({"data": encoded(data)}) == data
    odd = {"a": "=", "b": 7, "c": base64.b64encode(b"\xff").decode(), "d": None}
    assert data_of({"data": odd}) == {}
    assert data_of({}) == {}


def test_a_bundle_is_written_to_every_webhook_and_nothing_else_changes() -> None:
    before = {"metadata": {"name": "x"}, "webhooks": [{"name": "a", "clientConfig": {"url": "u"}}]}
    after = with_bundle(before, "CA")
    assert bundle_of(after) == "CA"
    assert bundle_of(before) == ""
    del after["webhooks"][0]["clientConfig"]["caBundle"]
    assert after == before


@pytest.mark.parametrize("webhooks", [None, [], [{}], [{"clientConfig": {"caBundle": "%"}}]])
def test_a_configuration_without_a_bundle_trusts_nothing(webhooks: object) -> None:
    assert bundle_of({"webhooks": webhooks}) == ""


# --- openssl ----------------------------------------------------------------------------------


def test_a_certificate_is_verified_by_its_authority_for_its_host_only(tmp_path: Path) -> None:
    made = issue(HOST, DAYS)
    (tmp_path / "ca.crt").write_text(made["ca.crt"])
    (tmp_path / "tls.crt").write_text(made["tls.crt"])

    def verified(host: str) -> bool:
        command = ["openssl", "verify", "-purpose", "sslserver", "-verify_hostname", host,
                   "-CAfile", "ca.crt", "tls.crt"]  # fmt: skip
        return subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0

    assert verified(HOST)
    assert not verified("another.svc")
    expiry = x509.expires(made["tls.crt"].encode())
    assert expiry is not None
    assert abs(expiry - datetime.now(UTC) - timedelta(days=DAYS)) < timedelta(hours=1)


def test_without_openssl_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(CertificateError, match="without the program openssl"):
        issue(HOST, 1)


def test_an_error_of_openssl_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NEW_KEY", ("-newkey", "nothing"))
    with pytest.raises(CertificateError, match="openssl cannot create a certificate: "):
        issue(HOST, 1)
