"""What the web API takes, and what it answers in a conversation, as pydantic models: the shapes that `/openapi.json`
describes.

Unknown fields, wrong types and text that is not Unicode are refused before anything is stored.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from assistant.core.errors import UsageError
from assistant.core.messages import Media, decode_base64, media_kind
from assistant.core.records import IncomingMessage
from assistant.core.sessions import MAIN_SESSION, parse_session_name, session_scope

_OWNER_SESSIONS = r"main|branch:[1-9][0-9]{0,17}|thread:[\w.-]{1,40}"


def _owner_session(session: str) -> str:
    """The key of the session: `thread:Trip` is `thread:trip`. Raises `ValueError` or `UsageError` for other names."""
    if re.fullmatch(_OWNER_SESSIONS, session) is None:
        raise ValueError(
            "it is `main`, `thread:NAME` or `branch:NUMBER` (`GET /v1/sessions` lists them); conversations of others "
            "cannot be reached here"
        )
    return parse_session_name(session)


def refuse_number(written: Any) -> Any:
    """A time is written out: as a number of seconds, which the framework takes too, it would be one of 1970."""
    try:
        float(written)
    except (TypeError, ValueError):
        return written
    raise ValueError("this is a number, not a time; write it out, as in 2026-03-01T00:00:00Z")


def to_utc(moment: datetime) -> datetime:
    """The first and last hours of the calendar are outside of it in other zones."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("this time does not exist in UTC") from None


# A longer one is looked at in a thread, when it is accepted.
_LONG_BASE64 = 1 << 20


def _check_base64(data: str) -> str:
    if len(data) <= _LONG_BASE64:
        decode_base64(data)
    return data


async def check_long_files(media: Sequence[Media]) -> None:
    """Raises `UsageError`."""
    for number, medium in enumerate(media, 1):
        if medium.data is not None and len(medium.data) > _LONG_BASE64:
            try:
                await asyncio.to_thread(decode_base64, medium.data)
            except ValueError as error:
                raise UsageError(f"File {number} is not in base64: {error}. Nothing was changed.") from None


def _check_unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is not text") from None
    return text


UnicodeText = Annotated[str, AfterValidator(_check_unicode)]
OwnerSession = Annotated[
    UnicodeText, Field(json_schema_extra={"pattern": f"^({_OWNER_SESSIONS})$"}), AfterValidator(_owner_session)
]
# The ids of rows.
RowId = Annotated[int, Field(ge=1, lt=2**63)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Attachment(Body):
    """A picture or file sent along; `data` is base64. `voice`: a recording to be heard as the words of the sender."""

    mime: Annotated[str, Field(pattern="^[A-Za-z0-9_.+-]+/[A-Za-z0-9_.+-]+$", max_length=100)]
    name: Annotated[UnicodeText, Field(max_length=255)] = ""
    data: Annotated[str, AfterValidator(_check_base64)]
    voice: bool = False

    def media(self) -> Media:
        size = len(self.data) * 3 // 4 - self.data[-2:].count("=")
        return Media(media_kind(self.mime), self.mime, self.name, size, self.data, voice=self.voice)


class NewMessage(Body):
    """`external_id` is the sender's own: the same one is accepted once, so a message may safely be sent again."""

    text: UnicodeText
    external_id: Annotated[UnicodeText, Field(min_length=1, max_length=200)]
    session: OwnerSession = MAIN_SESSION
    media: list[Attachment] = []

    @model_validator(mode="after")
    def _says_something(self) -> NewMessage:
        if not self.text.strip() and not self.media:
            raise ValueError("the message is empty")
        return self

    def incoming(self, bridge: str) -> IncomingMessage:
        media = tuple(attachment.media() for attachment in self.media)
        return IncomingMessage(
            bridge,
            self.external_id,
            self.session,
            session_scope(self.session),
            "owner",
            "owner",
            self.text,
            media,
            target=self.session,
        )


class TypedCommand(Body):
    """A command: as typed in a conversation (`text`, "/pins remove 3"), or as the words of a shell (`argv`, ["pins",
    "remove", "3"]). Give one of them. `typed` is what a command of a shell asks for: a key, or the answers of a setup.
    With `html` the answer's text is given as HTML, too."""

    text: Annotated[UnicodeText, Field(max_length=100_000)] = ""
    argv: Annotated[list[Annotated[UnicodeText, Field(max_length=100_000)]], Field(max_length=10_000)] = []
    typed: Annotated[UnicodeText, Field(max_length=100_000)] = ""
    session: OwnerSession = MAIN_SESSION
    html: bool = False

    @model_validator(mode="after")
    def _one_form(self) -> TypedCommand:
        if bool(self.text) == bool(self.argv):
            raise ValueError("Give either text or argv.")
        return self


class SessionChoice(Body):
    session: OwnerSession = MAIN_SESSION


class DeliveryKey(Body):
    """The key of a delivery that a terminal has shown."""

    key: Annotated[UnicodeText, Field(min_length=1, max_length=1000)]


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class ErrorAnswer(Answer):
    """What went wrong, in one line, and what was kept."""

    error: str


class MessageAccepted(Answer):
    """The message is durable. `duplicate`: it was before, under the same `external_id`."""

    inbox_id: int
    message_id: int
    duplicate: bool


class DeliveryAcknowledged(Answer):
    """Whether the delivery waited for that; it does not where it was confirmed before, or nobody was given it now."""

    acknowledged: bool


class ConfirmationNeeded(Answer):
    """What a person has to agree to; `argv` is then sent as the next command, and `otherwise`, if any, for a no."""

    question: str
    argv: list[str]
    otherwise: list[str] | None = None


class CommandAnswer(Answer):
    """What a command did: Markdown for people; where it was given as `argv`, its value for programs as well, and what a
    person has to know of it that is no part of it (`remark`)."""

    text: str
    remark: str = ""
    value: Any = None
    exit_code: int = 0
    confirmation: ConfirmationNeeded | None = None
    html: str | None = None


class TurnStopped(Answer):
    """Whether a turn ran."""

    stopped: bool


class MessageUsage(Answer):
    """What one answer cost; no `cost_usd` where no price is known."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float | None


class MessageResult(Answer):
    """What became of a message: accepted, running, answered, failed or superseded. `model` answered; `fallback` tells
    whether in place of the first one, and `fallback_reason` why. `notices` is what was told beside the answer."""

    state: str
    reply: str
    error: str
    exit_code: int
    session: str
    turn: str | None
    model: str | None
    fallback: bool | None
    fallback_reason: str
    notices: list[str]
    usage: MessageUsage | None
    pressure: float | None
