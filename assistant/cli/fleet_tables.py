"""What the `assistant fleet` commands share: the settings, names, and the fleet's tables."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.output import print_remark
from assistant.core.errors import UsageError
from assistant.settings.settings import Settings

if TYPE_CHECKING:
    from assistant.fleet.tables import FleetTables

T = TypeVar("T")
NO_URL = "replica.url is not set. `assistant docs fleet` says how to set it up."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def load_fleet_settings() -> Settings:
    """Return the settings. Raises `UsageError` if they name no replica, in whose database the fleet's tables are."""
    settings = load_effective_settings()
    if not settings.values.replica.url.get_secret_value():
        raise UsageError(f"There is no replica: {NO_URL} Nothing was changed.")
    return settings


def require_name(name: str) -> None:
    """Raises `UsageError` if it is no name of a home or host."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name of a home or host: 1 to 64 letters, digits, dots, dashes and underscores, of which "
            "the first is a letter or digit. Nothing was changed."
        )


def with_tables(
    settings: Settings, act: Callable[[FleetTables], Awaitable[T]], *, is_new: bool = False, waits: bool = False
) -> T:
    """Return what `act` does with the tables, in an event loop of its own. Unless `is_new`, the tables must exist.
    `waits`: PostgreSQL need not answer yet."""
    from assistant.fleet.tables import FleetTables

    async def run() -> T:
        tables = FleetTables(settings.values.replica.url.get_secret_value())
        try:
            if waits:
                await tables.wait_until_there(print_remark)
            elif not is_new:
                await tables.require()
            return await act(tables)
        finally:
            await tables.aclose()

    return asyncio.run(run())
