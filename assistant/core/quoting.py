"""Quoting of untrusted text in prompts and tool results, so that it cannot escape its delimiters (I10).

An author could write our closing tag into a text. So in all text that is not ours, `<` of such a tag is replaced by
`&lt;`; everything else is unchanged.

Invariants for tool results:
- Stored text is data. In a line it is one JSON string, in a block every line begins with "> "; no content can break out
  of either form. Control characters and direction overrides are escaped or replaced, so that a quotation looks the same
  to a model and on a terminal.
- The output of each `format_...` function is read back by the matching parser, for the offline model, which ignores
  everything else in a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any

from assistant.core.calendar import format_due, format_moment
from assistant.core.dataclass import dataclass
from assistant.core.records import TodoItem
from assistant.core.text import lazy_regex

NOTE_TAG = "runtime-note"
RECORD_TAG = "context-record"
# The first words of the recalled memories block.
MEMORY_MARK = "Noted earlier; may bear on this."
SPEAKER_TAG = "speaker"
# Stands above the reminders that were delivered lately.
RECENT_HEADING = "Delivered in the last day:"

_BOUNDARY = lazy_regex(rf"<(?=\s*+/?\s*+(?:{NOTE_TAG}|{RECORD_TAG}|{SPEAKER_TAG})\b)", re.IGNORECASE)
_REPLACEMENT = "\ufffd"
_HIDDEN = lazy_regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def quote_in_tag(tag: str, text: str) -> str:
    """Enclose `text` in a `tag` element that it cannot close."""
    return f"<{tag}>\n{escape_own_tags(text)}\n</{tag}>"


def quote_speaker(name: str, text: str) -> str:
    """Enclose what one of several people said in an element with their name; neither name nor text can forge another
    speaker."""
    speaker = "".join(letter for letter in replace_hidden_characters(name) if letter not in '<>"')
    return f'<{SPEAKER_TAG} name="{speaker}">\n{escape_own_tags(text)}\n</{SPEAKER_TAG}>'


def escape_own_tags(text: str) -> str:
    """Escape our own tags in `text`."""
    return _BOUNDARY.sub("&lt;", text) if "<" in text and _BOUNDARY.search(text) else text


def replace_hidden_characters(text: str) -> str:
    """Replace characters that could hide or reorder the text around them: control characters except tab and line ends,
    line separators, direction overrides."""
    return _HIDDEN.sub(_REPLACEMENT, text)


def replace_unsendable(text: str) -> str:
    """Make `text` valid for a request: replace NUL and lone surrogates, join surrogate pairs."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_sendable_json(value: Any) -> bool:
    """Return whether `replace_unsendable_in_json` would change nothing."""
    # Loops, and the types that JSON is read as: much faster than what takes any.
    kind = type(value)
    if kind is str:
        return replace_unsendable(value) is value
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or replace_unsendable(key) is not key or not is_sendable_json(item):
                return False
        return True
    if kind is list:
        return all(is_sendable_json(item) for item in value)
    return value is None or kind in (int, float, bool)


def replace_unsendable_in_json(value: Any) -> Any:
    """Apply `replace_unsendable` to all strings of a JSON value, including keys."""
    if isinstance(value, str):
        return replace_unsendable(value)
    if isinstance(value, Mapping):
        return {replace_unsendable(str(key)): replace_unsendable_in_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_unsendable_in_json(item) for item in value]
    return value


FAILURE_PREFIX = "Error: "
FOREIGN_TEXT = "Another program says of it:"
"""Precedes text of an external program in a list that is otherwise our own."""
_NO_RESULT = lazy_regex(rf"{FAILURE_PREFIX}|\[?(?:aborted|interrupted|failed)\b")

