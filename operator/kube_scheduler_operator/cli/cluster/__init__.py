"""What commands read of a cluster: its objects, its schedulers and their configuration."""
