"""From the last release to this checkout and back, in the middle of rollouts, under load.

Ten pods a second are created for the whole time. Each of them has to get a node.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster import nodes, operator
from cluster.api import wait
from cluster.load import Load
from cluster.observe import SCHEDULER, until
from releasing import states

from . import released
from .conftest import DEPLOYMENT, MANIFEST, NAME_TO_UPGRADE, REPOSITORY, Cluster, up
from .released import DEVELOPMENT_IMAGE, IMAGE, Release

VARIABLE = r"s/^    image: /    env:\n    - name: TZ\n      value: Europe\/Berlin\n&/"
"""How sed adds a variable to the stock scheduler."""

_WITH_A_RELEASE = pytest.mark.skipif(
    not released.commit(), reason="no release yet; KSO_UPGRADE_FROM=COMMIT takes its place"
)
pytestmark = [pytest.mark.soak, _WITH_A_RELEASE]


@dataclass
class Upgraded:
    """A cluster whose operator is replaced by another version of it."""

    cluster: Cluster
    release: Release

    def install(self, checkout: Path, image: str, *, definitions: bool = True) -> None:
        """Apply CRDs and overlay as documented, and wait until its operator leads."""
        cluster = self.cluster
        if definitions:
            cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", f"{checkout}/crds")
            established = ("--for=condition=Established", "--timeout=30s", "crd", "--all")
            cluster.kubectl("wait", *established)
        text = cluster.kubectl("kustomize", f"{checkout}/deploy/kubeadm")
        apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        cluster.kubectl(*apply, stdin=text.replace(DEVELOPMENT_IMAGE, image))
        cluster.kubectl("-n", "kube-scheduler-operator", "rollout", "status", "--timeout=120s",
                        "deployment/kube-scheduler-operator")  # fmt: skip
        wait(lambda: self.image == image, 10, lambda: f"the operator's image is {self.image}")

    def use(self) -> None:
        """Make what users have: a profile as an object, an override, and revisions."""
        kind = {"apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "SchedulerProfile"}
        profile = {**kind, "metadata": {"name": "batch"}, "spec": {"base": "HighNodeUtilization"}}
        cluster = self.cluster
        before = cluster.latest
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(profile))
        until(lambda: cluster.latest > before and cluster.calm(), 200, self.state)
        line = cluster.override({"parallelism": 8})
        assert line.outcome == "installed", line.message
        until(cluster.calm, 200, self.state)

    @property
    def image(self) -> str:
        """The image of the operator's Deployment."""
        found = self.cluster.api.request("GET", DEPLOYMENT)
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    def begin_rollout(self) -> int:
        """Edit the profile and wait until one node has the new revision; the revision."""
        cluster = self.cluster
        before = cluster.latest
        profile = {"spec": {"profile": cluster.another_profile()}}
        cluster.api.request("PATCH", SCHEDULER, profile)
        until(lambda: self._on_some_node(before), 180, lambda: f"no rollout: {self.state()}")
        return cluster.latest

    def _on_some_node(self, before: int) -> bool:
        entries = self.cluster.status.get("nodeStatuses") or ()
        return any(int(entry.get("currentRevision", 0)) > before for entry in entries)

    def finish_rollout(self, revision: int) -> None:
        """Wait until every node has a revision and nothing is wrong."""
        cluster = self.cluster
        until(
            lambda: cluster.current == revision == cluster.latest and cluster.calm(),
            400,
            lambda: f"revision {revision} is not on every node: {self.state()}",
        )

    def state(self) -> str:
        """What happened, for messages."""
        return f"{json.dumps(self.cluster.status)[:3000]}\n{self.cluster.events()[-20:]}"


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """Two control-plane nodes with the operator of the last release."""
    release = Release.export(released.commit(), tmp_path_factory.mktemp("release"))
    image = release.image()
    with up(NAME_TO_UPGRADE, 2, 0, with_operator=False) as sandbox:
        for node in sandbox.nodes:
            nodes.load_images(sandbox, node, [image])
        operator.load_image(sandbox)
        found = Upgraded(Cluster(sandbox), release)
        for node in sandbox.nodes:  # something to adopt
            found.cluster.on_node("sed", "-i", VARIABLE, MANIFEST, node=node)
        found.install(release.folder, IMAGE)
        until(found.cluster.calm, 400, lambda: f"the release does not adopt: {found.state()}")
        found.use()
        if "KSO_RECORD_STATE" in os.environ:
            states.record(sandbox, release.version)
        yield found


@pytest.mark.timeout(2400, func_only=True)
def test_an_upgrade_and_a_downgrade_in_the_middle_of_rollouts_lose_no_pod(
    upgraded: Upgraded,
) -> None:
    cluster = upgraded.cluster
    with Load(cluster.api) as load:
        first = upgraded.begin_rollout()
        upgraded.install(REPOSITORY, DEVELOPMENT_IMAGE)
        upgraded.finish_rollout(first)

        history = cluster.plugin("history", "-o", "json")
        assert history.returncode == 0, history.stderr
        shown = {one["revision"] for one in json.loads(history.stdout)}
        assert {1, first} <= shown, "the revisions of the release are read"

        second = upgraded.begin_rollout()
        # CRDs stay: docs/versions.md.
        upgraded.install(upgraded.release.folder, IMAGE, definitions=False)
        upgraded.finish_rollout(second)
        back = cluster.profile("LowNodeUtilization")
        assert back.outcome == "installed", back.message

        upgraded.install(REPOSITORY, DEVELOPMENT_IMAGE)
        until(cluster.calm, 200, lambda: f"no rest: {upgraded.state()}")
        assert cluster.latest == back.revision, "an upgrade alone rolls nothing out"
    waits, lost = load.finish()
    waits.sort()
    print(f"{len(waits)} pods bound, {lost} lost; longest wait {waits[-1]:.1f} s")
    assert (lost, load.refused) == (0, 0)


def test_what_the_release_adopted_is_kept(upgraded: Upgraded) -> None:
    cluster = upgraded.cluster
    for node in cluster.sandbox.nodes:
        pid, _ = cluster.scheduler(node)
        assert "TZ=Europe/Berlin" in Path(f"/proc/{pid}/environ").read_text().split("\0")


def test_the_upgraded_cluster_reports_versions_that_fit(upgraded: Upgraded) -> None:
    done = upgraded.cluster.plugin("version")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The versions fit." in done.stdout


def test_the_configuration_is_undone_to_a_revision_of_the_release(upgraded: Upgraded) -> None:
    cluster = upgraded.cluster
    before = cluster.latest
    done = cluster.plugin("rollout", "undo", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    until(lambda: cluster.latest > before and cluster.calm(), 400, upgraded.state)
    assert cluster.schedules() < 60
