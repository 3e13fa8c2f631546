"""The lists that a sentence names, and the things that it puts on them or is about. Pure."""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from assistant.models.offline.cues import fold, read_cues

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
    r"|dem|meine[rnm]?|mes|mis|las?|los|les|our|unsere[rn]?|notre|nos|nuestr[oa]s?|ne|parmi|entre|eine[rn]?|une|una|un|einen|nen|->|=>|→)\s+)*"
    r"(?:\b(?P<plain2>to-?\s?do-?\s?list[es]?)\b|\b(?P<de>\w+?)s?(?:[- ])?(?:zettel|liste)\b(?! (?:de|des|d'|pour)\b)"
    r"(?: (?P<after>vacances|bricolage|courses|valise|noel|travail|maison|voyage|cadeaux|anniversaire|jardin)\b)?"
    r"|\b(?P<en>\w+(?:[- ]\w+)?) lists?\b"
    r"|\bliste (?:(?:de la|de l'|des|de|du|d'|pour (?:la |le |les |l')?)\s?)?(?P<fr>\w+)"
    r"|\blista (?:(?:de la|de los|de las|del|de|para (?:la |el )?)\s?)?(?P<es>\w+)"
    r"|\b(?P<plain>list|liste|lista|todos(?! l[oa]s\b)|to-dos|tasks|aufgaben|taches|tareas)\b)"
)
_SHOPPING = lazy_regex(
    r"(?:(?:->|=>|→)\s*|\b(?:to|on|auf|a|aux?|sur|en|for|pour|fur|para|cote) (?:the |la |les |los |die |den )?"
    r"|\b(?:de|von) (?:la |le )?)"
    r"(?P<name>shopping|groceries|grocery|einkauf|courses|compra|super|supermercado|mercado"
    r"|mandado)\b(?! (?:list|liste))"
    r"|\b(?:lo |la |el )?(?:del|de las|de la|des) (?P<name2>super|supermercado|mercado|mandado|compras?|courses)\b"
)
_BETWEEN_ITEMS = lazy_regex(
    r"\s*[;\n]\s*|\s*(?<!\d),(?!\d)\s*(?:(?:and|und|et|y|ni)\s+)?|\.\s+(?:(?:and|und|et|y)\s+)?|"
    r"\s+(?:and|und|et|y|e|ni|plus|sowie|as well as|\+|&)\s+",
    re.IGNORECASE,
)


_SAME_LISTS = (
    frozenset(
        [
            "shopping",
            "grocery",
            "groceries",
            "supermarket",
            "einkauf",
            "einkaufen",
            "einkaufs",
            "courses",
            "commissions",
            "compra",
            "compras",
            "super",
            "supermercado",
            "mercado",
            "mandado",
        ]
    ),
    frozenset(["packing", "pack", "packen", "gepack", "koffer", "reise", "valise", "bagages", "maleta", "equipaje"]),
)


# A list that gets its name here: "a new list called Nursery".
_NAMED_LIST = lazy_regex(
    r"(?:\w+ )?(?:a |an |una? |une |eine )?(?:new |neue |nouvelle |nueva )?(?:list|liste|lista) (?:called"
    r"|named|namens|genannt|mit (?:dem )?namen?"
    r"|(?:qui s')?appelee?|que se llam[ae]|llamada|de nombre|,? die) (?P<name>[\w-]+)(?: heiß?ss?t| heissen"
    r"| heißen)?(?:,? (?:and|und|et|y)\b)?",
    re.IGNORECASE,
)
_QUOTED = lazy_regex(r"(?<!\w)[\"'“„«‘]\s*([^\"'“”„«»‘’]{2,80}?)\s*[\"'“”»’](?!\w)")
# "for the ward:", "Rehearsal to-dos:"
_HEAD = lazy_regex(r"^(?:[^\s:]+\s+){0,3}[^\s:]+\s*:\s+(?=\S)")
_DUE = lazy_regex(
    r"\b(?:au plus tard|spätestens|at the latest|como (?:muy tarde|máximo|mucho)|a más tardar|échéance"
    r"|date limite|fecha límite|deadline"
    r"|fällig|merci (?:de|d')|veuillez|hm+|äh+|ähm|so ne|oh|ach(?: ja| genau)?"
    r"|ah (?:yes|ja|oui|sí|genau|voilà)|what was it"
    r"|wie hieß das(?: noch)?|wenn'?s geht|wenn es geht|if (?:you can|possible)|si (?:puedes|tu peux|possible)|porfi"
    r"|ohne (?:Datum|Termin)|without a date|sans date|sin fecha)\b",
    re.IGNORECASE,
)
# "échalo", "agrégalo porfi", "note-les": what was named before goes on the list.
_POINTS_TO_IT = lazy_regex(
    r"(?:(?:pon|echa|agrega|anade|apunta|anota|mete|metese|suma|incluye)(?:me|se)?l[oae]s?|(?:mets|note|ajoute|rajoute|inscris)-l[ea]s?)"
    r"(?: (?:porf\w*|stp|ahi|tambien|aussi|please))?"
)
# Two things to do, in languages whose verbs show it: "relancer le client et nettoyer la cage".
_TWO_TASKS = lazy_regex(
    r"^(?P<one>\w+(?:er|ir|re|oir|ar|arse|erse|irse) .+?) (?:et|y) (?P<other>\w+(?:er|ir|re|oir|ar|arse|erse|irse) .+)$"
    r"|^(?P<one2>.+ \w+en) und (?P<other2>.+ \w+en)$",
    re.IGNORECASE,
)
_LIST_CLAUSES = lazy_regex(
    r"\s*(?<!\d)[,;:](?!\d)\s*|(?<=\w\w\w)[.!?]+\s+|\s+[-–]\s+|\s+\.\.+\s*"
    r"|\s+(?:and|und|et|y)\s+(?=(?:pop|put|add|stick|write|jot|schreib|setz|pack|tu|mets|met|ajoute|note|mete|pon|apunta|anade|añade)\b)",
    re.IGNORECASE,
)


