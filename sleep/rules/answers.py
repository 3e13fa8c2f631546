"""A question of the assistant's and a person's answer to it, joined to what can be understood by itself. Pure.

What always holds: both stand in it word for word. Only questions about the person's own life are joined, never offers,
and only with an answer that says something.
"""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from sleep.rules import clauses as of
from sleep.rules.evidence import weight
from sleep.rules.lexicon import classes, words_of
from sleep.rules.sentences import Sentence, sentences
from sleep.rules.voice import own_voice

_LONGEST_ANSWER = 25
_LONGEST_QUESTION = 220
_OF_LIFE = frozenset({"kin", "person", "pet", "home", "vehicle", "work", "health", "pastime", "admin", "recurring"})
_OF_PEOPLE = frozenset({"kin", "person", "health", "pet"})
_OFFERS = lazy_regex(
    r"^(?:(?:ok|okay|great|got it|sure|and|so|also|by the way|noted|lovely|nice|perfect|thanks)[\s,.!:–-]+)*"
    r"(?:would you (?:like|prefer me|want|rather i)|do you want|did you want|shall (?:i|we)|should (?:i|we)|can i"
    r"|may i|could i|want (?:me|a|an|to|it|the)|need (?:me|a|any(?:thing| help))|anything (?:else|in particular"
    r"|specific|you)"
    r"|is there anything|how can i|what can i|where (?:would you like|shall|should)|what would you like|which"
    r" (?:one|version|option|part|of (?:these|those|them))|how (?:are you|was|were|did|is it|does that|about)"
    r"|what about|what's (?:up|new|wrong|happening|going on|first|next|the (?:matter|plan))|what (?:do you think"
    r"|happened|error|else|exactly|are you trying|did)|did (?:you|it|that)|have you"
    r" (?:tried|checked|thought|considered)|could you (?:paste|share|send|show|check)|can you (?:paste|share|send"
    r"|show|check|tell me more)|does (?:that|it|this)"
    r"|is (?:that|it|this) (?:ok|okay|better|right|what|enough|fine|clear|correct|the)|ready|sound good|right|are"
    r" you (?:sure|ok|okay|ready|feeling)|do you mean|did you mean|or)\b",
    re.IGNORECASE,
)
_ASKS_OF_PERSON = lazy_regex(
    r"\b(?:you|your|yours|they|their|he|his|she|her|it)\b.{0,60}\b(?:called|name|names|named|born|live|lives|old"
    r"|from|prefer|usually|allergic|speak|size|date|day|days|time|often|spell|spelt|drive|eat|drink|work|works|stay"
    r"|staying|start|starts|end|budget|long|flying)\b"
    r"|\b(?:what(?:'s| is| are)|who(?:'s| is| are)|when(?:'s| is| are| do| does)|where(?:'s| is| are| do| does)|how"
    r" (?:old|many|much|often|long|big|tall)|what (?:time|day|date|size|name|kind|sort|breed|year)|which (?:day"
    r"|days|size|school|airport|bank|side|one of your))\b",
    re.IGNORECASE,
)
_EMPTY = lazy_regex(
    r"^(?:(?:yes|yeah|yep|yup|no|nope|nah|sure|ok|okay|please|thanks|thank you|go (?:on|ahead|for it)|do it|not"
    r" (?:now|yet|really|today|needed)|maybe|later|both|either|neither|whatever|any|dunno|idk|no idea|not sure"
    r"|never mind|(?:who|god|heaven|goodness) knows|search me|beats me|all of (?:it|them)|none of (?:it|them|those)"
    r"|not a clue"
    r"|heavens|god|same|nah|i was joking|joking|never|exactly|indeed|naturally|obviously|of course|very|nothing yet"
    r"|nothing|that's (?:it|all|fine)|all good|fine|great|perfect|the (?:first|second|last|former|latter)(?: one)?"
    r"|option \w+|you (?:choose|decide|pick)|up to you|don't mind|doesn't matter|hm+|why|what|lol|haha)\b[\s,.!]*)+$",
    re.IGNORECASE,
)
# A few words without a verb, or "which" and "what" of something.
_ASKED_BACK = lazy_regex(
    r"^(?!(?:same|anything|anyone|any plans|a good|any good|really|how|why|what now|what next|what happened)\b)"
    r"(?:(?:and |so )?(?:which|what|whose|who|where|when)\b[^?]{0,40}|(?:[\w'’-]+,? ){1,4}[\w'’-]+)\?",
    re.IGNORECASE,
)
_CALLED = lazy_regex(
    r"\bwhat (?:should|shall|can|do|may|am) i (?:to )?call you\b|\bwould you like (?:me to call you|to be called)\b"
    r"|\bcall you\?$|\bwho am i (?:talking|speaking) (?:to|with)\b|\bwhat(?:'s| is) your name\b",
    re.IGNORECASE,
)
_HOW = lazy_regex(
    r"^(?:(?:yes|yeah|yep|ok|okay|sure|please|go on|but)[\s,.!–-]+)*(?:only|never|always|nothing (?:before|after"
    r"|over|under)"
    r"|no \w+ (?:ones?|before|after)|not (?:before|after|on|without)|anything but|as long as)\b",
    re.IGNORECASE,
)
_ENOUGH_FOR_YES = 0.8
_AUXILIARY = lazy_regex(
    r"^(?:\w+[,.!] )*(?:do|does|is|are|have|has|any|did|was|were|can|will|anything|got)\b", re.IGNORECASE
)
_YES_NO = lazy_regex(r"^(?:yes|yeah|yep|no|nope|none|never|nothing)\b[.!]*$", re.IGNORECASE)
_ABOUT_HAVING = lazy_regex(
    r"\b(?:do you (?:have|eat|drink|drive|own|smoke|live|work|speak)|are you (?:a |an"
    r" )?(?:allergic|married|vegetarian|vegan|left|coeliac|diabetic|retired|self)|any)\b",
    re.IGNORECASE,
)


