"""What speaks for a clause to last, and what speaks for it to be over soon: signs with their weights. Pure.

What always holds: no single word decides. A clause lasts where its signs together weigh at least
`DURABLE_THRESHOLD`; the signs are forms of the language and classes of words (`word_classes`), never names or
matters of one person. For languages other than English there are few forms, each as sure as it can be, and no
weights.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from assistant.core.text import lazy_regex
from sleep.rules.durable_patterns import DAY, DURABLE_PATTERNS
from sleep.rules.sentences import expand_shorthand
from sleep.rules.transient_patterns import TRANSIENT_PATTERNS
from sleep.rules.word_classes import classify_word, split_words

DURABLE_THRESHOLD = 2.0

_OF_CLASS: dict[str, float] = {
    "kin": 0.5,
    "person": 0.6,
    "pet": 0.7,
    "home": 0.7,
    "vehicle": 0.8,
    "work": 0.4,
    "health": 2.1,
    "pastime": 1.1,
    "admin": 0.8,
    "recurring": 1.8,
    "since": 0.6,
    "food": 0.2,
    "mood": -1.1,
    "weather": -2.0,
    "desk": -2.8,
    "praise": -1.4,
    "world": -1.8,
    "joke": -1.7,
}
# A capital tells something in these alone; all others read the clause in lower case, which is quicker.
_CASED = frozenset({"name", "many-names", "who-it-is", "apposed", "placed"})
_PATTERNS = [
    (name, lazy_regex(pattern, re.IGNORECASE if name in _CASED else 0))
    for name, _, pattern in (*DURABLE_PATTERNS, *TRANSIENT_PATTERNS)
]
_LINKED = frozenset({"kin", "person", "pet", "home", "vehicle", "work", "health", "pastime", "admin", "food"})
_LINK = frozenset({"own", "first", "for-good", "first-left-out", "prefers", "decided", "recurs"})
_MEANT = frozenset({"changed", "decided", "has-lived", "named"})
_GOES_ON = frozenset({"going", "going-then", "goes-on", "goes-on-left-out", "in-charge", "instead", "no-longer"})
_MOOD = lazy_regex(
    r"^(?:\w+ ){0,1}\w+\W*$|\b(?:i'm|am|are|is|was|were|be|been|'s|'re|feel|feels|feeling|felt|got|so|too|very|bit"
    r"|really|quite"
    r"|all|just|still|looks?|seems?|getting) (?:a bit |all |just |not |still )*\w+\b(?! (?:about|at|from|to|in|on"
    r"|of)\b)"
)
_LONG = 8
_LONGER = 0.24
_LONGEST = 8
_THING_CHANGED = lazy_regex(
    r"(?:my|our|the) (?:[\w-]+ ){0,2}[\w-]+(?:'s| is| are| has| have) (?:been )?(?:gone|moved|changed|cancelled"
    r"|sold|given|sent|off"
    r"|over)\b",
    re.IGNORECASE,
)
_WEEKDAY = lazy_regex(rf"\b{DAY}s?\b", re.IGNORECASE)
_WEIGHT = {
    **{name: weight for name, weight, _ in (*DURABLE_PATTERNS, *TRANSIENT_PATTERNS)},
    **{f"of {name}": weight for name, weight in _OF_CLASS.items()},
    "unlinked": -0.9,
    "so many": 0.7,
}


def find_signs(clause: str) -> list[str]:
    """The names of the signs that a clause shows."""
    clause = expand_shorthand(clause)
    lowered = clause.lower()
    found = [name for name, pattern in _PATTERNS if pattern.search(clause if name in _CASED else lowered)]
    of_class: set[str] = set()
    for word in split_words(lowered):
        of_class |= classify_word(word)
    if "mood" in of_class and not _MOOD.search(lowered):
        of_class.discard("mood")
    if "done-then" in found and _MEANT.intersection(found):
        found.remove("done-then")
    if "progress" in found and _GOES_ON.intersection(found):
        found.remove("progress")
    if "kin" in of_class and "count" in found:
        found.append("so many")
    if not of_class & _LINKED and not _LINK.intersection(found):
        found.append("unlinked")
    return found + [f"of {name}" for name in _OF_CLASS if name in of_class]


@lru_cache(maxsize=4096)
def score_clause(clause: str) -> float:
    """How much more speaks for a clause to last than against it; `ENOUGH` is enough."""
    longer = min(_LONGEST, max(0, len(clause.split()) - _LONG))
    return sum(_WEIGHT[name] for name in find_signs(clause)) + _LONGER * longer


_PREFERS = lazy_regex(
    r"\b(?:prefer|like|love|enjoy|hate|loathe|adore|dislike|can't (?:stand|bear|abide)|favou?rite|a fan of|fond of"
    r"|rather (?:have|not|take)|allergic|vegetarian|vegan"
    r"|(?:never|don't|won't|doesn't) (?:like|eat|drink|want|touch|fly))\b",
    re.IGNORECASE,
)
_DECIDES = next(pattern for name, pattern in _PATTERNS if name == "decided")
_DATED = next(pattern for name, pattern in _PATTERNS if name == "date")
_RECURS = next(pattern for name, pattern in _PATTERNS if name == "recurs")


def classify_kind(clause: str, *, standing: bool) -> Literal["fact", "preference", "decision"]:
    """Of a clause that lasts."""
    if _DECIDES.search(clause.lower()):
        return "decision"
    return "preference" if standing or _PREFERS.search(clause) else "fact"


def names_date(clause: str) -> bool:
    """Whether it names a date, or how often something happens."""
    lowered = clause.lower()
    return bool(_DATED.search(lowered) or _RECURS.search(lowered))


def mentions_entity(clause: str) -> bool:
    """Whether it has a word of somebody's life, a day, a number or a name."""
    if re.search(r"\d|(?<=\w )[A-Z][a-z]", clause) or _WEEKDAY.search(clause) or _THING_CHANGED.match(clause):
        return True
    return any(classify_word(word) & (_LINKED - {"food"}) for word in split_words(clause.lower()))


