"""What the rules keep beside lasting statements: that something which the journal has is so no longer.

Without a model, the rules keep what lasts in itself. "The price of Greta's printer is now 900" may be a passing remark;
where an entry says that it is 750, that entry would stay true alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from assistant.core.memories import JournalEntry
from assistant.core.records import LogRecord
from assistant.core.store_ports import Journal
from assistant.core.text import WORD
from sleep.cycle.extract import CORRECTION_TAG, ExtractionResult, entry_of_record
from sleep.rules.classifier import score_importance
from sleep.rules.corrections import describes_change
from sleep.rules.extract_statements import list_earnest_messages
from sleep.rules.sentences import blank_foreign_text, split_sentences
from sleep.rules.supersede import compare_statements, parse_entry

_LONGEST_TEXT = 20_000
_LONGEST = 400
_SHORTEST_WORD = 4
# How many entries of the journal a sentence is compared with: those that share the most words with it.
_COMPARED = 50


async def add_changes(
    extracted: ExtractionResult,
    journal: Journal,
    unsaved: Sequence[JournalEntry] = (),
    rest: Callable[[], None] | None = None,
) -> ExtractionResult:
    """Add what the rules did not keep of messages that no model has read, and what changes an entry of their scope, of
    the journal or one that is not saved yet. `rest` as in `Extractor`. Raises `StoreError`."""
    if not extracted.by_rules:
        return extracted
    kept = [entry.content for entry in (*unsaved, *extracted.entries)]
    added = []
    for record, text in await asyncio.to_thread(lambda: list(_find_changes(extracted.by_rules, kept, rest))):
        earlier = journal.entries_sharing_words(record.scope, _words(text), limit=_COMPARED)
        texts = [*kept, *(entry.content for entry in earlier)]
        if await asyncio.to_thread(_changes_any, text, texts, corrects=bool(record.refs)):
            added.append(
                entry_of_record(record, text, "fact", score_importance("fact", text), (record.id,), (CORRECTION_TAG,))
            )
    return replace(extracted, entries=(*extracted.entries, *added))


def _find_changes(
    records: Sequence[LogRecord], kept: Collection[str], rest: Callable[[], None] | None
) -> Iterator[tuple[LogRecord, str]]:
    """Yield the sentences that say that something has changed, and all of an edited message, with their messages,
    unless an entry has them."""
    for record in list_earnest_messages(records):
        if rest is not None:
            rest()
        for sentence in split_sentences(blank_foreign_text(record.content[:_LONGEST_TEXT])):
            text = sentence.text[:_LONGEST]
            if sentence.is_question or any(text in content for content in kept):
                continue
            if record.refs or describes_change(sentence.own_text[:_LONGEST]):
                yield record, text


def _words(text: str) -> list[str]:
    return sorted({word.lower() for word in WORD.findall(text.replace("’", "'")) if len(word) >= _SHORTEST_WORD})


def _changes_any(text: str, earlier: Sequence[str], *, corrects: bool) -> bool:
    change = parse_entry(text, corrects=corrects)
    return any(compare_statements(change, parse_entry(one)) == "supersedes" for one in earlier)
