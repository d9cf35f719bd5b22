"""A port follows its certificate's files through every error of reading them."""

from __future__ import annotations

import errno
import ssl
from typing import Any

import pytest

from kube_scheduler_operator.serving.tls_files import TlsError, TlsFiles

from ..conftest import CertificateFiles


def follow(files: CertificateFiles) -> TlsFiles:
    return TlsFiles(ssl.CERT_NONE, str(files.certificate), str(files.key), "")


def replace(target: CertificateFiles, source: CertificateFiles) -> None:
    target.certificate.write_bytes(source.certificate.read_bytes() + b"\n")
    target.key.write_bytes(source.key.read_bytes() + b"\n")


def test_files_that_do_not_match_are_reported_once(
    served: CertificateFiles, second_certificate: CertificateFiles
) -> None:
    files = follow(served)
    served.certificate.write_bytes(second_certificate.certificate.read_bytes() + b"\n")
    before = files.current
    with pytest.raises(TlsError, match="cannot be used"):
        files.reload()
    assert not files.reload()
    assert files.current is before
    served.key.write_bytes(second_certificate.key.read_bytes() + b"\n")
    assert files.reload()


def test_files_that_cannot_be_read_now_are_read_again(
    served: CertificateFiles,
    second_certificate: CertificateFiles,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = follow(served)
    replace(served, second_certificate)

    def no_descriptor(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(ssl.SSLContext, "load_cert_chain", no_descriptor)
        with pytest.raises(TlsError, match="Too many open files"):
            files.reload()
        assert not files.reload(), "reported once"
    assert files.reload()
    assert not files.reload()
