from __future__ import annotations

import itertools
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from cluster import model, paths, releases
from cluster.console import SandboxError
from cluster.model import Sandbox
from cluster.scheduling import FREE_PORTS

KERNEL_INTERFACE_NAME = 15


def any_port(_: int) -> bool:
    return True


def make(name: str = "dev", slot: int = 0, control_planes: int = 1, workers: int = 0) -> Sandbox:
    return Sandbox(name, slot, model.make_nodes(name, control_planes, workers))


def test_nodes_are_named_like_kinds() -> None:
    names = [node.name for node in model.make_nodes("dev", 3, 2)]
    assert names == [
        "dev-control-plane",
        "dev-control-plane2",
        "dev-control-plane3",
        "dev-worker",
        "dev-worker2",
    ]


@pytest.mark.parametrize(("control_planes", "workers"), [(17, 0), (1, 16), (-1, 2), (0, -1)])
def test_a_number_of_nodes_that_cannot_be_is_refused(control_planes: int, workers: int) -> None:
    with pytest.raises(SandboxError, match="0 to 16 nodes"):
        model.make_nodes("dev", control_planes, workers)


@pytest.mark.parametrize("name", ["", "Dev", "-x", "x-", "1st", "a" * 21, "a/b", "..", "a b"])
def test_names_that_do_not_fit_a_host_name_are_refused(name: str) -> None:
    with pytest.raises(SandboxError, match="cannot name a sandbox"):
        model.check_name(name)


def test_addresses_of_all_slots_and_nodes_are_distinct() -> None:
    sandboxes = [make(f"s{slot}", slot, 3, 13) for slot in range(model.SLOTS)]
    networks = [box.network for box in sandboxes]
    networks += [box.pod_network(node) for box in sandboxes for node in box.nodes]
    networks.sort()
    assert all(not one.overlaps(other) for one, other in itertools.pairwise(networks))
    ports = [port for box in sandboxes for port in model.slot_ports(box.slot)]
    assert len(set(ports)) == len(ports)


def test_node_addresses_lie_in_the_nodes_network_and_are_not_the_hosts() -> None:
    box = make(slot=3, control_planes=2, workers=1)
    assert [str(box.address(node)) for node in box.nodes] == ["10.20.3.2", "10.20.3.3", "10.20.3.4"]
    assert str(box.gateway) == "10.20.3.1"
    assert [str(box.pod_network(node)) for node in box.nodes][:2] == [
        "10.35.1.0/24",
        "10.35.2.0/24",
    ]


def test_interface_names_fit_the_kernel() -> None:
    box = make("a" * 20, model.SLOTS - 1, 16)
    assert len(box.bridge) <= KERNEL_INTERFACE_NAME
    assert all(len(box.veth(node)) <= KERNEL_INTERFACE_NAME for node in box.nodes)


def test_the_lowest_free_slot_is_chosen() -> None:
    assert model.choose_slot({0, 1}, [], any_port, needs_network=True) == 2


@pytest.mark.parametrize("taken", ["10.20.0.0/24", "10.32.128.0/20", "10.20.0.128/25"])
def test_a_slot_whose_subnets_are_routed_elsewhere_is_passed_over(taken: str) -> None:
    networks = [IPv4Network(taken)]
    assert model.choose_slot((), networks, any_port, needs_network=True) == 1
    assert model.choose_slot((), networks, any_port, needs_network=False) == 0


def test_a_slot_with_a_busy_port_is_passed_over() -> None:
    busy = model.slot_ports(0)[2]
    assert model.choose_slot((), [], lambda port: port != busy, needs_network=True) == 1


def test_the_error_without_a_free_slot_lists_the_requirements() -> None:
    with pytest.raises(SandboxError, match=r"10\.20\.N\.0/24.*hack/sandbox status"):
        model.choose_slot((), [IPv4Network("10.0.0.0/8")], any_port, needs_network=True)


def test_a_saved_sandbox_is_read_back(state_root: Path) -> None:
    box = make("dev", 4, 3, 1)
    box.save()
    assert model.load("dev") == box


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "dev"}', '{"nodes": [{"x": 1}]}'])
def test_a_damaged_record_is_not_a_sandbox(state_root: Path, content: str) -> None:
    (state_root / "dev").mkdir()
    (state_root / "dev" / "sandbox.json").write_text(content)
    assert model.load("dev") is None
    with pytest.raises(SandboxError, match="there is no sandbox dev"):
        model.require("dev")


def test_the_error_for_an_unknown_node_lists_the_known_ones() -> None:
    with pytest.raises(SandboxError, match=r"no node nope; it has: dev-control-plane"):
        make().node("nope")


def test_the_bootstrap_machine_has_a_place_of_its_own() -> None:
    box = make("dev", 0, 3, 2)
    machine = box.bootstrap
    assert machine.name == "dev-bootstrap"
    assert not machine.control_plane
    addresses = {box.address(node) for node in (*box.nodes, machine)}
    assert len(addresses) == len(box.nodes) + 1
    assert box.pod_network(machine) not in {box.pod_network(node) for node in box.nodes}


def test_ports_that_programs_choose_are_not_those_of_sandboxes() -> None:
    ports = {port for slot in range(model.SLOTS) for port in model.slot_ports(slot)}
    assert ports.isdisjoint(FREE_PORTS)


def test_the_platform_and_the_version_are_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "state_root", lambda: tmp_path)
    for platform in model.PLATFORMS:
        made = Sandbox(platform, 0, (), platform, "v1.34.2")
        made.state.mkdir()
        made.save()
        assert model.load(platform) == made


def test_a_record_from_before_platforms_and_versions_is_of_the_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "state_root", lambda: tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old/sandbox.json").write_text('{"name": "old", "slot": 1, "nodes": []}')
    assert model.load("old") == Sandbox("old", 1, (), model.KUBEADM, releases.DEFAULT)
