"""Certificates on a node: written atomically, and only as matching pairs."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.files import Disk, UnsafeNameError, mounted
from kube_scheduler_operator.node.static_pod.certificates import Certificates, PairError

from .test_layout import SyncRecorder


@pytest.fixture
def first(first_certificate: Any) -> Any:
    return pair(first_certificate, first_certificate)


@pytest.fixture
def second(second_certificate: Any) -> Any:
    return pair(second_certificate, second_certificate)


def pair(certificate: Any, key: Any) -> dict[str, Any]:
    return {"tls.crt": certificate.certificate.read_bytes(), "tls.key": key.key.read_bytes()}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "kube-scheduler-certs", Disk())


def on_disk(tmp_path: Path) -> Any:
    directory = tmp_path / "kube-scheduler-certs/secrets/client"
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_new_pair_is_readable_by_root_only(
    certificates: Certificates, tmp_path: Path, first: Any
) -> None:
    assert not certificates.has("client")
    assert certificates.put("client", first)
    assert certificates.has("client")
    assert on_disk(tmp_path) == first
    for path in (tmp_path / "kube-scheduler-certs/secrets/client").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_same_pair_changes_nothing(certificates: Certificates, tmp_path: Path, first: Any) -> None:
    certificates.put("client", first)
    inode = (tmp_path / "kube-scheduler-certs/secrets/client").stat().st_ino
    assert not certificates.put("client", dict(first))
    assert (tmp_path / "kube-scheduler-certs/secrets/client").stat().st_ino == inode


def test_a_new_process_syncs_the_pair_of_an_earlier_one_once(
    certificates: Certificates, tmp_path: Path, first: Any
) -> None:
    certificates.put("client", first)
    disk = SyncRecorder()
    again = Certificates(tmp_path / "kube-scheduler-certs", disk)
    assert not again.put("client", first)
    directory = tmp_path / "kube-scheduler-certs/secrets/client"
    assert {directory / "tls.crt", directory / "tls.key", directory} <= disk.synced
    disk.synced = set()
    again.put("client", first)
    assert disk.synced == set()


def test_renewed_pair_replaces_all_files(
    certificates: Certificates, tmp_path: Path, first: Any, second: Any
) -> None:
    certificates.put("client", {**first, "ca.crt": b"old"})
    assert certificates.put("client", second)
    assert on_disk(tmp_path) == second
    left = sorted(path.name for path in (tmp_path / "kube-scheduler-certs").iterdir())
    assert left == ["secrets"]


def test_a_reader_never_sees_half_a_pair(
    certificates: Certificates,
    tmp_path: Path,
    first: Any,
    second: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every step of the disk can be the last one."""
    certificates.put("client", first)
    seen = []
    for name in ("mkdir", "write", "sync", "rename", "exchange", "remove_tree"):
        real = getattr(Disk, name)

        def watched(self: Disk, *args: Any, real: Any = real) -> Any:
            seen.append(on_disk(tmp_path))
            return real(self, *args)

        monkeypatch.setattr(Disk, name, watched)
    certificates.put("client", second)
    assert [one for one in seen if one not in (first, second)] == []
    assert (seen[0], seen[-1]) == (first, second)


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
def test_incomplete_pair_is_rejected(
    certificates: Certificates, tmp_path: Path, first: Any, missing: Any
) -> None:
    certificates.put("client", first)
    with pytest.raises(PairError, match=r"must have both tls\.crt and tls\.key"):
        certificates.put("client", {k: v for k, v in first.items() if k != missing})
    assert on_disk(tmp_path) == first


def test_mismatched_key_is_rejected(
    certificates: Certificates,
    tmp_path: Path,
    first: Any,
    first_certificate: Any,
    second_certificate: Any,
) -> None:
    certificates.put("client", first)
    with pytest.raises(PairError, match="do not form a valid pair"):
        certificates.put("client", pair(first_certificate, second_certificate))
    assert on_disk(tmp_path) == first


def test_unsafe_file_name_is_rejected(
    certificates: Certificates, tmp_path: Path, first: Any
) -> None:
    with pytest.raises(UnsafeNameError):
        certificates.put("client", {**first, "../evil": b""})
    assert not certificates.has("client")


def test_removing(certificates: Certificates, first: Any) -> None:
    certificates.put("client", first)
    assert certificates.remove("client")
    assert not certificates.has("client")
    assert not certificates.remove("client")


def test_mounted_secrets_are_read_by_key(tmp_path: Path) -> None:
    hidden = tmp_path / "client" / "..2026_11_22"
    hidden.mkdir(parents=True)
    (hidden / "tls.crt").write_bytes(b"c")
    (tmp_path / "client" / "..data").symlink_to("..2026_11_22")
    (tmp_path / "client" / "tls.crt").symlink_to("..data/tls.crt")
    (tmp_path / "optional").mkdir()
    assert mounted(tmp_path) == {"client": {"tls.crt": b"c"}, "optional": {}}
