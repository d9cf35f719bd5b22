"""Every number in a CRD has bounds: `format: int32` does not limit it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CRDS = Path(__file__).parents[3] / "crds"


def numbers(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if schema.get("type") in ("integer", "number") and "enum" not in schema:
        yield path, schema
    for name, child in (schema.get("properties") or {}).items():
        yield from numbers(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from numbers(schema[key], f"{path}[]")


def all_numbers() -> Iterator[Any]:
    for file in sorted(CRDS.glob("*.yaml")):
        crd = yaml.safe_load(file.read_text(encoding="utf-8"))
        for version in (crd.get("spec") or {}).get("versions", ()):
            for path, schema in numbers(version["schema"]["openAPIV3Schema"]):
                kind = crd["spec"]["names"]["kind"]
                yield pytest.param(path, schema, id=f"{kind}{path}")


@pytest.mark.parametrize(("path", "schema"), list(all_numbers()))
def test_a_number_has_bounds(path: str, schema: Any) -> None:
    low, high = schema["minimum"], schema["maximum"]
    assert low < high
    if schema.get("format") == "int32":
        assert low >= -(2**31)
        assert high <= 2**31 - 1
    elif schema["type"] == "integer":
        assert max(-low, high) <= 2**53 - 1, "larger ones are not exact in every client"
    if "Revision" in path and ".status." in path:
        assert low == 0

    # Go writes a larger one as 3e+38, which YAML 1.1 reads as a string: a copy would be refused.
    assert max(abs(low), abs(high)) <= 2**63
