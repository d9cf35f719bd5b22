"""Objects and files that make a sandbox look like OpenShift to the scheduler's operator.

Its kinds and the objects that other operators would have made; and a bootstrap machine, whose
scheduler places the first pods and which is switched off when the control plane has its own.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import images, node_files, nodes, openshift_kinds, paths, pki, processes
from cluster.api import Api, ApiError, wait
from cluster.console import SandboxError, run, step
from cluster.observe import scheduler_processes

if TYPE_CHECKING:
    from cluster.api import Object
    from cluster.model import Node, Sandbox

VERSION = "4.20.0-sandbox"
"""Of the payload; FeatureGate has one list of gates for each."""

IMAGE = f"registry.example/release:{VERSION}"
"""What the ClusterVersion shows as the image of the payload, which does not exist."""

CLIENT_CERTIFICATE = "kube-scheduler-client-cert-key"
_MANAGED = "openshift-config-managed"
MONITORING = "openshift-monitoring"
_NAMESPACES = (
    "openshift-config", _MANAGED, "openshift-console", "openshift-dns", "openshift-etcd",
    MONITORING, "openshift-user-workload-monitoring",
)  # fmt: skip
"""Those of other operators, to which this one's manifests and the tests of OpenShift's refer."""
_GROUP = "/apis/config.openshift.io/v1"
_TEMPLATES = paths.TEMPLATES / "openshift"
VERSION_OPERATOR = "version-operator"
"""The daemon that keeps the release applied."""

_PYTHON = paths.REPOSITORY / ".venv/bin/python"
_PROGRAM = paths.REPOSITORY / ".venv/bin/kube-scheduler-operator"
_MANIFEST = "kube-scheduler-pod.yaml"
REVISION = 5
"""Of OpenShift's own operator: the scheduler that ``install_scheduler`` puts on a node."""

_REVISION_DIRECTORY = f"kube-scheduler-pod-{REVISION}"
_RESOURCES = "/etc/kubernetes/static-pod-resources"
"""All revisions on the node, and the mounted one in the container."""

_CERTIFICATES = "/etc/kubernetes/static-pod-certs"
_CONFIG = "configmaps/config/config.yaml"
_KUBECONFIG = "configmaps/scheduler-kubeconfig/kubeconfig"
_PAIR = f"secrets/{CLIENT_CERTIFICATE}"

_GATES = {
    "enabled": ["NodeInclusionPolicyInPodTopologySpread", "AdminNetworkPolicy"],
    "disabled": ["SchedulerAsyncAPICalls", "RouteExternalCertificate"],
}
"""Of each kind one that kube-scheduler 1.34 to 1.37 knows, and one that only OpenShift does."""

_BOOTSTRAP_TIMEOUT = 180.0
_STOP_TIMEOUT = 60.0


def create_objects(sandbox: Sandbox, api: Api) -> None:
    """Create the kinds, and everything that the operator takes as given."""
    kubectl = (sandbox.state / "bin/kubectl", f"--kubeconfig={sandbox.kubeconfig}")
    kinds = (*openshift_kinds.definitions(), paths.TEMPLATES / "prometheus-operator.yaml")
    run(*kubectl, "apply", "--server-side", *(f"--filename={file}" for file in kinds))
    run(*kubectl, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
    for namespace in _NAMESPACES:
        api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    run(*kubectl, "apply", "--server-side", "-f", _TEMPLATES / "network.yaml")
    accounts = f"/api/v1/namespaces/{MONITORING}/serviceaccounts"
    api.create(accounts, {"metadata": {"name": "prometheus-k8s"}})
    single = sum(node.control_plane for node in sandbox.nodes) == 1
    topology = "SingleReplica" if single else "HighlyAvailable"
    gates = {kind: [{"name": name} for name in found] for kind, found in _GATES.items()}
    for plural, kind, name, spec, status in (
        ("apiservers", "APIServer", "cluster", {}, {}),
        ("infrastructures", "Infrastructure", "cluster", {}, {
            "apiServerInternalURI": sandbox.node_server, "apiServerURL": sandbox.server,
            "controlPlaneTopology": topology, "infrastructureTopology": topology,
        }),
        ("featuregates", "FeatureGate", "cluster", {}, {
            "featureGates": [{"version": VERSION, **gates}],
        }),
        ("clusterversions", "ClusterVersion", "version", {"clusterID": str(uuid.uuid4())}, {
            "availableUpdates": [], "desired": {"version": VERSION, "image": IMAGE},
            "observedGeneration": 1, "versionHash": "",
        }),
    ):  # fmt: skip
        _create(api, plural, {"kind": kind, "metadata": {"name": name}, "spec": spec}, status)
    folder = sandbox.state / "pki"
    for name, authority in (
        ("kube-apiserver-server-ca", "ca"),
        ("default-ingress-cert", "ingress"),
    ):
        text = pki.Authority(folder, authority).certificate.read_text()
        path = f"/api/v1/namespaces/{_MANAGED}/configmaps"
        api.create(path, {"metadata": {"name": name}, "data": {"ca-bundle.crt": text}})
    api.create(f"/api/v1/namespaces/{_MANAGED}/secrets", client_certificate(sandbox, "scheduler"))


def client_certificate(sandbox: Sandbox, name: str) -> Object:
    """The Secret with which schedulers identify themselves, with the pair NAME of the sandbox."""
    authority = pki.Authority(sandbox.state / "pki", "ca")
    pair = authority.issue(name, "system:kube-scheduler")
    keys = ("tls.crt", "tls.key")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": CLIENT_CERTIFICATE, "namespace": _MANAGED},
        "type": "kubernetes.io/tls",
        "data": {
            key: base64.b64encode(path.read_bytes()).decode()
            for key, path in zip(keys, pair, strict=True)
        },
    }


