"""Probes of a container that kube-scheduler does not answer."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import FileFinding
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)))
IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
RIGHT = {"path": "/healthz", "port": 10259, "scheme": "HTTPS", "host": "127.0.0.1"}


def findings(
    request: dict[str, Any], *flags: str, probe: str = "livenessProbe", **container: Any
) -> list[FileFinding]:
    shown = {
        "name": "kube-scheduler",
        "image": IMAGE,
        "command": ["kube-scheduler", *flags],
        probe: {"httpGet": request},
        **container,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler"},
        "spec": {"hostNetwork": True, "containers": [shown]},
    }
    return list(validate([("pod.yaml", yaml.safe_dump(pod))], OPTIONS).findings)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"path": "/healthz", "port": 10251}, "port"),
        ({**RIGHT, "port": 10251, "scheme": "HTTP"}, "port"),
        ({**RIGHT, "scheme": "HTTP"}, "scheme"),
        ({"path": "/healthz", "port": 10259}, "port"),
    ],
)
@pytest.mark.parametrize("probe", ["livenessProbe", "startupProbe", "readinessProbe"])
def test_a_probe_of_another_port_or_scheme_is_a_warning(
    request_: dict[str, Any], field: str, probe: str
) -> None:
    (found,) = findings(request_, probe=probe)
    assert (found.reason, found.severity) == ("ProbeFails", "warning")
    assert found.path == f"spec.containers[0].{probe}.httpGet.{field}"
    assert found.fix == "set port: 10259 and scheme: HTTPS"


def test_a_probe_of_another_address_is_a_warning() -> None:
    request = {key: value for key, value in RIGHT.items() if key != "host"}
    assert findings(request) == []
    (found,) = findings(request, "--bind-address=127.0.0.1")
    assert found.fix.startswith("in a Pod with hostNetwork, set host: 127.0.0.1")


@pytest.mark.parametrize(
    ("request_", "flags", "container"),
    [
        (RIGHT, ("--bind-address=127.0.0.1",), {}),
        ({**RIGHT, "port": 10260}, ("--secure-port=10260",), {}),
        ({**RIGHT, "port": "https"}, (), {"ports": [{"name": "https", "containerPort": 10259}]}),
        ({**RIGHT, "port": "probe-port"}, (), {}),
        ({"port": 10251}, (), {"image": "registry.k8s.io/kube-scheduler:v1.22.3"}),
        ({"port": 10251}, (), {"image": "koordinatorsh/koord-scheduler:v1.7.0"}),
    ],
)
def test_a_probe_that_is_answered_or_unknown_is_not_reported(
    request_: dict[str, Any], flags: tuple[str, ...], container: dict[str, Any]
) -> None:
    assert findings(request_, *flags, **container) == []
