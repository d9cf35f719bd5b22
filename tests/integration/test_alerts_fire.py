"""Each alert is fired by a real fault, in Prometheus with the rules of deploy/monitoring.

promtool tests how long each alert waits; here durations and ages are seconds. The first step of
the runbook, the command that shows the cause, is followed as well.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import yaml

from cluster import scheduling
from cluster.console import run
from cluster.observe import SCHEDULER, until
from monitoring.scheduler_load import NAMESPACE as PODS

from ..builders import ready_condition
from .harness import NODE, now
from .operator_world import REPOSITORY
from .scraped_world import Scraped, scraped

NAME = f"fire-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
MIRROR = f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{NODE}/status"
PATIENCE = 180.0

pytestmark = pytest.mark.timeout(480, func_only=True)


LIMITS = {
    # Without a change, the operator reconciles, and a watch receives a bookmark, once a minute.
    "KubeSchedulerOperatorStuck": 75,
    "KubeSchedulerOperatorWatchDead": 100,
}
"""Seconds after which an alert about an age becomes pending; of all others 8."""


def hurried() -> dict[str, Any]:
    """The rules, with seconds in the place of minutes and hours."""
    groups = []
    for component in ("operator", "schedulers"):
        text = (REPOSITORY / "deploy/monitoring" / component / "rules.yaml").read_text()
        groups += copy.deepcopy(yaml.safe_load(text)["spec"]["groups"])
    for rule in (rule for group in groups for rule in group["rules"]):
        rule["for"] = "1s"
        limit = LIMITS.get(rule["alert"], 8)
        if "time() -" in rule["expr"] or "_age_seconds" in rule["expr"]:
            rule["expr"] = re.sub(r"> \d+$", f"> {limit}", rule["expr"].strip())
    return {"groups": groups}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    with scraped(NAME, tmp_path_factory.mktemp("fired"), hurried()) as found:
        until(
            lambda: not found.prometheus.troubles() and not firing(found),
            PATIENCE,
            lambda: f"{found.prometheus.troubles()} {firing(found)}",
        )
        yield found


def firing(found: Scraped) -> set[str]:
    return {name for name, _ in found.prometheus.alerts()}


def kubectl_scheduler(found: Scraped, *words: str) -> str:
    command = [sys.executable, "-m", "kube_scheduler_operator", *words]
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "operator"),
        "KUBECONFIG": str(found.world.sandbox.kubeconfig),
    }
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    return done.stdout + done.stderr


def pod(found: Scraped, name: str, **spec: Any) -> None:
    container = {"name": "c", "image": "none"}
    body = {
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": False, "containers": [container], **spec},
    }
    found.world.api.request("POST", scheduling.pods_of(PODS), body)


@contextmanager
def waiting(found: Scraped, **spec: Any) -> Iterator[None]:
    pod(found, "waits", **spec)
    yield
    scheduling.delete_pods(found.world.api, PODS)


@contextmanager
def scheduler_dead(found: Scraped) -> Iterator[None]:
    found.scheduler.stop()
    with waiting(found):
        yield
    found.start_scheduler()


@contextmanager
def lease_not_renewed(found: Scraped) -> Iterator[None]:
    node = found.world.node
    node.beat, beat = (lambda: None), node.beat
    yield
    node.beat = beat


@contextmanager
def not_ready(found: Scraped) -> Iterator[None]:
    def report(status: bool) -> None:
        ready = ready_condition(status=status, lastTransitionTime=now())
        found.world.api.request("PATCH", MIRROR, {"status": {"conditions": [ready]}})

    report(False)
    yield
    report(True)


@contextmanager
def installer_idle(found: Scraped) -> Iterator[None]:
    """Nothing runs the installer's Pods."""
    node = found.world.node
    node.install, install = (lambda pod: None), node.install
    yield
    node.install = install


@contextmanager
def rollout_idle(found: Scraped) -> Iterator[None]:
    with installer_idle(found):
        found.world.patch(SCHEDULER, {"profile": "HighNodeUtilization"})
        yield
    found.world.rest()


@contextmanager
def mirror_gone(found: Scraped) -> Iterator[None]:
    """The static Pod's manifest is gone, and cannot be written again."""
    with installer_idle(found):
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        found.world.api.request("DELETE", MIRROR.removesuffix("/status"), body)
        yield
    until(found.world.calm, PATIENCE, found.world.why)


def recover(found: Scraped, profile: str) -> None:
    """Roll out a profile, because the current edit was given up, and go back to the first one."""
    found.world.patch(SCHEDULER, {"profile": profile})
    until(
        lambda: found.world.profile() == profile and found.world.calm(), PATIENCE, found.world.why
    )
    found.world.rest()


@contextmanager
def refused(found: Scraped) -> Iterator[None]:
    found.world.node.refusal = lambda pod: 'err="unknown field"'
    found.world.patch(SCHEDULER, {"profile": "HighNodeUtilization"})
    yield
    found.world.node.refusal = lambda pod: ""
    recover(found, "NoScoring")


@contextmanager
def fails(found: Scraped) -> Iterator[None]:
    found.world.node.failure = "kube-scheduler exited 2 times after its start"
    found.world.patch(SCHEDULER, {"profile": "NoScoring"})
    yield
    found.world.node.failure = ""
    recover(found, "HighNodeUtilization")


@contextmanager
def policy_set(found: Scraped) -> Iterator[None]:
    found.world.patch(SCHEDULER, {"policy": {"name": "old"}})
    yield
    found.world.patch(SCHEDULER, {"policy": None})


