"""What a person wrote wrong in an object of a file: no API server returns values of other types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_LINE
from .configuration import profiles_of
from .kinds import PODS, new_object
from .process import SimulationError
from .run import Run
from .run_options import RunOptions
from .world import World

ERRORS: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading a value of another type raises."""
_TEXTS: Final = frozenset(("annotations", "labels", "matchLabels", "nodeSelector"))
"""Maps whose values are texts."""


async def malformed(world: World, options: RunOptions) -> str:
    """Return which object has a value that cannot be, and where; empty if none is found.

    kube-scheduler names the field of a value that it cannot decode.
    """
    for resource, entries in world.objects.items():
        for (namespace, name), entry in entries.items():
            if field := next(_nulls(entry.object(), ""), ""):
                where = f"{namespace}/{name}" if namespace else name
                text = f"{resource.kind} {where}: {field} is null; remove it"
                return foreign(text, FOREIGN_LINE)
    name = next((str(each["schedulerName"]) for each in profiles_of(options.config)), "")
    asked = new_object(PODS, "simulation-of-nothing", "default", uid="simulation-of-nothing")
    asked["spec"] = {"schedulerName": name, "containers": [{"name": "c", "image": "i"}]}
    try:
        async with Run(World(version=world.version), replace(options, others=())) as run:
            for resource, entries in world.objects.items():
                for entry in entries.values():
                    run.put(resource, entry.object())
            await run.schedule([asked])
    except SimulationError as error:
        return str(error)
    return ""


def _nulls(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of the nulls in lists and in maps of texts, which kube-scheduler decodes."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if item is None:
                yield f"{path}[{index}]"
            yield from _nulls(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        of_texts = path.rpartition(".")[2] in _TEXTS
        for key, item in value.items():
            if item is None and of_texts:
                yield f"{path}.{key}"
            yield from _nulls(item, f"{path}.{key}" if path else str(key))
