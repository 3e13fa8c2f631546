"""Many messages at once, without a turn for each: a conversation that is there before a test begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from assistant.core.messages import Message, Role, Trust
from assistant.store.script.append import RecordOrigin
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.sessions import ensure_session

_TRUST: Mapping[Role, Trust] = {"assistant": "model", "tool": "tool", "system": "system", "user": "owner"}


def import_messages(
    conversation: StoredConversation,
    session: str,
    scope: str,
    messages: Sequence[Message],
    now: datetime,
    *,
    keep: int | None = None,
) -> tuple[Message, ...]:
    """Append messages in bulk (one fsync, one commit). With `keep`, what is older than the last `keep` rows of the view
    goes under a checkpoint that refers to the log, whenever there are twice as many."""
    appender = conversation.appender
    with conversation._db.write() as db:
        current = ensure_session(db, session, scope, now)
    drafts = [
        appender.draft_record(current, message, RecordOrigin(trust=_TRUST[message.role]), now) for message in messages
    ]
    with appender.appending(current, drafts, now) as shown:
        if keep is not None:
            appender.shorten_view(current, 2 * keep, keep, "import", now)
        return shown
