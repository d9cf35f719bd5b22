"""Performing a plan: the only place that writes to the cluster on behalf of a pass.

Every answer goes into the store at once, so the next pass sees its own writes however far the
watches lag behind. The first write that no longer fits ends the plan: what was read is out of date,
the object is read again, and a new pass decides anew.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from ..kube.errors import AlreadyExists, Conflict, KubeError, NotFound, SomebodyElses
from ..model.plan import Action, Create, Delete, Replace

if TYPE_CHECKING:
    from ..base.objects import Object
    from ..kube.api import Api
    from ..kube.events import EventType
    from ..kube.resource import Resource
    from ..kube.store import Store
    from ..model.plan import Event, Plan


class Recorder(Protocol):
    """Where events go; never fails and never waits."""

    def event(self, type: EventType, reason: str, message: str) -> None:  # noqa: A002
        """Send one event about the operator."""


class Executor:
    """Writes plans to the API and their answers into the store.

    Attributes:
        troubles: chain of the last plan -> the error that ended it.
    """

    def __init__(self, api: Api, store: Store, recorder: Recorder) -> None:
        self._api = api
        self._store = store
        self._recorder = recorder
        self.troubles: dict[str, str] = {}

    async def execute(self, plan: Plan) -> bool:
        """Do what the plan says.

        Returns:
            Whether another pass is worth while at once: something was written, or the plan was
            out of date.

        Raises:
            KubeError: the API refused a write or could not be reached; what was written before it
                stays, and a later pass goes on from there.
        """
        self._tell(plan.events)
        failures = [
            error
            for chain in (plan.actions, plan.reports)
            if (error := await self._perform_all(chain)) is not None
        ]
        troubles = {
            whose: error
            for whose, chain in plan.chains.items()
            if (error := await self._perform_all(chain)) is not None
        }
        self.troubles = {whose: str(error) for whose, error in troubles.items()}
        if failures:
            raise failures[0]
        done = [chain for whose, chain in plan.chains.items() if chain and whose not in troubles]
        return bool(plan.actions or plan.reports or done)

    async def _perform_all(self, chain: tuple[Action, ...]) -> KubeError | None:
        """Write after write until one fails, or turns out to be out of date."""
        try:
            for action in chain:
                if not await self._perform(action):
                    break
                self._tell(action.events)
        except KubeError as error:
            return error
        return None

    def _tell(self, events: tuple[Event, ...]) -> None:
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
                    # Gone at once, or still ending gracefully: either way the next pass must know.
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
        """Take notice of what is there under the name of `wanted`, if it has the same owner.

        Raises:
            SomebodyElses: it has not.
        """
        ref = resource.ref(wanted)
        with contextlib.suppress(NotFound):
            found = await self._api.get(ref)
            if not _owners(found) & _owners(wanted):
                raise SomebodyElses(ref)
            labels = found["metadata"].get("labels") or {}
            merged = {**labels, **wanted["metadata"]["labels"]}
            if merged != labels:  # by them it is watched
                metadata = {**found["metadata"], "labels": merged}
                found = await self._api.replace(resource, {**found, "metadata": metadata})
            self._store.put(resource, found)

    async def _unseen(self, action: Action) -> None:
        """Delete an object that exists although the watch said it was deleted.

        It has lost the label by which it is watched, so it can only be made again.
        """
        ref = action.resource.ref(action.obj)
        with contextlib.suppress(NotFound):
            uid = (await self._api.get(ref))["metadata"]["uid"]
            await self._api.delete(ref, uid=uid)

    async def _refresh(self, action: Action) -> bool:
        """Read the object again, as it is now; whether it is in the store or does not exist."""
        ref = action.resource.ref(action.obj)
        try:
            self._store.put(action.resource, await self._api.get(ref))
        except NotFound:
            self._store.forget(ref)
            return True
        return ref in self._store.view()


def _owners(obj: Object) -> set[tuple[str, str]]:
    """Kind and name of whoever owns `obj`; a deleted owner is followed by one of the same name."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return {(owner["kind"], owner["name"]) for owner in owners}
