"""A real API server with flags of one's own: etcd and kube-apiserver alone, for one test file.

The API server of all other tests has the gates of a cluster by default, with which it serves no
PodGroups.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from cluster import binaries, pki, releases

from .conftest import ApiServer, RefusedError

FORMS: Final = {36: "v1alpha2", 37: "v1beta1"}
"""The version of PodGroups by the minor version of Kubernetes."""
COMPOSITE: Final = "CompositePodGroup"
"""A feature gate, and the kind that it adds, from 1.37 on."""
COMPOSITE_FORM: Final = "v1alpha3"
_STARTING: Final = 300.0
_NO_CONTROLLERS: Final = "ServiceAccount,TaintNodesByCondition"
"""Admission plugins that only work with kube-controller-manager."""


def gates(version: str, *, composites: bool = False) -> str:
    """The feature gates with which groups are placed as a whole, for all components."""
    minor = releases.minor(version)
    more = ["GangScheduling", "WorkloadAwarePreemption"] if minor < 37 else []
    more += ["TopologyAwareWorkloadScheduling", COMPOSITE] if composites else []
    return ",".join(f"{name}=true" for name in ("GenericWorkload", *more))


@contextmanager
def grouped_api_server(
    version: str, folder: Path, *, composites: bool = False
) -> Iterator[ApiServer]:
    """Run one that serves PodGroups."""
    forms = [FORMS[releases.minor(version)], *([COMPOSITE_FORM] if composites else [])]
    served = ",".join(f"scheduling.k8s.io/{form}=true" for form in forms)
    flags = (
        f"--feature-gates={gates(version, composites=composites)}",
        f"--runtime-config={served}",
    )
    with bare_api_server(version, folder, flags) as server:
        yield server


@contextmanager
def bare_api_server(version: str, folder: Path, flags: Sequence[str]) -> Iterator[ApiServer]:
    """Run one with these flags."""
    programs = binaries.provide(["etcd", "kube-apiserver", "kube-scheduler"], version)
    client, peer, secure = (_free_port() for _ in range(3))
    etcd, url = f"http://127.0.0.1:{client}", f"https://127.0.0.1:{secure}"
    keys = folder / "pki"
    private, public = pki.service_account_keys(keys)
    authority = pki.Authority(keys, "ca")
    certificate, key = authority.issue("apiserver", "kube-apiserver", hosts=["127.0.0.1"])
    admin = authority.issue("admin", "kubernetes-admin", organization="system:masters")
    own = f"http://127.0.0.1:{peer}"
    with ExitStack() as stack:
        commands: list[list[str | Path]] = [
            [programs["etcd"], f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={etcd}",
             f"--advertise-client-urls={etcd}", f"--listen-peer-urls={own}",
             f"--initial-advertise-peer-urls={own}", f"--initial-cluster=default={own}",
             "--unsafe-no-fsync", "--log-level=error"],
            [programs["kube-apiserver"], f"--etcd-servers={etcd}", "--bind-address=127.0.0.1",
             f"--secure-port={secure}", f"--client-ca-file={authority.certificate}",
             f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
             "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
             "--authorization-mode=AlwaysAllow",
             "--service-account-issuer=https://kubernetes.default.svc",
             f"--service-account-key-file={public}",
             f"--service-account-signing-key-file={private}",
             f"--disable-admission-plugins={_NO_CONTROLLERS}",
             *flags],
        ]  # fmt: skip
        for command in commands:
            log = stack.enter_context((folder / f"{Path(command[0]).name}.log").open("wb"))
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        tls = ssl.create_default_context(cafile=authority.certificate)
        tls.load_cert_chain(*admin)
        kubeconfig = folder / "kubeconfig"
        content = pki.kubeconfig(url, authority.certificate, "kubernetes-admin", admin)
        kubeconfig.write_text(content)
        folder_of_programs = programs["kube-scheduler"].parent
        server = ApiServer(kubeconfig, folder_of_programs / "kubectl", folder_of_programs, url, tls)
        end = time.monotonic() + _STARTING
        while not _is_ready(server):
            assert time.monotonic() < end, f"the API server does not start, see {folder}"
            time.sleep(0.2)
        yield server


def _is_ready(server: ApiServer) -> bool:
    """Whether it answers, and has made the namespace default."""
    with suppress(OSError, RefusedError):
        server.request("GET", "/api/v1/namespaces/default")
        return True
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
