"""The base class of policies that evaluate each node by itself."""

from ..scheduling.policies.node_policy import NodePolicy

__all__ = ["NodePolicy"]
