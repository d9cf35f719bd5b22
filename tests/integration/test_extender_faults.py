"""A real kube-scheduler that schedules 50 pods a second, and an extender that falls ill meanwhile.

What is pinned is what docs/extenders-faults.md promises: no pod is lost, how fast pods go on being
scheduled follows from the time-out and from `ignorable`, and soon after the extender is back none
waits any more. `hack/bench faults` measures the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.extender_faults import FAULTS, Fault, Outcome, Ward, pods_a_second, ward
from benchmarks.extenders import chosen
from cluster import model

from .conftest import NAME, ApiServer

RECOVERY_SECONDS = 25.0
"""Back-off is 10 s at most; the rest is for a machine that others use as well.

The time that the machine takes to schedule the Pods that wait comes on top of it.
"""


@pytest.fixture(scope="module")
def patient(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[Ward]:
    """Our extender, beside a kube-scheduler and hollow nodes."""
    (foo,) = chosen(["foo"], full=False)
    with ward(model.require(NAME), foo) as made:
        yield made


def play(patient: Ward, name: str, *, ignorable: bool) -> Outcome:
    """Let it fall ill and get well; what holds for all faults."""
    outcome = patient.play(find(name, ignorable=ignorable))
    assert outcome.created > 20
    assert outcome.lost == 0
    assert outcome.before > 0
    backlog_seconds = outcome.left / outcome.before  # at the pace of this machine
    assert outcome.worked_off < RECOVERY_SECONDS + backlog_seconds
    return outcome


def find(name: str, *, ignorable: bool) -> Fault:
    return next(one for one in FAULTS if (one.name, one.ignorable) == (name, ignorable))


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", ["killed", "answers rubbish"])
def test_an_ignorable_extender_that_fails_at_once_costs_nothing(patient: Ward, name: str) -> None:
    # On a busy machine less than it is given, but more than one that hangs would leave.
    slow = pods_a_second(find("hangs", ignorable=True))
    assert play(patient, name, ignorable=True).during > 1.5 * slow


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", ["hangs", "takes its time"])
def test_an_ignorable_extender_costs_every_pod_what_its_calls_take(
    patient: Ward, name: str
) -> None:
    outcome = play(patient, name, ignorable=True)
    # A busy machine makes it slower, but nothing makes it faster: pods wait for each other.
    expected = pods_a_second(find(name, ignorable=True))
    assert 0 < outcome.during < 1.5 * expected
    assert outcome.left > 0


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", ["killed", "hangs"])
def test_without_ignorable_nothing_is_scheduled_until_it_is_back(patient: Ward, name: str) -> None:
    outcome = play(patient, name, ignorable=False)
    assert outcome.during == 0
    assert outcome.left > 10
