"""What was learned, in character.db: journal, consolidations, profiles, to-dos, memory files and their edits."""
