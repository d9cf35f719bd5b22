"""The documented metrics and the documented configuration match the program."""

from __future__ import annotations

import re
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from kube_scheduler_operator.kube.reflector import Reflector, ReflectorState
from kube_scheduler_operator.kube.resource import NODES
from kube_scheduler_operator.scheduling.extender import config
from kube_scheduler_operator.scheduling.extender.metrics import (
    PREFIX,
    ExtenderMetrics,
    MetricSources,
)
from kube_scheduler_operator.scheduling.extender.routes import calls_of
from kube_scheduler_operator.scheduling.extender.verbs import VerbContext
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.serving.http_server import HttpServer
from kube_scheduler_operator.serving.http_types import HttpRequest

from .conftest import StubPolicy, agent_of, names_body
from .test_routes import routes_of

PAGE = (Path(__file__).parents[4] / "docs" / "extender-server.md").read_text()


def served(context: VerbContext, cluster: Cluster) -> dict[str, tuple[str, str, frozenset[str]]]:
    """Name without the prefix to type, help text and labels."""
    agent = agent_of(StubPolicy(cluster, lambda n: np.arange(n), reasons={0: "hot"}))
    routes = routes_of(context, agent)
    for verb in ("filter", "prioritize"):
        routes(HttpRequest(b"POST", f"/agent/{verb}".encode(), b"", names_body("a", "x")))
    server = HttpServer(routes)
    server.refused = {413: 2}
    watched = Reflector(Mock(), NODES, Mock())
    watched.state = ReflectorState(True, "7", time.monotonic() - 3.0, 4, 1, 2)
    metrics = ExtenderMetrics(
        MetricSources(
            calls=lambda: calls_of(routes.verbs),
            agents=lambda: [agent],
            servers=lambda: [server],
            watched=lambda: [watched],
            nodes=lambda: 3,
            events=lambda: (5, 6),
        )
    )
    text = metrics.render().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(PREFIX):
            labels = frozenset(key for s in family.samples for key in s.labels) - {"le"}
            name = family.name.removeprefix(PREFIX) + ("_total" if family.type == "counter" else "")
            found[name] = (family.type, family.documentation, labels)
            assert family.samples, name
    return found


def test_the_documented_metrics_are_served(context: VerbContext, cluster: Cluster) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.+) \|$", PAGE, re.MULTILINE)
    documented = {
        name: (kind, text, frozenset(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels, text in rows
    }
    assert documented == served(context, cluster)


def test_counters_appear_in_metrics(context: VerbContext, cluster: Cluster) -> None:
    agent = agent_of(StubPolicy(cluster, error=ValueError()))
    routes = routes_of(context, agent)
    routes(HttpRequest(b"POST", b"/agent/filter", b"", names_body("a", "x")))
    routes(HttpRequest(b"POST", b"/agent/filter", b"", b"{"))
    metrics = ExtenderMetrics(
        MetricSources(calls=lambda: calls_of(routes.verbs), agents=lambda: [agent])
    )
    text = metrics.render().decode()
    labels = '{agent="agent",verb="filter"}'
    assert f"{PREFIX}call_duration_seconds_count{labels} 2.0" in text
    assert f"{PREFIX}call_errors_total{labels} 1.0" in text
    assert f"{PREFIX}nodes_asked_total{labels} 2.0" in text
    assert f"{PREFIX}nodes_unknown_total{labels} 1.0" in text
    assert f'{PREFIX}policy_errors_total{{agent="agent",policy="p0"}} 1.0' in text
    assert 'verb="bind"' not in text  # never called


def test_the_documented_file_is_valid() -> None:
    (file,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    found = config.read(file)
    assert [agent.name for agent in found.agents] == ["careful", "default"]
    assert found.listen.tls is not None
    assert found.health is not None
    assert found.pod_selector.match_labels == {"tier": "web"}
