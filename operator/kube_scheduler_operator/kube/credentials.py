"""Who we are and where the API server is: from a kubeconfig or from the pod that we run in.

Tokens of pods are rotated on disk and exec plugins hand out credentials that expire, so an identity
is not read once but asked for at every request; it is read anew when a file behind it changes.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from .errors import CredentialsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_STAT_PERIOD: Final = 1.0
"""Files are looked at no more often, seconds: a request must not cost five system calls."""

_EXPIRY_MARGIN: Final = datetime.timedelta(seconds=60)
"""Credentials are renewed so long before they expire, or at three quarters of a shorter life."""

Files: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, modification time (ns) and size of every file that an identity was read from."""


@dataclass(frozen=True, slots=True)
class Access:
    """All it takes to open a connection and be somebody. Secrets never show in its repr.

    Attributes:
        server: base URL without a trailing slash.
        authorization: value of the Authorization header, None if there is none.
        ca_file: PEM file of the CA, None for the system's.
        cert_file: PEM file of the client certificate.
        key_file: PEM file of its key.
        verify: False accepts any server certificate.
        tls_server_name: the name to expect in the server certificate, if not the URL's.
        proxy: URL of an HTTP proxy.
        expires: when to ask again at the latest.
        files: what all this was read from.
    """

    server: str
    authorization: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    expires: datetime.datetime | None = None
    files: Files = ()

    @property
    def host(self) -> str:
        """host:port of the server, for metrics."""
        return urlsplit(self.server).netloc

    @property
    def transport(self) -> Access:
        """The part that a TLS connection depends on; equal if connections can be shared."""
        return replace(self, authorization=None, expires=None)

    def ssl_context(self) -> ssl.SSLContext | None:
        """A context for this server, None for plain HTTP.

        Raises:
            CredentialsError: a certificate or key cannot be loaded.
        """
        if not self.server.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise CredentialsError(f"CA file {self.ca_file} is unusable: {error}") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file:
            try:
                context.load_cert_chain(self.cert_file, self.key_file)
            except (OSError, ssl.SSLError) as error:
                raise CredentialsError(
                    f"client certificate {self.cert_file} with key {self.key_file or '(none)'} "
                    f"is unusable: {error}"
                ) from error
        return context


