"""A tenant with the ClusterRole `edit` in a namespace decides no simulation of others.

The tenant's ConfigMaps are written with the tenant's own rights on a real API server. What would be
started is the Job that the command is about to create.
"""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.simulation.flags import add_simulation_flags
from kube_scheduler_operator.cli.simulation.in_cluster import JobSimulator
from kube_scheduler_operator.cli.simulation.run import Simulation, from_cluster
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.resource import SECONDARY_SCHEDULERS
from kube_scheduler_operator.operator.secondary.content import SecondaryContent, config_map
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults
from kube_scheduler_operator.simulate.job import job_of

from ..desired import desired_secondary
from .conftest import ApiServer

RUN = secrets.token_hex(3)
NAME = f"mine-{RUN}"
OTHER = f"unknown-{RUN}"
SPACE, TENANT, OPERATORS = f"schedulers-{RUN}", f"tenant-{RUN}", f"operators-{RUN}"
PLATFORM = replace(KUBEADM, operator_namespace=OPERATORS, target_namespace=OPERATORS)
USER = f"tenant-user-{RUN}"
REAL, FORGED = "registry.invalid/real:v1.35.4", "registry.invalid/forged:v1"
PERCENTAGE = 37
KIND = "/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers"

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]


class World:
    """The SecondaryScheduler, its content, and what the tenant writes.

    Attributes:
        obj: the SecondaryScheduler.
        real: the ConfigMap of its content.
    """

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        spec = {
            "namespace": SPACE,
            "image": REAL,
            "config": {"percentageOfNodesToScore": PERCENTAGE},
        }
        manifest = {
            "apiVersion": SECONDARY_SCHEDULERS.api_version,
            "kind": SECONDARY_SCHEDULERS.kind,
            "metadata": {"name": NAME},
            "spec": spec,
        }
        self.obj = server.request("POST", KIND, manifest)
        version = Version.parse("v1.35.4")
        wanted = desired_secondary(self.obj, PLATFORM, OperandDefaults(REAL), version)
        assert wanted.content is not None
        self.request, self.content = wanted.request, wanted.content
        self.real = config_map(wanted.request, wanted.content)
        server.request("POST", f"/api/v1/namespaces/{SPACE}/configmaps", self.real)
        status = {
            "configHash": wanted.content.hash,
            "image": REAL,
            "profiles": [{"schedulerName": NAME}],
            "history": [{"hash": wanted.content.hash, "outcome": names.OUTCOME_INSTALLED}],
        }
        server.request("PUT", f"{KIND}/{NAME}/status", {**self.obj, "status": status})

    def forged(self, namespace: str, *served: str, **metadata: Any) -> dict[str, Any]:
        """The tenant's configuration and program, with the right labels and owner."""
        config = {
            **self.content.config,
            "percentageOfNodesToScore": 1,
            "profiles": [{"schedulerName": name} for name in served],
        }
        spec = json.loads(self.content.data[names.POD_KEY])
        spec["containers"][0] |= {"image": FORGED, "command": ["sh", "-c", "forge"]}
        data = {
            **self.content.data,
            names.CONFIG_KEY: json.dumps(config),
            names.POD_KEY: json.dumps(spec),
            "image": FORGED,
        }
        made = config_map(self.request, SecondaryContent(data))
        made["metadata"] |= {"namespace": namespace, **metadata}
        return made

    def write(self, obj: Mapping[str, Any]) -> None:
        """Create the object as the tenant."""
        path = self.server.kubeconfig.parent / f"{RUN}.yaml"
        path.write_text(yaml.safe_dump(dict(obj)))
        self.server.kubectl(f"--as={USER}", "create", "-f", str(path))

    def delete(self, name: str) -> None:
        """Delete a ConfigMap beside the scheduler as the tenant."""
        self.server.kubectl(f"--as={USER}", "-n", SPACE, "delete", "configmap", name)

    async def simulation(self, scheduler_name: str | None) -> tuple[Simulation, dict[str, Any]]:
        """(the simulation for a Pod of this scheduler, the Job that it would create)."""
        parser = argparse.ArgumentParser()
        add_simulation_flags(parser)
        args = parser.parse_args(["--in-cluster", "--job-node", "any"])
        kubeconfig = str(self.server.kubeconfig)
        async with ApiClient(find(kubeconfig), field_manager="test") as api:
            found = await from_cluster(api, PLATFORM, args, scheduler_name)
        assert isinstance(found.job, JobSimulator)
        plan = found.job._plan
        assert plan is not None
        return found, job_of(plan)


