"""What `rollout` follows and undoes."""
