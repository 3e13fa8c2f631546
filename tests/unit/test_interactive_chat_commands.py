"""Slash commands in an interactive chat: one that takes long leaves the line free, and /stop says so once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.test_interactive_chat import CTRL_C, CTRL_D, ENTER, ChatLink, chatting


class SlowLink(ChatLink):
    """Its commands end when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = asyncio.Event()

    async def run_command(self, text: str, session: str) -> str:
        answer = await super().run_command(text, session)
        await self.may_end.wait()
        return answer


async def test_a_command_that_takes_long_leaves_the_line_free_and_is_shown_to_be_running(tmp_path: Path) -> None:
    link = SlowLink()
    async with chatting(tmp_path, link, prompt_on_paper=True) as chat:
        chat.keys.send_text("/sleep" + ENTER)
        await chat.printed("/sleep is running")
        chat.keys.send_text("hello meanwhile" + ENTER)
        await link.heard.wait()
        link.may_end.set()
        await chat.printed("did /sleep")
    assert [text for _, text in link.said] == ["hello meanwhile"]


async def test_who_leaves_while_a_command_runs_is_told_and_its_answer_is_shown(tmp_path: Path) -> None:
    link = SlowLink()
    async with chatting(tmp_path, link) as chat:
        chat.keys.send_text("/sleep" + ENTER + CTRL_D)
        await chat.printed("finished first")
        link.may_end.set()
        await chat.printed("did /sleep")
    assert link.said == []


async def test_stop_is_told_once_by_the_turn_that_ends(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.turn("t1", "started")
        chat.link.happen("delta", turn="t1", text="half an answer")
        chat.link.deliver("notice:t0", "ready", kind="notice")
        await chat.confirmed("notice:t0")
        chat.keys.send_text("/stop" + ENTER)
        await chat.link.stops.wait()
    assert chat.link.commands == []


async def test_ctrl_c_where_nothing_runs_says_how_to_leave(tmp_path: Path) -> None:
    async with chatting(tmp_path, prompt_on_paper=True) as chat:
        chat.keys.send_text("half a line" + CTRL_C)
        chat.keys.send_text(CTRL_C)
        await chat.printed("To leave:")
        assert not chat.link.stops.is_set()