def _create(api: Api, plural: str, obj: Object, status: Object) -> None:
    path = f"{_GROUP}/{plural}"
    api.create(path, {"apiVersion": "config.openshift.io/v1", **obj})
    if status:
        name = obj["metadata"]["name"]
        api.request("PATCH", f"{path}/{name}/status", {"status": status})


def install_release(sandbox: Sandbox, overlay: Path) -> None:
    """Render the release's manifests, and keep them applied from now on.

    Raises:
        SandboxError: the operator's program is not there yet, or a manifest cannot be rendered.
    """
    if not _PYTHON.exists():
        raise SandboxError("a release is rendered with the operator's libraries: run hack/setup")
    program = (_PYTHON, paths.REPOSITORY / "hack/sandbox", "release", "--name", sandbox.name)
    run(*program, "--render", overlay)
    processes.terminate(sandbox, VERSION_OPERATOR)  # it may have the code of before
    processes.spawn(sandbox, VERSION_OPERATOR, program)


def write_bootstrap(sandbox: Sandbox) -> None:
    """Put what `render` makes on the bootstrap machine, as OpenShift's installer does.

    Raises:
        SandboxError: the operator's program is not there yet.
    """
    if not _PROGRAM.exists():
        raise SandboxError("the bootstrap pod is rendered by the operator itself: run hack/setup")
    kubernetes = node_files.root(sandbox, sandbox.bootstrap) / "etc/kubernetes"
    manifest = _bootstrap_manifest(sandbox)
    if manifest.exists():
        return
    authority = pki.Authority(sandbox.state / "pki", "ca")
    pair = authority.issue("scheduler", "system:kube-scheduler")
    text = pki.kubeconfig(sandbox.node_server, authority.certificate, "system:kube-scheduler", pair)
    operand = images.hyperkube_name(sandbox.kubernetes)
    with tempfile.TemporaryDirectory() as folder:
        assets, made = Path(folder, "assets/tls"), Path(folder, "made")
        assets.mkdir(parents=True)
        paths.write_atomically(Path(folder, "assets/auth/kubeconfig"), text, 0o600)
        config = made / "kube-scheduler-config.yaml"
        run(
            _PROGRAM, "render", f"--asset-input-dir={assets}", f"--asset-output-dir={made}",
            f"--config-output-file={config}", f"--manifest-image={operand}",
        )  # fmt: skip
        paths.write_atomically(kubernetes / "bootstrap-secrets/kubeconfig", text, 0o600)
        (kubernetes / "bootstrap-configs").mkdir(exist_ok=True)
        shutil.copy(config, kubernetes / "bootstrap-configs")
        kubectl = (sandbox.state / "bin/kubectl", f"--kubeconfig={sandbox.kubeconfig}")
        run(*kubectl, "apply", "--server-side", "-f", made / "manifests")
        source = made / "bootstrap-manifests/kube-scheduler-pod.yaml"
        paths.write_atomically(manifest, source.read_text(), 0o600)


def install_scheduler(sandbox: Sandbox, node: Node) -> None:
    """Put a scheduler on a node as the installer of OpenShift's own operator does.

    It has the number of a revision in its label and in the name of the directory that it mounts,
    its certificates are in a directory of all revisions, and other containers are beside it: here
    they only wait, with the command lines of OpenShift's.
    """
    import yaml

    source, target = (
        node_files.root(sandbox, one) / "etc/kubernetes" for one in (sandbox.bootstrap, node)
    )
    resources = target / "static-pod-resources"
    directory, pair = resources / _REVISION_DIRECTORY, resources / "kube-scheduler-certs" / _PAIR
    data = client_certificate(sandbox, "scheduler")["data"]
    for key, text in data.items():
        paths.write_atomically(pair / key, base64.b64decode(text).decode(), 0o600)
    kubeconfig = yaml.safe_load((source / "bootstrap-secrets/kubeconfig").read_text())
    kubeconfig["users"][0]["user"] = {
        "client-certificate": f"{_CERTIFICATES}/{_PAIR}/tls.crt",
        "client-key": f"{_CERTIFICATES}/{_PAIR}/tls.key",
    }
    configuration = source / "bootstrap-configs/kube-scheduler-config.yaml"
    config = yaml.safe_load(configuration.read_text())
    config["clientConnection"]["kubeconfig"] = f"{_RESOURCES}/{_KUBECONFIG}"
    pod = json.dumps(_pod_of_openshifts_operator(sandbox, node))
    for path, text in (
        (directory / _CONFIG, json.dumps(config)),
        (directory / _KUBECONFIG, json.dumps(kubeconfig)),
        (directory / _MANIFEST, pod),
        (target / "manifests" / _MANIFEST, pod),
    ):
        paths.write_atomically(path, text, 0o600)


