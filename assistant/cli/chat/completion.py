"""What the menu of a terminal offers after a slash: commands with what they do, then what each takes, from the lists of
the assistant: numbers of reminders with their words, names of conversations, models.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from assistant.cli.output import clean_line
from assistant.commands.argv import LEAVE_COMMANDS, SLASH_COMMANDS, expand_alias
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError

_LONGEST_ABOUT = 60
_ID_DIGITS = 8  # of a memory
_CHOICES = re.compile(r"[\[{]([a-z]+(?:\|[a-z]+)+)[\]}]")
_OPTION = re.compile(r"\[(--[\w-]+)(?: [^\]]{1,80})?\]")


@dataclass(frozen=True, slots=True)
class _Listing:
    """A command whose JSON has what another one takes: the field that is typed, and what it is, made of the others."""

    argv: tuple[str, ...]
    field: str
    about: str
    within: str = ""  # the field that holds the list; "" for the JSON itself


_SESSIONS = _Listing(("sessions", "list"), "session", "messages: {messages}")
_REMINDERS = _Listing(("remind", "list"), "id", "{text} · {when}")
_PAST_REMINDERS = _Listing(("remind", "history"), "id", "{text} · {state}")
_SCHEDULES = _Listing(("schedule", "list"), "name", "{text} · {when}")
_MEMORIES = _Listing(("memory", "list"), "id", "{text}")
_TODOS = _Listing(("todo", "list"), "id", "{text}")
_DONE_TODOS = _Listing(("todo", "list", "--done"), "id", "{text}")
_REQUESTS = _Listing(("requests", "list"), "id", "{text}")
_ASKED = _Listing(("requests", "list", "--all"), "id", "{text}")
_PINS = _Listing(("pins", "list"), "id", "{text}")
_PEOPLE = _Listing(("people", "list"), "id", "{name} · {role}, {state}", within="people")
_BRIDGES = _Listing(("bridge", "list"), "name", "{state}")
_DELIVERIES = _Listing(("deliveries", "list"), "id", "{text} · {state}")
_ARCHIVED = _Listing(("archive", "list"), "session", "{where}")
# By command, without those that take words of one's own.
_LISTINGS: Mapping[str, _Listing] = {
    "/session": _SESSIONS,
    "/reset": _SESSIONS,
    **{f"/sessions {name}": _SESSIONS for name in ("show", "end", "resume")},
    **{f"/remind {name}": _REMINDERS for name in ("change", "skip", "cancel")},
    **{f"/remind {name}": _PAST_REMINDERS for name in ("again", "done")},
    **{f"/schedule {name}": _SCHEDULES for name in ("show", "pause", "resume", "remove", "run", "history")},
    **{f"/memory {name}": _MEMORIES for name in ("show", "why", "edit", "forget")},
    "/forget": _MEMORIES,
    **{f"/todo {name}": _TODOS for name in ("done", "edit", "remove")},
    "/todo reopen": _DONE_TODOS,
    **{f"/todo {name}": _Listing(("todo", "list"), "list", "") for name in ("list", "clear")},
    **{f"/requests {name}": _REQUESTS for name in ("done", "drop")},
    "/branch": _ASKED,
    "/pins add": _ASKED,
    "/pins remove": _PINS,
    **{f"/people {name}": _PEOPLE for name in ("allow", "deny", "rename")},
    **{f"/bridge {name}": _BRIDGES for name in ("test", "pause", "resume")},
    **{f"/deliveries {name}": _DELIVERIES for name in ("again", "drop")},
    **{f"/archive {name}": _ARCHIVED for name in ("list", "show")},
    "/docs": _Listing(("docs",), "name", "{about}", within="pages"),
    "/model": _Listing(("model",), "name", "{about}", within="choices"),
}


class CommandCompleter(Completer):
    """`run` runs a command of the table and returns its JSON. What was listed is kept until `clear`."""

    def __init__(self) -> None:
        self.run: Callable[[Sequence[str]], Awaitable[Any]] = _run_nothing
        self._listed: dict[tuple[str, ...], Any] = {}

    def clear(self) -> None:
        """What was listed may have changed."""
        self._listed.clear()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Nothing: what there is has to be asked for."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        *before, word = text.split(" ")
        for name, about in await self._offered([part for part in before if part], word.lower()):
            shown = clean_line(name)
            insert = f'"{shown}"' if " " in shown else shown
            yield Completion(insert, -len(word), display=shown, display_meta=clean_line(about, _LONGEST_ABOUT))

    async def _offered(self, before: Sequence[str], typed: str) -> list[tuple[str, str]]:
        commands = await self._commands()
        if not before:
            return _matching_names([(name, entry["about"]) for name, entry in commands.items()], typed)
        name, words = _called(before, commands)
        entry = commands.get(name)
        if entry is None:
            return []
        options = [(option, "") for option in _OPTION.findall(entry["usage"])] if typed.startswith("-") else []
        within = [(it.rpartition(" ")[2], row["about"]) for it, row in commands.items() if it.startswith(f"{name} ")]
        offered = [row for row in [*options, *([] if words else within)] if row[0].startswith(typed)]
        if not words or "..." in entry["usage"]:
            rows = await self._arguments(name, entry)
            offered += [row for row in rows if row[0].lower().startswith(typed) or _has_word(row[1], typed)]
        return [row for row in offered if row[0] not in words]

    async def _arguments(self, name: str, entry: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        if name == "/help":
            topics = [(it[1:], row["about"]) for it, row in (await self._commands()).items() if " " not in it]
            return [*topics, ("keys", "The keys of a terminal")]
        if (listing := _LISTINGS.get(name)) is None:
            return [(choice, "") for choices in _CHOICES.findall(entry["usage"]) for choice in choices.split("|")]
        value = await self._list(listing.argv)
        offered: dict[str, str] = {}
        for it, about in _rows(listing, value[listing.within] if value and listing.within else value or ()):
            # A name that comes again is of something older: of a conversation that was reset the current one is first.
            offered.setdefault(it, about)
        return list(offered.items())

    async def _commands(self) -> Mapping[str, Mapping[str, Any]]:
        """Every command by what is typed for it; a short form takes what the command does that it stands for."""
        answer = await self._list(("help",))
        entries = answer["commands"] if answer else [{"name": it, "about": "", "usage": it} for it in SLASH_COMMANDS]
        leaving = [{"name": it, "about": "Leave; what was said is kept", "usage": it} for it in LEAVE_COMMANDS]
        return {entry["name"]: entry for entry in [*entries, *leaving]}

    async def _list(self, argv: tuple[str, ...]) -> Any:
        """The JSON of a command; None where the assistant cannot be asked now."""
        if argv not in self._listed:
            try:
                self._listed[argv] = await self.run(argv)
            except AssistantError:
                return None
        return self._listed[argv]


async def _run_nothing(argv: Sequence[str]) -> Any:
    return None


def _called(words: Sequence[str], commands: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """The command that the words name, short forms spelled out, and the words after its name."""
    path, rest = expand_alias([words[0].removeprefix("/")]), list(words[1:])
    while rest and f"/{' '.join([*path, rest[0]])}" in commands:
        path.append(rest.pop(0))
    return f"/{' '.join(path)}", rest


def _matching_names(rows: Sequence[tuple[str, str]], typed: str) -> list[tuple[str, str]]:
    """Those that begin so, or else those that are spelled like it."""
    top = {name: about for name, about in rows if " " not in name}
    names = [name for name in top if name.startswith(typed)] or difflib.get_close_matches(typed, list(top), 2, 0.7)
    return [(name, top[name]) for name in names]


def _rows(listing: _Listing, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for row in rows:
        name = str(row[listing.field])
        if listing is _MEMORIES:
            name = name.replace("entry ", "e") if name.startswith("entry ") else name[:_ID_DIGITS]
        if name:
            yield name, listing.about.format_map(row)


def _has_word(about: str, typed: str) -> bool:
    """People know what a thing is about, and not its number."""
    return len(typed) > 1 and any(word.startswith(typed) for word in about.lower().split())
