"""Backups of a home: the folder, making one, its file format, and putting one in place."""
