"""Tables of script.db that tell who is who: people, their identities on bridges, and what waits to be paired."""

TABLES: tuple[str, ...] = ()
