"""What a person's own words tell about them, by rules alone: the journal of a house without a model. Pure.

What always holds: only the person's own words, as they said them, in their order; never a question, an order, something
supposed, a quotation, pasted text, code or small talk. What is not taken stays findable in the master log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from assistant.core.text import lazy_regex
from sleep.rules import clauses as of
from sleep.rules.corrections import announces, tells_of_change
from sleep.rules.evidence import is_dated, kind_of, names_something
from sleep.rules.fragments import together
from sleep.rules.importance import importance
from sleep.rules.parts import Beside, is_short, lasting
from sleep.rules.requests import asks_for_doing
from sleep.rules.sentences import Sentence, sentences
from sleep.rules.tongues import kind_elsewhere
from sleep.rules.voice import own_voice

Kind = Literal["fact", "preference", "decision", "task"]

_LONGEST_TEXT = 20_000
_LONGEST = 400
_SHORTEST_CJK = 5
_CJK = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Found:
    """What is worth keeping, word for word; `importance` 0 to 1. `corrects` what was said before; `hangs` on what was
    said before, since its subject is only a pronoun."""

    kind: Kind
    content: str
    importance: float
    corrects: bool = False
    hangs: bool = False


def facts(text: str, *, noted: bool = False) -> list[Found]:
    """What a user's message tells, in its order, each sentence once. `noted`: whoever was told took note of it."""
    said = together(sentences(own_voice(text[:_LONGEST_TEXT])))
    found = {one.content: one for one in _joined(said, noted=noted)}
    return list(found.values())


def _joined(said: Sequence[Sentence], *, noted: bool) -> Iterator[Found]:
    """What is said of "her" stands behind the sentence that says who she is."""
    last: Found | None = None
    before, asked, announced = "", "", False
    for sentence in said:
        one = _told(sentence, Beside(announced=announced, follows=last is not None, noted=noted))
        if one is not None and last is not None and one.hangs and len(last.content) + len(one.content) < _LONGEST:
            last = _of_one(last, one)
        else:
            if last is not None:
                yield last
            last = _behind(before, asked, one) if one is not None and one.hangs else one
        small = of.is_small(sentence.own)
        states = not (sentence.is_question or of.orders(sentence.own) or small)
        before, asked = f"{sentence.words} " * states, f"{sentence.words} " * (not states and not small)
        announced = announces(sentence.own) or (one is not None and one.corrects)
    if last is not None:
        yield last


def _behind(before: str, asked: str, one: Found) -> Found:
    """What hangs on the sentence before it, with that; with a question or an order only where it names nothing."""
    context = before or ("" if names_something(one.content) else asked)
    return replace(one, content=f"{context}{one.content}"[:_LONGEST], hangs=not context)


def _of_one(first: Found, second: Found) -> Found:
    content = f"{first.content} {second.content}"
    weight = importance(first.kind, content)
    return replace(first, content=content, importance=weight, corrects=first.corrects or second.corrects)


def _told(sentence: Sentence, beside: Beside) -> Found | None:
    own = sentence.own[:_LONGEST]
    if asks_for_doing(sentence) and of.is_reminder(own) and is_dated(own):
        return _found("task", sentence.words, own)
    spaceless = _CJK.search(own) is not None
    content = "" if spaceless else lasting(sentence, beside)
    if content:
        shown = content.replace("’", "'")
        return _found(kind_of(shown, standing=of.is_standing(shown)), content, shown, announced=beside.announced)
    if sentence.is_question or (len(own) < _SHORTEST_CJK if spaceless else is_short(own)):
        return None
    kind = kind_elsewhere(own)
    return _found(kind, sentence.words, own) if kind else None


def _found(kind: Kind, words: str, own: str, *, announced: bool = False) -> Found:
    content = words[:_LONGEST]
    return Found(kind, content, importance(kind, content), announced or tells_of_change(own), of.hangs(of.bare(own)))
