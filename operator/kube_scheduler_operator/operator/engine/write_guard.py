"""Writes that have no lasting effect: recognized, delayed, and reported.

There are three kinds: the API server drops the change, because its CRD is older than the operator
or an admission webhook changes it; another client reverts it; every attempt ends in a conflict. The
next snapshot shows the same difference, so the next reconcile would write again, as fast as the API
server responds. From its third failure on, such a write is delayed by up to five minutes. Other
fields of the object and other objects are written without a delay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...base.backoff import Backoff
from ...base.limits import DEPTH
from ...base.objects import Object, uid_of
from ...kube.resource import ObjectRef
from ...kube.token_bucket import TokenBucket
from ..model.plan import Action, Create, Delete
from ..model.snapshot import FutileWrite, Futility

_LONG: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

DELAYS: Final = {
    Futility.DROPPED: Backoff((0.0, 0.0, *_LONG)),
    Futility.REVERTED: Backoff((0.0, 0.0, *_LONG)),
    # Conflicts are part of normal operation.
    Futility.CONFLICT: Backoff((0.0, 0.0, 0.0, 0.0, 0.0, *_LONG)),
}
"""Seconds after the first, second, … failure in a row: in the end at most 12 writes an hour."""

REPORTED: Final = {Futility.DROPPED: 3, Futility.REVERTED: 3, Futility.CONFLICT: 6}
"""Failures in a row after which a condition reports them."""

REST: Final = 60.0
"""Seconds without a need to write after which a dispute is over."""

BURST: Final = 20
"""Writes of one object over the writes of another client, before they are limited.

