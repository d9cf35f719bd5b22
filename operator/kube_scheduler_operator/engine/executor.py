"""Performing a plan: the only place that writes to the cluster on behalf of a reconcile.

Every answer goes into the store at once, so the next reconcile sees its own writes however far the
watches lag behind. The first conflict ends the plan, because the snapshot is out of date. The
object is then read again for the next reconcile.
"""

from __future__ import annotations

import contextlib

from ..base.objects import Object
from ..kube.api import Api
from ..kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound, OtherOwner
from ..kube.events import EventRecorder
from ..kube.resource import CLUSTER_OPERATORS, ObjectRef, Resource
from ..kube.store import Store
from ..model.plan import Action, Create, Delete, Event, Plan, Replace


class Executor:
    """Writes plans to the API and their answers into the store.

    Attributes:
        write_errors: object -> the error that ended its write set in the last plan, or the refusal
            of its status.
    """

    def __init__(self, api: Api, store: Store, recorder: EventRecorder) -> None:
        self._api = api
        self._store = store
        self._recorder = recorder
        self.write_errors: dict[ObjectRef, str] = {}

    async def execute(self, plan: Plan) -> bool:
        """Perform the plan.

        Returns:
            Whether to reconcile again at once: something was written, or the plan was out of
            date.

        Raises:
            KubeError: the API refused a write or could not be reached; earlier writes
                remain, and a later reconcile continues from there.
        """
        self._send(plan.events)
        action_error = await self._perform_all(plan.actions)
        refused, report_error = await self._report(plan.reports)
        failures = [error for error in (action_error, report_error) if error is not None]
        errors = {
            owner: error
            for owner, writes in plan.write_sets.items()
            if (error := await self._perform_all(writes)) is not None
        }
        self.write_errors = {owner: str(error) for owner, error in {**refused, **errors}.items()}
        if failures:
            raise failures[0]
        done = [
            writes for owner, writes in plan.write_sets.items() if writes and owner not in errors
        ]
        return bool(plan.actions or plan.reports or done)

    async def _report(
        self, reports: tuple[Action, ...]
    ) -> tuple[dict[ObjectRef, KubeError], KubeError | None]:
        """Write statuses: (object -> why the API server refuses it, the error that ended it).

        A refusal is about one object, and any other error about all.
        """
        refused: dict[ObjectRef, KubeError] = {}
        for action in reports:
            error = await self._perform_all((action,))
            if isinstance(error, Invalid) and action.resource != CLUSTER_OPERATORS:
                refused[action.resource.ref(action.obj)] = error
            elif error is not None:
                return refused, error
        return refused, None

    async def _perform_all(self, writes: tuple[Action, ...]) -> KubeError | None:
        """Perform writes in order until one fails or is out of date."""
        try:
            for action in writes:
                if not await self._perform(action):
                    break
                self._send(action.events)
        except KubeError as error:
            return error
        return None

    def _send(self, events: tuple[Event, ...]) -> None:
        for event in events:
            self._recorder.event(event.type, event.reason, event.message)

    async def _perform(self, action: Action) -> bool:
        """One write; False if the plan is out of date."""
        resource = action.resource
        ref = resource.ref(action.obj)
        try:
            match action:
                case Create():
                    self._store.put(resource, await self._api.create(resource, action.obj))
                case Replace():
                    answer = await self._api.replace(
                        resource, action.obj, subresource=action.subresource
                    )
                    self._store.put(resource, answer)
                case Delete():
                    await self._api.delete(ref, uid=action.obj["metadata"]["uid"])
                    # Deleted or still terminating: the next reconcile must see which.
                    await self._refresh(action)
        except AlreadyExists:
            if isinstance(action, Create) and action.exclusive:
                await self._claim(resource, action.obj)
                return False
            if not await self._refresh(action):
                await self._unseen(action)
            return False
        except Conflict:
            await self._refresh(action)
            return False
        except NotFound:
            if isinstance(action, Create):
                raise  # the namespace, or the kind
            self._store.forget(ref)
            return isinstance(action, Delete)
        return True

    async def _claim(self, resource: Resource, wanted: Object) -> None:
        """Store the existing object with the name of `wanted`, if it has the same owner.

        Raises:
            OtherOwner: it has another one.
        """
        ref = resource.ref(wanted)
        with contextlib.suppress(NotFound):
            found = await self._api.get(ref)
            if not _owners(found) & _owners(wanted):
                raise OtherOwner(ref)
            labels = found["metadata"].get("labels") or {}
            merged = {**labels, **wanted["metadata"]["labels"]}
            if merged != labels:  # the watch selects by them
                metadata = {**found["metadata"], "labels": merged}
                found = await self._api.replace(resource, {**found, "metadata": metadata})
            self._store.put(resource, found)

    async def _unseen(self, action: Action) -> None:
        """Delete an object that exists although the watch reported its deletion.

        It has lost the label by which it is watched, so it must be created again.
        """
        ref = action.resource.ref(action.obj)
        with contextlib.suppress(NotFound):
            uid = (await self._api.get(ref))["metadata"]["uid"]
            await self._api.delete(ref, uid=uid)

    async def _refresh(self, action: Action) -> bool:
        """Read the current object; whether it is in the store or does not exist."""
        ref = action.resource.ref(action.obj)
        try:
            self._store.put(action.resource, await self._api.get(ref))
        except NotFound:
            self._store.forget(ref)
            return True
        return ref in self._store.view()


def _owners(obj: Object) -> set[tuple[str, str]]:
    """Kind and name of the owners of `obj`; a deleted owner may be recreated with its name."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return {(owner["kind"], owner["name"]) for owner in owners}
