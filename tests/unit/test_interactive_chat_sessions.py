"""Going from one session to another within an interactive chat, and what comes there from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assistant.cli.link import LinkLost
from assistant.commands.table import CommandResult
from tests.unit.test_interactive_chat import ENTER, ChatLink, chatting


async def test_another_session_is_talked_in_and_listened_to_after_a_switch(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.keys.send_text("/session Trip" + ENTER)
        await chat.printed("did /session Trip")
        chat.keys.send_text("we fly in May" + ENTER)
        await chat.link.heard.wait()
        chat.keys.send_text("/session no/name" + ENTER)
        await chat.printed("A conversation cannot be named")
        chat.keys.send_text("/session main" + ENTER)
        await chat.printed("did /session main")
        chat.link.heard.clear()
        chat.keys.send_text("and home again" + ENTER)
        await chat.link.heard.wait()
    assert chat.link.sessions == ["thread:trip", "main"]
    assert chat.link.listened == ["main", "thread:trip", "main"]


async def test_what_was_typed_before_a_switch_goes_where_it_was_typed(tmp_path: Path) -> None:
    link = ChatLink()
    async with chatting(tmp_path, link) as chat:
        await chat.printed("/help lists commands")
        link.away = True
        chat.keys.send_text("for main" + ENTER)
        await chat.printed("for main")
        chat.keys.send_text("/session trip" + ENTER)
        await chat.printed("did /session trip")
        link.away = False
        await link.heard.wait()
    assert (link.said[0][1], link.sessions[0]) == ("for main", "main")


async def test_what_is_said_at_another_terminal_is_announced_as_such(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.turn("t1", "started")
        chat.link.deliver("reply:t1", "an answer for them", inbox_id=77)
        await chat.confirmed("reply:t1")
    assert chat.text.index("In reply to a message from elsewhere:") < chat.text.index("an answer for them")


async def test_a_reminder_and_a_notice_answer_nobody_and_have_no_heading(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.turn("t1", "started")
        chat.link.deliver("reminder:1", "Reminder: take out the trash", inbox_id=None)
        chat.link.deliver("model_back:x#1", "The model answers again.", kind="notice", inbox_id=None)
        await chat.confirmed("model_back:x#1")
    assert "Reminder: take out the trash" in chat.text and "The model answers again." in chat.text
    assert "In reply to" not in chat.text and "While you were away" not in chat.text


async def test_the_line_that_is_typed_names_its_conversation_unless_it_is_the_main_one(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        for line in ("hello", "/session Trip", "we fly in May", "/session main", "home again"):
            chat.keys.send_text(line + ENTER)
            await chat.printed(f"› {line}")
            if line.startswith("/"):
                await chat.printed(f"did {line}")
    typed = [line.strip() for line in chat.text.splitlines() if "›" in line]
    assert typed == ["› hello", "› /session Trip", "trip › we fly in May", "trip › /session main", "› home again"]


async def test_what_is_asked_again_is_ones_own_question(tmp_path: Path) -> None:
    link = RetryLink()
    async with chatting(tmp_path, link) as chat:
        chat.keys.send_text("/retry" + ENTER)
        await chat.printed("Asking again: 'well?'")
        link.deliver("reply:t2", "the answer", inbox_id=12)
        await chat.confirmed("reply:t2")
    assert link.commands == ["retry"] and "In reply to a message from elsewhere" not in chat.text


class RetryLink(ChatLink):
    """Its last question was "well?"."""

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        if list(argv) != ["retry"]:
            raise LinkLost()  # the menu asks, too
        self.commands.append("retry")
        return CommandResult("Asking again: 'well?'", {"text": "well?", "inbox_id": 12, "message_id": 30})
