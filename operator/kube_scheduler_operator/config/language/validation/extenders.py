"""Rules for extenders, for configurations with valid types."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....base.findings import Path, Problem
from ....base.go_values import is_extended_resource
from .profiles import DUPLICATE
from .tls_data import unusable_authority, unusable_pair

INVALID_EXTENDER: Final = "InvalidExtender"


def validate_extenders(extenders: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield problems of all extenders; files that they name are not read."""
    binder: int | None = None
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path: Path = ("extenders", index)
        if extender.get("prioritizeVerb") and extender.get("weight", 0) <= 0:
            message = "an extender with a prioritizeVerb needs a weight; set 1 or more"
            yield Problem(INVALID_EXTENDER, (*path, "weight"), message)
        if extender.get("bindVerb"):
            if binder is not None:
                message = f"extenders[{binder}] also has a bindVerb, and only one can; remove one"
                yield Problem(INVALID_EXTENDER, (*path, "bindVerb"), message)
            binder = index if binder is None else binder
        yield from _tls(extender, (*path, "tlsConfig"))
        for position, resource in enumerate(extender.get("managedResources", ())):
            name = resource.get("name", "")
            where = (*path, "managedResources", position, "name")
            if not is_extended_resource(name):
                message = f'"{name}" is not an extended resource; write one such as example.com/gpu'
                yield Problem(INVALID_EXTENDER, where, message)
            if name in managed:
                yield Problem(
                    DUPLICATE, where, f'"{name}" is listed twice in managedResources; remove one'
                )
            managed.add(name)


def _tls(extender: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield errors of client-go when it creates the extender's client, even without TLS."""
    tls = extender.get("tlsConfig") or {}
    authority = bool(tls.get("caFile") or tls.get("caData"))
    if tls.get("insecure") and authority:
        message = "insecure cannot be combined with a CA; remove insecure or the CA"
        yield Problem(INVALID_EXTENDER, (*path, "insecure"), message)
        return
    if tls.get("caData") and (error := unusable_authority(_data(tls, "caData"))):
        yield Problem(INVALID_EXTENDER, (*path, "caData"), error)
    # Data takes precedence over a file; half a pair is ignored.
    if tls.get("certData") and tls.get("keyData"):
        error = unusable_pair(_data(tls, "certData"), _data(tls, "keyData"))
        if error:
            field = "keyData" if error.startswith("keyData") else "certData"
            yield Problem(INVALID_EXTENDER, (*path, field), error)


def _data(tls: Mapping[str, Any], field: str) -> bytes:
    return base64.b64decode(tls[field])