This limits disputes in which every write is different.
"""

REFILL: Final = 60.0
"""Seconds until one more such write is allowed."""

_REMEMBERED: Final = 2048
_COMPARED: Final = 8
_KEYS: Final = ("type", "nodeName", "name")
_METADATA: Final = ("annotations", "finalizers", "labels", "ownerReferences")


@dataclass(slots=True)
class _Dispute:
    fields: frozenset[str]
    failures: int
    until: float
    rest_since: float | None = None
    manager: str = ""


class WriteGuard:
    """Remembers writes, and decides when the next attempt may be made.

    A new process remembers nothing, and tries at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: dict[tuple[ObjectRef, str | None], Object] = {}
        self._disputes: dict[tuple[ObjectRef, Futility], _Dispute] = {}
        self._buckets: dict[ObjectRef, TokenBucket] = {}
        self._attempted: set[ObjectRef] = set()
        self._uids: dict[ObjectRef, str] = {}
        self._flat: dict[tuple[int, str | None], tuple[Object, Mapping[str, Any]]] = {}

    def clear(self) -> None:
        self._written.clear()
        self._disputes.clear()
        self._buckets.clear()
        self._uids.clear()
        self._flat.clear()

    def allows(self, action: Action, stored: Object | None) -> bool:
        """Return whether to write now; `stored` is the object in the store."""
        ref = action.resource.ref(action.obj)
        if not isinstance(action, Create):
            self._forget_if_replaced(ref, stored)
        self._attempted.add(ref)
        for why in Futility:
            dispute = self._disputes.get((ref, why))
            if dispute is None or self._clock() >= dispute.until:
                continue
            if why is Futility.CONFLICT or dispute.fields >= self._changes(action, stored):
                return False
        if self._disturbed(action, stored):
            bucket = self._buckets.setdefault(ref, TokenBucket(BURST, REFILL, self._clock))
            if bucket.left() < 1:
                fields = self._changes(action, stored)
                self._fail(ref, Futility.REVERTED, fields, delay=REFILL)
                return False
            bucket.spend()
        return True

    def wrote(self, action: Action, stored: Object | None, answer: Object) -> bool:
        """Note the answer to a write; return whether it is the first or has a lasting effect."""
        ref = action.resource.ref(action.obj)
        subresource = getattr(action, "subresource", None)
        body, got = self._fields(action.obj, subresource), self._fields(answer, subresource)
        changes = self._changes(action, stored)
        before = self._before(ref, subresource)
        self._uids[ref] = uid_of(answer)
        self._remember(ref, subresource, answer)
        lost = frozenset(field for field in changes if got.get(field) != body.get(field))
        reverted = frozenset(
            field
            for field in changes
            if before is not None and before.get(field) == body.get(field)
        )
        if changes and lost == changes and not isinstance(action, Create):
            self._fail(ref, Futility.DROPPED, lost)
            return False
        if reverted:
            self._fail(ref, Futility.REVERTED, reverted)
            return False
        self._disputes.pop((ref, Futility.CONFLICT), None)
        dropped = self._disputes.get((ref, Futility.DROPPED))
        if dropped is not None:
            # Fields dropped together with lasting changes, or not written, stay in dispute.
            dropped.fields -= changes - lost
            if not dropped.fields:
                del self._disputes[ref, Futility.DROPPED]
        return True

    def conflicted(self, action: Action) -> None:
        self._fail(action.resource.ref(action.obj), Futility.CONFLICT, frozenset())

    def forget(self, ref: ObjectRef) -> None:
        """Forget the writes of an object that was deleted for good, or whose response was lost."""
        for key in [key for key in self._written if key[0] == ref]:
            del self._written[key]

    def _forget_if_replaced(self, ref: ObjectRef, stored: Object | None) -> None:
        """Forget a replaced object: its user has deleted it and created another one."""
        known = self._uids.get(ref)
        if known is None or stored is None or uid_of(stored) == known:
            return
        del self._uids[ref]
        self.forget(ref)
        self._buckets.pop(ref, None)
        for why in Futility:
            self._disputes.pop((ref, why), None)

    def end_plan(self) -> None:
        """Note that a plan is complete: objects that it did not write are at rest."""
        now = self._clock()
        for key, dispute in list(self._disputes.items()):
            if key[0] in self._attempted:
                dispute.rest_since = None
            elif dispute.rest_since is None:
                dispute.rest_since = now
            elif now - dispute.rest_since >= REST:
                del self._disputes[key]
        self._attempted.clear()

    def wait(self) -> float | None:
        """Return the seconds until the next attempt or the end of a dispute; None: no dispute."""
        now = self._clock()
        dues = (
            dispute.until if dispute.rest_since is None else dispute.rest_since + REST
            for dispute in self._disputes.values()
        )
        return min((max(due - now, 1.0) for due in dues), default=None)

    def unnamed(self) -> Iterator[ObjectRef]:
        """Find objects whose dispute is to be reported, but whose other writer is not known yet."""
        for (ref, why), dispute in self._disputes.items():
            if dispute.failures >= REPORTED[why] and not dispute.manager:
                yield ref

    def name(self, ref: ObjectRef, live: Object, own: str) -> None:
        for (other, _), dispute in self._disputes.items():
            if other == ref and not dispute.manager:
                dispute.manager = other_manager(live, dispute.fields, own) or "unknown"

    def futile(self) -> tuple[FutileWrite, ...]:
        """List the disputes to report, sorted."""
        return tuple(
            FutileWrite(ref, why, tuple(sorted(dispute.fields)), dispute.manager)
            for (ref, why), dispute in sorted(
                self._disputes.items(), key=lambda item: (str(item[0][0]), item[0][1].value)
            )
            if dispute.failures >= REPORTED[why]
        )

    def _changes(self, action: Action, stored: Object | None) -> frozenset[str]:
        """Find the fields that a write changes, without times, which differ in every attempt."""
        if isinstance(action, Delete):
            return frozenset({""})
        subresource = getattr(action, "subresource", None)
        body = self._fields(action.obj, subresource)
        old = None if isinstance(action, Create) else stored
        known = self._fields(old, subresource) if old is not None else {}
        changed = {f for f in body.keys() | known.keys() if body.get(f) != known.get(f)}
        lasting = {field for field in changed if not field.endswith("Time")}
        return frozenset(lasting or changed)

    def _fields(self, obj: Object, subresource: str | None) -> Mapping[str, Any]:
        """Cache the fields of an object: a write compares the same four objects several times."""
        key = id(obj), subresource
        known = self._flat.get(key)
        if known is not None and known[0] is obj:
            return known[1]
        if len(self._flat) >= _COMPARED:
            self._flat.clear()
        fields = _fields(obj, subresource)
        self._flat[key] = obj, fields
        return fields

    def _disturbed(self, action: Action, stored: Object | None) -> bool:
        """Return whether another client has since written the fields or deleted the object."""
        subresource = getattr(action, "subresource", None)
        before = self._before(action.resource.ref(action.obj), subresource)
        if before is None or isinstance(action, Delete):
            return False
        if stored is None:
            return isinstance(action, Create)
        current, changes = self._fields(stored, subresource), self._changes(action, stored)
        return any(current.get(field) != before.get(field) for field in changes)

    def _fail(
        self, ref: ObjectRef, why: Futility, fields: frozenset[str], delay: float = 0.0
    ) -> None:
        """Note a failure; the next attempt begins after `delay` seconds or later."""
        old = self._disputes.get((ref, why))
        if old is None:
            old = _Dispute(frozenset(), REPORTED[why] - 1 if delay else 0, 0.0)
        failures = old.failures + 1
        until = self._clock() + max(DELAYS[why].delay(failures - 1), delay)
        fields |= old.fields
        self._disputes[ref, why] = _Dispute(fields, failures, until, manager=old.manager)

    def _before(self, ref: ObjectRef, subresource: str | None) -> Mapping[str, Any] | None:
        """Return the fields that were written last; None if they are not known."""
        written = self._written.get((ref, subresource))
        return None if written is None else self._fields(written, subresource)

    def _remember(self, ref: ObjectRef, subresource: str | None, answer: Object) -> None:
        """Remember an answer; its values are those of the object in the store, not copies."""
        part = ("status",) if subresource == "status" else tuple(answer.keys() - {"status"})
        written = {key: answer[key] for key in part if key in answer}
        metadata = answer["metadata"]
        written["metadata"] = {key: metadata[key] for key in _METADATA if key in metadata}
        self._written.pop((ref, subresource), None)
        self._written[ref, subresource] = written
        if len(self._written) > _REMEMBERED:
            oldest = next(iter(self._written))
            del self._written[oldest]
            self._uids.pop(oldest[0], None)


