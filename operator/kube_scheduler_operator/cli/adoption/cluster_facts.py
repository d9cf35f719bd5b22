"""Reads what the checks of `kubectl scheduler check` need; a failed request is a missing fact."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from ...base import names, x509
from ...base.objects import Object, mapping
from ...base.platform import Platform
from ...kube import resource as kinds
from ...kube.errors import KubeError, NotFound
from ...operator.controlplane.adoption.preview import AdoptionPreview, preview
from ...operator.engine.assignment import find_way
from ...operator.model import operand_pods
from ...operator.secondary.content import config_map_name
from ...operator.status.running import hashes_that_run
from ..checks.check import (
    UNREAD,
    ClusterFacts,
    KnownCertificate,
    Observed,
    SecondaryFacts,
    UnlimitedAccount,
)
from ..checks.installation import SCHEDULER_PORT, host_ports, is_operator, is_scheduler
from ..checks.operation import silence
from ..cluster.operands import lease_of, list_operand_pods
from ..cluster.operator_objects import find_object, find_singleton
from ..cluster.scheduler_contents import desired_hash, list_scheduler_pods, read_config_maps
from ..console.errors import CommandError, error_message
from .assignment_trials import try_assignments
from .input import NodeFiles, from_cluster
from .installation_objects import (
    AccessRequest,
    account_rights,
    denied,
    images_of,
    installation_objects,
    needed_rights,
    own_crds,
    try_pods,
    try_roles,
)

if TYPE_CHECKING:
    from ...kube.client import ApiClient
    from ...kube.resource import ObjectRef
    from ...operator.model.snapshot import AssignmentWay

T = TypeVar("T")

_NODE_LEASES: Final = "kube-node-lease"
_CONTROL_PLANE_NODES: Final = 9
"""The number of control-plane nodes whose Pods are read."""

_CONNECT_SECONDS: Final = 5.0

_EVERYTHING: Final = AccessRequest("*", "*", "*")
_ADMINISTRATOR: Final = "cluster-admin"
"""The ClusterRole of administrators."""


async def observed(request: Awaitable[T]) -> Observed[T]:
    """Await a request; its result, or why it failed."""
    try:
        return Observed(await request)
    except (KubeError, CommandError) as error:
        return Observed(error=error_message(error))


async def _observed(**requests: Awaitable[Any]) -> dict[str, Any]:
    """Await requests at the same time; the fact that each one reads is the name of its field."""
    facts = await asyncio.gather(*map(observed, requests.values()))
    return dict(zip(requests, facts, strict=True))


async def common_facts(api: ApiClient, facts: ClusterFacts) -> ClusterFacts:
    """Add what both kinds of checks need."""
    return replace(
        facts,
        own_crds=own_crds(),
        **await _observed(
            nodes=_items(api.list(kinds.NODES)),
            node_leases=_by_name(api.list(kinds.LEASES, _NODE_LEASES)),
            crds=_by_name(api.list(kinds.CUSTOM_RESOURCE_DEFINITIONS)),
            webhooks=_webhooks(api),
            server=_server_certificates(api),
            kubescheduler=find_singleton(api, kinds.KUBE_SCHEDULERS),
        ),
    )


async def facts_before(
    api: ApiClient, dry: ApiClient, facts: ClusterFacts, files: Sequence[str]
) -> ClusterFacts:
    """Add what an installation meets; `dry` is a client with dryRun."""
    platform = facts.platform
    objects = installation_objects(platform, files)
    return replace(
        facts,
        images=images_of(objects),
        **await _observed(
            namespace=find_object(api, kinds.NAMESPACES.named(platform.target_namespace)),
            deployments=_schedulers(api),
            missing_rights=_missing(api, [*objects, *facts.own_crds]),
            rbac=try_roles(dry, objects),
            admission=try_pods(dry, platform, objects),
            adoption=_adoption(api, platform),
            host_pods=_host_pods(api, facts),
        ),
    )


async def facts_after(api: ApiClient, dry: ApiClient, facts: ClusterFacts) -> ClusterFacts:
    """Add the state of an installed operator; `dry` is a client with dryRun."""
    platform = facts.platform
    overall = kinds.CLUSTER_OPERATORS.named(names.CLUSTEROPERATOR)
    facts = await facts_of_pods(api, facts)
    read = await _observed(
        cluster_operator=find_object(api, overall),
        missing_account_rights=_account(api, platform),
        unlimited_accounts=_unlimited(api, platform),
        certificates=_certificates(api, platform, facts.operand_pods),
        assignment_trials=try_assignments(api, dry, platform, _secondaries(facts)),
    )
    by_kind = await _observed(
        **{
            kind: _by_name(api.list(resource))
            for kind, resource in kinds.CONFIGURED.items()
            if resource not in (kinds.SCHEDULERS, kinds.KUBE_SCHEDULERS) and kind not in facts.kinds
        }
    )
    return replace(facts, **read, kinds={**facts.kinds, **by_kind})


async def facts_of_pods(api: ApiClient, facts: ClusterFacts) -> ClusterFacts:
    """Add what runs: the operator, the schedulers, and what assigns Pods to them."""
    platform = facts.platform
    space, own = platform.operator_namespace, platform.operator
    schedulers = await observed(_by_name(api.list(kinds.SECONDARY_SCHEDULERS)))
    secondaries = await _observed(
        **{name: _secondary(api, obj) for name, obj in (schedulers.value or {}).items()}
    )
    read = await _observed(
        deployment=find_object(api, kinds.DEPLOYMENTS.named(own.deployment, space)),
        operator_lease=find_object(api, kinds.LEASES.named(own.lease, space)),
        operand_lease=find_object(api, lease_of(platform)),
        operator_pods=_operator_pods(api, platform),
        operand_pods=list_operand_pods(api, platform),
        assignment_way=_way(api, (schedulers.value or {}).values()),
        webhook_service=find_object(api, kinds.SERVICES.named(names.WEBHOOK, space)),
    )
    by_kind = {kinds.SECONDARY_SCHEDULERS.kind: schedulers}
    # After a response, the time is that of the API server.
    now = api.clock.now()
    facts = replace(facts, now=now, **read, kinds=by_kind, secondaries=secondaries)
    if platform.owns_static_pods and facts.nodes is UNREAD and silence(facts):
        facts = replace(facts, nodes=await observed(_items(api.list(kinds.NODES))))
    return facts


def _secondaries(facts: ClusterFacts) -> list[Object]:
    return list((facts.kinds[kinds.SECONDARY_SCHEDULERS.kind].value or {}).values())


async def _secondary(api: ApiClient, obj: Object) -> SecondaryFacts:
    name, namespace = str(obj["metadata"]["name"]), str(obj["spec"]["namespace"])
    needed = [key for key in dict.fromkeys((desired_hash(obj), *hashes_that_run(obj))) if key]
    config_maps = await read_config_maps(api, obj, needed) if needed else {}
    lost = next((key for key in needed if key not in config_maps), "")
    return SecondaryFacts(
        await find_object(api, kinds.DEPLOYMENTS.named(name, namespace)),
        await list_scheduler_pods(api, obj),
        await find_object(api, kinds.LEASES.named(name, namespace)),
        config_map_name(name, lost) if lost else "",
    )


async def _operator_pods(api: ApiClient, platform: Platform) -> list[Object]:
    """List the Pods of the namespaces in which the operator and its Pods are."""
    namespaces = dict.fromkeys((platform.operator_namespace, platform.target_namespace))
    return [pod for each in namespaces for pod in await _items(api.list(kinds.PODS, each))]


async def _way(api: ApiClient, schedulers: Iterable[Object]) -> AssignmentWay | None:
    """Return what applies spec.assign; None if no scheduler has it, or if it is not known."""
    if all(mapping(obj.get("spec")).get("assign") is None for obj in schedulers):
        return None
    return (await find_way(api))[0]


async def _items(request: Awaitable[Any]) -> list[Object]:
    return list((await request).items)


async def _by_name(request: Awaitable[Any]) -> dict[str, Object]:
    """Return objects by name; none if their kind is not installed."""
    try:
        return {obj["metadata"]["name"]: obj for obj in (await request).items}
    except NotFound:
        return {}


async def _schedulers(api: ApiClient) -> list[Object]:
    """List the Deployments of all namespaces that have a scheduler or this operator."""
    deployments = await api.list(kinds.DEPLOYMENTS, keep=_scheduler_or_nothing)
    return [obj for obj in deployments.items if obj]


def _scheduler_or_nothing(obj: dict[str, Any]) -> dict[str, Any]:
    return obj if is_operator(obj) or is_scheduler(obj) else {}


async def _missing(api: ApiClient, objects: Iterable[Object]) -> list[str]:
    return await denied(api, await needed_rights(api, objects))


async def _account(api: ApiClient, platform: Platform) -> list[str]:
    namespace, account = platform.operator_namespace, platform.operator.account
    needed = account_rights(installation_objects(platform), namespace, account)
    return await denied(api, needed, _user(namespace, account))


def _user(namespace: str, account: str) -> dict[str, Any]:
    """Return a ServiceAccount as a SubjectAccessReview has it."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    user = f"system:serviceaccount:{namespace}:{account}"
    return {"user": user, "groups": [*groups, "system:authenticated"]}


