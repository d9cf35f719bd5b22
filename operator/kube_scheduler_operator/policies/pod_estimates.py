"""Estimates of the load that a Pod adds."""

from ..scheduling.policies.pod_estimates import SCALING, PodEstimator

__all__ = ["SCALING", "PodEstimator"]
