"""A provider's upgrade of the control plane, under a load of ten pods a second.

API server, controller manager and the provider's scheduler are replaced by those of the next minor
version; nodes keep their kubelets. The sandbox has one API server, so it is away for some seconds:
pods that it does not take meanwhile are counted apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.table import Row
from cluster import binaries, controlplane, images, nodes, processes, providers, releases
from cluster.api import Api, ApiError, Object, condition
from cluster.console import SandboxError, say
from cluster.load import Load
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, until

NAME = "managed-scheduler"
KIND = f"/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers/{NAME}"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-scheduler-operator/leases/{NAME}"
CLUSTER_OPERATOR = "/apis/config.openshift.io/v1/clusteroperators/kube-scheduler"
PATIENCE = 900.0

REPLACED = ("kube-controller-manager", providers.SCHEDULER, "kube-apiserver")
"""What a provider upgrades; etcd stays."""


def measure(sandbox: Sandbox, versions: Sequence[str], delay: float) -> Iterator[Row]:
    """Upgrade to each version in turn; `delay` is the operator's `--upgrade-delay` in seconds."""
    api = Api(sandbox)
    _set_delay(sandbox, api, delay)
    chosen = [releases.choose(version) for version in versions]
    for version in chosen:
        load_scheduler(sandbox, version)
    waits: list[float] = []
    lost, refused = 0, 0
    for version in chosen:
        with Load(api, scheduler=NAME, lease=LEASE) as load:
            time.sleep(5)
            began = time.monotonic()
            replace_control_plane(sandbox, version)
            away = time.monotonic() - began
            say(f"  the API server is {version} after {away:.1f} s")
            until(partial(runs, api, version), PATIENCE, lambda: _state(api))
            followed = time.monotonic() - began
            time.sleep(5)
        waited, unbound = load.finish()
        waits += waited
        lost += unbound
        refused += load.refused
        say(f"  schedulers are {version} after {followed:.1f} s; {_state(api)}")
        yield Row(f"schedulers follow to {version} ({delay:g} s of it wait)", [followed], "s", None)
    yield Row(f"pods created meanwhile: {len(waits)}; never bound", [float(lost)], "", 0.0)
    yield Row("pods that the API server did not take while it was away", [float(refused)], "", None)
    waits.sort()
    yield Row("creation to binding, median", [waits[len(waits) // 2]], "s", None)
    yield Row("creation to binding, 99th percentile", [waits[int(len(waits) * 0.99)]], "s", None)
    yield Row("creation to binding, longest", [waits[-1]], "s", None)


def load_scheduler(sandbox: Sandbox, version: str) -> None:
    """Give all nodes the image of a kube-scheduler, as the registry would."""
    found = binaries.provide(("kube-scheduler",), version)
    image = images.scheduler(found["kube-scheduler"], version)
    for node in sandbox.nodes:
        nodes.load_images(sandbox, node, [image])


def replace_control_plane(sandbox: Sandbox, version: str) -> None:
    """End the processes of the control plane but etcd, and start those of a version."""
    found = binaries.provide(binaries.CONTROL_PLANE, version)
    for component in REPLACED:
        processes.terminate(sandbox, component)
    _link(sandbox, found)
    controlplane.start(sandbox, found)
    providers.start_scheduler(sandbox)


def _link(sandbox: Sandbox, found: dict[str, Path]) -> None:
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        link = sandbox.state / "bin" / component
        link.unlink(missing_ok=True)
        link.symlink_to(found[component])


def runs(api: Api, version: str) -> bool:
    """Whether all Pods of the managed scheduler have this version, and it is Available."""
    try:
        found = api.request("GET", KIND)
        operator = api.request("GET", CLUSTER_OPERATOR)
    except ApiError:
        return False
    image = str(found.get("status", {}).get("image", ""))
    return (
        image.endswith(f":{version}")
        and condition(found, "Progressing") == "False"
        and condition(found, "Available") == "True"
        and condition(operator, "Degraded") == "False"
    )


def _state(api: Api) -> str:
    try:
        found = api.request("GET", KUBESCHEDULER)
    except ApiError as error:
        return str(error)
    raw: list[Object] = found.get("status", {}).get("conditions", [])
    texts = [
        f"{one['type']}={one['status']} {one.get('message', '')}"
        for one in raw
        if one["type"] in ("VersionSkew", "SchedulersAvailable")
        or (one["type"].endswith("Degraded") and one["status"] == "True")
    ]
    return "; ".join(texts)


def _set_delay(sandbox: Sandbox, api: Api, delay: float) -> None:
    """Restart the operator with another `--upgrade-delay`."""
    path = (
        f"/apis/apps/v1/namespaces/{sandbox.operator_namespace}/deployments/"
        f"{sandbox.operator_deployment}"
    )
    deployment = api.request("GET", path)
    container: Any = deployment["spec"]["template"]["spec"]["containers"][0]
    args = [arg for arg in container.get("args", []) if not arg.startswith("--upgrade-delay")]
    change = {"name": container["name"], "args": [*args, f"--upgrade-delay={delay:g}"]}
    template = {"spec": {"containers": [change]}}
    body = {"spec": {"template": template}}
    api.request("PATCH", path, body, content_type="application/strategic-merge-patch+json")

    def rolled() -> bool:
        found = api.request("GET", path)
        status = found.get("status", {})
        wanted = found["spec"].get("replicas", 1)
        counts = {status.get(key) for key in ("updatedReplicas", "replicas", "availableReplicas")}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return bool(seen and counts == {wanted})

    until(rolled, 180, "the operator did not restart")
    if not runs(api, sandbox.kubernetes):
        until(lambda: runs(api, sandbox.kubernetes), 120, lambda: _state(api))
    if not processes.alive(sandbox, providers.SCHEDULER):
        raise SandboxError("the provider's scheduler does not run")
