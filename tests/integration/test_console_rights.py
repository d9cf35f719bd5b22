"""Each page of the console, and the report: what each of three people may see, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.web.registry import PAGES
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, KUBE_SCHEDULERS, SCHEDULERS

from ..simulation.world import World
from .conftest import ApiServer, RefusedError
from .played_nodes import make_node
from .test_console import READS, Console, console_of

pytestmark = pytest.mark.timeout(600, func_only=True)

NAME: Final = "rights-of-three"
NODE: Final = f"{NAME}-node"
PARALLELISM: Final = 9876
"""A value of the second revision that no other page has."""
READER: Final = "who-may-read-some"
NAMESPACE: Final = KUBEADM.target_namespace
CONFIG: Final = "/apis/config.openshift.io/v1/schedulers"
OPERATOR: Final = "/apis/operator.openshift.io/v1/kubeschedulers"
OWN: Final = "/apis/kube-scheduler-operator.dev/v1alpha1"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
HIDES: Final = "no permission to"
SIMULATED: Final = ("causes", "why", "what-if")
"""Pages that answer without what the person may not read, and name it."""


@dataclass(frozen=True)
class Shown:
    """A page, and what of the cluster only those see who may."""

    path: str
    secret: str
    restricted: bool  # whether the person with few rights sees it


SHOWN: Final[Mapping[str, Shown]] = {
    "now": Shown("now", NAME, restricted=False),
    "rollout": Shown("rollout", "Revision 2", restricted=True),
    "compare": Shown("compare", f"{PARALLELISM}", restricted=True),
    "decides": Shown("decides", f">{PARALLELISM}<", restricted=True),
    "nodes": Shown("nodes", NODE, restricted=True),
    "waiting": Shown("waiting", f"{NAME}/large", restricted=True),
    "causes": Shown("causes", f"{NAME}/large", restricted=True),
    "why": Shown(f"why?namespace={NAME}&pod=large", "It fits on none", restricted=True),
    "what-if": Shown("what-if?profile=HighNodeUtilization&pods=waiting", "CPU requests of",
                     restricted=True),
    "extenders": Shown("extenders", NAME, restricted=False),
}  # fmt: skip


def _post(api: ApiServer, made: ExitStack, path: str, body: dict[str, Any]) -> None:
    """Make an object, which is deleted again."""
    api.request("POST", path, body)

    def delete() -> None:
        with suppress(RefusedError):
            options = {"gracePeriodSeconds": 0}
            api.request("DELETE", f"{path}/{body['metadata']['name']}", options)

    made.callback(delete)


def _bare(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object as another API server takes it."""
    metadata = {k: v for k, v in obj["metadata"].items() if k in ("name", "labels", "annotations")}
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata}


def _two_revisions(api: ApiServer, made: ExitStack) -> None:
    """What the operator wrote for two revisions, in an imitated cluster."""
    world = World(nodes=1)
    world.settle()
    world.spec(unsupportedConfigOverrides={"parallelism": PARALLELISM})
    world.run_until(lambda: len(world.revisions) == 2, 300, "a second revision")
    world.settle()
    with suppress(RefusedError):
        api.create_namespace(NAMESPACE)
    for obj in world.server.list(CONFIG_MAPS, NAMESPACE):
        _post(api, made, f"/api/v1/namespaces/{NAMESPACE}/configmaps", _bare(obj))
    for path, resource in ((CONFIG, SCHEDULERS), (OPERATOR, KUBE_SCHEDULERS)):
        found = world.server.find(resource, names.CLUSTER)
        assert found is not None
        _post(api, made, path, _bare(found))
    # The API refuses a node whose status begins with a revision.
    begun = [{"nodeName": node["nodeName"]} for node in world.status["nodeStatuses"]]
    for status in ({**world.status, "nodeStatuses": begun}, world.status):
        stored = api.request("GET", f"{OPERATOR}/{names.CLUSTER}")
        api.request("PUT", f"{OPERATOR}/{names.CLUSTER}/status", {**stored, "status": status})


