"""Conversations whose last message has no answer, as `status` reports them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.core.calendar import format_moment
from assistant.core.records import FailedTurn
from assistant.core.sessions import MAIN_SESSION, session_name, session_role
from assistant.core.text import pluralize
from assistant.store.script.notices import StoredOutages
from assistant.store.script.turns import UserRequests

_LINES_SHOWN = 3
# A guest who has not written again after this is not waiting any more; the owner decides that for themselves.
_OTHERS_WAIT = timedelta(days=1)


def find_unanswered_problems(
    requests: UserRequests, outages: StoredOutages, zone: ZoneInfo, now: datetime
) -> Iterator[str]:
    """Yield a line for each conversation whose last message was not answered, until it has an answer. What an outage
    explains is not told twice."""
    began = min((outage.began_at for outage in outages.list_outages()), default=None)
    failed = [
        turn
        for turn in requests.list_failed_turns()
        if (began is None or turn.ended_at < began)
        and (session_role(turn.session) == "owner" or now - turn.ended_at < _OTHERS_WAIT)
    ]
    # The newest are the ones that somebody still waits for.
    for turn in failed[-_LINES_SHOWN:]:
        yield _unanswered_line(turn, zone)
    if more := failed[:-_LINES_SHOWN]:
        yield f"Not answered either: the last message of {pluralize(len(more), 'more conversation')}."


def _unanswered_line(turn: FailedTurn, zone: ZoneInfo) -> str:
    where = "" if turn.session == MAIN_SESSION else f" in {session_name(turn.session)}"
    return f"The last message{where} is not answered, since {format_moment(turn.ended_at, zone)}: {turn.error}"
