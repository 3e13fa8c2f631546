"""The schemas of the databases: SQL files and numbered migrations."""
