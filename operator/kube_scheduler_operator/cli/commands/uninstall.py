"""`kube-scheduler-operator uninstall`: removes the operator; Helm's pre-delete hook runs it.

The order is: restore the previous scheduler on every node, stop the operator, delete its objects.
Only a running operator restores nodes, and a running operator would create its ClusterOperator
again. Every step checks before it acts, so an interrupted command can be run again.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ...base import names
from ...base.objects import label
from ...base.platform import AUTHENTICATION_NAMESPACE, Platform
from ...kube import resource as kinds
from ...kube.api import Api, Object, Propagation
from ...kube.errors import NotFound, Unavailable
from ...kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LOAD_POLICIES,
    ROLE_BINDINGS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)
from ...operator.status.conditions import condition_in
from ..cluster.connection import run_connected
from ..cluster.operator_objects import find_object
from ..console.errors import CommandError
from ..console.flags import add_cluster_flags
from ..console.output import print_now

INTERVAL: Final = 1.0
"""Seconds between polls."""

TIMEOUT: Final = 600.0
"""Seconds; a node takes about ten, and nodes that are not Ready are waited for."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "uninstall",
        description="Deletes SecondarySchedulers and LoadPolicies with everything that the "
        "operator created for them, also annotations of nodes. Sets managementState to Removed and "
        "waits until every node runs its previous scheduler again. Then stops the operator and "
        "deletes KubeScheduler, Scheduler, ClusterOperator and the CustomResourceDefinitions that "
        "were installed with it. The namespace, ServiceAccounts and RBAC rules remain; uninstall "
        "them as they were installed.",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"stop waiting after this time (default: {TIMEOUT:g}); run the command again to "
        "continue",
    )
    parser.add_argument(
        "--keep-crds",
        action="store_true",
        help="keep the CustomResourceDefinitions, to delete them with `kubectl delete -k`",
    )
    add_cluster_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    async def work(api: Api, platform: Platform) -> int:
        uninstall = Uninstall(api, platform, print_now, keep_crds=args.keep_crds)
        try:
            async with asyncio.timeout(args.timeout):
                await uninstall.run()
        except TimeoutError:
            raise CommandError(
                f"not finished after {args.timeout:g} s: {uninstall.pending}; resolve this and run "
                "the command again"
            ) from None
        return 0

    return run_connected(args, work)


