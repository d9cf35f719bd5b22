"""The other programs of the image, one package each; they do not know each other.

May import: migrate, telemetry and below. May be imported by: simulate and above.
"""
