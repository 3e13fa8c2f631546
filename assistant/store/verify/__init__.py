"""Checks log, index and views against one another, and repairs them."""
