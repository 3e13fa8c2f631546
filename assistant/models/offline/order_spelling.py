"""How orders are written: polite and formal forms, slips of their words, and lists by bare or longer names are put into
the plain words that everything else here reads: "könnten Sie mich um acht wecken" is "weck mich um acht", "glue on DIY"
is "glue on the DIY list". Pure.

What always holds: what an order is about stays as it was written, and a plain sentence stays as it is.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from assistant.core.time_language import N
from assistant.core.time_readers import number_of
from assistant.core.time_spelling import spell_lengths
from assistant.models.offline.cues import fold, read_cues, says_any
from sleep.rules.pattern_files import join_fragments

FORMS_FILE = Path(__file__).with_name("order_forms.toml")
LONGEST_SENTENCE = 400
_WORDS = lazy_regex(r"[^\W\d_]+")
# What is said before anything is said: "ah et du beurre", "oh and butter".
_INTERJECTION = lazy_regex(r"^(?:(?:oh|ah|ach|aha|eh|hm+|uh|um(?=,)|ehm?|ahm?|ay|uy|tja)[\s,!]+)+(?=\w)")
# What is wanted, said in two clauses: "what I need is a reminder", "lo que quiero es".
_WANTED = lazy_regex(
    r"^(?:what (?:i|we)(?:'d| would)? (?:want|need|like)(?: (?:you )?to do)? is(?: for you)?(?: to)?"
    r"|was ich (?:brauche?|will|mochte),? ist|ce (?:que je veux|qu'il me faut),? c'est"
    r"|lo que (?:quiero|necesito) es)"
    r"(?= )"
)
_WANTS = {"w": "I want", "c": "je veux", "l": "quiero"}
# "Stopp den Timer", "mach den Wecker aus", "para el temporizador", "timer off".
_ALARM = (
    r"(?:(?:the|my|that|this|den|meinen|diesen|le|la|mon|ma|ce|cette|el|mi|ese|esa|este|esta|l')\s?)?(?:\w+[- ])?"
    r"(?:timer|alarm|countdown|wecker|kurzzeitwecker|eieruhr|minuteur|chrono|compte a rebours|reveil|alarme"
    r"|temporizador|cuenta atras|alarma|despertador)s?"
)
_STOPS_ALARM = lazy_regex(
    rf"^(?:please |pls |bitte |stp |porfa |por favor |ok,? |hey,? |ya |mal )*(?:"
    r"(?:stopp?e?|end|kill|silence|halt|quit|(?:turn|switch|shut) off|beende|stoppt|arrete|coupe|eteins|termine"
    r"|interromps|desactive|para|parame|deten|detene|termina|apaga|desconecta|corta|interrumpe|quita)"
    rf" (?P<one>{_ALARM})(?: (?:off|ab|aus|again|wieder|now|jetzt))*"
    r"|(?:turn|switch|shut|mach|schalte?|stelle?|halte?|brich)"
    rf" (?P<two>{_ALARM})(?: (?:wieder|bitte|jetzt))? (?:off|aus|ab|an)(?: again)?"
    rf"|(?P<three>{_ALARM}) (?:off|aus|stopp?|abbrechen|beenden|stoppen|ausschalten|abstellen|ausmachen)"
    r")(?: (?:please|pls|bitte|now|s'il te plait|stp|por favor|porfa))*$"
)
# "8 -> 8.30"
_FROM_TO = lazy_regex(r"(?<![\d:.])(\d{1,2})(?:[:.](\d\d))? ?(?:->|=>|→) ?(\d{1,2})(?:[:.](\d\d))?(?![\d:.]\d)")
_DAY_NAMES = {
    "mon": "monday",
    "tue": "tuesday",
    "tues": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "thur": "thursday",
    "thurs": "thursday",
    "fri": "friday",
    "sat": "saturday",
    "sun": "sunday",
}
# "Make it wed", "move Friday to Saturday", "he can only do 3.30": times by their plain names.
_SHORT_DAY = lazy_regex(
    r"(?P<before>\b(?:make (?:it|that)|say|to|till|until|for|instead|rather|do) )(?P<day>sun|wed|sat)"
    r"(?=[\s.!?]*$| (?:at|instead|please|pls|afternoon|evening|morning)\b)",
    re.IGNORECASE,
)
_SHORT_NAME = rf"(?:{'|'.join(sorted(_DAY_NAMES, key=len, reverse=True))})"
# "Mon wed fri", "tue/thu"; "todo mon: ..."
_SHORT_DAYS_IN_ROW = lazy_regex(rf"\b{_SHORT_NAME}(?:(?: ?[,/&+] ?| and | )(?:and )?{_SHORT_NAME})+\b", re.IGNORECASE)
_TODO_DAY = lazy_regex(rf"^(?P<before>(?:todo|to-do|to do|task) )(?P<day>{_SHORT_NAME})(?=\b ?:)", re.IGNORECASE)
# "Todo Steuerberater anrufen do"
_LAST_DAYS = _DAY_NAMES | {
    "mo": "montag",
    "di": "dienstag",
    "mi": "mittwoch",
    "do": "donnerstag",
    "fr": "freitag",
    "sa": "samstag",
    "so": "sonntag",
    "lun": "lundi",
    "mer": "mercredi",
    "jeu": "jeudi",
    "ven": "vendredi",
    "dim": "dimanche",
    "mie": "miércoles",
    "jue": "jueves",
    "vie": "viernes",
    "sab": "sábado",
    "dom": "domingo",
}
_TODO_DAY_LAST = lazy_regex(
    rf"^(?P<before>(?:todo|to-do|aufgabe|tache|tarea|tâche)[ :].+ (?<!\bthe )(?<!\bin ))"
    rf"(?P<day>{'|'.join(_LAST_DAYS)})[\s.!]*$",
    re.IGNORECASE,
)
_AGAIN_IN = lazy_regex(
    r"(?P<before>\b(?:(?:again|snooze\b(?:(?! (?:un)?till?\b| at\b| to\b).)*|later)(?:,| in| for)*"
    r"|(?:remind|ping|nudge|tell|buzz)\b.{0,80} in) )(?P<number>5|10|15|20|25|30|40|45|five|ten|fifteen|twenty"
    r"|thirty)(?P<end>[\s.!?]*)$",
    re.IGNORECASE,
)
_DAYS_EN = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day(?:'?s)?"
_DAYS_ROMANCE = (
    r"(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo)"
)
_DAY_TO_DAY = lazy_regex(
    r"^(?P<before>(?:please |pls |can you |could you )?(?:move|push|shift|postpone|delay|bump|change"
    r"|reschedule|bring|put|shove|swap)\b.*?"
    rf" {_DAYS_EN}) (?P<to>to {_DAYS_EN})",
    re.IGNORECASE,
)
_DAY_TO_DAY_ROMANCE = lazy_regex(
    rf"(?P<before>\b(?:d[eé]cale|d[eé]place|repousse|reporte|passe|mueve|pasa|cambia|aplaza)\b.*?) (?:de|del) "
    rf"(?P<old>{_DAYS_ROMANCE}) (?P<to>[àa]) (?P<new>{_DAYS_ROMANCE})",
    re.IGNORECASE,
)
_DOTTED_HOUR = lazy_regex(
    r"(?P<before>\b(?:do|to|at|from|is|it'?s|starts|begins|say"
    r"|make (?:it|that)|now|for|only|by|until|till) )(?P<hour>\d{1,2})\.(?P<minute>[0-5]\d)"
    r"(?![.\d]| ?(?:€|%|eur|pounds?|dollars?|quid|kg|km|m\b|l\b))",
    re.IGNORECASE,
)
# In German, "do" is a day.
_DO_HOUR = lazy_regex(r"\b(can|could|only|just|rather|then|we|i|can't|cannot) do (?=\d)", re.IGNORECASE)
# Reminders come at whole minutes: "90 seconds" are two.
_SECONDS = lazy_regex(rf"\b(?P<number>{N})[- ]?(?P<unit>seconds?|secs?|sekunden?|secondes?|segundos?)\b", re.IGNORECASE)
_MINUTES = {"sek": "Minuten", "seg": "minutos"}
_WAKE_UP_CALL = lazy_regex(r"\bwake[- ]?up (?:call|alarm)\b", re.IGNORECASE)
_COUNTDOWN = lazy_regex(r"(?:compte à rebours|cuenta atr[aá]s|countdown|eieruhr|chrono)", re.IGNORECASE)
_END = lazy_regex(r"[\s?!.]*\Z")
_SHORTEST_SLIP = 4
_NO_SLIPS = frozenset(["were", "lise", "annuel", "annuels"])
# Prefixes of German verbs that stand behind their order: "aufschreiben" is "schreib ... auf".
_PARTICLES = lazy_regex(
    r"(hinzu|herunter|runter|heraus|raus|rein|drauf|dazu|weg|zuruck|auf|ab|ein|an|aus|vor|um|mit|los)(\w{4,})"
)
_PRONOUNS = {"me": "moi", "m'": "moi", "nous": "nous", "le": "le", "la": "la", "les": "les", "l'": "le"}


@dataclass(frozen=True, slots=True)
class OrderForm:
    """How a whole sentence asks for something, and how it is ordered: by `order`, or by the verb of the sentence."""

    language: str
    pattern: re.Pattern[str]
    order: str


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said in a wording of its own, and its plain one, with the parts that the pattern names in braces.
    `of_one_word`: a single word may be it; the others are not compiled for one."""

    pattern: re.Pattern[str]
    plain: str
    of_one_word: bool


