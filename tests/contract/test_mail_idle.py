"""Waiting for news over IMAP misses none, however the server's lines come."""

from __future__ import annotations

import asyncio

import pytest

from assistant.mail.imap import ImapConnection, run_imap
from tests.contract.test_mail_hostile import serving


@pytest.mark.parametrize(
    "said",
    [
        [b"+ idling\r\n* 2 EXISTS\r\n"],
        [b"* 2 EXISTS\r\n+ idling\r\n"],
        [b"+ idling\r\n", b"* 2 EXISTS\r\n"],
        [b"+ idl", b"ing\r\n* 2 EXI", b"STS\r\n"],
    ],
    ids=["with the answer", "before it", "after it", "in pieces"],
)
async def test_news_end_the_wait_wherever_they_stand(said: list[bytes]) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK hello\r\n")
        idling = b""
        while line := await reader.readline():
            tag, *words = line.split()
            if tag == b"DONE":
                writer.write(idling + b" OK done\r\n")
            elif words[0] == b"IDLE":
                idling = tag
                for part in said:
                    writer.write(part)
                    await writer.drain()
            elif words[0] == b"CAPABILITY":
                writer.write(b"* CAPABILITY IMAP4rev1 IDLE\r\n" + tag + b" OK done\r\n")
            elif words[0] == b"SELECT":
                writer.write(b"* OK [UIDVALIDITY 1] x\r\n* 1 EXISTS\r\n" + tag + b" OK done\r\n")
            else:
                writer.write(tag + b" OK done\r\n")
            await writer.drain()

    def wait(connection: ImapConnection) -> str:
        connection.select("INBOX", writes=True)
        connection.idle(500)
        return "woken"

    async with serving(talk) as server, asyncio.timeout(20):
        assert await run_imap(server, wait, 10) == "woken"
