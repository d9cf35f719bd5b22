"""The images of containers that Kustomizations change; the rules are those of kustomize v5."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.config.lint.forms.form import ImageChange, Kustomization
from kube_scheduler_operator.config.lint.forms.kustomize import ChangedImages

NAME = "registry.example.com:5000/kube-scheduler"
DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("change", "image", "changed"),
    [
        pytest.param(ImageChange("s", new_tag="2"), "s:1", "s:2", id="tag"),
        pytest.param(ImageChange("s", new_tag="2"), "s", "s:2", id="no tag before"),
        pytest.param(ImageChange("s", new_tag="2"), f"s:1@{DIGEST}", "s:2", id="tag for digest"),
        pytest.param(ImageChange("s", digest=OTHER), "s:1", f"s@{OTHER}", id="digest for tag"),
        pytest.param(
            ImageChange("s", new_tag="2", digest=OTHER), "s:1", f"s:2@{OTHER}", id="tag and digest"
        ),
        pytest.param(ImageChange("s", new_name="t/s"), "s:1", "t/s:1", id="name"),
        pytest.param(
            ImageChange("s", new_name="t/s"), f"s@{DIGEST}", f"t/s@{DIGEST}", id="name and digest"
        ),
        pytest.param(ImageChange("s", tag_suffix="-eks"), "s:1", "s:1-eks", id="suffix"),
        pytest.param(ImageChange("s", "", "2", "", "-x"), "s:1", "s:2", id="tag before suffix"),
        pytest.param(ImageChange(NAME, new_tag="2"), f"{NAME}:1", f"{NAME}:2", id="port"),
        pytest.param(ImageChange("s", new_tag="2"), "t/s:1", "t/s:1", id="other registry"),
        pytest.param(ImageChange("s", new_tag="2"), "sched:1", "sched:1", id="longer name"),
        pytest.param(ImageChange("s.x", new_tag="2"), "sax:1", "sax:1", id="no pattern"),
        pytest.param(ImageChange("", new_tag="2"), "s:1", "s:1", id="no name"),
    ],
)
def test_a_change_applies_to_images_of_its_name(
    change: ImageChange, image: str, changed: str
) -> None:
    assert change.applied(image) == changed


def test_changes_apply_to_the_resources_only_and_in_order() -> None:
    changes = (ImageChange("s", new_name="t"), ImageChange("t", new_tag="2"))
    images = ChangedImages.of([("d/kustomization.yaml", Kustomization(("./a.yaml",), changes))])
    assert images.applied("d/a.yaml", "s:1") == "t:2"
    assert images.applied("./d/a.yaml", "s:1") == "t:2"
    assert images.applied("d/b.yaml", "s:1") == "s:1"
    assert images.applied("a.yaml", "s:1") == "s:1"


def test_two_overlays_with_the_same_image_agree() -> None:
    base = Kustomization(("pod.yaml",))
    images = ChangedImages.of([
        ("base/kustomization.yaml", base),
        ("one/kustomization.yaml", Kustomization(("../base",), (ImageChange("s", "", "2"),))),
        ("two/kustomization.yaml", Kustomization(("../base",), (ImageChange("s", "", "2"),))),
    ])  # fmt: skip
    assert images.applied("base/pod.yaml", "s:1") == "s:2"
