"""The feature gates that a user chooses for simulated kube-schedulers."""

from __future__ import annotations

from collections.abc import Sequence

from ...config.language.feature_gates import FLAG, FLAG_PREFIX, parse_gates
from ..console.errors import named


def gate_flags(values: Sequence[str]) -> list[str]:
    """Return the flags of kube-scheduler for the values of `--feature-gates`.

    Raises:
        UsageError: one does not set a feature gate.
    """
    with named(f"--{FLAG}"):
        parse_gates(values)
    return [f"{FLAG_PREFIX}{','.join(values)}"] if values else []