def names_list(text: str) -> bool:
    return _LIST.search(text) is not None or _SHOPPING.search(text) is not None


# -------------------------------------------------------------------------------------------------------- what is meant


def list_names(text: str) -> list[str]:
    """The lists that an order names, in its order; "" is the ordinary one."""
    if named := _NAMED_LIST.search(text):
        return [fold(named["name"])]
    folded = fold(text)
    matches = [*_LIST.finditer(folded), *_SHOPPING.finditer(folded)]
    if heading := read_cues().patterns["list_heading"].match(folded):
        matches = matches or [heading]
    return [_list_name(" ".join(text.split()), match) for match in sorted(matches, key=lambda match: match.start())]


def _list_name(text: str, match: re.Match[str]) -> str:
    groups = match.groupdict()
    for name in ("after", "de", "en", "fr", "es", "name", "name2"):
        if groups.get(name):
            word = text[match.start(name) : match.end(name)]
            words = [
                part
                for part in re.split(r"[- ]", fold(word))
                if part not in _ORDINARY_LISTS | read_cues().order_words or any(part in names for names in _SAME_LISTS)
            ]
            kept = " ".join(words)
            kept = re.sub(r"(?<=\w\w\w)s?(?:liste|zettel)$", "", kept)
            return "" if not kept or kept in _ORDINARY_LISTS else kept
    return ""


def mark_lists(folded: str) -> str:
    """A folded text with a mark for each list that it names."""
    for pattern in (_LIST, _SHOPPING):
        folded = pattern.sub(" <list> ", folded)
    return folded


def is_same_list(name: str, wanted: str) -> bool:
    """Whether two names mean one list: the same, a beginning of the other, or two words for one thing."""
    one, other = fold(name), fold(wanted)
    if one == other or any({one, other} <= names for names in _SAME_LISTS):
        return True
    return len(other) > 3 and (one.startswith(other) or (other.startswith(one) and bool(one)))


def without_lists(text: str) -> str:
    """The words of an order without the lists that it names."""
    plain = _NAMED_LIST.sub(" ", " ".join(text.split()))
    for pattern in (_LIST, _SHOPPING):
        # Tea is no article.
        folded = fold(re.sub("th(?:é|É)", "th~", plain, flags=re.IGNORECASE))
        for match in reversed(list(pattern.finditer(folded))):
            plain = f"{plain[: match.start()]} {plain[match.end() :]}"
    return " ".join(plain.split())


def quoted_items(text: str) -> list[str]:
    """What stands in quotation marks: "I want 'lay the table' and 'thaw shrimp' as tasks"."""
    return [tidy_item(match[1]) for match in _QUOTED.finditer(text)]


def split_items(text: str, *, freely: bool) -> list[str]:
    """The things of a list: several where there are marks between them, and with `freely` also where there is "and"."""
    text = re.sub(r"\s+", " ", text).strip(" .,;:!")
    if not freely and not re.search(r"[,;]", text):
        parts = re.split(r"(?i)\s+(?:and|und|et|y)\s+", text)
        parts = parts if len(parts) > 1 and all(len(part.split()) == 1 for part in parts) else [text]
    else:
        parts = _BETWEEN_ITEMS.split(text)
    parts = [tidy_item(each) for part in parts for each in _two_tasks(part)]
    return [part for part in parts if part] or [text]


def _two_tasks(text: str) -> list[str]:
    if (match := _TWO_TASKS.search(text)) is None:
        return [text]
    return [part for part in match.groups() if part]


def tidy_item(text: str) -> str:
    """A thing without its article and what stands around it."""
    words = text.strip(" .,;:!?\"'“”„-").split()
    while len(words) > 1 and fold(words[0]) in read_cues().articles:
        words = words[1:]
    item = " ".join(words)
    return re.sub(r"^(?:d'|l'|de l')(?=\w)", "", item, flags=re.IGNORECASE)


def order_subject(text: str) -> str:
    """What a reminder is about: the words without the order."""
    subject = read_cues().subject
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
    """What is to stand on a list: the words without the order, the list, and clauses that only order."""
    orders = read_cues()
    plain = _NAMED_LIST.sub(" ", " ".join(text.split()))
    heading = orders.patterns["list_heading"].match(fold(plain)) or orders.patterns["add_heading"].match(fold(plain))
    if heading:
        return plain[heading.end() :]
    plain = _HEAD.sub("", without_lists(plain), count=1) if list_names(plain) else without_lists(plain)
    clauses = [_without_order(clause) for clause in _LIST_CLAUSES.split(plain)]
    return ", ".join(clause for clause in clauses if clause)


def _without_order(clause: str) -> str:
    """A clause without the verb that orders; "" where nothing else is in it."""
    clause = " ".join(_DUE.sub(" ", clause).split())
    orders = read_cues()
    for _ in range(2):
        for name in ("verb", "need"):
            if match := orders.subject[name].match(fold(clause)):
                clause = clause[match.end() :]
    for _ in range(3):
        if match := orders.subject["verb_tail"].search(fold(clause)):
            clause = clause[: match.start()]
    if _POINTS_TO_IT.fullmatch(fold(clause)):
        return ""
    words = re.findall(r"\w+", orders.patterns["puts"].sub(" ", fold(clause)))
    return (
        clause
        if "thé" in clause.casefold() or any(word not in orders.order_words and not word.isdigit() for word in words)
        else ""
    )
