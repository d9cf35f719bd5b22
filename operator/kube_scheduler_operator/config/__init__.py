"""The configuration of kube-scheduler: language, composition, checks and migration."""
