"""Parses a model's answer to a summary request: the summary, or why it is unusable. Pure.

An answer replaces history only if it is complete text within its length and nothing else: an empty answer, a refusal, a
tool call, noise, one that was cut off or is no shorter than its source is rejected (F12, F25). Accepted text cannot
imitate our delimiters: it opens or closes no tag and begins no section (F19).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce

from assistant.core.dataclass import dataclass
from assistant.core.messages import SUMMARY_MARKER
from assistant.core.model_api import ModelReply
from assistant.core.quoting import escape_own_tags, replace_unsendable
from assistant.core.text import lazy_regex
from sleep.rules.pattern_files import load_pattern

Count = Callable[[str], int]

FACT_KINDS = ("decisions", "preferences", "facts", "entities", "identifiers")

DECLINED = "the model declined"
EMPTY = "the answer was empty"
UNTAGGED = "the answer was no record: it had no <summary>"
NOISE = "the answer was noise"
CUT_OFF = "the answer was cut off"
CALLED_TOOL = "the model called a tool"

_OPENING = lazy_regex(r"<summary\s*>", re.IGNORECASE)
_CLOSING = lazy_regex(r"</summary\s*>", re.IGNORECASE)
_AFTER = lazy_regex(r"</?(?:memories|facts)\s*>", re.IGNORECASE)
_MEMORIES = lazy_regex(r"<memories\s*>(.*?)(?:</memories\s*>|(?=<facts\s*>)|\Z)", re.DOTALL | re.IGNORECASE)
_FACTS = lazy_regex(r"<facts\s*>(.*?)(?:</facts\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = lazy_regex(r"<(?=/?(?:summary|memories|facts)\s*>)", re.IGNORECASE)
_MARKER = lazy_regex(re.escape(SUMMARY_MARKER), re.IGNORECASE)
_FENCE = lazy_regex(r"\A```[\w-]*\n(.*?)\n?(?:```)?\Z", re.DOTALL)
_BULLET = lazy_regex(r"^\s*(?:[-*•]|\d+[.)])\s+")
_NONE = frozenset({"", "none", "(none)", "none.", "n/a", "empty", "…", "..."})
_FACT_LINE = lazy_regex(rf"^\W*({'|'.join(FACT_KINDS)})\W*[:：][*_\s]*(.+)$", re.IGNORECASE)
_REFUSAL = load_pattern("summary", "refusal")
_LONGEST_REFUSAL = 400
_LONGEST_MEMORY = 400
_MOST_MEMORIES = 40
_MOST_FACTS = 40
_SHORTEST = 20
# Prose compresses to about half; text that compresses to less than a tenth is repetitive.
_PACKED = 0.1
_PACKED_FROM = 100
_PACKING = 20
_LEAST_LETTERS = 0.4
_LEAST_DISTINCT = 6
# ASCII words of this length occur only as URLs and paths.
_LONG_WORD = 50
_PLACE = lazy_regex(r"://|^[~.]*/")
# An answer up to this factor too long is truncated to its budget; a longer one is rejected.
_TOO_LONG = 2.0


@dataclass(frozen=True, slots=True)
class SummaryAnswer:
    """A usable answer, without our tags."""

    text: str
    memories: tuple[str, ...] = ()
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by kind, see FACT_KINDS


def parse_summary_answer(reply: ModelReply) -> SummaryAnswer | str:
    """Return the answer, or a short reason why it is unusable."""
    content = _unfenced(reply.message.content.strip())
    if reply.stop == "refusal" or reply.message.metadata.get("refusal"):
        return DECLINED
    if reply.message.tool_calls:
        return CALLED_TOOL
    if not content:
        return EMPTY
    body, rest, whole = _parts(content)
    if reply.stop == "max_tokens" and not whole:
        return CUT_OFF
    text = escape_boundaries(_unfenced(body))
    if len(text) < (_SHORTEST if text.isascii() else _SHORTEST // 4):
        return EMPTY
    if len(text) < _LONGEST_REFUSAL and _REFUSAL.match(text):
        return DECLINED
    if is_noise(text):
        return NOISE
    if not _OPENING.search(content):
        # Text without the requested form answers something else, e.g. is a question back.
        return UNTAGGED
    return SummaryAnswer(text, tuple(_memories(rest)), _facts(rest))


def limit_answer(answer: SummaryAnswer, budget: int, source: int, count: Count) -> SummaryAnswer | str:
    """Return the answer in at most `budget` tokens, truncated if slightly too long; or a reason if it is much too long
    or no shorter than its source (`source` tokens) (F25)."""
    tokens = count(answer.text)
    if tokens >= source:
        return f"the answer took {tokens} tokens, no fewer than the messages it summarises ({source})"
    if tokens > _TOO_LONG * budget:
        return f"the answer took {tokens} tokens where {budget} were asked for"
    return answer if tokens <= budget else replace(answer, text=fit_to_tokens(answer.text, budget, count))


def merge_answers(earlier: SummaryAnswer, later: SummaryAnswer) -> SummaryAnswer:
    """Return the later answer, which covers everything, with the earlier memories and facts added."""
    facts = {
        kind: tuple(dict.fromkeys((*earlier.facts.get(kind, ()), *later.facts.get(kind, ()))))[:_MOST_FACTS]
        for kind in FACT_KINDS
        if kind in earlier.facts or kind in later.facts
    }
    return replace(later, memories=tuple(dict.fromkeys((*earlier.memories, *later.memories))), facts=facts)


def append_answers(answers: Sequence[SummaryAnswer]) -> SummaryAnswer:
    """Concatenate answers that each cover a part."""
    whole = reduce(merge_answers, answers)
    return replace(whole, text="\n\n".join(answer.text for answer in answers))


def fit_to_tokens(text: str, max_tokens: int, count: Count) -> str:
    """Return as many whole lines as fit into `max_tokens`; a prefix if not even the first line fits."""
    if count(text) <= max_tokens:
        return text
    lines: list[str] = []
    left = max_tokens
    for line in text.splitlines():
        left -= count(f"{line}\n")
        if left < 0:
            break
        lines.append(line)
    if any(line.strip() for line in lines):
        return "\n".join(lines)
    length = len(text)
    while length and count(text[:length]) > max_tokens:
        length = length * 3 // 4
    return text[:length]


def escape_boundaries(text: str) -> str:
    """Escape our delimiters in a summary, and remove what a request cannot carry."""
    return escape_own_tags(_TAG.sub("&lt;", _MARKER.sub("(context summary)", replace_unsendable(text)))).strip()


def is_noise(text: str) -> bool:
    """Return whether text cannot be prose: hardly any letters, highly repetitive, or mostly one long word."""
    letters = sum(character.isalpha() or character.isspace() for character in text)
    if letters < _LEAST_LETTERS * len(text) or (len(text) >= _SHORTEST and len(set(text.casefold())) < _LEAST_DISTINCT):
        return True
    raw = text.encode("utf-8", "replace")
    if len(raw) >= _PACKED_FROM and len(zlib.compress(raw)) - _PACKING < _PACKED * len(raw):
        return True
    long = (word for word in text.split() if len(word) >= _LONG_WORD and not _PLACE.search(word))
    return text.isascii() and sum(map(len, long)) > len(text) // 2


def _parts(content: str) -> tuple[str, str, bool]:
    """Return the summary, the rest, and whether the summary is terminated. Tags quoted within the summary belong to it:
    the last closing tag before the other parts ends it."""
    opening = _OPENING.search(content)
    start = opening.end() if opening else 0
    after = _AFTER.search(content, start)
    end = after.start() if after else len(content)
    closings = list(_CLOSING.finditer(content, start, end))
    if closings:
        return content[start : closings[-1].start()], content[closings[-1].end() :], True
    return content[start:end], content[end:], after is not None


def _unfenced(text: str) -> str:
    fenced = _FENCE.match(text.strip())
    return fenced[1].strip() if fenced else text


def _memories(content: str) -> list[str]:
    part = _MEMORIES.search(content)
    lines = [_BULLET.sub("", line).strip() for line in part[1].splitlines()] if part else []
    memories = [escape_boundaries(line)[:_LONGEST_MEMORY] for line in lines if line.strip("-•*` ").lower() not in _NONE]
    return list(dict.fromkeys(filter(None, memories)))[:_MOST_MEMORIES]


def _facts(content: str) -> dict[str, tuple[str, ...]]:
    part = _FACTS.search(content)
    facts: dict[str, list[str]] = {}
    for line in part[1].splitlines() if part else []:
        match = _FACT_LINE.match(line)
        if match:
            values = [escape_boundaries(value) for value in re.split(r"[;；]", match[2])]
            facts.setdefault(match[1].lower(), []).extend(value for value in values if value.lower() not in _NONE)
    return {kind: tuple(dict.fromkeys(facts[kind]))[:_MOST_FACTS] for kind in FACT_KINDS if facts.get(kind)}


class SummaryUnusable(Exception):
    """No usable summary; the text says why."""


class SummaryOverflow(SummaryUnusable):
    """The request does not fit."""


class BadSummaryAnswer(SummaryUnusable):
    """The answer is not a summary."""
