"""Estimates of the load that a Pod adds."""

from ..scheduling.policies.in_flight import SCALING, PodEstimator

__all__ = ["SCALING", "PodEstimator"]
