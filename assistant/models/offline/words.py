"""Words and questions as the offline model reads them. Pure.

Words are folded, and compared without those that carry no meaning. Only the lists are bound to a language. Words are
compared by their beginnings, which serves every language that bends the ends of its words; runs without spaces
(Chinese, Japanese, Korean) are compared character by character. A sentence is recognised as a question in several
languages, also without its question mark.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from assistant.core.text import lazy_regex

_TOKEN = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_ENDINGS_OF_SHORT_WORDS = frozenset({"s", "es", "ed", "d", "ing", "n", "en"})
_ABBREVIATION = lazy_regex(
    r"(?:\b(?:dr|mr|mrs|ms|st|prof|nr|ca|approx|etc|vs|z\.b|e\.g|i\.e|\w)|\b\d{1,2})\.$", re.IGNORECASE
)
_SENTENCE_END = lazy_regex(r"(?<=[.!?…])\s+(?=\S)|(?<=[。！？])|\n+")

_STOP = """
a s t n o about after again all also am an and any are as at be been before being but by can could d did didn do does
doesn doing don ever everything exactly find for forgot from had has hasn have haven having he her here hers him his
how i if in into is isn it its just know last let ll m may me mention mentioned might mine my myself no nor not now of
off ok on once one or our out please re recall remember remembered remind said say saying says shall she should so
some stay still such tell than thank thanks that the their them then there these they thing things think this those to
told too up us ve very was wasn we were what when where whether which while who whom whose why will with won wonder
would wrote yet you your yours something anything search look show use used get got der die das den dem des ein eine
einen einem einer ist sind war bin bist hat habe haben ich du er sie es wir ihr mein meine meinen meinem meiner dein
deine wer wie wo wann warum wieso welche welcher welches wohin woher und oder nicht mit von zu im ins auf nach bei
heißt heisst heiße heisse nochmal jeg han hun det de vi var har min mitt din ditt hva hvem hvor hvordan når hvorfor
hvilken hvilke og eller ikke på til av som en et ei å jag är vad vem när hur je tu il elle nous vous le la les un une
est suis ai mon ma mes ton ta tes que qui quoi où ou quand comment pourquoi quel quelle ce dans sur ne pas j l c qu el
los las soy mi mis qué quién dónde cuándo cómo cuál y con lo gli è sono chi cosa dove quando come perché e di che het
ik jij wij mijn wat waar wanneer hoe welke van met
"""
STOP_WORDS = frozenset(_STOP.split())

# What a question asks for rather than what it is about: a statement seldom repeats these.
_ATTRIBUTES = """name names called named number phone time date day year month week colour color cost costs price rent
old age long tall big size address kind sort type much many job"""
ATTRIBUTE_WORDS = frozenset(_ATTRIBUTES.split())

# Words that answer each other. Each line is one family.
_FAMILIES = """
name called named call
live lives living home address moved move reside
work works working job employer employed
birthday born
phone telephone mobile number
wife husband spouse married marry
mum mom mother mama
dad father papa
favourite favorite like love prefer
colour color
allergic allergy allergies
flight fly flying
appointment meeting meet
bought buy buying purchased
drink drinks drinking drank
eat eats eating ate eaten food
trip travel holiday vacation
old age born
cost price pay paid rent
flat apartment
expire expires expiry
break broke broken
drive drove driven
give gave given
go went gone
keep kept
leave left
lend lent
lose lost
make made
ride rode
see saw seen
sell sold
send sent
sleep slept
spend spent
start started began
swim swam
take took taken
teach taught teacher
think thought
win won
write wrote written
"""


def tokenize(text: str) -> list[str]:
    """The words of `text` in lower case, also those that an apostrophe joins."""
    return [token.lower() for token in _TOKEN.findall(text)]


@lru_cache(maxsize=4096)
def fold_word(word: str) -> str:
    """`word` without case and accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))


def is_same_word(a: str, b: str) -> bool:
    """Whether two folded words are one word in two forms: a long common beginning and short, different ends."""
    if a == b:
        return True
    shared = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    short, long = sorted((a[shared:], b[shared:]), key=len)
    if shared >= 4:
        return len(short) <= 1 and len(long) <= 3 and not any(c.isdigit() for c in short + long)
    return shared == 3 and short in ("", "e") and long in _ENDINGS_OF_SHORT_WORDS


def _families() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _FAMILIES.strip().splitlines():
        members = frozenset(line.split())
        for word in members:
            found[word] = found.get(word, frozenset()) | members
    return found


_FAMILY_OF = _families()


@lru_cache(maxsize=4096)
def related_words(word: str) -> frozenset[str]:
    """Other words that a statement may use where a question says `word`."""
    return frozenset().union(*(members for known, members in _FAMILY_OF.items() if is_same_word(known, word))) - {word}


def content_words(text: str) -> list[str]:
    """The words of `text` that mean something, in lower case, each once, in order. A capital inside the sentence makes
    a name of a word that would mean nothing otherwise: Mia is somebody, "mia" is "my"."""
    found = _TOKEN.findall(text)
    names = {token.lower() for token in found[1:] if token[0].isupper() and len(token) > 1}
    return list(
        dict.fromkeys(token.lower() for token in found if token.lower() not in STOP_WORDS or token.lower() in names)
    )


def split_sentences(text: str) -> list[str]:
    """`text` in sentences and lines; abbreviations, initials and ordinal numbers do not end one."""
    parts: list[str] = []
    for part in _SENTENCE_END.split(text):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts


def split_passages(text: str, most: int) -> list[str]:
    """`text` in pieces of whole sentences, of at most `most` characters each."""
    pieces: list[str] = []
    for sentence in split_sentences(text):
        for part in (sentence[at : at + most] for at in range(0, len(sentence), most)):
            if pieces and len(pieces[-1]) + len(part) < most:
                pieces[-1] = f"{pieces[-1]} {part}"
            else:
                pieces.append(part)
    return pieces


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