def question_of(said: str, *, after_telling: bool = False) -> str:
    """The question about the person's life that a message of the assistant ends with; "" where there is none. Asked
    back in a few words `after_telling`, it is about what was told."""
    own = own_voice(said)
    asked = [one for one in sentences(own) if one.has_mark]
    if not asked or not said.rstrip().endswith(("?", "？", '?"', "?)")):
        return ""
    question = asked[-1]
    back = after_telling and bool(_ASKED_BACK.match(question.own)) and not _OFFERS.match(question.own)
    return question.words if back or _is_lasting(question) else ""


def offer_of(said: str, answer: Sentence) -> str:
    """The offer that a message of the assistant ends with, where it is answered with how it is to be done; else ""."""
    asked = [one for one in sentences(own_voice(said)) if one.has_mark]
    if not asked or not said.rstrip().endswith("?") or not _OFFERS.match(asked[-1].own):
        return ""
    return asked[-1].words if _HOW.match(answer.own) and not answer.is_question else ""


def joined(question: str, answer: Sentence) -> str:
    """Question and answer as one text; "" where the answer says nothing that lasts."""
    own = answer.own
    if answer.is_question or of.disclaims(own) or of.orders(own) or of.supposes(own):
        return ""
    if len(own.split()) > _LONGEST_ANSWER:
        return ""
    if _EMPTY.match(own) and not (_YES_NO.match(own) and _ABOUT_HAVING.search(question)):
        return ""
    if _AUXILIARY.match(question) and not _YES_NO.match(own) and (weight(of.bare(own)) < _ENOUGH_FOR_YES):
        return ""
    return f"{question} {answer.words}"


def _is_lasting(question: Sentence) -> bool:
    own = question.own
    if _CALLED.search(own):
        return True
    if len(own) > _LONGEST_QUESTION or _OFFERS.match(own):
        return False
    found: set[str] = set()
    for word in words_of(own.lower()):
        found |= classes(word)
    if found & {"desk", "mood", "weather", "praise"} and not found & _OF_PEOPLE:
        return False
    return bool(found & _OF_LIFE) or bool(_ASKS_OF_PERSON.search(own))
