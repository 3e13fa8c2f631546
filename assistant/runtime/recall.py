"""Automatic recall for a new message: earlier messages removed by compactions (`HistoryRecall`), memories and journal
entries (`MemoryRecall`), and profiles (`ProfileRecall`).

For all of them:
- The text is used in the volatile block only, never in a view or log, so that recalled text is not learned again.
- Apparent passwords, keys, PINs and card numbers are masked, unless the message asks for one.
- Only text of the scope is recalled (I10), quoted as data, dated, and marked as recalled; text still visible in the
  view is skipped. Each memory has the reference for looking it up, correcting or erasing it.

Messages: tool results that quote the past are skipped. Nothing is recalled for small talk, for statements (which would
only delay the answer), for questions about someone never mentioned, or below a threshold, which combines similarity of
meaning, the share of the question found in the message and its neighbours, and how unlikely its words occur together by
chance. So a conversation about one subject, whose own words are not rare, is still searchable. Form and values of the
threshold were tuned on natural and generated conversations (`tests/recall_bench/unasked_history.py`,
`tests/bench/recollection.py`), so results on these are not those of unseen conversations.

Memories: those already visible in the conversation or the standing memory are skipped, and those not relevant enough
(`MemoryHit.is_relevant`). A question about a time ("last spring", "in March") is answered from that time if anything is
known of it; one about nothing but a time ("what did I do yesterday?") by what was said then.
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
# Text that a summary contains up to this length is not recalled.
_TOLD = 160

# Threshold for the sum of similarity, matched share, and weighted surprise.
_LEAST_FIT, _SURPRISE_WEIGHT = 1.15, 0.1
# Alternative threshold for several rare words found together where the rest is phrased differently: they must be very
# rare, or similarity must agree.
_MOST_BY_CHANCE, _LEAST_SHARE, _VERY_RARE = 0.7, 0.25, 10.0
_MOST_BY_CHANCE_OF_LIKE, _LEAST_SHARE_OF_LIKE, _LEAST_LIKENESS = 0.4, 0.3, 0.3

_ENDS_ASKING = lazy_regex(r"[?？؟][\s\"'”’)»」]*(?:…\s*)?$")


def recall_budget(max_tokens: int, window: int) -> int:
    """Scale the token budget for recalled messages from a full context to `window`, with a minimum for a few
    messages."""
    return min(max_tokens, max(max_tokens * window // FULL_CONTEXT_TOKENS, window // 40))


class HistoryRecall:
    """Finds earlier messages to recall. Read-only and stateless."""

    def __init__(
        self,
        history: StoredHistory,
        count: Callable[[str], int],
        zone: tzinfo,
        budget: Callable[[], int],
        *,
        quoting_tools: frozenset[str] = frozenset(),
    ) -> None:
        """`count` counts tokens, `budget` returns the current limit (see `recall_budget`); `quoting_tools` are tools
        whose results quote the past."""
        self._history = history
        self._count = count
        self._zone = zone
        self._budget = budget
        self._quoting_tools = quoting_tools

    @staticmethod
    def has_something_out_of(view: ContextView) -> bool:
        """Return whether compactions removed messages from the view."""
        return bool(find_summaries(view.messages))

    def recall(self, question: str, session: str, scope: str, view: ContextView, now: datetime) -> str:
        """Return a block of quotations, oldest first; "" if there is nothing to recall. `view` is the session's, with
        or without the question. Thread-safe. Raises `StoreError`."""
        return history_block(self.recall_lines(question, session, scope, view, now))

    def recall_lines(self, question: str, session: str, scope: str, view: ContextView, now: datetime) -> dict[int, str]:
        """Return the quotations by message id, oldest first. Raises `StoreError`."""
        words = searchable_text(question)
        room = self._budget()
        identifiers = find_identifiers(words)
        if room <= 0 or not self.has_something_out_of(view):
            return {}
        if not is_question(words):
            # For a statement, look up only its identifiers.
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
        """Return messages from before the view's tail, preferably from the time that the question names."""
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
        """Return distinct texts: a question asked many times must not hide its answer."""
        distinct: dict[str, SearchHit] = {}
        for limit in (_HITS_READ, _HITS_READ_OF_REPEATED):
            hits = self._history.search(words, scope, limit=limit, after=after, before=before)
            for hit in hits:
                distinct.setdefault(fold_text(hit.text), hit)
            if len(hits) < limit or len(distinct) > _HITS_READ // 2:
                break
        return list(distinct.values())[:_HITS_READ]

    def _add(self, quotes: dict[int, str], lines: dict[int, str], room: int) -> int:
        """Add lines of one hit if they are new and all fit; returns the remaining budget."""
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
        """Return the line of a hit; if it asks something, also of the reply, which has the answer."""
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
    """Return quotations as a block; "" if there are none."""
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
    """Return whether a hit is a statement about one of the identifiers, even if these are not rare in a short
    history."""
    return not _ENDS_ASKING.search(hit.text) and any(name in fold_text(hit.text) for name in identifiers)


