"""Grafana's dashboards: they are made from code, and name only what is served."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard as Decoded

from kube_scheduler_operator.base import names
from monitoring.boards import BOARDS, FOLDER, files
from monitoring.panels import WIDTH, Dashboard, Panel

from .overlays import build
from .served import TARGET, labels_of, not_served

PANELS = [
    pytest.param(panel, id=f"{board.name}-{panel.title}")
    for board in BOARDS
    for panel in board.panels
]
BOARD_IDS = [board.name for board in BOARDS]


def test_the_files_are_made_from_the_code() -> None:
    assert {path.name: path.read_text() for path in FOLDER.glob("*.json")} == files(), (
        "run hack/dashboards"
    )


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_names_only_metrics_and_labels_that_are_served(panel: Panel) -> None:
    for query in panel.queries:
        assert not_served(query.expr) == []
        shown = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
        assert shown <= labels_of(query.expr) | TARGET


@pytest.mark.parametrize(
    "expression",
    [
        "scheduler_no_such_metric",
        'scheduler_pending_pods{profile="x"}',
        "sum by (plugin) (scheduler_pending_pods)",
        "scheduler_queued_entities",  # since 1.37
        "kube_scheduler_operator_no_such_metric",
        'load_annotator_nodes{node="x"}',
    ],
)
def test_what_is_not_served_by_every_version_is_found(expression: str) -> None:
    assert not_served(expression)


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_has_a_title_a_unit_and_what_a_bad_value_means(panel: Panel) -> None:
    known = {value for value in vars(units).values() if isinstance(value, str)}
    assert panel.title
    assert len(panel.description.split()) >= 8
    assert panel.description.endswith((".", ")"))
    assert panel.unit in known
    assert all(query.legend for query in panel.queries)


@pytest.mark.parametrize("board", BOARDS, ids=BOARD_IDS)
def test_panels_do_not_overlap_and_have_ids_of_their_own(board: Dashboard) -> None:
    panels = json.loads(board.json())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < WIDTH
        taken |= cells


@pytest.mark.parametrize("board", BOARDS, ids=BOARD_IDS)
def test_grafanas_own_types_take_every_field(board: Dashboard) -> None:
    """A field that they do not know would be lost on the way through them."""
    register_default_plugins()
    content = json.loads((FOLDER / f"{board.name}.json").read_text())
    decoded = json.loads(JSONEncoder(sort_keys=True).encode(Decoded.from_json(content)))
    assert lost(content, decoded) == []


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Where a value of `before` is missing or different in `after`, which may have more."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [(value, after.get(key), f"{path}.{key}") for key, value in before.items()]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(*each, f"{path}[{i}]") for i, each in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [f"{path}: {before!r}, decoded {after!r}"]
    return [found for pair in pairs for found in lost(*pair)]


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    register_default_plugins()
    content = json.loads(BOARDS[0].json())
    content["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    decoded = json.loads(JSONEncoder().encode(Decoded.from_json(content)))
    assert lost(content, decoded) == [".panels[1].fieldConfig.defaults.units: 's', decoded None"]


def test_grafanas_sidecar_finds_a_config_map_of_each_dashboard() -> None:
    objects = build(FOLDER)
    assert [obj["kind"] for obj in objects] == ["ConfigMap"] * len(BOARDS)
    for obj, board in zip(objects, BOARDS, strict=True):
        assert obj["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert obj["metadata"]["labels"][names.PART_OF_LABEL] == names.PROGRAM
        assert obj["data"] == {f"{board.name}.json": board.json()}
        # kubectl apply keeps the object in an annotation, which may have 256 KiB.
        assert len(json.dumps(obj)) < 200_000
