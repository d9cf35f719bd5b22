"""The console and the report about a managed control plane, well and ill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from cluster import lifecycle, model, operator
from cluster.console import run
from cluster.observe import KUBESCHEDULER, until

from .conftest import NAME_OF_MANAGED, REPOSITORY, SECONDARY_SCHEDULERS, Cluster, up
from .console_pages import NOWHERE, Looks, shop, waiting
from .documented import commands, has_no_policies
from .test_console import LATE, _object
from .workloads import apply, wait_for

pytestmark = pytest.mark.timeout(1500, func_only=True)

OURS = "managed-scheduler"


@pytest.fixture(scope="module")
def managed() -> Iterator[Cluster]:
    kind = lifecycle.ClusterKind(model.MANAGED, "eks")
    with up(NAME_OF_MANAGED, 0, 3, with_operator=False, kind=kind) as sandbox:
        operator.load_image(sandbox)
        cluster = Cluster(sandbox)
        kubectl = f"{sandbox.state}/bin/kubectl --kubeconfig={sandbox.kubeconfig}"
        older = has_no_policies(sandbox.kubernetes)
        for line in commands("install kustomize managed and assign", older=older).splitlines():
            run("sh", "-ec", line.replace("kubectl", kubectl, 1), cwd=REPOSITORY, timeout=300)
        wait_for(cluster, f"{SECONDARY_SCHEDULERS}/{OURS}", timeout=LATE, Available="True",
                 Progressing="False", Assigned="True")  # fmt: skip
        yield cluster


@pytest.fixture(scope="module")
def well(managed: Cluster) -> Cluster:
    """Two configurations."""
    shop(managed, 6)
    path = f"{SECONDARY_SCHEDULERS}/{OURS}"
    before = wait_for(managed, path)["status"]["configHash"]
    managed.api.request("PATCH", KUBESCHEDULER, {"spec": {"logLevel": "Debug"}})
    until(lambda: wait_for(managed, path)["status"]["configHash"] != before, LATE, "no rollout")
    wait_for(managed, path, timeout=LATE, Progressing="False")
    return managed


@pytest.fixture(scope="module")
def ill(well: Cluster) -> Cluster:
    """A configuration that cannot run, a refused object, and no metrics-server."""
    cluster = well
    apply(
        cluster,
        *waiting(),
        _object("LoadPolicy", "default", source={"type": "MetricsServer"}),
        _object("SchedulerProfile", "bad", plugins={"score": {"enabled": [{"name": "Nope"}]}}),
    )
    flags = {"tls-cert-file": f"/{NOWHERE}/tls.crt", "tls-private-key-file": f"/{NOWHERE}/tls.key"}
    spec = {"unsupportedConfigOverrides": {"arguments": flags}}
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": spec})
    wait_for(cluster, f"{SECONDARY_SCHEDULERS}/{OURS}", timeout=LATE, Degraded="True")
    kind = "LoadPoliciesDegraded"
    until(lambda: cluster.condition(kind)[0] == "True", LATE, "its load is known")
    return cluster


def test_every_page_of_a_managed_control_plane_that_is_well(
    well: Cluster, browser: Browser, axe: str, tmp_path: Path
) -> None:
    Looks(well, browser, axe, "managed-healthy").expect_well(tmp_path / "scheduler.html", OURS)


def test_every_page_of_a_managed_control_plane_that_is_ill(
    ill: Cluster, browser: Browser, axe: str, tmp_path: Path
) -> None:
    Looks(ill, browser, axe, "managed-broken").expect_ill(tmp_path / "scheduler.html", OURS)
