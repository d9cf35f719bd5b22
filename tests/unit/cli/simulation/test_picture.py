"""The picture of several configurations."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from kube_scheduler_operator.cli.simulation.answer import (
    ConfigurationAnswer,
    ConfigurationResult,
    configuration_answer,
    ranked,
)
from kube_scheduler_operator.cli.simulation.picture import svg
from kube_scheduler_operator.simulate.placements import PlacementOutcome, Spread

from ....hostile import HOSTILE, expect_harmless
from ...simulate.outcomes import RUNS


def answer(name: str, runs: list[PlacementOutcome]) -> ConfigurationAnswer:
    return configuration_answer(ConfigurationResult(name, runs), proposed=True)


_SVG = "{http://www.w3.org/2000/svg}"


def test_nodes_are_compared_by_rank_because_ties_exchange_them() -> None:
    shares = [run.utilization.shares("cpu") for run in RUNS]
    assert ranked(shares) == [Spread(50, 60, 90), Spread(0, 30, 40)]


def test_a_picture_has_a_panel_for_each_configuration_and_a_bar_for_each_node() -> None:
    columns = [answer("today", RUNS), answer("a<b>&", RUNS[:1])]
    root = ElementTree.fromstring(svg("web & more", columns))
    texts = [each.text for each in root.iter(f"{_SVG}text")]
    assert {"today", "a<b>&", "3 runs", "1 run", "web & more"} <= set(texts)
    figures = dict(pairwise(texts))
    assert figures["nodes used"] == "1", "the figures of each configuration are its own"
    assert "2 (1-2)" in texts
    bars = [each for each in root.iter(f"{_SVG}rect") if each.get("fill") != "#ffffff"]
    assert len(bars) == 2 * 2
    heights = sorted(float(each.get("height", "")) for each in bars)
    assert heights == [0.0, 45.0, 90.0, 135.0]  # of 150: 0 %, 30 %, 60 %, 90 %


def test_a_picture_has_the_visible_characters_of_hostile_names() -> None:
    picture = svg(HOSTILE, [answer(HOSTILE, RUNS)])
    ElementTree.fromstring(picture)
    expect_harmless(picture)
    picture.encode()
