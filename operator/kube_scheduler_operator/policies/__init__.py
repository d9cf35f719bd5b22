"""The policies of extenders: base classes, inputs and formulas.

May import: load and below. May be imported by: migrate, telemetry and above.
"""
