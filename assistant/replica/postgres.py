"""The replica's tables in PostgreSQL: the holder of each data folder (the fence), its bases, and later changes.

- A shipment is one statement that increments the sequence under the holder's epoch and stores the change. If another
  folder has raised the epoch, nothing is stored (`ReplicaLost`).
- If the outcome of a shipment is unknown, the stored sequence decides, before another is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import ReplicaLost
from assistant.replica.connection import PostgresSession

_TABLES = """
CREATE TABLE IF NOT EXISTS nocturne_homes (
    home text PRIMARY KEY,
    epoch bigint NOT NULL,
    holder text NOT NULL,
    machine text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    sequence bigint NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT now(),
    base bigint NOT NULL DEFAULT 0,
    base_after bigint NOT NULL DEFAULT 0,
    base_at timestamptz
);
CREATE TABLE IF NOT EXISTS nocturne_changes (
    home text NOT NULL,
    sequence bigint NOT NULL,
    epoch bigint NOT NULL,
    change bytea NOT NULL,
    PRIMARY KEY (home, sequence)
);
CREATE TABLE IF NOT EXISTS nocturne_bases (
    home text NOT NULL,
    base bigint NOT NULL,
    part integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (home, base, part)
);
ALTER TABLE nocturne_changes ALTER COLUMN change SET STORAGE EXTERNAL;
ALTER TABLE nocturne_bases ALTER COLUMN data SET STORAGE EXTERNAL
"""
_CHANGES_AT_ONCE = 50
# Each is one statement, and so one transaction; it changes nothing if the epoch is not the holder's.
_SHIP = """
WITH fence AS (
    UPDATE nocturne_homes SET sequence = sequence + 1, changed_at = now()
    WHERE home = %s AND epoch = %s AND sequence = %s RETURNING home, sequence, epoch
)
INSERT INTO nocturne_changes SELECT home, sequence, epoch, %s FROM fence RETURNING sequence
"""
_FINISH_BASE = """
WITH fence AS (
    UPDATE nocturne_homes SET base = %s, base_after = %s, base_at = now()
    WHERE home = %s AND epoch = %s RETURNING home, base, base_after
),
bases AS (DELETE FROM nocturne_bases b USING fence f WHERE b.home = f.home AND b.base <> f.base),
changes AS (DELETE FROM nocturne_changes c USING fence f WHERE c.home = f.home AND c.sequence <= f.base_after)
SELECT base FROM fence
"""
_DELETE = """
WITH fence AS (DELETE FROM nocturne_homes WHERE home = %s AND epoch = %s RETURNING home, epoch),
bases AS (DELETE FROM nocturne_bases b USING fence f WHERE b.home = f.home),
changes AS (DELETE FROM nocturne_changes c USING fence f WHERE c.home = f.home)
SELECT epoch FROM fence
"""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The row of one data folder."""

    home: str
    epoch: int
    holder: str  # drawn by the data folder that owns it
    machine: str
    taken_at: datetime
    sequence: int  # of the newest change; counts from 1 across epochs
    changed_at: datetime
    base: int  # number of the newest complete base; 0 for none
    base_after: int  # changes after this one are applied to it
    base_at: datetime | None


