"""Splits texts into units of search, of about 80 words each, at sentences and lines, with flags of their form and their
stems. Pure.

A text of up to 100 words is one unit; a longer one is found by its best unit, so that long messages do not outrank
short ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from assistant.core.text import WORD, find_in_windows, fold_text, lazy_regex, split_spaceless_runs
from assistant.search.index_values import UnitStem

UNIT_WORDS = 80
WHOLE_WORDS = 100
_SHORT = 120
# Number of characters that is always more words than fit; and number of blanks between two sentences.
_SURELY_LONG = 400 * (WHOLE_WORDS + 1)
_LONGEST_BREAK = 1_000

QUESTION, GREETING, TIME_WORD, REPEATS, MOSTLY_ASKS, NUMBER, NAME = (1 << bit for bit in range(7))
"""What a unit is or has, as bits: a short question, a greeting, a word that tells a time; that it asks for
something, or was said in answer to that, and so may be said again and again without anything new in it; that at least
half of its words are in questions; a number; a name of somebody or a place."""
MOST_FIRST_PERSON = 3
"""Words in the first person are counted up to this number."""

_BREAK = lazy_regex(r"(?<=[.!?…])\s++|(?<!\s)[^\S\n]*+\n\s*+|(?<=[。！？])")
_ASKS = lazy_regex(r"[?？؟][\s\"'”’)»」]*$")
_QUESTION_MARK = lazy_regex("[?？؟]")
_ASKS_FOR = lazy_regex(
    r"^\W*(?:(?:and|so|ok|hey|please|und|et|y|e)[, ]+)*(?:who|whose|what|when|where|which|why|how|is|are|was|were|do"
    r"|does|did|can|could|will|would|has|have|tell me|show me|remind me (?:who|what|when|where|which|how)|give me|find"
    r"|look up|wer|was|wann|wo|welche\w*|warum|wie|ist|sind|hat|kannst du|weißt du|zeig\w*|sag mir|qui|que|quand|où"
    r"|combien|quel\w*|comment|pourquoi|est-ce|dis-moi|montre\w*|qué|quién|cuándo|dónde|cuál\w*|cómo|cuánto\w*|dime"
    r"|hvem|hva|når|hvor|hvilke\w*)\b[^.!。！\n]*[.!。！]*$",
    re.IGNORECASE,
)
_FEW_WORDS = 6
_GREETING = lazy_regex(
    r"^\W*(?:hi|hey|hello|thanks|thank you|bye|good ?(?:bye|morning|night|evening|afternoon)|take care|wow|cool|hallo"
    r"|danke|bonjour|salut|merci|hola|gracias|ciao|grazie|hei|takk|tack|привет|спасибо|こんにちは|ありがとう|你好|谢谢)\b",
    re.IGNORECASE,
)


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


# As words, which are found much faster than by expressions, and what is no plain word.
_TIME_WORDS = _set_of(
    "yesterday today tomorrow tonight last next ago week weeks weekend weekends month months year years day days"
    " recently since morning mornings evening evenings monday mondays tuesday tuesdays wednesday wednesdays"
    " thursday thursdays friday fridays saturday saturdays sunday sundays january february march april may june july"
    " august september october november december gestern heute morgen hier demain ayer mañana"
)
_TIME = lazy_regex(
    r"\b(?:\d{1,2}(?:st|nd|rd|th)|(?:19|20)\d\d|i går|i morgen)\b|昨天|今天|明天|昨日|今日|明日|[年月日]", re.I
)
_FIRST_PERSON_WORDS = _set_of(
    "i my me mine we our us ich mich mir wir je mon ma mes nous notre nos yo mi mis nosotros jeg meg min mitt vi"
)
_FIRST_PERSON = lazy_regex(r"\b(?:mein\w*|unser\w*|nuestr\w+|vår\w*|j')\b|我|私|僕|俺|저|나는", re.I)
_FIRST_PERSON_PARTS = ("mein", "unser", "nuestr", "j'")
_NUMBER_WORDS = _set_of(
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand dozen twice"
    " once zwei drei vier fünf deux trois quatre cinq dos tres cuatro cinco"
)
_NUMBER = lazy_regex(r"\d|[一二三四五六七八九十百千]")
_ANY_WORD = lazy_regex(r"\w+")
_ASCII_WORD = lazy_regex(r"[a-z0-9]+")
_NAME = lazy_regex(r"[a-z,;:)] (?!I\b)[A-Z][a-zà-ÿ]+")
_CJK_A_WORD = 2
_CJK = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")


def split_into_units(text: str) -> list[str]:
    """Return the parts of a text in order; none for a text without words."""
    if not text.strip():
        return []
    if len(text) < _SURELY_LONG and _words(text) <= WHOLE_WORDS:
        return [text.strip()]
    return [piece for piece in _gathered(text) if piece]


def unit_flags(text: str) -> int:
    """Return the flags of a unit."""
    short = len(text) <= _SHORT
    bits = QUESTION if short and _ASKS.search(text) else 0
    bits |= GREETING if short and _GREETING.match(text) else 0
    lowered = text.lower()
    words, is_plain = set(_ANY_WORD.findall(lowered)), text.isascii()
    has_number = _NUMBER.search(text) is not None
    bits |= NUMBER if has_number or not words.isdisjoint(_NUMBER_WORDS) else 0
    bits |= NAME if _NAME.search(text) else 0
    bits |= MOSTLY_ASKS if _QUESTION_MARK.search(text) and _asks_mostly(text) else 0
    if not words.isdisjoint(_TIME_WORDS):
        bits |= TIME_WORD
    elif has_number or not is_plain:
        bits |= TIME_WORD if _TIME.search(text) else 0
    return bits


def count_first_person(text: str) -> int:
    """Return how many words of a unit speak of the one who says it, at most `MOST_FIRST_PERSON`."""
    lowered = text.lower()
    count = sum(map(_FIRST_PERSON_WORDS.__contains__, _ANY_WORD.findall(lowered)))
    if not text.isascii() or any(part in lowered for part in _FIRST_PERSON_PARTS):
        count += len(_FIRST_PERSON.findall(text))
    return min(count, MOST_FIRST_PERSON)


def _asks_mostly(text: str) -> bool:
    counts = [(_words(sentence), _ASKS.search(sentence) is not None) for sentence in _sentences(text)]
    return 2 * sum(words for words, asks in counts if asks) >= sum(words for words, _ in counts)


def asks_for_something(text: str) -> bool:
    """Return whether a message only asks; "My locker is 417, will you remember?" also states something."""
    asked = text.strip()
    if len(asked) > _SHORT:
        return False
    return bool(_ASKS_FOR.match(asked) or (_ASKS.search(asked) and _words(asked) <= _FEW_WORDS))


def _gathered(text: str) -> Iterator[str]:
    """Yield sentences joined to about 80 words; longer ones are cut."""
    gathered: list[str] = []
    room = UNIT_WORDS
    for sentence in _sentences(text):
        for piece in _cut(sentence):
            words = _words(piece)
            if gathered and words > room:
                yield " ".join(gathered)
                gathered, room = [], UNIT_WORDS
            gathered.append(piece)
            room -= words
    if gathered:
        yield " ".join(gathered)


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in find_in_windows(_BREAK, text, _LONGEST_BREAK):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _cut(sentence: str) -> Iterator[str]:
    if _words(sentence) <= UNIT_WORDS:
        if sentence.strip():
            yield sentence.strip()
        return
    words = sentence.split()
    if len(words) > 1 and len(sentence) < len(words) * 24:
        for first in range(0, len(words), UNIT_WORDS):
            yield " ".join(words[first : first + UNIT_WORDS])
        return
    letters = UNIT_WORDS * (_CJK_A_WORD if not sentence.isascii() and _CJK.search(sentence) else 6)
    for first in range(0, len(sentence), letters):
        yield sentence[first : first + letters].strip()


def _words(text: str) -> int:
    """Return the approximate number of words; two characters of a script without spaces count as one."""
    if len(text) >= _SURELY_LONG:
        return len(text) // 400
    spaceless = 0 if text.isascii() else len(_CJK.findall(text)) // _CJK_A_WORD
    return text.count(" ") + text.count("\n") + 1 + spaceless + len(text) // 400


def count_words(text: str) -> dict[str, int]:
    """Return the number of occurrences of each word of a text, in order."""
    if text.isascii():  # the same, ten times as fast
        return dict(Counter(_ASCII_WORD.findall(text.lower())))
    counts: dict[str, int] = {}
    for word, count in Counter(WORD.findall(split_spaceless_runs(text))).items():
        folded = fold_text(word)
        counts[folded] = counts.get(folded, 0) + count
    return counts


def count_stems(words: Mapping[str, int], stems: Mapping[str, str]) -> tuple[UnitStem, ...]:
    """Return each stem with its first word and how often it occurs, at most 255. A word of several stems counts for
    each."""
    counts: dict[str, tuple[str, int]] = {}
    for word, count in words.items():
        stem = stems[word]
        for part in stem.split() if " " in stem else (stem,) if stem else ():
            first, before = counts.get(part, (word, 0))
            counts[part] = first, before + count
    return tuple(UnitStem(stem, word, min(count, 255)) for stem, (word, count) in counts.items())
