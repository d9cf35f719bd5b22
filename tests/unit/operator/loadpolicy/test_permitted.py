"""What the author of a LoadPolicy cannot obtain through the programs that it runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate
from kube_scheduler_operator.kube.resource import DAEMON_SETS, DEPLOYMENTS

from ....builders import load_policy
from .world import World

HOST = "prometheus.monitoring"
URL = f"https://{HOST}:9090"
PLACE = f"{HOST}_9090"
OPTIONS = CheckOptions(Gates(Version(1, 35)))
LABEL = "kube-scheduler-operator.dev/token-for"
FIX = f"kubectl -n kube-scheduler-operator label secret prometheus {LABEL}="


def arguments(*args: str) -> dict[str, Any]:
    return {"source": {"nodeMetrics": {"args": list(args)}}}


def token(url: str = URL, name: str = "prometheus", **settings: Any) -> dict[str, Any]:
    prometheus = {"url": url, "tokenSecret": {"name": name}, **settings}
    return {"source": {"type": "Prometheus", "prometheus": prometheus}}


ATTACKS: list[tuple[dict[str, Any], str]] = [
    (arguments("--root=/host/proc/1/root"), "source.nodeMetrics.args[0]"),
    (arguments("--roo=/"), "source.nodeMetrics.args[0]"),
    (arguments("--interval=1", "--state-file=/etc/passwd"), "source.nodeMetrics.args[1]"),
    (arguments("--state-file", "/etc/passwd"), "source.nodeMetrics.args[0]"),
    (arguments("--listen-address=0.0.0.0:22"), "source.nodeMetrics.args[0]"),
    (arguments("--web.listen-address=0.0.0.0:22"), "source.nodeMetrics.args[0]"),
    (arguments("--tls-cert-file=/etc/shadow"), "source.nodeMetrics.args[0]"),
    (arguments("--cgroup=/../../etc"), "source.nodeMetrics.args[0]"),
    (arguments("--cgroup"), "source.nodeMetrics.args[0]"),
    (arguments("--interval=1\n--root=/"), "source.nodeMetrics.args[0]"),
    (arguments("--interval=1\x00"), "source.nodeMetrics.args[0]"),
    (arguments("--"), "source.nodeMetrics.args[0]"),
    ({"source": {"nodeMetrics": {"port": 10250}}}, "source.nodeMetrics.port"),
    ({"source": {"nodeMetrics": {"port": 10259}}}, "source.nodeMetrics.port"),
    ({"source": {"nodeMetrics": {"port": 22}}}, "source.nodeMetrics.port"),
    (token(name="another"), "source.prometheus.tokenSecret.name"),
    (token("https://evil.example"), "source.prometheus.tokenSecret.name"),
    (token(f"https://{HOST}.evil.example"), "source.prometheus.tokenSecret.name"),
    (token(f"https://{HOST}@evil.example"), "source.prometheus.url"),
    (token(f"https://{HOST}\\@evil.example"), "source.prometheus.url"),
    (token(f"https://evil.example\\@{HOST}"), "source.prometheus.url"),
    (token(f"https://evil.example#@{HOST}"), "source.prometheus.url"),
    (token(f"https://{HOST}/?x="), "source.prometheus.url"),
    (token("https://[fd00::1]:9090"), "source.prometheus.url"),
    (token(f"https://{'a' * 64}"), "source.prometheus.url"),
    (token(f"https://{'a' * 60}:9090"), "source.prometheus.url"),
    (token(f"https://{HOST}_9090"), "source.prometheus.url"),
    (token(f"http://{HOST}:9090"), "source.prometheus.url"),
    (token(f"HTTP://{HOST}"), "source.prometheus.url"),
    (token(insecureSkipVerify=True), "source.prometheus.insecureSkipVerify"),
    (token(f"https://{HOST}"), "source.prometheus.tokenSecret.name"),
    (token(f"https://{HOST}:9091"), "source.prometheus.tokenSecret.name"),
]
IDS = [f"{path} {number}" for number, (_, path) in enumerate(ATTACKS)]


def labelled() -> World:
    """A cluster whose administrator permits one token for one host and port."""
    world = World()
    world.secret("prometheus", token_for=PLACE)
    return world


@pytest.mark.parametrize(("spec", "path"), ATTACKS, ids=IDS)
def test_a_setting_that_gives_more_than_load_is_refused(spec: dict[str, Any], path: str) -> None:
    world = labelled()
    world.put(**spec)
    world.run()
    status, reason, message = world.condition("Accepted")
    assert (status, reason) == ("False", "NotInUse")
    assert f"spec.{path}: " in message
    assert "; " in message, "it has a fix"
    assert world.find(DEPLOYMENTS, "load-annotator-default") is None


@pytest.mark.parametrize(("spec", "path"), ATTACKS, ids=IDS)
def test_validate_refuses_it_in_a_file(spec: dict[str, Any], path: str) -> None:
    findings = validate([("f", json.dumps(load_policy(**spec)))], OPTIONS).findings
    (finding,) = (finding for finding in findings if finding.path == f"spec.{path}")
    assert finding.fix
    # Only the cluster has the labels of its Secrets.
    assert finding.severity == ("warning" if path.endswith("tokenSecret.name") else "error")


def test_validate_names_the_label_that_a_token_needs() -> None:
    (finding,) = validate([("f", json.dumps(load_policy(**token())))], OPTIONS).findings
    assert (finding.severity, finding.fix) == ("warning", f"run {FIX}{PLACE}")


@pytest.mark.parametrize(("spec", "path"), ATTACKS, ids=IDS)
def test_after_a_refused_edit_the_last_accepted_version_stays(
    spec: dict[str, Any], path: str
) -> None:
    del path
    world = labelled()
    world.installed()
    before = world.one(DAEMON_SETS, "node-metrics-default")["spec"]
    world.put(**spec)
    world.run()
    assert world.condition("Accepted")[:2] == ("False", "LastAcceptedInUse")
    assert world.one(DAEMON_SETS, "node-metrics-default")["spec"] == before


@pytest.mark.parametrize(
    "spec",
    [
        arguments("--interval=1", "--max-of-samples", "-v=4", "--moments-window=3600"),
        arguments("--cgroup=/system.slice/kubelet-of-$(NODE_NAME)", "--cpu-capacity=3500m"),
        arguments("--cgroup=/kubelet.slice/a:b@1", "--memory-capacity=8Gi"),
        token(),
        token(f"HTTPS://{HOST.upper()}:9090/prometheus"),
    ],
    ids=str,
)
def test_documented_settings_are_accepted(spec: dict[str, Any]) -> None:
    world = labelled()
    world.put(**spec)
    world.run()
    assert world.condition("Accepted")[0] == "True", world.condition("Accepted")


@pytest.mark.parametrize("url", [f"https://{HOST}", f"https://{HOST}:443/api"])
def test_the_label_for_the_port_of_https_has_no_port(url: str) -> None:
    world = World()
    world.secret("prometheus", token_for=HOST)
    world.put(**token(url))
    world.run()
    assert world.condition("Accepted")[0] == "True", world.condition("Accepted")


def test_a_label_without_a_port_permits_no_other_port() -> None:
    world = World()
    world.secret("prometheus", token_for=HOST)
    world.put(**token(f"https://{HOST}:9090"))
    world.run()
    assert world.condition("Accepted")[0] == "False"
    assert "port 9090" in world.condition("Accepted")[2]


def test_without_a_token_http_and_unverified_certificates_are_accepted() -> None:
    for settings in ({"url": f"http://{HOST}"}, {"url": URL, "insecureSkipVerify": True}):
        world = World()
        world.put(source={"type": "Prometheus", "prometheus": settings})
        world.run()
        assert world.condition("Accepted")[0] == "True", world.condition("Accepted")


def test_labelling_the_secret_is_the_fix() -> None:
    world = World()
    world.put(**token())
    world.run()
    message = world.condition("Accepted")[2]
    assert f"{FIX}{PLACE}" in message
    world.secret("prometheus", token_for=PLACE)
    world.run()
    assert world.condition("Accepted")[0] == "True"


def test_a_policy_that_was_accepted_without_the_label_keeps_running_and_names_the_fix() -> None:
    world = labelled()
    world.installed(**token())
    before = world.one(DEPLOYMENTS, "load-annotator-default")["spec"]
    world.secret("prometheus")
    world.run()
    assert world.condition("Accepted")[:2] == ("False", "LastAcceptedInUse")
    assert f"{FIX}{PLACE}" in world.condition("Accepted")[2]
    assert world.one(DEPLOYMENTS, "load-annotator-default")["spec"] == before
