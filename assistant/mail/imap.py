"""Reads and stores mail over IMAP. Everything here blocks: `run_imap` calls it in a thread.

- Each read has a time limit, each command a size limit, and the whole call a deadline, after which its connection is
  shut, so that no server can block it.
- Reading does not mark mails as read. Values in commands are quoted, without control characters.
"""

from __future__ import annotations

import asyncio
import contextlib
import imaplib
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from datetime import date
from typing import Any, TypeVar

from imap_tools import errors as imap_errors
from imap_tools.idle import get_socket_poller
from imap_tools.message import MailMessage
from imap_tools.query import AND, H

from assistant.core.dataclass import dataclass
from assistant.core.errors import MailError
from assistant.core.network_errors import describe_connection_error
from assistant.core.text import shorten_line
from assistant.mail.account import MailServer
from assistant.mail.imap_client import MAX_COMMAND_BYTES, BoundedMailBox, has_buffered

T = TypeVar("T")

READ_SECONDS = 30.0
DEADLINE_SECONDS = 90.0
MAX_MAIL_BYTES = 30 * 1024 * 1024
_HEAD_BYTES = 8_192
_HEAD = (
    f"(UID FLAGS RFC822.SIZE BODY.PEEK[HEADER.FIELDS (FROM TO CC SUBJECT DATE MESSAGE-ID REFERENCES)]<0.{_HEAD_BYTES}>)"
)
_AT_ONCE = 50
_UID = re.compile(rb"\bUID (\d{1,10})\b")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d{1,12})\b")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
# A misbehaving server causes any of these errors in the library.
_FAILURES = (
    imap_errors.ImapToolsError,
    imaplib.IMAP4.error,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)


@dataclass(frozen=True, slots=True)
class MailHead:
    """A mail in a list. Everything except number and size is the sender's own text."""

    uid: int
    sender: str
    to: str
    subject: str
    date: str
    message_id: str
    references: str
    size: int
    seen: bool


@dataclass(frozen=True, slots=True)
class MailQuery:
    """Search criteria; "" and None for any."""

    text: str = ""
    sender: str = ""
    subject: str = ""
    since: date | None = None
    before: date | None = None
    unread: bool = False

    def criteria(self) -> str:
        """The IMAP search for it (RFC 3501); "ALL" without conditions."""
        wanted: dict[str, Any] = {
            "text": _plain(self.text),
            "from_": _plain(self.sender),
            "subject": _plain(self.subject),
            "date_gte": self.since,
            "date_lt": self.before,
            "seen": False if self.unread else None,
        }
        given = {name: value for name, value in wanted.items() if value not in ("", None)}
        return str(AND(**given)) if given else "ALL"


def _plain(text: str) -> str:
    return _CONTROLS.sub(" ", text).strip()


