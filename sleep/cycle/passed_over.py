"""Whether there was anything to learn in messages that nothing was learned from. Pure.

What always holds: questions, orders, greetings and scraps are nothing to learn from; nor is what the assistant says.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.records import LogRecord
from sleep.cycle.extraction import readable
from sleep.rules.importance import is_small_talk
from sleep.rules.parts import is_short
from sleep.rules.requests import asks_for_doing
from sleep.rules.sentences import Sentence, sentences
from sleep.rules.voice import own_voice

_LONGEST = 4_000


def statements(records: Sequence[LogRecord]) -> int:
    """How many sentences of the users' own state something."""
    spoken = [record for record in records if record.role == "user" and readable(record)]
    return sum(_states(one) for record in spoken for one in sentences(own_voice(record.content[:_LONGEST])))


def _states(one: Sentence) -> bool:
    return not (one.is_question or is_short(one.own) or asks_for_doing(one) or is_small_talk(one.own))
