"""A user with `edit` in one namespace decides nothing of what others run, see and get.

For every attempt of attempts.py: no condition, revision, program or configuration of others
changes, and Pods of others are bound at once, by each scheduler, to the node that they prefer.
"""

from __future__ import annotations

import time

import pytest

from cluster.api import ApiError
from kube_scheduler_operator.base import names

from .attempts import ATTEMPTS, Attempt
from .world import DEFAULT, FORGED, SCHEDULER, Others, Tenant, changes, refused

pytestmark = pytest.mark.timeout(300, func_only=True)

SEEN = 7.0
"""Seconds in which the operator has seen what a tenant did: three polls, and a reconcile."""


def test_there_are_forty_attempts_with_different_names() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS) >= 40


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_nothing_of_others_changes(attempt: Attempt, others: Others, tenant: Tenant) -> None:
    before = others.state()
    if attempt.refused:
        with pytest.raises(ApiError) as answer:
            attempt.act(tenant, others)
        assert refused(answer.value)
        assert attempt.refused in str(answer.value)
    else:
        attempt.act(tenant, others)
        time.sleep(SEEN)
        for scheduler in (DEFAULT, SCHEDULER):
            assert others.place(scheduler) == others.preferred, f"{scheduler} was misled"
    assert changes(before, others.state(), attempt.about) == {}


@pytest.mark.parametrize("command", [("status",), ("check",), ("version",), ("history",)])
def test_no_command_shows_what_a_tenant_forged(
    command: tuple[str, ...], others: Others, tenant: Tenant
) -> None:
    forging = ("Events about a bound Pod", "a mirror Pod", "an operator", "a scheduler of its own")
    for attempt in ATTEMPTS:
        if attempt.name.startswith(forging):
            attempt.act(tenant, others)
    time.sleep(SEEN)
    done = others.cluster.plugin(*command)
    assert FORGED not in done.stdout + done.stderr
    assert "999999" not in done.stdout + done.stderr


def test_the_cluster_could_have_noticed(others: Others) -> None:
    """What is compared is there: an empty observation would be equal to every other one."""
    state = others.state()
    for key in (
        f"KubeScheduler {names.UNKNOWN_SCHEDULER}", f"KubeScheduler {names.PODS_WITHOUT_SCHEDULER}",
        f"{SCHEDULER} {names.AVAILABLE}", f"configmap {names.CONFIG}", "revision",
    ):  # fmt: skip
        assert state[key]
    assert any(key.startswith("pod kube-system/kube-scheduler-") for key in state)
