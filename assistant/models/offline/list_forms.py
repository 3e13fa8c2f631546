"""What a sentence says of a list by its form alone: "screws for the DIY list", "shopping: eggs", "todo: clear the
gutters". Pure.

What always holds: what stands behind the heading of a list or of a task is put there, and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import find_times
from assistant.core.time_readers import find_length
from assistant.models.offline.cues import fold, read_cues, says_any
from assistant.models.offline.lists import list_names, quoted_items, without_lists
from assistant.models.offline.matching import ListedItem, matching, subject_words
from assistant.models.offline.order_signs import TOLD
from assistant.models.offline.targets import content_words

# "todo: clear the gutters" is no order to clear.
_HEADS_TODO = lazy_regex(
    r"^(?:please |bitte )?(?:(?:new |neue |nouvelle |nueva )?(?:to-?do|task|aufgabe|tache|tarea|pendiente)s?|add"
    r"|ajoute|anade|apunta"
    r"|notiere?|(?:note )?a faire|por hacer|zu (?:erledigen|tun)) ?: ?\S"
    r"|^(?:(?:two|three|zwei|drei|deux|trois|dos|tres|\d) )?(?:things|jobs|chores|errands|choses|trucs|cosas"
    r"|sachen|dinge)"
    r"(?: (?:left to do|to do|a faire|por hacer|zu tun|zu erledigen))? ?: ?\S"
)
_NOTES_QUOTED = lazy_regex(
    r"^(?:please |bitte |can you |tu peux |puedes )*(?:put|write|note|add|jot|stick|schreib\w*|notier\w*|setz\w*"
    r"|trag\w*|note[rz]?|inscris|mets|ajoute|marque|apunta\w*|anota\w*|anade\w*|pon\w*)\b"
    r"[^'\"“„«‘]{0,40}['\"“„«‘]"
)
# "Add another milk"
_ADDS_ANOTHER = lazy_regex(
    r"^(?:please |pls |and |also )*add (?:another|one more|some more|more|an extra) (?!time|minute|hour)\w"
)
# "Screws for the DIY list", "on n'a plus de sel, liste de courses": what is named before a list, and nothing of it
# ordered, is to stand on it.
_FOR_LIST = lazy_regex(
    r"^(?!(?:go|going|off|lets|let's|vamos|voy|vais|allons|gehe?n?)\b)[^?]+?(?:,| (?:for|on|onto|to|in|so|fur|auf"
    r"|in|also|pour|sur|dans|donc|para|en|a|aux?|asi que))"
    r"(?: (?:the|my|our|die|den|der|meine[rn]?|la|ma|el|mi|zur?|l'))? "
    r"(?:[\w-]+ lists?|(?:shopping|groceries|einkauf|courses|compra|super)|\w*(?:liste|zettel)(?: [\w' ]{2,20})?"
    r"|lista(?: [\w ]{2,20})?|liste \w+)(?: (?:please"
    r"|pls|bitte|stp|porfa))*[.! ]*$"
)
# "Put clear out the cellar on my list"
_PUT_ON_LIST = lazy_regex(
    r"^(?:please |pls |bitte |can you |could you |stp |porfa )*(?:(?:put|add|stick|pop|chuck|bung|write|note"
    r"|jot)(?: down)? .+ (?:on|to|onto|in|into)"
    r" (?:my|the|our) (?:[\w-]+ )?(?:lists?|to-?dos?|to do list|tasks)"
    r"|(?:setze?|schreibe?|packe?|notiere?) .+ auf (?:meine|die|den|unsere) \w*(?:liste|zettel)"
    r"|(?:mets|ajoute|note|inscris) .+ (?:sur|a|dans) (?:ma|la|mes|les) (?:liste\b.*|taches)"
    r"|(?:pon|anade|apunta|mete) .+ (?:a|en) (?:mi|la|mis) (?:lista\b.*|tareas))(?: please| pls| bitte| stp"
    r"| porfa)*[.!]*$"
)


def notes_quoted(text: str) -> bool:
    """Whether something in quotation marks is to be written down: "schreib mir 'Gartentor reparieren' auf"."""
    return _NOTES_QUOTED.match(fold(text)) is not None and bool(quoted_items(text))


def heads_todo(text: str) -> bool:
    """Whether a thing to do stands behind "todo:", "add:" or the like."""
    return _HEADS_TODO.match(fold(text)) is not None


def puts_on_list(text: str) -> bool:
    """Whether something is ordered to be put on a list: "put clear out the cellar on my list"."""
    return _PUT_ON_LIST.match(fold(text)) is not None


def is_for_list(text: str, likeliest: str, waiting: Sequence[ListedItem]) -> bool:
    """Whether a sentence only names things and the list that they are for, or says that they have run out."""
    folded = fold(text)
    if _FOR_LIST.match(folded) is None or not list_names(text):
        return False
    runs_out = read_cues().subject["need"].match(folded) is not None
    told = ("show", "show_only", "done", "sense_done", "clear", "all", "anything", "count", "tells_past", "recalls")
    if says_any(told, folded) or matching(subject_words(without_lists(text)), waiting):
        return False
    plain = likeliest in ("ask", "statement") and not says_any(("states", "sense_drop", "forms"), folded)
    return bool(content_words(text)) and (runs_out or plain)


def heads_list(text: str, likeliest: str) -> bool:
    """Whether the name of a list stands before what it is to have: "shopping: eggs (free range), 2x butter"; or it is
    ordered to add something, and nothing else."""
    folded = fold(text)
    heading = read_cues().patterns["list_heading"].match(folded)
    rest = folded[heading.end() :] if heading else ""
    told = ("done", "sense_done", "sense_drop", "drop", "states", "show", "clear", "question_word")
    if rest and likeliest in (*TOLD, "ask") and not says_any(told, rest):
        return bool(content_words(rest))
    adds = _ADDS_ANOTHER.match(folded)
    return adds is not None and not find_times(text).pieces and find_length(folded) is None
