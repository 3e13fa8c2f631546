"""Extracts journal entries from messages: with a model if there is one, else by rules.

- Only words of people and the assistant are read: nothing recalled, no tool output, nothing erased (F29).
- Every entry cites source messages that were in the batch (I6); others are rejected.
- If the model fails, the rules read the same messages, so nothing is skipped (F28).
- Keys derive from sources and text, so extraction is idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from datetime import UTC, tzinfo
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelError
from assistant.core.memories import JournalEntry
from assistant.core.messages import Message
from assistant.core.model_api import ModelReply, ModelRequest, SystemBlock
from assistant.core.ports import Model
from assistant.core.quoting import RECORD_TAG, quote_in_tag, replace_unsendable
from assistant.core.records import LogRecord
from assistant.core.store_ports import LogReaderPort
from sleep.compaction.budget import OFFLINE, complete
from sleep.cycle.phase import is_share, parse_json_lines, tagged_pattern
from sleep.cycle.validate import KnownTexts, find_refusal_reason, is_readable, normalise_text
from sleep.rules.classifier import score_importance
from sleep.rules.corrections import is_correction, is_retraction
from sleep.rules.extract_statements import extract_from_conversation, find_personal_question

_KINDS = ("fact", "preference", "decision", "task")
CORRECTION_TAG = "correction"
EXTRACT_PHASE = "extract"
_BATCH_RECORDS = 60
_NAMESPACE = uuid.UUID("6f2f3a52-9a2a-4f0e-8f5b-2a9b2d3f5c11")
_ANSWER_TOKENS = 2_000
_LONGEST_MESSAGE = 6_000
_LONGEST_CONTENT = 400
_LONGEST_NAME = 80
_BYTES_A_TOKEN = 3
_TOKENS_A_LINE = 12
# Divisor: a batch takes at most this share of the model's window; the rest is for prompt, known texts and answer.
_SHARE_OF_WINDOW = 3
_TAGGED = tagged_pattern("memories")
# Failures that may be temporary and are not caused by the messages.
_PASSING = ("rate_limit", "overload", "auth", "no_credit", "unknown_model", "budget", "network")


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """The result of extracting a batch."""

    read_count: int  # messages with text
    entries: tuple[JournalEntry, ...]
    rejected: tuple[str, ...] = ()  # why model answers were rejected
    calls: int = 0
    cost_usd: float | None = 0.0  # None if no price is known
    failed: bool = False  # the model was unusable, and rules were used
    is_temporary_failure: bool = False  # the model may work the next time
    by_rules: tuple[LogRecord, ...] = ()  # messages that no model has read


KNOWN_ENTRIES = 60
"""How many entries of the last day are shown, to avoid duplicates."""


def known_texts(entries: Sequence[JournalEntry]) -> list[str]:
    """Return the texts of entries, without conversation summaries."""
    return [entry.content for entry in entries if entry.source_type != "context_synthesis"]


def learn_from_all(session: str) -> bool:
    """Accept every session (the default of `learns_from`)."""
    return True


@dataclass(frozen=True, slots=True)
class Extractor:
    """Extracts batches of messages.

    - `prompt`: says what is worth saving.
    - `batch_tokens`: approximate size of a batch.
    - `zone`: for dates of messages, and relative days such as "tomorrow".
    - `learns_from`: whether a session may be learned from; others are skipped.
    - `rest`: called between the steps of the rules, in their thread, so that turns get the interpreter.
    """

    model: Callable[[], Model]
    prompt: str
    batch_tokens: int = field(kw_only=True)
    zone: tzinfo = field(default=UTC, kw_only=True)
    learns_from: Callable[[str], bool] = field(default=learn_from_all, kw_only=True)
    rest: Callable[[], None] | None = field(default=None, kw_only=True)

    async def read_batch(self, log: LogReaderPort, session: str, generation: int, seq: int) -> list[LogRecord]:
        """Return the next batch of a session after `seq`; empty at its end."""
        return await self.next_batch(
            log.read_after(session, generation, seq, limit=_BATCH_RECORDS + 1), limit=_BATCH_RECORDS
        )

    async def next_batch(self, records: Sequence[LogRecord], limit: int | None = None) -> list[LogRecord]:
        """Return the first records that fit one call, at most `limit`; at least one, however long. If more follow, the
        batch ends at the end of a turn if possible."""
        room = self.batch_tokens
        with contextlib.suppress(ModelError):
            room = min(room, (await self.model().limits()).window // _SHARE_OF_WINDOW)
        fitting: list[LogRecord] = []
        for record in records:
            room -= estimate_tokens(record)
            if fitting and (room < 0 or len(fitting) == limit):
                # Reads up to the ends of all of them: not on the loop.
                return fitting[: await asyncio.to_thread(_count_until_turn_end, fitting, record)]
            fitting.append(record)
        return fitting

    async def extract(self, records: Sequence[LogRecord], known_texts: Sequence[str]) -> ExtractionResult:
        """Extract records of one session, oldest first; `known_texts` are the journal's of the day. Raises `StoreError`
        if the call cannot be metered."""
        spoken, model = self.readable(records), self.model()
        if not spoken or model.provider == OFFLINE:
            return await asyncio.to_thread(self.extract_without_model, spoken, known_texts)
        try:
            reply = await self._ask(model, spoken, known_texts)
        except ModelError as error:
            by_rules = await asyncio.to_thread(self.extract_without_model, spoken, known_texts)
            if self.model().provider == OFFLINE:
                # The model is no longer available.
                return by_rules
            passing, why = error.kind in _PASSING, (f"the model failed: {error.reason}",)
            return replace(by_rules, rejected=why, calls=1, failed=True, is_temporary_failure=passing)
        cost = reply.usage.cost_usd
        entries, rejected = await asyncio.to_thread(parse_entries, reply.message.content, spoken, known_texts)
        if entries is None or reply.message.tool_calls or reply.stop == "refusal":
            by_rules = await asyncio.to_thread(self.extract_without_model, spoken, known_texts)
            reasons = rejected or ("the model answered no list",)
            return replace(by_rules, rejected=reasons, calls=1, cost_usd=cost, failed=True)
        behind: list[LogRecord] = []
        if reply.stop == "max_tokens":
            # Apply the rules after the last message covered by the answer.
            reached = max((source for entry in entries for source in entry.sources), default=0)
            learned = [*known_texts, *(entry.content for entry in entries)]
            behind = [record for record in spoken if record.id > reached]
            entries += await asyncio.to_thread(extract_by_rules, behind, learned, self.zone, self.rest)
            rejected = (*rejected, "the answer was cut off")
        return ExtractionResult(len(spoken), entries, rejected, calls=1, cost_usd=cost, by_rules=tuple(behind))

    def extract_without_model(self, records: Sequence[LogRecord], known_texts: Sequence[str]) -> ExtractionResult:
        """Extract by rules only."""
        spoken = self.readable(records)
        entries = extract_by_rules(spoken, known_texts, self.zone, self.rest)
        return ExtractionResult(len(spoken), entries, by_rules=tuple(spoken))

    def readable(self, records: Sequence[LogRecord]) -> list[LogRecord]:
        """Return the records that may be learned from."""
        return [record for record in records if is_readable(record) and self.learns_from(record.session)]

    async def _ask(self, model: Model, records: Sequence[LogRecord], known_texts: Sequence[str]) -> ModelReply:
        shown = "\n\n".join(_line(record, self.zone) for record in records)
        already = "\n".join(f"- {replace_unsendable(text)}" for text in known_texts) or "(nothing yet)"
        words = (
            f"Known already:\n{quote_in_tag(RECORD_TAG, already)}\n\n"
            f"The conversation:\n{quote_in_tag(RECORD_TAG, shown)}"
        )
        request = ModelRequest(
            (SystemBlock(self.prompt.strip()),),
            (Message("user", words),),
            max_output_tokens=min(_ANSWER_TOKENS, (await model.limits()).max_output),
        )
        return await complete(model, request, "extraction", records[0].session)


def _count_until_turn_end(records: Sequence[LogRecord], following: LogRecord) -> int:
    """Return how many records to read now, so that a question is read with its answer, and the assistant's question
    with the user's reply, unless that would leave more than half."""
    rows = [*records, following]
    ends = [number for number in range(len(records), 0, -1) if _parts(rows[number - 1], rows[number])]
    for number in ends:
        if 2 * number >= len(records) and not find_personal_question(rows[number - 1].content):
            return number
    return ends[0] if ends else len(records)


