"""`kubectl scheduler pprof`: on, fetched with the least of rights, and off again whatever happens.

The port-forward is a WebSocket as the kubelet serves it (v4.channel.k8s.io), to a real TLS server
with a certificate that cannot be verified.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.commands import pprof
from kube_scheduler_operator.cli.rollout import follow_rollout
from kube_scheduler_operator.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    KUBE_SCHEDULERS,
    LEASES,
    PODS,
    SERVICE_ACCOUNTS,
)
from kube_scheduler_operator.serving.certificate import ServingCertificate

from ..conftest import PORTFORWARD, Cluster, content, relay, scheduler_pod

KINDS = (SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)


@pytest.mark.parametrize(
    ("overrides", "on", "off"),
    [
        (None, {"enableProfiling": True}, None),
        ({"parallelism": 8}, {"parallelism": 8, "enableProfiling": True}, {"parallelism": 8}),
        ({"enableProfiling": False}, {"enableProfiling": True}, {"enableProfiling": False}),
    ],
)
def test_profiling_is_switched_by_one_override_and_back(overrides: Any, on: Any, off: Any) -> None:
    before = {"spec": {"unsupportedConfigOverrides": overrides} if overrides else {}}
    switched = pprof.switched(before, value=True)
    assert switched is not None
    assert switched["spec"]["unsupportedConfigOverrides"] == on
    back = pprof.switched(switched, value=pprof.override(before))
    assert back is not None
    assert back["spec"].get("unsupportedConfigOverrides") == off
    assert back["spec"] == before["spec"]


def test_what_is_on_already_is_not_written() -> None:
    on = {"spec": {"unsupportedConfigOverrides": {"enableProfiling": True}}}
    assert pprof.switched(on, value=True) is None


def test_the_role_may_read_profiles_and_nothing_else() -> None:
    objects = pprof.access_objects("ns")
    assert objects[CLUSTER_ROLES]["rules"] == [
        {"nonResourceURLs": ["/debug/pprof/*"], "verbs": ["get"]}
    ]
    (subject,) = objects[CLUSTER_ROLE_BINDINGS]["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": pprof.NAME, "namespace": "ns"}


class World:
    """A cluster whose operator obeys, and a scheduler that serves profiles."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.statuses = [200]
        self.asked: list[tuple[str, str]] = []
        self.port = 0
        self.stall = False
        self.delay = 0.0
        self.recording = asyncio.Event()

    def kubescheduler(self) -> Any:
        return self.cluster.api.objects[KUBE_SCHEDULERS][None, "cluster"]

    def overrides(self) -> Any:
        return self.kubescheduler()["spec"].get("unsupportedConfigOverrides")

    async def profile(self, request: web.Request) -> web.Response:
        self.asked.append((request.path_qs, request.headers["Authorization"]))
        self.recording.set()
        if self.stall:
            await asyncio.Event().wait()
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return web.Response(body=b"profile" * 50_000 if status == 200 else b"no", status=status)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        assert request.query["ports"] == str(self.port)
        return await relay(request, self.port)

    async def token(self, request: web.Request) -> web.Response:
        return web.json_response({"status": {"token": "short-lived"}}, status=201)

    async def operate(self) -> None:
        """Roll every edit out: a revision, and the nodes on it."""
        number, seen = 1, None
        while True:
            spec = self.kubescheduler()["spec"]
            if spec != seen:
                # The operator has looked, but has made no revision of it yet.
                self.state(number)
                await asyncio.sleep(self.delay)
                number, seen = number + 1, spec
                self.cluster.revision(number, content(**spec))
                self.state(number)
            await asyncio.sleep(0.005)

    def state(self, number: int, **fields: Any) -> None:
        done = {"type": names.NODE_INSTALLER_PROGRESSING, "status": "False"}
        done |= {"reason": "AllNodesAtLatestRevision", "message": "there", **fields}
        generation = self.kubescheduler()["metadata"]["generation"]
        status = {"observedGeneration": generation, "latestAvailableRevision": number}
        status["nodeStatuses"] = [{"nodeName": "a", "currentRevision": number}]
        status["conditions"] = [done]
        self.cluster.api.put(KUBE_SCHEDULERS, "cluster", status=status)


