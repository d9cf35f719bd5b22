"""`kube-scheduler-operator uninstall`: removes the operator; Helm's pre-delete hook runs it.

The order is: restore the previous scheduler on every node, delete users' objects of the kinds that
only the operator serves, stop the operator, delete its objects. Only a running operator restores
nodes, and nothing is deleted before it has done so. A running operator would create its
ClusterOperator again. Every step checks before it acts, so an interrupted command can be run again.
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
from ...base.management import REMOVED, annotated_state, management_state, request_patch
from ...base.objects import label
from ...base.platform import AUTHENTICATION_NAMESPACE, Platform
from ...kube import resource as kinds
from ...kube.api import Api, Object, Propagation
from ...kube.errors import NotFound, Unavailable
from ...kube.resource import ObjectRef, Resource
from ...operator.status.conditions import condition_in
from ..cluster.connection import connected
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
        description="Sets managementState to Removed (on OpenShift the annotation "
        f"{names.MANAGEMENT_ANNOTATION}) and waits until every node runs its previous scheduler "
        "again. Then deletes SecondarySchedulers and LoadPolicies with everything that the "
        "operator created for them, also annotations of nodes, stops the operator and deletes "
        "KubeScheduler, Scheduler, ClusterOperator and the CustomResourceDefinitions that were "
        "installed with it. The namespace, ServiceAccounts and RBAC rules remain; uninstall them "
        "as they were installed.",
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
    parser.set_defaults(run=connected(_uninstall))


async def _uninstall(api: Api, platform: Platform, args: argparse.Namespace) -> int:
    uninstall = _Uninstall(api, platform, keep_crds=args.keep_crds)
    try:
        async with asyncio.timeout(args.timeout):
            await uninstall.run()
    except TimeoutError:
        raise CommandError(
            f"not finished after {args.timeout:g} s: {uninstall.pending}; resolve this and run "
            "the command again"
        ) from None
    return 0


_MANAGED: Final = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
_OF_SECONDARIES: Final = f"{names.SECONDARY_LABEL},{_MANAGED}"
_OF_LOAD_POLICIES: Final = f"{names.LOAD_LABEL},{_MANAGED}"
_OF_THE_REST: Final = f"{_MANAGED},!{names.SECONDARY_LABEL},!{names.LOAD_LABEL}"


class _Uninstall:
    def __init__(self, api: Api, platform: Platform, *, keep_crds: bool) -> None:
        self.pending = "the API server does not respond"  # what the current step waits for
        self._api = api
        self._platform = platform
        self._keep_crds = keep_crds
        self._secondary_namespaces: set[str] = set()
        namespace = platform.operator_namespace
        operators = list(filter(None, (platform.former_operator, platform.operator)))
        self._deployments = [
            kinds.DEPLOYMENTS.named(operator.deployment, namespace) for operator in operators
        ]
        self._leases = [kinds.LEASES.named(operator.lease, namespace) for operator in operators]
        self._operator = _LeaseWatch()

    async def run(self) -> None:
        """Perform all steps; start over if the API server was unavailable."""
        while True:
            try:
                return await self._steps()
            except Unavailable as error:
                self.pending = str(error)
                print_now(self.pending)
            await asyncio.sleep(INTERVAL)

    async def _steps(self) -> None:
        await self._check_deployment()
        await self._restore()
        await self._delete_all(kinds.LOAD_POLICIES)
        for obj in await self._delete_all(kinds.SECONDARY_SCHEDULERS):
            self._secondary_namespaces.add(obj["spec"]["namespace"])
        await self._until(self._left_of_secondaries)
        await self._until(self._left_of_load_policies)
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
        await self._withdraw_annotation()
        print_now("done: removed everything except namespace, ServiceAccounts and RBAC rules")

    async def _until(self, poll: Callable[[], Awaitable[str]]) -> None:
        """Poll until nothing is pending, and report every change."""
        reported = ""
        while True:
            self.pending = await poll()
            if not self.pending:
                return
            if self.pending != reported:
                reported = self.pending
                print_now(reported)
            await asyncio.sleep(INTERVAL)

    async def _left(self, resource: Resource, selector: str, namespace: str) -> list[str]:
        listed = await self._api.list(resource, namespace, label_selector=selector)
        return [str(resource.ref(obj)) for obj in listed.items]

    # --- SecondarySchedulers and LoadPolicies -------------------------------------------------

    async def _delete_all(self, resource: Resource) -> list[Object]:
        """Delete all objects of a kind, if it is installed; return those that existed."""
        objects: list[Object] = []
        with suppress(NotFound):
            objects = list((await self._api.list(resource)).items)
        for obj in objects:
            ref = resource.ref(obj)
            await self._delete(ref, obj["metadata"]["uid"])
            print_now(f"deleted {ref}")
        return objects

    async def _left_of_secondaries(self) -> str:
        """Return what the garbage collector has not deleted yet; empty: nothing.

        It finds these objects by their owner, so the CustomResourceDefinition must not be deleted
        before it is done. Only the objects with the greatest effect are checked: cluster-wide
        rights and Deployments.
        """
        rights = await self._api.list(kinds.CLUSTER_ROLE_BINDINGS, label_selector=_OF_SECONDARIES)
        left = [str(kinds.CLUSTER_ROLE_BINDINGS.ref(obj)) for obj in rights.items]
        left += await self._left(kinds.ROLE_BINDINGS, _OF_SECONDARIES, AUTHENTICATION_NAMESPACE)
        for namespace in sorted(self._secondary_namespaces):
            left += await self._left(kinds.DEPLOYMENTS, _OF_SECONDARIES, namespace)
        return f"waiting for the garbage collector to delete {', '.join(left)}" if left else ""

    async def _left_of_load_policies(self) -> str:
        """Return what has not been removed yet; empty: nothing.

        A Job of the running operator removes annotations from nodes.
        """
        target = self._platform.target_namespace
        config_maps = await self._api.list(
            kinds.CONFIG_MAPS, target, label_selector=_OF_LOAD_POLICIES
        )
        left = {config_map["metadata"]["name"] for config_map in config_maps.items}
        if not left:
            return ""
        waits = f"waiting for the garbage collector to delete {', '.join(sorted(left))}"
        if names.LOAD_STATE in left:
            job = f"Job {target}/{names.LOAD_CLEANUP}"
            waits = f"waiting for the operator to remove annotations from nodes ({job})"
        return f"{waits}{await self._operator_problem()}"

    # --- the nodes ----------------------------------------------------------------------------

    async def _check_deployment(self) -> None:
        """Refuse to remove another operator, which on OpenShift has the same names.

        Raises:
            CommandError: The Deployment is not part of this operator.
        """
        ref = self._deployments[-1]
        deployment = await find_object(self._api, ref)
        if deployment is not None and label(deployment, names.PART_OF_LABEL) != names.PROGRAM:
            raise CommandError(
                f"{ref} has no label {names.PART_OF_LABEL}={names.PROGRAM}: it belongs to another "
                "operator, and nothing was changed"
            )

    async def _restore(self) -> None:
        """Request the state Removed and wait until the operator has restored every node."""
        ref = kinds.KUBE_SCHEDULERS.named(names.CLUSTER)
        on_nodes = self._platform.owns_static_pods
        kubescheduler = await find_object(self._api, ref)
        if kubescheduler is not None and management_state(kubescheduler).state != REMOVED:
            # Also where no operator has run: one that starts now must not begin.
            patch = request_patch(self._platform, REMOVED, kubescheduler)
            print_now(str(management_state(await self._api.patch(ref, patch))))
        left = await self._owned()
        if not left and await self._is_unmanaged(kubescheduler):
            nothing = "node has to be restored" if on_nodes else "scheduler of the operator is left"
            print_now(f"nothing of an operator exists: no {nothing}")
            return
        if kubescheduler is None:
            await self._create(ref, left)
        await self._until(partial(self._restoring, ref))
        print_now(
            "every node runs its previous scheduler again"
            if on_nodes
            else "the operator has deleted its scheduler"
        )

    async def _is_unmanaged(self, kubescheduler: Object | None) -> bool:
        """Return whether no operator manages the cluster, or its Pods never started."""
        if kubescheduler is None:
            return True
        managed = (kubescheduler.get("status") or {}).get("nodeStatuses")
        return not managed and await find_object(self._api, self._leases[-1]) is None

    async def _create(self, ref: ObjectRef, left: list[str]) -> None:
        """Create a KubeScheduler, because the operator reads the state from it."""
        resource = ref.resource
        requested = request_patch(self._platform, REMOVED)
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": ref.name, **requested.get("metadata", {})},
            "spec": requested.get("spec", {}),
        }
        try:
            await self._api.create(resource, body)
        except NotFound:
            raise CommandError(
                f"the kind {resource.kind} is not installed, but {', '.join(left)} exist: nodes "
                "may still run the operator's scheduler; apply crds/ and run the command again"
            ) from None
        print_now(
            f"created {ref} with the management state Removed, because {len(left)} objects of the "
            "operator exist without it"
        )

    async def _restoring(self, ref: ObjectRef) -> str:
        """Return what the operator has not done yet; empty: nothing."""
        kubescheduler = await find_object(self._api, ref)
        if kubescheduler is None:
            raise CommandError(f"{ref} was deleted: run the command again")
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
        lease = self._leases[-1]
        if self._operator.holder(await find_object(self._api, lease)):
            return ""
        return f": no operator is running (Lease {lease.namespace}/{lease.name}); start it"

    async def _owned(self) -> list[str]:
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
            ref
            for resource in resources
            for ref in await self._left(resource, _OF_THE_REST, target)
        ]

    # --- the operator -------------------------------------------------------------------------

    async def _stop(self) -> None:
        """Delete the Deployment and its pods, and wait until no operator holds the Lease.

        An operator of former names is included: it would lead as soon as this one has stopped.
        """
        for ref in self._deployments:
            if await self._delete_if_present(ref, "its pods are terminating", foreground=True):
                print_now("the operator has stopped")
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

    # --- the objects --------------------------------------------------------------------------

    async def _withdraw_annotation(self) -> None:
        """Take the request for Removed from a KubeScheduler that stays, as the last step."""
        ref = kinds.KUBE_SCHEDULERS.named(names.CLUSTER)
        if annotated_state(await find_object(self._api, ref)):
            withdrawn = {"annotations": {names.MANAGEMENT_ANNOTATION: None}}
            await self._api.patch(ref, {"metadata": withdrawn})

    async def _remove(self, resource: Resource, name: str = "") -> None:
        """Delete an object of a kind that was installed with the operator, then the unused kind.

        On OpenShift, and with other operators of its kinds, the kinds have other owners. Without a
        name only the kind is deleted.
        """
        kind = kinds.CUSTOM_RESOURCE_DEFINITIONS.named(resource.name)
        definition = await find_object(self._api, kind)
        if definition is None:
            return
        ref = resource.named(name) if name else None
        if label(definition, names.PART_OF_LABEL) != names.PROGRAM:
            print_now(f"kept {ref or kind}: its kind was not installed with the operator")
            return
        if ref and await self._delete_if_present(ref, _WAITING):
            print_now(f"deleted {ref}")
        if self._keep_crds:
            return
        if others := (await self._api.list(resource)).items:
            used = ", ".join(obj["metadata"]["name"] for obj in others)
            print_now(f"kept {kind}: other objects of this kind exist: {used}")
        elif await self._delete_if_present(kind, _WAITING):
            print_now(f"deleted {kind}")

    async def _delete_if_present(
        self, ref: ObjectRef, pending: str, *, foreground: bool = False
    ) -> bool:
        """Delete an object and wait until it is gone; return whether it existed."""
        obj = await find_object(self._api, ref)
        if obj is None:
            return False
        await self._delete(ref, obj["metadata"]["uid"], foreground=foreground)

        async def deleting() -> str:
            return "" if await find_object(self._api, ref) is None else f"{ref}: {pending}"

        await self._until(deleting)
        return True

    async def _delete(self, ref: ObjectRef, uid: str, *, foreground: bool = False) -> None:
        how = Propagation.FOREGROUND if foreground else Propagation.BACKGROUND
        with suppress(NotFound):
            await self._api.delete(ref, uid=uid, propagation=how)


_WAITING: Final = "waiting for its deletion"


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
