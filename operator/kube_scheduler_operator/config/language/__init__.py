"""KubeSchedulerConfiguration: schema, decoding, defaults, validation, warnings, merging, flags."""
