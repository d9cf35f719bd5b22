"""The schedulers of control-plane nodes, as the commands read them."""

from __future__ import annotations

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.cluster.operands import list_operand_pods
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import NODES, PODS

from ...kube.conftest import FakeApi
from ...kube.conftest import api as api

ROLE = {"node-role.kubernetes.io/control-plane": ""}


def put_scheduler(api: FakeApi, node: str, name: str = "", image: str = "i") -> None:
    """A Pod with the labels of a scheduler's mirror Pod."""
    spec = {"nodeName": node, "containers": [{"name": "kube-scheduler", "image": image}]}
    labels = dict(KUBEADM.static_pod_labels)
    mirror = name or KUBEADM.mirror_pod_name(node)
    api.put(PODS, mirror, KUBEADM.operand_namespace, labels=labels, spec=spec)


async def listed(api: FakeApi) -> set[str]:
    async with ApiClient(api.credentials(), field_manager="test") as client:
        return set(await list_operand_pods(client, KUBEADM))


async def test_a_manifest_on_a_worker_is_not_a_scheduler_of_the_cluster(api: FakeApi) -> None:
    api.served |= {NODES, PODS}
    api.put(NODES, "cp", labels=ROLE)
    api.put(NODES, "worker")
    put_scheduler(api, "cp")
    put_scheduler(api, "worker", image="attacker/kube-scheduler:v9.9.9")
    put_scheduler(api, "cp", name="imitation", image="attacker/kube-scheduler:v9.9.9")
    assert await listed(api) == {"cp"}


async def test_who_may_not_read_nodes_sees_all_schedulers(api: FakeApi) -> None:
    api.served |= {NODES, PODS}
    api.put(NODES, "cp", labels=ROLE)
    put_scheduler(api, "cp")
    api.fail(403, path="/nodes", times=None)
    assert await listed(api) == {"cp"}
