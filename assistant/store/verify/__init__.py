"""Checks of log, index and views against one another, and the repair of the index."""