async def _unlimited(api: ApiClient, platform: Platform) -> list[UnlimitedAccount]:
    """Return the ServiceAccounts of the operator's Pods that may do everything."""
    accounts = [(platform.operator_namespace, platform.operator.account)]
    if platform.owns_static_pods:
        accounts.append((platform.target_namespace, names.INSTALLER_SERVICE_ACCOUNT))
    unlimited = [
        (namespace, account)
        for namespace, account in accounts
        if not await denied(api, [_EVERYTHING], _user(namespace, account))
    ]
    if not unlimited:
        return []
    bindings = await observed(_items(api.list(kinds.CLUSTER_ROLE_BINDINGS)))
    return [
        UnlimitedAccount(
            f"{namespace}/{account}",
            [
                str(binding["metadata"]["name"])
                for binding in bindings.value or ()
                if _grants_everything(binding, _user(namespace, account))
            ],
        )
        for namespace, account in unlimited
    ]


def _grants_everything(binding: Object, user: Mapping[str, Any]) -> bool:
    """Return whether a ClusterRoleBinding makes a user an administrator."""
    if mapping(binding.get("roleRef")).get("name") != _ADMINISTRATOR:
        return False
    for subject in binding.get("subjects") or ():
        name = str(subject.get("name"))
        account = f"system:serviceaccount:{subject.get('namespace')}:{name}"
        if subject.get("kind") == "ServiceAccount" and account == user["user"]:
            return True
        if subject.get("kind") != "ServiceAccount" and name in (user["user"], *user["groups"]):
            return True
    return False


