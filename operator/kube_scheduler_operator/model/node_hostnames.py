"""What the hosts of nodes are called, for schedulers call themselves by that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def hosts_of(node: Mapping[str, Any]) -> Iterator[str]:
    """What the host of a node may be called."""
    yield str(node["metadata"]["name"])
    yield str((node["metadata"].get("labels") or {}).get("kubernetes.io/hostname") or "")
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") in ("Hostname", "InternalDNS"):
            yield str(address.get("address") or "")


def short(host: str) -> str:
    """Without its domain, which a node's name may have and its host's name lack, or vice versa."""
    return host.lower().partition(".")[0]
