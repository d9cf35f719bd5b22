"""An upgrade of the operator, and the way back, on every layout: what runs does not notice.

The operator of an earlier commit is installed with what users have: profiles, an override, a
SecondaryScheduler that Pods are assigned to, an approved edit, and another one that is held. Then
it is upgraded to this checkout and put back, while Pods of the selected namespace are created.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import yaml

from cluster import (
    images,
    lifecycle,
    model,
    nodes,
    openshift,
    operator,
    operator_image,
    payload,
    teardown,
)
from cluster.api import Api, ApiError
from cluster.lifecycle import ClusterKind
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, until
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import PLATFORMS

from ..expect import has_conditions
from . import released
from .audit import writes
from .conftest import (
    NAME_TO_UPGRADE,
    OPERATOR_SETTINGS,
    REPOSITORY,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Cluster,
    retire_all,
    up,
)
from .released import DEVELOPMENT_IMAGE, IMAGE, Release
from .workloads import pod

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(1800, func_only=True),
    pytest.mark.skipif(
        not released.commit(), reason="no release yet; KSO_UPGRADE_FROM=COMMIT takes its place"
    ),
]

SELECTED: Final = "team-packed"
PACKED: Final = "packed"
APPROVED, WAITING = "batch", "nightly"
"""SchedulerProfiles with an edit that is approved, and with one that is held."""

NOWHERE: Final = {
    "name": "NodeAffinity",
    "args": {
        "addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "example.com/none", "operator": "Exists"}]}
                ]
            }
        }
    },
}
"""Arguments with which Pods fit on no node."""

HELD: Final = "the edit is held"
CHECK: Final = "PlacementCheckProgressing"
INTERVAL: Final = 0.1
"""Seconds between two new Pods."""

_WEBHOOKS: Final = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
_OF_SECONDARIES: Final = quote(names.SECONDARY_LABEL)
_OURS: Final = quote(f"{names.MANAGED_BY_LABEL}={names.PROGRAM}")

CALM: Final = 20.0
"""Seconds after a rollout of the operator in which it must not do more."""


@dataclass(frozen=True)
class Layout:
    """A kind of cluster."""

    overlays: tuple[str, ...]  # folders of deploy/
    control_planes: int  # number of control-plane nodes that are seen
    workers: int  # number of workers
    kind: ClusterKind  # the kind of cluster
    # whether API servers reach the webhook: those that kubeadm starts need kube-proxy
    assigns: bool = True

    @property
    def platform(self) -> str:
        return self.kind.platform


LAYOUTS = {
    "kubeadm": Layout(("kubeadm",), 3, 0, ClusterKind(kubeadm=True), assigns=False),
    "managed": Layout(("managed-webhook",), 0, 3, ClusterKind(model.MANAGED, "eks")),
    "openshift": Layout(
        ("openshift", "assignment/openshift-webhook"), 1, 1, ClusterKind(model.OPENSHIFT)
    ),
}


class Assignments:
    """Creates Pods in the selected namespace, without persisting them, while the block runs.

    Attributes:
        schedulers: the schedulerName of each.
        unassigned: when a Pod got another one than PACKED.
    """

    def __init__(self, api: Api) -> None:
        self.schedulers: list[str] = []
        self.unassigned: list[str] = []
        self._api = api
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._create, daemon=True)

    def __enter__(self) -> Assignments:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _create(self) -> None:
        while not self._over.wait(INTERVAL):
            begun = _now()
            self.schedulers.append(scheduler_of_new(self._api))
            if self.schedulers[-1] != PACKED:
                self.unassigned.append(f"{begun} to {_now()}")


def scheduler_of_new(api: Api) -> str:
    """The schedulerName that a new Pod of the selected namespace gets."""
    probe = pod("probe")
    del probe["spec"]["schedulerName"]
    path = f"/api/v1/namespaces/{SELECTED}/pods?dryRun=All"
    return str(api.request("POST", path, probe)["spec"]["schedulerName"])


class Upgraded(Cluster):
    """A cluster whose operator is replaced.

    Attributes:
        layout: its kind.
    """

    def __init__(self, sandbox: Sandbox, layout: Layout) -> None:
        super().__init__(sandbox)
        self.layout = layout

    def install(self, checkout: Path, image: str) -> None:
        """Apply CRDs and overlays as documented, and wait for the new Pods of the operator."""
        apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        crds = self.kubectl("kustomize", f"{checkout}/crds")
        if self.layout.platform == model.OPENSHIFT:
            # Its own definitions stay; the first release has no folder with the others alone.
            own = [crd for crd in yaml.safe_load_all(crds) if crd["spec"]["group"] == names.PREFIX]
            crds = yaml.safe_dump_all(own)
        self.kubectl(*apply, stdin=crds)
        established = ("--for=condition=Established", "--timeout=30s", "crd", "--all")
        self.kubectl("wait", *established)
        for overlay in self.layout.overlays:
            text = self.kubectl("kustomize", f"{checkout}/deploy/{overlay}")
            if self.layout.platform == model.OPENSHIFT:
                text = self._of_payload(text)
            self.kubectl(*apply, stdin=text.replace(DEVELOPMENT_IMAGE, image))
        namespace, deployment = self.sandbox.operator_namespace, self.sandbox.operator_deployment
        self.kubectl("-n", namespace, "rollout", "status", "--timeout=180s",
                     f"deployment/{deployment}")  # fmt: skip

    def _of_payload(self, text: str) -> str:
        """Manifests with the versions and the operand of a release, in the order of a payload."""
        found = {
            "cluster-kube-scheduler-operator": DEVELOPMENT_IMAGE,
            "hyperkube": images.hyperkube_name(self.sandbox.kubernetes),
        }
        release = payload.Release(openshift.VERSION, self.sandbox.kubernetes, found)
        placeholders = payload.references(payload.IMAGE_REFERENCES.read_text())
        manifests = [one for one in yaml.safe_load_all(text) if one]
        manifests.sort(key=payload.file_name)
        text = "\n---\n".join(json.dumps(manifest) for manifest in manifests)
        return payload.substitute(text, release, placeholders)

    def settled(self) -> bool:
        """Nothing is in progress, and Pods are assigned."""
        try:
            if self.layout.platform != model.MANAGED and not self.calm():
                return False
            assigned = not self.layout.assigns or scheduler_of_new(self.api) == PACKED
            return self.secondaries_are_well() and assigned
        except ApiError:
            return False

    def problems(self) -> set[str]:
        """Those that users of both releases have to mend.

        The earlier one writes fields that OpenShift's definitions do not have, and reports that.
        """
        expected = {"WritesDegraded"} if self.layout.platform == model.OPENSHIFT else set()
        return super().problems() - expected

    def _rests(self) -> bool:
        """Everything is well, and was a moment ago."""
        if not self.settled():
            return False
        before = self.facts()
        time.sleep(5)
        return self.settled() and self.facts() == before

    def secondaries_are_well(self) -> bool:
        for obj in self.api.request("GET", SECONDARY_SCHEDULERS)["items"]:
            observed = obj.get("status", {}).get("observedGeneration")
            is_well = observed == obj["metadata"]["generation"] and has_conditions(
                obj, Available="True", Progressing="False", Degraded="False"
            )
            if not is_well or (
                "assign" in obj["spec"] and not has_conditions(obj, Assigned="True")
            ):
                return False
        return True

    def state(self) -> str:
        """What happened, for messages."""
        status = self.status
        conditions = [
            f"{one['type']}={one['status']}"
            for one in status.pop("conditions", [])
            if not (one["status"] == "False" and one["type"].endswith("Degraded"))
        ]
        secondaries = [
            {one["metadata"]["name"]: one.get("status")}
            for one in self.api.request("GET", SECONDARY_SCHEDULERS)["items"]
        ]
        shown = {"conditions": conditions, **status, "secondaries": secondaries}
        return json.dumps(shown)[:8000]

    # --- what users have --------------------------------------------------------------------------

    def use(self) -> None:
        """A SecondaryScheduler with an assignment; profiles and edits where nodes are ours."""
        self.api.create(
            "/api/v1/namespaces",
            {"metadata": {"name": SELECTED, "labels": {"scheduling": PACKED}}},
        )
        account = {"metadata": {"name": "default"}}
        self.api.create(f"/api/v1/namespaces/{SELECTED}/serviceaccounts", account)
        secondary = yaml.safe_load(
            (REPOSITORY / "docs/examples/packed-by-namespace.yaml").read_text()
        )
        if not self.layout.assigns:
            del secondary["spec"]["assign"]
        if self.layout.platform == model.OPENSHIFT:
            secondary["spec"]["namespace"] = "openshift-kube-scheduler"
        self.kubectl("apply", "-f", "-", stdin=json.dumps(secondary))
        kind = {
            "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
            "kind": "SchedulerProfile",
        }
        for name in (APPROVED, WAITING):
            spec = {"base": "HighNodeUtilization"}
            self.api.create(SCHEDULER_PROFILES, {**kind, "metadata": {"name": name}, "spec": spec})
        overrides = {"unsupportedConfigOverrides": {"parallelism": 8}}
        self.api.request("PATCH", KUBESCHEDULER, {"spec": overrides})
        until(self._rests, 300, lambda: f"not in use: {self.state()}")
        if self.layout.platform != model.MANAGED:
            self._approve_one_edit_and_hold_another()

    def _approve_one_edit_and_hold_another(self) -> None:
        account = {"metadata": {"name": "default"}}
        self.api.create("/api/v1/namespaces/default/serviceaccounts", account)
        for name in (APPROVED, WAITING):
            self._run_a_pod(name)
        settings = {
            "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
            "kind": "OperatorSettings",
            "metadata": {"name": "cluster"},
            "spec": {"placementCheck": {"mode": "Gate", "timeoutSeconds": 240}},
        }
        self.api.create(OPERATOR_SETTINGS, settings)
        until(lambda: self.condition(CHECK)[0] == "False", 60, "the check is not on")
        before = self.latest
        self._edit(APPROVED)
        approved = self.plugin("rollout", "approve", "--yes")
        assert approved.returncode == 0, approved.stderr
        until(lambda: self.current == before + 1 and self.calm(), 300, self.state)
        self._edit(WAITING)

    def _edit(self, profile: str) -> None:
        """An edit after which the Pod of a profile has no place, until it is held."""
        edit = {"spec": {"pluginConfig": [NOWHERE]}}
        self.api.request("PATCH", f"{SCHEDULER_PROFILES}/{profile}", edit)
        until(self.holds, 240, lambda: f"not held: {self.condition(CHECK)}")

    def _run_a_pod(self, scheduler: str) -> None:
        name = f"of-{scheduler}"
        pods = "/api/v1/namespaces/default/pods"
        everywhere = [{"operator": "Exists"}]
        self.api.request("POST", pods, pod(name, scheduler, tolerations=everywhere))
        until(
            lambda: self.api.request("GET", f"{pods}/{name}")["status"]["phase"] == "Running",
            60,
            f"{name} does not run",
        )

    def holds(self) -> bool:
        return HELD in self.condition(CHECK)[1]

    # --- what must not change ---------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """Revisions, processes, contents, assignments and the held edit."""
        secondary = self.api.request("GET", f"{SECONDARY_SCHEDULERS}/{PACKED}")
        core = f"/api/v1/namespaces/{secondary['spec']['namespace']}"
        contents = self.api.request("GET", f"{core}/configmaps?labelSelector={_OF_SECONDARIES}")
        pods = self.api.request("GET", f"{core}/pods?labelSelector=app%3Dsecondary-scheduler")
        found: dict[str, Any] = {
            "assignment": secondary["status"].get("assignment"),
            "contents": sorted(one["metadata"]["name"] for one in contents["items"]),
            "schedulers": sorted(one["metadata"]["name"] for one in pods["items"]),
        }
        if self.layout.platform != model.MANAGED:
            found |= {
                "versions": self._versions(),
                "latest": self.latest,
                "nodes": [
                    (one["nodeName"], one["currentRevision"]) for one in self.status["nodeStatuses"]
                ],
                "processes": self.schedulers,
                "check": self.condition(CHECK),
            }
        return found

    def _versions(self) -> dict[str, str]:
        """What the operator wrote into ConfigMaps, by the version of each."""
        namespace = PLATFORMS[self.layout.platform].target_namespace
        path = f"/api/v1/namespaces/{namespace}/configmaps?labelSelector={_OURS}"
        items = self.api.request("GET", path)["items"]
        return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in items}

    @property
    def schedulers(self) -> dict[str, int]:
        ours = [node for node in self.sandbox.nodes if node.control_plane]
        return {node.name: self.scheduler(node)[0] for node in ours}


@pytest.fixture(scope="module", params=LAYOUTS)
def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Upgraded, Release]]:
    """The operator of the earlier commit, in use."""
    layout = LAYOUTS[request.param]
    release = Release.export(released.commit(), tmp_path_factory.mktemp("release"))
    image = release.image()
    operator_image.build()
    with _sandbox(layout) as sandbox:
        for node in sandbox.nodes:
            nodes.load_images(sandbox, node, [image])
        operator.load_image(sandbox)
        cluster = Upgraded(sandbox, layout)
        cluster.install(release.folder, IMAGE)
        if layout.platform == model.OPENSHIFT:
            openshift.end_bootstrap(sandbox)
        cluster.use()
        yield cluster, release


@contextmanager
def _sandbox(layout: Layout) -> Iterator[Sandbox]:
    plan = (NAME_TO_UPGRADE, layout.control_planes, layout.workers)
    if not layout.kind.kubeadm:
        with up(*plan, with_operator=False, kind=layout.kind) as sandbox:
            yield sandbox
        return
    retire_all()
    try:  # the API server of kubeadm has no audit log
        yield lifecycle.up(*plan, with_operator=False, kind=layout.kind)
    finally:
        teardown.down(NAME_TO_UPGRADE)


def test_an_upgrade_and_the_way_back_change_nothing_that_runs(
    upgraded: tuple[Upgraded, Release],
) -> None:
    cluster, release = upgraded
    before = cluster.facts()
    print(json.dumps(before, indent=1))
    if cluster.layout.platform == model.OPENSHIFT:
        _let_both_operators_read(cluster)
    for folder, image in ((REPOSITORY, DEVELOPMENT_IMAGE), (release.folder, IMAGE)):
        since = _now()
        with Assignments(cluster.api) as load:
            cluster.install(folder, image)
            until(cluster.settled, 240, lambda: f"not settled: {cluster.state()}")
            time.sleep(CALM)
        print(f"{image}: {len(load.schedulers)} Pods")
        if not cluster.layout.kind.kubeadm:
            print(f"writes: {json.dumps(writes(cluster.sandbox, since), indent=1)}")
        if cluster.layout.assigns:
            assert set(load.schedulers) == {PACKED}, f"not assigned: {load.unassigned}"
        if image == DEVELOPMENT_IMAGE:
            assert not Cluster.problems(cluster)
        after = cluster.facts()
        print(json.dumps(after, indent=1))
        _assert_same(cluster.layout, before, after)
        before = after
    if cluster.layout.platform != model.MANAGED:
        _approve(cluster, int(before["latest"]))


def _let_both_operators_read(cluster: Cluster) -> None:
    """What the changelog advises, because the operator's account has another name on OpenShift."""
    namespace = cluster.sandbox.operator_namespace
    accounts = [
        f"--serviceaccount={namespace}:{name}"
        for name in ("openshift-kube-scheduler-operator", "kube-scheduler-operator")
    ]
    cluster.kubectl("create", "clusterrole", "both-operators", "--verb=get",
                    f"--resource=namespaces,{_WEBHOOKS}")  # fmt: skip
    cluster.kubectl("create", "clusterrolebinding", "both-operators",
                    "--clusterrole=both-operators", *accounts)  # fmt: skip


def _assert_same(layout: Layout, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Nothing has changed but what the changelog announces.

    Private keys moved into memory: SecondarySchedulers, and the schedulers of OpenShift, are rolled
    out once by each of the two operators.
    """
    announced = {"contents", "schedulers", "versions"}
    if layout.platform == model.OPENSHIFT:
        announced |= {"latest", "nodes", "processes"}
        assert after["latest"] - before["latest"] <= 1
        assert {revision for _, revision in after["nodes"]} == {after["latest"]}
    new = Counter(
        name.rpartition("-")[0] for name in set(after["contents"]) - set(before["contents"])
    )
    assert all(number == 1 for number in new.values()), "each scheduler is rolled out once"
    same = before.keys() - announced
    assert {key: after[key] for key in same} == {key: before[key] for key in same}


def _approve(cluster: Upgraded, latest: int) -> None:
    """The held edit is approved after all, and rolled out."""
    done = cluster.plugin("rollout", "approve", "--yes")
    assert done.returncode == 0, done.stderr
    until(lambda: cluster.current == latest + 1, 300, cluster.state)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
