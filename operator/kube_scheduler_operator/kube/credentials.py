"""Credentials and the address of the API server, from a kubeconfig or the Pod's service account.

Tokens of Pods rotate on disk, and credentials of exec plugins expire. Therefore every request gets
the current credentials, which are loaded again when they expire or one of their files changes.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from ..base.files import Fingerprint, fingerprint
from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from .errors import CredentialsError

SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_STAT_PERIOD: Final = 1.0
"""Interval of checks for changed files, seconds: five system calls per request are too many."""

_EXPIRY_MARGIN: Final = datetime.timedelta(seconds=60)
"""Credentials are renewed this long before they expire; short-lived ones at 3/4 of their life."""

_NAMED: Final = 20
"""Contexts that an error names."""

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values; a name may occur several times."""


@dataclass(frozen=True, slots=True)
class Access:
    """Everything that a connection needs. Its repr contains no secrets."""

    server: str  # base URL without a trailing slash
    # value of the Authorization header, if any
    authorization: str | None = field(default=None, repr=False)
    ca_file: str | None = None  # PEM file of the CA; None: the system's CAs
    cert_file: str | None = None  # PEM file of the client certificate
    key_file: str | None = None  # PEM file of the client key
    verify: bool = True  # whether to verify the server certificate
    tls_server_name: str | None = None  # the name in the server certificate, if not the URL's host
    proxy: str | None = None  # URL of an HTTP proxy
    expires: datetime.datetime | None = None  # time of expiry, if known
    files: Fingerprint = ()  # the files that it was read from
    impersonation: Headers = ()  # headers by which a request counts as another user's
    context: str | None = None  # of the kubeconfig; None: it was read from a Pod

    @property
    def host(self) -> str:
        return urlsplit(self.server).netloc

    @property
    def transport(self) -> Access:
        """The part that a TLS connection depends on."""
        return replace(self, authorization=None, expires=None, impersonation=())

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return a TLS context for this server; None for plain HTTP.

        Raises:
            CredentialsError: a certificate or key cannot be loaded.
        """
        if not self.server.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise CredentialsError(f"cannot load CA file {self.ca_file}: {error}") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file:
            try:
                context.load_cert_chain(self.cert_file, self.key_file)
            except (OSError, ssl.SSLError) as error:
                raise CredentialsError(
                    f"cannot load client certificate {self.cert_file} with key "
                    f"{self.key_file or '(none)'}: {error}"
                ) from error
        return context


class Credentials:
    """Credentials that are loaded again when they change or are about to expire.

    Safe to share between threads and event loops. `load` may block and raises CredentialsError.
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
        """Return credentials for the next request.

        Raises:
            CredentialsError: the credentials cannot be loaded.
        """
        access = self._access
        if access is not None and self._fresh(access):
            return access
        return await asyncio.to_thread(self.reload)

    def invalidate(self) -> None:
        """Load again before the next request, because the server rejected the credentials."""
        self._access = None

    def impersonating(self, headers: Headers) -> Credentials:
        """Return these credentials, with headers by which requests count as another user's."""
        load = self._load
        return Credentials(
            lambda: replace(load(), impersonation=headers), clock=self._clock, now=self._now
        )

    def _fresh(self, access: Access) -> bool:
        if self._clock() - self._checked < _STAT_PERIOD:
            return True
        if self._renew is not None and self._now() >= self._renew:
            return False
        if access.files != fingerprint(path for path, _, _ in access.files):
            return False
        self._checked = self._clock()
        return True

    def reload(self) -> Access:
        """Return credentials for the next request; blocks.

        Raises:
            CredentialsError: the credentials cannot be loaded.
        """
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


