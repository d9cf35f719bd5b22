"""Hollow nodes beside real ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from cluster import hollow

from .conftest import Cluster

NODE_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@contextmanager
def hollow_nodes(cluster: Cluster, count: int) -> Iterator[None]:
    """Nodes without machines, whose Leases are renewed as kubelets renew theirs."""
    names = hollow.create(cluster.api, count)
    over = threading.Event()

    def renew(name: str) -> None:
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        cluster.api.create(NODE_LEASES, {**kind, "metadata": {"name": name}, "spec": spec})
        cluster.api.request("PATCH", f"{NODE_LEASES}/{name}", {"spec": spec})

    def beat() -> None:
        while not over.wait(10):
            hollow.in_parallel(renew, names)

    hollow.in_parallel(renew, names)
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        hollow.remove(cluster.api)
