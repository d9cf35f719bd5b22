"""etcd, kube-apiserver and kube-controller-manager as processes of the host.

They are not static pods as kubeadm's are: nothing here depends on how they are run, and a control
plane that needs neither root nor nodes is what most integration tests want.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from cluster import paths, pki, processes
from cluster.api import Api, wait
from cluster.console import SandboxError
from cluster.model import (
    API_SERVICE_ADDRESS,
    MANAGED,
    OPENSHIFT,
    SERVICE_NETWORK,
    pod_network,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cluster.api import Object
    from cluster.model import Node, Sandbox

DAEMONS = ("etcd", "kube-apiserver", "kube-controller-manager")

_START_TIMEOUT = 300.0


def start(sandbox: Sandbox, binaries: Mapping[str, Path]) -> Api:
    """Start what does not run, wait until the API server is ready, and create what kubeadm would.

    Raises:
        SandboxError: A component does not come up.
    """
    processes.spawn(sandbox, "etcd", [binaries["etcd"], *_etcd(sandbox)])
    processes.spawn(sandbox, "kube-apiserver", [binaries["kube-apiserver"], *_apiserver(sandbox)])
    api = Api(sandbox)
    wait(lambda: api.ready() or bool(_dead(sandbox)), _START_TIMEOUT, lambda: _trouble(sandbox))
    if _dead(sandbox):
        raise SandboxError(_trouble(sandbox))
    manager = binaries["kube-controller-manager"]
    processes.spawn(sandbox, "kube-controller-manager", [manager, *_controller_manager(sandbox)])
    _create_objects(sandbox, api)
    return api


def make_certificates(sandbox: Sandbox) -> None:
    """Make the cluster's certificates and the kubeconfigs that are used on the host."""
    folder = sandbox.state / "pki"
    authority = pki.Authority(folder, "ca")
    front_proxy = pki.Authority(folder, "front-proxy-ca")
    pki.service_account_keys(folder)
    hosts = ["127.0.0.1", str(sandbox.gateway), str(API_SERVICE_ADDRESS), "localhost"]
    hosts += ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    hosts += ["kubernetes.default.svc.cluster.local"]
    authority.issue("apiserver", "kube-apiserver", hosts=hosts)
    authority.issue(
        "apiserver-kubelet-client", "kube-apiserver-kubelet-client", organization="system:masters"
    )
    front_proxy.issue("front-proxy-client", "front-proxy-client")
    admin = authority.issue("admin", "kubernetes-admin", organization="system:masters")
    authority.issue("scheduler", "system:kube-scheduler")
    manager = authority.issue("controller-manager", "system:kube-controller-manager")
    for path, user, credentials in (
        (sandbox.kubeconfig, "kubernetes-admin", admin),
        (_manager_kubeconfig(sandbox), "system:kube-controller-manager", manager),
    ):
        content = pki.kubeconfig(sandbox.server, authority.certificate, user, credentials)
        paths.write_atomically(path, content, 0o600)


def _manager_kubeconfig(sandbox: Sandbox) -> Path:
    return sandbox.state / "pki" / "controller-manager.conf"


