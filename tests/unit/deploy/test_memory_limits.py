"""Every Pod of the project has memory limits; about kube-scheduler's own container users decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import assets, names
from kube_scheduler_operator.base.platform import PLATFORMS, Platform
from kube_scheduler_operator.base.quantities import amounts
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.cli.simulation.self_test import test_pod as self_test_pod
from kube_scheduler_operator.config.effective.extenders.agent import ManagedAgent, container
from kube_scheduler_operator.kube.resource import DAEMON_SETS, DEPLOYMENTS
from kube_scheduler_operator.operator.controlplane.node_pods import (
    Attempt,
    InstalledScheduler,
    render_config_reader_pod,
    render_guard_pod,
    render_installer_pod,
    render_restore_pod,
    render_static_pod,
)
from kube_scheduler_operator.operator.extenders.agents import keep_agent
from kube_scheduler_operator.operator.loadpolicy.created_objects import cleanup_job
from kube_scheduler_operator.simulate.job import JobPlan, job_of

from ..operator.loadpolicy.world import World
from .conftest import Helm
from .overlays import DEPLOY, build
from .test_chart import template

Object = Mapping[str, Any]

IMAGE = "example.com/image:1"
AGENT = {"policies": [{"name": "foo"}]}
OVERLAYS = [path.parent for path in sorted(DEPLOY.rglob("kustomization.yaml"))]
WITH_STATIC_PODS = [each for each in PLATFORMS.values() if each.owns_static_pods]


def unlimited(objects: Iterable[Object]) -> tuple[list[str], int]:
    """The containers without a limit, and the number of all."""
    found, count = [], 0
    for obj in objects:
        spec = obj.get("spec") or {}
        pod = spec.get("template", obj if obj["kind"] == "Pod" else {}).get("spec") or {}
        for each in (*pod.get("initContainers", ()), *pod.get("containers", ())):
            count += 1
            limits = (each.get("resources") or {}).get("limits") or {}
            if not amounts(limits).get("memory"):
                found.append(f"{obj['kind']} {obj['metadata']['name']}: {each['name']}")
    return found, count


def on_nodes(platform: Platform) -> Iterator[Object]:
    probe = {"host": "127.0.0.1", "path": "/readyz", "port": 10259, "scheme": "HTTPS"}
    yield render_installer_pod(
        platform, Attempt("n", 7, 0), InstalledScheduler(IMAGE, []), operator_image=IMAGE,
        owner_uid="u",
    )  # fmt: skip
    yield render_restore_pod(platform, "n", 1, IMAGE)
    yield render_guard_pod(
        platform=platform, node="n", operator_image=IMAGE, probe=probe, known="", owner_uid="u"
    )
    yield render_config_reader_pod(platform, "n", "/etc/config.yaml", IMAGE, "u")
    for action in keep_agent(
        platform, ManagedAgent("a", AGENT, 10000), Settings(operator_image=IMAGE), {}
    ):
        if action.obj["kind"] == "DaemonSet":
            yield action.obj


@pytest.mark.parametrize("platform", WITH_STATIC_PODS, ids=lambda each: each.name)
def test_pods_on_nodes(platform: Platform) -> None:
    assert unlimited(on_nodes(platform)) == ([], 7)


def test_the_programs_of_a_load_policy_and_their_cleanup() -> None:
    world = World()
    world.put(source={"type": "NodeMetrics"})
    world.run()
    objects = [*world.cluster.list(DAEMON_SETS), *world.cluster.list(DEPLOYMENTS)]
    objects.append(cleanup_job(world.snapshot(), ("own",)))
    assert unlimited(objects) == ([], 3)


def test_the_pods_of_commands() -> None:
    plan = JobPlan("n", "node", IMAGE, IMAGE, ("kube-scheduler",), "hash", 60.0)
    two = replace(plan, next_image=IMAGE)
    pods = [job_of(plan), job_of(two), self_test_pod("p", "n", "run")]
    assert unlimited(pods)[0] == []


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda each: each.relative_to(DEPLOY).as_posix())
def test_the_pods_of_an_overlay(overlay: Path) -> None:
    try:
        objects = build(overlay)
    except (ValueError, FileNotFoundError):  # a component, whose patches need a base
        objects = [
            obj
            for path in sorted(overlay.glob("*.yaml"))
            if path.name != "kustomization.yaml"
            for obj in yaml.safe_load_all(path.read_text())
            if isinstance(obj, dict) and "kind" in obj and "metadata" in obj
        ]
    assert unlimited(objects)[0] == []


def test_the_pods_of_the_installation_files() -> None:
    for platform in ("kubeadm", "managed", "openshift"):
        text = assets.text("bindata", f"installation/{platform}.yaml")
        found, count = unlimited([obj for obj in yaml.safe_load_all(text) if obj])
        assert found == []
        assert count >= 1


@pytest.mark.parametrize("platform", ["kubeadm", "managed", "rke2"])
def test_the_pods_of_the_chart(helm: Helm, platform: str) -> None:
    found, count = unlimited(template(helm, f"platform={platform}"))
    assert found == []
    assert count == 2, "the operator, and the hook that uninstalls"


def test_the_values_of_the_chart_replace_the_limit(helm: Helm) -> None:
    objects = template(helm, "resources.limits.memory=3Gi")
    (deployment,) = [obj for obj in objects if obj["kind"] == "Deployment"]
    (own,) = deployment["spec"]["template"]["spec"]["containers"]
    assert own["resources"]["limits"]["memory"] == "3Gi"


# --- agents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("health_port", [0, 20000])
def test_an_agent_has_a_limit_unless_its_user_sets_resources(health_port: int) -> None:
    def resources(**spec: Any) -> Any:
        agent = ManagedAgent("a", {**AGENT, **spec}, 10000, health_port)
        return container(agent, IMAGE)["resources"]

    assert resources()["limits"] == {"memory": "2Gi"}
    own = {"requests": {"memory": "1Gi"}}
    assert resources(resources=own) == own


def test_an_upgrade_does_not_change_a_sidecar_with_an_image_of_its_own() -> None:
    """It is part of the content of a SecondaryScheduler, and its image stays."""
    agent = ManagedAgent("a", {**AGENT, "image": IMAGE}, 10000, 20000)
    assert container(agent, "operator:2")["resources"] == {
        "requests": {"cpu": "50m", "memory": "96Mi"}
    }


def test_nothing_is_added_to_kube_schedulers_own_container() -> None:
    for platform in WITH_STATIC_PODS:
        pod = render_static_pod(platform, IMAGE, [], ("127.0.0.1", 10259))
        (own,) = [each for each in pod["spec"]["containers"] if each["name"] == names.OPERAND]
        assert "limits" not in own["resources"]
