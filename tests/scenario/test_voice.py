"""Voice messages become text before their turn: the recording is kept, it is paid for once and within the budget, and
nobody but the owner is listened to."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from assistant.core.messages import Media, ToolCall
from assistant.core.records import IncomingMessage
from assistant.runtime.voice import HEARD
from tests.strict.speech import StrictSpeech
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import owner_message

SOUND = b"OggS" + bytes(6_000)
NOTE = Media("file", "audio/ogg", "voice message 5.ogg", len(SOUND), base64.b64encode(SOUND).decode(), voice=True)
RENT = "The rent is 900 euros."


def voice_message(text: str = "", *, external_id: str = "v1", media: Media = NOTE) -> IncomingMessage:
    return replace(owner_message(text, external_id=external_id), media=(media,))


@asynccontextmanager
async def listening_app(home: Path, server: StrictSpeech, *script: object, **environ: Any) -> AsyncIterator[LiveApp]:
    voice = {"ASSISTANT_VOICE__URL": server.url, "ASSISTANT_VOICE__KEY": server.key}
    async with run_app(home, *script, **(voice | environ)) as running:
        yield running


async def send(running: LiveApp, incoming: IncomingMessage) -> int:
    receipt = await running.app.runtime.accept(incoming)
    await running.wait_idle()
    return receipt.inbox_id


def what_was_said(running: LiveApp) -> str:
    return next(content for role, content in running.view_contents() if role == "user")


async def test_a_voice_message_is_answered_as_what_was_heard_in_it(tmp_path: Path) -> None:
    async with StrictSpeech(RENT) as server, listening_app(tmp_path, server, "Noted.") as running:
        await send(running, voice_message("[voice message, 5 s]"))
        assert what_was_said(running) == f"[voice message, 5 s]\n\n{RENT}\n{HEARD}"
        (request,) = server.requests
        assert (request.name, request.data, request.model) == ("voice.ogg", SOUND, "whisper-1")
        assert server.complaints == []
        (kept,) = (tmp_path / "workspace" / "received").iterdir()
        assert kept.read_bytes() == SOUND
        assert running.bridge.bodies == ["Noted."]


async def test_it_is_paid_for_once_and_counted(tmp_path: Path) -> None:
    async with StrictSpeech(RENT, seconds=30.0) as server:
        async with listening_app(tmp_path, server, "Noted.") as running:
            first = await send(running, voice_message())
            again = await running.app.runtime.accept(voice_message())
            assert again.duplicate and not again.conflicts and again.inbox_id == first
            usage = await running.app.commands.run("/usage --json", "main")
            rows = running.app.stores.conversation.appender._db.rows(
                "SELECT purpose, usd, state FROM usage WHERE purpose = 'transcription'"
            )
            assert [(row["state"], round(row["usd"], 6)) for row in rows] == [("settled", 0.003)], usage
        async with listening_app(tmp_path, server):
            pass
        assert len(server.requests) == 1


async def test_over_the_budget_nothing_is_sent_and_the_person_is_told(tmp_path: Path) -> None:
    async with (
        StrictSpeech(RENT) as server,
        listening_app(tmp_path, server, "It is a file.", ASSISTANT_BUDGET__DAILY_USD="0.00001") as running,
    ):
        await send(running, voice_message())
        assert server.requests == []
        assert "[The voice message could not be turned into text:" in what_was_said(running)
        (told,) = [body for body in running.bridge.bodies if "budget" in body]
        assert told.startswith(
            "I could not turn your voice message into text. The daily budget has too little left for"
        )
        # Another recording alone would be refused as well.
        assert told.endswith(
            " may cost $0.0008. The recording is kept; type it, or raise the budget with "
            "`assistant config set budget.daily_usd NUMBER`, or wait for the next day, and send another."
        )
        assert "It is a file." in running.bridge.bodies


async def test_a_server_that_refuses_gives_a_message_with_a_file(tmp_path: Path) -> None:
    async with StrictSpeech(503) as server, listening_app(tmp_path, server, "It is a file.") as running:
        await send(running, voice_message())
        (told,) = [body for body in running.bridge.bodies if body.startswith("I could not turn")]
        assert "refused it (503: The server is overloaded.)" in told and server.key not in told
        assert "It is a file." in running.bridge.bodies
        assert [kept.read_bytes() for kept in (tmp_path / "workspace" / "received").iterdir()] == [SOUND]


async def test_killed_while_it_is_listened_to_it_is_answered_after_the_restart(tmp_path: Path) -> None:
    async with StrictSpeech(RENT, RENT) as server:
        async with listening_app(tmp_path, server) as running:
            server.gate.clear()
            await running.app.runtime.accept(voice_message())
            await running.app.runtime.tick(running.clock())
            await server.arrived.wait()
        server.gate.set()
        async with listening_app(tmp_path, server, "Noted.") as running:
            await running.wait_idle()
            assert running.bridge.bodies == ["Noted."]
            assert what_was_said(running) == f"{RENT}\n{HEARD}"


async def test_what_others_recorded_is_sent_nowhere(tmp_path: Path) -> None:
    """A guest's, a file with sound, and one that was forwarded: the last two are no voice message of the sender."""
    async with StrictSpeech() as server, listening_app(tmp_path, server, "a", "b") as running:
        guest = IncomingMessage("kept", "g1", "peer:kept:7", "peer:kept:7", "7", "guest", "hi", (NOTE,), target="7")
        await send(running, guest)
        await send(running, voice_message(media=replace(NOTE, voice=False)))
        assert server.requests == []
        assert HEARD not in what_was_said(running)


async def test_without_an_address_it_is_a_file(tmp_path: Path) -> None:
    async with StrictSpeech() as server, run_app(tmp_path, "a file") as running:
        await send(running, voice_message())
        assert server.requests == [] and running.bridge.bodies == ["a file"]


async def test_an_order_that_is_spoken_is_the_persons_own(tmp_path: Path) -> None:
    remind = ToolCall("r1", "set_reminder", {"text": "call mum", "when": "tomorrow at 9"})
    async with (
        StrictSpeech("Remind me to call mum tomorrow at 9.") as server,
        listening_app(tmp_path, server, remind, "Done.") as running,
    ):
        await send(running, voice_message())
        assert "call mum" in await running.app.commands.run("/remind list", "main")
