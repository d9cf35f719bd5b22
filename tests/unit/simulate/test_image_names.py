"""Images under other names than those that nodes report."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.image_names import (
    images_without_effect,
    unreported_images,
    whole_name,
    with_images_of,
)
from kube_scheduler_operator.simulate.kinds import NODES
from kube_scheduler_operator.simulate.world import World

MEBIBYTE = 2**20


@pytest.mark.parametrize(
    ("image", "whole"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.10", "docker.io/library/nginx:1.10"),
        ("team/web", "docker.io/team/web:latest"),
        ("quay.io/team/web:2", "quay.io/team/web:2"),
        ("registry:5000/web", "registry:5000/web:latest"),
        ("localhost/web:2", "localhost/web:2"),
    ],
)
def test_a_name_is_completed_as_runtimes_do_it(image: str, whole: str) -> None:
    assert whole_name(image) == whole


def node(*images: tuple[str, int]) -> dict[str, Any]:
    reported = [{"names": [name], "sizeBytes": size * MEBIBYTE} for name, size in images]
    return {"metadata": {"name": "n"}, "status": {"images": reported}}


def found(image: str, *nodes: dict[str, Any]) -> list[str]:
    return list(images_without_effect({"containers": [{"image": image}]}, nodes, alone=False))


def test_an_image_under_its_short_name_is_named_with_its_whole_name() -> None:
    (sentence,) = found("nginx:1.10", node(("docker.io/library/nginx:1.10", 181)), node())
    assert '"nginx:1.10"' in sentence
    assert '"docker.io/library/nginx:1.10"' in sentence


@pytest.mark.parametrize(
    ("image", "reported"),
    [
        ("docker.io/library/nginx:1.10", ("docker.io/library/nginx:1.10", 181)),
        ("nginx:1.10", ("nginx:1.10", 181)),  # cri-dockerd
        ("web", ("web:latest", 181)),  # kube-scheduler adds the tag
        ("nginx:1.10", ("docker.io/library/nginx:1.20", 181)),
        ("nginx:1.10", ("docker.io/library/nginx:1.10", 40)),  # on half of the nodes: 20 MiB
        ("nginx@sha256:0", ("docker.io/library/nginx@sha256:0", 181)),
        ("", ("docker.io/library/nginx:1.10", 181)),
    ],
)
def test_all_other_images_are_not_named(image: str, reported: tuple[str, int]) -> None:
    assert found(image, node(reported), node()) == []


def test_init_containers_count_as_well_and_each_image_once() -> None:
    spec = {
        "initContainers": [{"image": "nginx:1.10"}],
        "containers": [{"image": "nginx:1.10"}, {"image": "other"}],
    }
    nodes = [node(("docker.io/library/nginx:1.10", 181))]
    assert len(list(images_without_effect(spec, nodes, alone=True))) == 1


@pytest.mark.parametrize("image", ["nginx:1.20", "docker.io/library/nginx:1.20"])
@pytest.mark.parametrize(("size", "reported"), [(54, True), (98, True), (99, False)])
def test_images_that_are_too_small_for_a_point_are_named_if_nothing_else_scores(
    image: str, size: int, reported: bool
) -> None:
    spec = {"containers": [{"image": image}]}
    nodes = [node(("docker.io/library/nginx:1.20", size)), node(), node()]
    sentences = list(images_without_effect(spec, nodes, alone=True))
    too_small = [sentence for sentence in sentences if "distinguishes no nodes" in sentence]
    assert bool(too_small) is reported
    assert all(f"has {size} MiB and is on 1 of 3 nodes" in sentence for sentence in too_small)
    assert too_small == [] or list(images_without_effect(spec, nodes, alone=False)) == []
    foremost = list(images_without_effect(spec, nodes, alone=False, foremost=True))
    assert any("the other plugins decide" in sentence for sentence in foremost) is reported


def test_a_node_with_as_many_images_as_a_kubelet_reports_may_have_more() -> None:
    full = node(*((f"registry/large:{index}", 900 - index) for index in range(50)))
    half = node(*((f"registry/large:{index}", 900 - index) for index in range(49)))
    spec = {"containers": [{"image": "registry/web:1"}, {"image": "registry/large:7"}]}
    (sentence,) = unreported_images(spec, [full, half])
    assert "1 node (n)" in sentence
    assert '"registry/web:1"' in sentence
    (sentence,) = unreported_images(spec, [half])
    assert sentence.startswith('no node reports image "registry/web:1"')
    (sentence,) = unreported_images(
        spec, [{**full, "metadata": {"name": name}} for name in ("a", "b", "c", "d")]
    )
    assert "4 nodes (a, b, c, …)" in sentence


@pytest.mark.parametrize(
    ("image", "names"),
    [
        ("localhost/app:1", '"localhost/app:1" under this name,'),
        ("nginx:1.10", '"nginx:1.10" under this name or as "docker.io/library/nginx:1.10",'),
        ("web", '"web" under this name or as "docker.io/library/web:latest",'),
        ("a\x1b[31m", '"a\\u001b[31m" under this name or as'),
        ("x" * 500, '"' + "x" * 252),
    ],
)
def test_an_image_that_no_node_reports_is_named(image: str, names: str) -> None:
    spec = {"containers": [{"image": image}]}
    (sentence,) = unreported_images(spec, [node(("other:1", 9)), node()])
    assert sentence.startswith(f"no node reports image {names}")
    assert len(sentence) < 700
    assert list(unreported_images(spec, [node(), node()])) == [], "nodes report no images at all"


@pytest.mark.parametrize("reported", ["web", "web:latest", "docker.io/library/web:latest"])
def test_an_image_that_a_node_reports_in_any_form_is_not_one_without_nodes(reported: str) -> None:
    spec = {"containers": [{"image": "web"}, {"image": ""}]}
    assert list(unreported_images(spec, [node((reported, 9)), node()])) == []


def test_nodes_keep_the_images_that_containers_and_volumes_name() -> None:
    world = World()
    reported = [
        {"names": [name], "sizeBytes": 1} for name in ("web:latest", "i:1", "model:2", "x:1")
    ]
    world.add(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "status": {"images": reported},
        }
    )
    spec = {
        "containers": [{"image": "web"}],
        "initContainers": [{"image": "i:1"}],
        "volumes": [{"name": "v", "image": {"reference": "model:2"}}],
    }
    node = with_images_of(world, [{"spec": spec}]).get(NODES, "a")
    assert node is not None
    assert node["status"]["images"] == reported[:3]
    whole = world.get(NODES, "a")
    assert whole is not None
    assert whole["status"]["images"] == reported
