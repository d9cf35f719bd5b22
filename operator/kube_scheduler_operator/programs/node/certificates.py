"""Certificates on a node: one directory for each Secret, whole or not at all.

    D/secrets/NAME/KEY

They belong to no revision: a scheduler reads them again while it runs, so that a renewed one needs
no restart. A certificate and a key that do not fit never get there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base import files
from ...base.files import Disk, File

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRETS: Final = "secrets"
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"


class PairError(ValueError):
    """A certificate and a key that cannot be used together."""


class Certificates:
    """The certificates of one node."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._secrets = directory / SECRETS
        self._staging = directory / f".{SECRETS}-staging"
        self._disk = disk

    def has(self, name: str) -> bool:
        """Whether there is anything of a Secret."""
        return self._path(name).is_dir()

    def put(self, name: str, data: Mapping[str, bytes]) -> bool:
        """Let the directory of a Secret hold exactly `data`; whether that changed anything.

        Raises:
            PairError: `tls.crt` and `tls.key` do not belong together; what was there stays.
            UnsafeNameError: a key is no file name.
            OSError: the disk does not take it; what was there stays.
        """
        content = {key: File(value) for key, value in data.items()}
        if files.holds(self._path(name), content):
            return False
        _see_that_they_fit(data)
        for directory in (self._secrets.parent, self._secrets):
            directory.mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
        return files.replace_directory(self._disk, self._path(name), content, self._staging)

    def remove(self, name: str) -> bool:
        """Remove the directory of a Secret; whether there was one."""
        if not self.has(name):
            return False
        self._disk.remove_tree(self._path(name))
        self._disk.sync(self._secrets)
        return True

    def _path(self, name: str) -> Path:
        return self._secrets / name


def _see_that_they_fit(data: Mapping[str, bytes]) -> None:
    if _CERTIFICATE not in data or _KEY not in data:
        raise PairError(f"{_CERTIFICATE} and {_KEY} must both be there")
    import ssl  # here, because installers rarely need it and it costs milliseconds
    import tempfile

    with tempfile.TemporaryDirectory(prefix="certificates-") as scratch:
        paths = {key: Path(scratch, key) for key in (_CERTIFICATE, _KEY)}
        for key, path in paths.items():
            path.touch(files.PRIVATE)
            path.write_bytes(data[key])
        try:
            # Without a password function OpenSSL would ask on the terminal and block for ever.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(
                paths[_CERTIFICATE], paths[_KEY], password=lambda: ""
            )
        except (ssl.SSLError, ValueError) as error:
            raise PairError(
                f"{_CERTIFICATE} and {_KEY} cannot be used together: {error}"
            ) from error