async def _adoption(api: ApiClient, platform: Platform) -> AdoptionPreview | None:
    if not platform.adopts_pods:
        return None
    adoption = await from_cluster(api, platform, NodeFiles())
    if not adoption.snapshot.operand_pods:
        return None
    return preview(adoption.snapshot, adoption.reports)


async def _host_pods(api: ApiClient, facts: ClusterFacts) -> list[Object]:
    """List the Pods of control-plane nodes that declare ports of their node."""
    pods: list[Object] = []
    if not facts.platform.owns_static_pods or facts.nodes.error:
        return pods
    for node in facts.control_plane_nodes()[:_CONTROL_PLANE_NODES]:
        selector = f"spec.nodeName={node['metadata']['name']}"
        pods += (await api.list(kinds.PODS, field_selector=selector, keep=_with_port)).items
    return [pod for pod in pods if pod]


def _with_port(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the Pod if it uses the scheduler's port of its node; {}: it does not, or has ended.

    A kubelet refuses a Pod whose port is in use: it has ended, and does not have the port.
    """
    ended = mapping(pod.get("status")).get("phase") in ("Succeeded", "Failed")
    return {} if ended or SCHEDULER_PORT not in host_ports(pod) else pod


# --- admission webhooks -----------------------------------------------------------------------


async def _webhooks(api: ApiClient) -> list[tuple[str, str]]:
    """Return (webhook, Service) of webhooks for new Pods that must answer and have no Service."""
    missing = []
    services: dict[ObjectRef, bool] = {}
    for kind in (kinds.VALIDATING_WEBHOOKS, kinds.MUTATING_WEBHOOKS):
        for configuration in (await api.list(kind)).items:
            for hook in configuration.get("webhooks") or ():
                service = mapping(mapping(hook.get("clientConfig")).get("service"))
                namespace, name = str(service.get("namespace")), str(service.get("name"))
                if not service or hook.get("failurePolicy") == "Ignore" or not _for_pods(hook):
                    continue
                ref = kinds.SERVICES.named(name, namespace)
                if ref not in services:
                    services[ref] = await find_object(api, ref) is not None
                if not services[ref]:
                    missing.append((str(hook["name"]), f"{namespace}/{name}"))
    return missing


def _for_pods(hook: Mapping[str, Any]) -> bool:
    return any(
        {"", "*"} & set(rule.get("apiGroups") or ())
        and {"pods", "*", "*/*"} & set(rule.get("resources") or ())
        and {"CREATE", "*"} & set(rule.get("operations") or ())
        for rule in hook.get("rules") or ()
    )


# --- certificates -----------------------------------------------------------------------------


async def _server_certificates(api: ApiClient) -> list[KnownCertificate]:
    access = await api.credentials.access()
    certificates = []
    url = urlsplit(access.server)
    if url.scheme == "https" and not access.proxy:
        renew = "renew it: kubeadm certs renew apiserver, or as your provider documents"
        pem = await _served_certificate(str(url.hostname), url.port or 443, access.tls_server_name)
        certificates.append(KnownCertificate("the API server", x509.expires(pem), renew))
    if access.cert_file:
        pem = await asyncio.to_thread(Path(access.cert_file).read_bytes)
        renew = (
            "get a new kubeconfig: kubeadm certs renew admin.conf, or as your provider documents"
        )
        certificates.append(KnownCertificate("your kubeconfig", x509.expires(pem), renew))
    return certificates


async def _served_certificate(host: str, port: int, name: str | None) -> bytes:
    """Read the certificate of a server, PEM, without verifying it: it need not be valid."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(
                host, port, ssl=context, server_hostname=name or host
            )
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    except (OSError, TimeoutError) as error:
        raise CommandError(f"cannot read the certificate of {host}:{port}: {error}") from None
    return ssl.DER_cert_to_PEM_cert(der or b"").encode()


