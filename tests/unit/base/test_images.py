"""Which images an allow-list has."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base.images import (
    ALLOWED_BY_DEFAULT,
    EVERY_IMAGE,
    AllowedImages,
    repository,
)

DIGEST = f"sha256:{'a1' * 32}"


@pytest.mark.parametrize(
    ("entry", "image"),
    [
        ("registry.k8s.io/kube-scheduler", "registry.k8s.io/kube-scheduler:v1.35.4"),
        ("registry.k8s.io/kube-scheduler", f"registry.k8s.io/kube-scheduler@{DIGEST}"),
        ("registry.k8s.io/kube-scheduler", f"registry.k8s.io/kube-scheduler:v1@{DIGEST}"),
        ("registry.k8s.io/kube-scheduler", "registry.k8s.io/kube-scheduler"),
        ("localhost:5000/a/b", "localhost:5000/a/b:v1"),
        ("a:v1", "a:v1"),
        ("a:v1", f"a:v1@{DIGEST}"),
        (f"a@{DIGEST}", f"a@{DIGEST}"),
        ("registry.example/team/*", "registry.example/team/a/b:v1"),
        ("*", "anything"),
    ],
)
def test_an_entry_allows(entry: str, image: str) -> None:
    assert AllowedImages((entry,)).allows(image)


@pytest.mark.parametrize(
    ("entry", "image"),
    [
        ("registry.k8s.io/kube-scheduler", "registry.k8s.io/kube-scheduler-evil:v1"),
        ("registry.k8s.io/kube-scheduler", "registry.k8s.io/kube-scheduler/evil:v1"),
        ("registry.k8s.io/kube-scheduler", "registry.k8s.io/kube-scheduler:v1/evil:v1"),
        ("registry.k8s.io/kube-scheduler", "evil.example/registry.k8s.io/kube-scheduler:v1"),
        ("registry.k8s.io/kube-scheduler", "kube-scheduler:v1"),
        ("a:v1", "a:v2"),
        (f"a@{DIGEST}", "a:v1"),
        ("registry.example/team/*", "registry.example/team-evil/a:v1"),
        ("registry.example/team/*", "registry.example/team:v1"),
        ("registry.example/team*", "registry.example/team-evil:v1"),
        ("localhost:5000/a", "localhost:5001/a:v1"),
        ("", ""),
    ],
)
def test_an_entry_does_not_allow(entry: str, image: str) -> None:
    if entry:
        assert not AllowedImages((entry,)).allows(image)
    assert not AllowedImages().allows(image)


def test_a_port_is_not_a_tag() -> None:
    assert repository("localhost:5000/a/b") == "localhost:5000/a/b"
    assert repository(f"localhost:5000/a:v1@{DIGEST}") == "localhost:5000/a"


def test_repositories_of_unknown_images_allow_nothing() -> None:
    assert not AllowedImages().with_repositories_of("").allows("a:v1")
    assert AllowedImages().with_repositories_of("", "a:v1").allows("a:v2")
    assert EVERY_IMAGE.allows("a:v1")


def test_a_refusal_names_the_entry_and_the_setting() -> None:
    image = "registry.example:5000/team/scheduler:v1"
    (problem,) = AllowedImages().problems(("image",), image)
    (warning,) = ALLOWED_BY_DEFAULT.problems(("image",), image)
    assert (problem.severity, warning.severity) == ("error", "warning")
    message = problem.sentence
    assert '"registry.example:5000/team/scheduler:v1" is not allowed' in message
    assert 'add "registry.example:5000/team/scheduler" to ALLOWED_IMAGES' in message
    assert warning.parts[1] == problem.parts[1]
    assert not list(ALLOWED_BY_DEFAULT.extended_by(f"x, {image}").problems(("image",), image))
