"""Browser logins to the web page, and the links that log in a browser.

- A link is valid once, for five minutes, in the process that created it. A session's secret is only given to the
  browser; only hashes of both are stored, those of sessions in a file that backups exclude.
- A session that was revoked, or not used for 90 days, is not accepted; its `ended` event is set immediately.
- A browser may have an address for notifications, which ends with its session.
- If the file cannot be read, nobody is accepted. If it cannot be written, logins are refused, and a revoked session
  still ends in this process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path

from assistant.core.calendar import CLOCK_TOLERANCE, Lifetime, since_boot
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError, UsageError
from assistant.core.plain_files import FileRefused, read_plain_text
from assistant.store.files import sync_directory, write_file
from assistant.store.rows import format_time, parse_time

LINK_MINUTES = 5
_LINK_LIFETIME = timedelta(minutes=LINK_MINUTES)
IDLE_DAYS = 90
_MAX_LINKS = 10
_MAX_SESSIONS = 100
_LONGEST_AGENT = 200
_MAX_BYTES = 1_000_000
# The last use is saved only if this much later than the saved one.
_NOTED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PushAddress:
    """Where a browser takes notifications (Web Push), with its public key and its secret, both as base64url."""

    endpoint: str
    p256dh: str
    auth: str


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A logged-in browser."""

    id: int
    agent: str  # the browser's user agent
    created_at: datetime
    used_at: datetime
    push: PushAddress | None = None


