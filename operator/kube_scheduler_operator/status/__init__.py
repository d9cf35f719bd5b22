"""Conditions, and what the statuses of all kinds share; pure.

May import: manifests and below. May be imported by: profiles, extenders, operatorsettings and
above.
"""
