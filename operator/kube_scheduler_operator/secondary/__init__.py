"""Further schedulers beside the control plane's: SecondaryScheduler in, a Deployment out."""
