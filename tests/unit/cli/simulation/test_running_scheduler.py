"""What a simulation runs comes from objects that no tenant writes; a label proves nothing.

A tenant has the ClusterRole `edit` in one namespace, also in that of a SecondaryScheduler.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED
from kube_scheduler_operator.cli.cluster.scheduler_contents import read_contents
from kube_scheduler_operator.cli.simulation.running_scheduler import (
    Operand,
    RunningConfiguration,
    RunningSchedulers,
    running_schedulers,
)
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.resource import CONFIG_MAPS
from kube_scheduler_operator.operator.secondary.content import (
    SecondaryContent,
    config_map,
    content_of,
)

from ..conftest import IMAGE, Cluster
from .secondary_scheduler import FORGED, REAL, SPACE, Schedulers

OWN = Operand(IMAGE, ("kube-scheduler",))

Asked = Callable[[str | None], Awaitable[RunningConfiguration]]


@pytest.fixture
def schedulers(cluster: Cluster) -> Schedulers:
    return Schedulers(cluster)


@pytest.fixture
async def client(schedulers: Schedulers) -> Any:
    path = str(schedulers.cluster.kubeconfig)
    async with ApiClient(find(path), field_manager="test") as made:
        yield made


@pytest.fixture
def read(client: ApiClient) -> Callable[[], Awaitable[RunningSchedulers]]:
    return lambda: running_schedulers(client, KUBEADM)


@pytest.fixture
def asked(client: ApiClient) -> Asked:
    async def ask(name: str | None) -> RunningConfiguration:
        return (await running_schedulers(client, KUBEADM)).of(name)

    return ask


async def test_what_runs_is_what_its_status_names(schedulers: Schedulers, asked: Asked) -> None:
    found = await asked("mine")
    assert found.config == schedulers.content.config
    assert (found.operand, found.doubts) == (Operand(REAL, ("kube-scheduler",)), ())
    own = await asked("default-scheduler")
    assert (own.operand, own.doubts) == (OWN, ())
    assert await asked(None) == own


@pytest.mark.parametrize("namespace", ["tenant", SPACE, KUBEADM.target_namespace])
async def test_a_config_map_with_labels_and_owner_counts_nowhere(
    schedulers: Schedulers, asked: Asked, namespace: str
) -> None:
    before = await asked("mine"), await asked("default-scheduler"), await asked("unknown")
    schedulers.cluster.put(CONFIG_MAPS, schedulers.forged(namespace))
    hashed = schedulers.content.hash
    labels = schedulers.config_map["metadata"]["labels"]
    shadow = schedulers.forged(namespace, labels=labels, name=f"shadow-config-{hashed}")
    schedulers.cluster.put(CONFIG_MAPS, shadow)
    after = await asked("mine"), await asked("default-scheduler"), await asked("unknown")
    assert after == before


async def test_a_tenants_scheduler_name_is_served_by_no_scheduler(
    schedulers: Schedulers, asked: Asked
) -> None:
    config = json.loads(schedulers.content.data[names.CONFIG_KEY])
    config["profiles"] = [{"schedulerName": "tenants"}]
    made = schedulers.forged("tenant")
    made["data"][names.CONFIG_KEY] = json.dumps(config)
    schedulers.cluster.put(CONFIG_MAPS, made)
    assert await asked("tenants") == await asked("default-scheduler")


@pytest.mark.parametrize("case", ["data", "owner", "no-owner", "gone"])
async def test_a_replaced_config_map_is_a_note_and_its_image_is_not_started(
    schedulers: Schedulers, asked: Asked, case: str
) -> None:
    name = schedulers.config_map["metadata"]["name"]
    schedulers.cluster.api.remove(CONFIG_MAPS, name, SPACE)
    if case == "data":
        schedulers.cluster.put(CONFIG_MAPS, schedulers.forged(SPACE, name=name))
    elif case != "gone":
        real = schedulers.config_map
        owner = {**real["metadata"]["ownerReferences"][0], "uid": "another"}
        owners = [owner] if case == "owner" else []
        metadata = {**real["metadata"], "ownerReferences": owners}
        schedulers.cluster.put(CONFIG_MAPS, {**real, "metadata": metadata})
    found = await asked("mine")
    assert (found.operand, found.config) == (OWN, None)
    assert found.unknown == (
        f"the configuration of SecondaryScheduler mine is not known: there is no ConfigMap "
        f"{SPACE}/{name} with the owner and the content that its status names"
    )


async def test_a_content_with_another_image_than_the_status_is_not_started(
    schedulers: Schedulers, asked: Asked
) -> None:
    schedulers.put(image="registry.invalid/other:v1.35.4")
    found = await asked("mine")
    assert found.config == schedulers.content.config
    assert found.operand == OWN
    assert found.doubts == (
        f'the image of SecondaryScheduler mine is not started: its content has the image "{REAL}", '
        'but its status has "registry.invalid/other:v1.35.4" for it',
    )


async def test_a_content_with_another_command_than_the_spec_is_not_started(
    schedulers: Schedulers, asked: Asked
) -> None:
    """The short hash of a content can be searched for, so the command has to agree as well."""
    made = schedulers.forged(SPACE)
    spec = json.loads(made["data"][names.POD_KEY])
    spec["containers"][0]["image"] = REAL
    data = {**made["data"], names.POD_KEY: json.dumps(spec), "image": REAL}
    made = config_map(schedulers.request, SecondaryContent(data))
    schedulers.cluster.put(CONFIG_MAPS, made)
    schedulers.put(configHash=content_of(made).hash)  # as if it had the hash of the real content
    found = await asked("mine")
    assert found.operand == OWN
    assert found.doubts == (
        "the image of SecondaryScheduler mine is not started: its content has the command "
        '"sh -c forge", but spec.command is "kube-scheduler"',
    )


async def test_without_a_scheduler_that_can_be_verified_the_operators_version_is_started(
    schedulers: Schedulers, asked: Asked
) -> None:
    schedulers.cluster.kubescheduler({})
    schedulers.put(image=FORGED)
    found = await asked("mine")
    assert (found.operand, len(found.doubts)) == (None, 1)


async def test_schedulers_that_cannot_be_read_are_a_note(
    schedulers: Schedulers, read: Callable[[], Awaitable[RunningSchedulers]]
) -> None:
    schedulers.cluster.api.fail(403, path="/secondaryschedulers", reason="Forbidden")
    found = await read()
    assert found.of("mine").operand == OWN
    assert found.unread.startswith("SecondarySchedulers are left out: ")


async def test_a_scheduler_name_that_two_claim_is_that_of_the_first(
    schedulers: Schedulers, read: Callable[[], Awaitable[RunningSchedulers]]
) -> None:
    schedulers.put(profiles=[{"schedulerName": "default-scheduler"}, {"schedulerName": "mine"}])
    found = await read()
    assert found.of("default-scheduler") == found.control_plane
    assert [running.names for running in found.all] == [("default-scheduler",), ("mine",)]


async def test_where_the_provider_runs_the_scheduler_another_one_is_made_of_scheduler(
    schedulers: Schedulers, client: ApiClient
) -> None:
    assert (await running_schedulers(client, MANAGED)).made_of_scheduler == ""
    metadata = schedulers.obj["metadata"]
    schedulers.obj["metadata"] = {**metadata, "labels": {names.MANAGED_BY_LABEL: names.PROGRAM}}
    schedulers.put()
    found = await running_schedulers(client, MANAGED)
    assert found.made_of_scheduler == "SecondaryScheduler mine"
    assert found.control_plane.config is None
    assert "is the provider's" in found.control_plane.unknown
    assert (await running_schedulers(client, KUBEADM)).made_of_scheduler == ""


async def test_a_scheduler_without_a_leader_schedules_nothing(
    schedulers: Schedulers, read: Callable[[], Awaitable[RunningSchedulers]]
) -> None:
    schedulers.cluster.lease(SPACE, "mine", age=0)
    schedulers.cluster.lease(KUBEADM.operand_lease_namespace, KUBEADM.operand_lease_name, age=600)
    idle = (await read()).idle
    assert list(idle) == ["default-scheduler"]
    assert "has not renewed it since" in idle["default-scheduler"]
    schedulers.cluster.api.fail(403, path="/leases", times=None, reason="Forbidden")
    unknown = (await read()).idle
    assert set(unknown) == {"default-scheduler", "mine"}
    assert all("is not known" in why for why in unknown.values())


async def test_contents_are_found_although_a_tenant_shadows_them(
    schedulers: Schedulers, client: ApiClient
) -> None:
    labels = schedulers.config_map["metadata"]["labels"]
    real = schedulers.config_map
    settings = {names.ACCEPTED_SETTINGS_ANNOTATION: '{"scheduler": {}, "kubescheduler": {}}'}
    for name in ("a-first", "z-last"):
        metadata = {**real["metadata"], "name": name, "labels": labels, "annotations": settings}
        schedulers.cluster.put(CONFIG_MAPS, {**real, "metadata": metadata})
        forged = schedulers.forged(SPACE, name=f"{name}-too", labels=labels)
        schedulers.cluster.put(CONFIG_MAPS, forged)
    (found,) = await read_contents(client, {**schedulers.obj, "status": schedulers.status})
    assert found.parsed is not None
    assert found.parsed.image == REAL
    assert found.inputs is None, "settings of a copy would be written by rollout undo"


async def test_the_commands_that_read_contents_use_the_real_one(
    schedulers: Schedulers,
) -> None:
    hashed = schedulers.content.hash
    labels = schedulers.config_map["metadata"]["labels"]
    for name in ("a-first", "z-last"):
        made = schedulers.forged(SPACE, name=name, labels=labels)
        schedulers.cluster.put(CONFIG_MAPS, made)
    run = schedulers.cluster.run
    history = json.loads((await run("history", "--scheduler", "mine", "-o", "json")).out)
    assert [(one["configuration"], one["exists"]) for one in history] == [(hashed, True)]
    assert (await run("diff", hashed[:6], "--scheduler", "mine")).code == 0
    assert (await run("plugins", "--scheduler", "mine")).code == 0
