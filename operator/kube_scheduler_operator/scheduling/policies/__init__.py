"""The policies of extenders: base classes, inputs and formulas."""
