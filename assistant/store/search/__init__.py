"""Storage for search: the index on disk (search.db), what is indexed, and reading the message history."""