def _person(api: ApiServer, made: ExitStack, name: str, rules: Sequence[Mapping[str, Any]]) -> None:
    _post(api, made, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    }
    _post(api, made, f"{RBAC}/clusterrolebindings", binding)


@pytest.fixture(scope="module")
def cluster(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[ApiServer]:
    """An object for each page, and a person who may read some kinds of them."""
    with ExitStack() as made:
        api_server.create_namespace(NAME)
        _two_revisions(api_server, made)
        make_node(api_server, NODE, {})
        made.callback(lambda: api_server.request("DELETE", f"/api/v1/nodes/{NODE}"))
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9"}}}
        pod = {"metadata": {"name": "large"}, "spec": {"containers": [container]}}
        _post(api_server, made, f"/api/v1/namespaces/{NAME}/pods", pod)
        for kind, spec in (
            ("SchedulerProfile", {"percentageOfNodesToScore": 50}),
            ("SchedulerExtender", {"url": "http://203.0.113.7/x", "verbs": {"filter": "f"}}),
        ):
            api_version = "kube-scheduler-operator.dev/v1alpha1"
            obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": NAME}}
            _post(api_server, made, f"{OWN}/{kind.lower()}s", {**obj, "spec": spec})
        _person(api_server, made, READER, READS)
        yield api_server


def _flags(binary: Path, *identity: str) -> tuple[str, ...]:
    return (f"--kube-scheduler={binary}", *identity)


def _whole(console: Console, path: str) -> str:
    """A page, once it has its answer."""
    status, html = console.ask(f"/{path}")
    while "The answer is being computed" in html:
        status, html = console.ask(f"/fragments/{path}")
    assert status == 200
    return html


def test_every_page_has_a_row() -> None:
    assert [*SHOWN] == [page.name for page in PAGES]


@pytest.mark.presubmit
def test_each_person_sees_on_each_page_what_each_may_see(
    cluster: ApiServer, kube_scheduler_binary: Path
) -> None:
    with (
        console_of(cluster, *_flags(kube_scheduler_binary)) as administrator,
        console_of(cluster, *_flags(kube_scheduler_binary, "--as", READER)) as restricted,
        console_of(cluster, *_flags(kube_scheduler_binary, "--as", "stranger")) as stranger,
    ):
        for name, shown in SHOWN.items():
            may = {administrator: True, restricted: shown.restricted, stranger: False}
            for console, sees in may.items():
                html = _whole(console, shown.path)
                place = (name, [*may].index(console))
                assert (shown.secret in html) is sees, place
                if not sees or (console is restricted and name in SIMULATED):
                    assert HIDES in html, place
            _, text = stranger.ask(f"/api/v1/{shown.path}")
            assert [*json.loads(text)] == ["error"], name
            assert HIDES in text, name


def test_a_report_has_what_its_maker_may_see(
    cluster: ApiServer, kube_scheduler_binary: Path
) -> None:
    def report(*identity: str) -> str:
        program = "from kube_scheduler_operator.__main__ import kubectl_plugin as run; exit(run())"
        flags = (*_flags(kube_scheduler_binary, *identity), "--platform=kubeadm")
        command = [sys.executable, "-c", program, "report", f"--kubeconfig={cluster.kubeconfig}"]
        done = subprocess.run(
            [*command, *flags], capture_output=True, text=True, timeout=300, check=False
        )
        assert "Traceback" not in done.stderr
        return done.stdout

    seen = {name: shown for name, shown in SHOWN.items() if name != "what-if"}
    whole, some, none = report(), report("--as", READER), report("--as", "stranger")
    for name, shown in seen.items():
        assert shown.secret in whole, name
        assert shown.secret not in none, name
    assert "Revision 2" in some
    assert "It fits on none" in some
    assert HIDES in some
