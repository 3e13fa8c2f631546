"""A conversation in bursts, written before it is held: so many turns, then so many questions about facts told in them.

What always holds: everything follows from the seed. Turns of a burst are less than a minute apart; between bursts lie
hours, so that no prompt cache lives that long (`warm`: there is one burst, and the cache never dies). Lengths are such
that a turn adds some 300 tokens, of which the answer has 70.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from tests.study.conversation import BEGUN, StudyConversation, StudyTurn
from tests.study.facts import planted
from tests.study.talk import TopicTalk

_BURSTS_A_DAY = 4
_APART = timedelta(seconds=40)
_MESSAGE_TOKENS, _ANSWER_TOKENS = (60, 340), (20, 75)


def bursts(
    turns: int = 400, questions: int = 40, *, burst: int = 6, warm: bool = False, seed: int = 7
) -> StudyConversation:
    """The whole conversation; with `burst` turns in each burst."""
    chance = random.Random(f"bursts {seed}")
    talk, facts = TopicTalk(seed), planted(questions, seed)
    told = dict(zip(sorted(chance.sample(range(turns), questions)), facts, strict=True))
    asked = list(facts)
    chance.shuffle(asked)
    made: list[StudyTurn] = []
    stretch = talk.stretch(chance)
    for number in range(turns + questions):
        if number % burst == 0:
            stretch = talk.stretch(chance)
        at = _time(number, 0 if warm else burst)
        answer = talk.answered(chance, stretch, chance.randint(*_ANSWER_TOKENS))
        if number >= turns:
            fact = asked[number - turns]
            made.append(StudyTurn(number, at, "question", fact.question, f"That is {fact.value}.", fact=fact))
        elif number in told:
            said = talk.said(chance, stretch, chance.randint(20, 120))
            made.append(StudyTurn(number, at, "fact", f"{said} {told[number].said}", answer, fact=told[number]))
        else:
            made.append(
                StudyTurn(number, at, "talk", talk.said(chance, stretch, chance.randint(*_MESSAGE_TOKENS)), answer)
            )
    return StudyConversation(tuple(made), tuple(facts))


def _time(number: int, burst: int) -> datetime:
    if not burst:
        return BEGUN + number * _APART
    index, place = divmod(number, burst)
    day, of_day = divmod(index, _BURSTS_A_DAY)
    return BEGUN + timedelta(days=day, hours=3.5 * of_day) + place * _APART
