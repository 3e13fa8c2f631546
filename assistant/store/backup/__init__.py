"""Backups of a data folder: the folder, making one, its file format, and restoring one."""
