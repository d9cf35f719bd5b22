"""SchedulerProfile: its status, and its configuration on AKS; pure."""
