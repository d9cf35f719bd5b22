"""Every page of the console about a real cluster, and the report, in windows of each look."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, expect

from cluster import images

from ..browser import looked_at, window
from .conftest import Cluster
from .workloads import apply, pod

PROFILE: Final = "HighNodeUtilization"
SHOP: Final = "shop"
NOWHERE: Final = "203.0.113.77"
"""An address of RFC 5737, which no machine has: connections to it time out."""
ANSWER: Final = 240_000.0
"""Milliseconds within which a simulation answers on a busy machine."""


def paths(asked: str, scheduler: str = "", pods: str = "all") -> dict[str, str]:
    """The pages, with why of a Pod of the namespace shop; `scheduler`: a SecondaryScheduler."""
    of = f"?scheduler={scheduler}" if scheduler else ""
    return {
        **{name: f"{name}{of}" for name in ("rollout", "compare", "decides")},
        **{name: name for name in ("now", "nodes", "waiting", "causes", "extenders")},
        "why": f"why?namespace={SHOP}&pod={asked}",
        "what-if": f"what-if?profile={PROFILE}&pods={pods}",
    }


class Looks:
    """Pictures of one state of a cluster, and what is wrong with its pages."""

    def __init__(self, cluster: Cluster, browser: Browser, axe: str, state: str) -> None:
        self._cluster, self._browser, self._axe, self._state = cluster, browser, axe, state
        binary = cluster.sandbox.state / "bin/kube-scheduler"
        self._flags = [f"--kube-scheduler={binary}"]
        self.found: dict[str, list[str]] = {}
        self.words: dict[str, str] = {}  # of each page

    def expect_well(self, report: Path, scheduler: str = "") -> None:
        """Look at a cluster with `shop` that is well; `scheduler`: a SecondaryScheduler."""
        pods = self._cluster.kubectl("-n", SHOP, "get", "pods", "-o", "name")
        self.pages(paths(pods.split()[0].partition("/")[2], scheduler))
        self.report(report)
        assert self.found == {}
        assert "Healthy" in self.words["now"]

    def expect_ill(self, report: Path, scheduler: str = "") -> None:
        """Look at a cluster with `waiting` and an address NOWHERE in its configuration."""
        self.pages(paths("too-large", scheduler, pods="waiting"))
        self.report(report)
        assert self.found == {}
        assert "problems" in self.words["now"]
        assert NOWHERE in self.words["rollout"]

    def pages(self, pages: Mapping[str, str]) -> None:
        with self._console() as address:
            base = address.partition("?")[0]
            with window(self._browser) as page:
                page.goto(address)
                for name, path in pages.items():
                    page.goto(f"{base}{path}")
                    self._look(page, name)
                    self.words[name] = page.locator("main").inner_text()

    def report(self, file: Path) -> None:
        done = self._cluster.plugin("report", f"--profile={PROFILE}", *self._flags)
        assert "Traceback" not in done.stderr
        file.write_text(done.stdout)
        with window(self._browser) as page:
            page.goto(file.as_uri())
            self._look(page, "report")

    def _look(self, page: Page, name: str) -> None:
        expect(page.locator("main [role=status]")).to_have_count(0, timeout=ANSWER)
        if found := looked_at(page, self._axe, self._state, name):
            self.found[name] = found

    @contextmanager
    def _console(self) -> Iterator[str]:
        process = self._cluster.start_plugin("console", *self._flags)
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def shop(cluster: Cluster, replicas: int) -> None:
    """A namespace with a Deployment, and room for more Pods."""
    cluster.kubectl("create", "namespace", SHOP)
    cluster.kubectl("-n", SHOP, "wait", "--for=create", "--timeout=60s", "serviceaccount/default")
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    container = {"name": "web", "image": images.PAUSE, "resources": resources}
    labels = {"app": "web"}
    pods = {"containers": [container], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": labels}, "spec": pods}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": SHOP}
    apply(cluster, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                    "spec": spec})  # fmt: skip
    cluster.kubectl("-n", SHOP, "rollout", "status", "deployment/web", "--timeout=180s")


def waiting() -> list[dict[str, Any]]:
    """Pods that wait, each for another reason."""
    made = [
        pod("too-large", requests={"cpu": "64", "memory": "1Gi"}),
        pod("no-such-zone", nodeSelector={"topology.kubernetes.io/zone": "moon-1"}),
        pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
        pod("no-scheduler", "a-scheduler-that-does-not-exist"),
        pod("no-volume", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "gone"}}]),
    ]
    for each in made:
        each["metadata"]["namespace"] = SHOP
    return made
