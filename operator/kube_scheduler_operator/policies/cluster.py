"""The nodes that an extender watches."""

from ..scheduling.policies.cluster import Cluster, Node

__all__ = ["Cluster", "Node"]
