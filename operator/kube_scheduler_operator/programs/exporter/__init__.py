"""The exporter of a node's load; standard library only."""
