"""What begins with a slash and is no command: refused with a suggestion where it looks like one, in a terminal, a pipe
and on networks alike, and a message where it does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.sessions import peer_session_key
from tests.support.command_line import run_assistant, run_in_process
from tests.support.running_app import ANN, OWNER, ROOM, BridgePeople, run_app

ANNS = peer_session_key("kept", ANN)


@pytest.mark.parametrize("piped", [False, True])
def test_a_mistyped_command_is_not_said_to_the_assistant(tmp_path: Path, piped: bool) -> None:
    home = tmp_path / "home"
    asked = (
        run_assistant(home, "chat", said=b"/remnid me\n/etc/passwd is a file\n")
        if piped
        else run_assistant(home, "chat", "-m", "/remnid me")
    )
    assert (asked.returncode, "Did you mean `/remind`?" in asked.err) == (2, True)
    assert "Did you mean `/quit`?" in run_assistant(home, "chat", "-m", "/quti").err
    assert "nothing to leave" in run_assistant(home, "chat", "-m", "/quit").err
    stored = run_in_process(home, "log").out if piped else ""
    assert "remnid" not in stored and ("/etc/passwd is a file" in stored) is piped


async def test_a_slash_that_is_no_command_is_a_message(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/etc/passwd is a file", ANN)
        assert it.view_contents(ANNS)[0] == ("user", "/etc/passwd is a file")


async def test_a_mistyped_command_is_not_stored_and_is_answered_with_what_is_like_it(tmp_path: Path) -> None:
    """On a network as in a terminal; a guest is told only of what guests may type."""
    async with run_app(tmp_path, "hello") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        for text, sender, suggestion in (("/statsu", OWNER, "`/status`"), ("/remnid", ANN, "`/remind`")):
            await them.write(text, sender)
            assert f"Did you mean {suggestion}?" in them.sent_since_last()[-1][1]
        await them.write("/peopel", ANN)
        assert "Did you mean" not in them.sent_since_last()[-1][1]
        assert [it.view_contents(session) for session in ("main", ANNS)] == [[], []]


async def test_a_command_of_another_bot_in_a_room_gets_no_answer_of_ours(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello", ASSISTANT_ROOM__ANSWERS="everything") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/poll lunch?", ANN, room=ROOM, addressed=False)
        assert "There is no command" not in str(them.sent_since_last())


async def test_start_which_a_network_sends_at_first_lists_what_can_be_typed(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/start", ANN)
        assert "`/remind`" in them.sent_since_last()[-1][1]
