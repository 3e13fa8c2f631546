"""Which of the earlier statements one that changes something puts right, where no single form of words tells. Pure.

What always holds: a statement puts right what it says is over, or else at most one other, the one it shares most with;
it has to say that something changed, and to share what it is about. Who only mentions the same person says nothing against what is known of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from sleep.corrections import replaces, tells_of_change
from sleep.statements import Statement, is_form, stem

ENOUGH = 2.0
_A_WORD = 1.0
_A_NAME = 1.3
_ANOTHER_VALUE = 1.0
_IN_PLACE_OF = 0.8
_ANOTHER_SUBJECT = 0.05
_KINDS = ("number", "time", "day", "month")
# Words that are said of anything: to share them is to share nothing.
_OF_ANYTHING_WORDS = """
want need come take make bring put see keep find seem look feel turn start begin end stay leave hold pound dollar euro
quid hour minute second half morning evening afternoon night weekend weekday place bit lot way kind sort side own whole
same other next last first good bad new old big small long short great little nice people everybody today tonight
tomorrow yesterday soon later early late please thank reply ask call tell talk speak hear say cost pay price number
home house room door street town city back away round down over under every instead
"""
_OF_ANYTHING = frozenset(map(stem, _OF_ANYTHING_WORDS.split()))


def put_right(new: Statement, known: Iterable[tuple[str, Statement]], *, only_over: bool = False) -> list[str]:
    """The ids of the statements, of those that are `known` in the order they were said, that are no longer so: all that
    say what the new one says is over, or else, unless `only_over`, the one it shares most
    with."""
    if new.adds or not tells_of_change(new.text):
        return []
    over: list[str] = []
    found, most = "", ENOUGH
    for one, old in known:
        shared = {word for word in old.content - _OF_ANYTHING if any(is_form(word, other) for other in new.content)}
        if _is_over(new, old, shared):
            over.append(one)
            continue
        score = _score(new, old, shared)
        if shared and score >= most:
            found, most = one, score
    return over or ([found] if found and not only_over else [])


def _is_over(new: Statement, old: Statement, shared: set[str]) -> bool:
    """Whether it says what the new one says is no longer so, of the same."""
    for gone in new.old:
        words = gone.content & old.content
        if (words and gone.content <= old.content and gone.values <= old.values) or (
            shared and gone.values and gone.values <= old.values and gone.content <= old.content
        ):
            return bool(shared) or bool(words)
    return False


def _score(new: Statement, old: Statement, shared: set[str]) -> float:
    """How much speaks for the new one being said of the same matter."""
    names = shared & (new.names | old.names)
    differing = any(_differ(new.of_kind(kind), old.of_kind(kind)) for kind in _KINDS)
    score = _A_WORD * len(shared - names) + _A_NAME * len(names)
    score += _ANOTHER_VALUE * differing + _IN_PLACE_OF * replaces(new.text)
    return score - _ANOTHER_SUBJECT * len(old.content - shared)


def _differ(new: frozenset[str], old: frozenset[str]) -> bool:
    return bool(new and old) and not new <= old
