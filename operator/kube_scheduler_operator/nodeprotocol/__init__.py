"""What operator and programs on nodes exchange: results, reports, exit codes and revisions; pure.

Both sides import it, and no other code reads or writes these formats. Standard library only.

May import: base and below. May be imported by: load and above.
"""
