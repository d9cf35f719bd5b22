"""What programs serve with: an HTTP server, TLS certificates, limits and health checks."""
