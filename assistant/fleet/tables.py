"""The fleet's tables in PostgreSQL: which homes there are, which host runs each until when, and which hosts there are.

- A lease says who starts a home; it lasts `LEASE_SECONDS` by the clock of PostgreSQL alone. A host takes a home that is
  free or whose lease has lapsed.
- A home that nobody needs sleeps: no host runs it before `next_due`, unless a router wakes it. At `poll_at` one takes
  it to ask its networks whether they have anything; it sleeps on if not.
- A lease is no fence: a host that was frozen may run a home beside its new host for a while. What refuses its writes is
  the holder of the replica (`assistant.replica.postgres`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.errors import ReplicaUnavailable, UsageError
from assistant.replica.connection import PostgresSession
from assistant.service.idle_note import IdleNote

LEASE_SECONDS = 15
_SECONDS_BETWEEN_TRIES = 1.0

_TABLES = """
CREATE TABLE IF NOT EXISTS nocturne_fleet_homes (
    home text PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    host text NOT NULL DEFAULT '',
    process text NOT NULL DEFAULT '',
    address text NOT NULL DEFAULT '',
    until timestamptz NOT NULL DEFAULT to_timestamp(0),
    wanted text NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS nocturne_fleet_hosts (
    host text PRIMARY KEY,
    address text NOT NULL,
    seen_at timestamptz NOT NULL,
    is_draining boolean NOT NULL DEFAULT false
);
ALTER TABLE nocturne_fleet_homes
    ADD COLUMN IF NOT EXISTS next_due timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN IF NOT EXISTS poll_at timestamptz NOT NULL DEFAULT 'infinity',
    ADD COLUMN IF NOT EXISTS memory_mb bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS disk_mb bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS monthly_usd double precision NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS memory_bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS disk_bytes bigint NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX IF NOT EXISTS nocturne_fleet_homes_by_name ON nocturne_fleet_homes (lower(home));
CREATE INDEX IF NOT EXISTS nocturne_fleet_homes_by_wake ON nocturne_fleet_homes (least(next_due, poll_at));
CREATE INDEX IF NOT EXISTS nocturne_fleet_homes_by_process ON nocturne_fleet_homes (process)
"""
# Hosts and routers ask several times a second, so nothing they ask reads the rows of homes that sleep. `until`, which
# changes with each renewal, is in no index.
# `now()` is when a statement began, maybe long before it got its row.
_LATER = f"clock_timestamp() + interval '{LEASE_SECONDS} seconds'"
_IS_ALIVE = f"seen_at > clock_timestamp() - interval '{LEASE_SECONDS} seconds'"
_TAKES_HOMES = f"SELECT 1 FROM nocturne_fleet_hosts WHERE {_IS_ALIVE} AND NOT is_draining AND host = "
_WAKES_AT = "least(next_due, poll_at)"
_IS_FULL = "disk_mb > 0 AND disk_bytes > disk_mb * 1000000"
# The host that had a home last has its folder: of one that wakes, others leave it some seconds.
_IS_FREE = f"""
until <= clock_timestamp() AND {_WAKES_AT} <= clock_timestamp() AND NOT ({_IS_FULL})
AND (host IN ('', %(host)s) OR wanted = %(host)s OR {_WAKES_AT} < clock_timestamp() - interval '3 seconds'
    OR NOT EXISTS ({_TAKES_HOMES} nocturne_fleet_homes.host))
AND (wanted IN ('', %(host)s) OR NOT EXISTS ({_TAKES_HOMES} wanted))
AND EXISTS ({_TAKES_HOMES} %(host)s)
"""
_IS_HELD = "process = %(process)s AND until > clock_timestamp()"
_HELD = f"""
h.home, epoch, wanted NOT IN ('', %(host)s) AND EXISTS ({_TAKES_HOMES} h.wanted),
next_due > clock_timestamp(), {_IS_FULL}, memory_mb, disk_mb, monthly_usd,
(SELECT holder FROM nocturne_homes r WHERE r.home = h.home)
"""
_NO_TABLES = (
    "There is no fleet in this database, or one of an older version. Nothing was changed; begin with `assistant fleet "
    "init`."
)


@dataclass(frozen=True, slots=True)
class Quota:
    """What a home may use; 0 for no limit."""

    memory_mb: int = 0  # of each of its processes, in millions of bytes
    disk_mb: int = 0  # of its folder, in millions of bytes
    monthly_usd: float = 0.0  # for models


@dataclass(frozen=True, slots=True)
class FleetHome:
    """The row of one home."""

    home: str
    epoch: int  # raised by each host that takes it
    host: str  # that has it, or had it last; "" for none
    address: str  # where it can be reached there, as in "10.0.0.5:8101"
    wanted: str  # host that it moves to; "" for none
    is_held: bool
    asleep_until: datetime | None  # None for a home that does not sleep
    is_full: bool  # it is stopped: its folder is larger than its quota
    quota: Quota
    memory_bytes: int  # when it was measured last; 0 for never
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class HomePlace:
    """What a router learns about a home."""

    address: str  # "" if no host has it now, or it moves
    is_asleep: bool
    is_full: bool


@dataclass(frozen=True, slots=True)
class FleetHostRow:
    """The row of one host."""

    host: str
    address: str
    seen_at: datetime
    is_draining: bool
    is_alive: bool  # whether it was seen within a lease
    homes: int  # that it has


@dataclass(frozen=True, slots=True)
class HeldHome:
    """What a host learns about a home when it renews the lease."""

    home: str
    epoch: int
    moves: bool  # whether another host, which is alive, is to have it
    is_asleep: bool  # whether it is to stop, or its networks are to be asked, and no router has woken it
    is_full: bool  # whether it is to stop, because of its quota
    quota: Quota
    holder: str | None  # of its replica; None without a replica


class FleetTables(PostgresSession):
    """Every method raises `ReplicaUnavailable` if PostgreSQL does not answer or does not confirm."""

    async def prepare(self) -> None:
        """Create the tables if they do not exist."""
        await self._change(_TABLES)

    async def require(self) -> None:
        """Raise `UsageError` if the tables do not exist, or are of an older version."""
        columns = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('nocturne_fleet_homes')"
        if await self._value(f"{columns} AND attname = 'poll_at'") is None:
            raise UsageError(_NO_TABLES)

    async def wait_until_there(self, tell: Callable[[str], None]) -> None:
        """As `require`, but wait for PostgreSQL while it does not answer, and say so once: a machine that starts again
        after a power cut may be faster than its server."""
        told = False
        while True:
            try:
                return await self.require()
            except ReplicaUnavailable as error:
                if isinstance(error.__cause__, ImportError):
                    raise
                if not told:
                    tell(f"{error} It is tried again until it answers.")
                told = True
                await asyncio.sleep(_SECONDS_BETWEEN_TRIES)

    # ------------------------------------------------------------------------------------------------------------ homes

    async def add(self, home: str) -> bool:
        """Return whether it is new; names that differ in case alone are the same."""
        insert = "INSERT INTO nocturne_fleet_homes (home, until) VALUES (%s, clock_timestamp()) ON CONFLICT DO NOTHING"
        return bool(await self._change(insert, home))

    async def remove(self, home: str) -> bool:
        """Return whether there was such a home. Its host stops it; the replica stays."""
        return bool(await self._change("DELETE FROM nocturne_fleet_homes WHERE home = %s", home))

    async def list_homes(self) -> list[FleetHome]:
        """Return all homes by name. A lease counts as held by the database's clock."""
        query = (
            "SELECT home, epoch, host, address, wanted, until > clock_timestamp(), "
            f"CASE WHEN next_due > clock_timestamp() THEN next_due END, {_IS_FULL}, memory_mb, disk_mb, monthly_usd, "
            "memory_bytes, disk_bytes FROM nocturne_fleet_homes ORDER BY home"
        )
        return [FleetHome(*(*row[:8], Quota(*row[8:11]), *row[11:])) for row in await self._rows(query)]

    async def find_places(self, homes: Iterable[str]) -> dict[str, HomePlace]:
        """Return where these homes are, without those that do not exist. Names are in lower case."""
        rows = await self._rows(
            "SELECT lower(home), CASE WHEN until <= clock_timestamp() OR next_due > clock_timestamp() OR (wanted NOT "
            f"IN ('', host) AND EXISTS ({_TAKES_HOMES} h.wanted)) THEN '' ELSE address END, "
            f"next_due > clock_timestamp(), {_IS_FULL} FROM nocturne_fleet_homes h WHERE lower(home) = ANY(%s)",
            (list(homes),),
        )
        return {home: HomePlace(*place) for home, *place in rows}

    async def wake(self, homes: Iterable[str]) -> None:
        """Have hosts start homes that sleep, or not stop them. Names are in lower case."""
        await self._change(
            "UPDATE nocturne_fleet_homes SET next_due = statement_timestamp() "
            "WHERE lower(home) = ANY(%s) AND next_due > clock_timestamp()",
            list(homes),
        )

    async def set_quota(self, home: str, quota: Quota) -> None:
        """It holds from the next start of the home, which its host brings about. The folder is measured again. One that
        was stopped, being full, is first for the host that has its folder. Raises `UsageError`."""
        changed = await self._change(
            "UPDATE nocturne_fleet_homes SET memory_mb = %s, disk_mb = %s, monthly_usd = %s, disk_bytes = 0, "
            f"next_due = CASE WHEN {_IS_FULL} AND until <= clock_timestamp() THEN clock_timestamp() ELSE next_due END "
            "WHERE home = %s",
            *(quota.memory_mb, quota.disk_mb, quota.monthly_usd, home),
        )
        if not changed:
            raise UsageError(_no_home(home))

    async def note_sizes(self, sizes: Mapping[str, tuple[int, int]], process: str) -> None:
        """Store the memory and the folder's size, in bytes, of homes that this process has."""
        await self._change(
            "UPDATE nocturne_fleet_homes h SET memory_bytes = s.memory, disk_bytes = s.disk "
            "FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS s (home, memory, disk) "
            "WHERE h.home = s.home AND h.process = %s",
            *(list(sizes), [memory for memory, _ in sizes.values()], [disk for _, disk in sizes.values()], process),
        )

    async def want(self, home: str, host: str) -> None:
        """Have a home move to a host; if the host is not alive or draining, any host takes it that is.

        Raises `UsageError` if there is no such home or host."""
        if not await self._rows("SELECT 1 FROM nocturne_fleet_hosts WHERE host = %s", (host,)):
            raise UsageError(f"The fleet has no host {host!r}. Nothing was changed; see `assistant fleet status`.")
        moved = await self._change(
            "UPDATE nocturne_fleet_homes SET wanted = CASE WHEN host = %s AND until > clock_timestamp() THEN '' "
            "ELSE %s END WHERE home = %s",
            *(host, host, home),
        )
        if not moved:
            raise UsageError(_no_home(home))

    # ----------------------------------------------------------------------------------------------------------- leases

    async def find_free(self, host: str) -> list[str]:
        """Return the homes that a host may take; first those that are to move to it, then those that wait longest,
        then those that are to be polled. One that another host had last has waited 30 seconds less than it has: it
        needs a restore."""
        query = (
            # The condition that is repeated is one that finds rows by their index.
            f"SELECT home FROM nocturne_fleet_homes WHERE {_WAKES_AT} <= statement_timestamp() AND {_IS_FREE} "
            f"ORDER BY wanted = %(host)s DESC, next_due > statement_timestamp(), greatest(until, {_WAKES_AT}) + "
            "CASE WHEN host IN ('', %(host)s) THEN interval '0' ELSE '30 seconds' END, home LIMIT 100"
        )
        return [home for (home,) in await self._rows(query, {"host": host})]

    async def take(self, homes: Mapping[str, str], host: str, process: str) -> dict[str, HeldHome]:
        """Take the leases of homes for a process of a host, of each its address there; return those that were free."""
        statement = (
            "UPDATE nocturne_fleet_homes h SET epoch = epoch + 1, host = %(host)s, process = %(process)s, "
            f"address = f.place, until = {_LATER}, wanted = '' "
            # Hosts that take some of the same homes do not wait for each other.
            "FROM (SELECT home, place FROM nocturne_fleet_homes JOIN unnest(%(homes)s::text[], %(places)s::text[]) "
            f"AS t (name, place) ON home = name WHERE {_IS_FREE} FOR UPDATE OF nocturne_fleet_homes SKIP LOCKED) f "
            f"WHERE h.home = f.home RETURNING {_HELD}"
        )
        return await self._query_held(statement, host, process, homes=list(homes), places=list(homes.values()))

    async def renew(self, host: str, process: str) -> dict[str, HeldHome]:
        """Renew all leases of a process, and return what it holds. What is missing was lost: it lapsed, was taken or
        removed."""
        await self._change("UPDATE nocturne_fleet_hosts SET seen_at = clock_timestamp() WHERE host = %s", host)
        statement = f"UPDATE nocturne_fleet_homes h SET until = {_LATER} WHERE {_IS_HELD} RETURNING {_HELD}"
        return await self._query_held(statement, host, process)

    async def read_held(self, host: str, process: str) -> dict[str, HeldHome]:
        """As `renew`, without renewing."""
        return await self._query_held(f"SELECT {_HELD} FROM nocturne_fleet_homes h WHERE {_IS_HELD}", host, process)

    async def _query_held(self, statement: str, host: str, process: str, **more: object) -> dict[str, HeldHome]:
        rows = await self._rows(statement, {"host": host, "process": process, **more})
        return {row[0]: HeldHome(*(*row[:5], Quota(*row[5:8]), row[8])) for row in rows}

    async def mark_asleep(self, notes: Mapping[str, tuple[int, IdleNote]], process: str, poll_seconds: float) -> None:
        """Tell routers until when homes sleep; of each its epoch and its note. Leases are held until they stopped."""
        await self._change(
            "UPDATE nocturne_fleet_homes h SET next_due = s.due, poll_at = "
            "CASE WHEN s.polls THEN clock_timestamp() + make_interval(secs => %s) ELSE 'infinity' END "
            "FROM unnest(%s::text[], %s::bigint[], %s::timestamptz[], %s::bool[]) AS s (home, epoch, due, polls) "
            "WHERE h.home = s.home AND h.epoch = s.epoch AND process = %s",
            *(poll_seconds, list(notes), [epoch for epoch, _ in notes.values()]),
            *([note.next_due for _, note in notes.values()], [note.polls for _, note in notes.values()], process),
        )

    async def release(self, homes: Mapping[str, int], process: str, poll_seconds: float = 0.0) -> int:
        """Give up the leases of homes, of each its epoch; return how many were still held. Those that are polled are
        polled again after so many seconds."""
        return await self._change(
            "UPDATE nocturne_fleet_homes h SET until = clock_timestamp(), process = '', "
            "poll_at = greatest(poll_at, clock_timestamp() + make_interval(secs => %s)) "
            "FROM unnest(%s::text[], %s::bigint[]) AS s (home, epoch) "
            "WHERE h.home = s.home AND h.epoch = s.epoch AND process = %s",
            *(poll_seconds, list(homes), list(homes.values()), process),
        )

    # ------------------------------------------------------------------------------------------------------------ hosts

    async def announce(self, host: str, address: str) -> None:
        """Add a host that has just started; an earlier drain of it is over. Hosts that have long been lost are
        forgotten."""
        await self._change("DELETE FROM nocturne_fleet_hosts WHERE seen_at < clock_timestamp() - interval '7 days'")
        await self._change(
            "INSERT INTO nocturne_fleet_hosts (host, address, seen_at) VALUES (%s, %s, clock_timestamp()) "
            "ON CONFLICT (host) DO UPDATE SET address = excluded.address, seen_at = excluded.seen_at, "
            "is_draining = false",
            *(host, address),
        )

    async def withdraw(self, host: str) -> None:
        """Remove a host that has stopped."""
        await self._change("DELETE FROM nocturne_fleet_hosts WHERE host = %s", host)

    async def drain(self, host: str) -> list[str]:
        """Have a host take no homes, and its homes move to the others that are alive, to each as many; return them.

        Raises `UsageError` if there is no such host, or no other."""
        hosts = {row.host: row for row in await self.list_hosts()}
        if host not in hosts:
            raise UsageError(f"The fleet has no host {host!r}. Nothing was changed; see `assistant fleet status`.")
        others = [row for row in hosts.values() if row.is_alive and not row.is_draining and row.host != host]
        loads = {row.host: row.homes for row in others}
        if not loads:
            raise UsageError(f"No other host could take the homes of {host!r}. Nothing was changed; start one first.")
        await self._change("UPDATE nocturne_fleet_hosts SET is_draining = true WHERE host = %s", host)
        homes = [home.home for home in await self.list_homes() if home.host == host and home.is_held]
        for home in homes:
            least = min(loads, key=lambda name: (loads[name], name))
            loads[least] += 1
            await self.want(home, least)
        return homes

    async def list_hosts(self) -> list[FleetHostRow]:
        """Return all hosts by name, dead ones too, each with the number of homes whose lease it holds."""
        query = (
            f"SELECT host, address, seen_at, is_draining, {_IS_ALIVE}, (SELECT count(*) FROM nocturne_fleet_homes h "
            "WHERE h.host = r.host AND until > clock_timestamp()) FROM nocturne_fleet_hosts r ORDER BY host"
        )
        return [FleetHostRow(*row) for row in await self._rows(query)]


def _no_home(home: str) -> str:
    return f"The fleet has no home {home!r}. Nothing was changed; see `assistant fleet status`."