def find(
    kubeconfig: str | None = None, context: str | None = None, impersonation: Headers = ()
) -> Credentials:
    """Load credentials from `kubeconfig`, $KUBECONFIG, the service account or ~/.kube/config.

    Nothing is read before the first `access`. `kubeconfig` may have several paths; the default
    `context` is the kubeconfig's current one at the first `access`: a program stays with its
    cluster when its user changes to another one. `impersonation` (`impersonate`) replaces that of
    the kubeconfig.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or ""
    if not path and os.environ.get("KUBERNETES_SERVICE_HOST"):
        credentials = Credentials(lambda: read_service_account(SERVICE_ACCOUNT_DIR))
    else:
        credentials = Credentials(_Kubeconfig(path or "~/.kube/config", context).read)
    return credentials.impersonating(impersonation) if impersonation else credentials


class _Kubeconfig:
    def __init__(self, path: str, context: str | None) -> None:
        self._path, self._context = path, context

    def read(self) -> Access:
        access = read_kubeconfig(self._path, self._context)
        self._context = access.context
        return access


def impersonate(user: str, groups: Iterable[str] = (), uid: str = "") -> Headers:
    """Return the headers that make requests count as those of `user`; empty without one.

    They are those of kubectl's --as, --as-group and --as-uid.

    Raises:
        CredentialsError: groups or a uid without a user, which the API server refuses.
    """
    headers = [("Impersonate-Group", group) for group in groups]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    if headers and not user:
        raise CredentialsError("--as-group and --as-uid need --as, the user to impersonate")
    return (("Impersonate-User", user), *headers) if user else ()


def pod_namespace() -> str:
    """Return the namespace of this Pod, as the kubelet mounted it; empty outside of a Pod."""
    try:
        return (SERVICE_ACCOUNT_DIR / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def read_service_account(directory: Path) -> Access:
    """Read the service account that the kubelet mounted into this Pod.

    Raises:
        CredentialsError: this is not a Pod, or it has no token.
    """
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise CredentialsError("KUBERNETES_SERVICE_HOST is not set: not in a Pod; set --kubeconfig")
    token_file, ca_file = directory / "token", directory / "ca.crt"
    files = fingerprint((str(token_file), str(ca_file)))
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CredentialsError(
            f"cannot read the service account token {token_file}: {error.strerror}; check "
            "automountServiceAccountToken"
        ) from error
    if not token:
        raise CredentialsError(f"the service account token {token_file} is empty")
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authorization=f"Bearer {token}",
        ca_file=str(ca_file),
        files=files,
    )


def read_kubeconfig(path: str, context: str | None = None) -> Access:
    """Read one kubeconfig, or several separated like $PATH.

    The credentials may be a certificate, a token, a token file, a password or an exec plugin, which
    is run.

    Raises:
        CredentialsError: it is missing or invalid, or has no credentials.
    """
    # Takes a second and 17 MiB, which programs without a kubeconfig avoid (kopf/imports.py).
    # The official client reads kubeconfigs; its API client would parse each object into models.
    from kubernetes.config import kube_config

    merger: Any = kube_config.KubeConfigMerger
    loader_of: Any = kube_config.KubeConfigLoader
    existing = _existing(path)
    if context is not None and context not in (known := _names_in(path, existing)):
        raise CredentialsError(f"kubeconfig {path}: {no_context(context, known)}")
    before = fingerprint(existing)
    try:
        merged = merger(os.pathsep.join(existing)).config
        loader = loader_of(merged, active_context=context, config_base_path=None)
        loader.load_and_set(SimpleNamespace(api_key={}))  # only the loader's own state is used
        user, base = _user(merged, context)
    except Exception as error:  # for malformed files the loader raises any exception
        raise CredentialsError(f"cannot load kubeconfig {path}: {_flat(error)}") from error
    loaded: dict[str, Any] = vars(loader)
    token: str | None = loaded.get("token")
    if not loaded.get("host"):
        raise CredentialsError(f"kubeconfig {path}: the cluster has no server")
    if "exec" in user and not token and not loaded.get("cert_file"):
        command = user["exec"].get("command")
        raise CredentialsError(
            f"kubeconfig {path}: exec plugin {command!r} returned no credentials; run it to see why"
        )
    referenced = (
        str(Path(base, user[key]))
        for key in ("tokenFile", "client-certificate", "client-key")
        if user.get(key)
    )
    return Access(
        server=loaded["host"],
        authorization=" ".join(token.split()) if token else None,
        ca_file=loaded.get("ssl_ca_cert"),
        cert_file=loaded.get("cert_file"),
        key_file=loaded.get("key_file"),
        verify=loaded.get("verify_ssl", True),
        tls_server_name=loaded.get("tls_server_name"),
        proxy=loaded.get("proxy"),
        expires=loaded.get("expiry"),
        files=before + fingerprint(referenced),
        impersonation=impersonate(
            str(user.get("as") or ""),
            map(str, user.get("as-groups") or ()),
            str(user.get("as-uid") or ""),
        ),
        context=context or str(merged["current-context"]),
    )


def context_names(kubeconfig: str | None = None) -> list[str]:
    """Return the contexts of `kubeconfig`, $KUBECONFIG or ~/.kube/config in their order.

    Raises:
        CredentialsError: it is missing or invalid.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    return _names_in(path, _existing(path))


def no_context(name: str, known: Sequence[str]) -> str:
    """Return the sentence about a context that does not exist, with those that do."""
    shown = [foreign(one, FOREIGN_NAME) for one in known[:_NAMED]]
    more = f", … and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    there = f"the contexts are {', '.join(shown)}{more}" if known else "there are no contexts"
    return f'context "{foreign(name, FOREIGN_NAME)}" does not exist; {there}'


def _existing(path: str) -> list[str]:
    paths = [str(Path(part).expanduser()) for part in path.split(os.pathsep) if part]
    existing = [part for part in paths if Path(part).is_file()]
    if not existing:
        raise CredentialsError(
            f"kubeconfig {path} does not exist; set --kubeconfig or KUBECONFIG, or run in a Pod"
        )
    return existing


def _names_in(path: str, files: Iterable[str]) -> list[str]:
    import yaml  # programs in Pods need no kubeconfig

    names: list[str] = []
    for file in files:
        try:
            content = yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {}
            names += [str(context["name"]) for context in content.get("contexts") or ()]
        except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
            raise CredentialsError(f"cannot load kubeconfig {path}: {_flat(error)}") from error
    return list(dict.fromkeys(names))


def _user(config: Any, context: str | None) -> tuple[Mapping[str, Any], str]:
    """Return the user of the context, and the directory of its relative paths."""
    chosen = config["contexts"].get_with_name(context or config["current-context"])
    name = chosen["context"].safe_get("user")
    node = config["users"].get_with_name(name, safe=True) if name and "users" in config else None
    if node is None:
        return {}, ""
    return node["user"].value or {}, str(Path(node.path or "").parent.resolve())


def _flat(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