class Uninstall:
    def __init__(
        self, api: Api, platform: Platform, report: Callable[[str], None], *, keep_crds: bool
    ) -> None:
        self.pending = "the API server does not respond"  # what the current step waits for
        self._api = api
        self._platform = platform
        self._report = report
        self._keep_crds = keep_crds
        namespace = platform.operator_namespace
        self._kubescheduler = ObjectRef(kinds.KUBE_SCHEDULERS, None, names.CLUSTER)
        operators = list(filter(None, (platform.former_operator, platform.operator)))
        self._deployments = [
            ObjectRef(DEPLOYMENTS, namespace, operator.deployment) for operator in operators
        ]
        self._leases = [
            ObjectRef(kinds.LEASES, namespace, operator.lease) for operator in operators
        ]
        self._lease = self._leases[-1]
        self._operator = _LeaseWatch()

    async def run(self) -> None:
        """Perform all steps; start over if the API server was unavailable.

        Raises:
            CommandError: a step cannot be completed.
            KubeError: the API server rejected a request.
        """
        while True:
            try:
                return await self._steps()
            except Unavailable as error:
                self.pending = str(error)
                self._report(self.pending)
            await asyncio.sleep(INTERVAL)

    async def _steps(self) -> None:
        loads = LoadPolicyRemoval(self._api, self._platform, self._report)
        await loads.delete()
        secondary = SecondarySchedulerRemoval(self._api, self._report)
        if not self._platform.owns_static_pods:
            await self._restore()  # or the operator makes its SecondaryScheduler again
        await secondary.delete()
        await self._until(secondary.remaining)
        if self._platform.owns_static_pods:
            await self._restore()

        async def annotations() -> str:
            left = await loads.remaining()
            return f"{left}{await self._operator_problem()}" if left else ""

        await self._until(annotations)
        await self._stop()
        await self._remove(kinds.SECONDARY_SCHEDULERS)
        await self._remove(kinds.LOAD_POLICIES)
        for resource, name in (
            (kinds.KUBE_SCHEDULERS, names.CLUSTER),
            (kinds.SCHEDULERS, names.CLUSTER),
            (kinds.CLUSTER_OPERATORS, names.CLUSTEROPERATOR),
        ):
            await self._remove(resource, name)
        # Users own all objects of these kinds; a kind is deleted if it has no objects.
        await self._remove(kinds.SCHEDULER_PROFILES)
        await self._remove(kinds.SCHEDULER_EXTENDERS)
        await self._remove(kinds.OPERATOR_SETTINGS)
        self._report("done: removed everything except namespace, ServiceAccounts and RBAC rules")

    async def _until(self, poll: Callable[[], Awaitable[str]]) -> None:
        """Poll until nothing is pending, and report every change."""
        reported = ""
        while True:
            self.pending = await poll()
            if not self.pending:
                return
            if self.pending != reported:
                reported = self.pending
                self._report(reported)
            await asyncio.sleep(INTERVAL)

    # --- the nodes ----------------------------------------------------------------------------

    async def _restore(self) -> None:
        """Set managementState Removed and wait until the operator has restored every node."""
        kubescheduler = await find_object(self._api, self._kubescheduler)
        if kubescheduler is None:
            left = await self._owned()
            if not left:
                what = "node" if self._platform.owns_static_pods else "scheduler of the operator"
                does = "has to be restored" if self._platform.owns_static_pods else "is left"
                self._report(f"{self._kubescheduler} does not exist: no {what} {does}")
                return
            await self._create(left)
        elif (kubescheduler.get("spec") or {}).get("managementState") != "Removed":
            await self._api.patch(self._kubescheduler, {"spec": {"managementState": "Removed"}})
            self._report("set managementState of KubeScheduler cluster to Removed")
        await self._until(self._restoring)
        self._report(
            "every node runs its previous scheduler again"
            if self._platform.owns_static_pods
            else "the operator has deleted its scheduler"
        )

    async def _create(self, left: list[str]) -> None:
        """Create a KubeScheduler, because the operator reads managementState from it."""
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
            raise CommandError(
                f"the kind {resource.kind} is not installed, but {', '.join(left)} exist: nodes "
                "may still run the operator's scheduler; apply crds/ and run the command again"
            ) from None
        self._report(
            f"created {self._kubescheduler} with managementState Removed, because {len(left)} "
            "objects of the operator exist without it"
        )

    async def _restoring(self) -> str:
        """Return what the operator has not done yet; empty: nothing."""
        kubescheduler = await find_object(self._api, self._kubescheduler)
        if kubescheduler is None:
            raise CommandError(f"{self._kubescheduler} was deleted: run the command again")
        status = kubescheduler.get("status") or {}
        progressing = (
            names.NODE_INSTALLER_PROGRESSING
            if self._platform.owns_static_pods
            else names.SCHEDULERS_PROGRESSING
        )
        progress = condition_in(status, progressing)
        generation = kubescheduler["metadata"].get("generation")
        if status.get("observedGeneration") != generation or progress.get("reason") not in (
            "Removing",
            "Removed",
        ):
            return f"waiting for the operator to observe the change{await self._operator_problem()}"
        if progress["reason"] == "Removing":
            return str(progress.get("message") or "waiting for the operator to restore the nodes")
        left = await self._owned()
        return f"waiting for the operator to delete {', '.join(left)}" if left else ""

    async def _operator_problem(self) -> str:
        """Return a suffix for messages if no operator renews its Lease."""
        if self._operator.holder(await find_object(self._api, self._lease)):
            return ""
        lease_name = f"{self._lease.namespace}/{self._lease.name}"
        return f": no operator is running (Lease {lease_name}); start it"

    async def _owned(self) -> list[str]:
        others = f"!{names.SECONDARY_LABEL},!{names.LOAD_LABEL}"
        selector = f"{names.MANAGED_BY_LABEL}={names.PROGRAM},{others}"
        resources = [
            kinds.CONFIG_MAPS,
            kinds.PODS,
            kinds.SERVICE_ACCOUNTS,
            kinds.DISRUPTION_BUDGETS,
            kinds.DAEMON_SETS,
        ]
        if self._platform.network_policies:
            resources.append(kinds.NETWORK_POLICIES)
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
        """Delete the Deployment and its pods, and wait until no operator holds the Lease.

        An operator of former names is included: it would lead as soon as this one has stopped.
        """
        for ref in self._deployments:
            deployment = await find_object(self._api, ref)
            if deployment is not None:
                await self._delete(ref, deployment["metadata"]["uid"], foreground=True)
                await self._until(partial(self._deleting, ref, "its pods are terminating"))
                self._report("the operator has stopped")
        for ref in self._leases:
            await self._until(partial(self._leading, ref, _LeaseWatch()))
            lease = await find_object(self._api, ref)
            if lease is not None:
                await self._delete(ref, lease["metadata"]["uid"])

    async def _leading(self, ref: ObjectRef, watch: _LeaseWatch) -> str:
        """Return who leads; empty: no process (the operator keeps its former Lease)."""
        holder = watch.holder(await find_object(self._api, ref))
        if not holder or holder == self._platform.operator.deployment:
            return ""
        return f"another operator is running as {holder}; stop it"

    async def _deleting(self, ref: ObjectRef, why: str) -> str:
        return "" if await find_object(self._api, ref) is None else f"{ref}: {why}"

    # --- the objects --------------------------------------------------------------------------

    async def _remove(self, resource: Resource, name: str = "") -> None:
        """Delete an object of a kind that was installed with the operator, then the unused kind.

        On OpenShift, and with other operators of its kinds, the kinds have other owners. Without a
        name only the kind is deleted.
        """
        kind = ObjectRef(CUSTOM_RESOURCE_DEFINITIONS, None, resource.name)
        definition = await find_object(self._api, kind)
        if definition is None:
            return
        ref = ObjectRef(resource, None, name) if name else None
        if label(definition, names.PART_OF_LABEL) != names.PROGRAM:
            self._report(f"kept {ref or kind}: its kind was not installed with the operator")
            return
        obj = await find_object(self._api, ref) if ref else None
        if ref and obj is not None:
            await self._delete(ref, obj["metadata"]["uid"])
            await self._until(lambda: self._deleting(ref, "waiting for its deletion"))
            self._report(f"deleted {ref}")
        if self._keep_crds:
            return
        others = (await self._api.list(resource)).items
        if others:
            used = ", ".join(obj["metadata"]["name"] for obj in others)
            self._report(f"kept {kind}: other objects of this kind exist: {used}")
            return
        await self._delete(kind, definition["metadata"]["uid"])
        await self._until(lambda: self._deleting(kind, "waiting for its deletion"))
        self._report(f"deleted {kind}")

    async def _delete(self, ref: ObjectRef, uid: str, *, foreground: bool = False) -> None:
        how = Propagation.FOREGROUND if foreground else Propagation.BACKGROUND
        with suppress(NotFound):
            await self._api.delete(ref, uid=uid, propagation=how)


