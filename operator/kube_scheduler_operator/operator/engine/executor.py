"""Performs a plan: the only place that writes to the cluster on behalf of a reconcile.

Every answer goes into the store at once, so the next reconcile sees its own writes however far the
watches lag behind. The first conflict ends the plan, because the snapshot is out of date. The
object is then read again for the next reconcile. A write without a lasting effect is delayed
(`WriteGuard`). An answer that is older than the state before the request shows that etcd was
restored from a backup: the plan ends with an error, and everything must be listed again.
"""

from __future__ import annotations

import contextlib
import logging
from enum import Enum, auto

from ...base import names
from ...base.objects import Object
from ...kube.api import Api
from ...kube.errors import (
    AlreadyExists,
    Conflict,
    HistoryRewoundError,
    Invalid,
    KubeError,
    NotFound,
    OtherOwner,
    Unavailable,
)
from ...kube.events import EventRecorder
from ...kube.resource import CLUSTER_OPERATORS, ObjectRef, Resource
from ...kube.store import Known, Store
from ..diagnostics.writes import message
from ..model.plan import Action, Create, Delete, Event, Plan, Replace
from ..model.snapshot import FutileWrite, Futility
from .write_guard import WriteGuard

log = logging.getLogger(__name__)


class _Result(Enum):
    DONE = auto()
    STALE = auto()  # the snapshot was out of date
    DELAYED = auto()  # the following writes do not depend on it
    WITHHELD = auto()  # the following writes depend on it


