"""LoadPolicy: the exporter and the annotator that it runs, cleanup and status; pure."""