@dataclass(frozen=True, slots=True)
class OrderForms:
    """What `order_forms.toml` holds."""

    forms: tuple[OrderForm, ...]
    wordings: tuple[Wording, ...]
    imperatives: Mapping[str, Mapping[str, str]]  # by language
    words: Mapping[str, str]
    slips: Mapping[str, frozenset[str]]  # words by what they are with a letter less


@cache
def read_forms() -> OrderForms:
    """Return order_forms.toml: the forms and irregular imperatives of each language, and words by what they become when
    a letter is left out."""
    data = tomllib.loads(FORMS_FILE.read_text(encoding="utf-8"))

    def pairs(text: str) -> dict[str, str]:
        return {
            fold(one): other for one, other in (pair.split(maxsplit=1) for pair in text.replace("\n", " ").split(","))
        }

    irregular = data["imperatives"]
    words = pairs(irregular.pop("words"))
    slips: dict[str, set[str]] = {}
    for word in data["slips"]["words"].split():
        for short in _with_letter_less(word):
            slips.setdefault(short, set()).add(word)
    return OrderForms(
        tuple(
            OrderForm(
                row["language"],
                lazy_regex(join_fragments("order_forms", "form", row["pattern"], data["fragments"])),
                row.get("order", ""),
            )
            for row in data["form"]
        ),
        tuple(
            Wording(
                lazy_regex(join_fragments("order_forms", "wording", row["pattern"], data["fragments"])),
                row["plain"],
                row.get("of_one_word", False),
            )
            for row in data["wording"]
        ),
        {language: pairs(text) for language, text in irregular.items()},
        words,
        {short: frozenset(whole) for short, whole in slips.items()},
    )


