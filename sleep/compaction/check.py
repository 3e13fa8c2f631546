"""Whether a summary says what it must: deterministic, no model asked (F05, F25). Pure.

What the originals name and the summary does not (tasks, identifiers, numbers, names) is appended word for word, the
most important first, under a budget of its own. What does not fit is in the log, and `aihistory diff` lists it. Of what
tools returned nothing is taken: what mattered of it was said, and nobody's output gets into the record by itself (F26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from assistant.context.truncate import spoken
from assistant.core.messages import Message
from assistant.core.text import lazy_regex
from sleep.compaction.answer import clean
from sleep.compaction.facts import Words, folded, named
from sleep.compaction.summary import Material
from sleep.compaction.transcript import pictures

Count = Callable[[str], int]

KEPT = "Kept word for word:"
_SPOKEN = ("user", "assistant")
_LONGEST_LINE = 240
_LONGEST_TASK = 300
_AROUND = 40
# A line of a record that names the message it is of.
_TOLD_LINE = lazy_regex(r"- #(\d+)(?: \d{4}-\d\d-\d\d)?(?: user| assistant)?: (.+)")
# (kind, who said it), the most important first; of one kind, the person's words come before the assistant's. Names come
# late, since what begins with a capital is in some languages any noun.
_ORDER = [
    ("tasks", "user"), ("identifiers", "user"), ("numbers", "user"), ("identifiers", "assistant"),
    ("names", "user"), ("tasks", "assistant"), ("numbers", "assistant"), ("names", "assistant"),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checked:
    """A summary with what it had left out at its end: `restored` are the lines that were added."""

    text: str
    restored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Lack:
    """A value of a message that the summary does not have."""

    kind: str
    value: str
    row: Message


def check(text: str, material: Material, count: Count, restored_max_tokens: int) -> Checked:
    """The summary, and in at most `restored_max_tokens` more what it does not say."""
    lines: list[str] = []
    left = restored_max_tokens - count(f"\n{KEPT}\n")
    added = ""
    for line, values in _lacking(text, material):
        if values and all(folded(value) in added for value in values):
            continue
        tokens = count(f"{line}\n")
        if tokens > left:
            continue
        left -= tokens
        lines.append(line)
        added += f" {folded(line)}"
    if not lines:
        return Checked(text)
    return Checked("\n".join([text, KEPT, *lines]).strip(), tuple(lines))


def _lacking(text: str, material: Material) -> Iterator[tuple[str, list[str]]]:
    """Lines that say what the summary does not, most important first, each with the values that it is for; none for an
    open task, which is said as a whole."""
    there = Words(text)
    for task in dict.fromkeys(" ".join(one.split()) for one in material.tasks):
        if task and not there.has(task):
            yield f"- open: {_within(task, _LONGEST_TASK)}", []
    shown = pictures([medium for row in material.rows for medium in row.media]).strip()
    if shown and not all(there.has(medium.name) for row in material.rows for medium in row.media if medium.name):
        yield f"- {_within(shown, _LONGEST_TASK)}", []
    lacks = _lacks(there, material)
    for kind, role in _ORDER:
        # The newest first: of what does not fit, the oldest is missed least.
        for found in reversed(lacks.get((kind, role), [])):
            yield from _lines(found)


def _lacks(there: Words, material: Material) -> dict[tuple[str, str], list[list[_Lack]]]:
    """By kind and role, what each message has that the summary has not; each value where it was said first."""
    found: dict[tuple[str, str], list[list[_Lack]]] = {}
    told: set[str] = set()
    for row in _units(material):
        if row.role not in _SPOKEN:
            continue
        of_row: dict[str, list[_Lack]] = {}
        for kind, value in named(row.content):
            if value.casefold() not in told and not there.has(value):
                told.add(value.casefold())
                of_row.setdefault(kind, []).append(_Lack(kind, value, row))
        for kind, lacks in of_row.items():
            found.setdefault((kind, row.role), []).append(lacks)
    return found


def _units(material: Material) -> Iterator[Message]:
    """The messages; of records of messages each line by itself, under the number that it names."""
    if material.depth == 1:
        yield from (replace(row, content=spoken(row)) for row in material.rows)
        return
    for row in material.rows:
        for line in row.content.splitlines():
            told = _TOLD_LINE.match(line.strip())
            if told:
                yield replace(row, content=told[2], id=int(told[1]))
            elif line.strip() != KEPT:
                yield replace(row, content=line)


def _lines(lacks: list[_Lack]) -> Iterator[tuple[str, list[str]]]:
    """What one message has of one kind, in lines that are not too long; each value with the words before it."""
    row = lacks[0].row
    number = row.id or row.metadata.get("carried_from")
    head = f"- #{number}: " if number else "- earlier: "
    parts: list[str] = []
    values: list[str] = []
    for lack in lacks:
        if any(folded(lack.value) in folded(part) for part in parts):
            values.append(lack.value)
            continue
        part = _within(lack.value, _LONGEST_TASK) if lack.kind == "tasks" else _with_context(row.content, lack.value)
        if parts and len(head) + sum(len(one) + 2 for one in parts) + len(part) > _LONGEST_LINE:
            yield head + "; ".join(parts), values
            parts, values = [], []
        parts.append(part)
        values.append(lack.value)
    yield head + "; ".join(parts), values


def _with_context(content: str, value: str) -> str:
    """The value with the words before it: a bare number says nothing."""
    flat, wanted = " ".join(content.split()), " ".join(value.split())
    at = flat.find(wanted)
    if at < 0:
        return _within(wanted, _LONGEST_TASK)
    start = max(0, at - _AROUND)
    if start and (space := flat.find(" ", start, at)) >= 0:
        start = space + 1
    return clean(flat[start : at + len(wanted)])


def _within(text: str, most: int) -> str:
    flat = clean(" ".join(text.split()))
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
