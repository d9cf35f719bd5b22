"""What the operator learns of its cluster besides what it watches."""

from __future__ import annotations

import asyncio

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED, Platform
from kube_scheduler_operator.base.recognition import NodeMarks, Remembered, decide, recognize
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES
from kube_scheduler_operator.operator.engine import discovery
from kube_scheduler_operator.operator.engine.discovery import Discovery
from kube_scheduler_operator.operator.engine.followed_version import FollowedVersion
from kube_scheduler_operator.operator.engine.options import OperatorOptions

from ...kube.conftest import FakeApi
from ...kube.conftest import api as api


def unchanged() -> None:
    """Wakes no one."""


@pytest.mark.parametrize(
    ("recorded", "answered", "followed", "newer"),
    [
        ("", "v1.36.1-eks-1", "v1.36.1-eks-1", ""),
        ("v1.36.1-eks-1", "v1.36.1-eks-1", "v1.36.1-eks-1", ""),
        ("v1.35.4-eks-1", "v1.36.1-eks-1", "v1.35.4-eks-1", "v1.36.1-eks-1"),
        ("v1.36.1-eks-1", "v1.35.4-eks-1", "v1.35.4-eks-1", ""),
        pytest.param("v1.20.0", "v1.35.4-eks-1", "v1.35.4-eks-1", "", id="forged-or-too-old"),
        pytest.param("x" * 10, "v1.35.4-eks-1", "v1.35.4-eks-1", "", id="not-a-version"),
    ],
)
async def test_a_new_leader_continues_from_the_version_that_was_followed(
    api: FakeApi, recorded: str, answered: str, followed: str, newer: str
) -> None:
    """Not from the one that it read when it started, which may be of before an upgrade."""
    if recorded:
        data = {"platform": "managed", "kubernetesVersion": recorded}
        api.put(CONFIG_MAPS, names.PLATFORM_RECORD, MANAGED.target_namespace, data=data)
    found = Discovery(OperatorOptions(None, MANAGED, Settings()), changed=unchanged)
    found.version = FollowedVersion("v1.33.0")

    async def version(api: ApiClient, stop: asyncio.Event) -> str:
        return answered

    found._answered_version = version  # type: ignore[method-assign]
    async with ApiClient(api.credentials(), field_manager="me") as client:
        await found.recall(client, asyncio.Event())
    assert (found.version.text, found.version.newer) == (followed, newer)


def _undecided(monkeypatch: pytest.MonkeyPatch, chosen: Platform | None) -> Discovery:
    """An operator that started before there was a node."""
    monkeypatch.setattr(discovery, "DECIDE_SECONDS", 0.01)
    nothing = recognize(infrastructure=False, nodes=[])
    decision = decide(chosen, nothing, Remembered())
    options = OperatorOptions(None, decision.platform, Settings(), decision, chosen=chosen)
    return Discovery(options, changed=unchanged)


def _eks_node(api: FakeApi) -> None:
    api.put(NODES, "a", labels={"eks.amazonaws.com/nodegroup": "x"})


async def test_nodes_that_appear_later_name_the_provider(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, stop = _undecided(monkeypatch, MANAGED), asyncio.Event()
    api.served |= {NODES}
    async with ApiClient(api.credentials(), field_manager="me") as client:
        deciding = asyncio.create_task(found.decide(client, stop))
        await asyncio.sleep(0.2)
        assert not deciding.done(), "there is no node yet"
        _eks_node(api)
        await asyncio.wait_for(deciding, 20)
    assert found.decision is not None
    assert found.decision.used.provider == "EKS"
    assert not stop.is_set()


async def test_nodes_that_show_another_platform_end_the_process(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its container starts again, for that platform."""
    found, stop = _undecided(monkeypatch, None), asyncio.Event()
    api.served |= {NODES}
    _eks_node(api)
    async with ApiClient(api.credentials(), field_manager="me") as client:
        await asyncio.wait_for(found.decide(client, stop), 20)
    assert stop.is_set()


async def test_a_decided_platform_needs_no_further_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _undecided(monkeypatch, MANAGED)
    marks = recognize(infrastructure=False, nodes=[NodeMarks("a")])
    found.decision = decide(MANAGED, marks, Remembered())
    await asyncio.wait_for(found.decide(None, asyncio.Event()), 1)  # type: ignore[arg-type]