def _etcd(sandbox: Sandbox) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in sandbox.etcd_ports)
    return [
        f"--data-dir={sandbox.state / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _apiserver(sandbox: Sandbox) -> list[str]:
    folder = sandbox.state / "pki"
    # Nodes and pods come in over the bridge; a control plane alone listens on loopback.
    bind, advertise = "127.0.0.1", "127.0.0.1"
    routing = []
    if sandbox.nodes:
        bind, advertise = "0.0.0.0", str(sandbox.gateway)
        # Without kube-proxy, webhooks are called at the addresses of Pods.
        routing = ["--enable-aggregator-routing=true"]
    return [
        *routing,
        f"--etcd-servers=http://127.0.0.1:{sandbox.etcd_ports[0]}",
        f"--bind-address={bind}",
        f"--advertise-address={advertise}",
        f"--secure-port={sandbox.api_port}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder}/apiserver.crt",
        f"--tls-private-key-file={folder}/apiserver.key",
        f"--client-ca-file={folder}/ca.crt",
        f"--kubelet-client-certificate={folder}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={folder}/apiserver-kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--proxy-client-cert-file={folder}/front-proxy-client.crt",
        f"--proxy-client-key-file={folder}/front-proxy-client.key",
        f"--requestheader-client-ca-file={folder}/front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={folder}/sa.pub",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-bootstrap-token-auth=true",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        f"--audit-policy-file={paths.TEMPLATES / 'audit-policy.yaml'}",
        f"--audit-log-path={sandbox.state / 'logs/audit.log'}",
        "--profiling=false",
    ]


_IDLE_CONTROLLERS = (
    "-cronjob-controller",
    "-horizontal-pod-autoscaler-controller",
    "-persistentvolume-attach-detach-controller",
    "-persistentvolume-expander-controller",
)
"""Off, because they poll (some every 100 ms) for what a sandbox has not: metrics, attachable
disks."""

_WITHOUT_KUBELETS = ("-ttl-controller",)
"""Off as well where there are no kubelets: it writes to every Node whenever there are many more."""

_FOREVER = "8760h"
"""How long Nodes without a kubelet keep their reported state without heartbeats."""


def _controller_manager(sandbox: Sandbox) -> list[str]:
    folder = sandbox.state / "pki"
    kubeconfig = _manager_kubeconfig(sandbox)
    off = _IDLE_CONTROLLERS if sandbox.nodes else (*_IDLE_CONTROLLERS, *_WITHOUT_KUBELETS)
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={sandbox.controller_manager_port}",
        f"--cert-dir={folder}",
        f"--client-ca-file={folder}/ca.crt",
        f"--requestheader-client-ca-file={folder}/front-proxy-ca.crt",
        f"--root-ca-file={folder}/ca.crt",
        f"--cluster-signing-cert-file={folder}/ca.crt",
        f"--cluster-signing-key-file={folder}/ca.key",
        f"--service-account-private-key-file={folder}/sa.key",
        "--use-service-account-credentials=true",
        f"--controllers=*,bootstrapsigner,tokencleaner,{','.join(off)}",
        "--leader-elect=false",
        "--profiling=false",
        *([] if sandbox.nodes else [f"--node-monitor-grace-period={_FOREVER}"]),
    ]


def _create_objects(sandbox: Sandbox, api: Api) -> None:
    """What kubeadm leaves behind in the API: its own configuration."""
    if sandbox.platform == MANAGED:
        return
    template = string.Template((paths.TEMPLATES / "cluster-configuration.yaml").read_text())
    configuration = template.substitute(
        version=sandbox.kubernetes,
        endpoint=sandbox.node_server.removeprefix("https://"),
        pods=pod_network(sandbox.slot),
        services=SERVICE_NETWORK,
    )
    api.create(
        "/api/v1/namespaces/kube-system/configmaps",
        {
            "metadata": {"name": "kubeadm-config"},
            "data": {"ClusterConfiguration": configuration},
        },
    )


def marks(node: Node, platform: str) -> Object:
    """What kubeadm adds to a Node once the kubelet has registered it.

    The kubelet may not set these labels itself. Nor can the Node be made before it comes: a kubelet
    that finds one without capacity refuses its static pods for good.
    """
    labels = {
        "node-role.kubernetes.io/control-plane": "",
        **({"node-role.kubernetes.io/master": ""} if platform == OPENSHIFT else {}),
        "node.kubernetes.io/exclude-from-external-load-balancers": "",
    }
    socket = "unix:///run/containerd/containerd.sock"
    return {
        "metadata": {
            "labels": labels if node.control_plane else {},
            "annotations": {"kubeadm.alpha.kubernetes.io/cri-socket": socket},
        }
    }


def taints(sandbox: Sandbox, node: Node) -> list[Object]:
    """The taint that keeps workloads away from the control plane, which the kubelet registers.

    OpenShift's has another name, and no node has it in a cluster without workers.
    """
    if not node.control_plane:
        return []
    if sandbox.platform == OPENSHIFT:
        workers = any(not one.control_plane for one in sandbox.nodes)
        return [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}] * workers
    return [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]


def _dead(sandbox: Sandbox) -> list[str]:
    return [name for name in ("etcd", "kube-apiserver") if not processes.alive(sandbox, name)]


def _trouble(sandbox: Sandbox) -> str:
    """Why the API server is not ready, from the log of the component that failed."""
    component = (_dead(sandbox) or ["kube-apiserver"])[0]
    return f"{component} did not come up:\n{processes.log_tail(sandbox, component)}"
