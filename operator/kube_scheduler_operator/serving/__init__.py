"""What programs serve with: TLS certificates, limits of connections, and health checks."""