@contextmanager
def may_not_write(found: Scraped) -> Iterator[None]:
    found.world.proxy.refuse = lambda method, path: (
        403 if method != "GET" and "/leases" not in path and "reviews" not in path else 0
    )
    found.world.patch(SCHEDULER, {"profile": "NoScoring"})
    yield
    found.world.proxy.refuse = lambda method, path: 0
    found.world.rest()


@contextmanager
def watches_silent(found: Scraped) -> Iterator[None]:
    found.world.proxy.silent = True
    yield
    found.world.proxy.silent = False
    # What was cut off in a watch begins again with a new process, as the runbook has it.
    found.world.operator.kill()
    found.world.operator.start(*found.arguments)


@contextmanager
def operator_dead(found: Scraped) -> Iterator[None]:
    found.world.operator.kill()
    yield
    found.world.operator.start(*found.arguments)


@contextmanager
def operator_with(found: Scraped, *arguments: str) -> Iterator[None]:
    found.world.operator.kill()
    found.world.operator.start(*found.arguments, *arguments)
    yield
    found.world.operator.kill()
    found.world.operator.start(*found.arguments)


@contextmanager
def certificate_expires(found: Scraped) -> Iterator[None]:
    certificate, key = found.folder / "tls.crt", found.folder / "tls.key"
    run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes", "-days", "1", "-subj", "/CN=operator", "-keyout", key, "-out", certificate,
    )  # fmt: skip
    files = (f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}")
    with operator_with(found, *files):
        yield


@contextmanager
def newer_api_server(found: Scraped) -> Iterator[None]:
    found.world.proxy.version = "v1.37.2"
    with operator_with(found):
        yield
        found.world.proxy.version = ""


Fault = Callable[[Scraped], AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, dict[str, tuple[str, str]]]] = {
    "the scheduler is dead": (
        scheduler_dead,
        {
            "KubeSchedulerPodsNotAttempted": ("pending", f"{PODS}/waits"),
            "KubeSchedulerDown": ("status", ""),
        },
    ),
    "the Lease is not renewed": (
        lease_not_renewed,
        {"KubeSchedulerNoActiveScheduler": ("status", "has not renewed it since")},
    ),
    "the scheduler is not Ready": (
        not_ready,
        {"KubeSchedulerNotReady": ("status", "StaticPodsDegraded")},
    ),
    "a rollout does not move": (
        rollout_idle,
        {"KubeSchedulerRolloutStuck": ("status", "NodeInstallerProgressing")},
    ),
    "the static Pod is gone": (
        mirror_gone,
        {"KubeSchedulerDrift": ("status", f'no scheduler pod on node "{NODE}"')},
    ),
    "a revision is refused": (
        refused,
        {
            "KubeSchedulerQuarantined": ("status", "unknown field"),
            "KubeSchedulerDegraded": ("status", "PreflightDegraded"),
        },
    ),
    "a revision fails": (
        fails,
        {"KubeSchedulerRolledBack": ("history", "kube-scheduler exited 2 times")},
    ),
    "a Policy is named": (policy_set, {"SchedulerLegacyPolicySet": ("status", "PolicyRemoved")}),
    "the operator is dead": (operator_dead, {"KubeSchedulerOperatorDown": ("status", "")}),
    "the operator may not write": (
        may_not_write,
        {"KubeSchedulerOperatorStuck": ("status", "")},
    ),
    "watches are silent": (
        watches_silent,
        {"KubeSchedulerOperatorWatchDead": ("status", "")},
    ),
    "a certificate expires": (
        certificate_expires,
        {"KubeSchedulerCertificateExpiring": ("status", "")},
    ),
    "the API server is newer": (
        newer_api_server,
        {"KubeSchedulerVersionSkew": ("status", "2 minor versions older than its API server")},
    ),
    "a Pod names no scheduler": (
        lambda found: waiting(found, schedulerName="misspelt"),
        {"KubeSchedulerPodsWithoutScheduler": ("pending", "misspelt")},
    ),
    "a Pod fits nowhere": (
        lambda found: waiting(found, nodeSelector={"no-node": "has-this"}),
        {"KubeSchedulerPodsStuck": ("pending", "node affinity/selector")},
    ),
    "a Pod is gated": (
        lambda found: waiting(found, schedulingGates=[{"name": "example.com/wait"}]),
        {"KubeSchedulerPodsGated": ("pending", "example.com/wait")},
    ),
}
LASTING = {"KubeSchedulerRolledBack"}
"""Alerts that resolve by themselves, an hour after the fault."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fires_its_alerts_until_it_is_over(found: Scraped, name: str) -> None:
    fault, expected = FAULTS[name]
    assert not firing(found) & set(expected)
    with fault(found):
        until(
            lambda: set(expected) <= firing(found),
            PATIENCE,
            lambda: f"firing: {firing(found)}; {found.world.operator.text()[-2000:]}",
        )
        shown = {}
        for alert, (command, _) in expected.items():
            shown[alert] = kubectl_scheduler(found, command)
            print(f"--- {alert}\n$ kubectl scheduler {command}\n{shown[alert]}")
    until(
        lambda: not firing(found) & (set(expected) - LASTING),
        PATIENCE,
        lambda: f"still firing: {firing(found)}; {found.world.operator.text()[-2000:]}",
    )
    assert [alert for alert, (_, cause) in expected.items() if cause not in shown[alert]] == []


def test_every_alert_has_a_fault() -> None:
    fired = {alert for _, expected in FAULTS.values() for alert in expected}
    alerts = {rule["alert"] for group in hurried()["groups"] for rule in group["rules"]}
    assert fired == alerts
