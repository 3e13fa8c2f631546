"""Parses a search question: its words, their stems, and what it asks for (about whom, when); and how much of a
collection a search scores. Pure, and quick to import: the engine is loaded later.

Scripts written without spaces are split into overlapping pairs of characters; as words, whole sentences would be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from assistant.core.calendar import MONTHS, WEEKDAYS
from assistant.core.dataclass import dataclass
from assistant.core.text import STOP_WORDS, distinct_words, find_identifiers, is_spaceless, lazy_regex

FindStems = Callable[[Iterable[str]], dict[str, str]]
"""Word -> stem, for several at once; "" for one that has no letter or digit."""
MAX_QUERY_WORDS = 24
"""How many different words of a question count; the rest of a longer one is left out."""


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a question."""

    text: str  # folded
    spaceless: bool = False  # a piece of a run without spaces matches anywhere, other words only whole


def query_words(query: str) -> list[QueryWord]:
    """Return the distinct words of a question in order, without stop words unless there is nothing else."""
    distinct = distinct_words(query)[: 4 * MAX_QUERY_WORDS]
    words = [word for word in distinct if word not in STOP_WORDS] or distinct
    return [QueryWord(word, is_spaceless(word)) for word in words[:MAX_QUERY_WORDS]]


_IRREGULAR_FORMS = """
bear bore borne; beat beaten; become became; begin began begun; bend bent; bite bit bitten; bleed bled; blow blew blown
break broke broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen
come came; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten
fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden
forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go went gone
grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led
lean leant; learn learnt; leave left; lend lent; lie lain; light lit; lose lost; make made; mean meant; meet met
pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold
send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung
sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken; speed sped; spend spent; spill spilt; spin spun
spoil spoilt; stand stood; steal stole stolen; stick stuck; sting stung; strike struck; swear swore sworn; sweep swept
swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought
throw threw thrown; understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won
write wrote written; child children; man men; woman women; foot feet; tooth teeth; mouse mice; wife wives; life lives
knife knives; half halves; wolf wolves; shelf shelves; loaf loaves; bad worse worst
"""


@cache
def _base_forms() -> Mapping[str, str]:
    return {
        form: base
        for line in _IRREGULAR_FORMS.strip().replace("\n", ";").split(";")
        for base, *forms in [line.split()]
        for form in forms
    }


def base_form(word: str) -> str:
    """Return the base of an irregular English form, which no stemmer finds ("went" is "go", "children" "child"); other
    words unchanged. Only forms that are rarely anything else: "found" is "find", but "lay", "wound", "better" are
    unchanged."""
    return _base_forms().get(word, word)


