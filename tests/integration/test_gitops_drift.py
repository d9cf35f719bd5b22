"""What Git has is applied again after the operator has run, by each way, and nothing changes.

The API server, kubectl and the operator are real; Argo CD's comparison is that of its own library
(hack/argo-diff). On kubeadm the operator writes `spec.observedConfig` of KubeScheduler; on managed
control planes it writes no field of any spec that is in Git.
"""

from __future__ import annotations

import copy
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import go_programs
from cluster.observe import KUBESCHEDULER

from . import test_gitops
from .conftest import REPOSITORY
from .played_cluster import GROUP, PlayedCluster, brought_up
from .test_managed import SCHEDULER

pytestmark = pytest.mark.timeout(600, func_only=True)

Object = dict[str, Any]

GIT: dict[str, Object] = {
    **{
        f"{GROUP}/{path}": test_gitops._object(path)
        for path in test_gitops.SPECS
    },
    SCHEDULER: {
        "apiVersion": "config.openshift.io/v1", "kind": "Scheduler",
        "metadata": {"name": "cluster"}, "spec": {"profile": "LowNodeUtilization"},
    },
    KUBESCHEDULER: {
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler",
        "metadata": {"name": "cluster"}, "spec": {"logLevel": "Normal"},
    },
}  # fmt: skip
"""What Git has, by the paths of its objects."""

WAYS: dict[str, tuple[str, ...]] = {
    "kubectl apply": (),
    "kubectl apply --server-side": ("--server-side", "--field-manager=git"),
    "Flux": ("--server-side", "--field-manager=kustomize-controller", "--force-conflicts"),
}
"""The options of `kubectl apply` that have the effect of a tool."""


class Managed(test_gitops.World):
    prefix = "gdm"


class Kubeadm(test_gitops.World):
    """Without control-plane nodes: the configuration is composed, and no node runs it."""

    prefix = "gdk"
    platform = "kubeadm"
    flags = PlayedCluster.flags
    named_image = True

    def open(self) -> None:
        PlayedCluster.open(self)
        self._renewing.start()

    @property
    def observed(self) -> Any:
        return self.get(KUBESCHEDULER)["spec"].get("observedConfig")


@pytest.fixture(scope="module", params=[Managed, Kubeadm], ids=["managed", "kubeadm"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Managed | Kubeadm]:
    kind = request.param
    with brought_up(kind, kind.prefix, tmp_path_factory.mktemp("operator")) as found:
        found.start()
        yield found


def applied(world: Managed | Kubeadm, *options: str, **annotations: str) -> list[Object]:
    """Apply what Git has, and return it once the operator has seen all of it."""
    git = copy.deepcopy(list(GIT.values()))
    for obj in git if annotations else ():
        obj["metadata"]["annotations"] = dict(annotations)
    world.kubectl("apply", *options, "-f", "-", text=yaml.safe_dump_all(git))
    world.wait(lambda: _seen(world), 60, world.log)
    world.wait(lambda: not _written(world, 3), 60, world.log)  # it removes what ran before
    return git


def _written(world: Managed | Kubeadm, seconds: float) -> list[str]:
    """What the operator writes in a time, without statuses."""
    world.proxy.arm(0, lambda: None, after=False)
    time.sleep(seconds)
    return [write for write in world.proxy.writes if "/status" not in write]


def _seen(world: Managed | Kubeadm) -> bool:
    own = [world.get(path) for path in GIT if path.startswith(GROUP)]
    if isinstance(world, Kubeadm) and not (world.observed or {}).get("profiles"):
        return False
    return all(
        obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"]
        for obj in own
    )


def specs(world: Managed | Kubeadm) -> dict[str, Any]:
    found = {path: world.get(path) for path in GIT}
    return {path: (obj["metadata"]["generation"], obj["spec"]) for path, obj in found.items()}


@pytest.mark.presubmit
@pytest.mark.parametrize("way", WAYS)
def test_applying_what_git_has_again_changes_nothing(world: Managed | Kubeadm, way: str) -> None:
    git = applied(world, *WAYS[way])
    before, text = specs(world), yaml.safe_dump_all(git)
    assert world.kubectl("diff", *WAYS[way], "-f", "-", text=text) == ""
    world.proxy.arm(0, lambda: None, after=False)
    world.kubectl("apply", *WAYS[way], "-f", "-", text=text)
    assert specs(world) == before
    time.sleep(5)
    assert [write for write in world.proxy.writes if "/status" not in write] == []
    assert specs(world) == before


# --- Argo CD -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def argo() -> Path:
    return go_programs.provide("argo-diff", "do without Argo CD's comparison")


def compared(program: Path, *comparisons: Object) -> list[Object]:
    """Whether each is out of sync, with the patch that a sync would send."""
    done = subprocess.run(
        [program],
        input=json.dumps(comparisons), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    found: list[Object] = json.loads(done.stdout)
    return found


@pytest.mark.presubmit
@pytest.mark.parametrize("by", ["kubectl apply", "kubectl apply --server-side"])
def test_argo_cd_finds_no_difference(world: Managed | Kubeadm, argo: Path, by: str) -> None:
    """Without a rule for differences: with what was applied last, and without it."""
    git = applied(world, *WAYS[by], **{"argocd.argoproj.io/tracking-id": "scheduling"})
    live = [world.get(path) for path in GIT]
    if by != "kubectl apply":
        for obj in live:
            key = "kubectl.kubernetes.io/last-applied-configuration"
            obj["metadata"]["annotations"].pop(key, None)
    pairs = [{"git": one, "cluster": other} for one, other in zip(git, live, strict=True)]
    assert [one["patch"] for one in compared(argo, *pairs) if one["outOfSync"]] == []


def test_argo_cd_ignores_an_exported_field_by_the_rule(
    world: Managed | Kubeadm, argo: Path
) -> None:
    """Git has an older observedConfig, or null, as in OpenShift's manifest."""
    application = yaml.safe_load(
        (REPOSITORY / "deploy/gitops/argocd/application.yaml").read_text(encoding="utf-8")
    )
    (rule,) = application["spec"]["ignoreDifferences"]
    assert (rule["group"], rule["kind"]) == ("operator.openshift.io", "KubeScheduler")
    applied(world)
    if not isinstance(world, Kubeadm):
        assert "observedConfig" not in world.get(KUBESCHEDULER)["spec"]
        return
    for exported in ({"percentageOfNodesToScore": 1}, None):
        git = copy.deepcopy(GIT[KUBESCHEDULER])
        git["spec"]["observedConfig"] = exported
        pair = {"git": git, "cluster": world.get(KUBESCHEDULER)}
        without, with_rule = compared(argo, pair, {**pair, "ignored": rule["jsonPointers"]})
        assert (without["outOfSync"], with_rule["outOfSync"]) == (True, False)
        assert list(without["patch"]["spec"]) == ["observedConfig"]


def test_replacing_kubescheduler_by_what_git_has_is_mended(world: Managed | Kubeadm) -> None:
    """`kubectl replace`, or the sync option Replace=true, removes what Git does not have."""
    git = applied(world)
    before = specs(world)[KUBESCHEDULER][1]
    world.kubectl("replace", "-f", "-", text=yaml.safe_dump(git[-1]))
    world.wait(lambda: specs(world)[KUBESCHEDULER][1] == before, 30, world.log)
