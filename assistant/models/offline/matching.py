"""What an order is about: the reminders and to-dos that a person has, read from the results of the tools, and which
of them the words of the order name. Pure.

What always holds: one is meant only where the words say so. Words that nothing has mean nothing here; words that
several have mean none of them, and the person is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from assistant.core.dataclass import dataclass
from assistant.core.quoting import RECENT_HEADING, TodoLine, parse_todos
from assistant.core.text import lazy_regex
from assistant.core.time_names import NUMBERS
from assistant.core.time_pieces import find_times
from assistant.models.offline.cues import fold, read_cues, says, spell_things
from assistant.models.offline.lists import is_same_list
from assistant.search.spelling import is_one_slip
from sleep.rules.statements import is_same_stem, stem_word

_REMINDER = lazy_regex(
    r'- (?P<id>\d+): (?P<text>"(?:[^"\\]|\\.)*"), (?:(?P<often>[^"]*?): )?\w+ '
    r"(?P<due>\d{4}-\d\d-\d\d \d\d:\d\d).*"
)
_WORDS = lazy_regex(r"\w+(?:-\w+)*")
_SAME_THINGS = {
    "~alarm": ("alarm", "weck", "reveil", "despert", "despiert", "wake"),
    "~timer": ("timer", "kurzzeitwecker", "eieruhr", "minuteur", "chrono", "temporizador", "countdown"),
}
# A number in English, and a thing in French.
_OVEN = lazy_regex(r"\b(?:le|du|au|un|mon) four\b")
# "Bin" is a German verb, and a thing behind an English article.
# To tick off in French, and a car in Spanish.
_CAR = lazy_regex(r"\b(?:el|del|al|un|mi|nuestro|este) coche\b")
# Small words elsewhere, and things behind an English article.
_ENGLISH_THING = lazy_regex(
    r"\b(?:the|my|our|some|an?|more|of|buy|order|his|her|your) (hay|hat|son|net|war|tag|den|fin)\b"
)
_BIN = lazy_regex(r"\b(?:the|my|our|a|wheelie|green|brown|black|blue) bin\b")
# Words for one thing, in four languages.
_SYNONYMS = (
    frozenset(
        (
            *("trash", "garbage", "rubbish", "refuse", "bin", "bins", "dustbin", "dustbins"),
            *("mull", "mulltonne", "mulltonnen", "tonne", "tonnen", "abfall"),
            *("poubelle", "poubelles", "ordures", "basura", "basuras"),
        )
    ),
    # What is mostly said in short.
    *(
        frozenset(names.split())
        for names in (
            "veto veterinaire veterinario vet",
            "bad badminton",
            "muscu musculation",
            "gym gymnastique gim gimnasio",
            "foot football futbol",
            "cine cinema",
            "ortho orthophoniste orthodontiste",
            "reu reunion",
            "visio visioconference",
            "appart appartement",
            "doc docteur toubib",
            "profe profesor profesora",
            "mates matematicas",
            "ofi oficina",
            "dermato dermatologue",
            "ophtalmo ophtalmologue",
            "gyneco gynecologue",
            "psy psychologue psychiatre",
            "anniv anniversaire",
            "ordi ordinateur",
            "frigo refrigerateur",
            "velo bicyclette",
            "voiture bagnole auto caisse",
            "bici bicicleta",
            "tele television",
            "cumple cumpleanos",
            "cole colegio",
            "uni universidad",
            "compu computadora",
            "ordenador computadora",
            "refri refrigerador",
            "nevera refrigerador",
            "lavarropas lavadora",
            "coche carro auto",
            "boleto billete",
            "pileta piscina",
            "peluqueria pelu",
            "super supermercado",
        )
    ),
)
# "Anzurufen" and "angerufen" are "anrufen".
_WITH_ZU = lazy_regex(
    r"^(an|ab|auf|aus|ein|vor|mit|um|los|weg|nach|her|hin|zuruck|zu|raus|rein|rauf|runter|bei|durch"
    r"|fest)(?:zu(?=\w{3,}n$)|ge(?![bhw])(?=\w{3,}(?:t|en)$))"
)
_MOST_WORDS = 60


@dataclass(frozen=True, slots=True)
class ListedItem:
    """A reminder or a to-do."""

    kind: str  # "reminder" or "todo"
    id: int
    text: str
    due: datetime | None = None
    often: str = ""  # how often a reminder comes, as the tool says it
    list: str = ""
    done: bool = False  # a to-do that is done, a reminder that came
    line: str = ""  # as the tool shows it


def read_reminders(result: str) -> list[ListedItem]:
    """Those that wait, and then those that came lately."""
    items, came = [], False
    for line in result.split("\n"):
        came = came or line.startswith(RECENT_HEADING)
        if match := _REMINDER.fullmatch(line):
            due = datetime.fromisoformat(match["due"])
            text = json.loads(match["text"])
            items.append(
                ListedItem("reminder", int(match["id"]), text, due, match["often"] or "", done=came, line=line)
            )
    return items


def read_todos(result: str) -> list[ListedItem]:
    """Return the items that a result of the to-do tool shows, done ones included; none if it has another form."""
    report = parse_todos(result)
    return [_todo(line) for line in report.lines] if report else []


def _todo(line: TodoLine) -> ListedItem:
    day = re.search(r"\d{4}-\d\d-\d\d", line.due)
    return ListedItem(
        "todo",
        line.id,
        line.text,
        datetime.fromisoformat(day[0]) if day else None,
        list=line.list,
        done=line.done,
        line=f"{line.text}{f' ({line.due})' if line.due else ''}",
    )


# ------------------------------------------------------------------------------------------------------------- words


def words_of(text: str) -> list[str]:
    """Every word, folded, of words with hyphens their parts too; alarms of any name are one word, and so are timers."""
    words = [
        word
        for run in _WORDS.findall(fold(spell_things(text)))[:_MOST_WORDS]
        for word in dict.fromkeys((run, *run.split("-")))
    ]
    marks = (mark for mark, names in _SAME_THINGS.items() if any(word.startswith(names) for word in words))
    return [*words, *marks]


def subject_words(text: str) -> list[str]:
    """The words of an order that may name what it is about."""
    order_words = read_cues().order_words
    plain = find_times(text).words
    no_names = order_words | NUMBERS.keys()
    if _OVEN.search(fold(plain)):
        no_names -= {"four"}
    if _BIN.search(fold(plain)):
        no_names -= {"bin"}
    if _CAR.search(fold(plain)):
        no_names -= {"coche"}
    no_names -= set(_ENGLISH_THING.findall(fold(plain)))
    words = [w for w in words_of(plain) if not set(w.split("-")) <= no_names and not w.isdigit() and len(w) > 1]
    return list(dict.fromkeys(words))


@lru_cache(maxsize=16384)  # a question compares its words with those of all that is known
def is_same(word: str, other: str) -> bool:
    """The same word, or a form or part of it: "plant" and "plants", "tuev" and "TÜV", "Bewerbungsschreiben"."""
    if word == other or any(word in names and other in names for names in _SYNONYMS):
        return True
    short, long = sorted((_plain(word), _plain(other)), key=len)
    if short == long:
        return True
    if len(short) < 4 or short.isdigit():
        return False
    if is_same_stem(stem_word(short), stem_word(long)) or (
        len(short) >= 5 and (long.startswith(short) or long.endswith(short))
    ):
        return True
    if len(short) >= 5 and len(long) - len(short) <= 3 and long.startswith(short[: max(4, len(short) - 2)]):
        return True
    return len(short) >= 5 and is_one_slip(short, long)


def _plain(word: str) -> str:
    word = _WITH_ZU.sub(r"\1", word)
    return word.replace("œ", "oe").replace("ue", "u").replace("ae", "a").replace("oe", "o").replace("ß", "ss")


def count_hits(words: Iterable[str], item: ListedItem) -> int:
    """Return how many of the words the item's text or the name of its list has, in any inflection."""
    own = words_of(f"{item.text} {item.list}")
    return sum(any(is_same(word, other) for other in own) for word in words)


