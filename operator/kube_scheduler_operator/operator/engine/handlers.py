"""The operator's kopf handlers: every watched kind, and the start and end of kopf.

A handler only passes the event on: `Intake` puts the object into the store and wakes the queue. No
handler writes to the API: no finalizers, no annotations. `watches` decides which of these kinds are
watched on a platform, and with which namespaces and selectors; the other handlers stay idle.
"""

from __future__ import annotations

from typing import Any

from ...kube.kopf.imports import kopf
from ...kube.kopf.watcher import Session

registry = kopf.OperatorRegistry()


@kopf.on.startup(registry=registry)
async def configure(settings: kopf.OperatorSettings, memo: Session, **_: Any) -> None:
    """Make kopf watch and never write."""
    memo.configure(settings)


@kopf.on.login(registry=registry)
async def log_in(memo: Session, **_: Any) -> kopf.ConnectionInfo:
    """Use the operator's own credentials."""
    return await memo.log_in()


@kopf.on.cleanup(registry=registry)
async def finish(memo: Session, **_: Any) -> None:
    """Stop without kopf's grace period."""
    memo.finish()


# Edited by users.
@kopf.on.event("config.openshift.io/v1", "schedulers", registry=registry)
@kopf.on.event("operator.openshift.io/v1", "kubeschedulers", registry=registry)
@kopf.on.event("kube-scheduler-operator.dev/v1alpha1", "schedulerprofiles", registry=registry)
@kopf.on.event("kube-scheduler-operator.dev/v1alpha1", "schedulerextenders", registry=registry)
@kopf.on.event("kube-scheduler-operator.dev/v1alpha1", "secondaryschedulers", registry=registry)
@kopf.on.event("kube-scheduler-operator.dev/v1alpha1", "loadpolicies", registry=registry)
@kopf.on.event("kube-scheduler-operator.dev/v1alpha1", "operatorsettings", registry=registry)
@kopf.on.event("aks.azure.com/v1alpha1", "schedulerconfigurations", registry=registry)
# The cluster: OpenShift's configuration, its credentials, nodes, and the holders of Leases.
@kopf.on.event("config.openshift.io/v1", "apiservers", registry=registry)
@kopf.on.event("config.openshift.io/v1", "clusteroperators", registry=registry)
@kopf.on.event("config.openshift.io/v1", "featuregates", registry=registry)
@kopf.on.event("config.openshift.io/v1", "infrastructures", registry=registry)
@kopf.on.event("v1", "secrets", registry=registry)
@kopf.on.event("v1", "nodes", registry=registry)
@kopf.on.event("coordination.k8s.io/v1", "leases", registry=registry)
# Written by the operator, or created from what it writes.
@kopf.on.event("v1", "pods", registry=registry)
@kopf.on.event("v1", "configmaps", registry=registry)
@kopf.on.event("v1", "serviceaccounts", registry=registry)
@kopf.on.event("v1", "services", registry=registry)
@kopf.on.event("apps/v1", "deployments", registry=registry)
@kopf.on.event("apps/v1", "daemonsets", registry=registry)
@kopf.on.event("batch/v1", "jobs", registry=registry)
@kopf.on.event("networking.k8s.io/v1", "networkpolicies", registry=registry)
@kopf.on.event("policy/v1", "poddisruptionbudgets", registry=registry)
@kopf.on.event("rbac.authorization.k8s.io/v1", "roles", registry=registry)
@kopf.on.event("rbac.authorization.k8s.io/v1", "rolebindings", registry=registry)
@kopf.on.event("rbac.authorization.k8s.io/v1", "clusterrolebindings", registry=registry)
async def changed(event: Any, resource: kopf.Resource, memo: Session, **_: Any) -> None:
    memo.deliver(resource, event)
