"""One question over a scripted link: shown once, then confirmed; stopped when nobody waits any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from assistant.cli.chat.answers import ask_and_wait
from assistant.cli.chat.command import answer_as_json
from assistant.cli.client import open_socket_link
from assistant.cli.link import LinkEvent, LinkLost
from assistant.core.errors import StoreError
from assistant.core.records import InboxReceipt

DELIVERY: LinkEvent = ("deliver", {"key": "reply:t1", "kind": "reply", "body": "yes", "message_id": 9, "inbox_id": 4})
ENDED: LinkEvent = ("turn", {"turn": "t1", "state": "answered", "message_ids": [7]})


class AskLink:
    """`script` is what happens, in order; the message is answered from the event `answered_at` on."""

    def __init__(self, *script: LinkEvent, answered_at: int = 0, ended: str = "answered") -> None:
        self.script = [("hello", {}), *script]
        self.answered_at = answered_at
        self.ended = ended
        self.seen = 0
        self.done: list[str] = []
        self.waiting = asyncio.Event()
        self.for_ever = False
        self.fallback = ""

    async def send_message(self, text: str, external_id: str, session: str, media: object = ()) -> InboxReceipt:
        self.done.append(f"said {text} as {external_id}")
        return InboxReceipt(4, 7)

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        assert inbox_id == 4
        for event in self.script:
            self.seen += 1
            yield event
        self.waiting.set()
        if self.for_ever:
            await asyncio.Event().wait()

    async def acknowledge(self, key: str) -> None:
        self.done.append(f"confirmed {key}")

    async def run_command(self, text: str, session: str) -> str:
        return ""

    async def stop(self, session: str) -> bool:
        self.done.append("stopped")
        return True

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        state = self.ended if self.seen > self.answered_at else "running"
        failed = state == "failed"
        return {
            "state": state,
            "reply": "" if failed else "yes",
            "error": "no model" if failed else "",
            "exit_code": 3 if failed else 0,
            "session": "main",
            "turn": "t1",
            "model": "m",
            "fallback": self.fallback != "",
            "fallback_reason": self.fallback,
            "notices": [],
            "usage": None,
            "pressure": 0.1,
        }

    async def status(self) -> Mapping[str, Any]:
        return {}


async def asked(link: AskLink) -> Mapping[str, Any]:
    return await ask_and_wait(
        link, "well?", "main", "x1", lambda result: link.done.append(f"shown {result['reply'] or result['error']}")
    )


async def test_the_answer_is_shown_and_then_confirmed() -> None:
    link = AskLink(ENDED, DELIVERY, answered_at=1)
    answer = await asked(link)
    assert link.done == ["said well? as x1", "shown yes", "confirmed reply:t1"]
    assert answer_as_json(answer) == {
        "reply": "yes",
        "session": "main",
        "turn": "t1",
        "model": "m",
        "fallback": False,
        "fallback_reason": "",
        "notices": (),
        "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "cost_usd": None},
        "pressure": 0.1,
    }


async def test_what_comes_beside_the_answer_names_commands_as_a_shell_has_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = "Reminder: call Ann. `/remind done 2` ends it."
    beside = {**DELIVERY[1], "key": "job:2", "kind": "reminder", "inbox_id": None, "body": body}
    answer = await asked(AskLink(("deliver", beside), ENDED, DELIVERY, answered_at=2))
    assert "`assistant remind done 2` ends it." in capsys.readouterr().err
    # A program gets it as it was sent.
    assert answer["notices"] == (body,)


async def test_an_answer_that_was_ready_before_we_listened_is_found() -> None:
    link = AskLink(DELIVERY)
    await asked(link)
    assert link.done[1:] == ["shown yes", "confirmed reply:t1"]


async def test_an_answer_that_somebody_else_was_given_is_shown_and_not_confirmed() -> None:
    link = AskLink(ENDED)
    await asked(link)
    assert link.done[1:] == ["shown yes"]


async def test_the_end_of_another_turn_is_not_ours() -> None:
    other: LinkEvent = ("turn", {"turn": "t0", "state": "answered", "message_ids": [1]})
    link = AskLink(other, ENDED, DELIVERY, answered_at=2)
    await asked(link)
    assert link.done[1:] == ["shown yes", "confirmed reply:t1"]


async def test_notices_and_reminders_stand_on_standard_error_and_are_confirmed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reminder: LinkEvent = ("deliver", {"key": "reminder:1", "kind": "reply", "body": "Reminder: tea", "inbox_id": None})
    notice: LinkEvent = ("deliver", {"key": "model_back:x#1", "kind": "notice", "body": "It is back.", "inbox_id": 4})
    link = AskLink(reminder, notice, ENDED, DELIVERY, answered_at=3)
    answer = await asked(link)
    assert link.done[1:] == ["confirmed reminder:1", "confirmed model_back:x#1", "shown yes", "confirmed reply:t1"]
    assert capsys.readouterr().err == "Reminder: tea\nIt is back.\n"
    assert answer["notices"] == ("Reminder: tea", "It is back.")


async def test_a_failure_keeps_its_exit_code_and_words() -> None:
    answer = await asked(AskLink(ENDED, DELIVERY, answered_at=1, ended="failed"))
    assert (answer["exit_code"], answer["error"], answer_as_json(answer)["error"]) == (3, "no model", "no model")


async def test_a_stream_that_ends_before_the_answer_is_a_lost_link() -> None:
    with pytest.raises(LinkLost):
        await asked(AskLink(answered_at=9))


@pytest.mark.parametrize(("answered_at", "stops"), [(9, True), (0, False)])
async def test_giving_up_stops_the_turn_of_this_message_and_no_other(answered_at: int, stops: bool) -> None:
    link = AskLink(answered_at=answered_at)
    if not stops:
        link.script = []
    link.for_ever = True
    asking = asyncio.create_task(asked(link))
    await link.waiting.wait()
    link.seen = 1
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert ("stopped" in link.done) is stops


async def test_a_full_disk_ends_the_question_with_what_to_do() -> None:
    link = AskLink(("notice", {"text": "The disk is full. Make room.", "turn": "", "disk": True}), answered_at=9)
    with pytest.raises(StoreError, match="Make room"):
        await ask_and_wait(link, "hello", "main", "e1", lambda answer: None)


async def test_a_link_that_was_closed_meanwhile_is_lost(tmp_path: Path) -> None:
    """A line may be sent as the chat notices that the daemon has gone: it is tried again, with whoever serves next."""
    async with open_socket_link(tmp_path / "control.sock") as link:
        pass
    with pytest.raises(LinkLost):
        await link.status()
    with pytest.raises(LinkLost):
        await anext(link.events("main"))
