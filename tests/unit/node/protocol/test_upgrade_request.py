"""Which images in kubeadm's manifest are requests to upgrade."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.node.protocol.upgrade_request import is_upgrade, why_not_followed

OLD, NEW = (f"registry.k8s.io/kube-scheduler:v1.{minor}" for minor in ("35.4", "36.3"))
SERVER = "registry.k8s.io/kube-apiserver:v1.36.3"


@pytest.mark.parametrize(
    ("image", "api_server", "why"),
    [
        (NEW, SERVER, ""),
        (NEW, "", ""),
        (f"{NEW}-rc.1", SERVER, ""),
        (OLD.replace("35.4", "35.9"), SERVER, ""),
        ("registry.k8s.io/kube-scheduler:v1.37.0", SERVER, "newer than the API server"),
        ("registry.k8s.io/kube-scheduler:v1.34.0", SERVER, "too old for the API server"),
        ("registry.example/kube-scheduler:v1.36.3", SERVER, "its repository is not"),
        ("registry.k8s.io/kube-scheduler:latest", SERVER, "its tag is not a version"),
        ("registry.k8s.io/kube-scheduler@sha256:00", SERVER, "its tag is not a version"),
    ],
)
def test_an_image_is_followed_within_repository_and_skew(
    image: str, api_server: str, why: str
) -> None:
    found = why_not_followed(image, OLD, api_server)
    assert why in found if why else found == ""
    assert is_upgrade(image, OLD, api_server) is not bool(why)


def test_the_same_image_and_an_unknown_one_are_not_upgrades() -> None:
    assert not is_upgrade(OLD, OLD, SERVER)
    assert not is_upgrade("", OLD, SERVER)
    assert not is_upgrade(NEW, "", SERVER)
