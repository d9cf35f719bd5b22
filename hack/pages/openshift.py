"""docs/openshift-comparison.md: an OpenShift's scheduler under our operator, beside the reference.

What was observed is kept as JSON, so that the page can be made again, with other reasons, without a
cluster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from cluster import openshift, paths
from cluster.api import Api, ApiError, Object
from cluster.console import SandboxError, run, say
from cluster.model import Sandbox
from cluster.observe import CLUSTEROPERATOR, KUBESCHEDULER, SCHEDULER, edit, until
from cluster.releases import DEFAULT
from pages import openshift_requests
from pages.comparison import Comparison, compare, table
from pages.openshift_facts import NAMESPACE, OURS, facts
from pages.openshift_reference import KNOWN_ONLY, REASONS, REFERENCE
from pages.proofs import tests
from pages.stage import at_rest
from pages.text import Keep, fenced, shorten, without_places

PAGE = paths.REPOSITORY / "docs" / "openshift-comparison.md"
PROFILE = "HighNodeUtilization"

_OPERATOR_NAMESPACE = "openshift-kube-scheduler-operator"
_COLUMNS = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusteroperators.config.openshift.io"
)
_KINDS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
}
_SHOWN = (
    "kubectl get clusteroperator kube-scheduler -o yaml",
    "kubectl get kubescheduler cluster -o yaml",
    "kubectl get scheduler cluster -o yaml",
    f"kubectl -n {NAMESPACE} get configmaps,secrets,pods,leases,daemonsets",
    f"kubectl -n {_OPERATOR_NAMESPACE} get events --sort-by=.lastTimestamp",
)
_SHORT = Keep(200)
_PATIENCE = 240.0

_TEXT = """\
# OpenShift's operator and this one, line by line

A cluster with OpenShift's layout, one control-plane node and kube-scheduler {version},
under this operator: its objects after profile {profile} was set, and the events
meanwhile, next to those of OpenShift's own operator. `hack/openshift-docs` generates this page and
fails if a difference has no reason.
[openshift-differences.md](openshift-differences.md) describes the differences by subject, also
those that one edit does not show.

{same} lines are the same, {different} differ. `N`, `NODE` and `ID` stand for revision
numbers, the node, and identifiers of one cluster. A value that both share is shown once."""


# --- observing --------------------------------------------------------------------------------
def observe(sandbox: Sandbox) -> dict[str, Any]:
    """Edit the profile, follow the rollout, and take down all that the page is about.

    Raises:
        SandboxError: it was not rolled out.
    """
    api = Api(sandbox)
    rest(api)
    before = _known(api)
    watcher = _Watcher(sandbox)
    with watcher:
        line = edit(api, SCHEDULER, {"spec": {"profile": PROFILE}}, _PATIENCE)
        rest(api)
    if line.outcome != "installed":
        raise SandboxError(f"the edit was {line.outcome}: {line.message}")
    until(lambda: _reported(api, before), 30, "no event reports the end of the rollout")
    crd = api.request("GET", _COLUMNS)
    return {
        "node": sandbox.nodes[0].name,
        "release": openshift.VERSION,
        "kubescheduler": api.request("GET", KUBESCHEDULER),
        "clusteroperator": api.request("GET", CLUSTEROPERATOR),
        "namespace": {"kind": "Namespace", **api.request("GET", f"/api/v1/namespaces/{NAMESPACE}")},
        "columns": [
            column["name"] for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]
        ],
        "objects": [
            _without_secrets({**one, "kind": kind})
            for kind, path in _KINDS.items()
            for one in api.request("GET", path.format(NAMESPACE))["items"]
        ],
        "during": watcher.seen,
        "events": [event for one, event in _events(api) if one not in before],
        "shown": {command: _shown(sandbox, command) for command in _SHOWN},
    }


def rest(api: Api) -> None:
    """Wait until the node runs the desired revision and ClusterOperator reports no problem."""

    def rests() -> bool:
        conditions = api.request("GET", CLUSTEROPERATOR).get("status", {}).get("conditions", [])
        states = {one["type"]: one["status"] for one in conditions}
        return (
            at_rest(api.request("GET", KUBESCHEDULER).get("status", {}))
            and (states.get("Available"), states.get("Progressing")) == ("True", "False")
            and states.get("Degraded") == "False"
        )

    until(rests, _PATIENCE, "the rollout does not finish")


class _Watcher:
    """Remembers the conditions of KubeScheduler and ClusterOperator while a block runs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.seen: list[list[list[Object]]] = []
        self._api = Api(sandbox)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            try:
                found = [
                    self._api.request("GET", path).get("status", {}).get("conditions", [])
                    for path in (KUBESCHEDULER, CLUSTEROPERATOR)
                ]
            except ApiError as error:
                say(f"  {error}")
                continue
            if self.seen[-1:] != [found]:
                self.seen.append(found)
            time.sleep(0.1)


def _events(api: Api) -> list[tuple[tuple[str, int], Object]]:
    """The operator's events in order, by name and count."""
    found = [
        ((str(event["metadata"]["name"]), int(event.get("count") or 1)), event)
        for namespace in (_OPERATOR_NAMESPACE, NAMESPACE)
        for event in api.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
        if (event.get("source") or {}).get("component") in OURS
    ]
    return sorted(found, key=lambda one: (str(one[1].get("lastTimestamp")), one[0]))


def _known(api: Api) -> set[tuple[str, int]]:
    return {one for one, _ in _events(api)}


def _reported(api: Api, before: set[tuple[str, int]]) -> bool:
    reasons = {event["reason"] for one, event in _events(api) if one not in before}
    return "NodeCurrentRevisionChanged" in reasons


def _without_secrets(found: Object) -> Object:
    """The object without managed fields and other noise."""
    if found["kind"] != "Secret":
        return found
    return {**found, "data": dict.fromkeys(found.get("data") or {}, "")}


def _shown(sandbox: Sandbox, command: str) -> str:
    kubectl, *words = command.split()
    kubeconfig = f"--kubeconfig={sandbox.kubeconfig}"
    text = run(sandbox.state / "bin" / kubectl, kubeconfig, *words)
    return without_places(text, {str(sandbox.state): "sandbox"})


# --- the page ---------------------------------------------------------------------------------
def compared(observed: Mapping[str, Any]) -> Comparison:
    """What was observed beside the reference."""
    return compare(REFERENCE, facts(observed), REASONS, KNOWN_ONLY)


def complaints(comparison: Comparison) -> list[str]:
    """What has to be done before there can be a page."""
    return [
        f"{group}: {row.item}: {row.reference!r} there, {row.here!r} here, and no reason why"
        for group, row in comparison.unexplained
    ]


def written(comparison: Comparison, shown: Mapping[str, str]) -> str:
    """The page."""
    same, different = comparison.counts
    # This part needs no cluster: hack/openshift-docs --requests.
    parts = [_TEXT.format(version=DEFAULT, profile=PROFILE, same=same, different=different)]
    parts.append(openshift_requests.section(openshift_requests.load(), tests(paths.REPOSITORY)))
    for group, rows in comparison.groups.items():
        parts += [f"## {group}", table(rows)]
    parts.append("## As kubectl shows it")
    for command, text in shown.items():
        parts.append(fenced(f"$ {command}\n{shorten(text, _SHORT)}", "console"))
    return "\n\n".join(parts) + "\n"