def with_irregular_forms(stems: FindStems) -> FindStems:
    """Wrap `stems` so that irregular forms get the stem of their base."""

    def find(words: Iterable[str]) -> dict[str, str]:
        bases = {word: base_form(word) for word in words}
        stem_of = stems(bases.values())
        return {word: stem_of[base] for word, base in bases.items()}

    return find


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How much of a collection a search scores, in units."""

    small_collection: int = 1_500  # a collection up to this size is scored completely
    seed_units: int = 2_000  # the best by a cheap score, which select those scored exactly
    scored_sources: int = 1_000  # of at most so many messages or entries
    scored_units: int = 2_500  # and at most so many units
    sources_alone: int = 500  # of at most so many where no unit has neighbours, whose words nothing near them adds to
    like_units: int = 300  # those most similar to the question, which are scored too
    common_share: float = 0.3  # a stem in more sources selects no candidates


_WHEN = lazy_regex(
    r"\b(?:when|what (?:day|date|time|year|month|week)|how long|which (?:year|month|day|week)|wann|seit|quand|cuándo"
    r"|når|hvor lenge)\b|什么时候|何时|几号|いつ|何時|언제",
    re.IGNORECASE,
)
_HOW_MANY = lazy_regex(
    r"\b(?:how (?:many|much|old|long|far|often|tall|big|high|large|heavy|fast)"
    r"|what (?:age|number|amount|percentage|price|size|score|temperature)"
    r"|which (?:number|score|amount)|cost|costs|wie (?:viel\w*|oft|lange|alt|weit|groß)|combien|cuánt\w+"
    r"|hvor (?:mange|mye|gammel|langt|ofte))\b|几|多少|いくつ|いくら|何(?:回|人|個)|몇",
    re.IGNORECASE,
)
_NAMED = lazy_regex(
    r"\b(?:who|whose|whom|where|which|called|named?|names|title|brand|wer|wem|wen|wo|wohin|welche\w*|heißt|qui|où|quel\w*"
    r"|quién|dónde|cuál\w*|hvem|hvor|hvilke\w*)\b|谁|哪|誰|どこ|누구|어디",
    re.IGNORECASE,
)
# Questions about the assistant's words are in the past tense. "Can you list ..." and "What would you recommend ..." are
# requests, which the person's own messages answer.
_OF_ASSISTANT = lazy_regex(
    # did you suggest; had you ever told me; why did you not mention
    r"\b(?:did|had|have|were)(?:n['’]t)?\s+you\b(?!\s+been\b)[^.?!\n]{0,40}?"
    r"\b(?:tell|told|say|said|give|given|(?:suggest|recommend|explain|list|answer|mention)(?:ed|ing)?|(?:advis|propos)(?:ed?|ing))\b"
    # what you told me; you once recommended; you'd mentioned
    r"|\byou(?:['’](?:ve|d))?\s+(?:(?:have|had|just|once|already|also|first|last|previously|earlier|originally)\s+){0,2}+"
    r"(?:told|said|suggested|recommended|advised|proposed|explained|listed|mentioned|answered|gave|promised)\b"
    # what we decided; did we agree
    r"|\bwe\s+(?:(?:had|finally|once|already)\s+)?+(?:decided|agreed|settled|concluded)\b"
    r"|\bdid\s+we\s+(?:decide|agree|settle)\b"
    r"|\byour\s+(?:\w+\s+)?(?:suggestion|recommendation|advice|answer|reply|explanation|proposal)s?\b"
    # was hast du mir empfohlen; du hast gesagt; haben Sie vorgeschlagen
    r"|\b(?:hast\s+du|du\s+hast|haben\s+sie|sie\s+haben|du\s+(?:mir|uns)|hattest\s+du|du\s+hattest)\b[^.?!\n]{0,60}?"
    r"\b(?:gesagt|erzählt|vorgeschlagen|empfohlen|geraten|erklärt|erwähnt|genannt|geantwortet)\b"
    # m'as-tu conseillé; tu m'as dit; vous avez recommandé
    r"|\b(?:as[ -]tu|tu\s+(?:m['’]|nous\s+)?(?:as|avais)|avez[ -]vous|vous\s+(?:m['’]|nous\s+)?(?:avez|aviez))\b"
    r"[^.?!\n]{0,40}?\b(?:dit|conseillé|recommandé|suggéré|proposé|expliqué|mentionné|répondu|raconté)e?s?\b"
    # me dijiste; qué me recomendaste; has sugerido
    r"|\b(?:dijiste|recomendaste|sugeriste|aconsejaste|propusiste|explicaste|mencionaste|respondiste|contaste)\b"
    r"|\b(?:has|habías)\s+(?:dicho|recomendado|sugerido|aconsejado|propuesto|explicado|mencionado|respondido)\b",
    re.IGNORECASE,
)
_OF_ONESELF = lazy_regex(
    r"\b(?:i|my|me|mine|we|our|ich|mein\w*|je|mon|ma|mes|mi|mis|jeg|min|mitt)\b|我|私|僕", re.IGNORECASE
)
_IN_SENTENCE = lazy_regex(r"(?<![.!?…:\"“„«(\[\n] )(?<=[\w,;)] )[A-ZÀ-Þ][\w-]+|^[A-ZÀ-Þ]\w+(?=['’]s\b)")
# German capitalises all nouns.
_GERMAN = lazy_regex(
    r"\b(?:der|dem|das|eine?[mnrs]?|ich|mein\w*|dein\w*|ist|sind|habe|haben|wann|wer|wo|wie|welche\w*|und)\b",
    re.IGNORECASE,
)
_TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", "st"})
_DATES = {
    name: (kind, number)
    for kind, names in (("weekday", WEEKDAYS), ("month", MONTHS))
    for number, name in enumerate(names, start=1)
}


# Words of a question that are about the conversation or the answer, not its topic.
_OF_TALKS = lazy_regex(
    r"\b(?:our (?:(?:previous|past|earlier) )?(?:conversations?|chats?|discussions?)|order in which"
    r"|in (?:which|what) order|i (?:brought up|mentioned|raised)|in welcher reihenfolge|dans quel ordre)\b",
    re.IGNORECASE,
)
_ABOUT_TALKING = lazy_regex(
    r"(?:list|order|sequence|mention(?:ed|ing)?|discuss(?:ed|ing)?|discussions?|conversations?|chats?|throughout|across"
    r"|brought|bring(?:ing)?|raised|talked|aspects|topics|items|different|various|reihenfolge|ordre|orden)"
)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A parsed question."""

    words: dict[str, str]  # the question's own stems, each with a word of it, in order
    # Parts of dates it names, by stem: ("weekday", 1-7), ("month", 1-12), ("day", 1-31), ("year", 2023).
    dates: dict[str, tuple[str, int]]
    asks_time: bool
    about_assistant: bool
    about_user: bool
    asks_number: bool = False
    asks_name: bool = False
    identifier_stems: frozenset[str] = frozenset()  # stems of the identifiers it names


