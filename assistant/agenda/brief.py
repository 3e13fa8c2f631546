"""The brief of a day: what is planned, what is overdue, what waits for the person, and open requests.

It is read from the stores and formatted by code, without a model or network; everything in it is the owner's; stored
texts are quoted, and a long list ends with the number of further items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TypeVar
from zoneinfo import ZoneInfo

from assistant.agenda.day import AgendaDays, AgendaItem, format_item
from assistant.agenda.day_phrases import DayRange, local_day
from assistant.core.calendar import format_due, format_moment
from assistant.core.checkpoints import UserRequest
from assistant.core.dataclass import dataclass
from assistant.core.quoting import quote_text
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize, shorten_line
from assistant.store.character.journal import StoredJournal
from assistant.store.script.approvals import StoredApprovals
from assistant.store.script.turns import UserRequests

_MOST = 8  # maximum lines per list
_FIRST_WORDS = 120
# Without the numbers of the messages, which nobody asked for.
_PROMISED = "You asked for this, and it is not marked as done (`/requests` has the numbers for `/done`):"
_MOST_REQUESTS = 200
_A_NIGHT = timedelta(hours=24)
_LOOKED_BACK = 20  # sleep cycles and naps

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BriefRequest:
    """A request that is not done."""

    id: int  # id of its message
    day: date  # local
    text: str


@dataclass(frozen=True, slots=True)
class BriefApproval:
    """An action that waits for approval."""

    id: int
    effect: str
    until: str  # local


@dataclass(frozen=True, slots=True)
class Brief:
    """The content of a day's brief."""

    day: date
    today: tuple[AgendaItem, ...]  # still to come, or without a time
    overdue: tuple[AgendaItem, ...]
    approvals: tuple[BriefApproval, ...]
    promised: tuple[BriefRequest, ...]  # answered, but not reported as done
    unanswered: tuple[BriefRequest, ...]
    learned: int  # memories made by the last sleep of the last 24 hours

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is worth a message; learned facts alone are not."""
        return not (self.today or self.overdue or self.approvals or self.promised or self.unanswered)


@dataclass(frozen=True, slots=True)
class BriefReader:
    """Reads the brief of the owner's day."""

    days: AgendaDays
    requests: UserRequests
    approvals: StoredApprovals
    journal: StoredJournal

    async def read(self, now: datetime) -> Brief:
        """Raises `StoreError`."""
        zone = self.days.zone
        today = local_day(now, zone)
        agenda = await self.days.read(OWNER_SCOPE, DayRange(today, today), now)
        items = [item for item in agenda.items if not item.came]
        open_requests = self.requests.list_open_in_scope(OWNER_SCOPE, limit=_MOST_REQUESTS)
        return Brief(
            today,
            tuple(item for item in items if not _is_overdue(item)),
            tuple(item for item in items if _is_overdue(item)),
            tuple(
                BriefApproval(it.id, it.effect, format_moment(it.expires_at, zone))
                for it in self.approvals.list_pending()
                if it.waits_at(now)
            ),
            tuple(_request(it, zone) for it in open_requests if it.answered_by is not None),
            tuple(_request(it, zone) for it in open_requests if it.answered_by is None),
            self._count_learned(now),
        )

    def _count_learned(self, now: datetime) -> int:
        cycles = self.journal.list_cycles(limit=_LOOKED_BACK)
        nights = (it for it in cycles if it.is_full_cycle and it.state == "done" and now - it.started_at < _A_NIGHT)
        last = next(nights, None)
        return 0 if last is None else int(last.phases.get("consolidate", {}).get("learned", 0))


def _is_overdue(item: AgendaItem) -> bool:
    return item.late and (item.kind == "todo" or bool(item.since))


def _request(request: UserRequest, zone: ZoneInfo) -> BriefRequest:
    return BriefRequest(request.message_id, local_day(request.opened_at, zone), request.text)


def format_brief(brief: Brief) -> str:
    """Format a brief for people, as Markdown."""
    learned = pluralize(brief.learned, "new thing", "new things")
    parts = [
        *_section(f"{format_due(brief.day.isoformat())}:", brief.today, format_item, "/agenda"),
        *_section("Overdue:", brief.overdue, format_item, "/agenda"),
        *_section("Waiting for your yes or no:", brief.approvals, _approval_line, "/approvals"),
        *_section(_PROMISED, brief.promised, _request_line, "/requests"),
        *_section("Not answered yet:", brief.unanswered, _request_line, "/requests"),
        *([f"I learned {learned} in my last sleep; `/memory changes` shows what changed."] if brief.learned else []),
    ]
    nothing = f"Nothing is planned for {format_due(brief.day.isoformat())}, and nothing is open."
    return "\n\n".join(parts if not brief.is_empty else [nothing, *parts])


def format_check_in(brief: Brief) -> str:
    """Format what is still to be done today, for the evening; "" if nothing."""
    todos = [item for item in (*brief.overdue, *brief.today) if item.kind == "todo"]
    parts = [
        *_section("To do:", todos, format_item, "/todo"),
        *_section("Waiting for your yes or no:", brief.approvals, _approval_line, "/approvals"),
    ]
    return "\n\n".join(parts)


def _section(head: str, items: Sequence[_T], line: Callable[[_T], str], command: str) -> Iterator[str]:
    if items:
        more = len(items) - _MOST
        rest = [f"- … and {more:,} more; `{command}` lists them"] if more > 0 else []
        yield "\n".join([head, *map(line, islice(items, _MOST)), *rest])


def _approval_line(it: BriefApproval) -> str:
    answers = f"`/approvals yes {it.id}` does it, `/approvals no {it.id}` drops it"
    return f"- {it.id}: {it.effect}, until {it.until}. {answers}."


def _request_line(it: BriefRequest) -> str:
    return f"- {it.day}: {quote_text(shorten_line(it.text, _FIRST_WORDS))}"
