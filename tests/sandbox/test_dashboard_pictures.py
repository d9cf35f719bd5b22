"""Pictures of panels from the answers of Prometheus."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from monitoring.panels import Dashboard, Row, panel
from monitoring.pictures import amount, drawn

BOARD = Dashboard(
    "b",
    "Board",
    "",
    (
        Row(
            "r",
            (
                panel("Full <1>", "", "s", ("x", "{{queue}} of {{job}}")),
                panel("Empty", "", "short", ("y", "y"), quiet="nothing occurred"),
            ),
        ),
    ),
)


def test_a_picture_has_the_curves_their_names_and_last_values() -> None:
    series = {"metric": {"queue": "a&b", "job": "j"}, "values": [[0, "0.5"], [5, "NaN"], [9, "2"]]}
    picture = drawn(BOARD, {"Full <1>": [[series]], "Empty": [[]]})
    root = ElementTree.fromstring(picture)
    texts = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
    assert "Full <1>" in texts
    assert "a&b of j: 2 s" in texts
    assert "no series: nothing occurred" in texts
    (curve,) = (node for node in root.iter() if node.tag.endswith("polyline"))
    assert len(curve.attrib["points"].split()) == 2, "NaN is not drawn"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.01234, "s", "12.3 ms"),
        (0, "s", "0 s"),
        (150, "s", "2.5 min"),
        (172800, "s", "2 d"),
        (0.256, "percentunit", "25.6 %"),
        (40.0, "percent", "40 %"),
        (104857600, "bytes", "100 MiB"),
        (12345, "short", "12345"),
        (1.5, "ops", "1.5/s"),
    ],
)
def test_a_value_is_shown_in_its_unit(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text
