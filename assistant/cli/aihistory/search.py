"""`aihistory search`: summaries and the messages under them, by words.

Messages are found through the history's own search, which knows words and pairs of characters. A text in a script
without spaces between words (Chinese, Japanese, Thai, ...) is found as it stands, anywhere in a message: where the
search has only parts of it, the log is read from the newest message back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import click

from assistant.cli.aihistory.compactions import filter_options, read_filter
from assistant.cli.home_stores import open_home_stores
from assistant.cli.log import records_newest_first
from assistant.cli.output import print_json
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import require_utf8, shorten_line
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import UsageError
from assistant.core.messages import LogByteRange
from assistant.core.records import SearchHit
from assistant.core.text import lazy_regex
from assistant.wire.stores import Stores

_WITHOUT_SPACES = lazy_regex(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_AROUND = 120
_MOST_HITS = 1000
# Of the best hit's score; what is worth less shares a common word with the question, or stands near an answer.
_WORTH = 0.5
# These took nothing out of a view.
_NEVER_INSTALLED = ("started", "failed")


@dataclass(frozen=True, slots=True)
class CompactionSearchHit:
    """A place where the words stand: a summary, or a message under the compaction (then with its id and role)."""

    checkpoint: Checkpoint
    at: datetime
    text: str
    message_id: int | None = None
    role: str | None = None


@click.command()
@click.argument("text")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many summaries, and messages of a conversation.",
)
@filter_options("Print one JSON array, newest first.")
@click.pass_context
def search(context: click.Context, text: str, limit: int) -> None:
    """Find summaries that hold TEXT, or all its words, and original messages that were compacted, newest first.

    `assistant log --grep` looks through everything, compacted or not.

    \b
    Example:
      aihistory search "booking number"
      aihistory search 予約番号 --json
    """
    chosen = read_filter(context)
    wanted = require_utf8(text, "TEXT").strip()
    if not wanted:
        raise UsageError("The text to look for is empty.")
    with open_home_stores(chosen.settings) as stores:
        checkpoints = chosen.select_checkpoints(stores.conversation)
        covered = CompactedRanges(stores, checkpoints)
        found = [
            *islice(search_summaries(checkpoints, wanted), limit),
            *search_messages(stores, covered, wanted, limit),
        ]
    found.sort(key=lambda one: (one.at, one.message_id or 0), reverse=True)
    if chosen.json_out:
        print_json([_as_json(one) for one in found])
        return
    print_table(
        ("compaction", "session", "when", "what", "text"),
        [
            (
                str(one.checkpoint.id),
                one.checkpoint.session,
                format_local_time(one.at, chosen.settings.zone),
                _what(one),
                shorten_line(one.text, 400),
            )
            for one in found
        ],
        right=("compaction",),
        empty="Nothing that was compacted holds it. `assistant log --grep` looks through everything.",
    )


# ----------------------------------------------------------------------------------------------------------- summaries


def search_summaries(checkpoints: Iterable[Checkpoint], wanted: str) -> Iterator[CompactionSearchHit]:
    """Those that hold the text, or all its words anywhere."""
    whole, words = fold_text(wanted), fold_text(wanted).split()
    for checkpoint in checkpoints:
        summary = fold_text(checkpoint.summary)
        if whole in summary or all(word in summary for word in words):
            about = whole if whole in summary else words[0]
            yield CompactionSearchHit(checkpoint, checkpoint.created_at, excerpt_around(checkpoint.summary, about))


def fold_text(text: str) -> str:
    """`text` without case, and in one form of what can be written in several (wide letters, composed accents)."""
    return unicodedata.normalize("NFKC", text).casefold()


def excerpt_around(text: str, wanted: str) -> str:
    """The text about the first place where the folded `wanted` stands, give or take what folding moved it."""
    plain = unicodedata.normalize("NFKC", text)
    at = max(0, fold_text(text).find(wanted))
    start, end = max(0, at - _AROUND), at + len(wanted) + _AROUND
    return f"{'… ' if start else ''}{plain[start:end].strip()}{' …' if end < len(plain) else ''}"


# ------------------------------------------------------------------------------------------------------------ messages


class CompactedRanges:
    """Which compaction a message stands under: the live one, else the newest that ever did."""

    def __init__(self, stores: Stores, checkpoints: Sequence[Checkpoint]) -> None:
        installed = [c for c in checkpoints if c.state not in _NEVER_INSTALLED]
        ends = [one for c in installed for one in (c.from_message_id, c.to_message_id)]
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
        """Those that are not in view."""
        for hit in hits:
            checkpoint = self.find_checkpoint(hit.session, hit.location.span)
            if checkpoint is not None:
                yield CompactionSearchHit(checkpoint, hit.ts, hit.text, hit.message_id, hit.role)


def search_messages(stores: Stores, covered: CompactedRanges, wanted: str, limit: int) -> Iterator[CompactionSearchHit]:
    """Of each session at most `limit`: those that hold the text itself, the newest first. Where none does, those that
    fit its words best; but of a text without spaces, which has no words, those found by reading everything."""
    for session in covered.sessions:
        yield from islice(_of_session(stores, covered, wanted, session), limit)


def _of_session(stores: Stores, covered: CompactedRanges, wanted: str, session: str) -> Iterable[CompactionSearchHit]:
    hits = stores.history.search(wanted, covered.scopes[session], limit=_MOST_HITS, session=session)
    exact = [hit for hit in hits if fold_text(wanted) in fold_text(hit.text)]
    if exact:
        return covered.hits_in_ranges(sorted(exact, key=lambda hit: hit.message_id, reverse=True))
    if hits and _WITHOUT_SPACES.search(wanted):
        return _by_reading(stores, covered, wanted, session)
    worth = _WORTH * max((hit.score for hit in hits), default=0.0)
    return covered.hits_in_ranges(hit for hit in hits if hit.score >= worth)


def _by_reading(stores: Stores, covered: CompactedRanges, wanted: str, session: str) -> Iterator[CompactionSearchHit]:
    whole = fold_text(wanted)
    for record in records_newest_first(stores.history, covered.scopes[session], session):
        if whole in fold_text(record.content):
            checkpoint = covered.find_checkpoint(session, record.span)
            if checkpoint is not None:
                yield CompactionSearchHit(
                    checkpoint, record.ts, excerpt_around(record.content, whole), record.id, record.role
                )


# ------------------------------------------------------------------------------------------------------------- showing


def _what(found: CompactionSearchHit) -> str:
    return "summary" if found.message_id is None else f"{found.role} #{found.message_id}"


def _as_json(found: CompactionSearchHit) -> dict[str, Any]:
    return {
        "kind": "summary" if found.message_id is None else "message",
        "id": found.checkpoint.id,
        "session": found.checkpoint.session,
        "at": found.at.isoformat(),
        "state": found.checkpoint.state,
        "message_id": found.message_id,
        "role": found.role,
        "text": found.text,
    }