class Credentials:
    """An identity that stays valid: reads again what has changed or is about to expire.

    Safe to share between threads and event loops.

    Args:
        load: reads the identity; may block. Raises CredentialsError.
        clock: monotonic seconds.
        now: the wall clock, aware.
    """

    def __init__(
        self,
        load: Callable[[], Access],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._load = load
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._access: Access | None = None
        self._checked = float("-inf")
        self._renew: datetime.datetime | None = None

    async def access(self) -> Access:
        """What to use for the next request.

        Raises:
            CredentialsError: there is no usable identity (any more).
        """
        access = self._access
        if access is not None and self._fresh(access):
            return access
        return await asyncio.to_thread(self._reload)

    def invalidate(self) -> None:
        """The server did not accept the identity: read it again before the next request."""
        self._access = None

    def _fresh(self, access: Access) -> bool:
        if self._clock() - self._checked < _STAT_PERIOD:
            return True
        if self._renew is not None and self._now() >= self._renew:
            return False
        if access.files != fingerprint(path for path, _, _ in access.files):
            return False
        self._checked = self._clock()
        return True

    def _reload(self) -> Access:
        with self._lock:
            access = self._access
            if access is None or not self._fresh(access):
                access = self._load()
                self._renew = None
                if access.expires is not None:
                    life = access.expires - self._now()
                    self._renew = access.expires - min(_EXPIRY_MARGIN, life / 4)
                self._access, self._checked = access, self._clock()
            return access


def find(kubeconfig: str | None = None, context: str | None = None) -> Credentials:
    """The identity to use, looked for where every Kubernetes program looks.

    Args:
        kubeconfig: path(s) given by the user; wins over everything else.
        context: which context of the kubeconfig; its current one by default.

    The order after that: $KUBECONFIG, the pod's service account, ~/.kube/config. Nothing is read
    before the first `access`.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG")
    if not path and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    return from_kubeconfig(path or "~/.kube/config", context)


def from_kubeconfig(path: str, context: str | None = None) -> Credentials:
    """The identity of a kubeconfig: certificate, token, token file, exec plugin, password."""
    return Credentials(lambda: read_kubeconfig(path, context))


def in_cluster(directory: Path = SERVICE_ACCOUNT_DIR) -> Credentials:
    """The identity of the pod that we run in."""
    return Credentials(lambda: read_service_account(directory))


def fingerprint(paths: Iterable[str]) -> Files:
    """What changes when one of the files at `paths` does."""
    return tuple(_stat(path) for path in paths)


def _stat(path: str) -> tuple[str, int, int]:
    try:
        info = Path(path).stat()
    except OSError:
        return path, 0, 0
    return path, info.st_mtime_ns, info.st_size


def read_service_account(directory: Path) -> Access:
    """Read what the kubelet mounted into this pod.

    Raises:
        CredentialsError: this is no pod, or it has no token.
    """
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise CredentialsError(
            "not in a pod: KUBERNETES_SERVICE_HOST is not set; give --kubeconfig instead"
        )
    token_file, ca_file = directory / "token", directory / "ca.crt"
    files = fingerprint((str(token_file), str(ca_file)))
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CredentialsError(
            f"no service account token at {token_file} ({error.strerror}); "
            "is automountServiceAccountToken off?"
        ) from error
    if not token:
        raise CredentialsError(f"the service account token at {token_file} is empty")
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authorization=f"Bearer {token}",
        ca_file=str(ca_file),
        files=files,
    )


def read_kubeconfig(path: str, context: str | None = None) -> Access:
    """Read one kubeconfig, or several separated like $PATH; may run an exec plugin.

    Raises:
        CredentialsError: it is missing or broken, or yields no credentials.
    """
    # A second and 17 MiB: only programs that have a kubeconfig shall pay (see also bare.py).
    from kubernetes.config import kube_config

    merger: Any = kube_config.KubeConfigMerger
    loader_of: Any = kube_config.KubeConfigLoader
    paths = [str(Path(part).expanduser()) for part in path.split(os.pathsep) if part]
    existing = [part for part in paths if Path(part).is_file()]
    if not existing:
        raise CredentialsError(
            f"kubeconfig {path} does not exist; give --kubeconfig, set KUBECONFIG, or run in a pod"
        )
    before = fingerprint(existing)
    try:
        merged = merger(os.pathsep.join(existing)).config
        loader = loader_of(merged, active_context=context, config_base_path=None)
        loader.load_and_set(_Discard())
        user, base = _user(merged, context)
    except Exception as error:  # malformed files make the loader raise anything
        raise CredentialsError(f"kubeconfig {path} is unusable: {_flat(error)}") from error
    found: dict[str, Any] = vars(loader)
    token: str | None = found.get("token")
    if not found.get("host"):
        raise CredentialsError(f"kubeconfig {path} is unusable: its cluster has no server")
    if "exec" in user and not token and not found.get("cert_file"):
        command = user["exec"].get("command")
        raise CredentialsError(
            f"kubeconfig {path}: the exec plugin {command!r} gave no credentials; run it by hand"
        )
    behind = (
        str(Path(base, user[key]))
        for key in ("tokenFile", "client-certificate", "client-key")
        if user.get(key)
    )
    return Access(
        server=found["host"],
        authorization=" ".join(token.split()) if token else None,
        ca_file=found.get("ssl_ca_cert"),
        cert_file=found.get("cert_file"),
        key_file=found.get("key_file"),
        verify=found.get("verify_ssl", True),
        tls_server_name=found.get("tls_server_name"),
        proxy=found.get("proxy"),
        expires=found.get("expiry"),
        files=before + fingerprint(behind),
    )


class _Discard:
    """Takes what the loader sets on a client's configuration; we read the loader itself."""

    def __init__(self) -> None:
        self.api_key: dict[str, str] = {}


def _user(config: Any, context: str | None) -> tuple[Mapping[str, Any], str]:
    """The user entry of the chosen context, and the directory that its paths are relative to."""
    chosen = config["contexts"].get_with_name(context or config["current-context"])
    name = chosen["context"].safe_get("user")
    node = config["users"].get_with_name(name, safe=True) if name and "users" in config else None
    if node is None:
        return {}, ""
    return node["user"].value or {}, str(Path(node.path or "").parent.resolve())


def _flat(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
