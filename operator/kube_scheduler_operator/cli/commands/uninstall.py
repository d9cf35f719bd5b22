"""`kube-scheduler-operator uninstall`: the way out to its end; Helm's pre-delete hook runs it, too.

First what ran before the operator comes back on every node, then the operator stops, then what is
ours in the API goes: in this order, because a running operator would make its ClusterOperator anew,
and without it no node is brought back. Each step looks before it acts, so the command can be run
again whatever interrupted it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from ..lib import common

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from ...base.platform import Platform
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ...kube.resource import ObjectRef, Resource

INTERVAL: Final = 1.0
"""Seconds between looks."""

TIMEOUT: Final = 600.0
"""Seconds; a node takes about ten, one that is not Ready is waited for."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "uninstall",
        help="bring back what ran before the operator, and remove its objects",
        description="Sets managementState Removed, waits until what ran before the operator runs "
        "again on every node, stops the operator and deletes KubeScheduler, Scheduler, "
        "ClusterOperator and the CustomResourceDefinitions, as far as they came with it. "
        "SecondarySchedulers and LoadPolicies go first, with everything that was made for them and "
        "what was written on nodes. "
        "Namespace, accounts and rights are left to what installed them.",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"give up after so long (default: {TIMEOUT:g}); it can be run again",
    )
    parser.add_argument(
        "--keep-crds",
        action="store_true",
        help="leave the CustomResourceDefinitions, for who deletes them with `kubectl delete -k`",
    )
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Uninstall; 0 when nothing is left."""

    async def work(api: ApiClient, platform: Platform) -> int:
        import asyncio

        way_out = WayOut(api, platform, _say, keep_crds=args.keep_crds)
        try:
            async with asyncio.timeout(args.timeout):
                await way_out.go()
        except TimeoutError:
            raise common.CommandError(
                f"not done after {args.timeout:g} s: {way_out.waits}; see to that and run it again"
            ) from None
        return 0

    return common.run(args, work)


def _say(line: str) -> None:
    from datetime import datetime

    now = datetime.now().astimezone()
    print(f"{now:%H:%M:%S} {line}", flush=True)


class WayOut:
    """The steps, one after the other.

    Args:
        api: of the cluster.
        platform: what the operator was installed for.
        say: prints a line.
        keep_crds: leave the CustomResourceDefinitions.

    Attributes:
        waits: what is being waited for, for whoever gives up.
    """

    def __init__(
        self, api: ApiClient, platform: Platform, say: Callable[[str], None], *, keep_crds: bool
    ) -> None:
        from ...base import names
        from ...kube import resource as kinds

        self.waits = "the API server does not answer"
        self._api = api
        self._platform = platform
        self._say = say
        self._keep_crds = keep_crds
        namespace = platform.operator_namespace
        self._kubescheduler = kinds.ObjectRef(kinds.KUBE_SCHEDULERS, None, names.CLUSTER)
        self._deployment = kinds.ObjectRef(kinds.DEPLOYMENTS, namespace, names.PROGRAM)
        self._lease = kinds.ObjectRef(kinds.LEASES, namespace, names.LEASE)

    async def go(self) -> None:
        """Do all of it, from the start again when the API server was away.

        Raises:
            CommandError: it cannot be done; why.
            KubeError: the API refused something.
        """
        import asyncio

        from ...kube.errors import Unavailable

        while True:
            try:
                return await self._steps()
            except Unavailable as error:
                self.waits = str(error)
                self._say(self.waits)
            await asyncio.sleep(INTERVAL)

    async def _steps(self) -> None:
        from ...base import names
        from ...kube import resource as kinds
        from ..lib.uninstall_load_policies import LoadsWayOut
        from ..lib.uninstall_secondary import SecondaryWayOut

        loads = LoadsWayOut(self._api, self._platform, self._say)
        await loads.delete()
        secondary = SecondaryWayOut(self._api, self._say)
        await secondary.delete()
        await self._until(secondary.leaving)
        await self._restore()

        async def annotated() -> str:
            left = await loads.leaving()
            return f"{left}{await self._why_not()}" if left else ""

        await self._until(annotated)
        await self._stop()
        await self._forget(kinds.SECONDARY_SCHEDULERS)
        await self._forget(kinds.LOAD_POLICIES)
        for resource, name in (
            (kinds.KUBE_SCHEDULERS, names.CLUSTER),
            (kinds.SCHEDULERS, names.CLUSTER),
            (kinds.CLUSTER_OPERATORS, names.CLUSTEROPERATOR),
        ):
            await self._forget(resource, name)
        # All objects of these are users' own; with the last of them the kind may go.
        await self._forget(kinds.SCHEDULER_PROFILES)
        await self._forget(kinds.SCHEDULER_EXTENDERS)
        self._say("done: nothing of the operator is left but what installed it")

    async def _until(self, ready: Callable[[], Awaitable[str]]) -> None:
        """Look until nothing is left to wait for, and say what is when that changes."""
        import asyncio

        said = ""
        while True:
            self.waits = await ready()
            if not self.waits:
                return
            if self.waits != said:
                said = self.waits
                self._say(said)
            await asyncio.sleep(INTERVAL)

    # --- what ran before the operator ---------------------------------------------------------

    async def _restore(self) -> None:
        """Ask for Removed, and wait until nothing of the operator is left on any node."""
        found = await common.find_one(self._api, self._kubescheduler)
        if found is None:
            left = await self._owned()
            if not left:
                self._say(f"{self._kubescheduler} does not exist: there is nothing to bring back")
                return
            await self._create(left)
        elif (found.get("spec") or {}).get("managementState") != "Removed":
            await self._api.patch(self._kubescheduler, {"spec": {"managementState": "Removed"}})
            self._say("managementState of KubeScheduler cluster is Removed now")
        await self._until(self._restoring)
        self._say("what ran before the operator runs again on every node")

    async def _create(self, left: list[str]) -> None:
        """Only through a KubeScheduler does the operator learn that it is to go."""
        from ...kube.errors import NotFound

        resource = self._kubescheduler.resource
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": self._kubescheduler.name},
            "spec": {"managementState": "Removed"},
        }
        try:
            await self._api.create(resource, body)
        except NotFound:
            raise common.CommandError(
                f"the kind {resource.kind} does not exist any more, but {', '.join(left)} do: "
                "nodes may still run the operator's scheduler; apply crds and run this again"
            ) from None
        self._say(
            f"{self._kubescheduler} did not exist although {len(left)} objects of the operator do: "
            "made one that is Removed"
        )

    async def _restoring(self) -> str:
        """What is still to be done; empty when that is nothing."""
        from ...base import names

        found = await common.find_one(self._api, self._kubescheduler)
        if found is None:
            raise common.CommandError(f"somebody deleted {self._kubescheduler}: run this again")
        status = found.get("status") or {}
        conditions: Mapping[str, Any] = {c["type"]: c for c in status.get("conditions") or ()}
        progress = conditions.get(names.NODE_INSTALLER_PROGRESSING, {})
        seen = status.get("observedGeneration") == found["metadata"].get("generation")
        if not seen or progress.get("reason") not in ("Removing", "Removed"):
            return f"the operator has not taken notice yet{await self._why_not()}"
        if progress["reason"] == "Removing":
            return str(progress.get("message") or "nodes are being brought back")
        left = await self._owned()
        return f"the operator has yet to delete {', '.join(left)}" if left else ""

    async def _why_not(self) -> str:
        from datetime import UTC, datetime, timedelta

        from ...base.times import timestamp

        lease = await common.find_one(self._api, self._lease) or {}
        spec = lease.get("spec") or {}
        renewed = timestamp(spec.get("renewTime"))
        if spec.get("holderIdentity") and renewed is not None:
            silent = datetime.now(UTC) - renewed
            if silent < timedelta(seconds=30):
                return ""
        return f": none is running (Lease {self._lease.namespace}/{self._lease.name}); start it"

    async def _owned(self) -> list[str]:
        """What the operator made in its target namespace and has not deleted."""
        from ...base import names
        from ...kube import resource as kinds

        others = f"!{names.SECONDARY_LABEL},!{names.LOAD_LABEL}"
        selector = f"{names.MANAGED_BY_LABEL}={names.PROGRAM},{others}"
        resources = [
            kinds.CONFIG_MAPS,
            kinds.PODS,
            kinds.SERVICE_ACCOUNTS,
            kinds.DISRUPTION_BUDGETS,
            kinds.DAEMON_SETS,
        ]
        if self._platform.credentials is not None:
            resources.append(kinds.SECRETS)
        target = self._platform.target_namespace
        return [
            str(resource.ref(obj))
            for resource in resources
            for obj in (await self._api.list(resource, target, label_selector=selector)).items
        ]

    # --- the operator -------------------------------------------------------------------------

    async def _stop(self) -> None:
        """Delete the Deployment with its pods; then no operator leads, wherever it may run."""
        deployment = await common.find_one(self._api, self._deployment)
        if deployment is not None:
            uid = deployment["metadata"]["uid"]
            await self._delete(self._deployment, uid, after_its_pods=True)
            await self._until(lambda: self._leaving(self._deployment, "its pods are ending"))
            self._say("the operator has ended")
        silence = _Silence()

        async def led() -> str:
            lease = await common.find_one(self._api, self._lease)
            holder = silence.holder(lease)
            return f"{holder} is an operator that runs elsewhere; end it" if holder else ""

        await self._until(led)
        lease = await common.find_one(self._api, self._lease)
        if lease is not None:
            await self._delete(self._lease, lease["metadata"]["uid"])

    async def _leaving(self, ref: ObjectRef, why: str) -> str:
        return "" if await common.find_one(self._api, ref) is None else f"{ref}: {why}"

    # --- the objects --------------------------------------------------------------------------

    async def _forget(self, resource: Resource, name: str = "") -> None:
        """Delete one object of a kind that came with the operator, and the kind if nobody uses it.

        On OpenShift, and beside other operators, these kinds are somebody else's. Without a name:
        only the kind; whoever had objects of it has seen to them.
        """
        from ...base import names
        from ...base.objects import label
        from ...kube.resource import CUSTOM_RESOURCE_DEFINITIONS, ObjectRef

        kind = ObjectRef(CUSTOM_RESOURCE_DEFINITIONS, None, resource.name)
        definition = await common.find_one(self._api, kind)
        if definition is None:
            return
        ref = ObjectRef(resource, None, name) if name else None
        if label(definition, names.PART_OF_LABEL) != names.PROGRAM:
            self._say(f"{ref or kind} stays: its kind did not come with the operator")
            return
        found = await common.find_one(self._api, ref) if ref else None
        if ref and found is not None:
            await self._delete(ref, found["metadata"]["uid"])
            await self._until(lambda: self._leaving(ref, "it is being deleted"))
            self._say(f"deleted {ref}")
        if self._keep_crds:
            return
        others = (await self._api.list(resource)).items
        if others:
            used = ", ".join(obj["metadata"]["name"] for obj in others)
            self._say(f"{kind} stays: there are others of that kind: {used}")
            return
        await self._delete(kind, definition["metadata"]["uid"])
        await self._until(lambda: self._leaving(kind, "it is being deleted"))
        self._say(f"deleted {kind}")

    async def _delete(self, ref: ObjectRef, uid: str, *, after_its_pods: bool = False) -> None:
        from contextlib import suppress

        from ...kube.api import Propagation
        from ...kube.errors import NotFound

        how = Propagation.FOREGROUND if after_its_pods else Propagation.BACKGROUND
        with suppress(NotFound):
            await self._api.delete(ref, uid=uid, propagation=how)


class _Silence:
    """Who holds a Lease; nobody, once it has not been renewed for as long as it lasts.

    By our own clock: the holder's may be wrong.
    """

    def __init__(self) -> None:
        self._spec: Mapping[str, Any] | None = None
        self._since = 0.0

    def holder(self, lease: Object | None) -> str:
        import time

        spec = (lease or {}).get("spec") or {}
        if spec != self._spec:
            self._spec, self._since = spec, time.monotonic()
        lasts = float(spec.get("leaseDurationSeconds") or 0)
        over = time.monotonic() - self._since > lasts
        return "" if over else str(spec.get("holderIdentity") or "")
