"""The owner's own mail: search, read, save a draft, send.

- A mail is sent at most once per key. It is saved as a draft before it is submitted, and moved to the sent mails
  afterwards; if a retry finds the draft, it is unknown whether the mail was sent, which is reported.
- A refused mail was not sent, and its draft is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass
from assistant.core.errors import MailError, install_hint
from assistant.documents.reader import DocumentReader
from assistant.mail.account import MailAccount
from assistant.mail.parsed import ParsedMail, parse_mail

if TYPE_CHECKING:
    from assistant.mail.compose import OutgoingMail
    from assistant.mail.imap import ImapConnection, MailHead, MailQuery

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MailPlace:
    """The place of a mail, as people and models name it: "INBOX:17", with several accounts "work:INBOX:17"."""

    folder: str
    uid: int
    account: str = ""

    def __str__(self) -> str:
        return f"{self.account}:{self.folder}:{self.uid}" if self.account else f"{self.folder}:{self.uid}"

    @classmethod
    def parse(cls, text: str) -> MailPlace:
        """Read "Archive:17", as a search shows it. Raises `MailError`."""
        folder, colon, uid = text.strip().rpartition(":")
        if not colon or not folder or not uid.isdecimal() or len(uid) > 10:
            raise MailError(f"{text[:80]!r} names no mail; a search shows names such as Archive:17.", refused=True)
        return cls(folder, int(uid))


@dataclass(frozen=True, slots=True)
class FoundMails:
    mails: tuple[tuple[MailPlace, MailHead], ...]  # newest first
    more: int  # number of further matches
    problems: tuple[str, ...] = ()  # accounts that could not be searched, for a person


@dataclass(frozen=True, slots=True)
class MailService:
    """One account. Methods raise `MailError`."""

    account: MailAccount
    documents: DocumentReader = field(default_factory=DocumentReader)
    clock: Callable[[], datetime] = utc_now
    seconds: float = 30.0  # timeout for one answer of a server

    async def check(self) -> str:
        """Log in to both servers. Raises `MailError`."""
        await self._imap(lambda connection: connection.select("INBOX"))
        from assistant.mail.smtp import check_login

        await check_login(self.account.smtp, self.seconds)
        return self.account.address

    async def search(self, query: MailQuery, folder: str = "", *, limit: int, offset: int = 0) -> FoundMails:
        """Raises `MailError`."""
        folders = (folder,) if folder else self.account.folders

        def search_folders(connection: ImapConnection) -> FoundMails:
            found: list[tuple[MailPlace, MailHead]] = []
            total = 0
            for name in folders:
                connection.select(name)
                uids = connection.search(query)
                total += len(uids)
                newest = list(reversed(uids))[: offset + limit]
                found += [(MailPlace(name, head.uid), head) for head in connection.heads(newest)]
            shown = tuple(found[offset : offset + limit])
            return FoundMails(shown, max(0, total - offset - len(shown)))

        return await self._imap(search_folders)

    async def read(self, place: MailPlace) -> ParsedMail:
        """Raises `MailError`."""
        from assistant.mail.imap import MAX_MAIL_BYTES

        def fetch(connection: ImapConnection) -> bytes:
            connection.select(place.folder)
            size = connection.size(place.uid)
            if size is None:
                raise MailError(f"There is no mail {place}.", refused=True)
            if size > MAX_MAIL_BYTES:
                raise MailError(
                    f"The mail {place} has {size / 1e6:.0f} MB; {MAX_MAIL_BYTES // 2**20} MB at most are read. It is "
                    "unchanged on the server: read it in your mail program.",
                    refused=True,
                )
            raw = connection.raw(place.uid)
            if raw is None:
                raise MailError(f"There is no mail {place} any more.", refused=True)
            return raw

        return await parse_mail(self.documents, await self._imap(fetch))

    async def save_draft(self, mail: OutgoingMail, key: str) -> bool:
        """Save a draft; return whether it was new: an existing one with this key is kept instead."""
        identity, raw = self._compose(mail, key)

        def save(connection: ImapConnection) -> bool:
            drafts = connection.folder_for("Drafts", self.account.drafts)
            connection.select(drafts)
            if connection.find(identity):
                return False
            connection.append(drafts, raw, "\\Draft", "\\Seen")
            return True

        return await self._imap(save)

    async def send(self, mail: OutgoingMail, key: str) -> str:
        """Send a mail; return the outcome for a person. Raises `MailError`: nothing was sent, or (`ambiguous`) it is
        unknown."""
        from assistant.mail.smtp import submit

        identity, raw = self._compose(mail, key)
        recipients = [*mail.to, *mail.cc]
        to = ", ".join(recipients)

        def keep(connection: ImapConnection) -> bool:
            sent = connection.folder_for("Sent", self.account.sent)
            connection.select(sent)
            if connection.find(identity):
                with suppress(MailError):
                    # A move that was cut off has left it in the drafts as well.
                    self._file(connection, identity)
                return True
            drafts = connection.folder_for("Drafts", self.account.drafts)
            connection.select(drafts)
            if connection.find(identity):
                raise MailError(_unknown(to, "An earlier try was interrupted."), ambiguous=True)
            connection.append(drafts, raw, "\\Draft", "\\Seen")
            return False

        try:
            if await self._imap(keep):
                return f"The mail to {to} was sent before; it was not sent again."
        except MailError as error:
            raise error if error.ambiguous else MailError(f"{error} Nothing was sent.", refused=error.refused) from None
        try:
            await submit(self.account.smtp, self.account.address, recipients, raw, self.seconds)
        except MailError as error:
            if error.ambiguous:
                raise MailError(_unknown(to, str(error)), ambiguous=True) from None
            await self._drop_draft(identity)
            raise MailError(f"{error} Nothing was sent.", refused=error.refused) from None
        try:
            await self._imap(lambda connection: self._file(connection, identity))
        except MailError as error:
            return f"The mail to {to} was sent. It is still in your drafts, since {error}"
        return f"The mail to {to} was sent."

    def _file(self, connection: ImapConnection, identity: str) -> None:
        """Move it from the drafts to the sent mails, unless the server has already added it there."""
        sent = connection.folder_for("Sent", self.account.sent)
        drafts = connection.folder_for("Drafts", self.account.drafts)
        connection.select(sent)
        is_there = bool(connection.find(identity))
        connection.select(drafts, writes=True)
        uids = connection.find(identity)
        if is_there:
            connection.delete(uids)
        else:
            connection.move(uids, sent)

    async def _drop_draft(self, identity: str) -> None:
        def drop(connection: ImapConnection) -> None:
            connection.select(connection.folder_for("Drafts", self.account.drafts), writes=True)
            connection.delete(connection.find(identity))

        await self._imap(drop)

    def _compose(self, mail: OutgoingMail, key: str) -> tuple[str, bytes]:
        from assistant.mail.compose import compose, message_id

        identity = message_id(key, self.account.domain)
        return identity, compose(mail, self.account.address, self.account.sender_name, identity, self.clock())

    async def _imap(self, work: Callable[[ImapConnection], T]) -> T:
        run_imap = imap_module().run_imap
        result: T = await run_imap(self.account.imap, work, self.seconds)
        return result


def imap_module() -> Any:
    """Import the libraries, an optional dependency, at first use."""
    try:
        from assistant.mail import imap, smtp  # noqa: F401
    except ImportError as error:
        raise MailError(
            f"Mail needs a package that is not installed ({error.name}); {install_hint('mail')}.", refused=True
        ) from None
    return imap


def _unknown(to: str, why: str) -> str:
    return (
        f"{why} Nobody knows whether the mail to {to} was sent. It is in your drafts: ask them, or look whether it "
        "arrived, before you send it from there."
    )
