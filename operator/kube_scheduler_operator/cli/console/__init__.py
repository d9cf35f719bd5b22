"""What a command reads and prints: flags, files, output and errors."""