_UNSAFE = lazy_regex("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_UNSAFE_IN_BLOCK = lazy_regex("[\x00-\x08\x0e-\x1b\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_STRING = r'"(?:[^"\\]|\\.)*"'
_QUOTE_LINE = lazy_regex(rf"#(\d+) (\w+ \d{{4}}-\d\d-\d\d \d\d:\d\d) (\w+|(?=\"))(?: ?({_STRING}))?: ({_STRING})")
_READ_MESSAGE = lazy_regex(
    rf"^#(?P<id>\d+) (?P<when>\w+ \d{{4}}-\d\d-\d\d \d\d:\d\d) (?P<role>\w+)(?: {_STRING})?, session {_STRING}:\n"
    r"(?P<lines>(?:> .*\n?)+)",
    re.MULTILINE,
)
_TODO_LINE = lazy_regex(
    rf"- \[([ x])\] (\d+): ({_STRING})(?:, list ({_STRING}))?(?:, due ([\w :-]+))?(?:, done [\w :-]+)?"
)
_CHANGE_LINE = lazy_regex(r"(Added|Completed|Reopened|Removed|Changed): (\d+(?:, \d+)*)")
_LIST_HEADING = lazy_regex(rf"To-do list(?: {_STRING})?: (\d+) open")


@dataclass(frozen=True, slots=True)
class QuotedMessage:
    """A quoted message."""

    message_id: int
    when: str  # local time, e.g. "Fri 2026-11-20 09:14"
    speaker: str  # the role
    text: str  # may be an excerpt, with "…" for omissions
    name: str | None = None  # of the person in a room, or of the tool


@dataclass(frozen=True, slots=True)
class TodoLine:
    id: int
    text: str
    done: bool = False
    list: str = ""  # its name; "" for the default list
    due: str = ""  # formatted for people


@dataclass(frozen=True, slots=True)
class TodoListResult:
    """A parsed to-do result."""

    lines: tuple[TodoLine, ...]
    change: str = ""  # "Added", "Completed", "Reopened", "Removed", "Changed"; "" if nothing changed
    changed: tuple[int, ...] = ()
    open: int = 0  # number of open items, including those not shown


def is_failed_result(result: str) -> bool:
    """Return whether a tool result reports a failure or an interruption."""
    return _NO_RESULT.match(result) is not None


def quote_text(text: str) -> str:
    """Quote `text` as a single-line JSON string."""
    whole = text.encode("utf-8", "replace").decode()
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(whole, ensure_ascii=False))


def quote_block(text: str) -> str:
    """Quote `text` as a block with "> " before every line, for any kind of line end."""
    lines = text.encode("utf-8", "replace").decode().splitlines() or [""]
    return "\n".join("> " + _UNSAFE_IN_BLOCK.sub("\N{REPLACEMENT CHARACTER}", line) for line in lines)


# A list line with quoted text: "#12 2026-03-01 user: ...", "[m4] 2026-03-01: ...", "- file ...".
_LISTED = lazy_regex(r"(?:#\d+|\[[^\]\s]+\]|- \w+) .*\"")
_QUOTED = lazy_regex(r'"(?:[^"\\]|\\.)*"')


def quoted_words(result: str) -> str:
    """Return only the quoted text of a tool result, or the whole result if it quotes nothing."""
    lines = result.split("\n")
    block = [line[2:] for line in lines if line.startswith("> ")]
    listed = [match[0] for line in lines if _LISTED.match(line) for match in _QUOTED.finditer(line)]
    return "\n".join(block) or "\n".join(map(_unquoted, listed)) or result


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text


def fit_quote_block(text: str, max_bytes: int) -> str:
    """Return a prefix of `text` (at least one character) whose block takes at most about `max_bytes` of UTF-8."""
    piece = text[:max_bytes]
    while (size := len(quote_block(piece).encode())) > max_bytes and len(piece) > 1:
        piece = piece[: max(1, len(piece) * max_bytes // size)]
    return piece


def format_quote(quote: QuotedMessage) -> str:
    """Format a quote line. A user with a name is shown by name only."""
    role = quote.speaker if quote.speaker != "user" or not quote.name else ""
    speaker = f"{role} {quote_text(quote.name) if quote.name else ''}".strip()
    return f"#{quote.message_id} {quote.when} {speaker}: {quote_text(quote.text)}"


def parse_quotes(result: str) -> list[QuotedMessage]:
    """Parse the quote lines of a result, in order."""
    matches = (_QUOTE_LINE.fullmatch(line) for line in result.split("\n"))
    return [
        QuotedMessage(int(m[1]), m[2], m[3] or "user", json.loads(m[5]), json.loads(m[4]) if m[4] else None)
        for m in matches
        if m
    ]


def parse_read_messages(result: str) -> list[QuotedMessage]:
    """Parse the messages in a `read_history` result, in order; edits and deletions are skipped."""
    blocks = ((match, match["lines"].split("\n")) for match in _READ_MESSAGE.finditer(result))
    return [
        QuotedMessage(int(match["id"]), match["when"], match["role"], "\n".join(line[2:] for line in lines).strip())
        for match, lines in blocks
    ]


def format_todos(
    open_todos: Iterable[TodoItem],
    zone: tzinfo,
    *,
    list_name: str = "",
    change: str = "",
    changed: Iterable[TodoItem] = (),
    done: Iterable[TodoItem] = (),
    limit: int = 100,
) -> str:
    """Format a to-do list, preceded by the change made and followed by recently `done` items; at most `limit` open
    items are shown."""
    todos = list(open_todos)
    ids = ", ".join(str(todo.id) for todo in changed)
    lines = [f"{change}: {ids}"] if change and ids else []
    lines.append(f"To-do list{f' {quote_text(list_name)}' if list_name else ''}: {len(todos)} open")
    lines += [format_todo(todo, zone) for todo in todos[:limit]]
    if len(todos) > limit:
        lines.append(f"(… {len(todos) - limit} more, not shown)")
    return "\n".join([*lines, *(format_todo(todo, zone) for todo in done)])


def format_todo(todo: TodoItem, zone: tzinfo) -> str:
    """Format one to-do as a line."""
    on_list = f", list {quote_text(todo.list)}" if todo.list else ""
    due = f", due {format_due(todo.due)}" if todo.due else ""
    done = f", done {format_moment(todo.done_at.replace(second=0), zone)}" if todo.done and todo.done_at else ""
    return f"- [{'x' if todo.done else ' '}] {todo.id}: {quote_text(todo.text)}{on_list}{due}{done}"


def parse_todos(result: str) -> TodoListResult | None:
    """Parse a to-do result; None if it is none (e.g. a failed or aborted call)."""
    lines = result.split("\n")
    heading = next((m for line in lines if (m := _LIST_HEADING.fullmatch(line))), None)
    if heading is None:
        return None
    change = _CHANGE_LINE.fullmatch(lines[0])
    matches = (_TODO_LINE.fullmatch(line) for line in lines)
    return TodoListResult(
        lines=tuple(
            TodoLine(int(m[2]), json.loads(m[3]), m[1] == "x", json.loads(m[4] or '""'), m[5] or "")
            for m in matches
            if m
        ),
        change=change[1] if change else "",
        changed=tuple(int(number) for number in change[2].split(", ")) if change else (),
        open=int(heading[1]),
    )
