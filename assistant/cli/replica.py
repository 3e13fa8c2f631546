"""`assistant replica`: shows, verifies, restores and deletes the copy of this data folder in PostgreSQL. The commands
connect to the server themselves, whether the assistant runs or not.
"""

from __future__ import annotations

import asyncio
import platform
import tempfile
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.lazy import DefaultGroup
from assistant.cli.logging_setup import log_to_file
from assistant.cli.output import json_result, print_remark, print_text
from assistant.commands.table import Item
from assistant.core.calendar import format_local_time, utc_now
from assistant.core.errors import UsageError
from assistant.core.records import IntegrityReport
from assistant.core.text import format_bytes, pluralize
from assistant.service.home_lock import home_lock
from assistant.settings.settings import Settings
from assistant.store.replicated import set_replicated
from assistant.wire.replica import build_replica_reader, open_bases, open_replica

if TYPE_CHECKING:
    from assistant.replica.postgres import ReplicaDatabase
    from assistant.replica.restore import ReplicaCopy

T = TypeVar("T")


class ReplicaReport(Item):
    """What the replica has."""

    ok: bool  # whether it is this folder's, and whole
    home_name: str
    machine: str  # that owns it
    is_ours: bool
    taken_at: datetime
    epoch: int
    changed_at: datetime
    base_at: datetime | None
    base_is_there: bool  # where it was stored
    changes: int  # since the base
    bytes: int
    standbys: list[str]  # that each commit waits for


class ReplicaProof(Item):
    """A copy that was assembled from the replica, opened, and found intact."""

    ok: bool = True
    home_name: str
    changes: int
    bytes: int
    records: int
    sessions: int
    former_home: Path | None = None  # where the earlier content of the folder is


@click.group(cls=DefaultGroup, default="status")
def replica() -> None:
    """Keep a copy of your data folder in PostgreSQL, and look after it; alone it shows its state.

    The copy has each message before it is acknowledged.

    > assistant replica
    """


@replica.command()
@json_result(ReplicaReport | None, ok=lambda report: report is None or report.ok)
def status() -> ReplicaReport | None:
    """Show what the server has, and who owns the copy.

    > assistant replica status
    """
    settings = load_effective_settings()
    if not settings.values.replica.url.get_secret_value():
        print_text("There is no replica: replica.url is not set. `assistant docs replica` says how to set one up.")
        return None
    report = _with_database(settings, lambda database: _read_status(settings, database))
    print_text("\n".join(_status_lines(report, settings)))
    return report


@replica.command()
@json_result(ReplicaProof)
def verify() -> ReplicaProof:
    """Check the copy: put it together and read every file.

    It is opened in a temporary folder; nothing is changed.

    > assistant replica verify
    """
    settings = _settings()
    log_to_file(settings.home.program_log)

    async def prove(database: ReplicaDatabase) -> ReplicaProof:
        with tempfile.TemporaryDirectory(prefix="nocturne-replica-") as folder:
            copy, proved = await build_replica_reader(settings, database).verify(Path(folder), utc_now())
        return _proof(copy, proved.report)

    proof = _with_database(settings, prove)
    print_text(f"The copy is whole: {_proof_line(proof)}.")
    return proof


@replica.command()
@click.option("--force", is_flag=True, help="Also into a data folder that is not empty; what is there is kept aside.")
@json_result(ReplicaProof)
def restore(force: bool) -> ReplicaProof:
    """Bring your data folder here, and take it over.

    From the first moment on the machine that had it before stores and sends nothing more.

    > assistant replica restore
    """
    settings = _settings()
    log_to_file(settings.home.program_log)

    async def take(database: ReplicaDatabase) -> ReplicaProof:
        with tempfile.TemporaryDirectory(prefix="nocturne-replica-") as folder:
            reader = build_replica_reader(settings, database)
            copy, restored = await reader.take_over(
                settings.home.path, Path(folder), platform.node(), utc_now(), force=force
            )
        return _proof(copy, restored.report, restored.former_home)

    with home_lock(settings.home.path):
        proof = _with_database(settings, take)
    print_text(f"Restored {settings.home.path}: {_proof_line(proof)}. It is this machine's from now on.")
    if proof.former_home is not None:
        print_text(f"What was there before is kept in {proof.former_home}; remove it when you no longer need it.")
        former = proof.former_home / settings.home.secrets.name
        if former.exists() and not settings.home.secrets.exists():
            print_text(f"The copy has no secrets: what you had set is in {former}.")
    return proof


