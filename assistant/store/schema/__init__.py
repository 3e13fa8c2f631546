"""The schemas of the four databases, as numbered migrations."""
