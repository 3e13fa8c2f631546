"""Archives of ended sessions: the format, the index, storing and reading, and restoring lost log records."""
