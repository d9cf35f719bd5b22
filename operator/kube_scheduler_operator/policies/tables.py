"""Values of each node, by kind of Pod."""

from ..scheduling.policies.tables import NodeTable

__all__ = ["NodeTable"]
