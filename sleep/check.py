"""Whether a summary says what it must: deterministic, no model asked (F05, F24, F25). Pure.

What the originals name and the summary does not (tasks, identifiers, numbers, names) is appended word for word, the
most important first, under a budget of its own. What does not fit is in the log, and `aihistory diff` lists it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from assistant.context.quote import defused
from assistant.messages import Message
from sleep.facts import missing
from sleep.summary import Material

Count = Callable[[str], int]

KEPT = "Kept word for word:"
_ROLES = ("user", "assistant")
_LONGEST = 240
_LONGEST_TASK = 300
_AROUND = 40
# (kind, who said it), the most important first.
_ORDER = [
    ("tasks", "user"), ("identifiers", "user"), ("numbers", "user"), ("identifiers", "assistant"),
    ("names", "user"), ("tasks", "assistant"), ("numbers", "assistant"), ("names", "assistant"),
]  # fmt: skip


def restored(text: str, material: Material, count: Count, most: int) -> tuple[str, tuple[str, ...]]:
    """The summary with what it left out at its end, in at most `most` tokens, and the lines that were added."""
    lines: list[str] = []
    left = most - count(KEPT) - 1
    for line in _lacking(text, material):
        tokens = count(line) + 1
        if tokens > left:
            continue
        left -= tokens
        lines.append(line)
    if not lines:
        return text, ()
    return "\n".join([text, KEPT, *lines]), tuple(lines)


def _lacking(text: str, material: Material) -> Iterator[str]:
    """Lines that say what the summary does not, most important first, each thing once."""
    folded = _folded(text)
    for task in material.tasks:
        words = " ".join(task.split())
        if words and _folded(words) not in folded:
            yield f"- open: {_safe(words, _LONGEST_TASK)}"
    by_role = {role: [row for row in material.rows if row.role == role and row.content] for role in _ROLES}
    told: set[str] = set()
    for kind, role in _ORDER:
        # The newest first: of what does not fit, the oldest is missed least.
        for row in reversed(by_role[role]):
            values = [value for value in missing([row.content], text).get(kind, ()) if value.casefold() not in told]
            if values:
                told.update(value.casefold() for value in values)
                yield _line(row, kind, values)


def _line(row: Message, kind: str, values: list[str]) -> str:
    number = row.id or row.metadata.get("carried_from")
    where = f"#{number}" if number else "earlier"
    if kind == "tasks":
        return f"- {where}: {_safe('; '.join(values), _LONGEST_TASK)}"
    return f"- {where}: {_safe('; '.join(_with_context(row.content, value) for value in values[:4]), _LONGEST)}"


def _with_context(content: str, value: str) -> str:
    """The value with the words before it: a bare number says nothing."""
    flat = " ".join(content.split())
    at = flat.find(" ".join(value.split()))
    if at < 0:
        return value
    start = max(0, at - _AROUND)
    if start:
        space = flat.find(" ", start)
        start = space + 1 if 0 <= space < at else start
    return flat[start : at + len(value)]


def _safe(text: str, most: int) -> str:
    flat = defused(" ".join(text.split()))
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# ------------------------------------------------------------------------------------------------------------- language

_SCRIPTS = (
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("kana", re.compile(r"[\u3040-\u30ff]")),
    ("hangul", re.compile(r"[\uac00-\ud7af]")),
    ("han", re.compile(r"[\u3400-\u9fff]")),
    ("devanagari", re.compile(r"[\u0900-\u097f]")),
    ("thai", re.compile(r"[\u0e00-\u0e7f]")),
    ("latin", re.compile(r"[A-Za-z\u00c0-\u024f]")),
)
# One character of these says about as much as three Latin letters.
_DENSE = frozenset({"kana", "hangul", "han"})
_STOP_WORDS = {
    "en": "the and of to in is was that for with on it as are be this have from they you he she were had not but",
    "de": "der die das und ist nicht ein eine ich zu mit sich auf für war den von im dem auch es hat sie wird sind",
    "fr": "le la les et est une un des du que pour dans pas sur avec il elle ce cette qui au été sont nous vous plus",
    "es": "el la los las y es una un que por para con no se su del en lo como más está fue son pero muy sus al",
    "it": "il la che di e è un una per non con del della sono gli i le si da nel anche ha più alla come questo",
    "pt": "o a os as e é um uma que de para com não se do da em por mais foi são ao na no sua como está muito",
    "nl": "de het een en van is dat niet in op te zijn met voor was aan er ook als maar bij naar heeft hij zij",
    "no": "og er det i på en til som av med for ikke jeg har den vi å var et hun han skal kan fra også ble",
    "sv": "och är det i på en till som av med för inte jag har den vi att var ett hon han ska kan från också blev",
    "da": "og er det i på en til som af med for ikke jeg har den vi at var et hun han skal kan fra også blev",
}
_STOPS = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}
# Languages that share most of their small words are taken for one.
_ALIKE = (frozenset({"no", "da", "sv"}), frozenset({"es", "pt", "it"}))
_ENOUGH_CHARACTERS = 80
_ENOUGH_STOPS = 6
_CLEARLY = 2.0


def same_language(text: str, material: Material) -> bool:
    """Whether the summary is in the language that was spoken; where that cannot be told, it is taken to be."""
    said = " ".join(row.content[:2_000] for row in material.rows if row.role in _ROLES)
    mine, theirs = _script(text), _script(said)
    if mine and theirs and mine != theirs:
        # Japanese and Chinese share characters; either is told by its kana.
        return {mine, theirs} == {"kana", "han"} and len(text) < _ENOUGH_CHARACTERS
    if mine != "latin" or theirs != "latin":
        return True
    ours, spoken = _language(text), _language(said)
    if ours is None or spoken is None or ours == spoken:
        return True
    return any({ours, spoken} <= group for group in _ALIKE)


def _script(text: str) -> str | None:
    """The script that most of the text is in; None where too little is."""
    sample = text[:8_000]
    counts = {name: len(form.findall(sample)) * (3 if name in _DENSE else 1) for name, form in _SCRIPTS}
    if counts["kana"] > 0.1 * (counts["kana"] + counts["han"]):
        counts["kana"] += counts.pop("han")
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= 20 and counts[best] > 0.5 * sum(counts.values()) else None


def _language(text: str) -> str | None:
    """The language whose small words the text has by far the most of; None where that is not clear."""
    words = Counter(_words(text))
    counts = sorted(((sum(words[w] for w in stops), language) for language, stops in _STOPS.items()), reverse=True)
    if counts[0][0] < _ENOUGH_STOPS:
        return None
    rival = next((n for n, other in counts[1:] if not any({other, counts[0][1]} <= group for group in _ALIKE)), 0)
    return counts[0][1] if counts[0][0] >= _CLEARLY * max(1, rival) else None


def _words(text: str) -> Iterable[str]:
    return re.findall(r"[^\W\d_]+", text[:20_000].casefold())