def _parts(before: LogRecord, after: LogRecord) -> bool:
    """Return whether a turn ends between two records."""
    if before.turn is not None and after.turn is not None:
        return before.turn != after.turn
    return after.role == "user" and before.role != "user"


def extract_by_rules(
    records: Sequence[LogRecord],
    known_texts: Sequence[str] = (),
    zone: tzinfo = UTC,
    rest: Callable[[], None] | None = None,
) -> tuple[JournalEntry, ...]:
    """Extract what the users' messages state, by rules, skipping known texts. `rest` is called before each message."""
    seen = KnownTexts(known_texts)
    entries: list[JournalEntry] = []
    for sourced in extract_from_conversation(records, zone, rest):
        new = sourced.statement
        if not seen.contains(new.content):
            seen.add(new.content)
            # An edited message corrects what it said before.
            tags = (CORRECTION_TAG,) if new.is_correction or sourced.record.refs else ()
            entries.append(
                entry_of_record(sourced.record, new.content, new.kind, new.importance, sourced.sources, tags)
            )
    return tuple(entries)


def parse_entries(
    answer: str, records: Sequence[LogRecord], known_texts: Sequence[str] = ()
) -> tuple[tuple[JournalEntry, ...] | None, tuple[str, ...]]:
    """Parse a model's answer into entries and reasons for rejected ones; entries are None if it is not a list."""
    tagged = _TAGGED.findall(answer)
    if not tagged:
        return None, ()
    by_id = {record.id: record for record in records}
    shown = "\n".join((*(record.content for record in records), *known_texts))
    seen = KnownTexts(known_texts)
    entries: list[JournalEntry] = []
    rejected: list[str] = []
    usable = False
    for raw in parse_json_lines(tagged[-1]):
        entry = _parsed(raw, by_id)
        if isinstance(entry, str):
            rejected.append(entry)
            continue
        usable = True
        named = [by_id[source] for source in entry.sources]
        why = find_refusal_reason(entry.content, entry.tags[0], entry.importance, named, shown, seen)
        if why:
            rejected.append(why)
        else:
            seen.add(entry.content)
            entries.append(entry)
    if rejected and not usable:
        return None, tuple(rejected)
    return tuple(entries), tuple(rejected)


