"""The checks of `kubectl scheduler check`: each is a pure function of what was read; one table.

A check yields the problems that it finds, each with its cause, what to do, and the section of the
documentation about it. `table.py` lists them for the time before and after an installation.
"""
