"""What a real API server makes of the kind LoadPolicy, and what kubectl shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .conftest import ApiServer, RefusedError
from .test_crds import SINCE, Kind

pytestmark = pytest.mark.presubmit

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def policies(api_server: ApiServer) -> Iterator[Kind]:
    kind = Kind(api_server, "LoadPolicy")
    yield kind
    kind.remove()


def limit(value: Any) -> dict[str, Any]:
    return {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": value}]}


def test_nothing_is_enough(policies: Kind) -> None:
    assert policies.get(policies.create({}))["spec"] == {}


@pytest.mark.presubmit
def test_an_empty_type_is_the_default_one(policies: Kind) -> None:
    """A typed Go client writes it for an absent one."""
    spec = {"source": {"type": "", "nodeMetrics": {"port": 9100}}}
    assert policies.get(policies.create(spec))["spec"] == spec


def test_lists_can_be_empty(policies: Kind) -> None:
    spec: dict[str, Any] = {"predicates": [], "priorities": [], "hotValues": []}
    assert policies.get(policies.create(spec))["spec"] == spec


def test_everything_at_once(policies: Kind) -> None:
    spec = {
        "source": {
            "type": "Prometheus",
            "timeout": "3s",
            "prometheus": {
                "url": "https://prometheus.monitoring:9090",
                "tokenSecret": {"name": "prometheus", "key": "token"},
                "caConfigMap": {"name": "service-ca", "key": "service-ca.crt"},
                "insecureSkipVerify": False,
                "unit": "Fraction",
                "queries": {"disk_usage": "node:disk"},
            },
        },
        "sync": [{"name": "disk_usage", "period": "1m30s"}],
        "predicates": [
            {"name": "disk_usage", "maxLimit": "65%"},
            {"name": "disk_usage", "maxLimit": 0.65},
            {"name": "disk_usage", "maxLimit": 1},
        ],
        "priorities": [{"name": "disk_usage", "weight": 0.2}, {"name": "disk_usage", "weight": 1}],
        "hotValues": [{"timeRange": "5m", "count": 5}],
        "cycle": "1m",
        "refresh": "240s",
        "grace": "5m",
        "write": ["crane", "safe"],
        "read": "crane-plus",
        "craneTimeZone": "Asia/Shanghai",
        "annotator": {
            "replicas": 3,
            "logLevel": "Debug",
            "resources": {"requests": {"cpu": "20m", "memory": 1000000}},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"operator": "Exists"}],
        },
    }
    assert policies.get(policies.create(spec))["spec"] == spec
    exporter = {
        "port": 9100, "path": "/statistics", "args": ["--interval=1"], "mountHost": True,
        "resources": {"limits": {"cpu": 1}}, "nodeSelector": {}, "tolerations": [],
    }  # fmt: skip
    spec = {"source": {"type": "NodeMetrics", "nodeMetrics": exporter}}
    assert policies.get(policies.create(spec))["spec"] == spec
    kubelet = {"port": 10250, "insecureSkipVerify": True}
    spec = {"source": {"type": "KubeletSummary", "kubeletSummary": kubelet}}
    assert policies.get(policies.create(spec))["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(limit(65), "spec.predicates[0].maxLimit", id="percent without its sign"),
        pytest.param(limit("0.65"), "spec.predicates[0].maxLimit", id="fraction in quotes"),
        pytest.param(limit("165%"), "spec.predicates[0].maxLimit", id="more than all"),
        pytest.param(limit(-0.1), "spec.predicates[0].maxLimit", id="negative"),
        pytest.param(
            {"predicates": [{"name": "cpu_usage_avg_5m"}]},
            "spec.predicates[0].maxLimit",
            id="no limit",
        ),
        pytest.param(
            {"sync": [{"name": "cpu_usage_avg_5m", "period": 180}]}, "spec.sync[0].period", id="180"
        ),
        pytest.param(
            {"sync": [{"name": "cpu_usage_avg_5m", "period": "3"}]}, "spec.sync[0].period", id="3"
        ),
        pytest.param(
            {"sync": [{"name": "cpu usage", "period": "3m"}]}, "spec.sync[0].name", id="no name"
        ),
        pytest.param(limit(0), "spec.predicates[0].maxLimit", id="nothing"),
        pytest.param(
            {"predicates": [{"name": "cpu_usage_avg_5min", "maxLimit": 0.5}]},
            "every metric needs an entry in sync",
            id="unknown metric",
        ),
        pytest.param(
            {
                "sync": [{"name": "cpu_usage_avg_5m", "period": "3m"}],
                "predicates": [],
                "priorities": [{"name": "mem_usage_avg_5m", "weight": 1}],
            },
            "every metric needs an entry in sync",
            id="metric without a period",
        ),
        pytest.param(
            {"sync": [{"name": "disk_usage", "period": "3m"}]},
            "no source measures this metric",
            id="metric without a measurement",
        ),
        pytest.param(
            {"priorities": [{"name": "cpu_usage_avg_5m", "weight": 0}]},
            "all weights are 0",
            id="no weights",
        ),
        pytest.param(
            {"priorities": [{"name": "cpu_usage_avg_5m", "weight": -1}]},
            "spec.priorities[0].weight",
            id="negative weight",
        ),
        pytest.param(
            {"hotValues": [{"timeRange": "5m", "count": 0}]}, "spec.hotValues[0].count", id="none"
        ),
        pytest.param(
            {"cycle": "2m", "refresh": "1m"}, "refresh must be as long as cycle", id="refresh"
        ),
        pytest.param({"source": {"type": "Ganglia"}}, "spec.source.type", id="source"),
        pytest.param({"source": {"type": "Prometheus"}}, "prometheus.url is required", id="no url"),
        pytest.param(
            {"source": {"type": "Prometheus", "prometheus": {"url": "prometheus:9090"}}},
            "spec.source.prometheus.url",
            id="no scheme",
        ),
        pytest.param(
            {"source": {"type": "MetricsServer", "nodeMetrics": {}}},
            "nodeMetrics is only for the type NodeMetrics",
            id="exporter of another",
        ),
        pytest.param(
            {"source": {"prometheus": {"url": "http://p"}}},
            "prometheus is only for the type Prometheus",
            id="no type",
        ),
        pytest.param(
            {"source": {"kubeletSummary": {}}},
            "kubeletSummary is only for the type KubeletSummary",
            id="no type either",
        ),
        pytest.param({"write": ["own"]}, "spec.write[0]", id="write"),
        pytest.param({"write": ["crane", "crane"]}, "spec.write[1]", id="twice"),
        pytest.param({"read": "everything"}, "spec.read", id="read"),
        pytest.param({"annotator": {"replicas": 0}}, "spec.annotator.replicas", id="no replicas"),
        pytest.param({"namespace": "x"}, "unknown field", id="unknown field"),
    ],
)
def test_mistakes_are_refused_where_they_are(
    policies: Kind, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        policies.create(spec)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["a" * 41, "with.dots", "1st"])
def test_names_that_pods_could_not_have_are_refused(policies: Kind, name: str) -> None:
    with pytest.raises(RefusedError, match=r"metadata\.name becomes part of the names of Pods"):
        policies.create({}, name=name)


def test_what_kubectl_shows(policies: Kind) -> None:
    name = policies.create({})
    conditions = [
        {
            "type": kind,
            "status": status,
            "lastTransitionTime": SINCE,
            "reason": "R",
            "message": f"about {kind}",
        }
        for kind, status in (
            ("Accepted", "True"),
            ("Available", "False"),
            ("Degraded", "True"),
            ("Ready", "False"),
        )
    ]
    status = {
        "observedGeneration": 1,
        "acceptedGeneration": 1,
        "accepted": {"any": "thing"},
        "source": "NodeMetrics",
        "lastCycle": SINCE,
        "nodes": {"total": 3, "known": 1, "stale": 1, "missing": 1},
        "staleNodes": ["b"],
        "missingNodes": ["c"],
        "conditions": conditions,
    }
    policies.set_status(name, status)
    assert policies.get(name)["status"] == status
    row = policies.row(name)
    assert row.pop("AGE")
    assert row == {
        "NAME": name, "SOURCE": "NodeMetrics", "NODES": "3", "KNOWN": "1", "READY": "False",
        "REASON": "R",
    }  # fmt: skip
    wide = policies.row(name, "-o", "wide")
    assert (wide["ACCEPTED"], wide["AVAILABLE"], wide["DEGRADED"]) == ("True", "False", "True")
    assert wide["MESSAGE"] == "about Ready"