def other_manager(live: Object, fields: Iterable[str], own: str) -> str:
    """Find the manager other than `own` that last wrote an object, preferably these fields."""
    entries = [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if entry.get("manager") != own
    ]
    tops = {f"f:{field.partition('.')[0]}" for field in fields}
    owners = [entry for entry in entries if tops & set(entry.get("fieldsV1") or {})]
    newest: Mapping[str, Any] = max(
        owners or entries, key=lambda entry: str(entry.get("time") or ""), default={}
    )
    return str(newest.get("manager") or "")


def _fields(obj: Object, subresource: str | None) -> dict[str, Any]:
    """Flatten the fields that a write sets, without empty values, which the API omits."""
    fields: dict[str, Any] = {}
    if subresource == "status":
        _flatten("status", obj.get("status") or {}, fields)
        return fields
    _flatten("metadata", {key: obj["metadata"].get(key) for key in _METADATA}, fields)
    for key, value in obj.items():
        if key not in ("apiVersion", "kind", "metadata", "status"):
            _flatten(key, value, fields)
    return fields


def _flatten(path: str, value: Any, fields: dict[str, Any], levels: int = DEPTH) -> None:
    # Every write compares thousands of values; most are exactly of these types.
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        if value != "":
            fields[path] = value
    elif kind is dict or isinstance(value, Mapping):
        if not levels:
            fields[path] = ""  # deeper values are not compared
            return
        for key, item in value.items():
            _flatten(f"{path}.{key}", item, fields, levels - 1)
    elif isinstance(value, list | tuple):
        if not levels:
            fields[path] = ""
            return
        key = _key(value)
        for index, item in enumerate(value):
            _flatten(f"{path}[{item[key] if key else index}]", item, fields, levels - 1)
    elif value is not None:
        fields[path] = value


def _key(items: list[Any] | tuple[Any, ...]) -> str:
    """Find the field that identifies the items of a list; empty if no field does."""
    if not items or not all(isinstance(item, Mapping) for item in items):
        return ""
    for key in _KEYS:
        values = [item.get(key) for item in items]
        if all(isinstance(value, str) for value in values) and len(set(values)) == len(values):
            return key
    return ""
