"""What is recalled unasked for a new message: earlier messages that compactions took out of view (`HistoryRecall`),
memories and journal entries (`MemoryRecall`), and profiles (`ProfileRecall`).

What always holds for all of them:
- It is text for the volatile block and for nothing else: no view and no log ever has it, so that nothing recalled is
  learned again as if it had been said again.
- What looks like a password, a key, a PIN or a card number is left out, unless the message asks for such a thing.
- Words come from the scope alone (I10), are quoted as data, dated, and marked as recalled; what the view still shows is
  not recalled. Each memory has the reference by which it can be looked up, corrected or forgotten.

Messages: what tools quoted of the past is not recalled, and nothing is recalled for small talk, nor for a statement,
which asks for nothing and would wait for the search all the same, nor for a question about somebody whom nobody ever
named, nor below a bar: likeness in meaning, the share of the question that is said in the message and beside it, and
how little its words stand together by coincidence add up to it. So in a conversation about one thing its own words do
not count as rare, and still find what they ask for. The bar's form and numbers were chosen on natural and generated
talk (`tests/recall_bench/unasked_history.py`, `tests/bench/recollection.py`), so that its figures on these are not
those of talk that nobody has seen.

Memories: what the conversation or the standing memory shows anyhow is left out, as is whatever has too little to do
with the message (`Recalled.good`). A question about a time ("last spring", "in March") is answered from that time where
anything is known of it; one about nothing but a time ("what did I do yesterday?") by what was said then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo

from assistant.context.memory_block import profiles_block
from assistant.context.question import find_past_period, is_question, searchable_text
from assistant.core.calendar import format_local_time
from assistant.core.memories import Memory, MemoryHit
from assistant.core.messages import find_summaries
from assistant.core.model_api import FULL_CONTEXT_TOKENS
from assistant.core.quoting import MEMORY_MARK, RECORD_TAG, QuotedMessage, format_quote, quote_in_tag, quote_text
from assistant.core.records import ContextView, LogRecord, MatchQuality, SearchHit
from assistant.core.text import STOP_WORDS, distinct_words, find_identifiers, fold_text, lazy_regex, shorten_line
from assistant.store.character.profiles import StoredProfiles
from assistant.store.memory.search import StoredMemorySearch
from assistant.store.search.history import StoredHistory
from sleep.rules.secrets import asks_for_secret, mask_secrets

HISTORY_MARK = "Recalled from earlier; not part of the conversation now."
_HITS_READ = 12
_HITS_READ_OF_REPEATED = 400
_REPLY_LENGTH = 300
_REPLY_WITHIN = 4
# What stands in a summary to this length is not recalled.
_TOLD = 160

# What likeness in meaning, the share of the question that is said there, and the surprise of its words add up to.
_LEAST_FIT, _SURPRISE_WEIGHT = 1.15, 0.1
# Several rare words that stand together say enough where the rest of a question is worded otherwise, if they are very
# rare, or likeness in meaning says the same.
_MOST_BY_CHANCE, _LEAST_SHARE, _VERY_RARE = 0.7, 0.25, 10.0
_MOST_BY_CHANCE_OF_LIKE, _LEAST_SHARE_OF_LIKE, _LEAST_LIKENESS = 0.4, 0.3, 0.3

_ENDS_ASKING = lazy_regex(r"[?？؟][\s\"'”’)»」]*(?:…\s*)?$")


def recall_budget(max_tokens: int, window: int) -> int:
    """Tokens that recalled messages may take where `max_tokens` is meant for a full context: less of a small window,
    but enough for some messages."""
    return min(max_tokens, max(max_tokens * window // FULL_CONTEXT_TOKENS, window // 40))


class HistoryRecall:
    """Finds what to recall for a new message. Reads the history and nothing else, holds nothing."""

    def __init__(
        self,
        history: StoredHistory,
        count: Callable[[str], int],
        zone: tzinfo,
        budget: Callable[[], int],
        *,
        quoting_tools: frozenset[str] = frozenset(),
    ) -> None:
        """`count` gives the tokens of a text, `budget` how many may be taken now (see `recall_budget`); `quoting_tools`
        are tools whose results quote the past."""
        self._history = history
        self._count = count
        self._zone = zone
        self._budget = budget
        self._quoting_tools = quoting_tools

    @staticmethod
    def has_something_out_of(view: ContextView) -> bool:
        """Whether a compaction took something out of the view."""
        return bool(find_summaries(view.messages))

    def recall(self, question: str, session: str, scope: str, view: ContextView, now: datetime) -> str:
        """A block of quotations for the volatile block, oldest first; "" where there is nothing to recall. `view` is
        the session's, before or after the question entered it. Any thread may call. Raises `StoreError`."""
        return history_block(self.recall_lines(question, session, scope, view, now))

    def recall_lines(self, question: str, session: str, scope: str, view: ContextView, now: datetime) -> dict[int, str]:
        """The quotations, by their messages, oldest first. Raises `StoreError`."""
        words = searchable_text(question)
        room = self._budget()
        identifiers = find_identifiers(words)
        if room <= 0 or not self.has_something_out_of(view):
            return {}
        if not is_question(words):
            # Of a statement only what an identifier in it stands for may be wanted.
            words = " ".join(identifiers)
        if not words:
            return {}
        shown, summaries = (
            fully_shown_ids(view),
            _flat(" ".join(row.content for row in find_summaries(view.messages))),
        )
        quotes: dict[int, str] = {}
        for hit in self._hits(words, scope, _tail_start(view, now), now):
            is_shown = hit.message_id in shown or hit.message_id in quotes or _flat(hit.text)[:_TOLD] in summaries
            quotes_the_past = hit.role == "tool" and hit.name in self._quoting_tools
            if not is_shown and not quotes_the_past and (_fits_well(hit.quality) or _says_one(hit, identifiers)):
                room = self._add(quotes, self._with_reply(hit, scope, session, shown), room)
        return {message_id: _without_unasked_secrets(quotes[message_id], words) for message_id in sorted(quotes)}

    def _hits(self, words: str, scope: str, tail: datetime, now: datetime) -> list[SearchHit]:
        """What was said before the tail; of the time that the question names, where anything was."""
        period = find_past_period(words, now, self._zone)
        if period is not None:
            until = min(tail, period.before)
            hits = self._distinct_hits(words, scope, until, period.after)
            if any(_fits_well(hit.quality) for hit in hits):
                return hits
        return self._distinct_hits(words, scope, tail)

    def _distinct_hits(
        self, words: str, scope: str, before: datetime, after: datetime | None = None
    ) -> list[SearchHit]:
        """Each text once: a question that was asked again and again leaves room for what answers it."""
        distinct: dict[str, SearchHit] = {}
        for limit in (_HITS_READ, _HITS_READ_OF_REPEATED):
            hits = self._history.search(words, scope, limit=limit, after=after, before=before)
            for hit in hits:
                distinct.setdefault(fold_text(hit.text), hit)
            if len(hits) < limit or len(distinct) > _HITS_READ // 2:
                break
        return list(distinct.values())[:_HITS_READ]

    def _add(self, quotes: dict[int, str], lines: dict[int, str], room: int) -> int:
        """Put lines that belong together to the others if all of them fit and are new; the room that is left."""
        quoted_words = [_words_of_line(line) for line in quotes.values()]
        new = {message_id: line for message_id, line in lines.items() if _words_of_line(line) not in quoted_words}
        used = self._count("\n".join(new.values()))
        if not quotes:
            used += self._count(quote_in_tag(RECORD_TAG, HISTORY_MARK))
        if not new or used > room:
            return room
        quotes.update(new)
        return room - used

    def _with_reply(self, hit: SearchHit, scope: str, session: str, shown: frozenset[int]) -> dict[int, str]:
        """The line of a hit, and where it asks something that of what was said to it: there stands the answer."""
        lines = {hit.message_id: self._line(hit.message_id, hit, hit.text, session)}
        if hit.role != "tool" and _ENDS_ASKING.search(hit.text):
            neighbours = self._history.read(hit.message_id, scope, neighbours=_REPLY_WITHIN)
            later = (
                record for record in neighbours if record.id > hit.message_id and record.role in ("user", "assistant")
            )
            reply = next((record for record in later if record.content.strip()), None)
            if reply and reply.id not in shown:
                lines[reply.id] = self._line(reply.id, reply, shorten_line(reply.content, _REPLY_LENGTH), session)
        return lines

    def _line(self, message_id: int, message: SearchHit | LogRecord, text: str, session: str) -> str:
        when = format_local_time(message.ts, self._zone)
        line = format_quote(QuotedMessage(message_id, when, message.role, text, message.name))
        return line if message.session == session else f"{line} (in session {quote_text(message.session)})"


