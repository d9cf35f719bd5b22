"""A cluster that knows what it was like before an installation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster import helm, operator
from cluster.api import ApiError
from cluster.console import CommandError, run
from cluster.model import Sandbox
from cluster.observe import until

from ..conftest import REPOSITORY, Cluster
from ..documented import commands

FILES = (
    "find /etc/kubernetes -printf '%p %y %m %U:%G %l\\n' | sort; "
    "find /etc/kubernetes -type f -print0 | sort -z | xargs -0 sha256sum"
)
FLEETING = ("events", "componentstatuses")  # expire by themselves; are not objects
RENEWED = ("leases",)  # of which only the existence is compared

Key = tuple[str, str, str]
Objects = dict[Key, Any]


def _all(_key: Key, content: Mapping[str, Any]) -> Mapping[str, Any]:
    return content


@dataclass
class Installation:
    """A cluster, and the programs with which a user installs and removes."""

    cluster: Cluster
    programs: tuple[Path, ...]  # the folders of kubectl, Helm and the command line
    home: Path  # where these keep their caches
    # what of an object is compared
    compared: Callable[[Key, Mapping[str, Any]], Mapping[str, Any]] = _all
    before: Objects = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before = self.objects()

    def shell(self, script: str, *programs: Path) -> str:
        """Run documented commands, from the top of the checkout; `programs` are further folders."""
        folders = (*programs, *self.programs)
        path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
        environment = {
            **os.environ,
            "PATH": path,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.cluster.sandbox.kubeconfig),
        }
        return run("sh", "-ec", script, env=environment, cwd=REPOSITORY, timeout=400)

    def is_refused(self, script: str) -> str:
        """Run commands that fail; their error message."""
        try:
            self.shell(script)
        except CommandError as error:
            return str(error)
        raise AssertionError(f"not refused: {script}")

    def objects(self) -> Objects:
        """What the API lists: kind, namespace and name -> all but metadata and status."""
        api = self.cluster.api
        groups = api.request("GET", "/apis")["groups"]
        places = ["/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups)]
        found: Objects = {}
        for place in places:
            for resource in api.request("GET", place)["resources"]:
                name = resource["name"]
                if "list" not in resource["verbs"] or name in FLEETING:
                    continue
                for item in api.request("GET", f"{place}/{name}")["items"]:
                    metadata = item["metadata"]
                    key = (f"{place}/{name}", metadata.get("namespace", ""), metadata["name"])
                    kept = {k: v for k, v in item.items() if k not in ("metadata", "status")}
                    found[key] = None if name in RENEWED else self.compared(key, kept)
        return found

    def changed(self) -> list[str]:
        """Objects that are new, gone or different."""
        now, before = self.objects(), self.before
        return sorted(" ".join(key) for key in {*now, *before} if now.get(key) != before.get(key))

    def is_available(self) -> None:
        available = self.cluster.cluster_operator
        until(
            lambda: _answers(lambda: available("Available")[0] == "True"),
            240,
            lambda: f"not Available: {_status(self.cluster)}",
        )

    def is_all_well(self, archive: Path) -> None:
        """The command line of the archive reads this cluster and soon reports no problem."""
        for command in ("status", "check"):
            until(
                lambda: self._succeeds(f"kubectl scheduler {command}", archive),  # noqa: B023
                120,
                lambda: self.shell(f"kubectl scheduler {command} || true", archive),  # noqa: B023
            )
        assert "Available=True" in self.shell("kubectl scheduler status", archive)

    def _succeeds(self, script: str, *programs: Path) -> bool:
        try:
            self.shell(script, *programs)
        except CommandError:
            return False
        return True

    def api_is_as_it_was(self, *stays: str) -> None:
        """Nothing of the operator is left in the API, except objects that `stays` names."""
        until(lambda: not self.changed(), 90, lambda: f"left in the API: {self.changed()}")
        left = self.shell(commands("remains")).split()
        assert sorted(left) == sorted(stays)


def _answers(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except ApiError:
        return False


def _status(cluster: Cluster) -> Any:
    try:
        return cluster.status
    except ApiError as error:
        return error


def files(cluster: Cluster) -> str:
    """Every file and folder of the node's /etc/kubernetes: content, mode, owner."""
    return cluster.on_node("sh", "-c", FILES)


def _has_all(cluster: Cluster) -> bool:
    """Whether controllers have done for namespaces and nodes what they do in their own time."""
    nodes = cluster.api.request("GET", "/api/v1/nodes")["items"]
    taints = [taint["key"] for node in nodes for taint in node["spec"].get("taints", ())]
    if any(key.startswith("node.kubernetes.io/") for key in taints):
        return False
    namespaces = cluster.api.request("GET", "/api/v1/namespaces")["items"]
    names = {namespace["metadata"]["name"] for namespace in namespaces}
    return all(
        names
        == {
            obj["metadata"]["namespace"]
            for obj in cluster.api.request("GET", f"/api/v1/{kind}")["items"]
            if obj["metadata"]["name"] == name
        }
        for kind, name in (("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"))
    )


def programs(sandbox: Sandbox) -> tuple[Path, ...]:
    return (sandbox.state / "bin", helm.provide().parent, REPOSITORY / ".venv/bin")


@contextmanager
def prepared(sandbox: Sandbox) -> Iterator[Cluster]:
    """The cluster with the operator's image, once whatever is made at first use is there."""
    operator.load_image(sandbox)
    cluster = Cluster(sandbox)
    cluster.schedules()
    until(lambda: _has_all(cluster), 60, "the controllers do not make what is in any cluster")
    yield cluster
