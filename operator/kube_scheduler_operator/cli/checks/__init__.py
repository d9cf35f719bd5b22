"""The checks of `kubectl scheduler check`: pure functions of the facts that the command has read.

A check yields problems, each with its cause, what to do, and a section of the documentation.
`table.py` lists the checks before and after an installation.
"""
