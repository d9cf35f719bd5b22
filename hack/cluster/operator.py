"""Putting the operator into a sandbox: its image on the nodes, its manifests in the API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from cluster import nodes, operator_image, paths
from cluster.api import Api, ApiError, condition, wait
from cluster.console import run, say, step

if TYPE_CHECKING:
    from cluster.model import Sandbox

_CRDS = paths.REPOSITORY / "crds"
_MANIFESTS = paths.REPOSITORY / "deploy" / "kubeadm"
_DEPLOYMENT = "/apis/apps/v1/namespaces/{0}/deployments/{0}".format("kube-scheduler-operator")
_RENDER = ("kustomize", str(_MANIFESTS))
_TIMEOUT = 120.0


def deploy(sandbox: Sandbox) -> None:
    """Load the operator's image, apply its manifests, and wait until it is Available.

    Raises:
        SandboxError: It does not come up.
    """
    if not (_MANIFESTS / "kustomization.yaml").exists():
        say("  no operator: deploy/kubeadm is not there yet")
        return
    load_image(sandbox)
    api = Api(sandbox)
    with step("operator Available"):
        kubectl = (sandbox.state / "bin/kubectl", f"--kubeconfig={sandbox.kubeconfig}")
        apply = ("apply", "--server-side", "--force-conflicts")
        run(*kubectl, *apply, "-k", _CRDS)
        run(*kubectl, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        run(*kubectl, *apply, "-f", "-", stdin=_manifests(sandbox, run(*kubectl, *_RENDER)))
        wait(
            lambda: _available(api),
            _TIMEOUT,
            lambda: f"the operator did not become Available; see: {_pods_command(sandbox)}",
            every=0.5,
        )


def _manifests(sandbox: Sandbox, rendered: str) -> str:
    """The manifests, with no standby where there is no second control-plane node for it."""
    control_planes = sum(node.control_plane for node in sandbox.nodes)
    return rendered.replace("replicas: 2", f"replicas: {min(control_planes, 2)}")


def load_image(sandbox: Sandbox) -> None:
    """Build the operator's image and give it to all nodes that run.

    Workers need it too: a Deployment of a secondary scheduler, for example, may land on any node.
    """
    image = operator_image.build()
    with step("operator image on all nodes"), ThreadPoolExecutor() as pool:
        running = [node for node in sandbox.nodes if nodes.runs(sandbox, node)]
        list(pool.map(lambda node: nodes.load_images(sandbox, node, [image]), running))


def _available(api: Api) -> bool:
    try:
        deployment = api.request("GET", _DEPLOYMENT)
    except ApiError:
        return False
    current = deployment["metadata"]["generation"] == deployment.get("status", {}).get(
        "observedGeneration"
    )
    return current and condition(deployment, "Available") == "True"


def _pods_command(sandbox: Sandbox) -> str:
    return f"KUBECONFIG={sandbox.kubeconfig} kubectl -n kube-scheduler-operator describe pods"
