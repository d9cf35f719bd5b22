"""How kopf reads lists and watches: no object can hide the others, whatever it contains.

kopf decodes with Python's own decoder, which raises RecursionError for about 1,000 nested levels:
an API server serves ten times as many, and one such object would end every list and watch of its
kind.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ...base.json_text import bounded, read_json
from ..api import Object
from .imports import client_api


def install_decoder() -> None:
    """Make kopf read responses and watch events with `read_json`."""
    vars(client_api).update(json=SimpleNamespace(loads=read_json), get=_get)


async def _get(url: str, **arguments: Any) -> Any:
    """Replaces kopf's `get`, which decodes the response itself."""
    response = await client_api.request(method="get", url=url, **arguments)
    async with response:
        return read_json(await response.read())


def event_within_limits(event: Object) -> Object:
    """An event whose object is not nested deeper than what can be processed.

    Only custom resources have fields without a schema.
    """
    obj = event["object"]
    if "." not in str(obj.get("apiVersion", "")).partition("/")[0]:
        return event
    kept = bounded(obj)
    return event if kept is obj else {**event, "object": kept}