async def _certificates(
    api: ApiClient, platform: Platform, operands: Observed[Mapping[str, Object]]
) -> list[KnownCertificate]:
    """Return those of the assignment webhook, and of the kubeconfigs of schedulers."""
    certificates = [
        KnownCertificate(
            f"the scheduler of node {node}",
            operand_pods.read(pod).kubeconfig_expires,
            f"kubeadm certs renew scheduler.conf on {node}; the operator restarts its scheduler",
        )
        for node, pod in sorted((operands.value or {}).items())
    ]
    for configuration in (await api.list(kinds.MUTATING_WEBHOOKS)).items:
        if configuration["metadata"]["name"] != names.ASSIGNMENT:
            continue
        for hook in configuration.get("webhooks") or ():
            bundle = mapping(hook.get("clientConfig")).get("caBundle")
            if bundle:
                expires = x509.expires(base64.b64decode(bundle))
                renew = "see the log of the operator, which renews it"
                name = f"what the API server trusts for the webhook {hook['name']}"
                certificates.append(KnownCertificate(name, expires, renew))
        secret = await find_object(
            api, kinds.SECRETS.named(names.WEBHOOK, platform.operator_namespace)
        )
        certificate = mapping(mapping(secret).get("data")).get("tls.crt")
        if certificate:
            expires = x509.expires(base64.b64decode(certificate))
            renew = f"delete Secret {names.WEBHOOK}: the operator creates another one"
            certificates.append(KnownCertificate(f"Secret {names.WEBHOOK}", expires, renew))
    return certificates
