"""The lists that a sentence names, and the things that it puts on them or is about. Pure."""

from __future__ import annotations

import re

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from assistant.core.time_language import DAYS
from assistant.core.time_pieces import begins_with_name, find_times
from assistant.models.offline.cues import TEA, fold, mark_things, read_cues

# "Ma liste pour demain" has no name.
_WHEN = rf"(?:demain|apres-demain|aujourd'hui|ce|cette|manana|pasado|hoy|est[ea]|{'|'.join(DAYS.values())})\b"
# Nouns that end like verbs: "ma liste atelier".
_NOUNS_IN_ER = r"(?:atelier|anniversaire|panier|chantier|papier|hiver|gouter|diner|potager|verger|grenier|loisir)\b"
_LIST = lazy_regex(
    r"(?:\b(?:zu[rm]|auf|fur|for|pour|para|in|von|an|aus|from|to|on|onto|off|into|of|a|sur|dans|de|en|del|al|la"
    r"|mi|ma|my|the|die|der|das|den|dem|meine[rnm]?|mes|mis|las?|los|les|our|unsere[rn]?|notre|nos|nuestr[oa]s?"
    r"|ne|parmi|entre|eine[rn]?|une|una|un|einen|nen|->|=>|→)\s+)*"
    r"(?:\b(?P<plain2>to-?\s?do-?\s?list[es]?)\b|\b(?!(?:stunden|kassen|beipack|straf|lauf|lotto)zettel)"
    r"(?P<de>\w+?)s?(?:[- ])?(?:zettel|liste)\b(?! (?:de|des|d'|pour)\b)"
    r"(?: (?P<after>vacances|bricolage|courses|valise|noel|travail|maison|voyage|cadeaux|anniversaire|jardin)\b)?"
    r"|\b(?P<en>\w+(?:-\w+)+|(?:(?<!\band )\w+[- ])?\w+) lists?\b"
    rf"|\bliste (?:(?:de la|de l'|des|de|du|d'|pour (?:la |le |les |l')?)\s?|(?!(?!{_NOUNS_IN_ER})\w+(?:er|ir|re)\b))"
    rf"(?P<fr>(?!s'|stp|svp|{_WHEN})\w+)"
    rf"|\blista (?:(?:de la|de los|de las|del|de|para (?:la |el )?)\s?|(?!\w+[aei]r\b))(?P<es>(?!{_WHEN})\w+)"
    r"|\b(?P<plain>list|liste|lista|todos(?! l[oa]s\b)|to-dos|tasks|aufgaben|taches|tareas|(?<=my )(?:jobs|chores))\b)"
)
_SHOPPING = lazy_regex(
    r"(?:(?:->|=>|→)\s*|\b(?:to|onto|into|on|auf|a|aux?|sur|dans|en|for|pour|fur|para|cote|beim?|zum) "
    r"(?:the |la |les |los |die |den )?"
    r"|\b(?:de|von) (?:la |le )?)"
    r"(?P<name>shopping|groceries|grocery|einkauf(?:en|s)?|courses|compra|super|supermercado|mercado"
    r"|mandado)\b(?! (?:list|liste))"
    r"|\b(?:lo |la |el )?(?:del|de las|de la|des) (?P<name2>super|supermercado|mercado|mandado|compras?|courses)\b"
)
_BETWEEN_ITEMS = lazy_regex(
    r"\s*[;\n]\s*|\s+/\s+|\s*(?<!\d),(?!\d)\s*(?:(?:and|und|et|y|ni)\s+)?|\.\s+(?:(?:and|und|et|y)\s+)?|"
    r"\s+(?:and|n|und|et|y|e|ni|plus|sowie|as well as|along with|ainsi que|así como|\+|&)\s+",
    re.IGNORECASE,
)


