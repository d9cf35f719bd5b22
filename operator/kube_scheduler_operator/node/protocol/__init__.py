"""The protocol of operator and programs on nodes: results, reports, exit codes, revisions; pure.

Both sides import it, and no other code reads or writes these formats. Standard library only.
"""