class _LeaseWatch:
    """The holder of a Lease, until the Lease has not been renewed for its whole duration.

    The duration is measured with the local clock because the holder's clock may be wrong.
    """

    def __init__(self) -> None:
        self._spec: Mapping[str, Any] | None = None
        self._since = 0.0

    def holder(self, lease: Object | None) -> str:
        spec = (lease or {}).get("spec") or {}
        if spec != self._spec:
            self._spec, self._since = spec, time.monotonic()
        duration = float(spec.get("leaseDurationSeconds") or 0)
        expired = time.monotonic() - self._since > duration
        return "" if expired else str(spec.get("holderIdentity") or "")


# --- SecondarySchedulers and LoadPolicies -------------------------------------------------------


_OF_SECONDARIES: Final = f"{names.SECONDARY_LABEL},{names.MANAGED_BY_LABEL}={names.PROGRAM}"


class SecondarySchedulerRemoval:
    """Deletes all SecondarySchedulers; the garbage collector deletes the objects that they own.

    The garbage collector finds these objects by their owner, so the CustomResourceDefinition must
    not be deleted before it is done.
    """

    def __init__(self, api: Api, report: Callable[[str], None]) -> None:
        self._api = api
        self._report = report
        self._namespaces: set[str] = set()

    async def delete(self) -> None:
        for obj in await _delete_all(self._api, SECONDARY_SCHEDULERS, self._report):
            self._namespaces.add(obj["spec"]["namespace"])

    async def remaining(self) -> str:
        """Return what the garbage collector has not deleted yet; empty: nothing.

        Only the objects with the greatest effect are checked: cluster-wide rights and Deployments.
        """
        left = [
            *await self._left_rights(),
            *await self._left(ROLE_BINDINGS, AUTHENTICATION_NAMESPACE),
        ]
        for namespace in sorted(self._namespaces):
            left += await self._left(DEPLOYMENTS, namespace)
        return f"waiting for the garbage collector to delete {', '.join(left)}" if left else ""

    async def _left_rights(self) -> list[str]:
        listed = await self._api.list(CLUSTER_ROLE_BINDINGS, label_selector=_OF_SECONDARIES)
        return [str(CLUSTER_ROLE_BINDINGS.ref(obj)) for obj in listed.items]

    async def _left(self, resource: Resource, namespace: str) -> list[str]:
        listed = await self._api.list(resource, namespace, label_selector=_OF_SECONDARIES)
        return [str(resource.ref(obj)) for obj in listed.items]


class LoadPolicyRemoval:
    """Deletes all LoadPolicies; a Job of the running operator removes annotations from nodes."""

    def __init__(self, api: Api, platform: Platform, report: Callable[[str], None]) -> None:
        self._api = api
        self._platform = platform
        self._report = report

    async def delete(self) -> None:
        await _delete_all(self._api, LOAD_POLICIES, self._report)

    async def remaining(self) -> str:
        """Return what has not been removed yet; empty: nothing."""
        selector = f"{names.LOAD_LABEL},{names.MANAGED_BY_LABEL}={names.PROGRAM}"
        target = self._platform.target_namespace
        config_maps = (await self._api.list(CONFIG_MAPS, target, label_selector=selector)).items
        left = {config_map["metadata"]["name"] for config_map in config_maps}
        if names.LOAD_STATE in left:
            job = f"Job {target}/{names.LOAD_CLEANUP}"
            return f"waiting for the operator to remove annotations from nodes ({job})"
        if left:
            return f"waiting for the garbage collector to delete {', '.join(sorted(left))}"
        return ""


async def _delete_all(api: Api, resource: Resource, report: Callable[[str], None]) -> list[Object]:
    """Delete all objects of a kind, if it is installed; return those that existed."""
    objects: list[Object] = []
    with suppress(NotFound):
        objects = list((await api.list(resource)).items)
    for obj in objects:
        ref = resource.ref(obj)
        with suppress(NotFound):
            await api.delete(ref, uid=obj["metadata"]["uid"])
        report(f"deleted {ref}")
    return objects