class ReplicaDatabase(PostgresSession):
    """The replica's tables over one connection. Every method raises `ReplicaUnavailable`."""

    def __init__(self, url: str, home: str) -> None:
        super().__init__(url)
        self.home = home

    async def prepare(self) -> None:
        """Create the tables if they do not exist."""
        if not await self._value("SELECT to_regclass('nocturne_bases') IS NOT NULL"):
            await self._change(_TABLES)

    async def read_state(self) -> ReplicaState | None:
        """Return None if the replica has no such home, or no tables yet."""
        if not await self._value("SELECT to_regclass('nocturne_homes') IS NOT NULL"):
            return None
        columns = ", ".join(column.name for column in fields(ReplicaState))
        rows = await self._rows(f"SELECT {columns} FROM nocturne_homes WHERE home = %s", (self.home,))
        return ReplicaState(*rows[0]) if rows else None

    async def read_standbys(self) -> str:
        """Return for which standbys commits wait, as in the server's settings; "" if for none."""
        return str(await self._value("SHOW synchronous_standby_names")).strip()

    async def claim(self, holder: str, machine: str, epoch: int) -> int:
        """Become the holder of the replica that is at `epoch` (0: a new one); return the new epoch. Raises
        `ReplicaLost` if another folder was faster."""
        taken = await self._value(
            "INSERT INTO nocturne_homes (home, epoch, holder, machine) VALUES (%s, 1, %s, %s) "
            "ON CONFLICT (home) DO UPDATE SET epoch = nocturne_homes.epoch + 1, holder = excluded.holder, "
            "machine = excluded.machine, taken_at = now() WHERE nocturne_homes.epoch = %s RETURNING epoch",
            *(self.home, holder, machine, epoch),
        )
        if taken is None:
            raise ReplicaLost(
                f"The replica of {self.home!r} was just taken over by another machine. Nothing was changed."
            )
        return int(taken)

    async def ship(self, epoch: int, sequence: int, change: bytes) -> None:
        """Store the change after number `sequence`. Raises `ReplicaLost` if the replica has another holder, or other
        changes, by now."""
        await self._as_holder(_SHIP, self.home, epoch, sequence, change)

    async def confirm(self, epoch: int) -> int:
        """Return the number of the newest change, once it is confirmed. Raises `ReplicaLost`."""
        confirm = "UPDATE nocturne_homes SET changed_at = now() WHERE home = %s AND epoch = %s RETURNING sequence"
        return int(await self._as_holder(confirm, self.home, epoch))

    async def _as_holder(self, statement: str, *parameters: object) -> Any:
        """Run a statement that returns a row while this process is the holder; return its first value. Raises
        `ReplicaLost`."""
        value = await self._value(statement, *parameters)
        if value is None:
            raise await self.describe_loss()
        return value

    async def describe_loss(self) -> ReplicaLost:
        """Return the error to raise once this process is not the holder any more: it says who is."""
        state = await self.read_state()
        if state is None:
            return ReplicaLost(f"The replica has no home {self.home!r} any more.")
        return ReplicaLost(f"{state.machine} took this home over on {state.taken_at:%Y-%m-%d %H:%M %Z}.")

    # ------------------------------------------------------------------------------------------------------------ bases

    async def next_base(self) -> int:
        """Return an unused number for a base."""
        query = (
            "SELECT greatest(base, (SELECT max(base) FROM nocturne_bases WHERE home = %s)) + 1 "
            "FROM nocturne_homes WHERE home = %s"
        )
        return int(await self._value(query, self.home, self.home) or 1)

    async def store_base_part(self, epoch: int, base: int, part: int, data: bytes) -> None:
        """Store a part of a base that is not valid yet. Raises `ReplicaLost`."""
        await self._as_holder(
            "INSERT INTO nocturne_bases SELECT home, %s, %s, %s FROM nocturne_homes WHERE home = %s AND epoch = %s "
            "RETURNING base",
            *(base, part, data, self.home, epoch),
        )

    async def finish_base(self, epoch: int, base: int, after: int) -> None:
        """Make a base valid, and delete earlier ones and the changes before it. Raises `ReplicaLost`."""
        await self._as_holder(_FINISH_BASE, base, after, self.home, epoch)

    async def distrust_base(self, base: int) -> None:
        """Record that a base was found damaged: the holder's next start makes a new one."""
        await self._change("UPDATE nocturne_homes SET base_at = NULL WHERE home = %s AND base = %s", self.home, base)

    async def read_base_part(self, base: int, part: int) -> bytes | None:
        """Return a part of a base, None after the last one."""
        query = "SELECT data FROM nocturne_bases WHERE home = %s AND base = %s AND part = %s"
        rows = await self._rows(query, (self.home, base, part), binary=True)
        return bytes(rows[0][0]) if rows else None

    async def read_changes(self, after: int, most_bytes: int) -> Sequence[tuple[int, bytes]]:
        """Return the next changes with their numbers, oldest first: one at least, and more up to `most_bytes`."""
        query = (
            "SELECT sequence, change FROM (SELECT *, sum(length(change)) OVER (ORDER BY sequence) AS size "
            "FROM nocturne_changes WHERE home = %s AND sequence BETWEEN %s AND %s) c "
            "WHERE size <= %s OR sequence = %s ORDER BY sequence"
        )
        first, last = after + 1, after + _CHANGES_AT_ONCE
        rows = await self._rows(query, (self.home, first, last, most_bytes, first), binary=True)
        return [(int(sequence), bytes(change)) for sequence, change in rows]

    async def sum_bytes(self) -> tuple[int, int]:
        """Return the size of the base and of the changes in bytes."""
        query = (
            "SELECT (SELECT coalesce(sum(length(data)), 0) FROM nocturne_bases WHERE home = %s), "
            "(SELECT coalesce(sum(length(change)), 0) FROM nocturne_changes WHERE home = %s)"
        )
        [(base, changes)] = await self._rows(query, (self.home, self.home))
        return int(base), int(changes)

    async def delete(self, epoch: int) -> None:
        """Delete the replica. Raises `ReplicaLost` if it has another holder."""
        await self._as_holder(_DELETE, self.home, epoch)
