"""The policies of extenders: base classes, inputs and the built-in policies."""
