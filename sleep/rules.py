"""What a person's own words tell about them, by rules alone: the journal of a house without a model. Pure.

What always holds: only whole sentences that the person said of themselves, as they said them; never a question, a
quotation, code or small talk. Better few and true than many: what is not taken stays findable in the master log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sleep.requests import asks_for_doing
from sleep.sentences import Sentence, sentences

Kind = Literal["fact", "preference", "decision", "task"]

_LONGEST_TEXT = 20_000
_LONGEST = 400
_SHORTEST_WORDS = 3
_SHORTEST_CJK = 5

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_PREFERENCE = re.compile(
    r"\b(?:i|we)(?:'d)? (?:really |much |always |usually |also )*(?:prefer|like|love|enjoy|hate|dislike"
    r"|can'?t stand|avoid)\b"
    r"|\bmy favou?rite\b|\bi(?:'m| am) (?:not )?(?:a fan of|fond of|allergic|vegetarian|vegan)\b|\bi (?:don'?t"
    r"|never) (?:like|eat|"
    r"drink|want)\b|\bich (?:mag|liebe|hasse|bevorzuge|esse kein)|\b(?:j'aime|je préfère|je déteste)\b"
    r"|\b(?:me gusta|prefiero|odio)\b"
    r"|\bjeg (?:liker|elsker|foretrekker|hater)\b|我(?:喜欢|不喜欢|讨厌|爱)|(?:好き|嫌い|苦手)(?:です|だ|。|$)",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:decided|agreed|chose|chosen|settled on|picked)\b|\b(?:let'?s go with"
    r"|we'?ll go with|i'?ll take)\b"
    r"|\b(?:i|we)(?:'re| are|'m| am) going with\b|\bthe plan is\b|\b(?:wir"
    r"|ich) haben? (?:uns )?(?:beschlossen|entschieden)"
    r"|\b(?:nous avons|j'ai) décidé\b|\b(?:hemos|he) decidido\b|\b(?:vi|jeg) (?:har )?(?:bestemt|bestemte)\b"
    r"|我们?决定|決めました|に決めた",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are|'ve| have| was| were| had| got| live| lived| moved| work| worked| own"
    r"| bought| sold| sing| play"
    r"| study| studied| speak| drive| keep| kept| met| grew| married| need| take| use| started| stopped"
    r"| learned| left| born)\b"
    r"|\b(?:my|our) (?:\w+['’]?\w* ){0,4}(?:is|are|was|were|has|have|lives?|works?|moved|called|starts?|ends?"
    r"|opens?|costs?|will)\b"
    r"|\bremember(?: that)?\b|\b(?:ich|wir) (?:bin|sind|wohne[n]?|arbeite[n]?|habe[n]?|heiße)|\b(?:mein"
    r"|unser)e?[rsnm]? \w+ (?:ist|heißt|hat|wohnt)"
    r"|\bje (?:suis|m'appelle|travaille)\b|\bj'(?:habite|ai)\b|\b(?:mon|ma|mes|notre) \w+ (?:est|s'appelle|a)\b"
    r"|\b(?:soy|vivo|trabajo|tengo|me llamo)\b|\bmi \w+ (?:es|está|se llama|tiene|vive)\b"
    r"|\bjeg (?:er|bor|jobber|heter|har)\b"
    r"|\b(?:(?:min|mitt|mine) \w+|\w+ (?:min|mi|mitt|mine)) (?:er|heter|har|bor|jobber)\b"
    r"|我(?:是|住|在|有|叫|的)|我们(?:是|住|有|的)|私(?:は|の)|僕(?:は|の)|俺(?:は|の)",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"^(?:if|maybe|perhaps|suppose|imagine|what if|i think|i guess|wenn|falls|si |peut-être|quizás|hvis)\b",
    re.IGNORECASE,
)
# What is over when the conversation is.
_MOMENT = re.compile(
    r"\bi(?:'m| am) (?:so |very |really |just |still |not |a bit |all )*(?:back|here|fine|good|well|ok|okay|sorry|tired"
    r"|ready|sure|glad|happy|afraid|done|curious|confused|stuck|lost|thinking|wondering|trying|asking|looking (?:at"
    r"|for)|hungry|busy|leaving|listening|going to (?:bed|sleep|have|get|go|try|take a))\b"
    r"|\bi (?:was|had|have) (?:just )?(?:been )?(?:wondering|thinking|asking|hoping|trying|looking|no idea|an idea"
    r"|(?:a|one|another|some) (?:\w+ )?(?:questions?|ideas?|request))\b"
    r"|\b(?:i|we) have to (?:go|run|leave|think|say|admit)\b"
    r"|\bi need (?:help|some|a hand|advice|you|to know|more|your)\b"
    r"|\bi have (?:not|never|no|to)\b|\bi (?:got|see|have) it\b|\bmy (?:question|point|bad|guess|mistake|pleasure)\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"^(?!(?:it|that|this|there)\b).*\b(?:is|are|was|costs?|starts?|opens?|closes?|ist|est|es|er)\b[^.!?]*\d",
    re.IGNORECASE,
)
_TELLING = re.compile(r"\d|(?<=\s)[A-ZÀ-Þ]\w+")
_IMPORTANT = re.compile(
    r"\b(?:allerg|passport|birthday|wedding|married|died|born|doctor|diagnos|insurance|password|code|address|phone"
    r"|account|salary|mortgage|contract|deadline|emergency|moved|pregnan|surgery|medic|blood)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Found:
    """One sentence that is worth keeping; `importance` 0 to 1."""

    kind: Kind
    content: str
    importance: float


def facts(text: str) -> list[Found]:
    """What a user's message tells, in its order, each sentence once."""
    found = {one.content: one for one in _found(text)}
    return list(found.values())


def importance(kind: str, content: str) -> float:
    """0 to 1: by the kind, raised where numbers, names or weighty matters are named. Decisions 0.6, tasks and
    preferences 0.5, facts 0.4; a name or number adds 0.1, a weighty matter 0.2."""
    base = {"decision": 0.6, "task": 0.5, "preference": 0.5}.get(kind, 0.4)
    named, weighty = bool(_TELLING.search(content)), bool(_IMPORTANT.search(content))
    return round(min(1.0, base + 0.1 * named + 0.2 * weighty), 2)


def _found(text: str) -> Iterator[Found]:
    for sentence in sentences(text[:_LONGEST_TEXT]):
        kind = None if _is_small(sentence.own) or _HEDGED.match(sentence.own) else _kind(sentence)
        if kind is not None:
            content = sentence.words[:_LONGEST]
            yield Found(kind, content, importance(kind, content))


def _kind(sentence: Sentence) -> Kind | None:
    own = sentence.own[:_LONGEST]
    if asks_for_doing(sentence):
        return "task"
    if sentence.is_question:
        return None
    if _DECISION.search(own):
        return "decision"
    if _PREFERENCE.search(own):
        return "preference"
    if (_FACT.search(own) and not _MOMENT.search(own)) or _NUMBERED.search(own):
        return "fact"
    return None


def _is_small(sentence: str) -> bool:
    if _CJK.search(sentence):
        return len(sentence) < _SHORTEST_CJK
    return len(sentence.split()) < _SHORTEST_WORDS
