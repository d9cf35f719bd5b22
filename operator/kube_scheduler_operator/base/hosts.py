"""Addresses that others report, as the host of a URL."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from .foreign_text import foreign
from .limits import FOREIGN_NAME

_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*", re.IGNORECASE | re.ASCII)
_NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)", re.IGNORECASE | re.ASCII)
"""A name with such an end is a number, which resolvers may read as an IPv4 address."""


def url_host(address: str) -> str:
    """Return an IP address or a DNS name as the host of a URL; empty if it is neither.

    In any other text, a part of it would be the port, the path or the user of the URL.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        is_name = _NAME.fullmatch(address) and not _NUMBER.fullmatch(address)
        return address if is_name else ""
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return "" if ip.scope_id else f"[{ip}]"


def shown_url(url: str) -> str:
    """Return a URL to be shown: as one line, without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    _, _, place = parts.netloc.rpartition("@")
    shown = urlunsplit((parts.scheme, place, parts.path, "", "")).rstrip("/")
    return foreign(shown, FOREIGN_NAME)
