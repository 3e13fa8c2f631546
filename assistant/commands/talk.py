"""The slash commands about memories: `/memory` and `/why`. Markdown back, or JSON where `--json` follows the action."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from assistant.commands import memory_report as report
from assistant.core.errors import UsageError
from assistant.core.memories import MemoriesAsOf
from assistant.core.sessions import session_scope
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Conversation
from assistant.core.text import lazy_regex
from assistant.memory.commands import MemoryCommands
from assistant.memory.then import split_then

USAGE = (
    "/memory [TEXT | list | as-of DATE [TEXT] | show REF | edit REF TEXT | import FILE | rebuild [--from-log] | stats]"
)
WHY_USAGE = "/why [REF]"
MOST_BYTES = 64 * 1024 * 1024
_LISTED = 50
_FOUND = 10
_FIRST = lazy_regex(r"((?:entry|memory)[ :]+#?\w+|\S+)\s*(.*)", re.IGNORECASE | re.DOTALL)
_HOW = "Use {usage}. A memory is named by the first digits of its id, or as `entry 12`. Nothing was changed."


class MemoryTalk:
    def __init__(self, memory: MemoryCommands, conversation: Conversation, zone: tzinfo) -> None:
        self._memory = memory
        self._conversation = conversation
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        return {
            "memory": Command(USAGE, "what is remembered: look, put right, make again", self._memory_asked),
            "why": Command(WHY_USAGE, "where a memory, or what came to mind last, is from", self._why_asked),
        }

    async def _memory_asked(self, call: CommandInvocation) -> str:
        return await self.memory(call.rest, call.session, call.now)

    async def _why_asked(self, call: CommandInvocation) -> str:
        return await self.why(call.rest, call.session)

    async def memory(self, rest: str, session: str, now: datetime) -> str:
        """The words after `/memory`. Raises `UsageError`, `MemoryUnavailable`, `StoreError`."""
        action, _, words = rest.partition(" ")
        flag, _, after = words.strip().partition(" ")
        as_json = flag == "--json"
        words = after.strip() if as_json else words.strip()
        scope = session_scope(session)
        match action:
            case "" | "stats" if not words:
                return "\n".join(report.counts_lines(await self._memory.stats(scope), self._zone))
            case "list" if not words:
                return "\n".join(report.held_lines(await self._memory.held(scope), self._zone, _LISTED))
            case "show" if words:
                return "\n".join(report.known_lines(await self._memory.show(words, scope), self._zone))
            case "why" if words:
                return await self.why(words, session)
            case "edit":
                return await self._edit(words, session, now, as_json=as_json)
            case "import" if words:
                done = self._memory.take_in(_file(Path(words)), scope, session, now)
                return _json(report.imported_json(done)) if as_json else report.imported_line(done)
            case "rebuild" if words in ("", "--from-log"):
                return await self._rebuild(now, from_log=bool(words), as_json=as_json)
            case "as-of" if words:
                at, text = split_then(words, now, self._zone)
                return self._then(self._memory.then(text, scope, at, limit=_LISTED), as_json=as_json)
            case "search" if words:
                return self._search(words, scope)
            case "show" | "why" | "import" | "rebuild" | "search" | "as-of":
                raise UsageError(_HOW.format(usage=USAGE))
            case _:
                return self._search(rest, scope)

    async def why(self, rest: str, session: str) -> str:
        """The words after `/why`: a reference, or nothing for what came to mind in the last turn. Raises `UsageError`,
        `StoreError`."""
        scope = session_scope(session)
        references = [rest] if rest else report.recalled_in(self._conversation.last_volatile(session))
        if not references:
            raise UsageError(f"Nothing was recalled for the last answer. {_HOW.format(usage=WHY_USAGE)}")
        told = []
        for reference in references:
            try:
                told.append("\n".join(report.chain_lines(await self._memory.why(reference, scope), self._zone)))
            except UsageError as error:
                if rest:
                    raise
                told.append(str(error))
        return "\n\n".join(told)

    def _search(self, words: str, scope: str) -> str:
        return "\n".join(report.found_lines(self._memory.search(words, scope, limit=_FOUND), self._zone))

    def _then(self, then: MemoriesAsOf, *, as_json: bool) -> str:
        return _json(report.then_json(then)) if as_json else "\n".join(report.then_lines(then, self._zone))

    async def _edit(self, words: str, session: str, now: datetime, *, as_json: bool) -> str:
        found = _FIRST.fullmatch(words)
        if found is None or not found[2].strip():
            raise UsageError(_HOW.format(usage="/memory edit REF TEXT"))
        done = await self._memory.correct(found[1], found[2], session_scope(session), session, now)
        return _json(report.corrected_json(done)) if as_json else "\n".join(report.corrected_lines(done))

    async def _rebuild(self, now: datetime, *, from_log: bool, as_json: bool) -> str:
        done = await self._memory.rebuild(now, from_log=from_log)
        return _json(report.rebuilt_json(done)) if as_json else "\n".join(report.rebuilt_lines(done, from_log=from_log))


def _file(path: Path) -> str:
    """What a file has. Raises `UsageError`."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path.name} has more than {MOST_BYTES // 2**20} MB. Nothing was imported; split it.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path.name} is not UTF-8 (line {line}). Nothing was imported.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}. Nothing was imported.") from None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