class Executor:
    def __init__(
        self, api: Api, store: Store, recorder: EventRecorder, guard: WriteGuard | None = None
    ) -> None:
        self._api = api
        self._store = store
        self._recorder = recorder
        self._guard = guard or WriteGuard()
        # object -> the error that ended its write set in the last plan, or rejected its status
        self.write_errors: dict[ObjectRef, str] = {}
        self.futile: tuple[FutileWrite, ...] = ()

    def forget(self) -> None:
        """Forget earlier writes: etcd was restored from a backup."""
        self._guard.clear()

    def wait(self) -> float | None:
        """Return the seconds until a delayed write may be tried again; None: none is delayed."""
        return self._guard.wait()

    async def execute(self, plan: Plan) -> bool:
        """Perform the plan, and return whether to reconcile again at once.

        That is the case if something was written, or if the plan was out of date.

        Raises:
            KubeError: the API rejected a write or could not be reached; earlier writes remain, and
                a later reconcile continues from there.
            HistoryRewoundError: etcd was restored from a backup.
        """
        again, failure = await self._perform_all(plan.actions)
        errors: dict[ObjectRef, str] = {}
        for action in plan.reports:
            more, error = await self._perform_all((action,))
            again |= more
            if isinstance(error, Invalid) and action.resource != CLUSTER_OPERATORS:
                errors[action.resource.ref(action.obj)] = str(error)  # other statuses can be valid
            elif error is not None:
                failure = failure or error
                break
        for owner, writes in plan.write_sets.items():
            more, error = await self._perform_all(writes)
            if error is not None:
                errors[owner] = str(error)
            else:
                again |= more
        self.write_errors = errors
        await self._note_futile()
        if failure is not None:
            raise failure
        return again

    async def _perform_all(self, writes: tuple[Action, ...]) -> tuple[bool, KubeError | None]:
        """Perform writes in order until one fails or is out of date.

        Returns:
            (whether there is more to do, the error that ended them).
        """
        again = False
        try:
            for index, action in enumerate(writes):
                result = await self._perform(action, _created_later(writes[index + 1 :], action))
                again |= result in (_Result.DONE, _Result.STALE)
                if result in (_Result.STALE, _Result.WITHHELD):
                    break
        except HistoryRewoundError:
            raise
        except KubeError as error:
            return again, error
        return again, None

    def _send(self, events: tuple[Event, ...]) -> None:
        for event in events:
            self._recorder.event(event.type, event.reason, event.message)

    async def _note_futile(self) -> None:
        """Note which writes have no lasting effect, and name the other client once."""
        self._guard.end_plan()
        for ref in tuple(self._guard.unnamed()):
            live: Object = {"metadata": {}}
            with contextlib.suppress(KubeError):
                live = await self._api.get(ref)
            self._guard.name(ref, live, names.FIELD_MANAGER)
        before, self.futile = self.futile, self._guard.futile()
        known = {(write.ref, write.why) for write in before}
        for write in self.futile:
            if (write.ref, write.why) not in known:
                log.warning("Writes have no lasting effect and are delayed: %s", message(write))

    async def _perform(self, action: Action, recreate: bool) -> _Result:
        """Perform one write; `recreate`: a later one creates the deleted object again."""
        ref = action.resource.ref(action.obj)
        stored = self._store.get(ref)
        if not self._guard.allows(action, stored):
            return self._held_back(action, ref)
        try:
            if isinstance(action, Delete):
                lasting = await self._delete(action, ref, recreate)
            else:
                lasting = await self._write(action, ref, stored)
        except AlreadyExists:
            await self._exists(action)
            return _Result.STALE
        except Conflict:
            self._guard.conflicted(action)
            await self._refresh(action)
            return _Result.STALE
        except Unavailable:
            self._guard.forget(ref)  # the write may have been performed
            raise
        except NotFound:
            if isinstance(action, Create):
                raise  # the namespace, or the kind
            self._store.forget(ref)
            return _Result.DONE if isinstance(action, Delete) else _Result.STALE
        if lasting:  # a write that is repeated again and again is announced once
            self._send(action.events)
        return _Result.DONE

    def _held_back(self, action: Action, ref: ObjectRef) -> _Result:
        """Return whether the following writes depend on a write that the guard delays."""
        whys = {write.why for write in self._guard.futile() if write.ref == ref}
        status = getattr(action, "subresource", None) == "status"
        alone = whys == {Futility.DROPPED} or (isinstance(action, Replace) and not status)
        return _Result.DELAYED if alone else _Result.WITHHELD

    async def _write(self, action: Create | Replace, ref: ObjectRef, stored: Object | None) -> bool:
        """Create or replace an object; return whether the write has a lasting effect."""
        known = self._store.known(ref)
        if isinstance(action, Create):
            answer = await self._api.create(action.resource, action.obj)
        else:
            answer = await self._api.replace(
                action.resource, action.obj, subresource=action.subresource
            )
        self._put(action.resource, answer, known)
        return self._guard.wrote(action, stored, answer)

    async def _delete(self, action: Delete, ref: ObjectRef, recreate: bool) -> bool:
        """Delete an object, which always counts as a lasting effect."""
        await self._api.delete(ref, uid=action.obj["metadata"]["uid"])
        # Deleted or still terminating: the next reconcile must see which.
        await self._refresh(action)
        if not recreate:
            self._guard.forget(ref)
        return True

    async def _exists(self, action: Action) -> None:
        """Bring the store up to date with an object that exists already."""
        if isinstance(action, Create) and action.exclusive:
            await self._claim(action.resource, action.obj)
        elif not await self._refresh(action):
            await self._unseen(action)
        else:
            self._guard.conflicted(action)

    def _put(self, resource: Resource, answer: Object, known: Known) -> None:
        """Store an answer.

        Raises:
            HistoryRewoundError: it is older than the state before the request.
        """
        if evidence := known.contradiction(answer):
            raise HistoryRewoundError(evidence)
        self._store.put(resource, answer)

    async def _claim(self, resource: Resource, wanted: Object) -> None:
        """Store the existing object with the name of `wanted`, if it has the same owner.

        Raises:
            OtherOwner: it has another owner.
        """
        ref = resource.ref(wanted)
        with contextlib.suppress(NotFound):
            known = self._store.known(ref)
            existing = await self._api.get(ref)
            if not _owners(existing) & _owners(wanted):
                raise OtherOwner(ref)
            labels = existing["metadata"].get("labels") or {}
            merged = {**labels, **wanted["metadata"]["labels"]}
            if merged != labels:  # the watch selects by them
                metadata = {**existing["metadata"], "labels": merged}
                existing = await self._api.replace(resource, {**existing, "metadata": metadata})
            self._put(resource, existing, known)

    async def _unseen(self, action: Action) -> None:
        """Delete an object that exists although the watch reported its deletion.

        It has lost the label by which it is watched, so it must be created again.
        """
        ref = action.resource.ref(action.obj)
        with contextlib.suppress(NotFound):
            uid = (await self._api.get(ref))["metadata"]["uid"]
            await self._api.delete(ref, uid=uid)

    async def _refresh(self, action: Action) -> bool:
        """Read the current object; return whether it is in the store or does not exist."""
        ref = action.resource.ref(action.obj)
        known = self._store.known(ref)
        try:
            self._put(action.resource, await self._api.get(ref), known)
        except NotFound:
            self._store.forget(ref)
            return True
        return ref in self._store.view()


def _created_later(writes: tuple[Action, ...], action: Action) -> bool:
    ref = action.resource.ref(action.obj)
    return any(isinstance(w, Create) and w.resource.ref(w.obj) == ref for w in writes)


def _owners(obj: Object) -> set[tuple[str, str]]:
    """Return (kind, name) of the owners; a deleted owner may be recreated with its name."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return {(owner["kind"], owner["name"]) for owner in owners}
