"""Putting the operator into a sandbox: its image on the nodes, its manifests in the API."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from cluster import nodes, openshift, operator_image, paths
from cluster.api import Api, ApiError, condition, wait
from cluster.console import run, step
from cluster.model import MANAGED, OPENSHIFT

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.model import Sandbox

_TIMEOUT = 120.0


def deploy(sandbox: Sandbox) -> None:
    """Load the operator's image, apply its manifests, and wait until it is Available.

    Raises:
        SandboxError: It does not come up.
    """
    load_image(sandbox)
    api = Api(sandbox)
    with step("operator Available"):
        if sandbox.platform == OPENSHIFT:
            openshift.install_release(sandbox, _overlay(sandbox))
        else:
            kubectl = (sandbox.state / "bin/kubectl", f"--kubeconfig={sandbox.kubeconfig}")
            apply = ("apply", "--server-side", "--force-conflicts")
            run(*kubectl, *apply, "-k", paths.REPOSITORY / "crds")
            run(*kubectl, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
            run(*kubectl, *apply, "-k", _overlay(sandbox))
        wait(
            lambda: _available(sandbox, api),
            _TIMEOUT,
            lambda: f"the operator did not become Available; see: {_pods_command(sandbox)}",
            every=0.5,
        )


def _overlay(sandbox: Sandbox) -> Path:
    """What a user of deploy/ would write for this cluster, in a folder of its own."""
    folder = sandbox.state / "deploy"
    base = paths.REPOSITORY / "deploy" / sandbox.platform
    managed = sandbox.platform == MANAGED
    places = sum(node.control_plane or managed for node in sandbox.nodes)
    document: dict[str, object] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(base.resolve(), folder.resolve())],
        # No standby where there is no second node for it.
        "replicas": [{"name": sandbox.operator_deployment, "count": min(places, 2)}],
    }
    if sandbox.platform == OPENSHIFT:
        monitoring = paths.REPOSITORY / "deploy/monitoring/openshift"
        document["components"] = [os.path.relpath(monitoring.resolve(), folder.resolve())]
    paths.write_atomically(folder / "kustomization.yaml", json.dumps(document, indent=2))
    return folder


def load_image(sandbox: Sandbox) -> None:
    """Build the operator's image and give it to all nodes that run.

    Workers need it too: a Deployment of a secondary scheduler, for example, may land on any node.
    """
    image = operator_image.build()
    with step("operator image on all nodes"), ThreadPoolExecutor() as pool:
        running = [node for node in sandbox.nodes if nodes.runs(sandbox, node)]
        list(pool.map(lambda node: nodes.load_images(sandbox, node, [image]), running))


def _available(sandbox: Sandbox, api: Api) -> bool:
    deployments = f"/apis/apps/v1/namespaces/{sandbox.operator_namespace}/deployments"
    try:
        deployment = api.request("GET", f"{deployments}/{sandbox.operator_deployment}")
    except ApiError:
        return False
    current = deployment["metadata"]["generation"] == deployment.get("status", {}).get(
        "observedGeneration"
    )
    return current and condition(deployment, "Available") == "True"


def _pods_command(sandbox: Sandbox) -> str:
    namespace = sandbox.operator_namespace
    return f"KUBECONFIG={sandbox.kubeconfig} kubectl -n {namespace} describe pods"
