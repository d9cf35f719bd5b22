"""LoadPolicy: validation, the exporter and annotator that it runs, cleanup and status; pure.

May import: effective and below. May be imported by: diagnostics and above.
"""
