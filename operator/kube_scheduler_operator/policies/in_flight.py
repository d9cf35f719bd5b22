"""Pods that are bound and not yet in the measured load."""

from ..scheduling.policies.in_flight import InFlight

__all__ = ["InFlight"]
