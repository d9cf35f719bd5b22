"""The real kubeadm in a sandbox: what it is given, and how its API servers are reached."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import images, kubeadm, load_balancer, model, node_files, releases
from cluster.archive import Image
from cluster.model import Sandbox
from cluster.scheduling import free_port

BOX = Sandbox("dev", 2, model.make_nodes("dev", 2, 1), kubernetes="v1.35.4", kubeadm=True)
FIRST, SECOND, WORKER = BOX.nodes


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The commands of kubeadm, none of which is run; nodes' files are below tmp_path."""
    commands: list[list[str]] = []
    monkeypatch.setattr(node_files, "root", lambda _, node: tmp_path / node.name)
    monkeypatch.setattr(
        kubeadm, "run_on", lambda _, node, *words: commands.append([node.name, *words])
    )
    for node in BOX.nodes:
        (tmp_path / node.name / "etc/kubernetes").mkdir(parents=True)
    return commands


def free_ports(count: int) -> set[int]:
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return found


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def test_init_configures_the_cluster_and_its_first_node(
    ran: list[list[str]], tmp_path: Path
) -> None:
    kubeadm._init(BOX, FIRST)
    assert ran == [["dev-control-plane", "init", "--config=/etc/kubernetes/kubeadm.yaml"]]
    init, cluster, kubelet = documents(tmp_path / FIRST.name / "etc/kubernetes/kubeadm.yaml")
    assert [init["kind"], cluster["kind"], kubelet["kind"]] == [
        "InitConfiguration", "ClusterConfiguration", "KubeletConfiguration"
    ]  # fmt: skip
    assert cluster["kubernetesVersion"] == "v1.35.4"
    assert cluster["controlPlaneEndpoint"] == f"{BOX.gateway}:{BOX.api_port}"
    assert "scheduler" not in cluster, "the scheduler is the stock one"
    assert init["skipPhases"] == ["addon"]


def test_a_control_plane_node_joins_with_certificates_and_a_worker_without(
    ran: list[list[str]], tmp_path: Path
) -> None:
    kubeadm._join(BOX, SECOND, FIRST)
    kubeadm._join(BOX, WORKER, FIRST)
    assert [" ".join(one[:3]) for one in ran] == [
        "dev-control-plane token create",
        "dev-control-plane init phase",
        "dev-control-plane2 join --config=/etc/kubernetes/kubeadm.yaml",
        "dev-control-plane token create",
        "dev-worker join --config=/etc/kubernetes/kubeadm.yaml",
    ]
    (second,) = documents(tmp_path / SECOND.name / "etc/kubernetes/kubeadm.yaml")
    (worker,) = documents(tmp_path / WORKER.name / "etc/kubernetes/kubeadm.yaml")
    assert f"--certificate-key={second['controlPlane']['certificateKey']}" in ran[1]
    assert second["controlPlane"]["localAPIEndpoint"]["advertiseAddress"] == str(
        BOX.address(SECOND)
    )
    assert "controlPlane" not in worker
    assert worker["nodeRegistration"]["name"] == "dev-worker"


def test_the_first_node_is_upgraded_with_apply_and_the_others_with_node(
    ran: list[list[str]], tmp_path: Path
) -> None:
    apply = kubeadm.upgrade_command(BOX, FIRST, "v1.36.3", first=True)
    node = kubeadm.upgrade_command(BOX, SECOND, "v1.36.3", first=False)
    assert (apply[2:4], node[2]) == (["apply", "--yes"], "node")
    assert apply[0] == node[0] == str(BOX.state / "kubeadm-v1.36.3")
    path = tmp_path / FIRST.name / "etc/kubernetes/kubeadm-upgrade.yaml"
    (configuration,) = documents(path)
    assert configuration["apply"]["kubernetesVersion"] == "v1.36.3"
    for part in ("apply", "node"):
        assert configuration[part]["skipPhases"] == ["addon"]


