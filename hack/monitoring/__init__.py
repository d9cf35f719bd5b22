"""Dashboards of Grafana as code, and what they are checked with: real schedulers and Prometheus."""