def mentions_person(clause: str) -> bool:
    """Whether it names somebody, or somebody of the person's own."""
    if re.search(r"(?<=\w )[A-Z][a-z]{2,}", clause):
        return True
    return any(classify_word(word) & {"kin", "person", "pet"} for word in split_words(clause.lower()))


_PREFERENCE = lazy_regex(
    r"\bich (?:mag|liebe|hasse|bevorzuge|esse kein|trinke kein|esse nie)|\b(?:j'aime|je préfère|je déteste|je ne"
    r" mange pas)\b"
    r"|\b(?:me gustan?|no me gusta|prefiero|odio|no como)\b|\bjeg (?:liker|elsker|foretrekker|hater|spiser ikke)\b"
    r"|我(?:喜欢|不喜欢|讨厌|爱|最爱|不吃|不喝)|(?:好き|嫌い|苦手)(?:です|だ|。|$)",
    re.IGNORECASE,
)
_DECISION = lazy_regex(
    r"\b(?:wir|ich) haben? (?:uns )?(?:beschlossen|entschieden)|\b(?:nous avons|j'ai) décidé\b"
    r"|\b(?:hemos|he) decidido\b|\b(?:vi|jeg) (?:har )?(?:bestemt|bestemte)\b|我们?决定|決めました|に決めた",
    re.IGNORECASE,
)
_FACT = lazy_regex(
    r"\b(?:ich|wir) (?:bin|sind|wohne[n]?|arbeite[n]?|habe[n]?|heiße|komme aus|lebe[n]?|ziehe[n]?)\b"
    r"|\b(?:mein|unser)e?[rsnm]? \w+ (?:ist|heißt|hat|wohnt|arbeitet|lebt|kommt|kostet|beginnt)\b"
    r"|\b(?:jeden|jede|jedes) \w+|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)s\b"
    r"|\bje (?:suis|m'appelle|travaille|vis|viens de)\b|\bj'(?:habite|ai)\b"
    r"|\b(?:mon|ma|mes|notre|nos) \w+ (?:est|sont|s'appelle|a|habite|travaille|vit|coûte)\b|\btous les \w+s\b"
    r"|\b(?:soy|vivo|trabajo|tengo|me llamo|vivimos|tenemos)\b|\bmis? \w+ (?:es|está|se llama|tiene|vive|trabaja"
    r"|son|viven)\b"
    r"|\btodos los (?:lunes|martes|miércoles|jueves|viernes|sábados|domingos|días|años|meses)\b"
    r"|\b(?:jeg|vi) (?:er|bor|jobber|heter|har|flyttet|sluttet|begynte)\b|\bhver (?:uke|dag|\w+dag|måned)\b"
    r"|\b(?:(?:min|mitt|mine|vår|vårt) \w+|\w+ (?:min|mi|mitt|mine|vår|vårt)) (?:er|heter|har|bor|jobber|koster"
    r"|begynner)\b"
    r"|我(?:是|住|在|有|叫|的|每)|我们(?:是|住|有|的|每)|(?:每周|每天|每年|每个月)|私(?:は|の)|僕(?:は|の)|俺(?:は|の)|毎(?:日|週|月|年|朝|晩)",
    re.IGNORECASE,
)
_PASSING = lazy_regex(
    r"^(?:wenn|falls|vielleicht|si |peut-être|quizás|tal vez|hvis|kanskje)\b"
    r"|\b(?:gerade|heute|müde|hungrig|gleich|weiß nicht|hab(?:e)? (?:eine )?frage|keine ahnung|bin (?:da|zurück"
    r"|bereit|fertig|krank))\b"
    r"|\b(?:aujourd'hui|en train de|fatiguée?|j'ai (?:faim|soif|une question|froid|chaud|oublié|besoin)|je suis"
    r" (?:là|prête?|désolée?|perdue?))\b"
    r"|\b(?:hoy|ahora mismo|cansad[oa]|tengo (?:hambre|sed|sueño|una pregunta|frío|que)|estoy)\b"
    r"|\b(?:i dag|akkurat nå|trøtt|sulten|har (?:et spørsmål|lyst)|er (?:her|klar|ferdig|tilbake|lei))\b"
    r"|今天|现在正|好累|如果|不知道|我在(?:吃|看|想|等|做)|我的(?:意思|问题)|我有(?:一个|个)?问题|今日|今は|疲れ|もし|眠い|思います|わかりません|知りません",
    re.IGNORECASE,
)


def classify_other_language(own: str) -> Literal["fact", "preference", "decision"] | None:
    """Of a statement in German, French, Spanish, Norwegian, Chinese or Japanese; None where nothing lasting is told."""
    if _PASSING.search(own):
        return None
    if _DECISION.search(own):
        return "decision"
    if _PREFERENCE.search(own):
        return "preference"
    return "fact" if _FACT.search(own) else None