@pytest.fixture
async def world(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.05)
    monkeypatch.setattr(pprof, "INTERVAL", 0.05)
    made = World(cluster)
    app = web.Application()
    app.router.add_get("/debug/pprof/{name}", made.profile)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tls = ServingCertificate(None, None).context
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    made.port = runner.addresses[0][1]
    cluster.api.served |= set(KINDS)
    cluster.api.routes |= {PORTFORWARD: made.forward, "/token": made.token}
    cluster.operator_runs()
    cluster.kubescheduler({"a": 1})
    cluster.revision(1, content())
    pod = scheduler_pod("a", 1)
    pod["spec"]["containers"][0]["args"].append(f"--secure-port={made.port}")
    cluster.put(PODS, pod)
    lease = {"name": KUBEADM.operand_lease_name, "namespace": KUBEADM.operand_lease_namespace}
    cluster.put(LEASES, {"metadata": lease, "spec": {"holderIdentity": "a_x"}})
    operator = asyncio.create_task(made.operate())
    yield made
    operator.cancel()
    await runner.cleanup()


def nothing_is_left(world: World) -> bool:
    return world.overrides() is None and not any(
        world.cluster.api.objects.get(kind) for kind in KINDS
    )


async def test_a_profile_is_fetched_and_nothing_is_left(world: World, tmp_path: Path) -> None:
    file = tmp_path / "heap"
    done = await world.cluster.run("pprof", "heap", "-o", str(file))
    assert (done.code, done.out) == (0, ""), done.err
    assert file.read_bytes() == b"profile" * 50_000
    assert world.asked == [("/debug/pprof/heap", "Bearer short-lived")]
    assert nothing_is_left(world)
    assert sorted(os.listdir(tmp_path)) == ["heap", "kubeconfig"]  # noqa: PTH208 - no half files
    written = [put.body["spec"] for put in world.cluster.api.requests("PUT", "kubeschedulers")]
    assert written == [{"unsupportedConfigOverrides": {"enableProfiling": True}}, {}]


async def test_the_end_of_the_rollout_before_is_not_taken_for_ours(
    world: World, tmp_path: Path
) -> None:
    world.delay = 0.4
    assert (await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))).code == 0
    assert nothing_is_left(world)


async def test_duration_of_the_recording(world: World, tmp_path: Path) -> None:
    arguments = ("pprof", "profile", "--seconds", "7", "--node", "a", "-o", str(tmp_path / "f"))
    assert (await world.cluster.run(*arguments)).code == 0
    assert world.asked[0][0] == "/debug/pprof/profile?seconds=7"


async def test_a_role_that_is_not_known_yet_is_waited_for(world: World, tmp_path: Path) -> None:
    world.statuses = [403, 403, 200]
    assert (await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))).code == 0
    assert len(world.asked) == 3


@pytest.mark.parametrize(
    ("status", "output"), [(404, "does not serve profiles"), (403, "authorization")]
)
async def test_a_refusal_is_explained_and_profiling_is_off_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, output: str
) -> None:
    monkeypatch.setattr(pprof, "AUTHORIZATION_DELAY", 0.1)
    world.statuses = [status]
    done = await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))
    assert done.code == 1
    assert output in done.err
    assert nothing_is_left(world)
    assert not (tmp_path / "f").exists()


async def test_without_the_right_to_forward_it_is_named(world: World, tmp_path: Path) -> None:
    world.cluster.api.fail(403, path=PORTFORWARD, reason="Forbidden", times=None)
    done = await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))
    assert done.code == 1
    assert 'resources: ["pods/portforward"], verbs: ["get", "create"]' in done.err
    assert nothing_is_left(world)


