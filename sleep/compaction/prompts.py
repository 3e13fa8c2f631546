"""Builds the requests for summaries: our instructions, and quoted material. Pure.

- The system prompt is independent of the material (I10). Additional context (open tasks, known facts, earlier
  summaries) is bounded, so that the request size is known before the call (F05).
- In a transcript each message is one paragraph with a heading (id, date, speaker). Only headings start at the beginning
  of a line, so no text can imitate another message (F26); our tags are escaped (F19). Calls are kept with their
  results; tool results are shortened, pictures are named and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from string import Template

from assistant.context.structure import block_starts
from assistant.core.dataclass import dataclass
from assistant.core.messages import Media, Message
from assistant.core.model_api import ModelRequest, SystemBlock
from assistant.core.quoting import RECORD_TAG, quote_in_tag
from assistant.core.text import pluralize
from sleep.compaction.answer import escape_boundaries
from sleep.compaction.draft_view import original_id
from sleep.compaction.values import SummaryInput

Count = Callable[[str], int]

RETRY_INSTRUCTION = (
    "Your last answer could not be used: {why}. Answer again, in exactly the form asked for, within the length asked "
    "for, in the language of the conversation, and call no tool."
)
_ANSWER_NOW = "That is all of it. Answer now in the form asked for."
_LONGEST_POINT = 400
_OPENING_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class SummaryPrompts:
    """The texts of `config/prompts/`, or the user's own. `$budget` is replaced by the token limit of the summary."""

    summary: str
    merge: str
    prefix: str  # `$until` is replaced by the beginning of the last message to summarise


def build_summary_request(
    prompts: SummaryPrompts,
    material: SummaryInput,
    transcript: str,
    count: Count,
    *,
    summary_so_far: str,
    last_error: str,
    max_context_tokens: int,
    max_output: int,
) -> ModelRequest:
    """Return the request for one chunk (`transcript`), with the summary of earlier chunks and the error of the last
    attempt ("" if none). Additional context takes at most `max_context_tokens`."""
    what = "The records" if material.depth > 1 else "The conversation"
    words = [*_extra_context(material, max_context_tokens, count, earlier=True)]
    if summary_so_far:
        so_far = quote_in_tag(RECORD_TAG, escape_boundaries(summary_so_far))
        words.append(f"Your record so far, to be carried on and answered as a whole:\n{so_far}")
    words.append(f"{what}:\n{quote_in_tag(RECORD_TAG, transcript)}")
    words.append(RETRY_INSTRUCTION.format(why=last_error) if last_error else _ANSWER_NOW)
    system = SystemBlock(render_instructions(prompts, material), cache_boundary=True)
    return ModelRequest((system,), (Message("user", "\n\n".join(words)),), max_output_tokens=max_output)


def render_instructions(prompts: SummaryPrompts, material: SummaryInput) -> str:
    """Return the prompt for a summary, or for merging summaries, with its budget in tokens."""
    template = prompts.merge if material.depth > 1 else prompts.summary
    return Template(template).safe_substitute(budget=material.budget).strip()


def render_cached_prompt_question(
    prompts: SummaryPrompts, material: SummaryInput, max_context_tokens: int, count: Count
) -> str:
    """Return the question to append to a prompt in the provider's cache, which already has earlier summaries."""
    until = next((row.content for row in reversed(material.rows) if _is_said(row)), "")
    begins = " ".join(escape_boundaries(until[: 4 * _OPENING_CHARACTERS]).split())[:_OPENING_CHARACTERS]
    question = Template(prompts.prefix).safe_substitute(budget=material.budget, until=begins).strip()
    return "\n\n".join([*_extra_context(material, max_context_tokens, count, earlier=False), question])