@lru_cache(maxsize=64)
def spell_order(text: str) -> str:
    """A sentence in the plain form of an order, where it is one; else as it was, but for slips in words of orders."""
    plain = " ".join(text.split()).replace("’", "'")
    if len(plain) > LONGEST_SENTENCE:
        return text
    if plain.isalpha():
        # No form has only one word, and nothing of the following is about one.
        return word_plainly(_spelled(plain))
    plain = spell_lengths(plain)
    if interjection := _INTERJECTION.match(fold(plain)):
        plain = plain[interjection.end() :]
    if wanted := _WANTED.match(fold(plain)):
        plain = f"{'ich will' if plain[1:2] == 'a' else _WANTS[plain[0].lower()]}{plain[wanted.end() :]}"
    plain = word_plainly(_WORDS.sub(lambda match: _spelled(match[0]), plain))
    plain = _WAKE_UP_CALL.sub("alarm", plain)
    if says_any(("timer", "set_reminder"), fold(plain)):
        plain = _SECONDS.sub(_in_minutes, plain)
    plain = _SHORT_DAY.sub(lambda match: f"{match['before']}{_DAY_NAMES[match['day'].lower()]}", plain)
    plain = _SHORT_DAYS_IN_ROW.sub(_spell_days, plain)
    plain = _TODO_DAY.sub(lambda match: f"{match['before']}{_DAY_NAMES[match['day'].lower()]}", plain)
    plain = _TODO_DAY_LAST.sub(lambda match: f"{match['before']}{_LAST_DAYS[match['day'].lower()]}", plain)
    plain = _AGAIN_IN.sub(r"\g<before>\g<number> minutes\g<end>", plain)
    plain = _DAY_TO_DAY.sub(r"\g<before> over \g<to>", plain)
    plain = _DAY_TO_DAY_ROMANCE.sub(r"\g<before> du \g<old> au \g<new>", plain)
    plain = _DOTTED_HOUR.sub(r"\g<before>\g<hour>:\g<minute>", plain)
    plain = _DO_HOUR.sub(r"\1 at ", plain)
    plain = _FROM_TO.sub(_from_to, plain)
    end = _END.search(plain)
    bare = (plain[: end.start()] if end else plain).lstrip("¿¡ ")
    folded = fold(bare)
    if stops := _STOPS_ALARM.match(folded):
        group = next(name for name in ("one", "two", "three") if stops[name])
        return f"cancel {_COUNTDOWN.sub('timer', bare[stops.start(group) : stops.end(group)])}"
    for form in read_forms().forms:
        if match := form.pattern.fullmatch(folded):
            return " ".join(_as_order(form, bare, match).split())
    return plain


