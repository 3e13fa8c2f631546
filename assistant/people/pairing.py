"""Pairing: a stranger is given a code that the owner approves, or the owner is given a code and sends it from another
bridge.

A stranger's code is useless to others, since only the owner can approve it. Whoever sends the owner's code in time
becomes the owner there, so it is only shown to the owner, works once, on one bridge, and is locked after a few wrong
attempts. Strangers always get the same single line. Messages people wrote before they were denied were accepted, so
they are in the log; no turn answers them (`supersede_denied`).
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from assistant.core.bridge_api import InboundMessage
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.notices import Notice, NoticeKind
from assistant.core.people import (
    CODE_LENGTH,
    AccessRequest,
    AccessState,
    Identity,
    Pairing,
    PairingOffer,
    clean_display_name,
    new_pairing_code,
    parse_pairing_code,
)
from assistant.core.records import Button, InboxItem, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE, peer_session_key, room_session_key, session_role
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.store.script.people import ConversationRoutes, Pairings, People, access_request_key, code_notice_key

_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class PairingRules:
    """How strangers are treated, from the settings."""

    unknown: Literal["pair", "tell", "ignore"]  # what happens with strangers
    minutes: float  # how long a code is valid
    max_pending: int  # maximum number of pending codes
    tries: int  # wrong codes until pairing is locked


@dataclass(frozen=True, slots=True)
class PairingService:
    """Issues and withdraws codes."""

    people: People
    pairings: Pairings
    routes: ConversationRoutes
    rules: PairingRules
    zone: ZoneInfo
    terminal_bridge: str  # of the terminals on this machine

    # ---------------------------------------------------------------------------------------------- strangers' side

    def handle_stranger(self, arrival: InboundMessage, now: datetime) -> None:
        """Handle a person or room without a decision: notify, give a code, or ignore, depending on the settings. Their
        message is not stored."""
        if self.rules.unknown == "ignore":
            return
        if self.rules.unknown == "tell":
            self.people.notify_once(_notice(arrival, f"told:{_session(arrival)}", NoticeKind.NOT_LET_IN.fill()), now)
            return
        # Checked first: a sender who keeps writing costs a lookup, not a code.
        if any(_is_of(pairing, arrival) for pairing in self.list_requests(now)):
            return
        code, offer = self._code(now)
        name = arrival.sender_name if arrival.room is None else arrival.room_name
        request = AccessRequest(arrival.bridge, arrival.sender, arrival.room, arrival.target, clean_display_name(name))
        told = NoticeKind.PAIRING_CODE.fill(time=pluralize(round(self.rules.minutes), "minute"), code=code)

        def notices(pairing: int) -> list[OutgoingMessage]:
            code_notice = _notice(arrival, code_notice_key(pairing), told)
            return [code_notice, self._owner_question(pairing, request, offer.valid_until)]

        if not self.pairings.request_access(request, offer, notices):
            too_many = NoticeKind.TOO_MANY_STRANGERS.fill()
            self.people.notify_once(_notice(arrival, f"told:{_session(arrival)}", too_many), now)

    def _owner_question(self, pairing: int, request: AccessRequest, until: datetime) -> OutgoingMessage:
        """Ask the owner where they are on that bridge, or at the terminal; names chosen by strangers stay on their
        line."""
        allow, deny = f"/pair allow {pairing}", f"/pair deny {pairing}"
        who = describe_applicant(request)
        buttons = (Button("Approve", allow), Button("Deny", deny))
        target = self.routes.find_owner_target(request.bridge)
        place = (self.terminal_bridge, MAIN_SESSION) if target is None else (request.bridge, target)
        question = NoticeKind.ACCESS_REQUEST.fill(
            buttons=buttons,
            who=who[0].upper() + who[1:],
            allow=allow,
            deny=deny,
            until=f"{until.astimezone(self.zone):%H:%M}",
        )
        return question.to_message(access_request_key(pairing), MAIN_SESSION, OWNER_SCOPE, *place)

    def redeem_link_code(self, arrival: InboundMessage, now: datetime) -> bool:
        """Return whether this message was the owner's own code, and its sender now is the owner."""
        typed = parse_pairing_code(arrival.content)
        if typed is None or arrival.room is not None:
            return False
        offered = [
            pairing
            for pairing in self.pairings.pending_pairings(now)
            if pairing.kind == "link" and pairing.bridge == arrival.bridge
        ]
        fitting = next((pairing for pairing in offered if pairing.code.matches(typed) and not pairing.locked), None)
        if fitting is None:
            self.pairings.record_wrong_code(offered, self.rules.tries)
            return False
        outgoing = _notice(arrival, f"paired:{_session(arrival)}:{now.isoformat()}", NoticeKind.ACCOUNT_LINKED.fill())
        self.pairings.redeem(fitting, Identity(arrival.bridge, arrival.sender), outgoing, now)
        return True

    # ------------------------------------------------------------------------------------------------- owner's side

    def approve(self, text: str, name: str, now: datetime, *, as_owner: bool) -> str:
        """Admit the person with this code. Raises `UsageError` if it is wrong, used, expired or locked."""
        code = parse_pairing_code(text)
        if code is None:
            raise UsageError(f"A code has {CODE_LENGTH} letters and digits, as in ABCD2345. Nothing was changed.")
        waiting = [candidate for candidate in self.pairings.pending_pairings(now) if candidate.kind == "knock"]
        pairing = next((candidate for candidate in waiting if candidate.code.matches(code)), None)
        if pairing is None:
            locked = self.pairings.record_wrong_code(waiting, self.rules.tries)
            raise UsageError(self._wrong_code(waiting, locked=locked))
        if pairing.locked:
            raise UsageError(self._locked(waiting))
        if as_owner and pairing.room is not None:
            raise UsageError("That code belongs to a room, and a room cannot be you. Nothing was changed.")
        self.pairings.approve(pairing, as_owner=as_owner, outgoing=_welcome(pairing, as_owner=as_owner), now=now)
        person = self.people.find_by_identity(Identity(pairing.bridge, pairing.sender))
        if name and person is not None and not as_owner and pairing.room is None:
            self.people.rename(person.id, name)
        return _let_in_text(pairing, name or pairing.name, as_owner=as_owner)

    def decide_request(self, number: int, decision: AccessState, now: datetime) -> str:
        """Admit or refuse the person waiting under this number. Raises `UsageError` if there is none."""
        pairing = next((request for request in self.list_requests(now) if request.id == number), None)
        if pairing is None:
            raise UsageError(f"No request has the number {number}. Nothing was changed; `/people` lists the requests.")
        if decision == "denied":
            self.decide(pairing.bridge, pairing.sender, pairing.room, pairing.name, "denied", now)
            return f"{clean_display_name(pairing.name) or pairing.sender} on {pairing.bridge} is not answered any more."
        if pairing.locked:
            raise UsageError(self._locked([pairing]))
        self.pairings.approve(pairing, as_owner=False, outgoing=_welcome(pairing, as_owner=False), now=now)
        return _let_in_text(pairing, pairing.name, as_owner=False)

    def decide(
        self, bridge: str, sender: str, room: str | None, name: str, decision: AccessState, now: datetime
    ) -> None:
        """Decide on a room, or without one on a guest. Their pending requests and messages are withdrawn."""
        if room is not None:
            self.people.decide_room(bridge, room, name, decision, now)
        else:
            self.people.admit_guest(Identity(bridge, sender), name, decision, now)
        self.remove_requests(bridge, sender, room, now)

    def offer_link(self, bridge: str, now: datetime) -> str:
        """Return a code for the owner to send from that bridge. Raises `UsageError` if too many are pending."""
        code, offer = self._code(now)
        if not self.pairings.offer_link(bridge, offer):
            raise UsageError(
                f"{pluralize(self.rules.max_pending, 'code')} for links wait already (people.pairing_pending). Use "
                "one of them, or wait until they have expired. Nothing was changed."
            )
        until = offer.valid_until.astimezone(self.zone)
        return (
            f"Send {code} to the assistant from {bridge}, until {until:%H:%M}, and nothing else in that message. "
            "The first account that sends it is yours there: show it to nobody."
        )

    def list_requests(self, now: datetime) -> list[Pairing]:
        """Return pending requests, oldest first."""
        return [pairing for pairing in self.pairings.pending_pairings(now) if pairing.kind == "knock"]

    def remove_requests(self, bridge: str, sender: str, room: str | None, now: datetime) -> None:
        """Withdraw codes after the owner decided in another way."""
        self.pairings.remove_codes(bridge, sender, room, now)

    def _code(self, now: datetime) -> tuple[str, PairingOffer]:
        """Return a new code, and its stored form."""
        code, stored_code = new_pairing_code(secrets.choice, secrets.token_bytes(_SALT_BYTES))
        return code, PairingOffer(stored_code, now, now + timedelta(minutes=self.rules.minutes), self.rules.max_pending)

    def _wrong_code(self, waiting: list[Pairing], *, locked: bool) -> str:
        if not waiting:
            return "No code is waiting: it was used, or it has expired. They get another by writing again."
        if locked:
            return self._locked(waiting)
        return "No request has that code: it was used, has expired, or was mistyped. Nothing was changed."

    def _locked(self, waiting: list[Pairing]) -> str:
        until = max(pairing.expires_at for pairing in waiting).astimezone(self.zone)
        return (
            f"Pairing is locked after {pluralize(self.rules.tries, 'wrong code')}, until {until:%H:%M}. Nothing was "
            "changed; `/people allow BRIDGE ID` approves somebody without a code."
        )


