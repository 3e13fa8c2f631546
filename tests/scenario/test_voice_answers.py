"""Answers to voice messages are spoken where that is set: after their text, once, and failures are told."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from assistant.bridges.matrix.events import file_content
from assistant.core.messages import Media
from assistant.models.speech import readable_aloud
from tests.scenario.test_voice import listening_app, send, voice_message
from tests.strict.speech import StrictSpeech
from tests.support.running_app import LiveApp
from tests.support.scripted import owner_message

SPEAK = {"ASSISTANT_VOICE__SPEAK": "voice"}


def recordings(running: LiveApp) -> list[tuple[str, Media]]:
    rows = running.app.stores.outbox._items("key LIKE 'spoken:%' ORDER BY id", ())
    return [(row.outgoing.key, row.outgoing.media[0]) for row in rows]


def settled(running: LiveApp) -> list[tuple[str, float]]:
    rows = running.app.stores.conversation.appender._db.rows("SELECT usd, state FROM usage WHERE purpose = 'speech'")
    return [(row["state"], round(row["usd"], 6)) for row in rows]


async def test_the_answer_to_a_voice_message_is_spoken_once_after_its_text(tmp_path: Path) -> None:
    async with StrictSpeech("What is the rent?") as server:
        async with listening_app(tmp_path, server, "The **rent** is 900 euros.", "Yes.", **SPEAK) as running:
            await send(running, voice_message())
            await send(running, owner_message("Sure?", external_id="t1"))
            ((key, media),) = recordings(running)
            answer = running.app.stores.outbox._items("kind = 'reply' ORDER BY id LIMIT 1", ())[0]
            assert key == f"spoken:{answer.outgoing.message_id}" and media.voice
            assert running.bridge.bodies[:2] == ["The **rent** is 900 euros.", ""]
            assert server.spoken == ["The rent is 900 euros."] and server.complaints == []
            assert settled(running) == [("settled", round(22 / 1000 * 0.015, 6))]
        async with listening_app(tmp_path, server, **SPEAK) as running:
            await running.wait_idle()
            assert len(recordings(running)) == len(server.spoken) == 1


async def test_a_spoken_answer_that_a_restart_cuts_is_made_again_and_nothing_is_answered_twice(tmp_path: Path) -> None:
    always = {"ASSISTANT_VOICE__SPEAK": "always"}
    async with StrictSpeech("Hi.") as server:
        server.gate.clear()
        async with listening_app(tmp_path, server, "Hello.", **always) as running:
            answering = asyncio.create_task(send(running, owner_message("Hi.", external_id="t1")))
            await server.arrived.wait()
            answering.cancel()
        assert server.spoken == ["Hello."]
        server.gate.set()
        for _ in range(2):
            async with listening_app(tmp_path, server, "Again?", **always) as running:
                await running.wait_idle()
                assert len(recordings(running)) == 1 and server.spoken == ["Hello.", "Hello."]
                assert [content for role, content in running.view_contents() if role == "assistant"] == ["Hello."]


async def test_always_speaks_typed_messages_too_and_never_nothing(tmp_path: Path) -> None:
    async with StrictSpeech("Hi.") as server:
        async with listening_app(tmp_path / "a", server, "Hello.", ASSISTANT_VOICE__SPEAK="always") as running:
            await send(running, owner_message("Hi.", external_id="t1"))
            assert server.spoken == ["Hello."]
        async with listening_app(tmp_path / "b", server, "Hello.") as running:
            await send(running, voice_message())
            assert len(server.spoken) == 1 and recordings(running) == []


@pytest.mark.parametrize("answer", [503, b"<html>"])
async def test_what_could_not_be_spoken_is_told_and_its_text_was_sent(tmp_path: Path, answer: bytes | int) -> None:
    async with StrictSpeech("Hi.") as server, listening_app(tmp_path, server, "Hello.", **SPEAK) as running:
        server.speech = [answer]
        await send(running, voice_message())
        assert running.bridge.bodies[0] == "Hello." and recordings(running) == []
        (told,) = [body for body in running.bridge.bodies if body.startswith("I could not speak my answer")]
        assert server.key not in told


async def test_an_answer_over_the_budget_is_not_spoken_and_that_is_told_once_without_a_retry(tmp_path: Path) -> None:
    always = {"ASSISTANT_VOICE__SPEAK": "always", "ASSISTANT_BUDGET__DAILY_USD": "0.00001"}
    async with StrictSpeech() as server, listening_app(tmp_path, server, "Hello.", **always) as running:
        await send(running, owner_message("Hi.", external_id="t1"))
        (told,) = [body for body in running.bridge.bodies if "budget" in body]
        assert told.startswith(
            "I could not speak my answer; it is above in writing. The daily budget has too little left"
        )
        assert told.endswith(
            "Raise the budget with `assistant config set budget.daily_usd NUMBER`, or wait for the next day."
        )
        assert "/retry" not in told and server.spoken == []


async def test_what_was_spoken_is_forgotten_with_the_answer(tmp_path: Path) -> None:
    async with (
        StrictSpeech("What is the rent?") as server,
        listening_app(tmp_path, server, "The rent is 900 euros.", **SPEAK) as running,
    ):
        await send(running, voice_message())
        assert recordings(running)
        code = re.search(r"/forget ([0-9A-F]{6})", await running.app.commands.run("/forget rent", "main"))
        assert code is not None
        await running.app.commands.run(f"/forget {code[1]}", "main")
        rows = running.app.stores.outbox._items("key LIKE 'spoken:%'", ())
        assert [row.outgoing.media for row in rows] == [()]


def test_marks_code_and_addresses_are_not_read_aloud() -> None:
    text = "# Rent\n\n- **900** euros, see [the list](https://example.org/x)\n\n```\nx = 1\n```\nhttps://example.org"
    assert readable_aloud(text).split() == ["Rent", "900", "euros,", "see", "the", "list"]


def test_matrix_shows_a_recording_as_a_voice_message() -> None:
    content = file_content("audio", "audio/ogg", "answer.ogg", 5, {"url": "mxc://example.org/1"})
    assert content["msgtype"] == "m.audio" and content["org.matrix.msc3245.voice"] == {}