def _without_unasked_secrets(text: str, message: str) -> str:
    return text if not text or asks_for_secret(searchable_text(message)) else mask_secrets(text)


def fully_shown_ids(view: ContextView) -> frozenset[int]:
    """Return ids of messages that are in the view untruncated, as originals or copies."""
    whole = [message for message in view.messages if not message.metadata.get("truncated")]
    origins = {message.metadata.get("carried_from") for message in whole} | {message.id for message in whole}
    return frozenset(origin for origin in origins if origin is not None)


def _tail_start(view: ContextView, now: datetime) -> datetime:
    """Return when the contiguous part of the view starts."""
    first = next((message.ts for message in view.messages if message.id is not None and message.ts), now)
    return min(first, now)


def _words_of_line(line: str) -> str:
    return line.partition(": ")[2]


_MEMORY_HEADING = f"{MEMORY_MARK} search_memory finds more."

_MEMORIES_READ = 12
_MAX_MEMORIES = 6
_MEMORY_LENGTH = 400
# Words that carry no content in a question about what was said or done at some time.
_GENERAL_WORDS_TEXT = """
talk talked talking say said saying tell told discuss discussed mention mentioned do did done doing happen happened
happening go went going know remember note noted learn learned learnt write wrote thing things something anything
everything new chat conversation topic topics speak spoke spoken summarise summarize list show remind find decide
decided plan planned day days time morning afternoon evening night week weekend month year
"""
_GENERAL_WORDS = frozenset(_GENERAL_WORDS_TEXT.split())
_SPACE = lazy_regex(r"\s+")


class MemoryRecall:
    """Finds memories to recall. Read-only and stateless."""

    def __init__(
        self, search: StoredMemorySearch, count: Callable[[str], int], zone: tzinfo, budget: Callable[[], int]
    ) -> None:
        """`count` counts tokens, `budget` returns the current limit."""
        self._search = search
        self._count = count
        self._zone = zone
        self._budget = budget

    def recall(self, message: str, scope: str, view: ContextView, standing_memory: str, now: datetime) -> str:
        """Return a block, best first; "" if nothing is relevant. `standing_memory` is the memory already in the prompt.
        Raises `StoreError`."""
        words, room = searchable_text(message), self._budget()
        if room <= 0 or not words:
            return ""
        if not (hits := self._hits(words, scope, now)):
            return ""
        shown, flat = fully_shown_ids(view), _flat(standing_memory)
        lines: list[str] = []
        for hit in hits:
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
    """Recalls the profiles of those that a text names."""

    def __init__(self, profiles: StoredProfiles, count: Callable[[str], int], zone: tzinfo, max_tokens: int) -> None:
        """`count` counts tokens; `max_tokens` 0 disables recall."""
        self._profiles = profiles
        self._count = count
        self._zone = zone
        self._max_tokens = max_tokens

    def recall(self, text: str, scope: str) -> str:
        """Return a block; "" if no profile is named. Raises `StoreError`."""
        named = self._profiles.find_in_text(text, scope) if self._max_tokens else []
        block = profiles_block(named, self._count, self._max_tokens, self._zone) if named else ""
        return _without_unasked_secrets(block, text)


def _block(lines: Sequence[str]) -> str:
    return quote_in_tag(RECORD_TAG, "\n".join([_MEMORY_HEADING, *lines]))


def _asks_for_something(words: str) -> bool:
    return any(word not in STOP_WORDS and word not in _GENERAL_WORDS for word in distinct_words(words))


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip().rstrip(".").casefold()
