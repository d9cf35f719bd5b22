"""The load of nodes, from their annotations."""

from ..scheduling.policies.node_loads import (
    CONGESTION,
    CRANE,
    CRANE_PLUS,
    FORMATS,
    OWN,
    SAFE,
    VALID,
    LoadColumns,
)

__all__ = ["CONGESTION", "CRANE", "CRANE_PLUS", "FORMATS", "OWN", "SAFE", "VALID", "LoadColumns"]