def test_no_page_gives_kubeadm_a_file_and_patches() -> None:
    """kubeadm refuses both flags at once."""
    repository = Path(__file__).parents[2]
    pages = [repository / "README.md", repository / "hack/README.md", *repository.glob("docs/*.md")]
    commands = [
        command
        for page in pages
        for command in re.findall(r"`(kubeadm [^`]*--(?:config|patches)[^`]*)`", page.read_text())
    ]
    assert commands
    assert [one for one in commands if "--config" in one and "--patches" in one] == []


def test_every_release_that_can_be_built_has_modules_of_kubeadm() -> None:
    folder = Path(kubeadm.__file__).parents[1] / "controlplane/kubeadm"
    for minor, version in releases.PINNED.items():
        modules = (folder / f"v1.{minor}.mod").read_text()
        assert f"k8s.io/kubernetes {version}\n" in modules
        assert f"k8s.io/kubernetes {version} " in (folder / f"v1.{minor}.sum").read_text()


def test_components_that_are_one_file_share_its_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "folder", lambda: tmp_path / "images")
    monkeypatch.setattr(images, "is_static", lambda _: True)
    (tmp_path / "controlplane").write_text("all of them")
    for name in ("etcd", "kube-scheduler"):
        (tmp_path / name).symlink_to("controlplane")
    (tmp_path / "kube-apiserver").write_text("it alone")

    def made(name: str) -> Image:
        return images.component(name, tmp_path / name, "v1.35.4", f"registry.example/{name}:x")

    scheduler, etcd, apiserver = made("kube-scheduler"), made("etcd"), made("kube-apiserver")
    assert etcd.layers[0] == scheduler.layers[0]
    assert [len(one.layers) for one in (scheduler, etcd, apiserver)] == [1, 2, 1]
    assert apiserver.layers[0] != scheduler.layers[0]
    assert etcd.entrypoint == ("/usr/local/bin/etcd",)
    assert etcd.reference == "registry.example/etcd:x"


def test_connections_go_to_ready_servers_in_turn_and_to_others_otherwise() -> None:
    balancer = load_balancer.LoadBalancer([("a", 1), ("b", 1), ("c", 1)])
    assert {balancer.order()[0][0] for _ in range(3)} == {"a", "b", "c"}
    balancer._ready = {("a", 1), ("c", 1)}
    assert {balancer.order()[0][0] for _ in range(6)} == {"a", "c"}
    assert all(balancer.order()[-1][0] == "b" for _ in range(3))


def test_a_connection_is_passed_on_past_a_server_that_refuses_it() -> None:
    closed, port, own = free_ports(3)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"echo " + await reader.read(100))
        writer.close()

    async def run() -> list[bytes]:
        backend = await asyncio.start_server(echo, "127.0.0.1", port)
        balancer = load_balancer.LoadBalancer([("127.0.0.1", closed), ("127.0.0.1", port)])
        serving = asyncio.create_task(balancer.serve(own, "127.0.0.1"))
        answers = []
        for _ in range(2):  # each of the two is the first once
            for attempt in range(50):
                try:
                    reader, writer = await asyncio.open_connection("127.0.0.1", own)
                    break
                except OSError:
                    assert attempt < 49
                    await asyncio.sleep(0.02)
            writer.write(b"hello")
            answers.append(await reader.read())
            writer.close()
        serving.cancel()
        backend.close()
        return answers

    assert asyncio.run(run()) == [b"echo hello"] * 2


def test_the_files_of_a_node_are_left_to_kubeadm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_files, "root", lambda *_: tmp_path)
    monkeypatch.setattr(node_files, "_snapshotter", lambda _: "overlayfs")
    node_files.write(BOX, FIRST)
    assert list((tmp_path / "etc/kubernetes").iterdir()) == []
    assert list((tmp_path / "var/lib/kubelet").iterdir()) == []
    assert node_files.containerd_config_path(BOX, FIRST).exists()
