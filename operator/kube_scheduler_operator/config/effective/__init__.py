"""What the objects of users lead to: configuration, flags, Pod settings and findings; pure.

`pipeline.py` is the one function that composes, for the operator and for all commands.
"""
