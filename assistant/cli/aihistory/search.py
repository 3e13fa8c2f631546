"""`aihistory search`: summaries and the messages under them, by words.

Messages are found through the history's own search, which knows words and pairs of characters. A text in a script
without spaces between words (Chinese, Japanese, Thai, ...) is found as it is, anywhere in a message: where the
search has only parts of it, the log is read from the newest message back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import islice
from typing import Literal

import click

from assistant.cli.aihistory.compactions import filter_options, select_checkpoints
from assistant.cli.log import records_newest_first
from assistant.cli.output import require_utf8, shorten_line
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.table import TableCommand
from assistant.core.calendar import format_local_time
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import UsageError
from assistant.core.messages import LogByteRange
from assistant.core.records import SearchHit
from assistant.core.text import lazy_regex

_WITHOUT_SPACES = lazy_regex(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_AROUND = 120
_MOST_HITS = 1000
# Of the best hit's score; what is worth less shares a common word with the question, or is near an answer.
_WORTH = 0.5
# These removed nothing from what a model sees.
_NEVER_INSTALLED = ("started", "failed")


@dataclass(frozen=True, slots=True)
class CompactionSearchHit:
    """A place where the words are."""

    kind: Literal["summary", "message"]
    id: int  # of the compaction
    session: str
    at: datetime
    state: str  # of the compaction
    message_id: int | None  # with its role, for a message
    role: str | None
    text: str


def _render_hits(hits: Sequence[CompactionSearchHit], zone: tzinfo) -> str:
    lines = [
        f"- {hit.session}, {format_local_time(hit.at, zone)}, "
        f"{f'{hit.role} #{hit.message_id}' if hit.message_id is not None else 'summary'} "
        f"(compaction {hit.id}): {shorten_line(hit.text, 400)}"
        for hit in hits
    ]
    return "\n".join(lines) or "Nothing that was compacted contains it. `assistant log --grep` searches everything."


@click.command(cls=TableCommand, result=list[CompactionSearchHit], render=_render_hits, reads=True, with_session=False)
@click.argument("text")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many summaries, and messages of a conversation.",
)
@filter_options
def search(
    context: CommandContext, text: str, limit: int, since: str | None, session: str | None
) -> list[CompactionSearchHit]:
    """Find summaries and compacted messages that contain TEXT, newest first.

    `assistant log --grep` searches everything, compacted or not.

    \b
    Example:
      aihistory search "booking number"
      aihistory search 予約番号 --json
    """
    words = require_utf8(text, "TEXT").strip()
    if not words:
        raise UsageError("The text to search for is empty.")
    checkpoints = select_checkpoints(context.stores.conversation, context.zone, since, session)
    covered = CompactedRanges(context.stores, checkpoints)
    hits = [
        *islice(search_summaries(checkpoints, words), limit),
        *search_messages(context.stores, covered, words, limit),
    ]
    return sorted(hits, key=lambda hit: (hit.at, hit.message_id or 0), reverse=True)


# ----------------------------------------------------------------------------------------------------------- summaries


def search_summaries(checkpoints: Iterable[Checkpoint], words: str) -> Iterator[CompactionSearchHit]:
    """Those that contain the text, or all its words anywhere."""
    whole = fold_text(words)
    for checkpoint in checkpoints:
        summary = fold_text(checkpoint.summary)
        if whole in summary or all(word in summary for word in whole.split()):
            about = whole if whole in summary else whole.split()[0]
            yield _hit(checkpoint, checkpoint.created_at, excerpt_around(checkpoint.summary, about))


def _hit(
    checkpoint: Checkpoint, at: datetime, text: str, message_id: int | None = None, role: str | None = None
) -> CompactionSearchHit:
    kind: Literal["summary", "message"] = "summary" if message_id is None else "message"
    return CompactionSearchHit(kind, checkpoint.id, checkpoint.session, at, checkpoint.state, message_id, role, text)


def fold_text(text: str) -> str:
    """`text` without case, and in one form of what can be written in several (wide letters, composed accents)."""
    return unicodedata.normalize("NFKC", text).casefold()


def excerpt_around(text: str, words: str) -> str:
    """The text around the first place of the folded `words`, give or take what folding moved it."""
    plain = unicodedata.normalize("NFKC", text)
    at = max(0, fold_text(text).find(words))
    start, end = max(0, at - _AROUND), at + len(words) + _AROUND
    return f"{'… ' if start else ''}{plain[start:end].strip()}{' …' if end < len(plain) else ''}"


# ------------------------------------------------------------------------------------------------------------ messages


class CompactedRanges:
    """Which compaction covers a message: the live one, else the newest that ever did."""

    def __init__(self, stores: CommandStores, checkpoints: Sequence[Checkpoint]) -> None:
        installed = [c for c in checkpoints if c.state not in _NEVER_INSTALLED]
        ends = [message_id for c in installed for message_id in (c.from_message_id, c.to_message_id)]
        places = stores.conversation.find_log_places(ends)
        self.scopes = {info.key: info.scope for info in stores.conversation.list_sessions()}
        self._ranges: dict[str, list[tuple[int, int, Checkpoint]]] = {}
        for c in sorted(installed, key=lambda c: (c.state == "live", c.id), reverse=True):
            first, last = places.get(c.from_message_id), places.get(c.to_message_id)
            if first and last:
                self._ranges.setdefault(c.session, []).append((first.span.start, last.span.end, c))

    @property
    def sessions(self) -> list[str]:
        return list(self._ranges)

    def find_checkpoint(self, session: str, span: LogByteRange) -> Checkpoint | None:
        for start, end, checkpoint in self._ranges.get(session, ()):
            if start <= span.start < end:
                return checkpoint
        return None

    def hits_in_ranges(self, hits: Iterable[SearchHit]) -> Iterator[CompactionSearchHit]:
        """Those that a compaction covers."""
        for hit in hits:
            checkpoint = self.find_checkpoint(hit.session, hit.location.span)
            if checkpoint is not None:
                yield _hit(checkpoint, hit.ts, hit.text, hit.message_id, hit.role)


def search_messages(
    stores: CommandStores, covered: CompactedRanges, words: str, limit: int
) -> Iterator[CompactionSearchHit]:
    """Of each session at most `limit`: those that contain the text itself, the newest first. Where none does, those
    that fit its words best; but of a text without spaces, which has no words, those found by reading everything."""
    for session in covered.sessions:
        yield from islice(_of_session(stores, covered, words, session), limit)


def _of_session(
    stores: CommandStores, covered: CompactedRanges, words: str, session: str
) -> Iterable[CompactionSearchHit]:
    hits = stores.history.search(words, covered.scopes[session], limit=_MOST_HITS, session=session)
    exact = [hit for hit in hits if fold_text(words) in fold_text(hit.text)]
    if exact:
        return covered.hits_in_ranges(sorted(exact, key=lambda hit: hit.message_id, reverse=True))
    if hits and _WITHOUT_SPACES.search(words):
        return _by_reading(stores, covered, words, session)
    worth = _WORTH * max((hit.score for hit in hits), default=0.0)
    return covered.hits_in_ranges(hit for hit in hits if hit.score >= worth)


def _by_reading(
    stores: CommandStores, covered: CompactedRanges, words: str, session: str
) -> Iterator[CompactionSearchHit]:
    whole = fold_text(words)
    for record in records_newest_first(stores.history, covered.scopes[session], session):
        if whole in fold_text(record.content):
            checkpoint = covered.find_checkpoint(session, record.span)
            if checkpoint is not None:
                yield _hit(checkpoint, record.ts, excerpt_around(record.content, whole), record.id, record.role)
