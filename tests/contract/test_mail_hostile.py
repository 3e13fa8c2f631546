"""Mail servers that close, stall, lie and never end: each call ends with an error in a line, and nothing is held up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from assistant.core.errors import MailError
from assistant.mail.account import MailAccount, MailServer
from assistant.mail.compose import OutgoingMail
from assistant.mail.imap import MailQuery, run_imap
from assistant.mail.service import MailService
from assistant.mail.smtp import submit

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_SECONDS = 0.3  # that a server may take for an answer here
_HUGE = 10**12


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[MailServer]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield MailServer("127.0.0.1", server.sockets[0].getsockname()[1], "ada", "secret-of-ada")
    finally:
        server.close()


def imap(**answers: bytes) -> Talk:
    """A server that answers each command, by its name, with what is given; {tag} is the command's. `endless` is said
    for ever after `SEARCH`; b"" says nothing any more."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answers.get("greeting", b"* OK hello\r\n"))
        while line := await reader.readline():
            tag, *words = line.split()
            name = (words[1] if words[0] == b"UID" else words[0]).decode().lower()
            usual = {"capability": b"* CAPABILITY IMAP4rev1\r\n", "select": b"* OK [UIDVALIDITY 7] x\r\n* 1 EXISTS\r\n"}
            usual["examine"] = usual["select"]
            answer = answers.get(name, usual.get(name, b"") + b"{tag} OK done\r\n")
            while answer == b"endless":
                writer.write(b"* SEARCH 1\r\n" * 1000)
                await writer.drain()
            if not answer:
                await reader.read()
            writer.write(answer.replace(b"{tag}", tag))
            await writer.drain()

    return talk


async def look(server: MailServer) -> None:
    def work(connection: object) -> None:
        connection.select("INBOX")  # type: ignore[attr-defined]
        uids = connection.search(MailQuery())  # type: ignore[attr-defined]
        connection.heads(uids)  # type: ignore[attr-defined]
        connection.raw(1)  # type: ignore[attr-defined]

    await run_imap(server, work, _SECONDS)


@pytest.mark.parametrize(
    "answers",
    [
        {"greeting": b"* BYE not today\r\n"},
        {"greeting": b"SSH-2.0-OpenSSH\r\n"},
        {"greeting": b"\xff\xfe" * 1000 + b"\r\n"},
        {"greeting": b""},
        {"login": b""},
        {"login": b"{tag} NO go away\r\n"},
        {"examine": b"{tag} OK without a validity\r\n"},
        {"examine": b"* OK [UIDVALIDITY nonsense] x\r\n{tag} OK\r\n"},
        {"search": b"* SEARCH one two\r\n{tag} OK\r\n"},
        {"search": b"* SEARCH 1\r\n{tag} BAD broken\r\n"},
        {"search": b"endless"},
        {"search": b"* SEARCH " + b"1 " * 30_000_000 + b"\r\n{tag} OK\r\n"},
        {"fetch": b"* 1 FETCH (UID 1 BODY[] {%d}\r\nabc" % _HUGE},
        {"fetch": b"* 1 FETCH (UID 1 BODY[] {30}\r\nabc"},
        {"search": b"* SEARCH 1\r\n{tag} OK\r\n", "fetch": b"{tag} NO not that one\r\n"},
    ],
    ids=lambda answers: f"{next(iter(answers))}-{str(next(iter(answers.values()))[:30])[2:30]}",
)  # fmt: skip
async def test_an_imap_server_that_lies_or_stalls_ends_the_call_with_an_error(answers: dict[str, bytes]) -> None:
    async with serving(imap(**answers)) as server:
        with pytest.raises(MailError) as caught:
            await look(server)
        assert "secret-of-ada" not in str(caught.value) and "\n" not in str(caught.value)


async def test_a_server_that_stalls_holds_nothing_else_up() -> None:
    """The event loop goes on while a thread waits."""
    async with serving(imap(login=b"")) as server:
        waiting = asyncio.create_task(look(server))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        with pytest.raises(MailError, match="in time"):
            await waiting


async def test_a_call_that_is_given_up_ends_its_connection() -> None:
    closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK hello\r\n")
        await reader.readline()
        begun.set()
        await reader.read()
        closed.set()

    begun = asyncio.Event()
    async with serving(talk) as server:
        waiting = asyncio.create_task(run_imap(server, lambda connection: None, 60))
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await closed.wait()


# ------------------------------------------------------------------------------------------------------------- sending


def smtp(*lines: bytes) -> Talk:
    """Says a line for every line that it reads; b"" says nothing any more, and after the last it closes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, line in enumerate(lines):
            if number and not await reader.readline():
                return
            if not line:
                await reader.read()
            writer.write(line + b"\r\n")
            await writer.drain()

    return talk


_UNTIL_TEXT = (b"220 hi", b"250-x\r\n250 AUTH PLAIN", b"235 in", b"250 sender", b"250 recipient")


@pytest.mark.parametrize(
    ("lines", "ambiguous"),
    [
        ((b"554 no",), False),
        ((b"",), False),
        ((b"HTTP/1.1 400 Bad Request",), False),
        ((b"220 " + b"x" * 100_000,), False),
        ((*_UNTIL_TEXT[:3],), False),
        ((*_UNTIL_TEXT[:4], b"550 nobody"), False),
        ((*_UNTIL_TEXT, b"354 go on"), True),
        ((*_UNTIL_TEXT, b"554 no text"), False),
    ],
    ids=["refuses", "stalls", "speaks http", "long line", "closes", "no recipient", "closes in the text", "no text"],
)
async def test_what_a_server_that_fails_has_done_is_known_or_said_to_be_unknown(
    lines: tuple[bytes, ...], ambiguous: bool
) -> None:
    async with serving(smtp(*lines)) as server:
        with pytest.raises(MailError) as caught:
            await submit(server, "ada@example.org", ["bob@example.org"], b"Subject: x\r\n\r\nx\r\n", _SECONDS)
        assert caught.value.ambiguous is ambiguous
        assert "secret-of-ada" not in str(caught.value)


async def test_nothing_is_sent_where_the_draft_cannot_be_kept_first() -> None:
    async with serving(smtp(b"220 hi")) as sending, serving(imap(append=b"{tag} NO over quota\r\n")) as keeping:
        service = MailService(MailAccount("ada@example.org", keeping, sending), seconds=_SECONDS)
        with pytest.raises(MailError, match=r"over quota\. Nothing was sent"):
            await service.send(OutgoingMail(("bob@example.org",), "Boat", "x"), "k1")


def test_beyond_this_machine_nothing_goes_without_tls() -> None:
    security = {
        (host, port): MailServer(host, port, "", "").security
        for host in ("mail.example.org", "127.0.0.1")
        for port in (143, 993, 587, 465)
    }
    assert security == {
        ("mail.example.org", 143): "starttls",
        ("mail.example.org", 993): "tls",
        ("mail.example.org", 587): "starttls",
        ("mail.example.org", 465): "tls",
        ("127.0.0.1", 143): "none",
        ("127.0.0.1", 993): "tls",
        ("127.0.0.1", 587): "none",
        ("127.0.0.1", 465): "tls",
    }  # fmt: skip
