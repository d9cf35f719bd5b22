"""`kubectl scheduler version`: which versions run, and whether they fit."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from kube_scheduler_operator import __version__
from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base import names
from kube_scheduler_operator.cli.commands.version import Versions, summarize
from kube_scheduler_operator.kube.resource import CLUSTER_OPERATORS, PODS, SECONDARY_SCHEDULERS

from ..conftest import IMAGE, Cluster, scheduler_pod


def serve_version(cluster: Cluster, version: str) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": version})

    cluster.api.routes["/version"] = answer


def report_operator(cluster: Cluster, version: str) -> None:
    status = {"versions": [{"name": "operator", "version": version}]}
    metadata = {"name": names.CLUSTEROPERATOR}
    cluster.put(CLUSTER_OPERATORS, {"metadata": metadata, "status": status})


async def test_all_components_are_listed_with_their_places(cluster: Cluster) -> None:
    serve_version(cluster, "v1.36.1")
    report_operator(cluster, __version__)
    for node in ("a", "b"):
        cluster.put(PODS, scheduler_pod(node, 1))
    cluster.api.served |= {SECONDARY_SCHEDULERS}
    status = {"image": "example.com/kube-scheduler:v1.36.1"}
    cluster.put(SECONDARY_SCHEDULERS, {"metadata": {"name": "packed"}, "status": status})
    done = await cluster.run("version", "--platform", "kubeadm")
    assert (done.code, done.err) == (0, "")
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        "COMPONENT VERSION WHERE",
        f"client {__version__} this program",
        f"operator {__version__}",
        "API server v1.36.1",
        "kube-scheduler v1.35.4 node a, node b",
        "kube-scheduler v1.36.1 SecondaryScheduler packed",
        "",
        "The versions fit.",
    ]


async def test_a_scheduler_that_is_newer_than_its_api_server_does_not_fit(cluster: Cluster) -> None:
    serve_version(cluster, "v1.34.2")
    report_operator(cluster, __version__)
    cluster.put(PODS, scheduler_pod("a", 1))
    done = await cluster.run("version", "-o", "json")
    found = json.loads(done.out)
    assert (done.code, found["fits"]) == (1, False)
    assert found["schedulers"] == [{"name": "node a", "image": IMAGE, "version": "v1.35.4"}]
    (problem,) = found["problems"]
    assert problem.startswith("node a: kube-scheduler v1.35.4 is newer than the API server")


async def test_a_cluster_without_the_operator_is_reported_as_that(cluster: Cluster) -> None:
    serve_version(cluster, "v1.35.4")
    done = await cluster.run("version")
    assert done.code == 0
    assert ["operator", "unknown"] in [line.split() for line in done.out.splitlines()]
    assert "it is not installed or not running" in done.out


def test_the_version_of_the_client_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl_plugin(["version", "--client", "--kubeconfig", "/none", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"client": __version__}


def versions(
    client: str, operator: str, *, payload: bool = False, scheduler: str = "v1.35.4"
) -> Versions:
    image = f"example.com/kube-scheduler:{scheduler}"
    return Versions(client, operator, payload, "v1.37.0", [("node a", image)])


@pytest.mark.parametrize(
    ("client", "operator", "fits"),
    [
        ("0.2.0", "0.2.7", True),
        ("0.3.0", "0.2.0", True),
        ("0.1.0", "0.2.0", True),
        ("0.4.0", "0.2.0", False),
        ("0.1.0", "0.3.0", False),
        ("1.0.0", "0.9.0", False),
    ],
)
def test_client_and_operator_may_be_one_minor_version_apart(
    client: str, operator: str, fits: bool
) -> None:
    problems = summarize(versions(client, operator, scheduler="v1.37.0"))["problems"]
    assert problems == [] if fits else f"kubectl-scheduler {operator[:3]}" in problems[0]


def test_a_scheduler_may_be_one_minor_version_older_than_the_api_server() -> None:
    assert summarize(versions("0.1.0", "0.1.0", scheduler="v1.36.9"))["fits"]
    assert not summarize(versions("0.1.0", "0.1.0", scheduler="v1.35.4"))["fits"]


def test_the_version_of_an_openshift_release_is_not_compared() -> None:
    report = summarize(versions("0.1.0", "4.22.0", payload=True, scheduler="v1.37.0"))
    assert report["fits"]
    assert "OpenShift release" in report["notes"][0]


def test_another_version_of_the_operator_has_a_note_about_simulations() -> None:
    notes = summarize(versions("0.2.0", "0.1.0"))["notes"]
    assert notes[0].endswith("run them with kubectl-scheduler 0.1.0")


def test_an_image_without_a_version_is_not_compared() -> None:
    found = Versions("0.1.0", "0.1.0", False, "v1.35.0", [("node a", "x:own")])
    report = summarize(found)
    assert report["fits"]
    assert report["notes"] == [
        'node a: the tag of image "x:own" is not a version of Kubernetes, so it is not compared'
    ]
