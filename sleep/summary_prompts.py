"""How a model is asked for a summary: our instructions, and what was said as quoted material. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import Template

from assistant.context.quote import RECORD, quoted, safe
from assistant.context.structure import block_starts
from assistant.messages import Message
from assistant.requests import Request, SystemBlock
from sleep.summary import Material

Count = Callable[[str], int]

FIRMER = (
    "Your last answer could not be used: {why}. Answer again in exactly the form asked for, within the length asked "
    "for, in the language of the conversation."
)
_TOOL_CHARACTERS = 1_000
_NO_OUTPUT = "(no words)"


@dataclass(frozen=True, slots=True)
class SummaryPrompts:
    """The texts of `config/prompts/`, or the home's own. `$budget`, `$last` and `$focus` stand for what they say."""

    summary: str
    merge: str
    prefix: str


def chunk_request(
    prompts: SummaryPrompts, material: Material, transcript: str, so_far: str, max_output: int, why: str = ""
) -> Request:
    """The request for one chunk; `so_far` is what was summarised of earlier ones, `why` what was wrong with the last
    answer."""
    template = prompts.merge if material.depth > 1 else prompts.summary
    parts = [Template(template).safe_substitute(budget=material.budget, focus=material.focus, last="").strip()]
    if material.focus:
        parts.append(f"Above all the person wants this kept in mind: {quoted(RECORD, safe(material.focus))}")
    if material.tasks:
        parts.append(f"Open, and to be named in the record:\n{quoted(RECORD, _points(material.tasks))}")
    if material.known:
        parts.append(f"Known already:\n{quoted(RECORD, _points(material.known))}")
    if material.earlier:
        parts.append(f"Told already, in records that stay:\n{quoted(RECORD, safe(material.earlier))}")
    words = [f"The conversation:\n{quoted(RECORD, transcript)}"]
    if so_far:
        words.insert(
            0, f"Your record so far, to be carried on and answered as a whole:\n{quoted(RECORD, safe(so_far))}"
        )
    if why:
        words.append(FIRMER.format(why=why))
    return Request(
        (SystemBlock("\n\n".join(parts)),), (Message("user", "\n\n".join(words)),), max_output_tokens=max_output
    )


def prefix_words(prompts: SummaryPrompts, material: Material) -> str:
    """What is appended to a prompt that the provider still has."""
    last = next((row.id for row in reversed(material.rows) if row.id is not None), 0)
    focus = f"Above all keep in mind: {safe(material.focus)}\n" if material.focus else ""
    tasks = f"Open, and to be named in the record:\n{_points(material.tasks)}\n" if material.tasks else ""
    known = (
        f"Known already, not to be repeated among the memories:\n{_points(material.known)}\n" if material.known else ""
    )
    asked = Template(prompts.prefix).safe_substitute(budget=material.budget, last=last, focus=focus + tasks + known)
    return asked.strip()


def shown(row: Message, limit: int | None = None) -> str:
    """One row as a paragraph: who, when, which, its words, its calls, its pictures by name. `limit` in characters."""
    number = row.id or row.metadata.get("carried_from")
    head = " ".join(
        [f"#{number}" if number else "earlier", f"{row.ts:%Y-%m-%d %H:%M}" if row.ts else "", _who(row)]
    ).replace("  ", " ")
    words = safe(row.content).strip()
    most = _TOOL_CHARACTERS if row.role == "tool" else limit
    if most is not None and len(words) > most:
        half = most // 2
        words = f"{words[:half]} […{len(words) - most} characters…] {words[-half:]}"
    calls = "".join(f" [calls {call.name} {dict(call.arguments)}]"[:300] for call in row.tool_calls)
    pictures = "".join(f" [{medium.kind}: {medium.name or medium.mime}]" for medium in row.media)
    return f"{head}: {words or ('' if calls or pictures else _NO_OUTPUT)}{calls}{pictures}"


def described(row: Message, tokens: int) -> str:
    """A row that is too large to be sent, by what is known of it."""
    words = " ".join(safe(row.content).split())[:200]
    number = row.id or row.metadata.get("carried_from")
    return f"#{number} {_who(row)}: [a message of about {tokens} tokens, not shown; it begins: {words}…]"


def chunks(rows: Sequence[Message], most: int, count: Count, *, partial: bool) -> list[str]:
    """The rows as transcripts of at most `most` tokens each, calls and their results together. One that is larger by
    itself is shown with both its ends, or, in a partial summary, only described."""
    starts = [*block_starts(rows), len(rows)]
    made: list[list[str]] = [[]]
    used = 0
    for start, end in pairwise(starts):
        texts = [_fitted(row, most, count, partial=partial) for row in rows[start:end]]
        size = sum(count(text) + 2 for text in texts)
        if used and used + size > most:
            made.append([])
            used = 0
        made[-1] += texts
        used += size
    return ["\n\n".join(texts) for texts in made if texts]


def _fitted(row: Message, most: int, count: Count, *, partial: bool) -> str:
    text = shown(row)
    tokens = count(text)
    if tokens <= most // 2:
        return text
    if partial:
        return described(row, tokens)
    return shown(row, limit=max(400, len(text) * most // (2 * tokens) - 100))


def _who(row: Message) -> str:
    match row.role:
        case "tool":
            return f"result of {row.name or 'a tool'}"
        case "system":
            return "note"
        case role:
            return role


def _points(lines: Sequence[str]) -> str:
    return "\n".join(f"- {safe(' '.join(line.split()))[:400]}" for line in lines)
