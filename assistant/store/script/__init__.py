"""script.db: conversations, inbox, outbox, turns, people, agenda, spending. Built on the message log."""
