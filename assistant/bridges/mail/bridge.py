"""The mail bridge: the assistant's own mailbox over IMAP, with answers over SMTP.

- A mail counts as received once its UID is stored with it, in one transaction (I1). If the server assigns new UIDs,
  unread mails are checked again; each is identified by its Message-ID and sender.
- The sender is whom the own server verified, never just `From`. Mails of others are not stored or answered: their
  address may be a third person's.
- A mail is sent once. If it may have arrived, that is reported, and it is not retried (I8).
- Automatic mails are not answered, our own mails are marked as automatic, and the number of mails per address and hour
  is limited.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from assistant.core.bridge_api import BridgeCapabilities, InboundMessage, InboundPort, OutgoingPart, TurnEvent
from assistant.core.calendar import utc_now
from assistant.core.errors import BridgeError, MailError
from assistant.core.logger import get_logger
from assistant.core.messages import Media
from assistant.core.text import shorten_line
from assistant.documents.reader import DocumentReader
from assistant.mail.account import MailAccount, MailServer
from assistant.mail.arrivals import VerifiedWith, first_verifier, is_automatic, own_words, verified_sender
from assistant.mail.compose import (
    AttachedFile,
    OutgoingMail,
    compose,
    is_address,
    message_id,
    message_ids,
    reply_subject,
)
from assistant.mail.imap import MAX_MAIL_BYTES, READ_SECONDS, ImapConnection, ImapThread, MailQuery, run_imap
from assistant.mail.parsed import ParsedMail, ReceivedFile, parse_mail, parse_plain_mail
from assistant.mail.smtp import check_login, submit

log = get_logger()

FOLDER = "INBOX"
_IDLE_SECONDS = 540.0
_POLL_SECONDS = 60.0
_BEGINNING = 32 * 1024  # bytes read for the header, and for most complete mails
_HOUR = 3600.0
_PICTURES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})
_SUBJECT = 70


class MailBridge:
    """See `Bridge`. A target is an address with the Message-ID of the mail to answer, such as "ada@example.org
    <17@example.org>"."""

    name = "mail"
    capabilities = BridgeCapabilities(media=True)

    def __init__(
        self,
        account: MailAccount,
        *,
        verified_by: str,
        verified_with: VerifiedWith,
        hourly_limit: int,
        seconds: float = READ_SECONDS,
        clock: Callable[[], datetime] = utc_now,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """`seconds` is the timeout for one answer of a server; `elapsed` returns monotonic seconds."""
        self._account = account
        self._verified_by = verified_by
        self._verified_with = verified_with
        self._hourly_limit = hourly_limit
        self._seconds = seconds
        self._clock = clock
        self._elapsed = elapsed
        self._documents = DocumentReader()
        self._sent_at: defaultdict[str, deque[float]] = defaultdict(deque)

    async def check(self) -> str:
        """Return the address, after logging in to both servers. Raises `BridgeError`."""
        with _as_bridge_errors():
            await run_imap(self._account.imap, lambda connection: connection.select(FOLDER), self._seconds)
            await check_login(self._account.smtp, self._seconds)
        return self._account.address

    async def aclose(self) -> None:
        """Do nothing: each connection is closed after its use."""

    def show(self, event: TurnEvent, target: str) -> None:
        """Do nothing: a mail cannot be changed after sending."""

    # ------------------------------------------------------------------------------------------------------- receiving

    async def run(self, inbound: InboundPort) -> None:
        """As the port says. Raises `BridgeError` if no server is named that verifies senders."""
        if not self._verified_by:
            raise BridgeError(
                "mail.verified_by is empty, so no mail can be accepted: a From line proves nothing. `assistant bridge "
                "add mail` sets it."
            )
        thread = ImapThread(self._account.imap, self._seconds)
        try:
            with _as_bridge_errors():
                await self._run(thread, inbound)
        finally:
            thread.connection.shut()
            await asyncio.to_thread(thread.connection.close)

    async def _run(self, thread: ImapThread, inbound: InboundPort) -> None:
        validity, newest = await thread.run(_open)
        position = inbound.load_position(self.name)
        last = _last_uid(position, validity)
        if last is None:
            # A new mailbox, or one with new UIDs: read unread mails. The position changes only when all are received.
            last = await self._receive_unread(thread, inbound, newest, position)
            inbound.save_position(self.name, f"{validity}:{last}")
        inbound.mark_connected(self.name)
        while True:
            uids = await self._wait_for_news(thread, last)
            await self._receive_all(thread, inbound, {uid: f"{validity}:{uid}" for uid in uids})
            last = max([last, *uids])

    async def has_news(self, position: str) -> bool:
        """As the port says."""

        def search(connection: ImapConnection) -> bool:
            last = _last_uid(position, connection.select(FOLDER))
            return last is None or bool(connection.newer_than(last))

        with _as_bridge_errors():
            return await run_imap(self._account.imap, search, self._seconds)

    async def _receive_unread(self, thread: ImapThread, inbound: InboundPort, newest: int, position: str) -> int:
        """Receive unread mails and return the UID of the newest mail."""
        inbound.mark_connected(self.name)
        uids = await thread.run(lambda it: it.unseen())
        await self._receive_all(thread, inbound, dict.fromkeys(uids, position))
        return max([newest, *uids])

    async def _wait_for_news(self, thread: ImapThread, last: int) -> list[int]:
        def read_new(connection: ImapConnection) -> list[int]:
            connection.has_news()
            found = connection.newer_than(last)
            # Mail that arrived during the search is not announced again.
            while not found and connection.has_news():
                found = connection.newer_than(last)
            return found

        def wait(connection: ImapConnection) -> list[int]:
            found = read_new(connection)
            if not found and connection.can_idle:
                connection.idle(_IDLE_SECONDS)
                found = read_new(connection)
            return found

        found = await thread.run(wait, _IDLE_SECONDS + _POLL_SECONDS)
        if not found and not thread.connection.can_idle:
            await asyncio.sleep(_POLL_SECONDS)
        return found

    async def _receive_all(self, thread: ImapThread, inbound: InboundPort, positions: Mapping[int, str]) -> None:
        """Receive mails by UID, each with the position after it."""
        answered = []
        for uid, position in positions.items():
            arrival = await self._read(thread, inbound, uid, position)
            if arrival is None:
                inbound.save_position(self.name, position)
            else:
                await inbound.receive(arrival)
                answered.append(uid)
        await thread.run(lambda connection: connection.mark_seen(answered))

    async def _read(self, thread: ImapThread, inbound: InboundPort, uid: int, position: str) -> InboundMessage | None:
        """Return None for a mail that is not answered: its sender is not verified, or it is automatic."""
        beginning = await thread.run(lambda connection: connection.beginning(uid, _BEGINNING))
        if beginning is None:
            return None
        size, raw = beginning
        head = parse_plain_mail(_head_of(raw))
        sender = verified_sender(head, self._verified_by, self._verified_with)
        if sender is None or is_automatic(head, self._account.address):
            why = "its sender is not verified" if sender is None else "a program sent it"
            log.warning("a mail was not accepted", mail=f"{uid}", why=why)
            return None
        address, name = sender
        identity = next(iter(message_ids(head.get("message-id"))), "")
        accepts = inbound.accepts_from(self.name, address, None, addressed=True)
        if accepts and len(raw) < size <= MAX_MAIL_BYTES:
            whole = await thread.run(lambda connection: connection.raw(uid))
            raw = whole or raw
        mail, problem = await self._parse(raw, size, head)
        text = "\n\n".join(part for part in (own_words(mail) if mail else "", problem) if part)
        media = tuple(_as_media(file) for file in mail.files if file.data) if mail and accepts else ()
        if not text and not media:
            return None
        # The UID may change, so a mail without a Message-ID is identified by its whole content.
        known_by = identity.encode() or raw
        external_id = hashlib.sha256(address.encode() + b" " + known_by).hexdigest()[:40]
        target = f"{address} {identity}".strip()
        return InboundMessage(self.name, external_id, address, text, name, media, target, position=position)

    async def _parse(self, raw: bytes, size: int, head: ParsedMail) -> tuple[ParsedMail | None, str]:
        """Return the mail, or a notice if it cannot be read."""
        if size > MAX_MAIL_BYTES:
            return None, f"[a mail of {size / 1e6:.0f} MB, which is too large to be read]"
        kind = head.get("content-type").partition(";")[0].strip().casefold()
        if size <= _BEGINNING and kind in ("", "text/plain"):
            return parse_plain_mail(raw), ""
        try:
            return await parse_mail(self._documents, raw), ""
        except MailError as error:
            return None, f"[{error}]"

    # --------------------------------------------------------------------------------------------------------- sending

    async def send(self, part: OutgoingPart) -> None:
        """As the port says. The Message-ID is made of the part's key, so that a mail sent twice is one to most
        programs. Raises `BridgeError` with `refused` set if the target is no address."""
        address, _, answered = part.item.outgoing.target.partition(" ")
        if not is_address(address):
            raise BridgeError(f"{address!r} is not a mail address.", refused=True)
        self._require_patience(address)
        with _as_bridge_errors():
            mail = await self._outgoing(part, address, answered if part.item.outgoing.kind == "reply" else "")
            identity = message_id(part.key, self._account.domain)
            raw = compose(mail, self._account.address, self._account.sender_name, identity, self._clock())
            await submit(self._account.smtp, self._account.address, [address], raw, self._seconds)
        self._sent_at[address].append(self._elapsed())

    def _require_patience(self, address: str) -> None:
        sent, now = self._sent_at[address], self._elapsed()
        while sent and sent[0] <= now - _HOUR:
            sent.popleft()
        if len(sent) >= self._hourly_limit:
            raise BridgeError(
                f"{address} got {len(sent)} mails within an hour, the most that go there (mail.hourly_limit).",
                retry_after=sent[0] + _HOUR - now,
            )

    async def _outgoing(self, part: OutgoingPart, address: str, answered: str) -> OutgoingMail:
        subject, references = "", ""
        if answered:

            def read_headers(connection: ImapConnection) -> tuple[str, str]:
                connection.select(FOLDER)
                heads = connection.heads(connection.find(answered)[:1])
                return (heads[0].subject, heads[0].references) if heads else ("", "")

            subject, references = await run_imap(self._account.imap, read_headers, self._seconds)
        files = (_as_file(part.media),) if part.media is not None else ()
        first_line = shorten_line(part.text.strip().partition("\n")[0].strip("#* "), _SUBJECT)
        return OutgoingMail(
            (address,),
            reply_subject(subject) if answered else first_line or (files[0].name if files else "Nocturne"),
            part.text,
            (),
            files,
            answered,
            message_ids(references),
            automatic=True,
        )


async def find_verifier(server: MailServer) -> str:
    """Return the server that says it verified the sender of the newest mail; "" if none, or there is no mail. Raises
    `BridgeError`."""

    def read_newest(connection: ImapConnection) -> bytes:
        connection.select(FOLDER)
        newest = connection.search(MailQuery())[-1:]
        return (connection.raw(newest[0], _BEGINNING) or b"") if newest else b""

    with _as_bridge_errors():
        return first_verifier(parse_plain_mail(_head_of(await run_imap(server, read_newest))))


def _open(connection: ImapConnection) -> tuple[int, int]:
    """Return the UIDVALIDITY of the mailbox, and its newest UID."""
    connection.open()
    return connection.select(FOLDER, writes=True), connection.newest()


def _last_uid(position: str, validity: int) -> int | None:
    """Return the UID up to which mails were received; None if the mailbox is new, or has new UIDs."""
    known, _, last = position.partition(":")
    return int(last) if known == str(validity) and last.isdecimal() else None


def _head_of(raw: bytes) -> bytes:
    ends = [end for end in (raw.find(b"\r\n\r\n"), raw.find(b"\n\n")) if end >= 0]
    return raw[: min(ends)] if ends else raw


def _as_media(file: ReceivedFile) -> Media:
    kind = "image" if file.mime in _PICTURES else "file"
    return Media(kind, file.mime, file.name or "file", file.size, file.data)  # type: ignore[arg-type]


def _as_file(medium: Media) -> AttachedFile:
    return AttachedFile(medium.name or "file", base64.b64decode(medium.data or ""), medium.mime)


@contextmanager
def _as_bridge_errors() -> Iterator[None]:
    try:
        yield
    except MailError as error:
        raise BridgeError(
            str(error), retry_after=error.retry_after, ambiguous=error.ambiguous, refused=error.refused
        ) from None
