"""On a cluster laid out by kubeadm the operator is installed as documented, used, and removed.

All ways have the same cluster, one after the other: each finds what the one before left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster import images, nodes, operator_image
from cluster.api import ApiError
from cluster.observe import CLUSTEROPERATOR, until

from ..conftest import NAME_TO_LEAVE, PODS, REPOSITORY, up
from ..documented import blocks, commands
from .installation import Installation, files, prepared, programs

OVERLAY_TAG = "of-an-overlay"
LEFTOVERS = ("customresourcedefinition", "configmap/config", "pod/", "lease", "clusterrole")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with (
        up(NAME_TO_LEAVE, 1, 0, with_operator=False) as sandbox,
        prepared(sandbox) as cluster,
    ):
        yield Installation(cluster, programs(sandbox), tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def files_before(installation: Installation) -> str:
    return files(installation.cluster)


def use(installation: Installation) -> None:
    """Adopt, roll an edit out, schedule a pod."""
    cluster = installation.cluster
    installation.is_available()
    until(cluster.calm, 180, lambda: f"no rest: {cluster.status}")
    line = cluster.profile("HighNodeUtilization")
    assert line.outcome == "installed", line.message
    assert "--config=" in cluster.scheduler()[1]
    cluster.schedules()
    found = installation.shell(commands("remains"))
    for ours in LEFTOVERS:
        assert ours in found, "what looks for leftovers would find them"


def is_as_it_was(installation: Installation, files_before: str) -> None:
    """Nothing of the operator is left, and what it replaced runs."""
    cluster = installation.cluster
    assert files(cluster) == files_before
    installation.api_is_as_it_was()
    with pytest.raises(ApiError, match="404"):
        cluster.api.request("GET", CLUSTEROPERATOR)
    assert "--config=" not in cluster.scheduler()[1], "the stock scheduler runs"
    cluster.schedules()


@pytest.mark.presubmit
@pytest.mark.timeout(900, func_only=True)
def test_helm_uninstalls_without_remains(installation: Installation, files_before: str) -> None:
    print(installation.shell(commands("install helm kubeadm")))
    use(installation)
    print(installation.shell(commands("uninstall helm")))
    is_as_it_was(installation, files_before)


@pytest.mark.timeout(900, func_only=True)
def test_kubectl_uninstalls_without_remains(installation: Installation, files_before: str) -> None:
    installation.shell(commands("install kustomize kubeadm"))
    use(installation)
    print(installation.shell(commands("uninstall kustomize kubeadm")))
    is_as_it_was(installation, files_before)


@pytest.mark.timeout(900, func_only=True)
def test_an_overlay_decides_the_image_of_all_pods_and_the_program_uninstalls(
    installation: Installation, files_before: str, archive: Path, tmp_path: Path
) -> None:
    cluster = installation.cluster
    name = f"{images.OPERATOR.rpartition(':')[0]}:{OVERLAY_TAG}"
    image = replace(operator_image.build(), reference=name)
    nodes.load_images(cluster.sandbox, cluster.node, [image])
    (tmp_path / "kube-scheduler-operator").symlink_to(REPOSITORY)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    text = blocks()["overlay"].replace("REGISTRY/", "localhost/").replace("v0.1.0", OVERLAY_TAG)
    (overlay / "kustomization.yaml").write_text(text)
    installation.shell(
        commands("install kustomize kubeadm").replace("-k deploy/kubeadm", f"-k {overlay}")
    )
    use(installation)
    installation.is_all_well(archive)
    pods = cluster.api.request("GET", PODS)["items"]
    of_operator = {
        container["image"]
        for pod in pods
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
        if "kube-scheduler-operator" in container["image"]
    }
    assert of_operator == {name}, "also of installers and guards"
    lines = commands("uninstall kustomize kubeadm").splitlines()
    after = next(number for number, line in enumerate(lines) if "deploy/admission" in line)
    print(installation.shell("kube-scheduler-operator uninstall --keep-crds"))
    print(installation.shell("\n".join(lines[after:])))
    is_as_it_was(installation, files_before)
