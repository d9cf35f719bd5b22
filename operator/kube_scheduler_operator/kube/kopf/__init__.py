"""kopf as the watcher: its settings, its streams, its life in a thread of its own."""