def strip_markdown(text: str) -> str:
    """Return a text of others on one line, without formatting characters."""
    return "".join(" " if not letter.isprintable() or letter in "`*_[]<>|" else letter for letter in text).strip()


def as_verbatim(name: str) -> str:
    """Return a name from a network as Markdown that shows it unchanged."""
    return "`" + "".join("?" if letter == "`" or not letter.isprintable() else letter for letter in name) + "`"


def describe_applicant(applicant: Pairing | AccessRequest) -> str:
    """Describe who asks to be admitted, as Markdown on one line."""
    name = strip_markdown(applicant.name) or "(no name)"
    if applicant.room is not None:
        return f"the room {name}, {as_verbatim(applicant.room)} on {applicant.bridge}"
    return f"{name}, {as_verbatim(applicant.sender)} on {applicant.bridge}"


def _is_of(pairing: Pairing, arrival: InboundMessage) -> bool:
    """Return whether a pairing is this sender's; a room has one pairing, whoever speaks."""
    if (pairing.bridge, pairing.room) != (arrival.bridge, arrival.room):
        return False
    return arrival.room is not None or pairing.sender == arrival.sender


def _session(whose: InboundMessage | Pairing) -> str:
    if whose.room is not None:
        return room_session_key(whose.bridge, whose.room)
    return peer_session_key(whose.bridge, whose.sender)


