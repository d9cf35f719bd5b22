"""Adoption: the settings of static Pods that predate the operator, and which of them are kept."""
