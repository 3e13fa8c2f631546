"""Sends notices: those about a turn to the places its messages came from, those about background work to where the
owner or the session last wrote from. Guests and rooms get only notices about their own session.

Each goes through the outbox, once per `NoticeKind` and key; several at once are sent as one message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from assistant.core.calendar import format_moment
from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelError, StoreError
from assistant.core.jobs import DeliveryTarget
from assistant.core.logger import get_logger
from assistant.core.model_api import (
    BACKGROUND_PURPOSES,
    NO_OUTAGE_KINDS,
    CallPurpose,
    Fallback,
    ModelFailure,
    ModelOutage,
)
from assistant.core.notices import Notice, NoticeAddress, NoticeKind, NoticePlace
from assistant.core.records import Button, OutboxItem, OutgoingMessage, Turn
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE, session_name, session_role, session_scope
from assistant.core.text import preview_line
from assistant.models.errors import advise
from assistant.store.script.generations import StoredResets
from assistant.store.script.notices import StoredNotices, StoredOutages

log = get_logger()

TERMINAL_BRIDGE = "terminal"
_KEY_PREFIXES = {"ambiguous": "uncertain:", "failed": "refused:"}
_WHY_ENDED = {"daily": "at its daily hour", "idle": "since nobody had written for a while"}


@dataclass(frozen=True, slots=True)
class NoticeSender:
    """Sends notices.

    - `wake`: triggers delivery of the outbox.
    """

    notices: StoredNotices
    outages: StoredOutages
    resets: StoredResets
    zone: ZoneInfo
    clock: Callable[[], datetime]
    wake: Callable[[], None]

    # ----------------------------------------------------------------------------------------------------------- places

    def find_session_address(self, session: str) -> NoticeAddress:
        """Return the address a session was last written from."""
        return NoticeAddress((NoticePlace(self.notices.recent_place(session_scope(session), session)),))

    def send_to_turn(self, turn: Turn, *notices: Notice) -> None:
        """Send notices to where the turn's messages came from. Raises `StoreError`."""
        self.send(turn_address(turn), *notices)

    def send_to_session(self, session: str, *notices: Notice) -> None:
        """Send notices to where the session was last written from. Raises `StoreError`."""
        self.send(self.find_session_address(session), *notices)

    def send(self, address: NoticeAddress, *notices: Notice) -> None:
        """Send notices to an address. Raises `StoreError`."""
        if self.notices.send(notices, address, self.clock()):
            self.wake()

    # ------------------------------------------------------------------------------------------------------------ turns

    def announce_new_conversation(self, turn: Turn) -> None:
        """Announce a new conversation with the first message after an automatic reset. Raises `StoreError`."""
        reset = self.resets.find(turn.session, turn.generation - 1) if turn.generation > 1 else None
        if reset is not None and reset.reason in _WHY_ENDED and reset.ended_at is not None:
            notice = NoticeKind.NEW_CONVERSATION.fill(
                f"{turn.session}:{turn.generation}",
                time=format_moment(reset.ended_at, self.zone),
                why=_WHY_ENDED[reset.reason],
                session=turn.session,
                number=reset.generation,
            )
            self.send_to_turn(turn, notice)

    def report_fallback(self, turn: Turn, fallback: Fallback) -> None:
        """Report that a model other than the first answered. Raises `StoreError`."""
        first = fallback.failures[0]
        if first.kind == "refusal":
            declined = NoticeKind.MODEL_DECLINED
            self.send_to_turn(turn, declined.fill(turn.id, model=first.name, answering=fallback.answering))
        # Budget refusals have their own notice, also shown below the answer.
        outages = [failure for failure in fallback.failures if failure.kind not in NO_OUTAGE_KINDS]
        if outages:
            self._report_outages(turn, outages, fallback.answering)

    def _report_outages(self, turn: Turn, failures: Sequence[ModelFailure], answering: str) -> None:
        """Report outages in one notice per place."""
        began = {outage.model: outage.began_at for outage in self.outages.list_outages()}
        first, *others = failures
        kinds = list(dict.fromkeys(failure.kind for failure in failures))
        advice = "; ".join(advise(kind, asked=kind == kinds[-1]) for kind in kinds)
        since = ",".join(began.get(failure.model, self.clock()).isoformat() for failure in failures)
        for place in turn_address(turn).places:
            once = _once(since, place.target)
            notice = NoticeKind.MODEL_OUTAGE.fill(
                once,
                model=first.name,
                reason=first.reason,
                others="".join(f" {failure.name} does not either: {failure.reason}." for failure in others),
                answering=answering,
                advice=advice,
            )
            if session_role(turn.session) != "owner":
                notice = NoticeKind.MODEL_OUTAGE_FOR_OTHERS.fill(once)
            self.send(NoticeAddress((place,), turn.id), notice)
        self.note_unanswered(turn)

    def note_unanswered(self, turn: Turn) -> None:
        """Register the turn's places to be notified when a model answers again. Raises `StoreError`."""
        self.outages.add_places(place.target for place in turn_address(turn).places)

    # ---------------------------------------------------------------------------------------------------------- outages

    def record_failure(self, model: str, name: str, error: ModelError, reason: str, purpose: CallPurpose) -> None:
        """See `OutageLog`."""
        try:
            outage = self.outages.record_failure(ModelOutage(model, name, error.kind, reason, self.clock()))
            if purpose in BACKGROUND_PURPOSES and purpose != "schedule":
                place = self.notices.recent_place(OWNER_SCOPE)
                advice = advise(error.kind, asked=False)
                notice = NoticeKind.MODEL_OUTAGE_IN_BACKGROUND.fill(
                    _once(outage.began_at.isoformat(), place), model=name, reason=reason, advice=advice
                )
                if self.notices.send([notice], NoticeAddress((NoticePlace(place),)), self.clock()):
                    self.outages.add_places([place], model)
                    self.wake()
        except StoreError as store_error:
            log.error("an outage of a model was not noted", model=model, error=str(store_error))

    def record_answer(self, model: str, behind: Collection[str] = ()) -> None:
        """See `OutageLog`."""
        try:
            self.outages.drop(lambda name: name in behind)
            if self.outages.end(model, self._render_back, self.clock()):
                self.wake()
        except StoreError as error:
            log.error("the end of an outage was not noted", model=model, error=str(error))

    def keep_only(self, models: Collection[str]) -> None:
        """See `OutageLog`."""
        try:
            self.outages.drop(lambda name: name not in models)
        except StoreError as error:
            log.error("an outage of a model was not ended", error=str(error))

    def _render_back(self, outage: ModelOutage, place: DeliveryTarget) -> Notice:
        once = f"{outage.model}:{_once(outage.began_at.isoformat(), place)}"
        if session_role(place.session) != "owner":
            return NoticeKind.MODEL_BACK_FOR_OTHERS.fill(once)
        since = format_moment(outage.began_at, self.zone)
        return NoticeKind.MODEL_BACK.fill(once, model=outage.name, since=since)


