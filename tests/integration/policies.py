"""deploy/admission on a shared API server: only for objects with the label of these tests.

Other tests of the same server write mistakes on purpose. So the bindings get a selector, and a
ClusterOperator of their own; the kinds of kube-scheduler-operator.dev get a group of their own with
definitions that know no field, so that it is the policy that refuses and nothing before it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import yaml

from kube_scheduler_operator.config.language.versions import Version

from ..unit.deploy.overlays import DEPLOY, build
from .conftest import ApiServer, RefusedError

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
OPERATORS = "/apis/config.openshift.io/v1/clusteroperators"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OWN_GROUP = "kube-scheduler-operator.dev"
SETTLED_SECONDS = 300.0

Object = dict[str, Any]


@dataclass(frozen=True)
class Guarded:
    """An API server with the policies."""

    server: ApiServer  # the API server
    mark: str  # label of the objects that they look at, and prefix of names
    group: str  # of the two kinds of our own

    def path(self, kind: str) -> str:
        group = {
            "Scheduler": "config.openshift.io/v1",
            "KubeScheduler": "operator.openshift.io/v1",
        }.get(kind, f"{self.group}/v1alpha1")
        return f"/apis/{group}/{kind.lower()}s"

    def object(self, kind: str, spec: Any) -> Object:
        labels = {"admission-test": self.mark}
        return {
            "apiVersion": self.path(kind).removeprefix("/apis/").rpartition("/")[0],
            "kind": kind,
            "metadata": {"name": f"{self.mark}-{uuid.uuid4().hex[:8]}", "labels": labels},
            "spec": spec,
        }

    def refusal(self, kind: str, spec: Any) -> str:
        """What the policies say of a new object; empty if they let it pass."""
        try:
            self.server.request("POST", f"{self.path(kind)}?dryRun=All", self.object(kind, spec))
        except RefusedError as error:
            message = str(error)
            assert "ValidatingAdmissionPolicy" in message, message
            return message.partition("denied request: ")[2]
        return ""

    def overrides(self, config: Any) -> str:
        """What they say of overrides in a new KubeScheduler."""
        return self.refusal("KubeScheduler", {"unsupportedConfigOverrides": config})

    def report(self, version: str) -> None:
        """The operator reports that all schedulers run this version."""
        path = f"{OPERATORS}/{self.mark}"
        obj = self.server.request("GET", path)
        versions = [{"name": "kube-scheduler", "version": version}] if version else []
        self.server.request("PUT", f"{path}/status", obj | {"status": {"versions": versions}})

    def settle(self, config: Any, *, refused: bool) -> None:
        """Wait until the API server has taken up a change, as overrides show it."""
        end = time.monotonic() + SETTLED_SECONDS
        while bool(self.overrides(config)) != refused:
            assert time.monotonic() < end, "the API server does not take up the change"
            time.sleep(0.05)


def documents() -> list[Object]:
    """What `kubectl apply -k deploy/admission` applies."""
    return build(DEPLOY / "admission")


@contextmanager
def installed(
    server: ApiServer,
    version: str,
    actions: tuple[str, ...] = ("Deny",),
    extra: str = "[]",
    failure: str = "Fail",
) -> Iterator[Guarded]:
    """The policies, for as long as the context lasts.

    Args:
        server: where.
        version: what the operator reports; empty: nothing yet.
        actions: what comes of a mistake.
        extra: the list of plugins of an image of one's own, as CEL.
        failure: what comes of an expression that fails; with Fail a test sees that none does.
    """
    mark = f"guard-{uuid.uuid4().hex[:6]}"
    guarded = Guarded(server, mark, f"{mark}.example.com")
    made: list[str] = []

    def make(path: str, obj: Object) -> None:
        server.request("POST", path, obj)
        made.append(f"{path}/{obj['metadata']['name']}")

    try:
        operator = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator"}
        make(OPERATORS, operator | {"metadata": {"name": mark}, "spec": {}})
        guarded.report(version)
        for kind in ("SchedulerProfile", "SecondaryScheduler"):
            make(DEFINITIONS, _definition(kind, guarded.group))
        for obj in documents():
            changed = _ours(obj, guarded, actions, extra, failure)
            make(POLICIES if obj["kind"].endswith("Policy") else BINDINGS, changed)
        _wait(guarded, actions)
        yield guarded
    finally:
        for path in reversed(made):
            with suppress(RefusedError):
                server.request("DELETE", path)


def _ours(
    obj: Object, guarded: Guarded, actions: tuple[str, ...], extra: str, failure: str
) -> Object:
    obj = yaml.safe_load(yaml.safe_dump(obj))
    obj["metadata"]["name"] = f"{guarded.mark}.{obj['metadata']['name']}"
    spec = obj["spec"]
    if "failurePolicy" in spec:
        spec["failurePolicy"] = failure
    if obj["kind"].endswith("Binding"):
        spec["policyName"] = f"{guarded.mark}.{spec['policyName']}"
        spec["validationActions"] = list(actions)
        selector = {"matchLabels": {"admission-test": guarded.mark}}
        spec["matchResources"] = {"objectSelector": selector}
        if "paramRef" in spec:
            spec["paramRef"]["name"] = guarded.mark
    else:
        for rule in spec["matchConstraints"]["resourceRules"]:
            if rule["apiGroups"] == [OWN_GROUP]:
                rule["apiGroups"] = [guarded.group]
        if spec["variables"][0]["name"] == "extraPlugins":
            spec["variables"][0]["expression"] = extra
    return dict(obj)


def _definition(kind: str, group: str) -> Object:
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {"name": "v1alpha1", "served": True, "storage": True,
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open_}}}}
            ],
        },
    }  # fmt: skip


def _wait(guarded: Guarded, actions: tuple[str, ...]) -> None:
    """Until every policy is in force."""
    if "Deny" not in actions:
        return  # nothing shows it but a warning, which the test waits for itself
    wrong = {"percentageOfNodesToScore": 101}
    probes: list[tuple[str, Any]] = [
        ("KubeScheduler", {"unsupportedConfigOverrides": wrong}),
        ("Scheduler", {"policy": {"name": "x"}}),
        ("SchedulerProfile", wrong),
        ("SecondaryScheduler", {"config": wrong}),
    ]
    end = time.monotonic() + SETTLED_SECONDS
    for kind, spec in probes:
        while True:
            with suppress(RefusedError, AssertionError):
                if guarded.refusal(kind, spec):
                    break
            assert time.monotonic() < end, f"no policy is in force for {kind}"
            time.sleep(0.05)


def versions_of(server: ApiServer) -> Version:
    """The API server's version, which the schedulers of these tests report."""
    return Version.parse(server.request("GET", "/version")["gitVersion"])
