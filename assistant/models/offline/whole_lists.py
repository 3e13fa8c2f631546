"""Lists as wholes: which there are, all of one on another too, one under another name. Pure; as `plans` tells.

What always holds: a name that is there already is not given to another list, since two lists would become one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from assistant.core.text import lazy_regex, pluralize
from assistant.models.offline.cues import fold
from assistant.models.offline.lists import first_mention, is_same_list, list_names, tidy_item
from assistant.models.offline.matching import ListedItem
from assistant.models.offline.plans import CANNOT, Plan, call_tool, describe_todos

_POLITE = (
    r"^(?:please |pls |bitte |stp |porfa |por favor |ok,? |and |und |et |y |(?:can|could|would|will) you |kannst du |"
    r"konntest du |tu peux |peux-tu |tu pourrais |puedes |podrias |mal )*"
)
_WHICH = lazy_regex(
    r"\b(?:what|which|how many|welche|wie ?viele|quelles|combien de|que|cuales|cuantas)"
    r"(?: (?:other|different|to-?do|sont|son|are|sind|mes|mis|my|meine))* (?:lists|listen|listes|listas)\b"
    r"(?! (?:is|are|ist|sind|est|sont|esta|estan|has|hat)\b)"
)
_COPIES = lazy_regex(
    rf"{_POLITE}(?:copy|duplicate|kopier\w*|duplizier\w*|copie[rz]?|duplique[rz]?|copia\w*|duplica\w*)\b"
)
_JOINS = lazy_regex(rf"{_POLITE}(?:merge|combine|join|fusion\w*|verein\w*|zusammen\w*|combin\w*|junta\w*)\b")
# "What was on the camping list, put all of it on shopping as well"
_ALL_TOO = lazy_regex(
    r"\b(?:all of (?:it|them|that)|everything|the (?:whole )?lot|alles|tout|todo)\b"
    r".*\b(?:too|as well|also|auch|aussi|tambien)\b"
)
_RENAMES = lazy_regex(
    rf"{_POLITE}(?:rename|relabel|change the name(?: of)?|call|benenn\w*|nenn\w*|tauf\w*|renomme[rz]?|rebaptise[rz]?"
    r"|changer? le nom(?: de)?|appelle|renombra\w*|cambia\w* el nombre(?: (?:de|a))?|llama)\s*$"
)
_RENAMED_BEHIND = lazy_regex(r"\b(?:umbenennen|umtaufen)[.! ]*$")
_TO = lazy_regex(r"^(?:[\s,:]|\b(?:to|into|in|as|from now on|now|jetzt|zu|auf|en|a|por|como|maintenant|ahora)\b)+")
_BEHIND = lazy_regex(
    r"(?:\s+(?:um|umbenennen|umtaufen|list|liste|lista|please|bitte|stp|porfa|instead|now|jetzt|ahora))*[.! ]*$"
)
_LONGEST_NAME = 40
_MOST_AT_ONCE = 50
_COPY_HOW = (
    "Nothing is changed: say which list to copy, and to which one, as in: copy the camping list to the shopping list."
)

T = TypeVar("T")

WholeListPlan = Callable[[str, Sequence[ListedItem]], Plan]


def plan_for_whole_list(text: str) -> WholeListPlan | None:
    """What carries out a sentence about a list as a whole; None for any other sentence."""
    folded = fold(text)
    if _WHICH.search(folded):
        return _name_lists
    names = list_names(text)
    if names and _JOINS.match(folded):
        return _refuse
    if (names and _COPIES.match(folded)) or (len(set(names)) > 1 and _ALL_TOO.search(folded)):
        return _copy_list
    return _rename_list if _renames(text) else None


def _renames(text: str) -> bool:
    mention = first_mention(text)
    if mention is None:
        return False
    start, _ = mention
    folded = fold(" ".join(text.split()))
    return _RENAMES.match(folded[:start]) is not None or (start < 2 and _RENAMED_BEHIND.search(folded) is not None)


def _refuse(text: str, todos: Sequence[ListedItem]) -> Plan:
    yield from ()
    return CANNOT


def _name_lists(text: str, todos: Sequence[ListedItem]) -> Plan:
    yield from ()
    counts = Counter(item.list for item in todos if not item.done)
    if not counts:
        return "You have no lists with anything on them."
    lines = (f"- {name or 'to-do'}: {pluralize(count, 'entry', 'entries')}" for name, count in sorted(counts.items()))
    return "\n".join([f"You have {pluralize(len(counts), 'list')}:\n", *lines])


def _on_list(name: str, todos: Sequence[ListedItem]) -> list[ListedItem]:
    if not name:
        return [item for item in todos if not item.list and not item.done]
    exact = [item for item in todos if fold(item.list) == fold(name) and not item.done]
    return exact or [item for item in todos if is_same_list(item.list, name) and not item.done]


def _copy_list(text: str, todos: Sequence[ListedItem]) -> Plan:
    names = list(dict.fromkeys(list_names(text)))
    if len(names) != 2:
        return _COPY_HOW
    source, target = names
    entries, there = _on_list(source, todos), _on_list(target, todos)
    if not entries:
        return f"Nothing is on your {source or 'to-do'} list, so there is nothing to copy."
    target = there[0].list if there else target
    known = {fold(item.text) for item in there}
    new = [item for item in entries if fold(item.text) not in known]
    if not new:
        return f"All of it is on your {target or 'to-do'} list already."
    result = ""
    by_due = Counter(f"{item.due:%Y-%m-%d}" if item.due else "" for item in new)
    for due in by_due:
        texts = [item.text for item in new if (f"{item.due:%Y-%m-%d}" if item.due else "") == due]
        for some in _batches(texts):
            more = {"due": due} if due else {}
            result = yield from call_tool("manage_todo_list", action="add", items=some, list=target or "to-do", **more)
    return describe_todos(result)


def _rename_list(text: str, todos: Sequence[ListedItem]) -> Plan:
    names, mention = list_names(text), first_mention(text)
    assert mention is not None
    old, plain = names[0], " ".join(text.split())
    entries = _on_list(old, todos)
    if not old or not entries:
        return f"You have no {old or 'to-do'} list that could be renamed, so nothing is changed."
    rest = plain[mention[1] :].strip()
    behind = _BEHIND.search(fold(rest))
    words = rest[: behind.start()] if behind else rest
    to = _TO.match(fold(words))
    new = next((name for name in names[1:] if name), "") or tidy_item(words[to.end() if to else 0 :]).lower()
    if not new or len(new) > _LONGEST_NAME:
        return (
            f"Nothing is changed: say what your {entries[0].list} list is to be called, as in: rename it to birthday."
        )
    if any(fold(item.list) == fold(new) for item in todos):
        return f"You have a {new} list already, so nothing is changed. Say another name, or copy one list to the other."
    result = ""
    for some in _batches(entries):
        ids = [item.id for item in some]
        result = yield from call_tool("manage_todo_list", action="edit", ids=ids, list=new)
    return describe_todos(result)


def _batches(items: list[T]) -> list[list[T]]:
    """As many at once as the tool takes."""
    return [items[start : start + _MOST_AT_ONCE] for start in range(0, len(items), _MOST_AT_ONCE)]
