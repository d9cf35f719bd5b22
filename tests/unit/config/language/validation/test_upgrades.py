"""What each newer minor version refuses, and what is not known of it."""

from __future__ import annotations

from collections.abc import Iterator

from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST
from kube_scheduler_operator.config.language.validation.upgrades import (
    VICTIMLESS_CANDIDATES_SINCE,
    VersionRefusal,
    upgrade_steps,
)
from kube_scheduler_operator.config.language.versions import Version

V34, V37 = Version(1, 34, 4), Version(1, 37)
PREEMPTING = {"urlPrefix": "http://x.example", "preemptVerb": "preempt"}


def refusals(version: Version) -> Iterator[VersionRefusal]:
    """A field that no version accepts, and one that 1.36 and later do not accept."""
    yield VersionRefusal("always", "never accepted")
    if version.minor >= 36:
        yield VersionRefusal("later", f"refused by {version.short}")


def test_an_error_is_named_at_the_step_at_which_it_appears() -> None:
    steps = upgrade_steps(V34, V37, refusals, ())
    assert [(step.version.short, step.refused, step.unknown) for step in steps] == [
        ("1.35", (), ""),
        ("1.36", ("refused by 1.36",), ""),
        ("1.37", (), ""),
    ]


def test_a_version_without_recorded_rules_is_not_known() -> None:
    following = Version(1, NEWEST.minor + 1)
    (step,) = upgrade_steps(NEWEST, following, refusals, ())
    assert step.refused == ()
    assert step.unknown.startswith(f"the rules of {following.short} are not on record")


def test_the_rules_of_a_pre_release_are_named_with_and_without_a_refusal() -> None:
    for before in (V34, V37):
        step = upgrade_steps(before, Version(1, 38), refusals, ())[-1]
        assert step.pre_release.startswith("the rules of 1.38 are those of the pre-release v1.38.0")
    (step,) = upgrade_steps(V37, Version(1, 38), lambda v: refusals(Version(1, v.minor - 2)), ())
    assert step.refused
    assert step.pre_release
    assert not any(step.pre_release for step in upgrade_steps(V34, V37, refusals, ()))


def test_a_doubt_remains_where_nothing_is_refused() -> None:
    steps = upgrade_steps(V34, V37, refusals, (), "plugins of its own")
    assert [step.unknown for step in steps] == ["plugins of its own", "", "plugins of its own"]


def test_what_extenders_that_preempt_have_to_accept_is_named_once() -> None:
    extenders = [{"urlPrefix": "http://y.example"}, PREEMPTING, "no extender"]
    (step,) = upgrade_steps(V37, VICTIMLESS_CANDIDATES_SINCE, refusals, extenders)
    assert step.duties == (
        "extenders[1] (http://x.example) has a preemptVerb: from 1.38 on, it has to accept "
        "candidates whose list of victims is empty (kubernetes #135486)",
    )
    assert upgrade_steps(V34, V37, refusals, extenders)[-1].duties == ()


def test_a_url_of_others_is_bounded() -> None:
    extenders = [{"urlPrefix": "http://x\n" + "y" * 9999, "preemptVerb": "p"}]
    (step,) = upgrade_steps(V37, VICTIMLESS_CANDIDATES_SINCE, refusals, extenders)
    (duty,) = step.duties
    assert len(duty) < 400
    assert "\n" not in duty
