"""KubeSchedulerConfiguration: schema, decoding, defaults, validation, warnings, merging, flags.

May import: base and below. May be imported by: load and above.
"""