def history_block(lines: Mapping[int, str]) -> str:
    """Quotations for the volatile block; "" where there are none."""
    return quote_in_tag(RECORD_TAG, "\n".join([HISTORY_MARK, *lines.values()])) if lines else ""


def _fits_well(fit: MatchQuality) -> bool:
    if fit.names_unknown:
        return False
    if fit.likeness + fit.nearby + _SURPRISE_WEIGHT * fit.surprise >= _LEAST_FIT:
        return True
    are_rare = fit.chance <= _MOST_BY_CHANCE and fit.share >= _LEAST_SHARE and fit.rarity >= _VERY_RARE
    is_like = fit.likeness >= _LEAST_LIKENESS and fit.share >= _LEAST_SHARE_OF_LIKE
    return fit.words > 1 and (are_rare or (is_like and fit.chance <= _MOST_BY_CHANCE_OF_LIKE))


def _says_one(hit: SearchHit, identifiers: Sequence[str]) -> bool:
    """Whether it says something of an identifier, however rare that is in a short history."""
    return not _ENDS_ASKING.search(hit.text) and any(name in fold_text(hit.text) for name in identifiers)


def _without_unasked_secrets(text: str, message: str) -> str:
    return text if not text or asks_for_secret(searchable_text(message)) else mask_secrets(text)