def matching(words: Sequence[str], items: Sequence[ListedItem]) -> list[ListedItem]:
    """Those that have the most of the words; of several, the one that says nothing else."""
    hits = {index: count_hits(words, item) for index, item in enumerate(items)}
    best = max(hits.values(), default=0)
    found = [items[index] for index, count in hits.items() if best and count == best]
    order_words = read_cues().order_words
    exact = [item for item in found if best == len([w for w in set(words_of(item.text)) if w not in order_words])]
    return exact if len(found) > 1 and len(exact) == 1 else found


def is_other_list(name: str, own: str, known: Iterable[str]) -> bool:
    """Whether a list is another one than `own`: of the names for one list ("compra", "mercado") each may have a list of
    its own. `known`: the names of the lists that are there."""
    if fold(name) in map(fold, known):
        return fold(name) != fold(own)
    return not is_same_list(own, name)


def each_named(text: str, items: Sequence[ListedItem]) -> list[ListedItem]:
    """What the parts of a text between commas and "and" name, where each part that names anything names one."""
    named: list[ListedItem] = []
    for part in re.split(
        r"\s*[,;]\s*|\s+(?:and|n|und|et|y|e|ni|or|nor|noch|plus|\+|&|as well as|along with|together with|sowie"
        r"|ainsi que|asi como)\s+",
        text,
    ):
        found = matching(subject_words(part), items)
        if len(found) > 1 and not _is_row(part, found):
            return []
        named += [item for item in found if item not in named]
    return named


def _is_row(part: str, found: Sequence[ListedItem]) -> bool:
    """Whether words that nothing stands between are things of one word each: "got milk bread and eggs"."""
    return len(found) == len(subject_words(part)) and all(len(words_of(item.text)) == 1 for item in found)


def kinds_named(text: str) -> tuple[bool, bool]:
    """Whether an order says that it is about reminders, and about to-dos."""
    folded = fold(text)
    return says("reminder_noun", folded) or says("alarm", folded), says("todo_only", folded)