def _pod_of_openshifts_operator(sandbox: Sandbox, node: Node) -> Object:
    namespace, name = sandbox.scheduler_pod(node)
    mounts = [
        {"name": "resource-dir", "mountPath": _RESOURCES},
        {"name": "cert-dir", "mountPath": _CERTIFICATES},
    ]
    kubeconfig = f"{_RESOURCES}/{_KUBECONFIG}"
    syncers = f"{_RESOURCES}/configmaps/kube-scheduler-cert-syncer-kubeconfig/kubeconfig"
    program = "cluster-kube-scheduler-operator"
    scheduler = {
        "name": "kube-scheduler",
        "image": images.hyperkube_name(sandbox.kubernetes),
        "command": ["hyperkube", "kube-scheduler"],
        "args": [
            f"--config={_RESOURCES}/{_CONFIG}", "--cert-dir=/var/run/kubernetes",
            f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
        ],
        "ports": [{"containerPort": 10259}],
        "readinessProbe": {"httpGet": {"scheme": "HTTPS", "port": 10259, "path": "healthz"}},
        "volumeMounts": mounts,
    }  # fmt: skip
    waiting = {
        "kube-scheduler-cert-syncer": [
            program, "cert-syncer", f"--kubeconfig={syncers}", f"--namespace={namespace}",
        ],
        "kube-scheduler-recovery-controller": [
            "/bin/bash", "-c", f"exec {program} cert-recovery-controller --kubeconfig={syncers}",
        ],
    }  # fmt: skip
    others = [
        {"name": name, "image": images.PAUSE, "command": ["/pause", *words], "volumeMounts": mounts}
        for name, words in waiting.items()
    ]
    port = {"name": "wait-for-host-port", "image": images.PAUSE, "command": ["/pause", "-v"]}
    paths_of_volumes = {"resource-dir": _REVISION_DIRECTORY, "cert-dir": "kube-scheduler-certs"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name.removesuffix(f"-{node.name}"),
            "namespace": namespace,
            "labels": {
                "app": "openshift-kube-scheduler", "scheduler": "true", "revision": str(REVISION),
            },
            "annotations": {"kubectl.kubernetes.io/default-container": "kube-scheduler"},
        },
        "spec": {
            "initContainers": [port],
            "containers": [scheduler, *others],
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "volumes": [
                {"name": volume, "hostPath": {"path": f"{_RESOURCES}/{folder}"}}
                for volume, folder in paths_of_volumes.items()
            ],
        },
    }  # fmt: skip


def end_bootstrap(sandbox: Sandbox) -> None:
    """Switch the bootstrap machine off as soon as every control-plane node has a scheduler.

    Raises:
        SandboxError: they do not get one.
    """
    api = Api(sandbox)
    wanted = sum(node.control_plane for node in sandbox.nodes)
    found = {"is": "nothing"}

    def over() -> bool:
        path = "/apis/operator.openshift.io/v1/kubeschedulers/cluster"
        try:
            entries = api.request("GET", path).get("status", {}).get("nodeStatuses", [])
        except ApiError:
            return False
        found["is"] = str(entries)
        return sum(bool(entry.get("currentRevision")) for entry in entries) == wanted

    if not nodes.runs(sandbox, sandbox.bootstrap):
        return
    with step("schedulers of their own; the bootstrap machine goes"):
        wait(over, _BOOTSTRAP_TIMEOUT, lambda: f"no schedulers; node statuses: {found['is']}")
        switch_off_bootstrap(sandbox)


def switch_off_bootstrap(sandbox: Sandbox) -> None:
    """Remove the bootstrap machine and its Node."""
    _stop_bootstrap_scheduler(sandbox)
    nodes.power_off(sandbox, sandbox.bootstrap)
    Api(sandbox).request("DELETE", f"/api/v1/nodes/{sandbox.bootstrap.name}")


def _stop_bootstrap_scheduler(sandbox: Sandbox) -> None:
    """Remove its manifest, as OpenShift's installer does.

    It gives its Lease back, which would otherwise expire after 137 s without a scheduler at work.
    """
    _bootstrap_manifest(sandbox).unlink(missing_ok=True)
    wait(
        lambda: not scheduler_processes(sandbox, sandbox.bootstrap),
        _STOP_TIMEOUT,
        lambda: "the scheduler of the bootstrap machine does not end",
    )


def _bootstrap_manifest(sandbox: Sandbox) -> Path:
    kubernetes = node_files.root(sandbox, sandbox.bootstrap) / "etc/kubernetes"
    return kubernetes / "manifests" / _MANIFEST