def word_plainly(plain: str) -> str:
    """What is said in a wording of `order_forms.toml`, in its plain one."""
    is_one_word, folded = plain.isalpha(), fold(plain)
    for wording in read_forms().wordings:
        if is_one_word and not wording.of_one_word:
            continue
        if match := wording.pattern.search(folded):
            parts = {
                name: plain[match.start(name) : match.end(name)] for name, text in match.groupdict().items() if text
            }
            words = wording.plain.format_map(defaultdict(str, parts))
            plain = " ".join(f"{plain[: match.start()]}{words}{plain[match.end() :]}".split())
            folded = fold(plain)
    return plain


def _in_minutes(match: re.Match[str]) -> str:
    minutes = max(1, -(-number_of(match["number"]) // 60))
    return f"{minutes} {_MINUTES.get(match['unit'].lower()[:3], 'minutes')}"


def _spell_days(match: re.Match[str]) -> str:
    days = [_DAY_NAMES[day.lower()] for day in re.findall(_SHORT_NAME, match[0], re.IGNORECASE)]
    return f"{', '.join(days[:-1])} and {days[-1]}"


def _from_to(match: re.Match[str]) -> str:
    old, new = (":".join(filter(None, match.group(*pair))) for pair in ((1, 2), (3, 4)))
    return f"from {old} to {new}"


def _as_order(form: OrderForm, plain: str, match: re.Match[str]) -> str:
    language, groups = form.language, match.groupdict()
    rest = plain[match.start("rest") : match.end("rest")]
    if form.order:
        return f"{form.order} {rest}"
    pronoun = (groups.get("pronoun") or "").strip()
    if gerund := groups.get("gerund"):
        return f"{gerund}{'e' if gerund[-1] in 'vgkcs' else ''} {rest}"
    verb, particle = groups["verb"] or "", ""
    irregular = read_forms().imperatives.get(language, {})
    if language == "de" and verb not in irregular and (split := _PARTICLES.fullmatch(verb)):
        particle, verb = split[1].replace("zuruck", "zurück"), split[2]
    written = irregular.get(verb) or _regular(language, plain, verb)
    if language == "fr":
        written += groups.get("joined") or (f"-{_PRONOUNS[pronoun]}" if pronoun else "")
    elif language == "es":
        written += groups.get("clitic") or pronoun
    return f"{written} {rest} {particle}"


def _regular(language: str, plain: str, verb: str) -> str:
    """The order of a verb in its language; with its accents, where it is in the text as it is."""
    place = fold(plain).find(verb)
    written = plain[place : place + len(verb)] if place >= 0 else verb
    match language:
        case "de":
            return re.sub(r"e?n\Z", "", written)
        case "fr":
            return re.sub(r"(?:er|ez)\Z", "e", written)
        case "es":
            return re.sub(r"ar\Z", "a", re.sub(r"[ei]r\Z", "e", written))
        case _:
            return written


# --------------------------------------------------------------------------------------------------------------- slips


def _spelled(word: str) -> str:
    folded = fold(word)
    forms = read_forms()
    if whole := forms.words.get(folded) or forms.words.get(word.lower()):
        return whole
    if len(folded) < _SHORTEST_SLIP or folded in read_cues().order_words or folded in _NO_SLIPS:
        return word
    near = set(forms.slips.get(folded, ()))
    for short in (*_with_letter_less(folded), folded[:-1]):  # "cancle" is slipped at its end
        near |= {whole for whole in forms.slips.get(short, ()) if _is_slip(folded, whole)}
    return next(iter(near)) if len(near) == 1 and folded not in near else word


def _with_letter_less(word: str) -> list[str]:
    """A word without one of its inner letters."""
    return [f"{word[:place]}{word[place + 1 :]}" for place in range(1, len(word) - 1)]


def _is_slip(word: str, whole: str) -> bool:
    """One letter twice, or two letters in each other's place; other letters make other words ("charge", "change")."""
    if len(word) == len(whole) + 1:
        return any(
            word[place] == word[place + 1] and f"{word[:place]}{word[place + 1 :]}" == whole
            for place in range(len(word) - 1)
        )
    different = [place for place in range(len(whole)) if word[place] != whole[place]] if len(word) == len(whole) else []
    return len(different) == 2 and different[1] == different[0] + 1 and sorted(word) == sorted(whole)


# --------------------------------------------------------------------------------------------------------------- lists

_TO_LIST = (
    r"(?P<to>\b(?:to|on|onto|into|in|off|from|for|auf|in|von|aus|fur|zu[rm]?|ins|sur|dans|de|du|pour|cote|en|a|al"
    r"|del|para)"
    r" (?:(?:the|my|die|der|das|dem|den|meine[rn]?|la|le|les|ma|mon|mi|el|l')\s?)?)"
)
# A list that gets its name here: "create a list called road trip with ...", "neue Liste Geschenke: ...".
_NAMED = lazy_regex(
    r"(?P<made>\b(?:create|make|start|open|begin|set up|leg\w*|erstell\w*|mach\w*|eroffne|cree\w*|fais|ouvre|crea\w*"
    r"|haz(?:me)?|abre|empieza)"
    r"[- ](?:mir |me |moi )?(?:bitte |please )?)?"
    r"(?:\b(?:an?|the|my|une?|la|ma|una|mi|die|meine|eine|ne) )?(?P<new>(?:new|neue|nouvelle|nueva) )?"
    r"\b(?:list|liste|lista)"
    r"(?P<called> (?:called|named|namens|genannt|mit (?:dem )?namen?|(?:qui s')?appelee|que se llam[ae]|llamada"
    r"|de nombre)| ?,? die)?"
    r"(?: (?:pour|para|for|fur|de|des|du)(?: (?:die|das|den|the|la|le|el|les|los))?)? (?P<quote>[\"'«“„]?)\s?"
    r"(?P<name>(?!(?:an|pour|para|fur|demain|hoy)\b|aujourd)\w[\w'-]*(?: [\w'-]+){0,3}?)\s?[\"'»”]?(?: an)?"
    r"(?=(?P<heading>\s*:)|,? (?:and|und|et|y) (?:put|add|pop|stick|chuck|jot|write|schreib|setz|pack"
    r"|mets|ajoute|note|pon|mete|anade|apunta)"
    r"|,? (?:with|mit|avec|con|containing|dedans|heißt|heisst)\b|(?(called)\s*$|(?!)))(?: hei(?:ß|ss)t)?"
)
_TO_AT_END = lazy_regex(r"\b(?:to|on|onto|auf|sur|a|en)\Z")
_LIST_BEFORE = lazy_regex(r"\blist[ea]?\s*\Z")


def spell_lists(text: str, known: Collection[str]) -> str:
    """The text with every list called a list: those of `known` by their bare names, and those that get a name in it."""
    text = " ".join(text.split())
    match = _NAMED.search(fold(text))
    if match and any(match[name] for name in ("made", "new", "called", "heading")):
        name = text[match.start("name") : match.end("name")].replace(" ", "-")
        before = text[: match.start()]
        adds = "" if _TO_AT_END.search(fold(before)) else "add on "
        text = f"{before}{adds}the {name} list{text[match.end() :]}"
    names = sorted({fold(name) for name in known if name}, key=len, reverse=True)
    if not names:
        return text
    bare = re.compile(rf"{_TO_LIST}(?P<name>{'|'.join(map(re.escape, names))})(?P<plural>s?)\b(?![- ]?(?:list|zettel))")
    folded = fold(text)
    for match in reversed(list(bare.finditer(folded))):
        if _LIST_BEFORE.search(folded[: match.start()]):
            continue
        name = text[match.start("name") : match.end("name")].replace(" ", "-")
        text = f"{text[: match.start('name')]}{name} list{text[match.end() :]}"
    return text
