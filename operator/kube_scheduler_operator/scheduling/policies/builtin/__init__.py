"""The built-in policies, one module each."""
