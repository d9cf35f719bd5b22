"""The Pods that an extender watches."""

from ..scheduling.policies.pods import Demand, Pod

__all__ = ["Demand", "Pod"]
