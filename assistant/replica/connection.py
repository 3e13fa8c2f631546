"""One connection to PostgreSQL on which only confirmed commits count.

If the wait for a synchronous standby is cancelled, PostgreSQL reports success with a warning: the commit may be on one
machine alone, and does not count.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assistant.core.errors import ReplicaUnavailable, install_hint

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.errors import Diagnostic

_CONNECT_SECONDS = 10
# A server that is gone without a word is noticed in half a minute, not in hours.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_WAIT_CANCELLED = "canceling wait for synchronous replication"


class PostgresSession:
    """A connection that is opened at first use, and again after an error. One caller at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: AsyncConnection[Any] | None = None
        self._unconfirmed = False

    async def aclose(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    async def _connected(self) -> AsyncConnection[Any]:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        import psycopg

        connection = await psycopg.AsyncConnection.connect(
            psycopg.conninfo.make_conninfo(self._url, **_KEEPALIVE),
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name="nocturne",
        )
        connection.add_notice_handler(self._on_notice)
        # `remote_apply` is stricter, and stays.
        await connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
        )
        self._connection = connection
        return connection

    def _on_notice(self, notice: Diagnostic) -> None:
        if _WAIT_CANCELLED in (notice.message_primary or ""):
            self._unconfirmed = True

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Yield the connection; it is closed if its use fails or is cancelled."""
        try:
            import psycopg
        except ImportError as error:
            raise ReplicaUnavailable(f"The replica needs psycopg; {install_hint('replica')}.") from error
        self._unconfirmed = False
        try:
            yield await self._connected()
        except BaseException as error:
            await self.aclose()
            if not isinstance(error, (psycopg.Error, OSError)):
                raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ReplicaUnavailable(f"The replica does not answer: {reason}") from error
        if self._unconfirmed:
            raise ReplicaUnavailable("The replica's standby did not confirm: its wait was cancelled.")

    async def _change(self, statement: str, *parameters: object) -> int:
        """Return the number of rows that were changed."""
        async with self._session() as connection:
            return (await connection.execute(statement, parameters)).rowcount

    async def _rows(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] = (), *, binary: bool = False
    ) -> list[Any]:
        """`binary`: bytes come as they are, not as text."""
        async with self._session() as connection:
            return await (await connection.execute(query, parameters, binary=binary)).fetchall()

    async def _value(self, query: str, *parameters: object) -> Any:
        """Return the first value of the first row, None without rows."""
        rows = await self._rows(query, parameters)
        return rows[0][0] if rows else None
