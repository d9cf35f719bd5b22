"""What kube-scheduler demands of its extenders, after their types are right."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.findings import Path, Problem
from .go_values import is_extended_resource
from .tls_files import unusable_authority, unusable_pair

INVALID_EXTENDER: Final = "InvalidExtender"
DUPLICATE: Final = "Duplicate"


def check_extenders(extenders: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """The rules for all extenders; files that they name are not looked at."""
    binder: int | None = None
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path: Path = ("extenders", index)
        if extender.get("prioritizeVerb") and extender.get("weight", 0) <= 0:
            yield Problem(
                INVALID_EXTENDER, (*path, "weight"), "an extender that prioritizes needs 1 or more"
            )
        if extender.get("bindVerb"):
            if binder is not None:
                yield Problem(
                    INVALID_EXTENDER,
                    (*path, "bindVerb"),
                    f"extenders[{binder}] binds already, and only one may; remove one bindVerb",
                )
            binder = index if binder is None else binder
        yield from _tls(extender, (*path, "tlsConfig"))
        for position, resource in enumerate(extender.get("managedResources", ())):
            name = resource.get("name", "")
            where = (*path, "managedResources", position, "name")
            if not is_extended_resource(name):
                yield Problem(
                    INVALID_EXTENDER,
                    where,
                    f'"{name}" is not an extended resource; write one such as example.com/gpu',
                )
            if name in managed:
                yield Problem(DUPLICATE, where, f'"{name}" is managed twice; remove one')
            managed.add(name)


def _tls(extender: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """What client-go refuses when it makes the extender's client, whether or not that uses TLS."""
    tls = extender.get("tlsConfig") or {}
    authority = bool(tls.get("caFile") or tls.get("caData"))
    if tls.get("insecure") and authority:
        yield Problem(
            INVALID_EXTENDER,
            (*path, "insecure"),
            "an insecure client takes no CA; remove insecure or the CA",
        )
        return
    if tls.get("caData") and (error := unusable_authority(_data(tls, "caData"))):
        yield Problem(INVALID_EXTENDER, (*path, "caData"), error)
    # Data wins over a file; half a pair is ignored.
    if tls.get("certData") and tls.get("keyData"):
        error = unusable_pair(_data(tls, "certData"), _data(tls, "keyData"))
        if error:
            yield Problem(INVALID_EXTENDER, (*path, "certData"), error)


def _data(tls: Mapping[str, Any], field: str) -> bytes:
    return base64.b64decode(tls[field])
