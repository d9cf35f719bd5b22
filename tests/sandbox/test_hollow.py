"""Hollow nodes: they must be to kube-scheduler what a kubelet's are."""

from __future__ import annotations

import json
from ipaddress import IPv4Address

import pytest

from cluster import hollow


def test_a_node_is_as_large_as_a_kubelets_and_can_take_pods() -> None:
    node = hollow.node(41)
    assert 7_000 < len(json.dumps(node)) < 20_000
    conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    assert conditions.pop("Ready") == "True"
    assert set(conditions.values()) == {"False"}
    assert "taints" not in node["spec"]
    assert int(node["status"]["allocatable"]["cpu"][:-1]) < 1000 * int(
        node["status"]["capacity"]["cpu"]
    )


def test_nodes_differ_in_name_address_and_identity() -> None:
    nodes = [hollow.node(number) for number in range(300)]
    assert len({node["metadata"]["name"] for node in nodes}) == 300
    addresses = {node["status"]["addresses"][0]["address"] for node in nodes}
    assert len(addresses) == 300
    assert all(IPv4Address(address).is_loopback for address in addresses)
    assert len({node["status"]["nodeInfo"]["systemUUID"] for node in nodes}) == 300
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}) == 3


def test_some_images_are_on_all_nodes_and_some_are_not() -> None:
    images = [
        {image["names"][0] for image in hollow.node(number)["status"]["images"]}
        for number in range(20)
    ]
    assert len(set.intersection(*images)) == 20
    assert len(set.union(*images)) > 60


def test_the_first_failure_ends_what_is_done_in_parallel() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise ValueError(number)
        return number * 2

    assert hollow.in_parallel(work, range(3)) == [0, 2, 4]
    with pytest.raises(ValueError, match="3"):
        hollow.in_parallel(work, range(1000))
