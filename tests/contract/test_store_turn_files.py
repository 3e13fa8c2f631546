"""Files that go out with the answer of a turn: once each, with the answer alone, and kept no longer than the turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assistant.core.messages import Media, Message
from assistant.core.ports import ToolContext
from assistant.core.records import Turn, TurnState
from assistant.store.script.outbox import TurnFiles
from tests.support.outboxes import recent_items
from tests.support.store_home import NOW, StoreHome, reply_item

PLAN, BOAT = Media("file", "text/plain", "plan.txt", 3, path="sent/plan.txt"), Media("image", "image/png", "boat.png")


def of(turn: Turn, key: str) -> ToolContext:
    return ToolContext(turn.session, turn.scope, turn.id, f"{turn.id}:{key}", NOW)


def test_a_file_of_a_tool_that_runs_again_goes_out_once_as_it_was_first(tmp_path: Path) -> None:
    home = StoreHome(tmp_path).open()
    turn = home.begin_turn("send it")
    files = TurnFiles(home.db)
    for media, key in ((PLAN, "a"), (BOAT, "a"), (BOAT, "b")):
        files.add(media, of(turn, key))
    home.restart().conversation.recover_after_crash(NOW)
    files = TurnFiles(home.db)
    assert files.list_files(turn.id) == (PLAN, BOAT)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "here"), [reply_item(turn, "here")], NOW)
    assert [item.outgoing.media for item in recent_items(home.outbox, "main")] == [(PLAN, BOAT)]
    assert files.list_files(turn.id) == () and home.verify().ok


@pytest.mark.parametrize("state", ["failed", "aborted"])
def test_a_turn_that_fails_sends_none(tmp_path: Path, state: TurnState) -> None:
    home = StoreHome(tmp_path).open()
    turn = home.begin_turn("send it")
    TurnFiles(home.db).add(PLAN, of(turn, "a"))
    notice = replace(reply_item(turn, "it failed"), kind="notice")
    home.conversation.finish_turn(turn, state, None, [notice], NOW)
    assert [item.outgoing.media for item in recent_items(home.outbox, "main")] == [()]
    assert TurnFiles(home.db).list_files(turn.id) == ()