def parse_question(question: str, stems: FindStems) -> ParsedQuestion:
    """Parse a question; `stems` returns the stems of words like the index."""
    distinct = distinct_words(question)
    stem_of = stems(distinct)
    telling = [word for word in distinct if word not in STOP_WORDS] or distinct
    if _OF_TALKS.search(question):
        telling = [word for word in telling if not _ABOUT_TALKING.fullmatch(word)] or telling
    words: dict[str, str] = {}
    dates: dict[str, tuple[str, int]] = {}
    for word in telling:
        for stem in stem_of[word].split():
            if len(words) < MAX_QUERY_WORDS:
                words.setdefault(stem, word)
                part = _date_part(word)
                if part is not None:
                    dates[stem] = part
    of_assistant = asks_about_assistant(question)
    named = {word for identifier in find_identifiers(question) for word in distinct_words(identifier)}
    return ParsedQuestion(
        words,
        dates,
        bool(_WHEN.search(question)),
        of_assistant,
        not of_assistant and bool(_OF_ONESELF.search(question)),
        bool(_HOW_MANY.search(question)),
        bool(_NAMED.search(question)),
        frozenset(stem for word in named & stem_of.keys() for stem in stem_of[word].split() if stem in words),
    )


def find_names(question: str) -> frozenset[str]:
    """Return the words of the names in a question, folded: words capitalised within a sentence, except dates."""
    if _GERMAN.search(question):
        return frozenset()
    names = (word for name in _IN_SENTENCE.findall(question) for word in distinct_words(name))
    return frozenset(word for word in names if word not in STOP_WORDS and word not in _TITLES and not _date_part(word))


def asks_about_assistant(question: str) -> bool:
    """Return whether it asks for what the assistant said, not the person."""
    return _OF_ASSISTANT.search(question) is not None


def _date_part(word: str) -> tuple[str, int] | None:
    part = _DATES.get(word)
    if part is not None:
        return part
    digits = word.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
    if digits.isdecimal() and digits.isascii():
        number = int(digits)
        if 1 <= number <= 31:
            return "day", number
        if 1900 <= number < 2200:
            return "year", number
    return None
