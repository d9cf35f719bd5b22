"""The annotator: measures the load of nodes and writes it to their annotations."""
