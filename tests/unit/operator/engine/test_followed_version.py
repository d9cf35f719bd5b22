"""Which version schedulers follow while the API servers of a control plane are replaced."""

from __future__ import annotations

from kube_scheduler_operator.operator.engine.followed_version import FollowedVersion

OLD, NEW, NEWEST = "v1.35.4-eks-1", "v1.36.1-eks-1", "v1.36.2-eks-1"


def test_the_first_answer_counts_at_once() -> None:
    version = FollowedVersion()
    assert version.observe(OLD, 0.0)
    assert (version.text, version.newer) == (OLD, "")
    assert not version.observe(OLD, 60.0)


def test_a_newer_version_counts_after_all_answers_have_shown_it() -> None:
    version = FollowedVersion(OLD, settling=600)
    assert version.observe(NEW, 0.0)
    assert (version.text, version.newer) == (OLD, NEW)
    assert not version.observe(NEW, 599.0)
    assert version.observe(NEW, 600.0)
    assert (version.text, version.newer) == (NEW, "")


def test_an_older_answer_begins_the_wait_again() -> None:
    version = FollowedVersion(OLD, settling=600)
    version.observe(NEW, 0.0)
    assert version.observe(OLD, 599.0)
    assert (version.text, version.newer) == (OLD, "")
    version.observe(NEW, 600.0)
    version.observe(NEW, 1199.0)
    assert version.text == OLD
    version.observe(NEW, 1200.0)
    assert version.text == NEW


def test_a_scheduler_is_never_newer_than_an_api_server() -> None:
    version = FollowedVersion(NEW)
    assert version.observe(OLD, 0.0)
    assert version.text == OLD


def test_of_two_newer_versions_the_older_one_is_reported() -> None:
    version = FollowedVersion(OLD)
    version.observe(NEWEST, 0.0)
    version.observe(NEW, 1.0)
    assert version.newer == NEW
    version.observe(NEWEST, 2.0)
    assert version.newer == NEW


def test_another_build_of_the_same_version_counts_at_once() -> None:
    version = FollowedVersion(OLD)
    assert version.observe("v1.35.4-eks-2", 0.0)
    assert (version.text, version.newer) == ("v1.35.4-eks-2", "")


def test_an_answer_without_a_version_changes_nothing() -> None:
    version = FollowedVersion(OLD)
    version.observe(NEW, 0.0)
    assert not version.observe("", 1.0)
    assert not version.observe("unknown", 1.0)
    assert (version.text, version.newer) == (OLD, NEW)


def test_requests_are_frequent_enough_for_the_wait() -> None:
    assert FollowedVersion(settling=600).interval == 60.0
    assert FollowedVersion(settling=20).interval == 2.0
    assert FollowedVersion(settling=0).interval == 1.0