def fully_shown_ids(view: ContextView) -> frozenset[int]:
    """Ids of messages whose words stand in the view, in the original or as a copy, uncut."""
    whole = [message for message in view.messages if not message.metadata.get("truncated")]
    origins = {message.metadata.get("carried_from") for message in whole} | {message.id for message in whole}
    return frozenset(origin for origin in origins if origin is not None)


def _tail_start(view: ContextView, now: datetime) -> datetime:
    """Since when the view shows everything."""
    first = next((message.ts for message in view.messages if message.id is not None and message.ts), now)
    return min(first, now)


def _words_of_line(line: str) -> str:
    return line.partition(": ")[2]


_MEMORY_HEADING = f"{MEMORY_MARK} search_memory finds more."

_MEMORIES_READ = 12
_MAX_MEMORIES = 6
_MEMORY_LENGTH = 400
# Of a question about what was said or done at a time, these ask for nothing in particular.
_GENERAL_WORDS_TEXT = """
talk talked talking say said saying tell told discuss discussed mention mentioned do did done doing happen happened
happening go went going know remember note noted learn learned learnt write wrote thing things something anything
everything new chat conversation topic topics speak spoke spoken summarise summarize list show remind find decide
decided plan planned day days time morning afternoon evening night week weekend month year
"""
_GENERAL_WORDS = frozenset(_GENERAL_WORDS_TEXT.split())
_SPACE = lazy_regex(r"\s+")


class MemoryRecall:
    """Reads and holds nothing."""

    def __init__(
        self, search: StoredMemorySearch, count: Callable[[str], int], zone: tzinfo, budget: Callable[[], int]
    ) -> None:
        """`count` gives the tokens of a text, `budget` how many may be taken now."""
        self._search = search
        self._count = count
        self._zone = zone
        self._budget = budget

    def recall(self, message: str, scope: str, view: ContextView, standing_memory: str, now: datetime) -> str:
        """A block for the volatile block, best first; "" where nothing bears on the message. `standing_memory` is what
        the prompt has of memory anyhow. Raises `StoreError`."""
        words, room = searchable_text(message), self._budget()
        if room <= 0 or not words:
            return ""
        shown, flat = fully_shown_ids(view), _flat(standing_memory)
        lines: list[str] = []
        for hit in self._hits(words, scope, now):
            is_shown = hit.sources and shown.issuperset(hit.sources)
            if is_shown or _flat(hit.memory.text) in flat:
                continue
            line = _without_unasked_secrets(self._line(hit.memory), words)
            if len(lines) == _MAX_MEMORIES or self._count(_block([*lines, line])) > room:
                break
            lines.append(line)
        return _block(lines) if lines else ""

    def _hits(self, words: str, scope: str, now: datetime) -> Sequence[MemoryHit]:
        period = find_past_period(words, now, self._zone) if is_question(words) else None
        if period is not None:
            rest = words.replace(period.matched_words, " ")
            if not _asks_for_something(rest):
                return self._search.search_by_time(scope, period.after, period.before, limit=_MAX_MEMORIES)
            if hits := self._relevant_hits(rest, scope, period.after, period.before):
                return hits
        return self._relevant_hits(words, scope)

    def _relevant_hits(
        self, words: str, scope: str, after: datetime | None = None, before: datetime | None = None
    ) -> list[MemoryHit]:
        hits = self._search.search(words, scope, limit=_MEMORIES_READ, after=after, before=before)
        return [hit for hit in hits if hit.is_relevant]

    def _line(self, memory: Memory) -> str:
        text = shorten_line(memory.text, _MEMORY_LENGTH)
        until = f", until {self._day(memory.until)}" if memory.until is not None else ""
        return f"- [{memory.reference}] {self._day(memory.said_at)}{until}: {quote_text(text)}"

    def _day(self, at: datetime) -> str:
        return at.astimezone(self._zone).date().isoformat()


class ProfileRecall:
    """What is known of those whom a text names."""

    def __init__(self, profiles: StoredProfiles, count: Callable[[str], int], zone: tzinfo, max_tokens: int) -> None:
        """`count` gives the tokens of a text; with `max_tokens` 0 nothing is recalled."""
        self._profiles = profiles
        self._count = count
        self._zone = zone
        self._max_tokens = max_tokens

    def recall(self, text: str, scope: str) -> str:
        """A block for the volatile block; "" where nobody is named. Raises `StoreError`."""
        named = self._profiles.find_in_text(text, scope) if self._max_tokens else []
        block = profiles_block(named, self._count, self._max_tokens, self._zone) if named else ""
        return _without_unasked_secrets(block, text)


def _block(lines: Sequence[str]) -> str:
    return quote_in_tag(RECORD_TAG, "\n".join([_MEMORY_HEADING, *lines]))


def _asks_for_something(words: str) -> bool:
    return any(word not in STOP_WORDS and word not in _GENERAL_WORDS for word in distinct_words(words))


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip().rstrip(".").casefold()
