"""How offline mode reads an order: a sentence in, what is wanted of to-do lists, reminders and the agenda out. Pure.

An order is told by its verbs (`orders.toml`), its times by `core.time_pieces`, and what it is about by its words, which
`plans` looks for in what the person has. What always holds: what has the form of an order and is none that can be
carried out is `cannot`, never a note; what may as well be a statement ("got the milk") is `soft`, and is carried
out only where it fits something that is there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_pieces import find_length, find_times
from sleep.rules.pattern_files import compile_patterns, join_fragments

ORDERS_FILE = Path(__file__).with_name("orders.toml")
_LONGEST = 300
_ORDINARY_LISTS = frozenset(
    [
        "to-do",
        "todo",
        "do",
        "to",
        "my",
        "the",
        "a",
        "this",
        "task",
        "tasks",
        "aufgaben",
        "aufgabe",
        "meine",
        "die",
        "der",
        "generale",
        "taches",
        "tache",
        "faire",
        "tareas",
        "tarea",
        "pendientes",
        "hacer",
        "mi",
        "la",
        "ma",
        "une",
        "una",
        "that",
        "our",
        "mes",
        "mis",
        "whole",
        "entire",
        "ganze",
        "einer",
        "eine",
        "ne",
        "nouvelle",
        "neue",
        "nueva",
        "new",
        "deine",
        "ta",
        "tu",
    ]
)
_LIST = lazy_regex(
    r"(?:\b(?:zu[rm]|auf|in|von|an|aus|from|to|on|onto|off|into|of|a|sur|dans|de|en|del|al|la|mi|ma|my|the|die|der|das|den"
    r"|dem|meine[rnm]?|our|unsere[rn]?|notre|nuestra|ne|eine[rn]?|une|una|un|einen|nen|->|=>|→)\s+)*"
    r"(?:\b(?P<de>\w+?)(?:s|n|en)?(?:[- ])?(?:zettel|liste)\b(?! (?:de|des|d'|pour)\b)"
    r"(?: (?P<after>vacances|bricolage|courses|valise|noel|travail|maison|voyage|cadeaux|anniversaire|jardin)\b)?"
    r"|\b(?P<en>\w+(?:[- ]\w+)?) lists?\b"
    r"|\bliste (?:(?:de la|de l'|des|de|du|d'|pour (?:la |le |les |l')?)\s?)?(?P<fr>\w+)"
    r"|\blista (?:(?:de la|de los|de las|del|de|para (?:la |el )?)\s?)?(?P<es>\w+)"
    r"|\b(?P<plain>list|liste|lista|todos(?! l[oa]s\b)|to-dos|tasks|aufgaben|taches|tareas)\b)"
)
_SHOPPING = lazy_regex(
    r"(?:(?:->|=>|→)\s*|\b(?:to|on|auf|a|sur|en) (?:the |la |les |los |die |den )?|\b(?:de|von) (?:la |le )?)"
    r"(?P<name>shopping|groceries|grocery|einkauf|courses|compra)\b(?! (?:list|liste))"
)
_BETWEEN_ITEMS = lazy_regex(
    r"\s*[;\n]\s*|\s*(?<!\d),(?!\d)\s*(?:(?:and|und|et|y)\s+)?|"
    r"\s+(?:and|und|et|y|e|plus|sowie|\+|&)\s+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Order:
    """What is wanted. `kind` is one of the names of `plans.PLANS`."""

    kind: str
    text: str
    soft: bool = False  # may as well be a statement


@dataclass(frozen=True, slots=True)
class Orders:
    """What `orders.toml` holds."""

    patterns: Mapping[str, re.Pattern[str]]
    subject: Mapping[str, re.Pattern[str]]
    order_words: frozenset[str]
    articles: frozenset[str]


@cache
def read_orders() -> Orders:
    data = tomllib.loads(ORDERS_FILE.read_text(encoding="utf-8"))
    # What one fragment is part of another.
    fragments: dict[str, str] = data["fragments"]
    subject = {
        name: lazy_regex(join_fragments("orders", name, text, fragments), re.IGNORECASE)
        for name, text in data["subject"].items()
    }
    words = {name: frozenset(re.findall(r"\w+", fold_text(text))) for name, text in data["words"].items()}
    return Orders(compile_patterns("orders", data), subject, words["order"], words["articles"])


def says(name: str, text: str) -> bool:
    """Whether the folded `text` has the pattern `name` of `orders.toml`."""
    return read_orders().patterns[name].search(text) is not None


def fold(text: str) -> str:
    return fold_text(" ".join(text.split())).replace("’", "'")


def read_order(sentence: str, own_text: str, *, asks: bool) -> Order | None:
    """None for what is no order and nothing about what is planned. `own_text`: without what is quoted in it."""
    text = fold(own_text)
    if not text or len(text) > _LONGEST or says("keep", text):
        return None
    kind = _kind_of(text, asks=asks)
    return Order(kind.rstrip("?"), sentence, soft=kind.endswith("?")) if kind else None


def is_question(text: str) -> bool:
    return says("question", text)


def _starts_as_question(text: str) -> bool:
    return says("question", text.rstrip(" ?!.")) and not says("you_do", text)


def _is_reminding(text: str) -> bool:
    if _starts_as_question(text) or says("strong_move", text):
        return False
    if says("set_reminder", text):
        return True
    if says("drop", text):
        return False
    if says("sense_drop", text) and re.search(r"\b(?:drop|cancel|scrap|remove|delete) (?:it|that)\b", text):
        return False
    rings = says("alarm", text) or says("timer", text)
    rings = rings and not text.rstrip().endswith("?") and not says("instead", text)
    named = any(map(str.isdigit, text)) or find_times(text).names_moment or find_length(text) is not None
    return says("wants_reminder", text) or (rings and named and not says("forms", text) and not says("states", text))


def _is_by_rule(text: str) -> bool:
    """A thing to do with how often, or a time in front of it: "every Monday at 8 take out the trash"."""
    found = find_times(text)
    if not found.pieces or says("forms", fold(found.words)) or re.search(r"\b(?:i|we|ich|wir|je|on|yo)\b", text):
        return False
    return bool(found.rule) and found.has_clock and not says("states", text)


def _changes_list(text: str) -> bool:
    return (
        says("add", text)
        and not says("show", text)
        and (names_list(text) or says("todo_noun", text))
        and not says("relist", text)
    )


def _asks_of_plans(text: str) -> bool:
    if not (is_question(text) or says("show", text) or says("agenda", text) or _is_bare_time(text)):
        return says("next_one", text) or says("list_only", text)
    found = find_times(text)
    topics = ("reminder_noun", "todo_noun", "next_one", "already_done", "open_todos", "list_only")
    return (
        names_list(text)
        or any(says(name, text) for name in topics)
        or (bool(found.pieces) and says("agenda", text))
        or _is_bare_time(text)
        or says("show_only", text)
    )


def _is_bare_time(text: str) -> bool:
    """A question that is but a day: "and the day after tomorrow?"."""
    found = find_times(text)
    rest = re.sub(
        r"\b(?:and|und|et|y|so|what about|how about|was ist mit|quoi|que|on|am)\b|[\W_]+", "", fold(found.words)
    )
    return bool(found.pieces) and not rest and text.rstrip().endswith("?")


def names_list(text: str) -> bool:
    return _LIST.search(text) is not None or _SHOPPING.search(text) is not None


def _is_of_the_world(text: str) -> bool:
    own = ("forms", "set_reminder", "todo_noun", "reminder_noun")
    return says("world", text) and not names_list(text) and not any(says(name, text) for name in own)


def _moves(text: str) -> bool:
    named = find_times(text).pieces or find_length(text) or re.search(r"\d$", text)
    return says("move", text) and bool(named or says("shift", text))


def _puts_on_list(text: str) -> bool:
    """Things and a list, without a verb: "milk and bread on the shopping list"."""
    other = ("question", "show", "forms", "agenda_noun", "list_only", "sense_drop", "passes_on")
    return names_list(text) and not any(says(name, text) for name in other)


# In this order: the first that fits. With "?" it is soft. Those of the second half are no questions.
_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("undo", lambda t: says("undo", t)),
    ("world", _is_of_the_world),
    ("cancel", lambda t: says("not_needed", t)),
    ("change", lambda t: says("change_rule", t) and bool(find_times(t).pieces)),
    ("relist", lambda t: says("relist", t)),
    ("ask", lambda t: says("list_only", t)),
    ("remind", _is_reminding),
)
_ORDER_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("again", lambda t: says("again", t) and says("set_reminder", t) and bool(find_times(t).pieces)),
    ("snooze", lambda t: says("snooze", t)),
    ("undated", lambda t: says("not_due", t)),
    ("rename", lambda t: says("rename", t) and not find_times(t).pieces),
)
_LATER_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("reopen?", lambda t: says("reopen", t)),
    ("add", lambda t: says("add_heading", t) or says("list_heading", t)),
    ("complete", lambda t: says("mark", t)),
    ("remove", lambda t: says("drop", t)),
    ("complete?", lambda t: says("done", t)),
    ("add", _changes_list),
    ("move", _moves),
    ("add", _puts_on_list),
)
_LAST_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("remind", _is_by_rule),
    ("cannot", lambda t: says("cannot", t)),
    ("cannot", lambda t: says("imperative", t) and not is_question(t) and not says("forms", t)),
    ("move?", lambda t: says("amend", t) and bool(find_times(t).pieces) and not _starts_as_question(t)),
    ("more?", lambda t: says("more", t)),
    ("move", lambda t: says("strong_move", t) and not says("states", t)),
)


def _kind_of(text: str, *, asks: bool) -> str | None:
    orders = _ORDER_KINDS if not asks else ()
    later = _LATER_KINDS if not _starts_as_question(text) else ()
    kinds = (*_KINDS[:3], *orders, *_KINDS[3:], *later, ("ask", _asks_of_plans), *_LAST_KINDS)
    return next((kind for kind, test in kinds if test(text)), None)


# -------------------------------------------------------------------------------------------------------- what is meant


def list_names(text: str) -> list[str]:
    """The lists that an order names, in its order; "" is the ordinary one."""
    folded = fold(text)
    matches = [*_LIST.finditer(folded), *_SHOPPING.finditer(folded)]
    if heading := read_orders().patterns["list_heading"].match(folded):
        matches = matches or [heading]
    return [_list_name(" ".join(text.split()), match) for match in sorted(matches, key=lambda match: match.start())]


def _list_name(text: str, match: re.Match[str]) -> str:
    groups = match.groupdict()
    for name in ("after", "de", "en", "fr", "es", "name"):
        if groups.get(name):
            word = text[match.start(name) : match.end(name)]
            words = [
                part
                for part in re.split(r"[- ]", fold(word))
                if part not in _ORDINARY_LISTS | read_orders().order_words
            ]
            kept = " ".join(words)
            kept = re.sub(r"(?<=\w\w\w)s?(?:liste|zettel)$", "", kept)
            return "" if not kept or kept in _ORDINARY_LISTS else kept
    return ""


def without_lists(text: str) -> str:
    """The words of an order without the lists that it names."""
    plain = " ".join(text.split())
    for pattern in (_LIST, _SHOPPING):
        folded = fold(plain)
        for match in reversed(list(pattern.finditer(folded))):
            plain = f"{plain[: match.start()]} {plain[match.end() :]}"
    return " ".join(plain.split())


def split_items(text: str, *, freely: bool) -> list[str]:
    """The things of a list: several where there are marks between them, and with `freely` also where there is "and"."""
    text = re.sub(r"\s+", " ", text).strip(" .,;:!")
    if not freely and not re.search(r"[,;]", text):
        parts = re.split(r"(?i)\s+(?:and|und|et|y)\s+", text)
        parts = parts if len(parts) > 1 and all(len(part.split()) == 1 for part in parts) else [text]
    else:
        parts = _BETWEEN_ITEMS.split(text)
    parts = [tidy_item(part) for part in parts]
    return [part for part in parts if part] or [text]


def tidy_item(text: str) -> str:
    """A thing without its article and what stands around it."""
    words = text.strip(" .,;:!?\"'“”„-").split()
    while len(words) > 1 and fold(words[0]) in read_orders().articles:
        words = words[1:]
    item = " ".join(words)
    return re.sub(r"^(?:d'|l'|de l')(?=\w)", "", item, flags=re.IGNORECASE)


def order_subject(text: str) -> str:
    """What a reminder is about: the words without the order."""
    subject = read_orders().subject
    plain = " ".join(text.split())
    for match in reversed(list(subject["strip"].finditer(fold(plain)))):
        plain = f"{plain[: match.start()]} {plain[match.end() :]}"
    plain = " ".join(plain.split())
    for _ in range(4):
        before = plain
        if leading := subject["lead"].match(fold(plain)):
            plain = plain[leading.end() :]
        tail = re.search(rf"(?<!\w)(?:{subject['tail'].pattern})$", fold(plain))
        plain = plain[: tail.start()] if tail else plain
        plain = " ".join(plain.strip(" ,;:.!?-–").split())
        if leading := subject["article"].match(fold(plain)):
            plain = plain[leading.end() :]
        if plain == before:
            break
    return re.sub(r"\s+([,.;:!?])", r"\1", " ".join(plain.split()))


def todo_items(text: str) -> str:
    """What is to stand on a list: the words without the order and the list."""
    orders = read_orders()
    plain = " ".join(text.split())
    heading = orders.patterns["list_heading"].match(fold(plain)) or orders.patterns["add_heading"].match(fold(plain))
    if heading:
        return plain[heading.end() :]
    clauses = re.split(r"\s*[,;]\s+|\s+-\s+", without_lists(plain))
    while len(clauses) > 1 and orders.subject["pronoun"].match(fold(clauses[-1])):
        clauses.pop()
    joined = ", ".join(clauses)
    for name in ("verb", "need"):
        if match := orders.subject[name].match(fold(joined)):
            joined = joined[match.end() :]
    if ": " in joined and len(joined.split(": ")[0].split()) <= 4:
        joined = joined.split(": ", 1)[1]
    for _ in range(3):
        if match := orders.subject["verb_tail"].search(fold(joined)):
            joined = joined[: match.start()]
    return joined
