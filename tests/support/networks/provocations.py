"""For each kind of notice what makes a real app send it: people who write, a provider that fails, a clock that jumps, a
disk that is full. A kind that is not in `PROVOCATIONS` fails the conformance suite.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Literal

from assistant.core.bridge_api import InboundMessage
from assistant.core.errors import AssistantError, BudgetExceeded
from assistant.core.messages import ToolCall, Usage
from assistant.core.model_api import ModelCall, ModelLimits, ModelRequest
from assistant.core.notices import NoticeKind
from tests.strict.behaviour import Behaviour, ErrorStatus, Refusal, ScriptedAnswer
from tests.support.machine_clock import SteadyMachineClock
from tests.support.networks.conformance_app import AppParts, ConformanceApp, echo, last_user_text
from tests.support.networks.network import RED_DOT, ConversationPlace, PersonKind
from tests.support.networks.provocation_acts import (
    FAR,
    MCP_SERVERS,
    START,
    clock_moves,
    command,
    damage_search,
    day_comes,
    fall_behind,
    fill_disk,
    mcp_server_changes,
    say,
    says,
    travel,
)
from tests.support.scripted import ScriptedModel

Needs = Literal["", "strangers", "rooms", "refuses", "pictures", "live"]


@dataclass(frozen=True)
class Provocation:
    """- `script`: what the provider does that the settings name; with one, its models answer.
    - `parts`: what else the app is made of; `environ`: its settings.
    - `reader`, `where`: who reads the notice.
    - `needs`: what the network has to be able to.
    - `words`: a pattern of what it says, for a kind whose template has no words of its own."""

    act: Callable[[ConformanceApp], Awaitable[None]]
    script: tuple[Behaviour, ...] = ()
    parts: Callable[[], AppParts] = AppParts
    environ: Mapping[str, str] = field(default_factory=dict)
    reader: PersonKind = "owner"
    where: ConversationPlace = "private"
    needs: Needs = ""
    words: str = ""


def words_of(kind: NoticeKind, words: str = "") -> re.Pattern[str]:
    """What a person reads of the kind, whatever is filled in."""
    template = re.escape(kind.form.template.replace("`", ""))
    filled = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*?)", template)
    # What is filled in twice is the same twice.
    for name in set(re.findall(r"\(\?P<(\w+)>", filled)):
        first, *others = filled.split(f"(?P<{name}>.*?)")
        filled = f"{first}(?P<{name}>.*?)" + f"(?P={name})".join(others)
    return re.compile(words or filled + r"(?= |\Z)")


# -------------------------------------------------------------------------------------------------------------- people


async def _knock(it: ConformanceApp) -> None:
    await say(it, "apples")
    await it.network.say("stranger", "hello")
    await it.wait_until(lambda: bool(it.texts("stranger")))
    await it.wait_idle()


async def _approve(it: ConformanceApp) -> None:
    await _knock(it)
    await command(it, "/pair allow 1")


async def _link(it: ConformanceApp) -> None:
    await _knock(it)
    code = words_of(NoticeKind.PAIRING_CODE).findall(" ".join(it.texts("stranger")))[0][-1]
    await command(it, f"/pair {code} --owner")


async def _knock_as_room(it: ConformanceApp) -> None:
    await it.network.say("guest", "hello", where="room")
    await it.wait_until(lambda: bool(it.texts("guest", "room")))
    await it.wait_idle()
    await command(it, "/pair allow 1")


async def _knock_behind_another(it: ConformanceApp) -> None:
    await say(it, "apples", who="guest")
    (target,) = {item.outgoing.target for item in it.outbox("guest")}
    await it.app.inbound.receive(InboundMessage(it.network.name, "other1", "another-one", "hello", target=target))
    await it.network.say("stranger", "hello")
    await it.wait_until(lambda: bool(it.texts("stranger")))


PAIRED = {"ASSISTANT_PEOPLE__UNKNOWN": "pair"}

# -------------------------------------------------------------------------------------------------------------- models

DOWN = ErrorStatus(529, "overloaded_error", "too much")
TOO_LONG = ErrorStatus(
    400, "invalid_request_error", "This model's maximum context length is 10 tokens.", code="context_length_exceeded"
)
ANSWER = ScriptedAnswer("Here.")
NOTHING_LEARNT = ScriptedAnswer("<memories>\n</memories>")
WALK = "I went along the shore and back over the hill today. " * 40
NO_SUMMARY = "I would rather not."
LETTER = "漢字は長い手紙です" * 440
SMALL = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "15000"}


async def _sleep_in_an_outage(it: ConformanceApp) -> None:
    await say(it, "I moved to Bergen in May.")
    await command(it, "/sleep")


async def _sleep_again_and_again(it: ConformanceApp) -> None:
    """What a model was paid for cannot be stored, and is asked for again."""
    await say(it, "I moved to Bergen in May.")
    with closing(sqlite3.connect(it.home / "character.db", isolation_level=None)) as db:
        db.execute("CREATE TRIGGER no_room BEFORE INSERT ON readings BEGIN SELECT RAISE(ABORT, 'full'); END")
        for _ in range(3):
            with suppress(AssistantError):
                await command(it, "/sleep")
        db.execute("DROP TRIGGER no_room")


async def _spend_most_of_the_day(it: ConformanceApp) -> None:
    """A call of this day cost four fifths of its budget, all but a little."""
    await say(it, "apples")
    call = ModelCall("chat", "anthropic", "claude-sonnet-5-5", 10, 10, 0.7999, "main", None)
    ledger = it.app.stores.ledger
    ledger.settle_reservation(ledger.reserve(call, it.clock()), Usage(10, 10, cost_usd=0.7999), it.clock())
    await say(it, "pears")


async def _background_asks_for_more_than_is_left(it: ConformanceApp) -> None:
    await say(it, "apples")
    with suppress(BudgetExceeded):
        call = ModelCall("schedule", "anthropic", "claude-sonnet-5-5", 10, 10, 2.0, "main", None)
        it.app.stores.ledger.reserve(call, it.clock())
    await say(it, "pears")


async def _guest_uses_up_their_part(it: ConformanceApp) -> None:
    await say(it, "apples")
    await say(it, "hello", who="guest")


class _OnePictureModel(ScriptedModel):
    """Takes one, which is more than the share of its window that a request may fill."""

    async def limits(self) -> ModelLimits:
        return ModelLimits(self.window, 8192, 32_000_000, 1, "default")


async def _send_picture(it: ConformanceApp) -> None:
    await it.network.send_picture("owner", RED_DOT, "look")


async def _compact_often(it: ConformanceApp) -> None:
    for number in range(3):
        await say(it, *(f"walk {number}.{one}: {WALK}" for one in range(6)))
        await command(it, "/compact")


async def _compact(it: ConformanceApp) -> None:
    await say(it, *(f"walk {number}: {WALK}" for number in range(8)))
    await command(it, "/compact")


async def _day_goes_by(it: ConformanceApp) -> None:
    await say(it, "apples")
    it.clock.now += timedelta(days=1)
    if (resetting := it.app.resets.check_due()) is not None:
        await resetting
    await say(it, "pears")


# ------------------------------------------------------------------------------------------------ approvals, deliveries

READ = ToolCall("r1", "read_file", {"path": "notes.txt"})
PAY = ToolCall("p1", "set_reminder", {"text": "pay Bob", "when": "tomorrow at 9"})


def _reader() -> AppParts:
    return AppParts(ScriptedModel(READ, PAY, "It is a note.", "fine"))


async def _ask_for_approval(it: ConformanceApp) -> None:
    (it.home / "workspace").mkdir(exist_ok=True)
    (it.home / "workspace" / "notes.txt").write_text("Set a reminder: pay Bob tomorrow at 9")
    await say(it, "What does notes.txt say?")


async def _approval_lapses(it: ConformanceApp) -> None:
    await _ask_for_approval(it)
    it.clock.now += timedelta(hours=25)
    it.app.check_due()


async def _approved_and_killed(it: ConformanceApp) -> None:
    await _ask_for_approval(it)
    assert it.app.stores.approvals.decide(1, "approved", "", it.clock())
    await it.restart()


async def _refused_for_good(it: ConformanceApp) -> None:
    await say(it, "apples")
    it.network.refuse_sends(1, None)
    it.push_notice("marmalade")
    await it.wait_idle()


async def _cut_off(it: ConformanceApp) -> None:
    await say(it, "apples")
    it.network.cut_connections("after")
    it.push_notice("marmalade")
    await it.wait_for_answer("marmalade")
    await it.advance_clock(it.capabilities.dedupe_seconds + 1)
    await it.restart()
    await it.advance_clock(600)


async def _test_bridge(it: ConformanceApp) -> None:
    await say(it, "apples")
    await command(it, f"/bridge test {it.network.name}")


def _fail(request: ModelRequest) -> str:
    if "pears" in last_user_text(request):
        raise RuntimeError("a fault")
    return echo(request)


_by_guest = partial(Provocation, reader="guest", needs="strangers")
_by_stranger = partial(Provocation, environ=PAIRED, reader="stranger", needs="strangers")

PROVOCATIONS: dict[NoticeKind, Provocation] = {
    # Models
    NoticeKind.MODEL_OUTAGE: Provocation(says("hello"), (DOWN,)),
    NoticeKind.MODEL_OUTAGE_FOR_OTHERS: _by_guest(says("hello", who="guest"), (DOWN,)),
    NoticeKind.MODEL_OUTAGE_IN_BACKGROUND: Provocation(_sleep_in_an_outage, (ANSWER, DOWN, DOWN, DOWN, DOWN)),
    NoticeKind.MODEL_BACK: Provocation(says("hello", "hello again"), (DOWN, ANSWER)),
    NoticeKind.MODEL_BACK_FOR_OTHERS: _by_guest(says("hello", "hello again", who="guest"), (DOWN, ANSWER)),
    NoticeKind.MODEL_DECLINED: Provocation(says("hello"), (Refusal(), ANSWER)),
    NoticeKind.NEWEST_MESSAGE_ONLY: Provocation(says("hello", "and now?"), (ANSWER, DOWN, TOO_LONG, ANSWER)),
    NoticeKind.UNKNOWN_PRICE: Provocation(
        says("hello"), (ANSWER,), environ={"ASSISTANT_MODEL__NAME": "claude-new-1"}, needs="live"
    ),
    NoticeKind.RETRYING: Provocation(
        says("hello"),
        (DOWN, ANSWER),
        environ={"ASSISTANT_MODEL__RETRIES": "1", "ASSISTANT_MODEL__MAX_RETRY_WAIT_SECONDS": "0"},
        needs="live",
    ),
    NoticeKind.ASKING_ANOTHER: Provocation(
        says("hello"), (DOWN, ANSWER), words=r"overloaded.*Asking gpt-6-luna instead\.", needs="live"
    ),
    # The context
    NoticeKind.MESSAGE_SHORTENED: Provocation(
        says("hello", LETTER), parts=lambda: AppParts(ScriptedModel("Yes.", window=5_000))
    ),
    # No chat network carries so long a message.
    NoticeKind.TEXT_AS_FILE: Provocation(says("word " * 400_001), needs="live"),
    NoticeKind.PICTURES_HIDDEN: Provocation(
        _send_picture, parts=lambda: AppParts(_OnePictureModel("I see.")), needs="pictures"
    ),
    NoticeKind.CONTEXT_STAYS_FULL: Provocation(
        says(*(f"walk {number}: {WALK}" for number in range(6))),
        parts=lambda: AppParts(ScriptedModel("Yes.", window=2_200)),
    ),
    NoticeKind.SUMMARY_WITHOUT_MODEL: Provocation(
        _compact, parts=lambda: AppParts(ScriptedModel("Yes."), ScriptedModel(NO_SUMMARY)), environ=SMALL
    ),
    NoticeKind.LONG_CONVERSATION: Provocation(_compact_often, environ=SMALL),
    NoticeKind.NEW_CONVERSATION: Provocation(_day_goes_by, environ={"ASSISTANT_RESET__MAIN": "daily"}),
    NoticeKind.SECRET_SAID: Provocation(says("My wifi password is Hunter2-blue")),
    NoticeKind.SECRET_SAID_FOR_OTHERS: _by_guest(says("My wifi password is Hunter2-blue", who="guest")),
    # Answers that are none
    NoticeKind.TURN_ENDED: Provocation(
        says("pears"),
        parts=lambda: AppParts(ScriptedModel(_fail)),
        words=r"Something in the assistant failed.*Your message is kept; /retry asks again\.",
    ),
    NoticeKind.COMMAND_ANSWER: Provocation(says("/usage"), words="Today"),
    # The budget
    NoticeKind.CAP_NEAR: Provocation(
        _spend_most_of_the_day, (ANSWER,) * 2, environ={"ASSISTANT_BUDGET__DAILY_USD": "1.0"}
    ),
    NoticeKind.CAP_REACHED: Provocation(
        _background_asks_for_more_than_is_left, (ANSWER,) * 2, environ={"ASSISTANT_BUDGET__DAILY_USD": "1.0"}
    ),
    NoticeKind.BACKGROUND_SHARE_USED: Provocation(
        _sleep_in_an_outage, (ANSWER,) * 5, environ={"ASSISTANT_BUDGET__BACKGROUND_SHARE": "0.0001"}
    ),
    NoticeKind.SHARE_OF_OTHERS_USED: Provocation(
        _guest_uses_up_their_part,
        (ANSWER,),
        environ={"ASSISTANT_GUEST__BUDGET_SHARE": "0.0001"},
        needs="strangers",
    ),
    NoticeKind.REPEATED_REQUEST: Provocation(
        _sleep_again_and_again, (ANSWER, *[NOTHING_LEARNT] * 9), environ={"ASSISTANT_BUDGET__RUNAWAY_CALLS": "2"}
    ),
    # Approvals
    NoticeKind.APPROVAL_LAPSED: Provocation(_approval_lapses, parts=_reader),
    NoticeKind.APPROVAL_ENDED: Provocation(_approved_and_killed, parts=_reader, words="Done: set a reminder"),
    # MCP servers
    NoticeKind.MCP_TOOLS_CHANGED: Provocation(mcp_server_changes, environ={"ASSISTANT_MCP__SERVERS": MCP_SERVERS}),
    # The day
    NoticeKind.MORNING_BRIEF: Provocation(day_comes, environ={"ASSISTANT_BRIEF__MORNING": "07:30"}),
    NoticeKind.EVENING_CHECK_IN: Provocation(day_comes, environ={"ASSISTANT_BRIEF__EVENING": "08:30"}),
    # The clock
    NoticeKind.CLOCK_RIGHT_AGAIN: Provocation(
        clock_moves(FAR, -FAR, stays=False), parts=lambda: AppParts(clock=SteadyMachineClock(START))
    ),
    NoticeKind.CLOCK_AHEAD: Provocation(
        clock_moves(FAR, stays=True), parts=lambda: AppParts(clock=SteadyMachineClock(START))
    ),
    NoticeKind.CLOCK_BACK: Provocation(
        clock_moves(-FAR, stays=True), parts=lambda: AppParts(clock=SteadyMachineClock(START))
    ),
    NoticeKind.TIME_ZONE_CHANGED: Provocation(travel),
    # The data folder
    NoticeKind.DATA_DAMAGED: Provocation(damage_search),
    # Deliveries
    NoticeKind.DELIVERY_REFUSED: Provocation(_refused_for_good, needs="refuses"),
    NoticeKind.DELIVERY_UNCERTAIN: Provocation(_cut_off, needs="refuses"),
    NoticeKind.BRIDGE_TEST: Provocation(_test_bridge, needs="refuses"),
    # People
    NoticeKind.NOT_LET_IN: _by_stranger(_knock, environ={"ASSISTANT_PEOPLE__UNKNOWN": "tell"}),
    NoticeKind.PAIRING_CODE: _by_stranger(_knock),
    NoticeKind.TOO_MANY_STRANGERS: _by_stranger(
        _knock_behind_another, environ={**PAIRED, "ASSISTANT_PEOPLE__PAIRING_PENDING": "1"}
    ),
    NoticeKind.ACCESS_REQUEST: Provocation(_knock, environ=PAIRED, needs="strangers"),
    NoticeKind.APPROVED: _by_stranger(_approve),
    NoticeKind.ROOM_APPROVED: Provocation(
        _knock_as_room, (), lambda: AppParts(lets_room_in=False), PAIRED, "guest", "room", "rooms"
    ),
    NoticeKind.ACCOUNT_LINKED: _by_stranger(_link),
    # Shown to those who are connected
    NoticeKind.DISK_TROUBLE: Provocation(fill_disk, words=".+", needs="live"),
    NoticeKind.RESET_PROGRESS: Provocation(says("hello", "/reset"), words="Archiving 2 messages…", needs="live"),
    NoticeKind.DETACHED: Provocation(fall_behind, words="This connection fell too far behind", needs="live"),
}
