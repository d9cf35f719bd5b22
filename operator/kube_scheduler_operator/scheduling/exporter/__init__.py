"""The exporter of a node's load (node-metrics); standard library only."""
