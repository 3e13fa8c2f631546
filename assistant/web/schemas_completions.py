"""What the OpenAI-compatible part of the web API takes and answers, as far as a conversation needs it.

Of a request, what asks for something that would change the answer and cannot be had here is refused; other settings of
a model (temperature and the like) are the assistant's own, and are passed over.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from assistant.core.messages import Media
from assistant.web.schemas_chat import Answer, Attachment, OwnerSession, UnicodeText

MODEL_NAME = "nocturne"

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,", re.ASCII)
# What clients ask a model for beside the conversation: a title, tags, the next questions.
_CLIENT_TASK = re.compile(r"\s*### Task:\n")


class _Lenient(BaseModel):
    """Clients send what other servers know: what is not read here is passed over."""

    model_config = ConfigDict(extra="ignore")


class ContentPart(_Lenient):
    """A part of a message: words, a picture, a recording or a file."""

    type: str
    text: UnicodeText = ""
    image_url: dict[str, Any] | None = None
    input_audio: dict[str, Any] | None = None
    file: dict[str, Any] | None = None

    def media(self) -> Media | None:
        """Raises `ValueError` for what is not sent along with the request."""
        if self.type == "image_url":
            return _from_data_url(str((self.image_url or {}).get("url", "")), "")
        if self.type == "input_audio":
            audio = self.input_audio or {}
            return Attachment(mime=f"audio/{audio.get('format', 'wav')}", data=str(audio.get("data", ""))).media()
        if self.type == "file":
            file = self.file or {}
            return _from_data_url(str(file.get("file_data", "")), str(file.get("filename", "")))
        return None


def _from_data_url(url: str, name: str) -> Media:
    head = _DATA_URL.match(url)
    if head is None:
        raise ValueError("pictures and files are sent as data: URLs in base64; the assistant fetches none for a client")
    return Attachment(mime=head[1] or "application/octet-stream", name=name, data=url[head.end() :]).media()


class ClientMessage(_Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: UnicodeText | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """Its text parts, a paragraph each."""
        if isinstance(self.content, list):
            return "\n\n".join(part.text for part in self.content if part.text)
        return self.content or ""

    def media(self) -> tuple[Media, ...]:
        """Raises `ValueError` for what is not sent along with the request."""
        parts = self.content if isinstance(self.content, list) else []
        return tuple(media for part in parts if (media := part.media()) is not None)


class StreamOptions(_Lenient):
    include_usage: bool = False


class CompletionRequest(_Lenient):
    """`session` is the assistant's own: the conversation that is meant. Without one, it is found by what was said."""

    model: str = MODEL_NAME
    messages: Annotated[list[ClientMessage], Field(min_length=1, max_length=100_000)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    session: OwnerSession | None = None
    n: int | None = 1
    response_format: dict[str, Any] | None = None
    tool_choice: Any = None

    @field_validator("n")
    @classmethod
    def _one_answer(cls, n: int | None) -> int | None:
        if n not in (None, 1):
            raise ValueError("there is one answer; leave `n` out or send 1")
        return n

    @model_validator(mode="after")
    def _can_be_answered(self) -> CompletionRequest:
        if (self.response_format or {}).get("type", "text") != "text":
            raise ValueError("`response_format`: the assistant answers in words only")
        if self.tool_choice not in (None, "auto", "none"):
            raise ValueError("`tool_choice`: the assistant uses its own tools, not those of a client")
        if self.messages[-1].role != "user":
            raise ValueError("the last message is not the user's: there is nothing new to answer")
        if not self.new_text.strip() and not self.media():
            raise ValueError("the message is empty")
        if _CLIENT_TASK.match(self.new_text):
            raise ValueError(
                "this is a task of the client's own (a title, tags, suggestions), not something that you said, so it "
                "was not kept; turn these tasks off in the client, or give them a model of their own"
            )
        return self

    @property
    def user_texts(self) -> list[str]:
        """What the person said, oldest first; messages that follow each other are one. The last is new."""
        texts: list[str] = []
        before = ""
        for message in self.messages:
            if message.role == "user" and before == "user":
                texts[-1] = "\n\n".join(filter(None, (texts[-1], message.text)))
            elif message.role == "user":
                texts.append(message.text)
            if message.role in ("user", "assistant"):
                before = message.role
        return texts

    @property
    def new_text(self) -> str:
        return self.user_texts[-1]

    def media(self) -> tuple[Media, ...]:
        """What was sent along with the new message."""
        new: list[Media] = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            if message.role == "user":
                new = [*message.media(), *new]
        return tuple(new)


class CompletionUsage(Answer):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    prompt_tokens_details: dict[str, int] = Field(default_factory=dict)


class CompletionMessage(Answer):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None


class CompletionChoice(Answer):
    index: int = 0
    message: CompletionMessage
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class Completion(Answer):
    """A whole answer. `session` is where the conversation is kept."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    session: str


class OpenAIErrorDetails(Answer):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIErrorAnswer(Answer):
    """What went wrong, in the form that clients of OpenAI's API show."""

    error: OpenAIErrorDetails


class ModelEntry(Answer):
    id: str = MODEL_NAME
    object: Literal["model"] = "model"
    created: int
    owned_by: str = MODEL_NAME


class ModelList(Answer):
    object: Literal["list"] = "list"
    data: list[ModelEntry]
