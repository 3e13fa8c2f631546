"""Semantic memory on disk (memory.db): memories, vectors, history; and memory search over the journal."""
