"""How the offline model reads a message: text in, a few intents out. Pure.

A message is read sentence by sentence. What fits no pattern is a question if it reads like one, and otherwise something
the person told. Whatever is decided here, the message itself is already kept whole, so a misreading costs an odd answer
and never words.
"""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from assistant.models.offline.intents import AddTodos, Ask, Correct, Intent, Note, Talk
from assistant.models.offline.patterns import RULES, TODO_LIST, labelled
from assistant.models.offline.questions import asks_the_assistant, is_question
from assistant.models.offline.words import sentences

_MOST_INTENTS = 8
_LONG = 2000
_LONGEST_READ = 400

_COURTESY_BEFORE = lazy_regex(
    r"^(?:(?:hey|hi|hello|please|ok|okay|so|well|and|also|then|oh|um|thanks)(?:\s*[,!]\s*|\s+)"
    r"|(?:can|could|would|will) you (?:please |maybe |kindly )?|i(?:'d| would) like you to |i want you to )+(?=\S)",
    re.IGNORECASE,
)
_ENDS = " \t\n.!?…,。！？؟"
_COURTESIES_BEHIND = ("please", "thanks", "thank you", "for me", "again")
_LIST_HEAD = lazy_regex(
    rf"(?:please )?(?:add|put)(?: (?:these|this|the following))? (?:to|on) {TODO_LIST}\s*:?|to-?dos?:", re.IGNORECASE
)
_BULLET = lazy_regex(r"^\s*(?:[-*•]|\d+[.)]|\[ ?\])\s*")


def understand(text: str) -> tuple[Intent, ...]:
    """What `text` asks for, in its order: at most one note, and small talk only where there is nothing else."""
    whole = _list_over_lines(text)
    if whole is not None:
        return (whole,)
    found = [read_sentence(sentence) for sentence in _worth_reading(text)]
    notes = [intent for intent in found if isinstance(intent, Note)]
    work: list[Intent] = [intent for intent in found if not isinstance(intent, Note | Talk)]
    if notes or len(text) > _LONG:
        work = [Note(task=any(note.task for note in notes)), *work]
    return tuple(work[:_MOST_INTENTS]) or tuple(found[:1])


def is_statement(text: str) -> bool:
    """Whether `text` tells something, beside whatever else it does."""
    return any(isinstance(intent, Note | Correct) for intent in understand(text))


def read_sentence(sentence: str) -> Intent:
    """What one sentence asks for."""
    plain = _without_courtesy_behind(sentence.replace("’", "'").strip()) or sentence.strip(_ENDS)
    bare = _COURTESY_BEFORE.sub("", plain, count=1)
    if not plain:
        return Talk("help") if "?" in sentence else Note()
    if len(plain) <= _LONGEST_READ:
        intent = _by_rule(plain) or _by_rule(bare)
        if intent is not None:
            return intent
    if is_question(sentence, bare):
        return Ask(bare, "assistant" if asks_the_assistant(bare) else "user")
    return Note()


def _by_rule(text: str) -> Intent | None:
    for make, alternatives in RULES:
        match = next((m for pattern in alternatives if (m := pattern.fullmatch(text))), None)
        intent = make(match) if match else None
        if intent is not None:
            return intent
    return None


def _without_courtesy_behind(text: str) -> str:
    text = text.rstrip(_ENDS)
    for courtesy in _COURTESIES_BEHIND:
        before = text[: -len(courtesy)]
        if text.lower().endswith(courtesy) and before != before.rstrip(_ENDS):
            return _without_courtesy_behind(before)
    return text


def _worth_reading(text: str) -> list[str]:
    """The sentences of a message; of a long text only the first and the last, where a request would stand."""
    if len(text) <= _LONG:
        return sentences(text)
    lines = text.strip().splitlines()
    return [*sentences(lines[0][:_LONG])[:1], *sentences(lines[-1][-_LONG:])[-1:]]


def _list_over_lines(text: str) -> Intent | None:
    """A to-do list with an item on each line below its heading."""
    head, _, rest = text.strip().partition("\n")
    match = _LIST_HEAD.fullmatch(head.strip())
    items = tuple(item for line in rest.splitlines() if (item := _BULLET.sub("", line).strip()))
    return AddTodos(labelled(items, match["label"])) if match and items else None
