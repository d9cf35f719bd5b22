"""The operator's watch of Nodes: control-plane nodes only, whichever of the labels they have."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.kopf.watcher import Watcher
from kube_scheduler_operator.kube.resource import NODES
from kube_scheduler_operator.kube.store import Store
from kube_scheduler_operator.operator.engine.intake import Intake
from kube_scheduler_operator.operator.engine.watches import watches

from .conftest import ApiServer
from .played_nodes import change

CONTROL_PLANE, MASTER = KUBEADM.node_selectors
BOTH, NEWER, OLDER, WORKER = (f"watched-{name}" for name in ("both", "newer", "older", "worker"))
LABELS = {
    BOTH: {CONTROL_PLANE: "", MASTER: ""},
    NEWER: {CONTROL_PLANE: ""},
    OLDER: {MASTER: "true"},
    WORKER: {},
}

pytestmark = [pytest.mark.presubmit, pytest.mark.usefixtures("nodes_of_ones_own")]


class World:
    """What the operator knows of the nodes of this test."""

    def __init__(self, api: ApiServer) -> None:
        self.api, self.store = api, Store()
        self.seen: set[str] = set()
        self.listed = asyncio.Event()
        intake = Intake(self.store, KUBEADM, lambda *, urgent: None)

        def event(resource: Any, kind: str, obj: Any) -> None:
            self.seen.add(obj["metadata"]["name"])
            intake.event(resource, kind, obj)

        self.watcher = Watcher(
            [each for each in watches(KUBEADM) if each.resource == NODES],
            on_event=event,
            on_listed=lambda _: self.listed.set(),
        )

    @property
    def known(self) -> set[str]:
        found = self.store.view().list(NODES)
        return {obj["metadata"]["name"] for obj in found} & LABELS.keys()

    async def label(self, node: str, **labels: str | None) -> None:
        keys = {"control_plane": CONTROL_PLANE, "master": MASTER}

        def edit(obj: Any) -> None:
            present = obj["metadata"].get("labels") or {}
            merged = {**present, **{keys[key]: value for key, value in labels.items()}}
            obj["metadata"]["labels"] = {k: v for k, v in merged.items() if v is not None}

        await asyncio.to_thread(change, self.api, f"/api/v1/nodes/{node}", "", edit)

    async def until_known(self, *nodes: str) -> None:
        async with asyncio.timeout(20):
            while self.known != set(nodes):  # noqa: ASYNC110 - the store has no event
                await asyncio.sleep(0.05)


async def test_nodes_with_one_of_the_labels_are_known_as_long_as_they_have_one(
    api_server: ApiServer,
) -> None:
    for name, labels in LABELS.items():
        api_server.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    world, stop = World(api_server), asyncio.Event()
    watching = asyncio.create_task(world.watcher.run(find(str(api_server.kubeconfig)), stop))
    try:
        await asyncio.wait_for(world.listed.wait(), 30)
        assert world.known == {BOTH, NEWER, OLDER}
        assert WORKER not in world.seen

        await world.label(BOTH, master=None)
        await world.label(NEWER, control_plane=None)
        await world.until_known(BOTH, OLDER)
        await world.label(NEWER, master="")
        await world.until_known(BOTH, NEWER, OLDER)
        await world.label(BOTH, control_plane=None, master="")
        await world.label(OLDER, control_plane="", master=None)
        await world.label(NEWER, master=None)
        await world.until_known(BOTH, OLDER)
        await world.label(NEWER, control_plane="")
        await world.label(WORKER, master="")
        await world.until_known(BOTH, NEWER, OLDER, WORKER)

        api_server.request("DELETE", f"/api/v1/nodes/{BOTH}")
        await world.until_known(NEWER, OLDER, WORKER)
    finally:
        stop.set()
        await watching
        for name in LABELS.keys() - {BOTH}:
            api_server.request("DELETE", f"/api/v1/nodes/{name}")
