"""Objects from jinja2 templates; pure.

May import: model and below. May be imported by: status and above.
"""
