"""What the control API takes, as pydantic models: unknown fields, wrong types and text that is no Unicode are refused
before anything is stored."""

from __future__ import annotations

import binascii
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from assistant.messages import Media
from assistant.records import Incoming
from assistant.sessions import MAIN, role_of, scope_of


def _owners(session: str) -> str:
    if role_of(session) != "owner":
        raise ValueError("this socket speaks for the owner, and that session is somebody else's")
    return session


def _base64(data: str) -> str:
    binascii.a2b_base64(data, strict_mode=True)
    return data


def _unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no text") from None
    return text


Words = Annotated[str, AfterValidator(_unicode)]
# The pattern is told to callers; `_owners` decides.
Session = Annotated[
    Words,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": "^(main|branch:.*|thread:.*)$"}),
    AfterValidator(_owners),
]
# What the stores number things with.
Id = Annotated[int, Field(ge=1, lt=2**63)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Attachment(_Body):
    """A picture or file sent along; `data` is base64."""

    mime: Annotated[str, Field(pattern=r"^[\w.+-]+/[\w.+-]+$", max_length=100)]
    name: Annotated[Words, Field(max_length=255)] = ""
    data: Annotated[str, AfterValidator(_base64)]

    def media(self) -> Media:
        size = len(self.data) * 3 // 4 - self.data[-2:].count("=")
        return Media("image" if self.mime.startswith("image/") else "file", self.mime, self.name, size, self.data)


class NewMessage(_Body):
    """`external_id` is the sender's own: the same one is accepted once, so a message may safely be sent again."""

    text: Words
    external_id: Annotated[Words, Field(min_length=1, max_length=200)]
    session: Session = MAIN
    media: list[Attachment] = []

    @model_validator(mode="after")
    def _says_something(self) -> NewMessage:
        if not self.text.strip() and not self.media:
            raise ValueError("the message is empty")
        return self

    def incoming(self, bridge: str) -> Incoming:
        media = tuple(attachment.media() for attachment in self.media)
        return Incoming(
            bridge, self.external_id, self.session, scope_of(self.session), "owner", "owner", self.text, media,
            target=self.session,
        )  # fmt: skip


class Typed(_Body):
    """A slash command as typed."""

    text: Annotated[Words, Field(min_length=1, max_length=100_000)]
    session: Session = MAIN


class OneSession(_Body):
    session: Session = MAIN


class Shown(_Body):
    """The key of a delivery that a terminal has shown."""

    key: Annotated[Words, Field(min_length=1, max_length=1000)]