def _parsed(raw: Any, by_id: dict[int, LogRecord]) -> JournalEntry | str:
    if not isinstance(raw, dict):
        return "not JSON"
    if not isinstance(raw.get("content"), str) or not raw["content"].strip():
        return "no content"
    named = raw.get("sources", ())
    ids = [source for source in named if type(source) is int and source in by_id] if isinstance(named, list) else []
    sources = tuple(dict.fromkeys(ids))
    if not sources:
        return "no source among the messages"
    content = " ".join(raw["content"].split())[:_LONGEST_CONTENT]
    kind = raw["kind"] if raw.get("kind") in _KINDS else "fact"
    given = raw.get("importance")
    weight = float(given) if is_share(given) else score_importance(kind, content)
    messages = [by_id[source] for source in sources if by_id[source].role == "user"]
    puts_right = is_correction(content) or any(record.refs or is_retraction(record.content) for record in messages)
    more = (CORRECTION_TAG,) if puts_right else ()
    return entry_of_record(by_id[sources[0]], content, kind, weight, sources, more)


def entry_of_record(
    record: LogRecord, content: str, kind: str, weight: float, sources: tuple[int, ...], more: tuple[str, ...] = ()
) -> JournalEntry:
    """Return an entry that was said in `record`, with the tags `more` beside its kind; `weight` is its importance."""
    return JournalEntry(
        key=f"extract:{sources[0]}:{uuid.uuid5(_NAMESPACE, normalise_text(content)).hex}",
        scope=record.scope,
        session=record.session,
        generation=record.generation,
        content=content,
        timestamp=record.ts,
        source_type="extraction",
        importance=weight,
        tags=(kind, *more) if record.trust != "guest" else (kind, *more, "guest"),
        sources=sources,
    )


def estimate_tokens(record: LogRecord) -> int:
    """Estimate tokens in any script."""
    return len(_shown(record.content).encode("utf-8", "replace")) // _BYTES_A_TOKEN + _TOKENS_A_LINE


def _line(record: LogRecord, zone: tzinfo) -> str:
    who = "user" if record.role == "user" else "assistant"
    if record.role == "user" and record.name:
        name = replace_unsendable(record.name).replace(":", " ")
        who = " ".join([who, *name.split()])[:_LONGEST_NAME]
    pictures = ", ".join(medium.name or medium.mime for medium in record.media)
    named = f" [{pictures}]" if pictures else ""
    # No text can imitate the start of another message.
    words = _shown(replace_unsendable(record.content)).replace("\n#", "\n #")
    return f"#{record.id} {record.ts.astimezone(zone):%Y-%m-%d %H:%M} {who}: {words}{named}"


def _shown(content: str) -> str:
    """Shorten a long text to both ends: what people say about themselves comes before or after pasted text."""
    if len(content) <= _LONGEST_MESSAGE:
        return content
    return f"{content[: _LONGEST_MESSAGE // 2]}\n[…]\n{content[-_LONGEST_MESSAGE // 2 :]}"
