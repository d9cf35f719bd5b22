"""The serving certificate follows its files, and the last valid one stays in use."""

from __future__ import annotations

import errno
import logging
import shutil
import ssl
import tempfile
from typing import TYPE_CHECKING

import pytest

from kube_scheduler_operator.serving.certificate import CertificateError, ServingCertificate
from kube_scheduler_operator.serving.tls_settings import TLSSettings

from ..conftest import CertificateFiles
from ..operator.telemetry.handshakes import handshake

if TYPE_CHECKING:
    from pathlib import Path


def der(files: CertificateFiles) -> bytes:
    return ssl.PEM_cert_to_DER_cert(files.certificate.read_text())


def copy(source: CertificateFiles, target: CertificateFiles) -> None:
    target.certificate.write_bytes(source.certificate.read_bytes())
    target.key.write_bytes(source.key.read_bytes())


@pytest.mark.parametrize("server_name", ["localhost", None], ids=["with-sni", "without-sni"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_certificate_from_files_is_served(
    served: CertificateFiles, server_name: str | None, version: ssl.TLSVersion
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    agreed = handshake(serving.context, server_name=server_name, version=version)
    assert agreed.certificate == der(served)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_tls_is_refused(served: CertificateFiles) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        handshake(serving.context, version=ssl.TLSVersion.TLSv1_1)


def test_rotated_certificate_is_used_by_the_next_handshake(
    served: CertificateFiles, second_certificate: CertificateFiles
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    context = serving.context
    assert serving.reload() is False
    copy(second_certificate, served)
    assert serving.reload() is True
    assert handshake(context).certificate == der(second_certificate)
    assert serving.reload() is False


def test_incomplete_rotation_changes_nothing(
    served: CertificateFiles,
    first_certificate: CertificateFiles,
    second_certificate: CertificateFiles,
    caplog: pytest.LogCaptureFixture,
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    served.certificate.write_bytes(second_certificate.certificate.read_bytes())
    with caplog.at_level(logging.WARNING):
        assert serving.reload() is False
        assert serving.reload() is False
    assert len(caplog.records) == 1, "the same invalid pair is reported once"
    assert handshake(serving.context).certificate == der(first_certificate)
    served.key.write_bytes(second_certificate.key.read_bytes())
    assert serving.reload() is True
    assert handshake(serving.context).certificate == der(second_certificate)


def test_removed_files_change_nothing(
    served: CertificateFiles, first_certificate: CertificateFiles
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    served.certificate.unlink()
    assert serving.reload() is False
    assert handshake(serving.context).certificate == der(first_certificate)


def no_space(**_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_certificate_that_cannot_be_loaded_now_is_loaded_later(
    served: CertificateFiles,
    second_certificate: CertificateFiles,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    copy(second_certificate, served)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(tempfile, "TemporaryDirectory", no_space)
        assert not serving.reload()
        assert not serving.reload()
    assert len(caplog.records) == 1
    assert serving.reload()
    assert handshake(serving.context).certificate == der(second_certificate)


def test_settings_that_cannot_be_used_now_are_used_later(
    served: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    settings = TLSSettings("VersionTLS13")
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "TemporaryDirectory", no_space)
        with pytest.raises(OSError, match="No space"):
            serving.use(settings)
    assert serving.use(settings)
    with pytest.raises(ssl.SSLError):
        handshake(serving.context, version=ssl.TLSVersion.TLSv1_2)


def test_self_signed_certificate_without_files() -> None:
    serving = ServingCertificate(None, None)
    assert handshake(serving.context)
    assert serving.reload() is False


def test_self_signed_certificate_until_the_files_exist(
    tmp_path: Path, first_certificate: CertificateFiles
) -> None:
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    serving = ServingCertificate(files.certificate, files.key)
    assert handshake(serving.context, server_name=None)
    assert serving.reload() is False
    copy(first_certificate, files)
    assert serving.reload() is True
    assert handshake(serving.context, server_name=None).certificate == der(first_certificate)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("not a certificate", "must be unencrypted PEM", id="garbage"),
        pytest.param("", "must be unencrypted PEM", id="empty"),
    ],
)
def test_invalid_certificate_at_start_is_an_error(
    served: CertificateFiles, content: str, message: str
) -> None:
    served.certificate.write_text(content)
    with pytest.raises(CertificateError, match=message):
        ServingCertificate(served.certificate, served.key)


def test_certificate_without_its_key_file_is_an_error(served: CertificateFiles) -> None:
    with pytest.raises(CertificateError, match="or neither"):
        ServingCertificate(served.certificate, None)
    served.key.unlink()
    with pytest.raises(CertificateError, match=r"tls\.key: No such file"):
        ServingCertificate(served.certificate, served.key)


def test_without_openssl_the_error_names_the_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(CertificateError, match="--tls-cert-file and --tls-private-key-file"):
        ServingCertificate(None, None)


def test_error_of_openssl_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "openssl"
    fake.write_text("#!/bin/sh\necho 'unknown option -addext' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _name: str(fake))
    with pytest.raises(CertificateError, match="unknown option -addext"):
        ServingCertificate(None, None)


def test_a_rotated_certificate_keeps_settings_and_client_ca(
    served: CertificateFiles,
    first_certificate: CertificateFiles,
    second_certificate: CertificateFiles,
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    serving.use(TLSSettings("VersionTLS13"), first_certificate.certificate.read_text())
    copy(second_certificate, served)
    assert serving.reload() is True
    with pytest.raises(ssl.SSLError):
        handshake(serving.context, version=ssl.TLSVersion.TLSv1_2)
    agreed = handshake(serving.context, client=first_certificate)
    assert agreed.certificate == der(second_certificate)
    assert "first" in str(agreed.client)


def test_a_client_certificate_is_verified_and_none_is_required(
    served: CertificateFiles,
    first_certificate: CertificateFiles,
    second_certificate: CertificateFiles,
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    assert handshake(serving.context, client=second_certificate).client is None, "not requested"
    serving.use(TLSSettings(), second_certificate.certificate.read_text())
    assert "second" in str(handshake(serving.context, client=second_certificate).client)
    assert not handshake(serving.context).client
    with pytest.raises(ssl.SSLError):
        handshake(serving.context, client=first_certificate)
    serving.use(TLSSettings(), first_certificate.certificate.read_text())
    with pytest.raises(ssl.SSLError):
        handshake(serving.context, client=second_certificate)


def test_an_invalid_client_ca_accepts_no_client_certificate(
    served: CertificateFiles, second_certificate: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    serving = ServingCertificate(served.certificate, served.key)
    assert serving.use(TLSSettings(), "no certificate") is True
    assert serving.use(TLSSettings(), "no certificate") is False, "it is reported once"
    assert "Cannot load the CA of client certificates" in caplog.text
    assert handshake(serving.context, client=second_certificate).client is None
