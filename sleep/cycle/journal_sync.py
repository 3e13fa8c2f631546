"""What a finished compaction leaves for the journal: its summary, and what was found worth keeping on the way.

What always holds: keys are made of the checkpoint, and a checkpoint is marked only when the journal has its entries, so
that a crash between the two files costs nothing and writes nothing twice (I4). A compaction never waits for this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog

from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import StoreError
from assistant.core.memories import JournalEntry
from assistant.core.store_ports import Conversation, Journal
from sleep.compaction.render import RECORD_TIERS
from sleep.cycle.extract import learn_from_all
from sleep.rules.classifier import score_importance

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class JournalSyncResult:
    """How many checkpoints were looked at, and how many entries were new."""

    checkpoint_count: int
    entry_count: int


def sync_journal(
    conversation: Conversation,
    journal: Journal,
    now: datetime,
    learns_from: Callable[[str], bool] = learn_from_all,
) -> JournalSyncResult:
    """Write what finished compactions leave for the journal, and a crash may have kept from it: at start-up, after each
    compaction, and in every sleep; nothing of sessions from which nothing is learned. Raises `StoreError`; what was
    written stays."""
    looked_at = written = 0
    while waiting := conversation.list_unjournaled_checkpoints():
        for checkpoint in waiting:
            entries = list(_entries_of(checkpoint)) if learns_from(checkpoint.session) else []
            written += len(journal.add(entries, now)) if entries else 0
            conversation.mark_journaled(checkpoint.id)
        looked_at += len(waiting)
    return JournalSyncResult(looked_at, written)


def sync_journal_or_log(
    conversation: Conversation,
    journal: Journal,
    now: datetime,
    learns_from: Callable[[str], bool] = learn_from_all,
) -> None:
    """The same right after a compaction, which stands whether or not the journal can be written now."""
    try:
        sync_journal(conversation, journal, now, learns_from)
    except StoreError as error:
        log.error("the journal lacks a compaction until the next sleep", error=str(error))


def _entries_of(checkpoint: Checkpoint) -> Iterator[JournalEntry]:
    """Nothing of one that only refers to the log, nor of merged ones, which say again what the journal has."""
    if checkpoint.is_merge:
        return
    if checkpoint.tier not in RECORD_TIERS and checkpoint.summary.strip():
        yield _entry(checkpoint, f"synthesis:{checkpoint.id}", checkpoint.summary, "summary")
    for number, memory in enumerate(checkpoint.key_facts.get("memories", ()), 1):
        yield _entry(checkpoint, f"memories:{checkpoint.id}:{number}", str(memory), "fact")


def _entry(checkpoint: Checkpoint, key: str, content: str, tag: str) -> JournalEntry:
    return JournalEntry(
        key=key,
        scope=checkpoint.scope,
        session=checkpoint.session,
        generation=checkpoint.generation,
        content=content,
        timestamp=checkpoint.created_at,
        source_type="context_synthesis" if tag == "summary" else "compaction",
        importance=0.5 if tag == "summary" else score_importance(tag, content),
        tags=(tag,),
        sources=(checkpoint.from_message_id, checkpoint.to_message_id),
    )
