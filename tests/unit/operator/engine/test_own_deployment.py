"""The Pods that the operator creates have the image of its Deployment, wherever it was set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import DEPLOYMENTS
from kube_scheduler_operator.operator.engine.discovery import Discovery
from kube_scheduler_operator.operator.engine.options import OperatorOptions
from kube_scheduler_operator.operator.engine.own_deployment import operator_image

from ...kube.conftest import FakeApi
from ...kube.conftest import api as api

PROGRAM = ["kube-scheduler-operator", "operator"]


def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


@pytest.mark.parametrize(
    ("containers", "image"),
    [
        ([{"image": "own:1", "command": PROGRAM}], "own:1"),
        ([{"image": "mesh"}, {"image": "own:1", "command": [*PROGRAM, "--listen=x"]}], "own:1"),
        ([{"image": "own:1"}], "own:1"),
        ([{"name": "operator"}], ""),
        ([], ""),
    ],
)
def test_the_container_that_runs_the_operator_has_the_image(
    containers: Sequence[dict[str, Any]], image: str
) -> None:
    assert operator_image(deployment(*containers)) == image


@pytest.mark.parametrize(
    ("exists", "follows", "image"),
    [(True, True, "own:1"), (True, False, "chosen:1"), (False, True, "chosen:1")],
)
async def test_a_flag_or_variable_comes_first_and_out_of_cluster_the_default(
    api: FakeApi, exists: bool, follows: bool, image: str
) -> None:
    api.served |= {DEPLOYMENTS}
    if exists:
        spec = deployment({"image": "own:1", "command": PROGRAM})["spec"]
        name, namespace = KUBEADM.operator.deployment, KUBEADM.operator_namespace
        api.put(DEPLOYMENTS, name, namespace, spec=spec)
    settings = Settings(operator_image="chosen:1")
    options = OperatorOptions(None, KUBEADM, settings, follows_deployment=follows)
    found = Discovery(options, changed=lambda: None)

    async def version(api: ApiClient, stop: asyncio.Event) -> str:
        return "v1.35.4"

    found._answered_version = version  # type: ignore[method-assign]
    async with ApiClient(api.credentials(), field_manager="me") as client:
        uid = await found.read(client, asyncio.Event())
    assert bool(uid) is exists
    assert found.settings.operator_image == image
