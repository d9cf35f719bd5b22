"""What a process reports about itself: metrics, health, and the HTTPS server for both."""
