"""Tools that edit MEMORY.md, in the owner's conversations, and profiles: facts about a person, a place or a project.

- A passage of MEMORY.md is replaced only if it occurs exactly once in the current file, so that concurrent edits by a
  person are not lost.
- Only profiles of the call's scope are visible and changed (I10); a replaced value keeps its dates.
- The answer is the change as a diff, with the number by which it can be undone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, tzinfo
from typing import Annotated, Literal

from assistant.core.errors import ToolError
from assistant.core.memories import UndoableEdit
from assistant.core.permissions import ALL_ROLES, OWNER_ONLY
from assistant.core.ports import Tool, ToolContext, WordsOfCall
from assistant.core.profiles import Profile, add_alias, add_attribute
from assistant.core.quoting import quote_block, quote_text
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.character.profiles import StoredProfiles
from tools.declaration import bounded_text, tool


def edit_memory_file_tool(files: StoredMemoryFiles) -> Tool:
    """Changes are stored with their key, and can be undone; called again, it shows the earlier change."""

    def effect(context: ToolContext, old: str, new: str) -> str:
        if not old:
            return f"add to MEMORY.md: {quote_text(new)}"
        return f"change MEMORY.md: {quote_text(old)} becomes {quote_text(new)}"

    @tool(
        effects="keyed",
        roles=OWNER_ONLY,
        touches={"reads", "writes"},
        words=WordsOfCall(words=("new",), fixed={"old": ""}),
        effect=effect,
        topic="memory",
    )
    def edit_memory_file(context: ToolContext, old: str = "", new: str = "") -> str:
        """Edit MEMORY.md. old: exact passage ("" appends new). new: replaces it ("" removes)."""
        if context.scope != OWNER_SCOPE:
            raise ToolError("MEMORY.md is the owner's; it cannot be edited from here. Nothing was changed.")
        current = files.read_memory_file()
        wrong = _wrong(current, old, new)
        # When called again after a crash, the passage is gone already, so the earlier change is shown.
        edit = files.replace_memory_file(
            current if wrong else _edited(current, old, new), current, "model", context.now, key=context.key
        )
        if edit.id is None:
            raise ToolError(f"{wrong or 'That changes nothing.'} MEMORY.md stays as it is.")
        return f"MEMORY.md, change {edit.id}:\n{quote_block(render_diff(edit))}"

    return edit_memory_file


def _wrong(current: str, old: str, new: str) -> str:
    if not old:
        return "" if new.strip() else "Both old and new are empty."
    times = current.count(old)
    if times == 0:
        return "The passage is not there: give old exactly as the file has it, or somebody edited it meanwhile."
    return f"The passage is there {times} times: give more of the text around it." if times > 1 else ""


def _edited(current: str, old: str, new: str) -> str:
    if old:
        return current.replace(old, new)
    between = "" if not current or current.endswith("\n") else "\n"
    return f"{current}{between}{new}" + ("" if new.endswith("\n") else "\n")


_MOST_NAME = 200
ProfileName = Annotated[str, bounded_text(_MOST_NAME)]
AttributeValue = Annotated[str, bounded_text(500)]
ProfileSummary = Annotated[str, bounded_text(2000)]


def update_profile_tool(profiles: StoredProfiles, files: StoredMemoryFiles, zone: tzinfo) -> Tool:
    """Attributes are added, and earlier values of one are kept with their dates."""

    @tool(
        effects="keyed",
        roles=ALL_ROLES,
        touches={"reads", "writes"},
        words=WordsOfCall(words=("name", "aliases", "summary", "attributes"), free=("kind",)),
    )
    def update_profile(
        context: ToolContext,
        name: ProfileName,
        kind: Literal["person", "place", "project", "thing"] | None = None,
        aliases: list[ProfileName] = [],  # noqa: B006 - pydantic copies defaults
        summary: ProfileSummary | None = None,
        attributes: dict[str, AttributeValue] = {},  # noqa: B006
        since: date | None = None,
    ) -> str:
        """Add to what is known of somebody or something. since: when attributes began to hold (today)."""
        current = profiles.find(name, context.scope) or Profile(context.scope, kind or "person", name)
        updated = replace(current, kind=kind or current.kind, summary=summary or current.summary)
        updated = _with(updated, aliases, attributes, _moment(since, context.now, zone))
        saved = profiles.save(updated, "model", context.now, key=context.key)
        return _answer(saved, saved != current, files)

    return update_profile


def _with(profile: Profile, aliases: Sequence[str], attributes: Mapping[str, str], since: datetime) -> Profile:
    for alias in aliases:
        profile = add_alias(profile, alias)
    for name, value in attributes.items():
        if not name.strip() or len(name) > _MOST_NAME:
            raise ToolError(f"The name of an attribute has 1 to {_MOST_NAME} characters. Nothing was changed.")
        profile = add_attribute(profile, " ".join(name.split()), value, since)
    return profile


def _moment(since: date | None, now: datetime, zone: tzinfo) -> datetime:
    if since is None or since == now.astimezone(zone).date():
        return now
    try:
        return datetime.combine(since, time.min, zone).astimezone(now.tzinfo)
    except OverflowError:
        raise ToolError(f"since: {since.isoformat()} is out of range. Nothing was changed.") from None


def _answer(saved: Profile, changed: bool, files: StoredMemoryFiles) -> str:
    """Return the change; when called again after a crash, the earlier change."""
    if saved.id is None:
        raise ToolError(f"This change of {quote_text(saved.name)} was taken back meanwhile. Nothing was changed.")
    newest = next(iter(files.list_edits(saved.scope, target=f"profile:{saved.id}", limit=1)), None)
    which = f"Profile {saved.id} of {quote_text(saved.name)}"
    if newest is None:
        return f"{which} says so already; nothing was changed."
    what = "change" if changed else "says so already; its last change,"
    return f"{which}, {what} {newest.id}:\n{quote_block(render_diff(newest))}"


_MAX_LINES = 4000
_CONTEXT_LINES = 2
_NO_NEWLINE = "\\ No newline at end of file"


def render_diff(edit: UndoableEdit) -> str:
    """Return a unified diff without a final newline; "" if nothing changed. An undone change is shown like the original
    one. For texts of very many lines only the number of lines is given, since comparing them takes too long."""
    before, after = _lines(edit.before), _lines(edit.after)
    if edit.before == edit.after:
        return ""
    if max(len(before), len(after)) > _MAX_LINES:
        return f"{edit.target}: {pluralize(len(before), 'line')} became {len(after):,}"
    name = edit.target.partition(":")[2] or edit.target
    shown: list[str] = []
    for line in difflib.unified_diff(before, after, name, name, n=_CONTEXT_LINES):
        shown.append(line.removesuffix("\n"))
        if not line.endswith("\n"):
            shown.append(_NO_NEWLINE)
    return "\n".join(shown)


def _lines(text: str) -> list[str]:
    """Split at newlines only: other characters that some count as line ends are part of the text."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
