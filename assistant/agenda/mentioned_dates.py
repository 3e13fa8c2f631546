"""Dates mentioned in messages: "dentist on Tuesday at 10", "Anna's birthday is 3 May".

They are derived on each read from recent messages of a scope and from its journal, so that edits, undos and erasures
apply at once. What a text mentions is kept, found by a digest of the text, so that each is parsed once (`keep_up`); the
cost of a read is limited. Later messages correct earlier ones ("no, it's Wednesday"); questions, orders and past dates
are ignored.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from hashlib import blake2b
from itertools import chain
from zoneinfo import ZoneInfo

from assistant import __version__
from assistant.agenda.dated_phrases import DAY_WORDS, NamedDay, find_day, find_other_numbers, may_name_day
from assistant.core.calendar import utc_to_local
from assistant.core.dataclass import dataclass
from assistant.core.memories import JournalEntry
from assistant.core.records import LogRecord
from assistant.core.text import STOP_WORDS, distinct_words, lazy_regex
from assistant.store.character.journal import StoredJournal
from assistant.store.rows import dump_json, from_json
from assistant.store.script.dated_texts import StoredDatedTexts
from assistant.store.search.history import StoredHistory
from sleep.rules.clauses import find_clauses, is_hypothetical, is_order, mentions_reminder
from sleep.rules.corrections import is_correction
from sleep.rules.sentences import Sentence, blank_foreign_text, join_days, split_sentences
from sleep.rules.supersede import are_separate_doings, parse_entry
from sleep.rules.translate import to_english

# Dates in older messages are in the journal.
_MESSAGES_FOR = timedelta(days=60)
_MOST_MESSAGES = 1000
_MOST_ENTRIES = 1000
_LONGEST = 2000
# Raise it when what is read of a text changes, so that what was kept is made again.
_RULES = 5
_DIGEST_BYTES = 16
_PARSED_AT_ONCE = 16
# A correction without a topic refers to something mentioned within this time.
_JUST_SAID = timedelta(hours=12)
_ONE_QUESTION = lazy_regex(r"[^.!?\n]*\?\s*")
_ASKS = lazy_regex(
    r"^(?:please |bitte |(?:can|could|will|would) you |kannst du |peux-tu |puedes )?"
    r"(?:agenda|calendar|kalender|remind|wake|set|put|add|cancel|move|snooze|show|list|delete|remove|schedule|erinner\w*|wecke?|stelle?|setze?|füge?|lösch\w*|verschieb\w*|zeige?"
    r"|skip|lass|überspring\w*|saute|s[aá]lta\w*|rappelle|réveille|ajoute|mets|annule|supprime|montre|recuérdame|despiértame|añade|pon|borra|cancela|muestra)\b",
    re.IGNORECASE,
)
# Questions without a question mark or typical word order: "qu'est-ce que j'ai demain", "qué tengo el lunes", "anything
# on friday", "saturday afternoon am i free or what".
_ASKS_UNMARKED = lazy_regex(
    r"^(?:(?:and|und|et|y|ok|alors|entonces|also|dis|oye)[ ,]+)*(?:qu['’]|est[- ]ce|j['’]ai quoi|qué|quoi|où|comment"
    r"|que (?:tengo|hay|tenemos|hago|me)|(?:[àa] |de |pour |en )?quel\w*|quand|qui\b|combien|de quoi|pourquoi"
    r"|(?:a|de|en|con|para|por|sobre) (?:qué|quién)|cuándo|cuando es|dónde|quién|cómo|cuál\w*|cuánt\w*"
    r"|tengo (?:algo|cita)|hay algo|was (?:habe?|hast|ist|steht|muss|mache?|gibt|liegt|kommt|haben|soll)\b|wann"
    r"|wer\b|wem\b|wie ?viele?|wieso|warum|welche\w*|wo(?:hin|her|r[üu]ber|ran|f[üu]r|mit|zu)?\b|habe? ich"
    r"|haben wir|hast du|muss ich|steht|gibt es|whats?\b|what['’]s|whos\b|am i\b|do (?:i|we)\b"
    r"|have (?:i|we) (?:got|any)"
    r"|(?:got )?any(?:thing|body)\b|any (?:plans|events|appointments|reminders|tasks)\b|(?:is|are) there\b|how\b"
    r"|my (?:day|week|weekend|month|agenda|\w+day)(?:,? please| (?:pls|plz))\b)"
    r"|\b(?:or what|or is there something|oder was|ou quoi|o qué)\W{0,10}$",
    re.IGNORECASE,
)
_CORRECTS = lazy_regex(
    r"^(?:oh |ah |ach )?(?:no|nope|nein|non|sorry|wait|actually|correction|i meant?|ich meine?|eigentlich|doch|en fait"
    r"|perdón|quise decir|je voulais dire|pardon)\b|\b(?:moved? to|instead|postponed|rescheduled|changed to|now|jetzt"
    r"|verschoben|verlegt|stattdessen|reportée?|déplacée?|décalée?|maintenant|aplazad[ao]|ahora|en vez)\b",
    re.IGNORECASE,
)
_CANCELS = lazy_regex(
    r"\b(?:cancel+ed|called off|is off|not happening|abgesagt|fällt aus|gestrichen|annulée?|cancelad[ao])\b",
    re.IGNORECASE,
)
# In addition to the stop words of any search.
_NO_SUBJECT = """
ist das die der den und ein eine mein meine ich hat habe bin est les des une mon moi que los las una con por para wait
sorry actually meant moved now instead nein non nicht pas jetzt maintenant ahora cancelled canceled abgesagt annule
annulee cancelado cancelada called off
"""
_NO_SUBJECTS = STOP_WORDS | DAY_WORDS | frozenset(_NO_SUBJECT.split())


@dataclass(frozen=True, slots=True)
class DatedMention:
    """Something mentioned with a day."""

    text: str
    when: NamedDay
    said_at: datetime
    source: int  # id of the message
    words: frozenset[str]  # topic words
    cancels: bool  # it says that something does not take place
    corrects: bool  # it says that something is otherwise than was said


@dataclass(frozen=True, slots=True)
class _Words:
    """A text and its source."""

    text: str
    said_at: datetime
    source: int


class MentionedDates:
    """Reads mentioned dates. `zone` determines days."""

    def __init__(self, history: StoredHistory, journal: StoredJournal, kept: StoredDatedTexts, zone: ZoneInfo) -> None:
        self._history = history
        self._journal = journal
        self._kept = kept
        self._zone = zone
        self._keeping = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._last: dict[str, tuple[object, list[DatedMention]]] = {}
        # What was read of texts that are not kept yet, by their digest.
        self._parsed: dict[bytes, tuple[DatedMention, ...]] = {}

    async def read(self, scope: str, now: datetime) -> list[DatedMention]:
        """Return what is currently valid. Raises `StoreError`."""
        # A month asks for each of its weeks at once: who comes second gets what the first has read.
        async with self._reading:
            state = (self._history.version(), self._journal.version(), now.replace(second=0, microsecond=0))
            last = self._last.get(scope)
            if last is not None and last[0] == state:
                return last[1]
            # The journal and what is kept belong to the thread of the event loop, which many messages would block.
            entries, kept = self._journal.list_current(scope, limit=_MOST_ENTRIES), self._kept.read(scope)
            found = await asyncio.to_thread(self._find, scope, now, entries, kept)
            self._last[scope] = (state, found)
            return found

    async def keep_up(self, scope: str, now: datetime) -> None:
        """Parse what was not parsed yet, some texts at a time, in a worker thread, and keep it. Raises `StoreError`."""
        async with self._keeping:
            self._kept.begin(scope)
            entries, kept = self._journal.list_current(scope, limit=_MOST_ENTRIES), self._kept.read(scope)
            texts = await asyncio.to_thread(self._digests, scope, now, entries)
            new = [made_of for made_of in texts if made_of not in kept]
            for start in range(0, len(new), _PARSED_AT_ONCE):
                some = {made_of: texts[made_of] for made_of in new[start : start + _PARSED_AT_ONCE]}
                parsed = await asyncio.to_thread(self._parse_all, some)
                if not self._kept.keep(scope, parsed):
                    # The texts were read before something was erased; the next upkeep reads them again.
                    return
            if outdated := kept.keys() - texts.keys():
                self._kept.keep(scope, {}, outdated)

    def _digests(self, scope: str, now: datetime, entries: Sequence[JournalEntry]) -> dict[bytes, _Words]:
        return {_digest(words, self._zone): words for words in _in_order(self._records(scope, now), entries)}

    def _find(
        self, scope: str, now: datetime, entries: Sequence[JournalEntry], kept: Mapping[bytes, str]
    ) -> list[DatedMention]:
        texts = self._digests(scope, now, entries)
        parsed = {made_of: self._parse_once(made_of, words) for made_of, words in texts.items() if made_of not in kept}
        self._parsed = parsed
        return _as_corrected(
            from_json(tuple[DatedMention, ...], kept[made_of]) if made_of in kept else parsed[made_of]
            for made_of in texts
        )

    def _parse_once(self, made_of: bytes, words: _Words) -> tuple[DatedMention, ...]:
        found = self._parsed.get(made_of)
        return _parse(words, self._zone) if found is None else found

    def _parse_all(self, texts: Mapping[bytes, _Words]) -> dict[bytes, str]:
        return {made_of: dump_json(self._parse_once(made_of, words)) for made_of, words in texts.items()}

    def _records(self, scope: str, now: datetime) -> list[LogRecord]:
        return self._history.list_user_messages(scope, now - _MESSAGES_FOR, limit=_MOST_MESSAGES)


def find_dated_mentions(
    records: Sequence[LogRecord], entries: Sequence[JournalEntry], zone: ZoneInfo
) -> list[DatedMention]:
    """Return the dates in messages and journal entries, as last corrected."""
    return _as_corrected(_parse(words, zone) for words in _in_order(records, entries))


def _in_order(records: Sequence[LogRecord], entries: Sequence[JournalEntry]) -> list[_Words]:
    """Return the texts in the order in which they were said; no entry made of one of these messages."""
    read = {record.id for record in records}
    texts = chain(
        (_Words(record.content[:_LONGEST], record.ts, record.id) for record in records),
        (
            _Words(entry.content[:_LONGEST], entry.timestamp, min(entry.sources, default=0))
            for entry in entries
            if read.isdisjoint(entry.sources)
        ),
    )
    return sorted(texts, key=lambda words: (words.said_at, words.source))


def _as_corrected(texts: Iterable[Iterable[DatedMention]]) -> list[DatedMention]:
    things = _DatedMentions()
    for thing in chain.from_iterable(texts):
        things.take_in(thing)
    return [*things.dated()]


def _digest(words: _Words, zone: ZoneInfo) -> bytes:
    """Return what a text is known by: all that what it mentions depends on."""
    made_of = f"{_RULES} {__version__} {zone.key} {words.source} {words.said_at.isoformat()} {words.text}"
    return blake2b(made_of.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _parse(words: _Words, zone: ZoneInfo) -> tuple[DatedMention, ...]:
    return tuple(_read_things(words, zone))


def _read_things(words: _Words, zone: ZoneInfo) -> Iterator[DatedMention]:
    text = words.text
    # Skips most messages: parsing their sentences takes much longer.
    if not (may_name_day(text) or _CANCELS.search(text)) or _ASKS.match(text.strip()):
        return
    if _ONE_QUESTION.fullmatch(text):
        return
    said_on = utc_to_local(words.said_at, zone).date()
    for sentence in join_days(split_sentences(blank_foreign_text(text))):
        own = sentence.own_text
        if not (may_name_day(own) or _CANCELS.search(own)):
            continue
        asks = sentence.is_question or _ASKS.match(own.strip()) or _ASKS_UNMARKED.search(own.strip())
        if asks or is_order(own) or mentions_reminder(own):
            continue
        if is_hypothetical(own):
            continue
        for text, own in _dated_parts(sentence, said_on):
            when = find_day(own, said_on)
            # "My sister's birthday is on 14 February, my brother's on 2 March."
            when = replace(when, yearly=when.yearly or find_day(sentence.own_text, said_on).yearly)
            if when != NamedDay() or _CANCELS.search(own):
                yield DatedMention(
                    text,
                    when,
                    words.said_at,
                    words.source,
                    subject_words(own) | find_other_numbers(own),
                    cancels=_CANCELS.search(text) is not None,
                    corrects=bool(_CORRECTS.search(text) or is_correction(text)),
                )


def subject_words(own: str) -> frozenset[str]:
    """Return the topic words, translated to English as far as possible."""
    words = distinct_words(to_english(own))
    return frozenset(word for word in words if len(word) > 2 and not word[0].isdigit()) - _NO_SUBJECTS


def _dated_parts(sentence: Sentence, said_on: date) -> list[tuple[str, str]]:
    """Split a sentence into clauses if several name a day; each as written, and without quotations."""
    text, own = sentence.text, sentence.own_text
    clauses = [(text[start:end].strip(" ,;"), own[start:end]) for start, end in find_clauses(own)]
    dated = [words for _, words in clauses if find_day(words, said_on).names_day]
    if len(dated) > 1:
        return clauses
    # "It was on Tuesday, but is now on Wednesday."
    return [(text.strip(), own if not dated or find_day(own, said_on).names_day else dated[0])]


class _DatedMentions:
    """What was mentioned so far, as last corrected."""

    def __init__(self) -> None:
        self._things: dict[int, DatedMention] = {}  # in the order in which they were said
        self._by_words: dict[frozenset[str], dict[int, DatedMention]] = {}
        self._next = 0

    def take_in(self, new: DatedMention) -> None:
        """Add what was mentioned, or correct earlier things with it."""
        number = self._meant(new)
        if number is None:
            if new.when.names_day and not new.cancels:
                self._add(new)
            return
        earlier = self._things.pop(number)
        del self._by_words[earlier.words][number]
        if new.cancels:
            return
        when = new.when if new.when.names_day else earlier.when
        when = replace(when, time=new.when.time or earlier.when.time, yearly=when.yearly or earlier.when.yearly)
        text = new.text if len(new.words & earlier.words) > 1 else f"{earlier.text} ({new.text})"
        self._add(replace(new, text=text, when=when, words=earlier.words | new.words))

    def dated(self) -> tuple[DatedMention, ...]:
        return tuple(thing for thing in self._things.values() if thing.when.names_day)

    def _add(self, thing: DatedMention) -> None:
        self._things[self._next] = thing
        self._by_words.setdefault(thing.words, {})[self._next] = thing
        self._next += 1

    def _meant(self, new: DatedMention) -> int | None:
        """Return the number of what is corrected, cancelled, or repeated."""
        for number, thing in self._by_words.get(new.words, {}).items() if new.words else ():
            if thing.when.yearly == new.when.yearly and not _are_separate(new, thing):
                return number
        if not self._things or not (new.corrects or new.cancels):
            return None
        things = self._things.items()
        number, best = max(things, key=lambda it: (len(new.words & it[1].words), it[1].said_at, it[1].source))
        if new.words & best.words:
            return number
        # A text without a topic refers to what was mentioned just before.
        number, last = max(things, key=lambda it: (it[1].said_at, it[1].source))
        return number if len(new.words) <= 1 and new.said_at - last.said_at <= _JUST_SAID else None


def _are_separate(new: DatedMention, thing: DatedMention) -> bool:
    return are_separate_doings(parse_entry(new.text).statement, parse_entry(thing.text).statement)
