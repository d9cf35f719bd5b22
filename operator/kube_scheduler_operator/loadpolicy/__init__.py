"""LoadPolicy: validation, the exporter and annotator that it runs, cleanup and status; pure.

May import: profiles, extenders, operatorsettings and below. May be imported by: diagnostics and
above.
"""
