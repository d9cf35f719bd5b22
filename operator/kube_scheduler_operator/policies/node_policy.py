"""The base class of policies that evaluate each node by itself."""

from ..scheduling.policies.node_policy import NodePolicy, rounded, rows_of, shown, ten, ten_one

__all__ = ["NodePolicy", "rounded", "rows_of", "shown", "ten", "ten_one"]
