"""Mail servers of a crash scenario: one that keeps mail and one that sends it, played in the process that is killed.

All that they know is the witness: what was kept, moved, deleted and sent is noted outside of the home before the app
hears of it. So every kill is one between the app and its servers, and a restarted server goes on as a real one would.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from tests.crash.witness import EffectLog

_IDENTITY = re.compile(rb"^Message-ID: (<[^>]+>)", re.MULTILINE | re.IGNORECASE)
_LITERAL = re.compile(rb"\{(\d+)\+?\}\r\n$")

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class RecordedFolders:
    """Which mail is in which folder, by its Message-ID."""

    def __init__(self, witness: EffectLog) -> None:
        self._witness = witness

    def numbered(self, folder: str) -> dict[int, str]:
        """By the number that it has in the folder for ever."""
        found: dict[int, str] = {}
        events = [seen for seen in self._witness.recorded("mailbox") if seen["folder"] == folder]
        for number, seen in enumerate(events, 1):
            if seen["kept"]:
                found[number] = seen["id"]
            else:
                found = {other: identity for other, identity in found.items() if identity != seen["id"]}
        return found

    def keep(self, folder: str, identity: str) -> None:
        self._witness.record("mailbox", folder=folder, id=identity, kept=True)

    def remove(self, folder: str, identity: str) -> None:
        self._witness.record("mailbox", folder=folder, id=identity, kept=False)


def _imap(folders: RecordedFolders) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        folder = ""
        while line := await reader.readline():
            tag, _, rest = line.strip().partition(b" ")
            name, _, arguments = rest.removeprefix(b"UID ").partition(b" ")
            match name.upper():
                case b"CAPABILITY":
                    writer.write(b"* CAPABILITY IMAP4rev1 MOVE\r\n")
                case b"LIST":
                    writer.write(b'* LIST (\\Drafts) "/" Drafts\r\n* LIST (\\Sent) "/" Sent\r\n')
                case b"SELECT" | b"EXAMINE":
                    folder = arguments.strip(b'"').decode()
                    writer.write(b"* OK [UIDVALIDITY 1] x\r\n* 1 EXISTS\r\n")
                case b"SEARCH":
                    found = [number for number, it in folders.numbered(folder).items() if it.encode() in arguments]
                    writer.write(b"* SEARCH " + " ".join(map(str, found)).encode() + b"\r\n")
                case b"APPEND":
                    size = _LITERAL.search(line)
                    assert size is not None
                    writer.write(b"+ go on\r\n")
                    await writer.drain()
                    mail = await reader.readexactly(int(size[1]))
                    await reader.readline()
                    identity = _IDENTITY.search(mail)
                    assert identity is not None
                    folders.keep(arguments.split()[0].strip(b'"').decode(), identity[1].decode())
                case b"STORE" if rb"\Deleted" in arguments:
                    for number in map(int, arguments.split()[0].split(b",")):
                        folders.remove(folder, folders.numbered(folder)[number])
                case b"MOVE":
                    numbers, target = arguments.split()
                    for number in map(int, numbers.split(b",")):
                        identity_there = folders.numbered(folder)[number]
                        folders.keep(target.strip(b'"').decode(), identity_there)
                        folders.remove(folder, identity_there)
            writer.write(tag + b" OK done\r\n")
            await writer.drain()

    return talk


def _smtp(witness: EffectLog) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        while line := await reader.readline():
            command = line[:4].upper()
            if command == b"EHLO":
                writer.write(b"250-test.example\r\n250 AUTH PLAIN\r\n")
            elif command == b"AUTH":
                writer.write(b"235 in\r\n")
            elif command == b"DATA":
                writer.write(b"354 go on\r\n")
                await writer.drain()
                mail = await reader.readuntil(b"\r\n.\r\n")
                identity = _IDENTITY.search(mail)
                assert identity is not None
                witness.record("mailed", id=identity[1].decode())
                writer.write(b"250 taken\r\n")
            else:
                writer.write(b"250 ok\r\n")
            await writer.drain()

    return talk


@asynccontextmanager
async def mail_servers(witness: EffectLog) -> AsyncIterator[dict[str, str]]:
    """Settings of an account on them."""
    imap = await asyncio.start_server(_until_closed(_imap(RecordedFolders(witness))), "127.0.0.1", 0, limit=2**20)
    smtp = await asyncio.start_server(_until_closed(_smtp(witness)), "127.0.0.1", 0, limit=2**20)
    try:
        yield account_settings(imap.sockets[0].getsockname()[1], smtp.sockets[0].getsockname()[1])
    finally:
        imap.close()
        smtp.close()


def account_settings(imap_port: int, smtp_port: int) -> dict[str, str]:
    values = {
        "ADDRESS": "ada@example.org",
        "PASSWORD": "password-of-tests",
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": str(imap_port),
        "SMTP_HOST": "127.0.0.1",
        "SMTP_PORT": str(smtp_port),
    }
    return {f"ASSISTANT_MAIL_ACCOUNT__{name}": value for name, value in values.items()}


def _until_closed(talk: Talk) -> Talk:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()

    return handle
