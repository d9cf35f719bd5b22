"""Everything that the checks read, gathered by `cli/lib/cluster_facts.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from ...base.objects import Object
from ...base.platform import Platform
from .observed import Observed

if TYPE_CHECKING:
    from ...base.recognition import Recognition
    from ...controlplane.adoption.preview import AdoptionPreview

UNREAD: Final[Observed[Any]] = Observed(error="it was not read")
"""A fact that no check of this run needs."""


@dataclass(frozen=True, slots=True)
class KnownCertificate:
    """A certificate whose expiry is known.

    Attributes:
        name: whose it is, for messages.
        expires: its expiry; None if it cannot be read.
        renew: how to renew it.
    """

    name: str
    expires: datetime | None
    renew: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The answer to a request with dryRun.

    Attributes:
        what: the object, for messages.
        error: the refusal of the API server; empty if it accepts the object.
        unanswered: why there is no answer; empty if there is one.
    """

    what: str
    error: str = ""
    unanswered: str = ""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What was read of a cluster.

    Attributes:
        now: the time of the API server.
        ahead: seconds by which this machine's clock is ahead of it.
        platform: the platform in use.
        recognition: what detection finds now; None if `--platform` decides.
        server_version: `gitVersion` of the API server.
        images: the images of the installation's Pods.
        server: the certificate of the API server, and of the user in the kubeconfig.
        nodes: all nodes.
        node_leases: the Leases of kubelets, by node.
        namespace: the operator's namespace; None if it does not exist.
        crds: the CustomResourceDefinitions of our names in the cluster, by name.
        own_crds: those of this version.
        missing_rights: what the user may not do, of what the installation does.
        admission: whether the API server accepts the installation's Pods.
        rbac: whether it accepts the installation's roles, by the rule against escalation.
        webhooks: admission webhooks for Pods whose Service is missing: (webhook, Service).
        deployments: Deployments with a scheduler or with this operator, of all namespaces.
        adoption: what adoption would do; None if there is no static Pod.
        host_pods: Pods of control-plane nodes that use their node's network.
        deployment: the operator's Deployment; None if it does not exist.
        operator_lease: the Lease of its leader election, likewise.
        operator_pods: the Pods in the operator's namespace.
        operand_lease: the Lease of the control plane's scheduler.
        operand_pods: the schedulers' mirror Pods, by node.
        kubescheduler: KubeScheduler "cluster"; None if it does not exist.
        cluster_operator: ClusterOperator "kube-scheduler", likewise.
        kinds: objects of our kinds by kind and name.
        missing_account_rights: what the operator's ServiceAccount may not do.
        certificates: certificates of webhooks and schedulers.
    """

    now: datetime
    platform: Platform
    ahead: float = 0.0
    recognition: Observed[Recognition | None] = UNREAD
    server_version: str = ""
    images: Sequence[str] = ()
    server: Observed[Sequence[KnownCertificate]] = UNREAD
    nodes: Observed[Sequence[Object]] = UNREAD
    node_leases: Observed[Mapping[str, Object]] = UNREAD
    namespace: Observed[Object | None] = UNREAD
    crds: Observed[Mapping[str, Object]] = UNREAD
    own_crds: Sequence[Object] = ()
    missing_rights: Observed[Sequence[str]] = UNREAD
    admission: Observed[Sequence[DryRun]] = UNREAD
    rbac: Observed[Sequence[DryRun]] = UNREAD
    webhooks: Observed[Sequence[tuple[str, str]]] = UNREAD
    deployments: Observed[Sequence[Object]] = UNREAD
    adoption: Observed[AdoptionPreview | None] = UNREAD
    host_pods: Observed[Sequence[Object]] = UNREAD
    deployment: Observed[Object | None] = UNREAD
    operator_lease: Observed[Object | None] = UNREAD
    operator_pods: Observed[Sequence[Object]] = UNREAD
    operand_lease: Observed[Object | None] = UNREAD
    operand_pods: Observed[Mapping[str, Object]] = UNREAD
    kubescheduler: Observed[Object | None] = UNREAD
    cluster_operator: Observed[Object | None] = UNREAD
    kinds: Mapping[str, Observed[Mapping[str, Object]]] = field(default_factory=dict)
    missing_account_rights: Observed[Sequence[str]] = UNREAD
    certificates: Observed[Sequence[KnownCertificate]] = UNREAD

    def control_plane_nodes(self) -> tuple[Object, ...]:
        """The control-plane nodes.

        Raises:
            NotObservedError: nodes cannot be read.
        """
        selectors = self.platform.node_selectors
        return tuple(
            node
            for node in self.nodes.get()
            if any(key in (node["metadata"].get("labels") or {}) for key in selectors)
        )
