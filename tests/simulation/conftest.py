"""Makes hundreds of histories affordable."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator

import pytest

from kube_scheduler_operator import reconcile
from kube_scheduler_operator.config.compose import Composition, Inputs


@pytest.fixture(autouse=True, scope="session")
def remembered_compositions() -> Iterator[None]:
    """Composing is pure and checks a lot: the same inputs are composed once."""
    compose = reconcile.compose
    known: dict[str, Composition] = {}

    @functools.wraps(compose)
    def remember(inputs: Inputs) -> Composition:
        spec = (inputs.kubescheduler.get("spec")) or {}
        key = json.dumps(
            [
                str(inputs.operand_version),
                (inputs.scheduler or {}).get("spec"),
                inputs.scheduler is None,
                spec,
                inputs.stock_arguments,
                inputs.stock_image,
            ],
            sort_keys=True,
        )
        if key not in known:
            known[key] = compose(inputs)
        return known[key]

    reconcile.compose = remember
    yield
    reconcile.compose = compose
