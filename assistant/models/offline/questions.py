"""Whether a sentence is a question, in several languages, also without its question mark. Pure."""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex

_VERBS = r"(?:is|are|was|were|do|does|did|will|would|can|could|should|has|have|had|am)"
_PERSONS = r"(?:i|you|we|he|she|it|they|my|the|our|your|his|her|their|there|this|that|any\w*|some\w*)"
_ASKING = r"(?:what|who|whose|whom|when|where|which|why|how)"
_ELSEWHERE = (
    r"(?:wer|wie|wo|was|wann|wieso|warum|welche[rs]?|wohin|woher|wieviel|hva|hvem|hvor|når|hvorfor|hvordan|hvilken|hvilke"
    r"|vad|vem|var|hvad|hvornår|qui|où|quand|comment|pourquoi|combien|quel(?:le)?s?|qué|quién|dónde|cuándo|cómo|cuál"
    r"|chi|dove|quando|perché|quanto|wat|waar|wanneer|waarom|welke|quem|onde|qual)"
)
_QUESTION = lazy_regex(
    rf"{_ASKING}(?:'s|’s|s)? (?!{_PERSONS} )(?:\S+ ){{0,3}}?{_VERBS}\b.*"  # what colour is my car
    rf"|{_ASKING}(?:'s|’s|s) .+"  # what's my sister's name
    rf"|{_VERBS} {_PERSONS}\b.*"  # did I say ...
    rf"|{_ELSEWHERE}(?: \S+){{1,7}}",
    re.IGNORECASE,
)
_TO_ASSISTANT = lazy_regex(
    r"\b(?:did|have|had) you (?:ever )?(?:say|said|tell|told|answer(?:ed)?|suggest(?:ed)?|recommend(?:ed)?|write|wrote"
    r"|mention(?:ed)?)\b|\byou (?:said|told|suggested|recommended|answered|mentioned)\b",
    re.IGNORECASE,
)
_QUESTION_MARKS = ("?", "？", "؟")
_TAG = lazy_regex(r",\s*(?:ok|okay|right|will you|would you|yes|all right)\s*\?\s*$", re.IGNORECASE)


def is_question(sentence: str, bare: str) -> bool:
    """`sentence` as written, `bare` without courtesies and punctuation at its ends."""
    if sentence.rstrip().endswith(_QUESTION_MARKS):
        return not _TAG.search(sentence)
    return not sentence.rstrip().endswith("!") and _QUESTION.fullmatch(bare) is not None


def asks_the_assistant(bare: str) -> bool:
    """Whether it asks for what the assistant said, not the person."""
    return _TO_ASSISTANT.search(bare) is not None
