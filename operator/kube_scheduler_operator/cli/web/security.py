"""Who may read the console: a client with its token, from a page of the console itself.

The server is on loopback, where every user of the machine and every page in a browser can reach it:
* a token of 256 bits is in the first address, then in a cookie, or in `Authorization: Bearer`;
* `Host` must name the loopback address, so that a name which an attacker points here (DNS
  rebinding) reads nothing;
* `Origin` and `Sec-Fetch-Site` must be those of the console, so that no other page asks with the
  cookie of its reader; a server on another port of the same host is another page.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

HOSTS: Final = ("127.0.0.1", "localhost")
TOKEN: Final = "token"  # noqa: S105 - its name, not its value
"""The parameter of the first address."""

HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The headers of every response. No script or style is in a page, and no page is in another one."""

_OWN: Final = ("", "same-origin", "none")
"""`Sec-Fetch-Site` of requests by the console's pages, by people, and by programs (absent)."""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A response without an answer."""

    status: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides about each request before anything else does."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def address(self) -> str:
        """The first address, with the token."""
        return f"http://{HOSTS[0]}:{self.port}/?{TOKEN}={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name: cookies are shared by all ports of a host."""
        return f"kube-scheduler-console-{self.port}"

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def refusal(
        self, method: str, headers: Mapping[str, str], *, cookie: str, query: str
    ) -> RefusedRequest | None:
        """Return why a request is refused; None: it is answered.

        `cookie` and `query` are the tokens that it has in these places, or empty.
        """
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if host not in {f"{name}:{self.port}" for name in HOSTS}:
            return RefusedRequest(403, "The header Host does not name the address of this console.")
        if origin is not None and origin != f"http://{host}":
            return RefusedRequest(403, "The request comes from a page that is not of this console.")
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        given = query or (bearer if scheme.lower() == "bearer" else "")
        if not self.knows(given or cookie):
            return RefusedRequest(
                403,
                "The token is missing or is not that of this console; open the address that "
                "`kubectl scheduler console` printed.",
            )
        if not given and headers.get("Sec-Fetch-Site", "") not in _OWN:
            return RefusedRequest(403, "The request comes from a page that is not of this console.")
        if method not in ("GET", "HEAD"):
            return RefusedRequest(405, "The console reads only: use GET or HEAD.")
        return None
