"""Certificates on a node: one directory for each Secret, replaced atomically.

    D/secrets/NAME/KEY

They belong to no revision: a running scheduler reloads them, so a renewed certificate needs no
restart. A certificate whose key does not match is never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...base import files
from ...base.files import Disk, File

SECRETS: Final = "secrets"
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"


class PairError(ValueError):
    """A certificate and a private key that do not match."""


class Certificates:
    def __init__(self, directory: Path, disk: Disk) -> None:
        self._secrets = directory / SECRETS
        self._staging = directory / f".{SECRETS}-staging"
        self._disk = disk
        self._synced: set[str] = set()  # what this process knows to be on the disk

    def has(self, name: str) -> bool:
        return self._path(name).is_dir()

    def put(self, name: str, data: Mapping[str, bytes]) -> bool:
        """Make the directory of a Secret contain exactly `data`; return whether it changed.

        Raises:
            PairError: `tls.crt` and `tls.key` do not match; the old files stay.
            UnsafeNameError: a key is not a file name.
            OSError: writing failed; the old files stay.
        """
        content = {key: File(value) for key, value in data.items()}
        if files.holds(self._path(name), content):
            if name not in self._synced:
                files.sync_directory(self._disk, self._path(name), content)
            self._synced.add(name)
            return False
        _validate_pair(data)
        for directory in (self._secrets.parent, self._secrets):
            directory.mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
        self._synced.discard(name)
        changed = files.replace_directory(self._disk, self._path(name), content, self._staging)
        self._synced.add(name)
        return changed

    def remove(self, name: str) -> bool:
        """Remove the directory of a Secret; return whether it existed."""
        if not self.has(name):
            return False
        self._disk.remove_tree(self._path(name))
        self._disk.sync(self._secrets)
        return True

    def _path(self, name: str) -> Path:
        return self._secrets / name


def _validate_pair(data: Mapping[str, bytes]) -> None:
    if _CERTIFICATE not in data or _KEY not in data:
        raise PairError(f"the Secret must have both {_CERTIFICATE} and {_KEY}")
    import ssl  # deferred: installers rarely need it, and it costs milliseconds
    import tempfile

    with tempfile.TemporaryDirectory(prefix="certificates-") as scratch:
        paths = {key: Path(scratch, key) for key in (_CERTIFICATE, _KEY)}
        for key, path in paths.items():
            path.touch(files.PRIVATE)
            path.write_bytes(data[key])
        try:
            # Without a password function OpenSSL would prompt on the terminal and block.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(
                paths[_CERTIFICATE], paths[_KEY], password=lambda: ""
            )
        except (ssl.SSLError, ValueError) as error:
            raise PairError(
                f"{_CERTIFICATE} and {_KEY} do not form a valid pair: {error}"
            ) from error
