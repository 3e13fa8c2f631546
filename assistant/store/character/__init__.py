"""Stores of character.db: journal, consolidations, profiles, to-dos, memory files and their edits."""