def _notice(whose: InboundMessage | Pairing, key: str, notice: Notice) -> OutgoingMessage:
    session = _session(whose)
    return notice.to_message(key, session, session, whose.bridge, whose.target)


def _welcome(pairing: Pairing, *, as_owner: bool) -> OutgoingMessage:
    kind = NoticeKind.ACCOUNT_LINKED if as_owner else NoticeKind.APPROVED
    kind = NoticeKind.ROOM_APPROVED if pairing.room is not None else kind
    return _notice(pairing, f"paired:{pairing.id}:{_session(pairing)}", kind.fill())


def _let_in_text(pairing: Pairing, name: str, *, as_owner: bool) -> str:
    if pairing.room is not None:
        return f"The room {name or pairing.room} on {pairing.bridge} is approved."
    if as_owner:
        return f"{pairing.sender} on {pairing.bridge} is you from now on."
    return f"{name or pairing.sender} on {pairing.bridge} is approved, as a guest."


_AT_A_TIME = 100_000


def supersede_denied(conversation: Conversation, people: People, now: datetime) -> None:
    """Withdraw waiting messages of denied people: after the owner's decision, and at start-up. Raises `StoreError`."""
    denied_rooms = {room_session_key(room.bridge, room.room) for room in people.list_rooms() if room.state == "denied"}

    def is_denied(item: InboxItem) -> bool:
        person = people.find_by_identity(Identity(item.incoming.bridge, item.incoming.sender))
        return person is not None and person.state == "denied"

    for session in conversation.sessions_waiting():
        if session_role(session) != "owner":
            items = conversation.list_accepted(session, limit=_AT_A_TIME)
            denied_items = [item for item in items if session in denied_rooms or is_denied(item)]
            if denied_items:
                conversation.supersede_items(denied_items, [], now)
