"""Slash commands about sessions: `/reset`, `/sessions`, `/session`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assistant.core.errors import UsageError
from assistant.core.people import SessionRoutesPort
from assistant.core.sessions import MAIN_SESSION, parse_session_name, session_kind, session_role
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.sessions.listing import (
    SessionReader,
    SessionRow,
    can_resume,
    describe_generation,
    reset_done_text,
    sessions_markdown,
)
from assistant.sessions.reset import ResetRequest
from assistant.sessions.scheduler import ResetScheduler

_RESET = "/reset [NAME] [--cancel]"
_SESSIONS = "/sessions [show NAME [N] | end NAME | resume NAME [N]]"
_SESSION = "/session [NAME]"
_GENERATIONS_EACH = 5


class SessionCommands:
    def __init__(
        self,
        resets: ResetScheduler,
        looking: SessionReader,
        conversation: Conversation,
        places: SessionRoutesPort,
        terminal: str,
    ) -> None:
        """On the bridge `terminal` a dialog keeps by itself which conversation it is in."""
        self._resets = resets
        self._looking = looking
        self._conversation = conversation
        self._places = places
        self._terminal = terminal

    def entries(self) -> Mapping[str, Command]:
        return {
            "session": Command(
                _SESSION, "go to a thread of its own, or back to main; alone: where you are", self._session
            ),
            "sessions": Command(_SESSIONS, "list conversations, put one away, take an earlier one up", self._sessions),
            "reset": Command(_RESET, "begin afresh: learn, archive, hand over", self._reset),
        }

    # --------------------------------------------------------------------------------------------------------- changing

    async def _reset(self, call: CommandInvocation) -> str:
        words = call.rest.split()
        cancel = "--cancel" in words
        names = [word for word in words if word != "--cancel"]
        if len(names) > 1 or any(name.startswith("-") for name in names):
            raise UsageError(f"Use {_RESET}. Nothing was changed.")
        session = self._looking.known(names[0] if names else call.session)
        if cancel:
            gone = self._resets.withdraw(session, call.now)
            return f"The reset of {session} is given up." if gone else f"No reset of {session} waits."
        return reset_done_text(await self._resets.reset(ResetRequest(session, "manual")))

    async def _sessions(self, call: CommandInvocation) -> str:
        action, *words = call.rest.split() or ["list"]
        match action, words:
            case "list", []:
                return sessions_markdown(list(self._looking.listed(_GENERATIONS_EACH)), self._looking.policies.zone)
            case "show", [name, *number]:
                return self._shown(name, _number(number))
            case "end", [name]:
                return await self._end(name)
            case "resume", [name, *number]:
                return await self._resume(name, _number(number))
        raise UsageError(f"Use {_SESSIONS}. Nothing was changed.")

    def _shown(self, name: str, number: int | None) -> str:
        one = self._looking.one(name, number)
        known = one.generation
        made = [c for c in self._conversation.checkpoints(known.session) if c.generation == known.number]
        return describe_generation(one, self._looking.note(known), made, self._looking.policies.zone)

    async def _end(self, name: str) -> str:
        session = self._looking.known(name)
        if session_kind(session) == "main":
            raise UsageError("main always goes on. Nothing was changed; `/reset` begins it afresh.")
        done = await self._resets.reset(ResetRequest(session, "end"))
        return f"{session} is put away. The next message in it begins a new conversation.\n\n{reset_done_text(done)}"

    async def _resume(self, name: str, number: int | None) -> str:
        session = self._looking.known(name)
        earlier = [one for one in self._looking.listed_of(session) if one.generation.ended_at is not None]
        chosen = _chosen(session, earlier, number)
        done = await self._resets.reset(ResetRequest(session, "resume", resumes=chosen))
        back = f": `/sessions resume {session} {done.ended.number}` goes back" if can_resume(done.ended) else ""
        return (
            f"{session} goes on from number {chosen}: what it showed last stands in view again. Number "
            f"{done.ended.number} ended for it and is kept{back}."
        )

    # -------------------------------------------------------------------------------------------------------- switching

    async def _session(self, call: CommandInvocation) -> str:
        if not call.rest:
            return self._where(call)
        session = parse_session_name(call.rest)
        if session_role(session) != "owner":
            raise UsageError(f"{session!r} is not a conversation of yours. Nothing was changed.")
        if call.bridge != self._terminal:
            self._places.choose(call.bridge, call.target, session, call.now)
        known = next((info for info in self._conversation.sessions() if info.key == session), None)
        if known is None:
            return f"You are in {session} now, which is new. `/session {MAIN_SESSION}` goes back."
        back = "" if session == MAIN_SESSION else f" `/session {MAIN_SESSION}` goes back."
        return f"You are in {session} now, {pluralize(known.view_messages, 'message')} in view.{back}"

    def _where(self, call: CommandInvocation) -> str:
        mine = sorted(info.key for info in self._conversation.sessions() if session_role(info.key) == "owner")
        others = [f"`{key}`" for key in mine if key != call.session]
        listed = f" There are also {', '.join(others)}." if others else ""
        return f"You are in {call.session}.{listed} `/session NAME` goes to another, or makes it."


def _number(words: Sequence[str]) -> int | None:
    """Raises `UsageError`."""
    if not words:
        return None
    if len(words) > 1 or not (words[0].isascii() and words[0].isdigit()):
        raise UsageError(f"{' '.join(words)!r} is not the number of a conversation. `/sessions` lists them.")
    return int(words[0])


def _chosen(session: str, earlier: Sequence[SessionRow], number: int | None) -> int:
    """The generation to go on from: the last one that ended, unless named. Raises `UsageError`."""
    numbers = [one.generation.number for one in earlier if can_resume(one.generation)]
    if not numbers:
        raise UsageError(f"{session} has no earlier conversation to take up. Nothing was changed.")
    if number is not None and number not in numbers:
        there = ", ".join(map(str, reversed(numbers)))
        raise UsageError(f"{session} has no earlier conversation {number}, only {there}. Nothing was changed.")
    return numbers[0] if number is None else number
