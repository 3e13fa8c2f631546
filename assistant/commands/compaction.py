"""Slash commands about what stands in view: compacting, pinning, branching, and what was asked for."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import partial
from typing import Protocol

from assistant.context.pressure import Counter
from assistant.core.checkpoints import Pin, RequestState, UserRequest
from assistant.core.errors import UsageError
from assistant.core.messages import Message
from assistant.core.people import ALL_ROLES
from assistant.core.ports import RequestsPort
from assistant.core.sessions import session_scope
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Conversation
from assistant.store.script.requests import Pins
from sleep.compaction.values import CachedPrompt

_SHOWN = 20
# What a database takes for a number.
_MOST = 2**63 - 1


class ManualCompaction(Protocol):
    """What these commands need of `assistant.runtime.compaction_service`."""

    async def compact_now(self, session: str, focus: str, live: CachedPrompt | None = None) -> str: ...
    async def preview(self, session: str, focus: str = "", live: CachedPrompt | None = None) -> str: ...
    async def undo(self, session: str, checkpoint_id: int | None) -> str: ...


class CompactionCommands:
    """Answers these commands (`typed.Answering`)."""

    def __init__(
        self,
        compacting: ManualCompaction,
        conversation: Conversation,
        pins: Pins,
        requests: RequestsPort,
        live: Callable[[str, datetime], CachedPrompt | None],
        most_pinned: int,
        counter: Counter,
        zone: tzinfo,
    ) -> None:
        """`live` gives the request of a session that its provider still has; `most_pinned` is what all pins of a
        conversation may take, in tokens as `counter` counts them."""
        self._compacting = compacting
        self._conversation = conversation
        self._pins = pins
        self._requests = requests
        self._live = live
        self._most_pinned = most_pinned
        self._counter = counter
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        return {
            "compact": Command(
                "/compact [FOCUS | --dry-run | --undo [ID]]", "make room in the context now", self._compact
            ),
            "branch": Command("/branch [N]", "go on from message N in a conversation of its own", self._branch),
            "pin": Command("/pin [N | TEXT]", "keep the last thing you said, message N or TEXT in view", self._pin),
            "unpin": Command("/unpin N...", "let pins go", self._unpin),
            "pins": Command("/pins", "what is pinned", self._list_pins),
            "requests": Command("/requests", "what you asked for and is open", self._list_requests, ALL_ROLES),
            "done": Command("/done N...", "these requests are done", partial(self._close, "done"), ALL_ROLES),
            "drop": Command(
                "/drop N...", "these requests are no longer wanted", partial(self._close, "superseded"), ALL_ROLES
            ),
        }

    async def _compact(self, call: CommandInvocation) -> str:
        session = call.session
        first, _, more = call.arguments.partition(" ")
        if first == "--dry-run":
            return await self._compacting.preview(session, more, self._live(session, call.now))
        if first == "--undo":
            numbers = _numbers(more, "/compact --undo 3") if more.strip() else []
            if len(numbers) > 1:
                raise UsageError("Give one number, as in `/compact --undo 3`: later ones are undone with it.")
            return await self._compacting.undo(session, numbers[0] if numbers else None)
        if first.startswith("--"):
            raise UsageError(f"/compact has no option {first}; it takes --dry-run and --undo. Nothing was compacted.")
        return await self._compacting.compact_now(session, call.arguments, self._live(session, call.now))

    async def _branch(self, call: CommandInvocation) -> str:
        message_id = _numbers(call.arguments, "/branch 12")[0] if call.arguments else self._last(call.session).id
        if message_id is None:
            raise UsageError("There is nothing to branch from yet.")
        made = self._conversation.branch_session(call.session, message_id, call.now)
        return (
            f"{made.key} begins after message #{message_id}; this conversation stays as it is. "
            f"`assistant chat --session {made.key}` goes on there."
        )

    async def _pin(self, call: CommandInvocation) -> str:
        """Pin a message by its number, or the words given, or the last thing the person said."""
        rest, session = call.arguments, call.session
        message = self._message(rest, session)
        text, role = (message.content, message.role) if message is not None else (rest, "user")
        if not text.strip():
            raise UsageError("There are no words to pin there. Nothing was changed.")
        pinned = sum(self._counter.count_text(pin.text) for pin in self._pins.list_pins(session))
        if pinned + self._counter.count_text(text) > self._most_pinned:
            raise UsageError(
                f"Pins may take {self._most_pinned} tokens together (compaction.pins_max_tokens), and this would pass "
                "it. Nothing was changed; /unpin makes room."
            )
        pin = self._pins.add(session, session_scope(session), text, role, message.id if message else None, call.now)
        return f"Pinned as {pin.id}: {_first_words(pin.text)!r}. It stands in every request until `/unpin {pin.id}`."

    async def _unpin(self, call: CommandInvocation) -> str:
        removed = self._pins.remove(call.session, _numbers(call.arguments, "/unpin 3"))
        return "\n".join(f"Unpinned {pin.id}: {_first_words(pin.text)!r}" for pin in removed)

    async def _list_pins(self, call: CommandInvocation) -> str:
        return "\n".join(_pin_line(pin) for pin in self._pins.list_pins(call.session)) or "Nothing is pinned."

    async def _list_requests(self, call: CommandInvocation) -> str:
        found = self._requests.list_open(call.session, limit=_SHOWN + 1)
        lines = [_request_line(request, self._zone) for request in found[:_SHOWN]]
        more = ["- … and older ones: `assistant requests` lists them"] if len(found) > _SHOWN else []
        return "\n".join(lines + more) or "Nothing you asked for is open."

    async def _close(self, state: RequestState, call: CommandInvocation) -> str:
        """Mark requests by the numbers of their messages."""
        numbers = _numbers(call.arguments, "/done 12 15")
        closed = self._requests.close_requests(call.session, numbers, state, "user", (), call.now)
        word = "done" if state == "done" else "no longer wanted"
        return "\n".join(f"- {word}: #{request.message_id} {_first_words(request.text)!r}" for request in closed)

    def _message(self, rest: str, session: str) -> Message | None:
        """The message that is meant; None where words are to be pinned instead."""
        if not rest:
            return self._last(session)
        if not rest.removeprefix("#").isdecimal():
            return None
        wanted = int(rest.removeprefix("#"))
        shown = self._conversation.load_view(session).messages
        found = next((m for m in shown if wanted in (m.id, m.metadata.get("carried_from"))), None)
        if found is None:
            raise UsageError(f"Message #{wanted} is not in view. Nothing was changed; pin its words: /pin TEXT.")
        return found

    def _last(self, session: str) -> Message:
        messages = self._conversation.load_view(session).messages
        found = next((m for m in reversed(messages) if m.role == "user" and m.id is not None), None)
        if found is None:
            raise UsageError("Nothing has been said here yet.")
        return found


def _pin_line(pin: Pin) -> str:
    source = f" (message #{pin.message_id}, {pin.role})" if pin.message_id is not None else ""
    return f"- {pin.id}: {_first_words(pin.text, 120)}{source}"


def _request_line(request: UserRequest, zone: tzinfo) -> str:
    answered = f", answered in #{request.answered_by}" if request.answered_by is not None else ", not answered"
    day = request.opened_at.astimezone(zone).date()
    return f"- #{request.message_id} ({day}{answered}): {_first_words(request.text, 100)}"


def _numbers(text: str, example: str) -> list[int]:
    try:
        found = [int(word.lstrip("#")) for word in shlex.split(text.replace(",", " "))]
    except ValueError:
        found = []
    if not found:
        given = f"{text!r} has no number" if text.strip() else "A number is missing"
        raise UsageError(f"{given}, as in `{example}`. Nothing was changed.")
    if any(abs(number) > _MOST for number in found):
        raise UsageError("No number here is that large. Nothing was changed.")
    return found


def _first_words(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