async def test_without_the_right_to_make_the_account_no_scheduler_is_restarted(
    world: World, tmp_path: Path
) -> None:
    output = 'clusterroles is forbidden: User "u" cannot create resource "clusterroles"'
    world.cluster.api.fail(403, method="POST", path="clusterroles", message=output)
    done = await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))
    assert done.code == 1
    assert 'resources: ["clusterroles"], verbs: ["create"]' in done.err
    assert nothing_is_left(world)
    assert world.cluster.api.requests("PUT") == []


async def test_an_edit_in_between_is_kept(world: World, tmp_path: Path) -> None:
    async def edit(request: web.Request) -> web.StreamResponse:
        spec = {"logLevel": "Debug", **world.kubescheduler()["spec"]}
        world.cluster.api.put(KUBE_SCHEDULERS, "cluster", spec=spec)
        return await world.forward(request)

    world.cluster.api.routes[PORTFORWARD] = edit
    assert (await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))).code == 0
    assert world.kubescheduler()["spec"] == {"logLevel": "Debug"}


async def test_what_was_on_before_stays_on(world: World, tmp_path: Path) -> None:
    on = {"unsupportedConfigOverrides": {"enableProfiling": True}}
    world.cluster.api.put(KUBE_SCHEDULERS, "cluster", spec=on)
    assert (await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))).code == 0
    assert world.kubescheduler()["spec"] == on
    assert world.cluster.api.requests("PUT") == []


@pytest.mark.timeout(600)  # a process that imports a lot, on any machine
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_an_interrupt_turns_it_off_again(
    world: World, tmp_path: Path, number: int, code: int
) -> None:
    world.stall = True
    # What is started in the background, as tests may be, ignores SIGINT, and so would this.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from kube_scheduler_operator.__main__ import kubectl_plugin as p; "
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{program}sys.exit(p(sys.argv[1:]))", "pprof", "profile"),
        *("-o", str(tmp_path / "f"), "--kubeconfig", str(world.cluster.kubeconfig)),
        stderr=asyncio.subprocess.PIPE,
    )
    waits = [asyncio.create_task(one) for one in (world.recording.wait(), process.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    assert world.overrides() == {"enableProfiling": True}
    process.send_signal(number)
    _, reported = await process.communicate()
    assert process.returncode == code
    assert nothing_is_left(world)
    assert b"disabling profiling" in reported
    assert not (tmp_path / "f").exists()


async def test_failure_to_disable_profiling_is_reported(world: World, tmp_path: Path) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        world.cluster.api.fail(403, method="PUT", times=None)
        return await world.forward(request)

    world.cluster.api.routes[PORTFORWARD] = refuse
    done = await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))
    assert done.code == 1
    assert "profiling is still ENABLED" in done.err


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--node", "mars"), "use --node with a"),
        (("-o", "/no/such/folder/f"), "directory /no/such/folder does not exist"),
    ],
)
async def test_wrong_usage_changes_nothing(
    world: World, tmp_path: Path, arguments: tuple[str, ...], output: str
) -> None:
    done = await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"), *arguments)
    assert done.code == 1
    assert output in done.err
    assert [seen.method for seen in world.cluster.api.seen if seen.method != "GET"] == []


async def test_unmanaged_schedulers_are_left_alone(world: World, tmp_path: Path) -> None:
    world.cluster.api.put(KUBE_SCHEDULERS, "cluster", spec={"managementState": "Unmanaged"})
    done = await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))
    assert done.code == 1
    assert "Unmanaged" in done.err
    assert world.cluster.api.requests("PUT") == []


@pytest.mark.parametrize(
    ("holder", "output"),
    [("bootstrap_x", "bootstrap_x holds Lease"), ("", "has no holder")],
)
async def test_without_a_leader_no_scheduler_is_restarted(
    world: World, tmp_path: Path, holder: str, output: str
) -> None:
    lease = {"name": KUBEADM.operand_lease_name, "namespace": KUBEADM.operand_lease_namespace}
    world.cluster.put(LEASES, {"metadata": lease, "spec": {"holderIdentity": holder}})
    done = await world.cluster.run("pprof", "heap", "-o", str(tmp_path / "f"))
    assert done.code == 1
    assert output in done.err
    assert [seen.method for seen in world.cluster.api.seen if seen.method != "GET"] == []
