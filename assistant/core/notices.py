"""Everything the assistant says unprompted: what, when, to whom, and where.

`NoticeKind.fill` creates notices from these declarations, so that nothing undeclared is sent; `docs/notices.md` is
generated from this table, and the conformance suite sends each of them over every bridge.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.jobs import DeliveryTarget
from assistant.core.notice_form import NoticeForm
from assistant.core.records import Button, OutgoingMessage
from assistant.core.sessions import session_role


class NoticeKind(Enum):
    """All notices."""

    # Models
    MODEL_OUTAGE = NoticeForm(
        "{model} does not answer: {reason}.{others} {answering} answers meanwhile; I say when it is back. What to do: "
        "{advice}.",
        "Another model answered because this one could not, or these",
        once="an outage and place",
    )
    MODEL_OUTAGE_FOR_OTHERS = NoticeForm(
        "My language model does not answer just now. A simpler one answers meanwhile; I say when it is back.",
        "The same, in the conversation of a guest or a room",
        to="conversation",
        once="an outage and place",
    )
    MODEL_OUTAGE_IN_BACKGROUND = NoticeForm(
        "{model} does not answer: {reason}. Sleep and summaries are made by rules, without a model, until it is back. "
        "What to do: {advice}.",
        "A sleep or a nap could not reach its model",
        place="recent",
        once="an outage and place, where no other outage is known",
        told_by_outage=True,
    )
    MODEL_BACK = NoticeForm(
        "The model answers again. {model} had not answered since {since}.",
        "A model that did not answer does",
        place="outage",
        once="an outage and place",
    )
    MODEL_BACK_FOR_OTHERS = NoticeForm(
        "My language model answers again.",
        "The same, in the conversation of a guest or a room",
        to="conversation",
        place="outage",
        once="an outage and place",
    )
    MODEL_DECLINED = NoticeForm(
        "{model} declined to answer, so {answering} was asked.",
        "Another model answered what one declined",
        once="a message",
    )
    NEWEST_MESSAGE_ONLY = NoticeForm(
        "{model} has a smaller window, so it sees only the newest message.",
        "A model answers instead that cannot take the whole conversation",
        to="conversation",
        once="a message",
    )
    UNKNOWN_PRICE = NoticeForm(
        "No price is known for {model}: its use is counted in tokens only.",
        "The first call of a model without a known price",
        place="live",
    )
    RETRYING = NoticeForm(
        "{reason}. Trying again in {seconds} s.", "A model is asked again after a failure", place="live"
    )
    ASKING_ANOTHER = NoticeForm("{reason}. {next_step}", "The next model is asked", place="live")

    # The context
    MESSAGE_SHORTENED = NoticeForm(
        "Your message has about {tokens} tokens, more than the model can take at once. It sees about {seen} of them, "
        "from the beginning and the end, and can look up the rest.",
        "A message does not fit the context",
        to="conversation",
        once="a message",
    )
    TEXT_AS_FILE = NoticeForm(
        "Your message has {characters} characters. All of it is kept, as the file {file}; the conversation has its "
        "first {start}.",
        "A message is too long for a conversation",
        once="a message",
    )
    PICTURES_HIDDEN = NoticeForm(
        "You sent more pictures than the model can take at once. It does not see {count} of them, but knows that they "
        "exist.",
        "More pictures than a request may have",
        to="conversation",
        once="a message",
    )
    CONTEXT_STAYS_FULL = NoticeForm(
        "The context stays at {size}, and nothing more can be left out: {minimum}. A model with a larger window has "
        "room.",
        "Compaction cannot bring the context down far enough",
        once="the time that it stays full",
    )
    SUMMARY_WITHOUT_MODEL = NoticeForm(
        "No summary by a model could be used ({why}). The most important sentences of the older messages were kept "
        "instead.",
        "A compaction was made without the model that writes summaries",
        once="a conversation and day, where no outage is known",
        told_by_outage=True,
    )
    LONG_CONVERSATION = NoticeForm(
        "This conversation has become long: I see its older part as summaries, and details in them can be missing. Ask "
        "me to look it up where a detail matters, since every word is kept. `/pins add` keeps a text word for word "
        "where I see it; `/reset` starts a new conversation that takes over what is open.",
        "The third compaction of a conversation",
        once="a conversation",
    )
    NEW_CONVERSATION = NoticeForm(
        "A new conversation began here on {time}, {why}. `/sessions show {session} {number}` shows the previous one.",
        "The first message after a reset that the settings ask for",
        once="a conversation",
    )
    SECRET_SAID = NoticeForm(
        "That looks like a {kind}. I keep it apart: it stays out of MEMORY.md, notes and summaries, and I "
        "look it up only where a question asks for it. The model reads it as long as this conversation shows it. "
        "`assistant forget`, with the words of what you said, removes it.",
        "A message has what looks like a password, key, PIN or card number",
        once="a conversation",
    )
    SECRET_SAID_FOR_OTHERS = NoticeForm(
        "That looks like a {kind}. It is kept with this conversation, out of its summaries, and is looked up only "
        "where a question asks for it. My owner can remove it.",
        "The same, in the conversation of a guest or a room",
        to="conversation",
        once="a conversation",
    )

    VOICE_NOT_HEARD = NoticeForm(
        "I could not turn your voice message into text. {reason} The recording is kept; {advice}.",
        "It was not heard",
        once="a message",
    )

    ANSWER_NOT_SPOKEN = NoticeForm(
        "I could not speak my answer; it is above in writing. {reason}", "It was not spoken", once="a message"
    )

    # Answers that are none
    TURN_ENDED = NoticeForm(
        "{text}",
        "A message is not answered: what happened, what was kept, what to do; each place that asked gets it",
        to="conversation",
        once="a message",
    )
    COMMAND_ANSWER = NoticeForm(
        "{text}", "What a command says that was typed on a bridge", to="conversation", once="a command"
    )

    # The budget
    CAP_NEAR = NoticeForm(
        "{share} of the {cap} budget is used: {used}. Once a call may cost more than the rest, no "
        "paid model is asked until the next {unit}. `budget.{setting}` sets the amount; `/usage` shows what was spent.",
        "80% of a budget is used",
        place="recent",
        once="a day or month, and amount",
    )
    CAP_REACHED = NoticeForm(
        "The {cap} budget {state}. Nothing is lost. {consequence}; offline mode answers then where it is a "
        "fallback, and sleep and naps work by rules. {raise_it} `/usage` shows what was spent.",
        "A call was refused because of a budget, other than for an answer to you, which says so itself",
        place="recent",
        once="a day or month, and amount",
    )
    BACKGROUND_SHARE_USED = NoticeForm(
        "The part of the {cap} budget for work in the background {state}. Until the next {unit}, sleep "
        "works by rules, without a model; you are answered as before. `budget.background_share` sets the size of that "
        "part.",
        "A call of a sleep was refused because of `budget.background_share`",
        place="recent",
        once="a day or month, and amount",
    )
    SHARE_OF_OTHERS_USED = NoticeForm(
        "The part of the {cap} budget that {who} may use is used up: no paid model answers them. "
        "`{role}.budget_share` in the settings sets the size of that part.",
        "Guests or rooms used their part of the budget",
        place="recent",
        once="a day",
    )
    REPEATED_REQUEST = NoticeForm(
        "The same request ({purpose}) was sent {times} times within an hour without a result. It is not sent again "
        "before {until}; rules do its work until then. `/sleep --last` shows what went wrong.",
        "A request of the background repeats itself",
        place="recent",
        once="a day and purpose",
    )

    # Approvals
    APPROVAL_LAPSED = NoticeForm(
        "Not done, since you did not answer in time: {effect}. Ask for it in your own words if you want it.",
        "An effect that nobody asked for was not approved in time (`tools.approval_hours`)",
        place="recent",
        once="an approval",
    )
    APPROVAL_ENDED = NoticeForm(
        "{text}",
        "An approved effect sends a file, or was finished after a restart, or may have been interrupted",
        once="an approval",
    )

    # MCP servers
    MCP_TOOLS_CHANGED = NoticeForm(
        "The MCP server {server} says something else of its tools than you approved: {tools}. They are not used until "
        "you approve them again: `/mcp show {server}` shows what changed.",
        "A tool of an MCP server describes itself otherwise than it was approved",
        place="recent",
        once="a change",
    )

    # The day
    MORNING_BRIEF = NoticeForm(
        "Good morning. This is your day.{text}",
        "The hour of `brief.morning`: what is on today, what is overdue, what waits for you; only where there is "
        "something",
        place="recent",
        once="a day",
    )
    EVENING_CHECK_IN = NoticeForm(
        "This is still open today.{text}",
        "The hour of `brief.evening`: what is still open today; only where there is something",
        place="recent",
        once="a day",
    )

    # The clock
    CLOCK_RIGHT_AGAIN = NoticeForm(
        "The clock of this machine was wrong for a few minutes: it showed {shown} when it was {time}. It is right "
        "again, and nothing was done by the wrong time.",
        "The clock jumped by more than two minutes and came back within five",
        place="recent",
        once="a jump",
    )
    CLOCK_AHEAD = NoticeForm(
        "The clock of this machine jumped {by} ahead, from {time} to {shown}, and stayed there, so I go by it. What "
        "was due in between comes now, and what was spent today and this month stays counted. If it is wrong, set it "
        "right: I then plan reminders and schedules again.",
        "The clock jumped ahead and has stayed so for five minutes",
        place="recent",
        once="a jump",
    )
    CLOCK_BACK = NoticeForm(
        "The clock of this machine was set back by {by}, from {time} to {shown}, and I go by it. What was spent "
        "today and this month stays counted. {planned}",
        "The clock was set back, and has stayed so for five minutes or across a restart",
        place="recent",
        once="a jump",
    )

    TIME_ZONE_CHANGED = NoticeForm(
        "Your time zone is {zone} now; it was {before}. {moved} at times of day: I go by the new clock for them. What "
        "is set for one time comes at the moment that was meant. `/agenda` shows what is next.",
        "A start in another time zone than before, while reminders or schedules repeat",
        place="recent",
        once="a change",
    )

    # The data folder
    DATA_DAMAGED = NoticeForm(
        "I found damage in your data folder. {what}",
        "A file of the data folder was found damaged or missing, at a start or while it runs",
        place="recent",
        once="a line and day",
    )

    # Deliveries
    DELIVERY_REFUSED = NoticeForm(
        "{what} was refused by {bridge}: {error}. `{retry}` sends it again, `{drop}` discards it.",
        "A network refused a message for good",
        place="terminal",
        once="a message and try",
    )
    DELIVERY_UNCERTAIN = NoticeForm(
        "{what} may or may not have arrived; it was not sent twice. `{retry}` sends it again, `{drop}` discards it.",
        "It is not known whether a message arrived",
        place="bridge",
        once="a message and try",
    )
    BRIDGE_TEST = NoticeForm(
        "This is a test: what I send you here arrives. Write to me whenever you like.",
        "`assistant bridge test`",
        place="bridge",
    )

    # People
    NOT_LET_IN = NoticeForm(
        "I do not know you yet, and I did not keep what you wrote.",
        'A stranger writes, and `people.unknown` is "tell"',
        to="stranger",
        once="a stranger or room",
    )
    PAIRING_CODE = NoticeForm(
        "I only talk to people my owner has approved. Ask them to approve this code within {time}: {code}",
        'A stranger writes, and `people.unknown` is "pair"',
        to="stranger",
        once="a code",
    )
    TOO_MANY_STRANGERS = NoticeForm(
        "I only talk to people my owner has approved, and too many are waiting now. Try again later.",
        "A stranger writes while `people.pairing_pending` others wait",
        to="stranger",
        once="a stranger or room",
    )
    ACCESS_REQUEST = NoticeForm(
        "{who} asks to talk to me. They chose the name; the account is verified by the network. `{allow}` approves "
        "them as a guest, until {until}; `{deny}` stops all answers to them.",
        "A stranger was given a code",
        place="bridge",
        once="a code",
    )
    APPROVED = NoticeForm(
        "You are approved. Write to me.", "You approved somebody", to="conversation", place="bridge", once="an approval"
    )
    ROOM_APPROVED = NoticeForm(
        "This room is approved. What is said here stays here.",
        "You approved a room",
        to="conversation",
        place="bridge",
        once="an approval",
    )
    ACCOUNT_LINKED = NoticeForm(
        "This account is yours from now on, like your others.", "You linked an account", place="bridge", once="a link"
    )
    KEY_MISSING = NoticeForm(
        "I cannot read an encrypted message here yet: its key has not reached me. I will read it when the key comes; "
        "if you get no answer, please send it again.",
        "Matrix: an encrypted message came without its key; sent at once, and not stored",
        to="conversation",
        place="bridge",
        once="a key",
    )

    # Shown to those who are connected
    DISK_TROUBLE = NoticeForm(
        "{text}",
        "Nothing can be written to the data folder, so this cannot be stored; `assistant status` is red, too",
        to="conversation",
        place="live",
    )
    RESET_PROGRESS = NoticeForm("{text}", "A reset takes a while", place="live")
    DETACHED = NoticeForm("{text}", "A terminal that did not read what it was sent", place="live")

    @property
    def form(self) -> NoticeForm:
        """Its wording, and to whom and where it goes."""
        return self.value

    def fill(self, once: object = "", *, buttons: tuple[Button, ...] = (), **values: Any) -> Notice:
        """Return the notice with these values, sent only once per `once`."""
        return Notice(self, self.form.template.format(**values), str(once), buttons)


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice. `once` identifies what it is sent only once for."""

    kind: NoticeKind
    text: str
    once: str = ""
    buttons: tuple[Button, ...] = ()

    @property
    def mark(self) -> str:
        """Key under which its sending is recorded."""
        return f"{self.kind.name.lower()}:{self.once}"

    def to_message(
        self, key: str, session: str, scope: str, bridge: str, target: str, *, inbox_id: int | None = None
    ) -> OutgoingMessage:
        """Return the outgoing message, with its own key (I8)."""
        return OutgoingMessage(key, session, scope, bridge, target, self.text, "notice", None, inbox_id, self.buttons)


@dataclass(frozen=True, slots=True)
class NoticePlace:
    """Where a notice is sent, and the inbox row it belongs to, if any."""

    target: DeliveryTarget
    inbox_id: int | None = None


@dataclass(frozen=True, slots=True)
class NoticeAddress:
    """Where notices about a piece of work in a session are sent, and the turn it belongs to, if any."""

    places: tuple[NoticePlace, ...] = ()
    turn: str | None = None

    def may_see(self, notice: Notice) -> bool:
        """Return whether a notice may be sent here. Guests and rooms get only those about their own session."""
        is_owners = all(session_role(place.target.session) == "owner" for place in self.places)
        return bool(self.places) and (is_owners or notice.kind.form.to == "conversation")
