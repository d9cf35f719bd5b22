"""The load policy in a file that changes while a program runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube_scheduler_operator.scheduling.load.policy_follower import PolicyFollower

VALID = '{"predicate": [{"name": "cpu_usage_avg_5m", "maxLimit": 0.65}]}'
INVALID = '{"predicates": []}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    path.write_text(VALID)
    return path


def follow(file: Path) -> PolicyFollower:
    ticks = iter(float(second) for second in range(0, 1000, 10))
    return PolicyFollower(str(file), required=True, clock=lambda: next(ticks))


def test_an_invalid_policy_is_reported_each_time_it_returns(file: Path) -> None:
    follower = follow(file)
    for _ in range(2):
        file.write_text(INVALID)
        assert not follower.changed()
        assert "predicates" in follower.error
        assert not follower.changed()
        assert "predicates" in follower.error, "while it stays"
        file.write_text(VALID)
        assert not follower.changed(), "the policy in use has not changed"
        assert follower.error == ""


def test_a_missing_file_keeps_the_policy(file: Path) -> None:
    follower = follow(file)
    policy = follower.policy
    file.unlink()
    assert not follower.changed()
    assert "No such file" in follower.error
    assert follower.policy is policy