@pytest.fixture(scope="module")
def installed(api_server: ApiServer) -> Iterator[ApiServer]:
    """The operator's Deployment, and a tenant with `edit`, also beside the scheduler."""
    for namespace in (SPACE, TENANT, OPERATORS):
        api_server.create_namespace(namespace)
    pod = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "operator", "image": "registry.invalid/operator:1"}]},
    }
    deployment = {
        "metadata": {"name": KUBEADM.operator.deployment},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod},
    }
    api_server.request("POST", f"/apis/apps/v1/namespaces/{OPERATORS}/deployments", deployment)
    policy = {
        "metadata": {"name": "default-deny-all"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }
    policies = f"/apis/networking.k8s.io/v1/namespaces/{OPERATORS}/networkpolicies"
    api_server.request("POST", policies, policy)
    for namespace in (SPACE, TENANT):
        api_server.kubectl(
            "-n", namespace, "create", "rolebinding", USER, "--clusterrole=edit", f"--user={USER}"
        )
    yield api_server
    for namespace in (SPACE, TENANT, OPERATORS):
        api_server.request("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def world(installed: ApiServer) -> Iterator[World]:
    """A SecondaryScheduler as the operator reports it."""
    yield World(installed)
    installed.request("DELETE", f"{KIND}/{NAME}")
    for namespace in (SPACE, TENANT):
        selector = f"labelSelector={names.SECONDARY_LABEL}"
        path = f"/api/v1/namespaces/{namespace}/configmaps?{selector}"
        installed.request("DELETE", path)


def images(job: Mapping[str, Any]) -> dict[str, list[str]]:
    """Image -> command of the containers of a Job."""
    spec = job["spec"]["template"]["spec"]
    return {
        each["image"]: each.get("command", [])
        for each in (*spec["initContainers"], *spec["containers"])
    }


async def answers(world: World) -> list[Any]:
    """What is simulated and started for a Pod of each scheduler, and for all Pods."""
    found = []
    for name in (NAME, OTHER, "default-scheduler", None):
        simulation, job = await world.simulation(name)
        assert FORGED not in json.dumps(job)
        own = [note for note in simulation.notes if "SecondaryScheduler" in note]
        found.append((simulation.options.config, images(job), own))
    return found


async def test_what_a_tenant_writes_changes_no_answer_and_starts_nothing(world: World) -> None:
    before = await answers(world)
    config, started, notes = before[0]
    assert config["percentageOfNodesToScore"] == PERCENTAGE
    assert started[REAL][-1:] == ["kube-scheduler"]
    assert notes == []
    served = (NAME, OTHER, "default-scheduler")
    world.write(world.forged(TENANT, *served))  # newer than the real one, and in another namespace
    assert await answers(world) == before
    world.write(world.forged(SPACE, *served))  # in that of the scheduler, named by its own hash
    shadow = world.forged(
        SPACE, *served, labels=world.real["metadata"]["labels"], name=f"{NAME}-config-shadow"
    )
    world.write(shadow)
    assert await answers(world) == before


async def test_a_tenant_alone_starts_nothing(world: World) -> None:
    """Without a SecondaryScheduler that serves the name, there is only the tenant's ConfigMap."""
    world.write(world.forged(TENANT, OTHER))
    simulation, job = await world.simulation(OTHER)
    assert simulation.options.config.get("percentageOfNodesToScore") != 1
    assert FORGED not in json.dumps(job)


async def test_the_content_that_a_tenant_replaces_is_not_started(world: World) -> None:
    """Who has `edit` beside the scheduler can delete its ConfigMap and take its name."""
    name = world.real["metadata"]["name"]
    world.delete(name)
    world.write(world.forged(SPACE, NAME, name=name, labels=world.real["metadata"]["labels"]))
    simulation, job = await world.simulation(NAME)
    assert simulation.options.config.get("percentageOfNodesToScore") != 1
    assert FORGED not in json.dumps(job)
    assert (
        f"the configuration of SecondaryScheduler {NAME} is not known: there is no ConfigMap "
        f"{SPACE}/{name} with the owner and the content that its status names"
    ) in simulation.notes
