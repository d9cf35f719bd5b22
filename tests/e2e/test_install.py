"""The operator is installed as documented, used, and removed: it leaves no trace.

Both ways have the same cluster, one after the other: the second one finds what the first one left.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster import helm, operator
from cluster.api import ApiError
from cluster.console import run
from cluster.observe import CLUSTEROPERATOR, until

from .conftest import NAME_TO_LEAVE, REPOSITORY, Cluster, up

_SECTION = (REPOSITORY / "docs/operations.md").read_text().partition("## Uninstall\n")[2]
BY_HELM, BY_KUBECTL, LEFTOVERS = re.findall(r"```\n(.*?)```", _SECTION, re.DOTALL)
INSTALL = (
    "helm install kube-scheduler-operator deploy/helm --namespace kube-system --wait --timeout 3m"
)
APPLY = (
    "kubectl apply --server-side -k crds\n"
    "kubectl wait --for condition=Established --timeout 30s crd --all\n"
    "kubectl apply --server-side -k deploy/kubeadm\n"
)
FILES = (
    "find /etc/kubernetes -printf '%p %y %m %U:%G %l\\n' | sort; "
    "find /etc/kubernetes -type f -print0 | sort -z | xargs -0 sha256sum"
)
FLEETING = ("events", "componentstatuses")  # expire by themselves; are not objects
RENEWED = ("leases",)  # of which only the existence is compared

Key = tuple[str, str, str]


@dataclass
class Installation:
    """A cluster that knows what it was like before."""

    cluster: Cluster
    programs: tuple[Path, ...]  # the folders of kubectl and Helm
    home: Path  # where these keep their caches
    files: str  # the node's files as they were
    objects: dict[Key, Any]  # the API's objects as they were

    def shell(self, script: str) -> str:
        """Run documented commands, from the top of the checkout."""
        path = os.pathsep.join([*map(str, self.programs), os.environ.get("PATH", "")])
        environment = {
            **os.environ,
            "PATH": path,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.cluster.sandbox.kubeconfig),
        }
        return run("sh", "-ec", script, env=environment, cwd=REPOSITORY, timeout=400)

    def use(self) -> None:
        """Adopt, roll an edit out, schedule a pod."""
        cluster = self.cluster
        until(cluster.calm, 180, lambda: f"no rest: {_status(cluster)}")
        until(lambda: cluster.cluster_operator("Available")[0] == "True", 60, "not Available")
        line = cluster.profile("HighNodeUtilization")
        assert line.outcome == "installed", line.message
        assert "--config=" in cluster.scheduler()[1]
        cluster.schedules()
        found = self.shell(LEFTOVERS)
        for ours in (
            "customresourcedefinition",
            "configmap/config",
            "pod/",
            "lease",
            "clusterrole",
        ):
            assert ours in found, "what looks for leftovers would find them"

    def is_as_it_was(self) -> None:
        """Nothing of the operator is left, and what it replaced runs."""
        cluster = self.cluster
        assert files(cluster) == self.files
        until(lambda: not self.changed(), 60, lambda: f"left in the API: {self.changed()}")
        assert self.shell(LEFTOVERS) == ""
        with pytest.raises(ApiError, match="404"):
            cluster.api.request("GET", CLUSTEROPERATOR)
        assert "--config=" not in cluster.scheduler()[1], "the stock scheduler runs"
        cluster.schedules()

    def changed(self) -> list[str]:
        """Objects that are new, gone or different."""
        now, before = objects(self.cluster), self.objects
        return sorted(" ".join(key) for key in {*now, *before} if now.get(key) != before.get(key))


def files(cluster: Cluster) -> str:
    """Every file and folder of the node's /etc/kubernetes: content, mode, owner."""
    return cluster.on_node("sh", "-c", FILES)


def objects(cluster: Cluster) -> dict[Key, Any]:
    """Everything that the API lists: kind, namespace and name -> all but metadata and status."""
    api = cluster.api
    groups = api.request("GET", "/apis")["groups"]
    places = ["/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups)]
    found: dict[Key, Any] = {}
    for place in places:
        for resource in api.request("GET", place)["resources"]:
            name = resource["name"]
            if "list" not in resource["verbs"] or name in FLEETING:
                continue
            for item in api.request("GET", f"{place}/{name}")["items"]:
                metadata = item["metadata"]
                key = (f"{place}/{name}", metadata.get("namespace", ""), metadata["name"])
                kept = {k: v for k, v in item.items() if k not in ("metadata", "status")}
                found[key] = None if name in RENEWED else kept
    return found


def _status(cluster: Cluster) -> Any:
    try:
        return cluster.status
    except ApiError as error:
        return error


def _has_all(cluster: Cluster) -> bool:
    """Whether controllers have done for namespaces and nodes what they do in their own time."""
    nodes = cluster.api.request("GET", "/api/v1/nodes")["items"]
    taints = [taint["key"] for node in nodes for taint in node["spec"].get("taints", ())]
    if any(key.startswith("node.kubernetes.io/") for key in taints):
        return False
    namespaces = cluster.api.request("GET", "/api/v1/namespaces")["items"]
    names = {each["metadata"]["name"] for each in namespaces}
    return all(
        names
        == {
            each["metadata"]["namespace"]
            for each in cluster.api.request("GET", f"/api/v1/{kind}")["items"]
            if each["metadata"]["name"] == name
        }
        for kind, name in (("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"))
    )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    program = helm.provide()
    with up(NAME_TO_LEAVE, 1, 0, with_operator=False) as sandbox:
        operator.load_image(sandbox)
        cluster = Cluster(sandbox)
        cluster.schedules()  # so that whatever is made at first use is there
        until(lambda: _has_all(cluster), 60, "the controllers do not make what is in any cluster")
        programs = (sandbox.state / "bin", program.parent)
        home = tmp_path_factory.mktemp("home")
        yield Installation(cluster, programs, home, files(cluster), objects(cluster))


@pytest.mark.presubmit
@pytest.mark.timeout(900, func_only=True)
def test_helm_uninstalls_without_remains(installation: Installation) -> None:
    installation.shell(INSTALL)
    installation.use()
    print(installation.shell(BY_HELM))
    installation.is_as_it_was()


@pytest.mark.timeout(900, func_only=True)
def test_kubectl_uninstalls_without_remains(installation: Installation) -> None:
    installation.shell(APPLY)
    installation.use()
    print(installation.shell(BY_KUBECTL))
    installation.is_as_it_was()


@pytest.mark.presubmit
def test_the_documentation_has_the_commands_of_these_tests() -> None:
    assert shlex.split(BY_HELM)[:3] == ["helm", "uninstall", "kube-scheduler-operator"]
    assert "managementState" in BY_KUBECTL
    assert "api-resources" in LEFTOVERS
    overview = (REPOSITORY / "README.md").read_text()
    assert all(line in overview for line in APPLY.splitlines() if "apply" in line)
    assert INSTALL.partition(" --wait")[0] in overview
