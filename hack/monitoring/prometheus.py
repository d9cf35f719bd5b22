"""Prometheus itself, on this machine: what it scraped, what it evaluates, which alerts fire."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cluster import promtool, scheduling
from cluster.console import SandboxError

Json = dict[str, Any]

SECONDS: Final = 1
"""Between two scrapes, and between two evaluations of the rules."""

_VARIABLES: Final = {"$__rate_interval": f"{15 * SECONDS}s", "$job": ".+"}


def filled(expression: str) -> str:
    """Return an expression with the values that Grafana would put in the place of its variables."""
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def target(
    job: str,
    port: int,
    path: str = "/metrics",
    *,
    https: bool = False,
    token: str = "",
    labels: Mapping[str, str] | None = None,
) -> Json:
    """Return a scrape configuration; `labels` are those that a ServiceMonitor would set."""
    config: Json = {
        "job_name": f"{job} {port} {path}",
        "metrics_path": path,
        "honor_labels": True,  # as for /metrics/resources
        "static_configs": [
            {"targets": [f"127.0.0.1:{port}"], "labels": {"job": job, **(labels or {})}}
        ],
    }
    if https:
        config |= {"scheme": "https", "tls_config": {"insecure_skip_verify": True}}
    if token:
        config["authorization"] = {"credentials": token}
    return config


class Prometheus:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of its API.

        Raises:
            SandboxError: It answered with an error, or not at all.
        """
        query = urllib.parse.urlencode(parameters)
        return json.loads(scheduling.fetch(f"{self._url}/api/v1/{path}?{query}"))["data"]

    def now(self, expression: str) -> list[Json]:
        """Return the series of an expression with their current values."""
        found: list[Json] = self.get("query", query=filled(expression))["result"]
        return found

    def over_time(self, expression: str, begin: float, end: float, step: float) -> list[Json]:
        """Return the series of an expression over some time."""
        found: list[Json] = self.get(
            "query_range", query=filled(expression), start=str(begin), end=str(end), step=str(step)
        )["result"]
        return found

    def alerts(self, state: str = "firing") -> set[tuple[str, str]]:
        """Return (name, severity) of the alerts in a state."""
        return {
            (alert["labels"]["alertname"], alert["labels"]["severity"])
            for alert in self.get("alerts")["alerts"]
            if alert["state"] == state
        }

    def troubles(self) -> list[str]:
        """Return the targets that could not be scraped the last time."""
        return [
            f"{one['scrapeUrl']}: {one['lastError']}"
            for one in self.get("targets")["activeTargets"]
            if one["health"] != "up"
        ]

    def metrics_and_labels(self, expression: str) -> tuple[set[str], set[str]]:
        """Return the metrics and the labels that an expression names, by its syntax tree."""
        tree = self.get("parse_query", query=filled(expression))
        metrics, labels = set(), set()
        for node in _nodes(tree):
            if node["type"] in ("vectorSelector", "matrixSelector"):
                metrics.add(node["name"])
                labels |= {one["name"] for one in node["matchers"]} - {"__name__"}
            labels |= set(node.get("grouping") or ())
            if matching := node.get("matching"):
                labels |= set(matching["labels"]) | set(matching["include"] or ())
        return metrics, labels


def _nodes(tree: Any) -> Iterator[Json]:
    if isinstance(tree, dict):
        if "type" in tree:
            yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


@contextmanager
def running(
    folder: Path, targets: Sequence[Json], rules: Mapping[str, Any] | None = None
) -> Iterator[Prometheus]:
    """Start Prometheus with its files in `folder`, and wait until it answers."""
    port = scheduling.free_port()
    config: Json = {
        "global": {
            "scrape_interval": f"{SECONDS}s",
            "scrape_timeout": f"{SECONDS}s",
            "evaluation_interval": f"{SECONDS}s",
        },
        "scrape_configs": list(targets),
    }
    if rules:
        (folder / "rules.json").write_text(json.dumps(rules))
        config["rule_files"] = ["rules.json"]
    file = folder / "prometheus.json"  # YAML has JSON in it
    file.write_text(json.dumps(config))
    command: list[str | Path] = [
        promtool.provide("prometheus"), f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    found, end = Prometheus(port), time.monotonic() + 30
    try:
        while True:
            try:
                found.now("1")
                break
            except SandboxError:
                if time.monotonic() > end or process.poll() is not None:
                    raise SandboxError((folder / "prometheus.log").read_text()) from None
                time.sleep(0.1)
        yield found
    finally:
        process.terminate()
        process.wait(20)
