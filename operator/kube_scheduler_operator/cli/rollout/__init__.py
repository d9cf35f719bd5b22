"""What `rollout` follows, permits and undoes."""