class BrowserSessions:
    def __init__(
        self, path: Path, clock: Callable[[], datetime], elapsed: Callable[[], timedelta] = since_boot
    ) -> None:
        """The file is read at first use. `elapsed` returns the time since boot."""
        self._path = path
        self._clock = clock
        self._elapsed = elapsed
        self._links: dict[str, Lifetime] = {}  # by hash
        self._sessions: dict[str, BrowserSession] | None = None  # by hash
        self._watched: dict[str, asyncio.Event] = {}

    # ------------------------------------------------------------------------------------------------------------ login

    def create_link_code(self) -> str:
        """Return the secret of a link that logs in one browser."""
        now, made_after = self._clock(), self._elapsed()
        self._links = {hash_: link for hash_, link in self._links.items() if not link.is_over(now, made_after)}
        while len(self._links) >= _MAX_LINKS:
            self._links.pop(next(iter(self._links)))
        code = secrets.token_urlsafe(32)
        self._links[_hash(code)] = Lifetime(now, made_after, _LINK_LIFETIME)
        return code

    def log_in(self, code: str, agent: str) -> str:
        """Return the secret of a new session. Raises `UsageError` if the link is invalid, `StoreError` if the session
        cannot be saved; the link is used up in any case."""
        now = self._clock()
        link = self._links.pop(_hash(code), None)
        if link is None or link.is_over(now, self._elapsed()):
            raise UsageError(
                f"This link is used or older than {LINK_MINUTES} minutes. Nobody was logged in; `assistant open` makes "
                "a new one."
            )
        sessions = self._read(now)
        secret = secrets.token_urlsafe(32)
        number = max((session.id for session in sessions.values()), default=0) + 1
        made = BrowserSession(number, agent[:_LONGEST_AGENT], now, now)
        newest = sorted(sessions.items(), key=lambda item: item[1].used_at, reverse=True)[: _MAX_SESSIONS - 1]
        self._write({**dict(newest), _hash(secret): made})
        return secret

    # --------------------------------------------------------------------------------------------------------- sessions

    def is_valid(self, secret: str) -> bool:
        """Return whether a session is valid now, and record its use. Raises nothing."""
        now, hash_ = self._clock(), _hash(secret)
        try:
            session = self._read(now).get(hash_)
            # A clock that was ahead would have it last for years.
            if session is not None and (
                now - session.used_at >= _NOTED_EVERY or session.created_at <= now < session.used_at - CLOCK_TOLERANCE
            ):
                self._write({**self._read(now), hash_: replace(session, used_at=now)})
        except StoreError:
            return self._sessions is not None and hash_ in self._sessions
        return session is not None

    def ended(self, secret: str) -> asyncio.Event:
        """Return the event that is set when the session is revoked."""
        return self._watched.setdefault(_hash(secret), asyncio.Event())

    def list_sessions(self) -> list[BrowserSession]:
        """Raises `StoreError`."""
        return sorted(self._read(self._clock()).values(), key=lambda session: session.id)

    def revoke(self, ids: Collection[int]) -> list[BrowserSession]:
        """Revoke sessions and close what they have open. Raises `StoreError`."""
        sessions = self._read(self._clock())
        ended = {hash_: session for hash_, session in sessions.items() if session.id in ids}
        self._sessions = {hash_: session for hash_, session in sessions.items() if hash_ not in ended}
        for hash_ in ended:
            if event := self._watched.pop(hash_, None):
                event.set()
        self._write(self._sessions)
        return sorted(ended.values(), key=lambda session: session.id)

    def revoke_secret(self, secret: str) -> None:
        """Revoke the session with this secret. Raises `StoreError`."""
        session = self._read(self._clock()).get(_hash(secret))
        if session is not None:
            self.revoke({session.id})

    # ---------------------------------------------------------------------------------------------------- notifications

    def push_of(self, secret: str) -> PushAddress | None:
        """Return where the browser with this secret takes notifications. Raises `StoreError`."""
        session = self._read(self._clock()).get(_hash(secret))
        return session.push if session is not None else None

    def set_push(self, secret: str, address: PushAddress | None) -> None:
        """Raises `UsageError` if no browser has this secret, `StoreError`."""
        sessions, hash_ = self._read(self._clock()), _hash(secret)
        if hash_ not in sessions:
            raise UsageError("Notifications are turned on in a browser that is logged in. Nothing was changed.")
        self._write({**sessions, hash_: replace(sessions[hash_], push=address)})

    def list_push(self) -> list[PushAddress]:
        """Return the addresses of all browsers that are logged in. Raises `StoreError`."""
        return [session.push for session in self.list_sessions() if session.push is not None]

    def drop_push(self, endpoint: str) -> None:
        """Forget an address that is no longer valid. Raises `StoreError`."""
        sessions = self._read(self._clock())
        gone = {hash_: it for hash_, it in sessions.items() if it.push is not None and it.push.endpoint == endpoint}
        self._write({**sessions, **{hash_: replace(session, push=None) for hash_, session in gone.items()}})

    # ------------------------------------------------------------------------------------------------------------- file

    def _read(self, now: datetime) -> dict[str, BrowserSession]:
        if self._sessions is None:
            self._sessions = self._load()
        oldest = now - timedelta(days=IDLE_DAYS)
        return {hash_: session for hash_, session in self._sessions.items() if session.used_at > oldest}

    def _load(self) -> dict[str, BrowserSession]:
        if not self._path.exists():
            return {}
        try:
            kept = json.loads(read_plain_text(self._path, _MAX_BYTES))
            return {
                hash_: BrowserSession(
                    int(row["id"]),
                    str(row["agent"]),
                    parse_time(row["created_at"]),
                    parse_time(row["used_at"]),
                    PushAddress(**row["push"]) if row.get("push") else None,
                )
                for hash_, row in kept.items()
            }
        except (FileRefused, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self._path} cannot be read, so no browser is let in; remove it and log in again with "
                "`assistant open`."
            ) from error

    def _write(self, sessions: dict[str, BrowserSession]) -> None:
        rows = {
            hash_: {**asdict(it), "created_at": format_time(it.created_at), "used_at": format_time(it.used_at)}
            for hash_, it in sessions.items()
        }
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            write_file(new, json.dumps(rows).encode())
            new.replace(self._path)
            sync_directory(self._path.parent)
        except OSError as error:
            raise StoreError(f"{self._path} was not written: {error.strerror}.") from error
        self._sessions = sessions


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
