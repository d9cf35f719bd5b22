"""A snapshot whose objects are within the limits of base/limits.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..base.json_text import bounded
from ..base.names import OVERRIDES
from ..base.objects import Object, mapping
from ..base.spec_limits import check_specs
from .snapshot import Snapshot

# Results for the objects of the last snapshot, by identity: they rarely change, and a cache with a
# fixed number of entries would keep earlier versions of large ones.
_bounded: dict[int, tuple[Object, Object]] = {}
_within: list[tuple[int, ...]] = []  # the identities of the last objects, if none was cut


def bounded_snapshot(snapshot: Snapshot) -> Snapshot:
    """`snapshot` without values that are nested too deep to be processed.

    What remains of such a value is still too deep for `limit_problems`.
    """
    identities = tuple(map(id, _objects(snapshot)))
    if [identities] == _within:
        return snapshot  # the usual case
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
    result = replace(
        snapshot,
        scheduler=keep(snapshot.scheduler),
        kubescheduler=keep(snapshot.kubescheduler),
        cluster_operator=keep(snapshot.cluster_operator),
        apiserver=keep(snapshot.apiserver),
        feature_gate=keep(snapshot.feature_gate),
        infrastructure=keep(snapshot.infrastructure),
        scheduler_profiles=keep_all(snapshot.scheduler_profiles),
        scheduler_extenders=keep_all(snapshot.scheduler_extenders),
        operator_settings=keep_all(snapshot.operator_settings),
        secondaries=replace(snapshot.secondaries, schedulers=schedulers),
        loads=replace(snapshot.loads, policies=keep_all(snapshot.loads.policies)),
    )
    _bounded.clear()
    _bounded.update(kept)
    check_specs(specs)
    _within[:] = [identities] if all(obj is same for obj, same in kept.values()) else []
    return result


def _objects(snapshot: Snapshot) -> Iterator[Object]:
    """The objects with fields that have no schema."""
    yield from (
        obj
        for obj in (
            snapshot.scheduler,
            snapshot.kubescheduler,
            snapshot.cluster_operator,
            snapshot.apiserver,
            snapshot.feature_gate,
            snapshot.infrastructure,
        )
        if obj is not None
    )
    yield from (snapshot.scheduler_profiles or {}).values()
    yield from (snapshot.scheduler_extenders or {}).values()
    yield from (snapshot.operator_settings or {}).values()
    yield from snapshot.secondaries.schedulers.values()
    yield from (snapshot.loads.policies or {}).values()
