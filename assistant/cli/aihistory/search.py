"""`aihistory search`: summaries and the messages under them, by words.

Messages are found through the history's own search, which knows words and pairs of characters. A text in a script
without spaces between words (Chinese, Japanese, Thai, ...) is found as it is, anywhere in a message: where the
search has only parts of it, the log is read from the newest message back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from operator import attrgetter
from typing import Annotated, Literal

import click
from pydantic import BeforeValidator

from assistant.cli.aihistory.compactions import NEVER_INSTALLED, filter_options, parse_moment, select_checkpoints
from assistant.cli.aihistory.secret_mask import SECRETS_LEFT_OUT, SecretMask, secrets_option
from assistant.cli.log import records_newest_first
from assistant.cli.output import clean_line, require_utf8
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.table import TableCommand
from assistant.core.calendar import format_local_time
from assistant.core.checkpoints import Checkpoint
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.sessions import OWNER_SCOPE, is_imported, session_name
from assistant.core.text import lazy_regex
from sleep.rules.secrets import asks_for_secret

_WITHOUT_SPACES = lazy_regex(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_AROUND = 120
_MAX_HITS = 1000
# Of the best hit's score; what is worth less shares a common word with the question, or is near an answer.
_WORTH = 0.5


@dataclass(frozen=True, slots=True)
class CompactionSearchHit:
    """A place where the words are."""

    kind: Literal["summary", "message"]
    id: int | None  # of the compaction; null in a conversation that was imported
    session: str
    at: datetime
    state: str  # of the compaction, or "imported"
    message_id: int | None  # with its role, for a message
    role: str | None
    text: str


@dataclass(frozen=True, slots=True)
class _FoundHits:
    hits: Sequence[CompactionSearchHit]
    mask: SecretMask


def _render_hits(found: _FoundHits, zone: tzinfo) -> str:
    lines = [
        f"- {session_name(hit.session)}, {format_local_time(hit.at, zone)}, "
        f"{f'{hit.role} #{hit.message_id}' if hit.message_id is not None else 'summary'} "
        f"({'imported' if hit.id is None else f'compaction {hit.id}'}): {clean_line(found.mask.apply(hit.text), 400)}"
        for hit in found.hits
    ]
    if found.mask.left_out:
        lines += ["", SECRETS_LEFT_OUT]
    nothing = "Nothing that was compacted or imported contains it. `assistant log --grep` searches everything."
    return "\n".join(lines) or nothing


_HITS_JSON = Annotated[list[CompactionSearchHit], BeforeValidator(attrgetter("hits"))]


@click.command(cls=TableCommand, result=_HITS_JSON, render=_render_hits, reads=True, with_session=False)
@click.argument("text")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many summaries and messages at most.",
)
@filter_options
@secrets_option
def search(
    context: CommandContext, text: str, limit: int, since: str | None, session: str | None, secrets: bool
) -> _FoundHits:
    """Find TEXT in summaries and in compacted messages.

    Also in imported ones; the newest comes first.

    `assistant log --grep` searches everything, compacted or not. Passwords, keys, PINs and card numbers are shown where
    TEXT names such a thing.

    > aihistory search "booking number"
    > aihistory search 予約番号 --json
    """
    words = require_utf8(text, "TEXT").strip()
    if not words:
        raise UsageError("The text to search for is empty.")
    checkpoints = select_checkpoints(context.stores.conversation, context.zone, since, session)
    hits = [
        *islice(_search_summaries(checkpoints, words), limit),
        *_search_messages(context.stores, checkpoints, words, limit),
        *_search_imported(context.stores, context.zone, words, since, session, limit),
    ]
    newest = sorted(hits, key=lambda hit: (hit.at, hit.message_id or 0), reverse=True)[:limit]
    mask = SecretMask(asked=secrets or asks_for_secret(words))
    _learn_secrets(context.stores, newest, mask)
    return _FoundHits(newest, mask)


def _learn_secrets(stores: CommandStores, hits: Iterable[CompactionSearchHit], mask: SecretMask) -> None:
    """An excerpt may have lost the words that say what a value in it is."""
    scopes = {info.key: info.scope for info in stores.conversation.list_sessions()}
    for hit in hits:
        if hit.message_id is not None:
            for record in stores.history.read(hit.message_id, scopes.get(hit.session, OWNER_SCOPE)):
                mask.learn(record.content)


# ----------------------------------------------------------------------------------------------------------- summaries


def _search_summaries(checkpoints: Iterable[Checkpoint], words: str) -> Iterator[CompactionSearchHit]:
    """Those that contain the text, or all its words anywhere."""
    folded = fold_text(words)
    for checkpoint in checkpoints:
        summary = fold_text(checkpoint.summary)
        if folded in summary or all(word in summary for word in folded.split()):
            excerpt = excerpt_around(checkpoint.summary, folded if folded in summary else folded.split()[0])
            at = checkpoint.created_at
            yield CompactionSearchHit(
                "summary", checkpoint.id, checkpoint.session, at, checkpoint.state, None, None, excerpt
            )


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


def _search_messages(
    stores: CommandStores, checkpoints: Sequence[Checkpoint], words: str, limit: int
) -> Iterator[CompactionSearchHit]:
    """Of each session at most `limit`."""
    scopes = {info.key: info.scope for info in stores.conversation.list_sessions()}
    for session, ranges in _compacted_ranges(stores, checkpoints).items():
        hits = (
            CompactionSearchHit("message", checkpoint.id, session, at, checkpoint.state, message_id, role, text)
            for place, at, message_id, role, text in _find_messages(stores, words, session, scopes[session])
            for checkpoint in [next((it for start, end, it in ranges if start <= place < end), None)]
            if checkpoint is not None
        )
        yield from islice(hits, limit)


def _search_imported(
    stores: CommandStores, zone: tzinfo, words: str, since: str | None, session: str | None, limit: int
) -> Iterator[CompactionSearchHit]:
    """What was imported is not in any context, as if all of it were compacted."""
    after = None if since is None else parse_moment(since, zone)
    hits = stores.history.search(words, OWNER_SCOPE, limit=_MAX_HITS, after=after, session=session)
    hits = [hit for hit in hits if is_imported(hit.session)]
    worth = _WORTH * max((hit.score for hit in hits), default=0.0)
    for hit in islice((hit for hit in hits if hit.score >= worth), limit):
        yield CompactionSearchHit("message", None, hit.session, hit.ts, "imported", hit.message_id, hit.role, hit.text)


def _compacted_ranges(
    stores: CommandStores, checkpoints: Sequence[Checkpoint]
) -> Mapping[str, Sequence[tuple[int, int, Checkpoint]]]:
    """By session the bytes of its log that each compaction covers, live ones first, then the newest."""
    installed = [it for it in checkpoints if it.state not in NEVER_INSTALLED]
    ends = [message_id for it in installed for message_id in (it.from_message_id, it.to_message_id)]
    places = stores.conversation.find_log_places(ends)
    ranges: dict[str, list[tuple[int, int, Checkpoint]]] = {}
    for checkpoint in sorted(installed, key=lambda it: (it.state == "live", it.id), reverse=True):
        first, last = places.get(checkpoint.from_message_id), places.get(checkpoint.to_message_id)
        if first and last:
            ranges.setdefault(checkpoint.session, []).append((first.span.start, last.span.end, checkpoint))
    return ranges


def _find_messages(
    stores: CommandStores, words: str, session: str, scope: str
) -> Iterator[tuple[int, datetime, int, str, str]]:
    """(first byte, when, id, role, text) of those that contain the text itself, the newest first. Where none does,
    those that fit its words best; but of a text without spaces, which has no words, those found by reading
    everything."""
    folded = fold_text(words)
    hits = stores.history.search(words, scope, limit=_MAX_HITS, session=session)
    exact = [hit for hit in hits if folded in fold_text(hit.text)]
    if hits and not exact and _WITHOUT_SPACES.search(words):
        for record in records_newest_first(stores.history, scope, session):
            if folded in fold_text(record.content):
                yield record.span.start, record.ts, record.id, record.role, excerpt_around(record.content, folded)
        return
    worth = _WORTH * max((hit.score for hit in hits), default=0.0)
    exact.sort(key=lambda hit: hit.message_id, reverse=True)
    for hit in exact or [hit for hit in hits if hit.score >= worth]:
        yield hit.location.span.start, hit.ts, hit.message_id, hit.role, hit.text
