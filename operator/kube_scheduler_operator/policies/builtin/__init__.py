"""The policies that are part of the operator, one module each."""