def find_model_problems(outages: StoredOutages, zone: ZoneInfo, now: datetime) -> Iterator[str]:
    """Yield a line for each model that does not answer, ending with what to do."""
    for outage in outages.list_outages():
        since, advice = format_moment(outage.began_at, zone), advise(outage.kind, asked=False)
        yield f"{outage.name} has not answered since {since}: {outage.reason}. What to do: {advice}."


def turn_address(turn: Turn) -> NoticeAddress:
    """Return each place the turn replies to, with its first message from there."""
    places: dict[tuple[str, str], NoticePlace] = {}
    for item in turn.items:
        incoming = item.incoming
        target = DeliveryTarget(turn.session, turn.scope, incoming.bridge, incoming.target)
        places.setdefault((incoming.bridge, incoming.target), NoticePlace(target, item.id))
    return NoticeAddress(tuple(places.values()), turn.id)


def _once(since: str, place: DeliveryTarget) -> str:
    return f"{since}:{place.session}:{place.bridge}:{place.target}"


def give_up_notice(item: OutboxItem, state: Literal["ambiguous", "failed"], error: str) -> OutgoingMessage | None:
    """Return the notice about a given-up delivery: to the terminals, or to its own target if it is the owner's and
    ambiguous. For such a notice itself: the same one to the terminals, None if that is where it was sent."""
    outgoing, place = item.outgoing, (TERMINAL_BRIDGE, MAIN_SESSION)
    if outgoing.key.startswith(tuple(_KEY_PREFIXES.values())):
        # Terminals show a key once, whenever it comes again: there no notice stays in doubt.
        again = replace(outgoing, key=f"{outgoing.key}:terminal", bridge=place[0], target=place[1])
        return None if outgoing.bridge == TERMINAL_BRIDGE else again
    if state == "ambiguous":
        place = (outgoing.bridge, outgoing.target) if is_owners(outgoing) else place
    retry, drop = f"/deliveries again {item.id}", f"/deliveries drop {item.id}"
    buttons = (Button("Send it again", retry), Button("Discard it", drop))
    # `attempts` makes the keys differ if a resent message fails again.
    key = f"{_KEY_PREFIXES[state]}{item.id}:{item.attempts}"
    # The link to the message makes erasure cover the quoted text.
    kind = NoticeKind.DELIVERY_REFUSED if state == "failed" else NoticeKind.DELIVERY_UNCERTAIN
    notice = kind.fill(
        buttons=buttons,
        what=_describe_message(outgoing),
        bridge=outgoing.bridge,
        error=error.rstrip("."),
        retry=retry,
        drop=drop,
    )
    return replace(notice.to_message(key, MAIN_SESSION, OWNER_SCOPE, *place), message_id=outgoing.message_id)


def _describe_message(outgoing: OutgoingMessage) -> str:
    if not is_owners(outgoing):
        return f"A message to {session_name(outgoing.session)}"
    words = preview_line(outgoing.body) or ", ".join(preview_line(file.name or file.mime) for file in outgoing.media)
    return f"A message to you (`{words}`)" if words else "A message to you"


def is_owners(outgoing: OutgoingMessage) -> bool:
    return session_role(outgoing.session) == "owner"
