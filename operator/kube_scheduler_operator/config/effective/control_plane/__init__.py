"""The effective configuration of the control plane's scheduler; pure."""
