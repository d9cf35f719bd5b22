"""The annotator: asks how busy nodes are, and writes it on them where schedulers look."""
