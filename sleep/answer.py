"""What a model answered when it was asked for a summary: the summary in it, or why there is none. Pure.

An answer replaces history only where it is words, shorter than its source, whole, and nothing else: an empty one, a
refusal, a tool call, noise, or one that was cut off is no summary (F12).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from assistant.context.quote import defused
from assistant.messages import SUMMARY_MARKER
from assistant.requests import Reply

KINDS = ("decisions", "preferences", "entities", "identifiers")

_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|(?=<memories>|<facts>)|\Z)", re.DOTALL | re.IGNORECASE)
_MEMORIES = re.compile(r"<memories>(.*?)(?:</memories>|\Z)", re.DOTALL | re.IGNORECASE)
_FACTS = re.compile(r"<facts>(.*?)(?:</facts>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?(?:summary|memories|facts)\s*>", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_FACT_LINE = re.compile(rf"^\W*({'|'.join(KINDS)})\W*:\s*(.+)$", re.IGNORECASE)
_REFUSAL = re.compile(
    r"^\W*(?:i'?m sorry|i am sorry|sorry,|i (?:can(?:no|')t|am unable to|won'?t)|as an ai\b|es tut mir leid"
    r"|je suis désolé|lo siento|抱歉|申し訳)",
    re.IGNORECASE,
)
_LONGEST_MEMORY = 400
_MOST_MEMORIES = 40
_MOST_FACTS = 40
_SHORTEST = 20
# Prose packs to about half; what packs to less than a tenth says the same again and again.
_PACKED = 0.1
_PACKED_FROM = 400
_LEAST_LETTERS = 0.4


@dataclass(frozen=True, slots=True)
class Answer:
    """A usable answer. `facts` by kind; `text` has no tags, and cannot close our boundaries."""

    text: str
    memories: tuple[str, ...] = ()
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_answer(reply: Reply) -> Answer | str:
    """The answer, or in a few words why it is none."""
    content = reply.message.content
    if reply.stop == "refusal":
        return "the model declined"
    if reply.message.tool_calls:
        return "the model called a tool"
    if not content.strip():
        return "the answer was empty"
    found = _SUMMARY.search(content)
    text = found[1] if found else _without_parts(content)
    text = clean(text)
    if reply.stop == "max_tokens" and (found is None or "</summary>" not in content.lower()):
        return "the answer was cut off"
    if len(text) < _SHORTEST and not _is_dense(text):
        return "the answer was empty"
    if found is None and _REFUSAL.match(text):
        return "the model declined"
    if is_noise(text):
        return "the answer was noise"
    return Answer(text, tuple(_memories(content)), _facts(content))


def clean(text: str) -> str:
    """Words of a summary that cannot be taken for anything of ours."""
    return defused(_TAG.sub("", text.replace(SUMMARY_MARKER, ""))).strip()


def is_noise(text: str) -> bool:
    """Whether this cannot be prose in any language: hardly any letters, or the same again and again."""
    letters = sum(character.isalpha() or character.isspace() for character in text)
    if letters < _LEAST_LETTERS * len(text):
        return True
    raw = text.encode("utf-8", "replace")
    if len(raw) >= _PACKED_FROM and len(zlib.compress(raw)) < _PACKED * len(raw):
        return True
    longest = max((len(word) for word in text.split()), default=0)
    return text.isascii() and longest > 200 and longest > len(text) // 2


def _is_dense(text: str) -> bool:
    """Few characters say much in some scripts."""
    return len(text) >= _SHORTEST // 4 and not text.isascii()


def _without_parts(content: str) -> str:
    return _FACTS.sub("", _MEMORIES.sub("", content))


def _memories(content: str) -> list[str]:
    found = _MEMORIES.search(content)
    lines = [_BULLET.sub("", line).strip() for line in found[1].splitlines()] if found else []
    kept = [clean(line)[:_LONGEST_MEMORY] for line in lines if line.strip("-•* ").lower() not in ("none", "")]
    return list(dict.fromkeys(line for line in kept if line))[:_MOST_MEMORIES]


def _facts(content: str) -> dict[str, tuple[str, ...]]:
    found = _FACTS.search(content)
    facts: dict[str, list[str]] = {}
    for line in found[1].splitlines() if found else []:
        match = _FACT_LINE.match(line)
        if match:
            values = [clean(value) for value in match[2].split(";")]
            facts.setdefault(match[1].lower(), []).extend(value for value in values if value)
    return {kind: tuple(dict.fromkeys(facts[kind]))[:_MOST_FACTS] for kind in KINDS if facts.get(kind)}