@replica.command()
@json_result(bool, "Print whether the server's copy was deleted.")
def detach() -> bool:
    """Delete the server's copy and stop using it.

    A copy that another machine owns stays there.

    Stop the assistant first, and set replica.url to "" afterwards.

    > assistant replica detach
    """
    settings = _settings()

    async def delete(database: ReplicaDatabase) -> tuple[bool, str]:
        from assistant.replica.holder import load_holder

        state, holder = await database.read_state(), load_holder(settings.home.path)
        if state is None:
            return False, "The server has no copy."
        if holder is None or holder.name != state.holder:
            return False, "The server's copy is another machine's, and stays there."
        await open_bases(settings, database).remove_others(state.epoch, 0)
        await database.delete(state.epoch)
        return True, "The server's copy is deleted."

    with home_lock(settings.home.path):
        from assistant.replica.holder import remove_holder

        deleted, said = _with_database(settings, delete)
        remove_holder(settings.home.path)
        set_replicated(settings.home.path, replicated=False)
    print_text(said)
    print_remark('Set replica.url to "", else the next start makes a new copy.')
    return deleted


def _settings() -> Settings:
    settings = load_effective_settings()
    if not settings.values.replica.url.get_secret_value():
        raise UsageError(
            "There is no replica: replica.url is not set. Nothing was changed; see `assistant docs replica`."
        )
    return settings


def _with_database(settings: Settings, act: Callable[[ReplicaDatabase], Awaitable[T]]) -> T:
    async def run() -> T:
        database = open_replica(settings)
        try:
            return await act(database)
        finally:
            await database.aclose()

    return asyncio.run(run())


async def _read_status(settings: Settings, database: ReplicaDatabase) -> ReplicaReport:
    from assistant.replica.holder import load_holder

    state = await database.read_state()
    if state is None:
        raise UsageError(f"The replica has no home {database.home!r} yet: the assistant makes it when it runs.")
    holder = load_holder(settings.home.path)
    is_ours = holder is not None and holder.name == state.holder
    bases = open_bases(settings, database)
    listed = await bases.find_list(state.base)
    is_there = bool(state.base) and await bases.is_stored(state.base)
    return ReplicaReport(
        ok=is_ours and state.base_at is not None and is_there,
        home_name=state.home,
        machine=state.machine,
        is_ours=is_ours,
        taken_at=state.taken_at,
        epoch=state.epoch,
        changed_at=state.changed_at,
        base_at=state.base_at,
        base_is_there=is_there,
        changes=state.sequence - state.base_after,
        bytes=sum(await database.sum_bytes()) + (listed.bytes if listed.place else 0),
        standbys=list(filter(None, [await database.read_standbys()])),
    )


def _status_lines(report: ReplicaReport, settings: Settings) -> list[str]:
    def local(time: datetime) -> str:
        return format_local_time(time, settings.zone)

    lines = [f"{report.home_name}: {format_bytes(report.bytes)}, last changed {local(report.changed_at)}."]
    if report.base_at is None:
        lines.append("There is no whole copy yet: nothing could be restored.")
    elif not report.base_is_there:
        lines.append(
            "The whole copy is GONE from where it was stored: nothing could be restored. Restart the assistant."
        )
    else:
        lines.append(f"Whole copy of {local(report.base_at)}, and {pluralize(report.changes, 'change')} since.")
    owner = "this data folder" if report.is_ours else f"ANOTHER one, on {report.machine}"
    lines.append(f"It belongs to {owner}, since {local(report.taken_at)}.")
    if report.standbys:
        lines.append(f"Each commit waits for a standby ({', '.join(report.standbys)}).")
    else:
        lines.append("No commit waits for a standby: the copy is on one disk. See synchronous_standby_names.")
    return lines


def _proof(copy: ReplicaCopy, report: IntegrityReport, former_home: Path | None = None) -> ReplicaProof:
    return ReplicaProof(
        home_name=copy.state.home,
        changes=copy.changes,
        bytes=copy.bytes,
        records=report.records,
        sessions=report.sessions,
        former_home=former_home,
    )


def _proof_line(proof: ReplicaProof) -> str:
    return (
        f"{pluralize(proof.records, 'record')} of {pluralize(proof.sessions, 'session')}, from "
        f"{pluralize(proof.changes, 'change')} and {format_bytes(proof.bytes)}"
    )