@dataclass(slots=True)
class ImapConnection:
    """A login. Every method raises `MailError`."""

    server: MailServer
    seconds: float = READ_SECONDS
    _box: Any = None
    _socket: socket.socket | None = None
    _is_shut: bool = False

    def open(self) -> None:
        with self._explained():
            self._box = BoundedMailBox(self.server, self.seconds, self._use)
            log_in = self._box.login if (self.server.user + self.server.password).isascii() else self._box.login_utf8
            log_in(self.server.user, self.server.password, None)

    def close(self) -> None:
        """Log out as far as the server still answers. Never raises."""
        with contextlib.suppress(*_FAILURES):
            if self._box is not None:
                self._box.client.logout()
        with contextlib.suppress(*_FAILURES):
            if self._box is not None:
                self._box.client.shutdown()

    def _use(self, opened: socket.socket) -> None:
        self._socket = opened
        if self._is_shut:
            self.shut()

    def shut(self) -> None:
        """Shut the connection, ending any wait; callable from any thread."""
        self._is_shut = True
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    # ------------------------------------------------------------------------------------------------------- folders

    def select(self, folder: str, *, writes: bool = False) -> int:
        """Open a folder; return its UIDVALIDITY, while which UIDs keep their meaning."""
        with self._explained(folder):
            self._box.folder.set(_plain(folder), readonly=not writes)
            found = self._box.client.response("UIDVALIDITY")[1]
            return int(found[-1])

    def newest(self) -> int:
        """Return the UID of the newest mail of the opened folder; 0 if it never had one."""
        with self._explained():
            announced = self._box.client.response("UIDNEXT")[1][-1]
            return int(announced) - 1 if announced else max(self._uids("ALL"), default=0)

    def folder_for(self, use: str, chosen: str) -> str:
        """Return the folder for `use` ("Sent", "Drafts"): the chosen one, the one the server marks for it, or one of
        that name, created if necessary."""
        with self._explained():
            if chosen:
                return chosen
            folders = self._box.folder.list()
            special = [it.name for it in folders if f"\\{use.casefold()}" in map(str.casefold, it.flags)]
            named = [it.name for it in folders if it.name.casefold() in (use.casefold(), f"inbox.{use}".casefold())]
            if special or named:
                return str((special or named)[0])
            self._box.folder.create(use)
            return use

    # --------------------------------------------------------------------------------------------- the selected folder

    def search(self, query: MailQuery) -> list[int]:
        """Return UIDs, oldest first."""
        return self._uids(query.criteria())

    def newer_than(self, uid: int) -> list[int]:
        """Return UIDs above one; IMAP's `n:*` includes the newest even if it is older."""
        return [found for found in self._uids(f"UID {uid + 1}:*") if found > uid]

    def unseen(self) -> list[int]:
        """Return the UIDs of unread mails in the open folder."""
        return self._uids("UNSEEN")

    def find(self, message_id: str) -> list[int]:
        """Return the UIDs of mails with this Message-ID in the open folder."""
        return self._uids(str(AND(header=H("Message-ID", _plain(message_id)))))

    def heads(self, uids: Sequence[int]) -> list[MailHead]:
        """Return heads in the order of `uids`; missing mails are omitted."""
        found: dict[int, MailHead] = {}
        with self._explained():
            for start in range(0, len(uids), _AT_ONCE):
                for about, content in self._fetch(uids[start : start + _AT_ONCE], _HEAD):
                    head = _head(about, content)
                    found[head.uid] = head
        return [found[uid] for uid in uids if uid in found]

    def size(self, uid: int) -> int | None:
        """Return the size in bytes; None if it does not exist."""
        with self._explained():
            for about, _ in self._fetch([uid], "(UID RFC822.SIZE)"):
                if (found := _SIZE.search(about)) is not None:
                    return int(found[1])
        return None

    def raw(self, uid: int, max_bytes: int = MAX_MAIL_BYTES) -> bytes | None:
        """Return the first `max_bytes` of a mail; None if it does not exist."""
        with self._explained():
            for _, content in self._fetch([uid], f"(UID BODY.PEEK[]<0.{max_bytes}>)"):
                return content
        return None

    def beginning(self, uid: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return the size of a mail and its first bytes; None if it does not exist."""
        with self._explained():
            for about, content in self._fetch([uid], f"(UID RFC822.SIZE BODY.PEEK[]<0.{max_bytes}>)"):
                size = _SIZE.search(about)
                return (int(size[1]) if size else len(content)), content
        return None

    def append(self, folder: str, mail: bytes, *flags: str) -> None:
        with self._explained(folder):
            self._box.append(mail, folder, flag_set=list(flags))

    def mark_seen(self, uids: Sequence[int]) -> None:
        with self._explained():
            if uids:
                self._check(self._box.client.uid("STORE", ",".join(map(str, uids)), "+FLAGS.SILENT", "(\\Seen)"))

    def move(self, uids: Sequence[int], folder: str) -> None:
        with self._explained(folder):
            self._box.move([str(uid) for uid in uids], folder)

    def delete(self, uids: Sequence[int]) -> None:
        with self._explained():
            self._box.delete([str(uid) for uid in uids])

    # --------------------------------------------------------------------------------------------------------- waiting

    @property
    def can_idle(self) -> bool:
        return "IDLE" in self._box.client.capabilities

    def has_news(self) -> bool:
        """Return whether the server announced new mails since the last call, during any command."""
        with self._explained():
            return self._box.client.response("EXISTS")[1][-1] is not None

    def idle(self, seconds: float) -> None:
        """Wait until the server announces something new in the folder, at most so many seconds."""
        with self._explained():
            client = self._box.client
            tag = client._command("IDLE")
            has_news = False
            # The library takes a line that comes before the server waits for a refusal.
            while client._get_response() is not None:
                has_news = True
                if client.tagged_commands.get(tag):
                    raise imaplib.IMAP4.error("it does not wait for news")
            if not (has_news or has_buffered(client)):
                get_socket_poller(client.sock, int(seconds))
            client.send(b"DONE\r\n")
            self._box.consume_until_tagged_response(tag)

    # ----------------------------------------------------------------------------------------------------------- inside

    def _uids(self, criteria: str) -> list[int]:
        with self._explained():
            charset = None if criteria.isascii() else "UTF-8"
            return sorted(int(uid) for uid in self._box.uids(criteria, charset))

    def _fetch(self, uids: Sequence[int], parts: str) -> Iterator[tuple[bytes, bytes]]:
        """What the server says about each mail, and the part of it that was asked for."""
        if not uids:
            return
        answer = self._check(self._box.client.uid("FETCH", ",".join(map(str, uids)), parts))
        about, content = b"", b""
        for item in [*answer, None]:
            # A literal begins an item; what follows belongs to the same mail.
            if isinstance(item, tuple) or item is None:
                if _UID.search(about):
                    yield about, content
                about, content = (item[0], item[1]) if isinstance(item, tuple) else (b"", b"")
            elif isinstance(item, bytes) and content:
                about += b" " + item
            elif isinstance(item, bytes):
                if _UID.search(about):
                    yield about, content
                about = item

    def _check(self, answer: tuple[str, list[Any]]) -> list[Any]:
        status, data = answer
        if status != "OK":
            raise imaplib.IMAP4.error(_words(data))
        return data

    @contextlib.contextmanager
    def _explained(self, folder: str = "") -> Iterator[None]:
        if self._box is not None:
            self._box.client.left = MAX_COMMAND_BYTES
        try:
            yield
        except MailError:
            raise
        except imap_errors.MailboxLoginError:
            raise MailError(f"{self.server} refuses the user name or the password.", refused=True) from None
        except imap_errors.MailboxFolderSelectError as error:
            raise MailError(f"{self.server} does not open the folder {folder!r}: {_why(error)}", refused=True) from None
        except _FAILURES as error:
            if problem := self.server.certificate_problem(error):
                raise MailError(problem) from None
            if isinstance(error, OSError | EOFError):
                raise MailError(f"{self.server} cannot be reached: {describe_connection_error(error)}.") from None
            raise MailError(f"{self.server} did not do it: {_why(error)}") from None


def _head(about: bytes, content: bytes) -> MailHead:
    message = MailMessage([(about, content)])
    uid, size = _UID.search(about), _SIZE.search(about)
    fields: dict[str, str] = {}
    for name in ("from", "to", "subject", "date", "message-id", "references"):
        try:
            value = message.obj.get(name, "")
            fields[name] = (
                message.subject if name == "subject" else _decoded(value) if name in ("from", "to") else str(value)
            )
        except _FAILURES:
            fields[name] = ""
    return MailHead(
        int(uid[1]) if uid else 0,
        fields["from"],
        fields["to"],
        shorten_line(fields["subject"], 300),
        shorten_line(fields["date"], 60),
        shorten_line(fields["message-id"], 300),
        " ".join(fields["references"].split()),
        int(size[1]) if size else 0,
        b"\\Seen" in about,
    )


def _decoded(value: object) -> str:
    from assistant.documents.mail_parts import decode_field  # loaded with the first mail

    return shorten_line(decode_field(value), 300)


def _words(data: Sequence[Any]) -> str:
    return " ".join(it.decode(errors="replace") if isinstance(it, bytes) else str(it) for it in data if it)


def _why(error: BaseException) -> str:
    """Return the server's error message, or what happened, on one line."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time."
    if isinstance(error, imap_errors.UnexpectedCommandStatusError):
        text = _words(error.command_result[1]) if isinstance(error.command_result[1], list) else str(error)
    else:
        text = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
    return shorten_line(" ".join(text.split()) or type(error).__name__, 200).rstrip(".") + "."


@dataclass(slots=True)
class ImapThread:
    """A connection whose calls run in a thread, one at a time; cancelling a call shuts the connection."""

    server: MailServer
    seconds: float = READ_SECONDS
    connection: ImapConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = ImapConnection(self.server, self.seconds)

    async def run(self, work: Callable[[ImapConnection], T], deadline: float = DEADLINE_SECONDS) -> T:
        """Raises `MailError`."""
        try:
            async with asyncio.timeout(deadline):
                return await asyncio.to_thread(work, self.connection)
        except TimeoutError:
            self.connection.shut()
            raise MailError(f"{self.server} did not do it: it did not answer in time.") from None
        except asyncio.CancelledError:
            self.connection.shut()
            raise


async def run_imap(server: MailServer, work: Callable[[ImapConnection], T], seconds: float = READ_SECONDS) -> T:
    """Log in, run `work`, and log out. Raises `MailError`."""

    def whole(connection: ImapConnection) -> T:
        try:
            connection.open()
            return work(connection)
        finally:
            connection.close()

    return await ImapThread(server, seconds).run(whole)
