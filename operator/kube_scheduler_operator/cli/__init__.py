"""The command line: one module per command; a command imports its dependencies when it runs.

May import: offline and below. May be imported by: __main__ and above.
"""