def _extra_context(material: SummaryInput, most: int, count: Count, *, earlier: bool) -> list[str]:
    """Return the additional context: what to mention and what not to repeat; each list gets a quarter of the room."""
    parts: list[str] = []
    if material.focus.strip():
        focus = shorten_middle(escape_boundaries(material.focus), most // 4, count)
        parts.append(f"Above all the person wants this kept:\n{quote_in_tag(RECORD_TAG, focus)}")
    for head, lines in (("Open, to be named in the record", material.tasks), ("Known already", material.known_facts)):
        if lines:
            parts.append(f"{head}:\n{quote_in_tag(RECORD_TAG, shorten_middle(_points(lines), most // 4, count))}")
    if earlier and material.earlier_summaries.strip():
        earlier_words = shorten_middle(escape_boundaries(material.earlier_summaries), most // 4, count)
        parts.append(f"Told already, in records that stay:\n{quote_in_tag(RECORD_TAG, earlier_words)}")
    return parts


def _is_said(row: Message) -> bool:
    return row.role in ("user", "assistant") and bool(row.content.strip()) and not row.metadata.get("internal")


def _points(lines: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(escape_boundaries(line).split())[:_LONGEST_POINT]}" for line in lines)


_TOOL_TOKENS = 300
_CALL_CHARACTERS = 300
_NAME_CHARACTERS = 80
_DESCRIPTION_CHARACTERS = 200
_LEAST_HALF = 20
_NO_WORDS = "(no words)"


def split_transcript(rows: Sequence[Message], most: int, count: Count, *, partial: bool) -> list[str]:
    """Split rows into transcripts of about `most` tokens, keeping calls with their results if possible. A larger row is
    truncated to both ends, or only described in a partial summary."""
    made: list[list[str]] = [[]]
    used = 0
    for texts in _units([row for row in rows if not row.metadata.get("internal")], most, count, partial):
        size = _size(texts, count)
        if used and used + size > most:
            made.append([])
            used = 0
        made[-1] += texts
        used += size
    return ["\n\n".join(texts) for texts in made if texts]


def split_evenly(texts: Sequence[str], most: int) -> list[Sequence[str]]:
    """Split into at most `most` contiguous groups of nearly equal length."""
    groups = min(most, len(texts))
    edges = [len(texts) * n // groups for n in range(groups + 1)]
    return [texts[start:end] for start, end in pairwise(edges)]


def render_row(row: Message, most: int, count: Count) -> str:
    """Render a row as a paragraph of about `most` tokens: heading, text (both ends), calls, and media names."""
    calls = "".join(f" [{_one_line(f'calls {call.name} {dict(call.arguments)}')}]" for call in row.tool_calls)
    beside = f"{calls}{describe_media(row.media)}"
    allowed = min(most, _TOOL_TOKENS) if row.role == "tool" else most
    words = shorten_middle(_indented(row.content), allowed - count(f"{render_heading(row)}: {beside}"), count)
    return f"{render_heading(row)}: {words or ('' if beside else _NO_WORDS)}{beside}"


def describe_row(row: Message, tokens: int) -> str:
    """Describe a row that is too large to be sent."""
    begins = " ".join(escape_boundaries(row.content[: 2 * _DESCRIPTION_CHARACTERS]).split())[:_DESCRIPTION_CHARACTERS]
    return f"{render_heading(row)}: [about {tokens} tokens, not shown; it begins: {begins}…]{describe_media(row.media)}"


def render_heading(row: Message) -> str:
    """Return `#12 2026-03-04 09:15 user`; a summary used as material has no id."""
    number = original_id(row)
    when = f" {row.ts:%Y-%m-%d %H:%M}" if row.ts and number else ""
    match row.role:
        case "tool":
            who = f"result of {_one_line(row.name or 'a tool')}"
        case "system":
            who = "note"
        case "user" if row.name:
            who = f"user {_one_line(row.name)}"
        case role:
            who = role
    return f"#{number}{when} {who}" if number else f"Record{when}"


def describe_media(media: Sequence[Media]) -> str:
    """Return ` [2 pictures: boat.jpg, crew.jpg] [1 file: map.pdf]`."""
    words = ""
    for kind, noun in (("image", "picture"), ("file", "file")):
        names = [_one_line(medium.name or medium.mime)[:_NAME_CHARACTERS] for medium in media if medium.kind == kind]
        if names:
            words += f" [{pluralize(len(names), noun)}: {', '.join(names)}]"
    return words


def shorten_middle(text: str, most: int, count: Count) -> str:
    """Shorten to about `most` tokens by replacing the middle with a note of its length."""
    tokens = count(text)
    if tokens <= most:
        return text
    half = len(text) * max(0, most) // tokens // 2
    while half > _LEAST_HALF and count(_ends(text, half)) > most:
        half = half * 4 // 5
    return _ends(text, max(half, _LEAST_HALF))


def _ends(text: str, half: int) -> str:
    if 2 * half >= len(text):
        return text
    return f"{text[:half]} [… {len(text) - 2 * half} characters left out …] {text[len(text) - half :]}"


def _units(rows: Sequence[Message], most: int, count: Count, partial: bool) -> Iterator[list[str]]:
    """Yield indivisible groups: blocks that fit into a chunk, further shortened if necessary."""
    starts = sorted({0, *block_starts(rows)}) if rows else []
    for start, end in pairwise([*starts, len(rows)]):
        block = rows[start:end]
        texts = [_fitted(row, most, count, partial) for row in block]
        if _size(texts, count) > most and len(block) > 1:
            texts = [render_row(row, most // len(block) - 2, count) for row in block]
        if _size(texts, count) <= most:
            yield texts
        else:
            yield from ([text] for text in texts)


def _fitted(row: Message, most: int, count: Count, partial: bool) -> str:
    tokens = count(row.content)
    if partial and row.role != "tool" and tokens > most:
        return describe_row(row, tokens)
    return render_row(row, most, count)


def _size(texts: Sequence[str], count: Count) -> int:
    return sum(count(f"{text}\n\n") for text in texts)


def _indented(text: str) -> str:
    return "\n  ".join(escape_boundaries(text).splitlines())


def _one_line(text: str) -> str:
    return " ".join(escape_boundaries(text).split())[:_CALL_CHARACTERS]
