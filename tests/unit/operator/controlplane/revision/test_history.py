"""Reading revisions back from ConfigMaps."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.controlplane.revision.history import last_good, read

INSTALLED, REFUSED, FAILED = names.OUTCOME_INSTALLED, names.OUTCOME_REFUSED, names.OUTCOME_FAILED


def parts(text: str) -> dict[str, dict[str, str]]:
    return {names.CONFIG: {"config.yaml": text}, names.POD: {"pod.yaml": text}}


def objects(number: int, text: str, outcome: str = "", *, missing: str = "") -> dict[str, Any]:
    """revision-status-N and its copies."""
    content = RevisionContent(parts(text))
    annotations = {names.REVISION_READY_ANNOTATION: "true"}
    if outcome:
        annotations[names.OUTCOME_ANNOTATION] = outcome
    found: dict[str, Any] = {
        f"revision-status-{number}": {
            "metadata": {"name": f"revision-status-{number}", "annotations": annotations},
            "data": {"hash": content.hash},
        }
    }
    for name, data in content.parts.items():
        if name != missing:
            found[f"{name}-{number}"] = {"metadata": {"name": f"{name}-{number}"}, "data": data}
    return found


def test_revisions_are_ordered_by_number_not_by_name() -> None:
    config_maps = {**objects(10, "x"), **objects(9, "y"), **objects(2, "z")}
    assert [revision.number for revision in read(config_maps, KUBEADM.parts)] == [2, 9, 10]


@pytest.mark.parametrize("name", ["revision-status-", "revision-status-x", "revision-status--1"])
def test_names_without_a_number_are_not_revisions(name: str) -> None:
    assert read({name: {"metadata": {"name": name}}}, KUBEADM.parts) == ()


def test_a_revision_status_without_data_is_read() -> None:
    (revision,) = read(
        {"revision-status-1": {"metadata": {"name": "revision-status-1"}}}, KUBEADM.parts
    )
    assert (revision.ready, revision.hash, revision.outcome, revision.complete) == (
        False,
        "",
        "",
        False,
    )
    assert not revision.intact


def test_quarantine_can_hold_several_hashes() -> None:
    config_maps = objects(3, "x")
    annotations = config_maps["revision-status-3"]["metadata"]["annotations"]
    annotations[names.QUARANTINED_HASH_ANNOTATION] = "aa,bb"
    assert read(config_maps, KUBEADM.parts)[0].quarantined == {"aa", "bb"}


def test_intact_means_that_the_copies_are_unchanged() -> None:
    config_maps = objects(1, "x")
    assert read(config_maps, KUBEADM.parts)[0].intact
    config_maps["config-1"]["data"] = {"config.yaml": "y"}
    assert not read(config_maps, KUBEADM.parts)[0].intact


@pytest.mark.parametrize(
    ("history", "before", "expected"),
    [
        pytest.param([(1, "a", INSTALLED), (2, "b", FAILED)], 2, 1, id="the one before"),
        pytest.param(
            [(1, "a", INSTALLED), (2, "c", REFUSED), (3, "b", FAILED)], 3, 1, id="not a refused one"
        ),
        pytest.param(
            [(1, "a", INSTALLED), (2, "c", ""), (3, "b", FAILED)], 3, 1, id="not an untried one"
        ),
        pytest.param([(1, "b", INSTALLED), (2, "b", FAILED)], 2, None, id="not the same content"),
        pytest.param([(2, "b", FAILED)], 2, None, id="none"),
        pytest.param(
            [(1, "a", INSTALLED), (2, "b", INSTALLED), (3, "c", FAILED), (4, "b", FAILED)],
            3,
            1,
            id="not content that failed as a later revision",
        ),
        pytest.param(
            [(1, "b", FAILED), (2, "b", INSTALLED), (3, "c", FAILED)],
            3,
            2,
            id="content that failed earlier and worked since",
        ),
    ],
)
def test_last_good(history: list[tuple[int, str, str]], before: int, expected: int | None) -> None:
    config_maps: dict[str, Any] = {}
    for row in history:
        config_maps |= objects(*row)
    good = last_good(read(config_maps, KUBEADM.parts), before)
    assert (good.number if good else None) == expected


def test_last_good_is_never_one_with_missing_or_changed_copies() -> None:
    config_maps = {
        **objects(1, "a", INSTALLED),
        **objects(2, "b", INSTALLED, missing=names.POD),
        **objects(3, "c", INSTALLED),
        **objects(4, "d", FAILED),
    }
    config_maps["config-3"]["data"] = {"config.yaml": "edited"}
    good = last_good(read(config_maps, KUBEADM.parts), 4)
    assert good is not None
    assert good.number == 1