# Things that are called by two: "salt and vinegar crisps".
_ONE_THING = lazy_regex(
    r"\b(?:salt (?:and|&|'?n'?) vinegar|sel et vinaigre|sal y vinagre|essig und salz|cheese (?:and|&|'?n'?) onion"
    r"|mac (?:and|&|'?n'?) cheese"
    r"|fish (?:and|&|'?n'?) chips|gin (?:and|&|'?n'?) tonic|bangers (?:and|&|'?n'?) mash"
    r"|sweet (?:and|&|'?n'?) sour|half (?:and|&|'?n'?) half|head (?:and|&|'?n'?) shoulders|cookies (?:and|&"
    r"|'?n'?) cream|rum (?:and|&|'?n'?) raisin|ben (?:and|&|'?n'?) jerry'?s"
    r"|salz und pfeffer(?= ?chips)|sour cream (?:and|&|'?n'?) onion)\b",
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


_ENDS_IN_S = frozenset(["hau", "bu", "krei", "prei", "kur", "ma", "gra", "ei"])
_QUOTED = lazy_regex(r"(?<!\w)[\"'“„«‘]\s*([^\"'“”„«»‘’]{2,80}?)\s*[\"'“”»’](?!\w)")
# "épicerie : tofu, nouilles"; "Y en ferretería: tacos"
_HEADING = lazy_regex(
    r"(?P<before>(?:^|[.;,!]\s+|\s)(?:(?:y|und|and|et|also|auch|aussi|tambien)\s+)?)"
    r"(?P<to>(?:(?:en|auf|on|to|sur|a|in|for|fur|pour|para|dans|zu|ins|beim|bei)\s+(?:(?:the|my|la|le|les|el|mi"
    r"|die|den|der|ma)\s+)?)?)"
    r"(?P<name>[^\W\d_]{3,}(?:[- ][^\W\d_]+)?)\s*:(?=\s)"
)
_COURTESY_BEHIND = lazy_regex(
    r"(?<![\s,])[\s,]+(?:please|pls|plz|bitte|stp|svp|s'il (?:te|vous) pla[iî]t|porfa(?:vor)?|por favor|thanks"
    r"|danke|merci|gracias)[\s.!]*$",
    re.IGNORECASE,
)
# "Zu erledigen:" names no list.
_TO_DO = lazy_regex(
    r"(?:zu \w+e[lr]?n|(?:a|por|para) \w+(?:er|ir|re|ar)|to \w+|(?:\w+ )?(?:jobs|chores|errands|things|stuff"
    r"|pending|outstanding))"
)
_AND = lazy_regex(
    r"^(?:(?:and|und|et|y(?! a\b)|also|auch|aussi|tambien|también)\b[\s,]*)+|[\s,]+(?:and|und|et|y)$", re.IGNORECASE
)
# What is in a list behind its name.
_CONTENTS = lazy_regex(
    r"^(?:(?:and|und|et|y(?! a\b)|with|containing|mit|avec|dedans|con|drauf|darauf|but|aber|mais|pero)\s+)+",
    re.IGNORECASE,
)
# "trag mir drei Sachen als Aufgaben ein: ..."
_HEAD_OF_TASKS = lazy_regex(
    r"^[^:,]{0,60}\b(?:things|stuff|jobs?|chores?|errands?|pending|outstanding|tasks?|to-?dos?|sachen|dinge"
    r"|aufgaben?|erledigen|trucs|choses|taches?|deberes"
    r"|cosas?|cosita"
    r"|tareas?|pendientes?)\b[^:,]{0,40}:\s"
)
# "for the ward:", "Rehearsal to-dos:"
_HEAD = lazy_regex(r"^(?:[^\s:]+\s+){0,3}[^\s:]+\s*:\s+(?=\S)")
_DUE = lazy_regex(
    r"\b(?:au plus tard|spätestens|at the latest|como (?:muy tarde|máximo|mucho)|a más tardar|échéance"
    r"|date limite|fecha límite|deadline"
    r"|fällig|merci (?:de|d')|veuillez|hm+|äh+|ähm|so ne|oh|ach(?: ja| genau)?"
    r"|ah (?:yes|ja|oui|sí|genau|voilà)|what was it"
    r"|wie hieß das(?: noch)?|wenn'?s geht|wenn es geht|if (?:you can|possible|you'?d be so kind)|si es tan amable"
    r"|wenn (?:sie|du) so nett (?:sind|wären|bist|wärst)|si ça ne te dérange pas"
    r"|si (?:puedes|tu peux|possible)|porfi"
    r"|ohne (?:Datum|Termin)|without a date|sans date|sin fecha)\b",
    re.IGNORECASE,
)
# "échalo", "agrégalo porfi", "note-les": what was named before goes on the list.
_POINTS_TO_IT = lazy_regex(
    r"(?:(?:pone?|echa|agrega|anade|apunta|anota|mete|mets|metese|suma|incluye)(?:me|se)?l[oae]s?|(?:mets|note|ajoute"
    r"|rajoute|inscris)-l[ea]s?)"
    r"(?: (?:porf\w*|stp|ahi|tambien|aussi|please))?"
    r"|(?:and |so )?(?:(?:it|that|they|those|this|these) )?(?:should |needs? to |has to |have to )?(?:goes?|belongs?)"
    # "tu les inscris ?", "¿los apuntas?", "schreibst du die auf?"
    r"|¿?(?:tu )?(?:me |nous |nos )?(?:les?|la|los|las|lo)"
    r" (?:inscri|note|met|ajoute|rajoute|apunt|pon|anot|agreg|anad|ech)\w*"
    r"|(?:schreib|setz|pack|trag|notier)s?te? ?(?:du |mir )*(?:das|die|den|es|sie)?(?: auf| drauf| ein)?"
)
# Two things to do, in languages whose verbs show it: "relancer le client et nettoyer la cage".
# "Bread and also butter and oh yeah jam"
_BESIDE = lazy_regex(
    r"^(?:(?:and|und|et|y|also|auch(?: noch)?|noch|aussi|encore|también|tambien|oh|ach|ah|puis|then|dann|luego"
    r"|yeah|yes|ja|oui|sí"
    r"|right|maybe|vielleicht|peut-être|quizás?)[\s,]+)+(?=\w)",
    re.IGNORECASE,
)
_CHORE = (
    r"(?:book|defrost|wash|hoover|clean|call|ring|pay|mow|iron|tidy|water|fix|feed|renew|email|text|paint|sweep|measure|order"
    r"|collect|post|print|sign|replace|mend|descale|hang|vacuum|dust|wipe|polish|trim|weed|plant)"
)
_TWO_TASKS = lazy_regex(  # "mow the lawn and trim the hedge"
    r"^(?P<one>\w+(?:er|ir|re|oir|ar|arse|erse|irse) .+?) (?:et|y) (?P<other>\w+(?:er|ir|re|oir|ar|arse|erse|irse) .+)$"
    r"|^(?P<one2>.+ \w+en) und (?P<other2>.+ \w+en)$"
    rf"|^(?P<one4>{_CHORE} .+?) and (?P<other4>{_CHORE} .+)$"
    r"|^(?P<one3>[a-z]+ (?:the|my|our|a|an|some|his|her|their|this|that) .+?) and"
    r" (?P<other3>(?!(?:half|all|both|with|for|of|to|in|on|at|from|not|then|also|by|about|the|my|a)\b)[a-z]+"
    r" (?:the|my|our|an?|some|his|her|their|this|that) .+)$",
    re.IGNORECASE,
)
_LIST_CLAUSES = lazy_regex(
    r"\s*(?<!\d)[,;:](?!\d)\s*|(?<=\w\w\w)[.!?]+\s+|\s+[-–]\s+|\s+\.\.+\s*"
    # "Some new trainers put that on my wish list", without a mark.
    r"|\s+(?=(?:put|pop|stick|add|get|write|chuck|whack) (?:it|that|this|them|those|these|em)\b"
    r"|(?:setz|schreib|pack|tu|hau)e? (?:das|die|den|es|sie)\b"
    r"|(?:mets|ajoute|note|rajoute|inscris)[- ](?:le|la|les|ca|ça)\b"
    r"|(?:pon|anade|añade|apunta|apúnta|mete|méte|anota|anóta|agrega|agréga)(?:me)?l[oa]s?\b)"
    r"|\s+(?:and|und|et|y)\s+(?=(?:pop|put|add|stick|write|jot|schreib|setz|pack|tu|mets|met|ajoute|note|mete|pon"
    r"|apunta|anade|añade)\b)",
    re.IGNORECASE,
)


def names_list(text: str) -> bool:
    return _LIST.search(text) is not None or _SHOPPING.search(text) is not None


# -------------------------------------------------------------------------------------------------------- what is meant


def list_names(text: str) -> list[str]:
    """The lists that an order names, in its order; "" is the ordinary one."""
    plain = " ".join(text.split())
    return [_list_name(plain, match) for match in _mentions(plain)]


def first_mention(text: str) -> tuple[int, int] | None:
    """From where to where, in the text with single spaces, the first list is named."""
    return next((match.span() for match in _mentions(" ".join(text.split()))), None)


def _mentions(plain: str) -> list[re.Match[str]]:
    """Where lists are named, in their order."""
    folded = fold(plain)
    matches = [*_LIST.finditer(folded), *_SHOPPING.finditer(folded)]
    if heading := read_cues().patterns["list_heading"].match(folded):
        matches = [heading, *(match for match in matches if match.start() >= heading.end())]
    matches.sort(key=lambda match: match.start())
    return [match for place, match in enumerate(matches) if not place or match.start() >= matches[place - 1].end()]


@dataclass(frozen=True, slots=True)
class ListPart:
    """What of a sentence is to stand on one list; "" is the ordinary one."""

    name: str
    words: str
    is_named: bool  # whether the sentence names the list


def list_parts(text: str) -> list[ListPart]:
    """The whole sentence, or what it says of each of several lists: things stand before their list or, where nothing
    is before it, behind it."""
    plain = " ".join(text.split())
    mentions = _mentions(plain)
    names = [_list_name(plain, match) for match in mentions]
    if len(set(names)) < 2:
        return [ListPart(next(filter(None, names), ""), plain, bool(names))]
    ends = [0, *(match.end() for match in mentions)]
    starts = [*(match.start() for match in mentions), len(plain)]
    gaps = [_AND.sub("", plain[end:start].strip(" ,;.:")) for end, start in zip(ends, starts, strict=True)]
    parts: dict[str, list[str]] = {}
    things = [bool(todo_items(gap)) for gap in gaps]
    for place, name in enumerate(names):
        if not things[place] and things[place + 1]:
            things[place + 1] = False  # it is this list's, and no longer before the next
            parts.setdefault(name, []).append(gaps[place + 1])
        elif things[place]:
            parts.setdefault(name, []).append(gaps[place])
    if things[-1] and len(gaps) > 1:
        parts.setdefault(names[-1], []).append(gaps[-1])
    return [ListPart(name, ", ".join(words), is_named=True) for name, words in parts.items()]


def _list_name(text: str, match: re.Match[str]) -> str:
    groups = match.groupdict()
    for name in ("after", "de", "en", "fr", "es", "name", "name2"):
        if groups.get(name):
            word = text[match.start(name) : match.end(name)]
            words = re.split(r"[- ]", word.lower())
            if "-" not in word:
                words = [part for part in words if not _is_order_word(fold(part))]
            kept = re.sub(r"(?<=\w\w\w)s?(?:liste|zettel)$", "", " ".join(words))
            kept += "s" if kept in _ENDS_IN_S else ""  # "Hausliste"
            return "" if not kept or fold(kept) in read_cues().ordinary_lists else kept
    return ""


def _is_order_word(word: str) -> bool:
    ordinary = word in read_cues().ordinary_lists or word in read_cues().order_words
    return ordinary and not any(word in names for names in _SAME_LISTS)


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


def spell_headings(text: str) -> str:
    """A word with a colon before several things as a list: "épicerie : tofu, riz" is "on the épicerie list: ..."."""
    plain = " ".join(text.split())
    for match in reversed(list(_HEADING.finditer(fold(plain)))):
        is_list = match["to"] or "," in plain[match.end() :]
        words = match["name"].split()
        if (
            not is_list
            or not read_cues().order_words.isdisjoint(words)
            or names_list(match[0])
            or _TO_DO.fullmatch(f"{match['to']}{match['name']}")
            or find_times(match[0]).pieces
        ):
            continue
        name = plain[match.start("name") : match.end("name")]
        plain = f"{plain[: match.end('before')]}on the {name.replace(' ', '-')} list:{plain[match.end() :]}"
    return plain


def without_lists(text: str) -> str:
    """The words of an order without the lists that it names."""
    plain = " ".join(text.split())
    for pattern in (_LIST, _SHOPPING):
        for match in reversed(list(pattern.finditer(mark_things(plain)))):
            plain = f"{plain[: match.start()]} {plain[match.end() :]}"
    return " ".join(plain.split())


def quoted_items(text: str) -> list[str]:
    """What is in quotation marks: "I want 'lay the table' and 'thaw shrimp' as tasks"."""
    return [tidy_item(match[1]) for match in _QUOTED.finditer(text)]


def split_items(text: str, *, freely: bool) -> list[str]:
    """The things of a list: several where there are marks between them, and with `freely` also where there is "and"."""
    text = re.sub(r"\s+", " ", text).strip(" .,;:!")
    if not freely and not re.search(r"[,;]", text):
        parts = re.split(r"(?i)\s+(?:and|und|et|y)\s+", text)
        parts = parts if len(parts) > 1 and all(len(part.split()) == 1 for part in parts) else [text]
    else:
        kept = _ONE_THING.sub(lambda match: match[0].replace(" ", "\0"), text)
        parts = [part.replace("\0", " ") for part in _BETWEEN_ITEMS.split(kept)]
    parts = [tidy_item(_BESIDE.sub("", each)) for part in parts for each in _two_tasks(part)]
    parts = [each for part in parts for each in (_in_a_row(part, one_of_several=len(parts) > 1) if freely else [part])]
    return [part for part in parts if part] or [text]


def _in_a_row(text: str, *, one_of_several: bool) -> list[str]:
    """Each of several groceries that nothing stands between: "eggs milk". In English the first of two has to be a
    plural: "milk chocolate" is one thing."""
    words = text.split()
    folded = [fold(word) for word in words]
    languages = [name for name, known in read_cues().groceries.items() if known.issuperset(folded)]
    several = len(words) > 1 and any(
        name != "en" or folded[0].endswith("s") or len(words) > 2 or one_of_several for name in languages
    )
    return words if several else [text]


def _two_tasks(text: str) -> list[str]:
    if (match := _TWO_TASKS.search(text)) is None:
        return [text]
    return [part for part in match.groups() if part]


def tidy_item(text: str) -> str:
    """A thing without its article and what stands around it."""
    words = _COURTESY_BEHIND.sub("", text).strip(" .,;:!?\"'“”„-").split()
    while len(words) > 1 and fold(words[0]) in read_cues().articles and not TEA.fullmatch(words[0]):
        words = words[1:]
    item = re.sub(r" ?\( ?\)", "", " ".join(words))
    return re.sub(r"^(?:d'|l'|de l')(?=\w)", "", item, flags=re.IGNORECASE)


def order_subject(text: str) -> str:
    """What a reminder is about: the words without the order."""
    subject = read_cues().subject
    plain = " ".join(text.split()).lstrip("¿¡ ")
    for name in ("courtesy", "strip"):
        for match in reversed(list(subject[name].finditer(mark_things(plain)))):
            plain = f"{plain[: match.start()]} {plain[match.end() :]}"
        plain = " ".join(plain.split())
    for _ in range(4):
        before = plain
        if leading := subject["lead"].match(mark_things(plain)):
            plain = plain[leading.end() :]
        tail = re.search(rf"(?<!\w)(?:{subject['tail'].pattern})$", mark_things(plain))
        plain = plain[: tail.start()] if tail else plain
        plain = " ".join(plain.strip(" ,;:.!?-–").split())
        if (leading := subject["article"].match(mark_things(plain))) and not begins_with_name(plain, text):
            plain = plain[leading.end() :]
        if plain == before:
            break
    return re.sub(r"\s+([,.;:!?])", r"\1", " ".join(plain.split()))


def todo_items(text: str) -> str:
    """What is to stand on a list: the words without the order, the list, and clauses that only order."""
    orders = read_cues()
    plain = " ".join(text.split())
    heading = orders.patterns["list_heading"].match(fold(plain)) or orders.patterns["add_heading"].match(fold(plain))
    if heading:
        return plain[heading.end() :]
    head = _HEAD_OF_TASKS.match(fold(plain))
    plain = plain[head.end() :] if head else plain
    plain = _HEAD.sub("", without_lists(plain), count=1) if list_names(plain) else without_lists(plain)
    clauses = [_without_order(clause) for clause in _LIST_CLAUSES.split(plain)]
    return ", ".join(clause for clause in clauses if clause)


def _without_order(clause: str) -> str:
    """A clause without the verb that orders; "" where nothing else is in it."""
    clause = " ".join(_DUE.sub(" ", clause).split())
    orders = read_cues()
    if any(fold(clause) in names for names in orders.groceries.values()):
        return clause  # "Mais" is no conjunction there
    for _ in range(2):
        clause = _CONTENTS.sub("", clause)
        for name in ("verb", "need"):
            if match := orders.subject[name].match(fold(clause)):
                clause = clause[match.end() :]
    for _ in range(3):
        if match := orders.subject["verb_tail"].search(fold(clause)):
            clause = clause[: match.start()]
    if _POINTS_TO_IT.fullmatch(fold(clause)):
        return ""
    puts = orders.patterns["puts"].match(fold(clause))
    words = re.findall(r"\w+", fold(clause[puts.end() :] if puts else clause))
    return (
        clause
        if TEA.search(clause)
        or re.search(r"\s[A-ZÀ-Ý]", clause)
        or any(word not in orders.order_words and not word.isdigit() for word in words)
        else ""
    )
