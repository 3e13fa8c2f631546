"""`/session` and `/sessions` through the whole app: threads, what is listed, earlier conversations taken up again."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from tests.scenario.test_session_resets import OSLO, files_with, note, run, say, say_in, shown, whole
from tests.support.running_app import run_app


async def test_what_is_forgotten_is_gone_from_notes_archives_and_what_can_be_resumed(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        await say(it, "My locker has the number Xylophone77.", OSLO)
        await run(it, "/reset")
        assert "Xylophone77" in note(it)
        it.app.maintenance.run()
        asked = await run(it, "/forget Xylophone77")
        code = asked.rsplit("/forget ", 1)[1][:6]
        await run(it, f"/forget {code}")
        assert "Xylophone77" not in note(it)
        await run(it, "/sessions resume main 1")
        assert not any("Xylophone77" in text for text in shown(it)) and OSLO in shown(it)
        assert files_with(tmp_path, b"Xylophone77") == []
        assert "Xylophone77" not in " ".join(r.content for r in it.app.stores.archive.read_records("main", 1))
        assert whole(it)


async def test_a_thread_is_put_away_and_its_next_message_begins_the_next(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        assert "which is new" in await run(it, "/session Trip to Rome")
        await say_in(it, "thread:trip-to-rome", "We fly in May.")
        told = await run(it, "/sessions end trip-to-rome")
        assert "trip-to-rome ended" in told and "`/sessions resume trip-to-rome 1`" in told
        await say_in(it, "thread:trip-to-rome", "And June?")
        assert shown(it, "thread:trip-to-rome")[1:] == ["And June?", "Nice."]
        with pytest.raises(UsageError, match="main cannot be ended"):
            await say(it, OSLO)
            await run(it, "/sessions end main")
        listed = await run(it, "/sessions")
        assert "- `trip-to-rome 1` — 2 messages" in listed and ", ended" in listed


async def test_an_earlier_conversation_is_taken_up_and_left_again(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        await say(it, OSLO)
        with pytest.raises(UsageError, match="no earlier conversation"):
            await run(it, "/sessions resume main")
        await run(it, "/reset")
        await say(it, "Something else.")
        told = await run(it, "/sessions resume main 1")
        assert "continues number 1" in told
        assert shown(it)[:2] == [OSLO, "Nice."]
        assert shown(it)[2].startswith("Conversation number 1 continues here")
        await say(it, "Where do I live?")
        assert any(OSLO in message.content for message in it.model.requests[-1].messages)
        await run(it, "/sessions resume main 2")
        assert "Something else." in shown(it)
        await run(it, "/reset")
        assert len(shown(it)) == 1
        with pytest.raises(UsageError, match="only"):
            await run(it, "/sessions resume main 9")
        assert whole(it)


async def test_a_conversation_that_went_on_and_said_nothing_new_can_go_on_again(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        await say(it, OSLO)
        await run(it, "/reset")
        told = await run(it, "/sessions resume main 1")
        assert "goes back" not in told
        told = await run(it, "/reset")
        assert "`/sessions resume main 3` resumes that conversation" in told
        await run(it, "/sessions resume main 3")
        assert shown(it)[:2] == [OSLO, "Nice."]
        assert whole(it)


async def test_one_conversation_is_shown_with_its_note_and_where_it_is(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        await say(it, OSLO)
        await run(it, "/reset")
        first = await run(it, "/sessions show main 1")
        assert "main 1: 2 messages" in first and "Archived at" in first and ", reset." in first
        second = await run(it, "/sessions show main")
        assert "It began with this note:\nThe conversation before this one" in second
        with pytest.raises(UsageError, match="no conversation number 7"):
            await run(it, "/sessions show main 7")


async def test_where_one_is_and_what_other_threads_there_are(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        await say(it, OSLO)
        await say_in(it, "thread:trip", "We fly in May.")
        assert "You are in main." in (told := await run(it, "/session")) and "`trip`" in told
        assert "You are in trip now, the model sees 2 messages" in await run(it, "/session trip")
        with pytest.raises(UsageError, match="not a conversation of yours"):
            await run(it, "/session peer:x:ann")
        with pytest.raises(UsageError, match="cannot be named"):
            await run(it, "/session ../etc")
