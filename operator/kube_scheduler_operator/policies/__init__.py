"""What policies of other distributions import; docs/policies.md describes it.

The names of these modules are published, and stay where they are when `scheduling/` changes.
"""
