"""Words as the offline model compares them: folded, roughly stemmed, without those that carry no meaning. Pure.

Only the lists are bound to a language. Words are compared by their beginnings, which serves every language that bends
the ends of its words; runs without spaces (Chinese, Japanese, Korean) are compared character by character.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:['’][^\W\d_]+)*"
)
_ENDINGS = ("ings", "ing", "ied", "ies", "ed", "es", "en", "er", "et", "e", "s", "n", "t", "y")
_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|st|prof|nr|ca|approx|etc|vs|z\.b|e\.g|i\.e|\w)|\b\d{1,2})\.$", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=\S)|\n+")

STOP = frozenset(
    [
        "a",
        "about",
        "after",
        "again",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "before",
        "being",
        "but",
        "by",
        "can",
        "could",
        "d",
        "did",
        "didn",
        "do",
        "does",
        "doesn",
        "doing",
        "don",
        "ever",
        "everything",
        "exactly",
        "find",
        "for",
        "forgot",
        "from",
        "had",
        "has",
        "hasn",
        "have",
        "haven",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "isn",
        "it",
        "its",
        "just",
        "know",
        "last",
        "let",
        "ll",
        "m",
        "may",
        "me",
        "mention",
        "mentioned",
        "might",
        "mine",
        "my",
        "myself",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "ok",
        "on",
        "once",
        "one",
        "or",
        "our",
        "out",
        "please",
        "re",
        "recall",
        "remember",
        "remembered",
        "remind",
        "said",
        "say",
        "saying",
        "says",
        "shall",
        "she",
        "should",
        "so",
        "some",
        "stay",
        "still",
        "such",
        "tell",
        "than",
        "thank",
        "thanks",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "thing",
        "things",
        "think",
        "this",
        "those",
        "to",
        "told",
        "too",
        "up",
        "us",
        "ve",
        "very",
        "was",
        "wasn",
        "we",
        "were",
        "what",
        "when",
        "where",
        "whether",
        "which",
        "while",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "won",
        "wonder",
        "would",
        "wrote",
        "yet",
        "you",
        "your",
        "yours",
        "something",
        "anything",
        "search",
        "look",
        "show",
        "use",
        "used",
        "get",
        "got",
        "der",
        "die",
        "das",
        "den",
        "dem",
        "des",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
        "ist",
        "sind",
        "war",
        "bin",
        "bist",
        "hat",
        "habe",
        "haben",
        "ich",
        "du",
        "er",
        "sie",
        "es",
        "wir",
        "ihr",
        "mein",
        "meine",
        "meinen",
        "meinem",
        "meiner",
        "dein",
        "deine",
        "wer",
        "wie",
        "was",
        "wo",
        "wann",
        "warum",
        "wieso",
        "welche",
        "welcher",
        "welches",
        "wohin",
        "woher",
        "und",
        "oder",
        "nicht",
        "mit",
        "von",
        "zu",
        "im",
        "ins",
        "am",
        "auf",
        "nach",
        "bei",
        "heißt",
        "heisst",
        "heiße",
        "heisse",
        "nochmal",
        "jeg",
        "du",
        "han",
        "hun",
        "det",
        "den",
        "de",
        "vi",
        "er",
        "var",
        "har",
        "min",
        "mitt",
        "mine",
        "din",
        "ditt",
        "hva",
        "hvem",
        "hvor",
        "hvordan",
        "når",
        "hvorfor",
        "hvilken",
        "hvilke",
        "og",
        "eller",
        "ikke",
        "på",
        "til",
        "av",
        "som",
        "en",
        "et",
        "ei",
        "å",
        "jag",
        "är",
        "vad",
        "vem",
        "när",
        "hur",
        "je",
        "tu",
        "il",
        "elle",
        "nous",
        "vous",
        "le",
        "la",
        "les",
        "un",
        "une",
        "des",
        "du",
        "de",
        "est",
        "suis",
        "ai",
        "as",
        "mon",
        "ma",
        "mes",
        "ton",
        "ta",
        "tes",
        "que",
        "qui",
        "quoi",
        "où",
        "ou",
        "quand",
        "comment",
        "pourquoi",
        "quel",
        "quelle",
        "ce",
        "et",
        "dans",
        "sur",
        "ne",
        "pas",
        "j",
        "l",
        "d",
        "c",
        "qu",
        "el",
        "los",
        "las",
        "es",
        "soy",
        "mi",
        "mis",
        "tu",
        "qué",
        "quién",
        "dónde",
        "cuándo",
        "cómo",
        "cuál",
        "que",
        "y",
        "en",
        "con",
        "no",
        "il",
        "lo",
        "gli",
        "è",
        "sono",
        "mio",
        "mia",
        "chi",
        "cosa",
        "dove",
        "quando",
        "come",
        "perché",
        "e",
        "di",
        "che",
        "het",
        "ik",
        "jij",
        "wij",
        "mijn",
        "wie",
        "wat",
        "waar",
        "wanneer",
        "hoe",
        "welke",
        "van",
        "met",
    ]
)

# What a question asks for rather than what it is about: a statement seldom repeats these.
_ATTRIBUTES = """name names called named number phone time date day year month week colour color cost costs price rent
old age long tall big size address kind sort type much many job music food drink film brand"""
ATTRIBUTES = frozenset(_ATTRIBUTES.split())

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
eat eats eating ate food
trip travel holiday vacation
old age born
cost price pay paid rent
flat apartment
expire expires expiry
"""


def tokens(text: str) -> list[str]:
    """The words of `text` in lower case, possessive endings gone."""
    return [re.sub(r"['’]s?$", "", token) for token in _TOKEN.findall(text.lower().replace("n't", "n t"))]


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A key under which the forms of a word mostly meet: accents, case and common endings dropped."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))
    for ending in _ENDINGS:
        if len(plain) - len(ending) >= 3 and plain.endswith(ending):
            return plain[: -len(ending)]
    return plain


def alike(a: str, b: str) -> bool:
    """Whether two stems are one word in two forms."""
    if a == b:
        return True
    short, long = sorted((a, b), key=len)
    return len(short) >= 4 and len(long) - len(short) <= 3 and long.startswith(short)


def _families() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _FAMILIES.strip().splitlines():
        for word in line.split():
            found[stem(word)] = found.get(stem(word), frozenset()) | frozenset(line.split())
    return found


_FAMILY_OF = _families()


def family(word: str) -> frozenset[str]:
    """Other words that a statement may use where a question says `word`."""
    return _FAMILY_OF.get(stem(word), frozenset()) - {word}


def content_words(text: str) -> list[str]:
    """The words of `text` that mean something, in lower case, each once, in order."""
    return list(dict.fromkeys(token for token in tokens(text) if token not in STOP))


def sentences(text: str) -> list[str]:
    """`text` in sentences and lines; abbreviations, initials and ordinal numbers do not end one."""
    parts: list[str] = []
    for part in _SENTENCE_END.split(text):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts
