"""A snapshot whose objects are within the limits of base/limits.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ...base.json_text import bounded
from ...base.names import OVERRIDES
from ...base.objects import Object, mapping
from ...base.spec_limits import check_specs
from .snapshot import Snapshot

_OBJECTS: Final = (
    "scheduler",
    "kubescheduler",
    "cluster_operator",
    "apiserver",
    "feature_gate",
    "infrastructure",
)
_KINDS: Final = ("scheduler_profiles", "scheduler_extenders", "operator_settings")
"""Fields of Snapshot with one object, and with the objects of one kind."""

# Results for the objects of the last snapshot, by identity: they rarely change, and a cache with a
# fixed number of entries would keep earlier versions of large ones.
_bounded: dict[int, tuple[Object, Object]] = {}


def bounded_snapshot(snapshot: Snapshot) -> Snapshot:
    """`snapshot` without values that are nested too deep to be processed.

    What remains of such a value is still too deep for `limit_problems`.
    """
    kept: dict[int, tuple[Object, Object]] = {}
    specs: list[Any] = []

    def keep(obj: Object | None) -> Object | None:
        if obj is None:
            return None
        entry = _bounded.get(id(obj)) or (obj, bounded(obj))
        kept[id(obj)] = entry
        spec = mapping(entry[1].get("spec"))
        specs.extend((spec, spec.get(OVERRIDES), mapping(entry[1].get("status")).get("accepted")))
        return entry[1]

    def keep_all(objects: Mapping[str, Object] | None) -> Mapping[str, Object] | None:
        return None if objects is None else {n: keep(obj) or obj for n, obj in objects.items()}

    schedulers = keep_all(snapshot.secondaries.schedulers) or {}
    fields: dict[str, Any] = {
        **{name: keep(getattr(snapshot, name)) for name in _OBJECTS},
        **{name: keep_all(getattr(snapshot, name)) for name in _KINDS},
    }
    shallow = replace(
        snapshot,
        **fields,
        secondaries=replace(snapshot.secondaries, schedulers=schedulers),
        loads=replace(snapshot.loads, policies=keep_all(snapshot.loads.policies)),
    )
    _bounded.clear()
    _bounded.update(kept)
    check_specs(specs)
    return shallow
