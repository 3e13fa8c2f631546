"""The message log: its line format, reading, appending, and redaction in place. Uses no database."""
