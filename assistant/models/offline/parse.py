"""How offline mode reads a message: text in, a few requests out. Pure.

A message is read sentence by sentence against the patterns of `phrases.toml`; the first one that fits the whole
sentence decides. What fits none is a question if it reads like one, and otherwise something the person told. Whatever
is decided here, the message itself is already stored whole, so a misreading costs an odd answer and never words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from assistant.core.calendar import MONTHS, NUMBER_WORDS, WEEKDAYS
from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_pieces import find_times
from assistant.models.offline.asides import puts_them, without_asides
from assistant.models.offline.cues import fold, read_cues, says
from assistant.models.offline.impossible_times import find_impossible_time
from assistant.models.offline.intents import rank_without_items
from assistant.models.offline.lists import list_names
from assistant.models.offline.mood import is_order, tells_what_was_done
from assistant.models.offline.order_signs import (
    asks_for_reminder,
    commands,
    is_likely_told,
    may_be_meant,
    may_be_order,
    may_be_request,
    may_be_told,
    names_what_orders_are_about,
    only_tells,
    tells_need,
    tells_unless_named,
)
from assistant.models.offline.order_spelling import spell_order, word_plainly
from assistant.models.offline.own_name import asks_own_name, told_name
from assistant.models.offline.plain_forms import has_plain_form
from assistant.models.offline.requests import (
    AboutMe,
    Correction,
    DoOrder,
    Note,
    PlainRequest,
    Question,
    Request,
    Say,
    UseTool,
)
from assistant.models.offline.sums import answer_sum
from assistant.models.offline.targets import content_words
from assistant.models.offline.word_swaps import denies_one_thing, says_what_is_not
from assistant.search.query import asks_about_assistant
from sleep.rules.pattern_files import compile_patterns, join_fragments
from sleep.rules.sentences import Sentence, blank_quotations, join_days, split_sentences

PHRASES_FILE = Path(__file__).with_name("phrases.toml")
_MOST_REQUESTS = 8
# From this chance on, a sentence asks or tells as its words say, rather than its form.
_LIKELY = 0.6
_LONG_TEXT = 2000
_LONGEST_SENTENCE = 400
_ERASES_ABOUT = (
    "Nothing is erased yet. `/forget {what}` shows what has these words, asks you, and then erases it from everything "
    "that is stored."
)
_NO_SUCH_TIME = "Nothing was set or changed, and your message is kept. When do you mean?"
_TEXTS = frozenset(["path", "url"])
_ENDS = " \t\n.!?…,。！？؟"
_JOINING = lazy_regex(r"(?:oh |ach |ah )?(?:and|und|et|y|plus|oh and|ach und)\b", re.IGNORECASE)
_COURTESY = lazy_regex(
    r"(?:many |vielen |mille |muchas )?(?:thanks|thank you|cheers|ta|please|danke(?: dir| schön| dir sehr)?"
    r"|bitte|merci(?: bien| beaucoup| d'avance)?|gracias|por favor|porfa|s'il te plaît|stp)"
    r"(?: (?:mate|love|dear|dir|dich))?",
    re.IGNORECASE,
)
# "Scratch that, four o'clock": what was said is put right, and not taken away.
_TAKES_BACK = lazy_regex(
    r"^(?:(?:scratch|strike|hang|hold) (?:that|on)|my bad|whoops|hmm+|wait no|no wait|espera no|non attends"
    r"|ach nein)[,.:;!–-]+ (?=\S)",
    re.IGNORECASE,
)
# "Note to self: ring the bank", of which "note to self: the code is 4711" is none.
_MEMO = lazy_regex(r"^(?:note|memo|reminder) to (?:self|myself) ?[:,-] ?", re.IGNORECASE)
_NUMBERED = lazy_regex(r"(?:(?<=[\s:])|^)\d[.)] ?(?=[^\W\d_])")
_BULLET = lazy_regex(r"^\s*(?:[-*•]|\d+[.)]|\[ ?\])\s*")


PhraseRows = tuple[tuple[Mapping[str, Any], tuple[re.Pattern[str], ...]], ...]


@dataclass(frozen=True, slots=True)
class Phrases:
    """What `phrases.toml` holds."""

    patterns: Mapping[str, re.Pattern[str]]
    sentences: PhraseRows  # before orders are read
    statements: PhraseRows  # and after
    small_words: frozenset[str]  # folded, as the following
    attributes: frozenset[str]
    families: tuple[frozenset[str], ...]


@cache
def read_phrases() -> Phrases:
    """Return phrases.toml, with months, weekdays and numbers in several languages put into its patterns."""
    data = tomllib.loads(PHRASES_FILE.read_text(encoding="utf-8"))
    data["fragments"] |= {"calendar": "|".join((*MONTHS, *WEEKDAYS)), "number": "|".join(NUMBER_WORDS)}

    def compiled(pattern: str) -> re.Pattern[str]:
        return lazy_regex(join_fragments("phrases", "sentence", pattern, data["fragments"]), re.IGNORECASE | re.DOTALL)

    words = {name: frozenset(map(fold_text, text.split())) for name, text in data["words"].items()}

    def rows(table: str) -> PhraseRows:
        return tuple((row, tuple(map(compiled, row["patterns"]))) for row in data[table])

    return Phrases(
        compile_patterns("phrases", data),
        rows("sentence"),
        rows("statement"),
        words["small"],
        words["attributes"],
        tuple(frozenset(line.split()) for line in data["families"]["lists"]),
    )


def parse_message(text: str) -> tuple[Request, ...]:
    """What `text` asks for, in its order: at most one note, and small talk only where there is nothing else."""
    if (greeting := _small_talk_of_one_word(text)) is not None:
        return (greeting,)
    todo_list = _list_over_lines(text)
    if todo_list:
        return (DoOrder(todo_list, Note()),)
    text = _in_one_line(text)
    sentences = _with_days_told(_join_remarks(_sentences_to_read(text)))
    # In the middle of a long text nobody gives orders.
    own = [number in (0, len(sentences) - 1) or len(sentences) <= _MOST_REQUESTS for number in range(len(sentences))]
    requests = [parse_sentence(sentence, orders=is_own) for sentence, is_own in zip(sentences, own, strict=True)]
    asked = max(
        (n for n, one in enumerate(requests) if isinstance(one, DoOrder) and asks_for_reminder(one.text)), default=0
    )
    requests = [_as_story(one) if number < asked else one for number, one in enumerate(requests)]
    if not requests and text.strip():
        plain = parse_sentence(Sentence("help", "help")) if "?" in text else Note()
        requests = [Say(result) if (result := answer_sum(text)) else plain]
    notes = [request for request in requests if isinstance(request, Note)]
    work = [request for request in requests if not _is_by_the_way(request)]
    if notes or len(text) > _LONG_TEXT:
        doubtful = not work and any(note.is_doubtful for note in notes)
        # Beside an order that is carried out, it would be untrue that nothing was changed.
        is_plain = any(isinstance(one, DoOrder) for one in work) or all(note.is_plain for note in notes)
        open_words = [note.plain_unless_named for note in notes if not note.is_plain]
        commanded = doubtful and any(note.is_command for note in notes)
        told = next((note.name for note in notes if note.name), "")
        is_task, is_likely = any(n.is_task for n in notes), all(n.is_likely for n in notes)
        note = Note(is_task, doubtful, commanded, is_likely, is_plain, name=told)
        work = [replace(note, plain_unless_named=" ".join(open_words) if all(open_words) else ""), *work]
    return tuple(work[:_MOST_REQUESTS]) or tuple(requests[:1])


def _small_talk_of_one_word(text: str) -> Say | None:
    """A greeting or thanks, for which nothing else is compiled: many a talk begins with one."""
    word = text.strip(_ENDS)
    request = _by_phrase(read_phrases().sentences, word, asks=False) if word.isalpha() else None
    return request if isinstance(request, Say) and request.is_small_talk else None


def _in_one_line(text: str) -> str:
    """Things that are numbered within a line, as one sentence: "to do: 1. ring school 2. sign the form"."""
    head, *items = _NUMBERED.split(text)
    numbers = [int(mark[0]) for mark in _NUMBERED.findall(text)]
    in_order = numbers == list(range(1, len(items) + 1))
    is_list = len(items) > 1 and in_order and head.rstrip().endswith(":") and "\n" not in text
    return f"{head.rstrip()} {'; '.join(item.strip(' .,;') for item in items)}" if is_list else text


def _join_remarks(sentences: list[Sentence]) -> list[Sentence]:
    """A sentence that names no thing of its own belongs to the one before it: "The tap? Done! Cross it off."."""
    joined: list[Sentence] = []
    for sentence in sentences:
        last = joined[-1] if joined else None
        if last is not None and _is_courtesy(sentence):
            continue
        if last is not None and _goes_on(last, sentence):
            text, own = (
                f"{one.rstrip('.!? ')}, {other}"
                for one, other in ((last.text, sentence.text), (last.own_text, sentence.own_text))
            )
            joined[-1] = Sentence(text, own)
        else:
            joined.append(sentence)
    return joined


def _is_courtesy(sentence: Sentence) -> bool:
    return _COURTESY.fullmatch(sentence.text.strip(_ENDS)) is not None


def _goes_on(last: Sentence, sentence: Sentence) -> bool:
    if sentence.has_question_mark or (last.has_question_mark and len(last.text.split()) > 4):
        return False
    plain = read_phrases().patterns["courtesy_behind"].sub("", sentence.text, count=1).strip(_ENDS)
    if not plain or _by_phrase(read_phrases().sentences, plain, asks=sentence.has_question_mark) is not None:
        return False
    if _JOINING.match(plain) is not None:
        return not any(list_names(plain))
    if not content_words(plain) or puts_them(plain):
        return True
    # "Don't let me forget the bottles! Today at 17:30, sound the alarm."
    kind = rank_without_items(plain)[0][0]
    if rank_without_items(last.text)[0][0] != "remind" or kind not in ("remind", "statement"):
        return False
    return bool(find_times(plain).pieces) and not find_times(last.text).pieces


def _with_days_told(sentences: list[Sentence]) -> list[Sentence]:
    """A reminder at an hour alone is for the day that was told before: "On Thursday my son comes. Wake me at six."."""
    if len(sentences) < 2:  # the patterns of times are slow to compile
        return sentences
    told, with_days = "", []
    for sentence in sentences:
        times = find_times(sentence.text)
        if told and times.of_kind("clock") and not times.has_day and asks_for_reminder(sentence.text):
            text, own = (f"{one.rstrip('.!? ')} {told}" for one in (sentence.text, sentence.own_text))
            with_days.append(Sentence(text, own))
            continue
        days = times.of_kind("day")
        told = " ".join(times.text[day.start : day.end].strip(" ,") for day in days) or told
        with_days.append(sentence)
    return with_days


def _as_story(request: Request) -> Request:
    """What is told before a reminder is asked for is no order of its own, but for one that has its form."""
    if not isinstance(request, DoOrder) or may_be_request(request.text) or any(list_names(request.text)):
        return request
    is_reminder = rank_without_items(request.text)[0][0] == "remind" and isinstance(request.otherwise, Note)
    return (
        replace(request.otherwise, is_plain=False) if is_reminder and isinstance(request.otherwise, Note) else request
    )


def _is_by_the_way(request: Request) -> bool:
    return isinstance(request, Note) or (isinstance(request, Say) and request.is_small_talk)


def is_statement(text: str) -> bool:
    """Whether `text` tells something, beside whatever else it does."""
    return any(isinstance(as_statement(request), Note | Correction) for request in parse_message(text))


def as_statement(request: Request) -> Request:
    """What is told by what may be an order too: "got the milk"."""
    if isinstance(request, DoOrder) and (isinstance(request.otherwise, Correction) or may_be_told(request.text)):
        return request.otherwise
    return request


def parse_sentence(sentence: Sentence, *, orders: bool = True) -> Request:
    """What one sentence asks for."""
    phrases = read_phrases()
    sentence = _in_plain_words(sentence)
    plain = phrases.patterns["courtesy_behind"].sub("", sentence.text.replace("’", "'"), count=1).strip(_ENDS)
    bare = phrases.patterns["courtesy_before"].sub("", plain, count=1)
    if name := told_name(sentence.text):
        return Note(name=name)
    asks = sentence.has_question_mark or says("asks", fold(plain)) or sentence.is_question
    if (asks and asks_own_name(plain)) or says("asks_what_was", fold(plain)):
        return as_question(bare)
    order = without_asides(spell_order(sentence.text))
    if orders and (impossible := find_impossible_time(plain)) and not _only_mentions(plain):
        return Say(f"{impossible} {_NO_SUCH_TIME}")
    if result := answer_sum(sentence.text):
        return Say(result)
    erases = read_cues().patterns["erases_about"].search(fold(plain))
    if erases and not names_what_orders_are_about(erases["what"]):
        return Say(_ERASES_ABOUT.format(what=erases["what"]))
    if orders and says("lets_it_be", fold(plain)):
        return DoOrder(order, Say("All right.", is_small_talk=True))
    if says("keeps_in_mind", fold(plain)) and not sentence.has_question_mark and not find_times(plain).pieces:
        return Note(is_task=True)
    if tells_what_was_done(plain) and not sentence.has_question_mark:
        return Note(is_plain=False)
    asks = _is_question(sentence, bare) or (not sentence.has_question_mark and says("asks", fold(order)))
    texts = (plain, bare) if plain and len(plain) <= _LONGEST_SENTENCE else ()
    for text in texts:
        if (request := _by_phrase(phrases.sentences, text, asks=asks)) is not None:
            return request
    by_form = [form for text in texts if (form := _by_phrase(phrases.statements, text, asks=asks))]
    otherwise: PlainRequest = by_form[0] if by_form else as_question(bare) if asks else Note()
    if not (orders and texts) or (says("keep", fold(plain)) and not any(True for _ in list_names(plain))):
        # What is to be kept of a time may have been meant to come at it.
        return Note(is_plain=False) if otherwise == Note() and find_times(plain).pieces else otherwise
    intent, chance = rank_without_items(order)[0]
    if not by_form and intent in ("question", "statement") and chance > _LIKELY and not sentence.has_question_mark:
        otherwise = as_question(bare) if intent == "question" else Note()
    not_that = says_what_is_not(order)
    puts_right = not_that or names_what_orders_are_about(order)
    if (isinstance(otherwise, Correction) and puts_right) or may_be_order(order) or has_plain_form(order):
        return DoOrder(order, otherwise)
    note = note_of(order) if otherwise == Note() else otherwise
    return DoOrder(order, note) if not_that and denies_one_thing(order) else note


def _only_mentions(plain: str) -> bool:
    """Whether a sentence tells of the past: a time that there is not may be a slip in a story, and asks for nothing."""
    asks = says("asks", fold(plain)) or may_be_request(plain) or asks_for_reminder(plain)
    return says("tells_past", fold(plain)) and not asks


def note_of(text: str) -> Note:
    """A sentence that is no order, as what it tells."""
    commanded, needed = commands(text), tells_need(text)
    told = needed or is_likely_told(text)
    note = Note(needed, commanded or may_be_meant(text), commanded, told, only_tells(text) and not needed)
    return replace(note, plain_unless_named=text if not note.is_plain and tells_unless_named(text) else "")


def _in_plain_words(sentence: Sentence) -> Sentence:
    text = _TAKES_BACK.sub("no, ", sentence.text) if " " in sentence.text else sentence.text
    plain = word_plainly(text) if len(text) <= _LONGEST_SENTENCE else text
    if " " in plain and (memo := _MEMO.match(plain)) and is_order(plain[memo.end() :]):
        plain = f"todo: {plain[memo.end() :]}"
    return replace(sentence, text=plain, own_text=blank_quotations(plain) if plain != text else sentence.own_text)


def parse_clause(clause: str) -> Request:
    """Return what one clause asks for; it is not split further."""
    return parse_sentence(Sentence(clause, blank_quotations(clause)))


def _is_question(sentence: Sentence, bare: str) -> bool:
    patterns = read_phrases().patterns
    if sentence.has_question_mark:
        return not patterns["tag"].search(sentence.text)
    own = blank_quotations(bare)
    asks = says("asks", fold(own)) or sentence.is_question or Sentence(bare, own).is_question
    return asks or patterns["asks"].fullmatch(own) is not None


def _by_phrase(rows: PhraseRows, text: str, *, asks: bool) -> PlainRequest | None:
    for row, alternatives in rows:
        match = next((m for pattern in alternatives if (m := pattern.fullmatch(text))), None)
        if match and not (asks and row["does"] in ("change", "note")):
            return _request(row, match)
    return None


def _request(row: Mapping[str, Any], match: re.Match[str]) -> PlainRequest:
    groups = {name: text for name, text in match.groupdict().items() if text}
    what = groups.get("what", "")
    match row["does"]:
        case "say":
            return Say(row["text"].strip(), row.get("small_talk", False))
        case "tool":
            return UseTool(row["tool"], _tool_arguments(groups), row["needs"], row.get("lead", ""))
        case "about_me":
            return AboutMe(counts=row.get("counts", False))
        case "topic":
            return Question(what, topic=True)
        case "ask":
            return as_question(what)
        case "correct" | "change":
            return Correction(what or match[0])
        case does:
            return Note(is_task=does == "task")


def as_question(text: str) -> Question:
    return Question(text, "assistant" if asks_about_assistant(text) else "user")


def _tool_arguments(groups: Mapping[str, str]) -> dict[str, str | int]:
    texts = {name: text.strip("\"'") for name, text in groups.items() if text}
    given: dict[str, str | int] = {name: int(text) for name, text in texts.items() if name not in _TEXTS}
    return given | {
        name: text.rstrip("/") if name == "path" else text for name, text in texts.items() if name in _TEXTS
    }


def _list_over_lines(text: str) -> str:
    """A to-do list with an item on each line below its heading, as one order; "" for anything else."""
    head, _, rest = text.strip().partition("\n")
    heading = read_phrases().patterns["list_heading"].fullmatch(head.strip())
    items = [item for line in rest.splitlines() if (item := _BULLET.sub("", line).strip())]
    return f"{head.strip().rstrip(':')}: {'; '.join(items)}" if heading and items else ""


def _sentences_to_read(text: str) -> list[Sentence]:
    """The sentences of a message; of a long text only the first and the last, where a request would stand."""
    if len(text) <= _LONG_TEXT:
        return join_days(split_sentences(text))
    lines = text.strip().splitlines() or [""]
    return [*split_sentences(lines[0][:_LONG_TEXT])[:1], *split_sentences(lines[-1][-_LONG_TEXT:])[-1:]]
