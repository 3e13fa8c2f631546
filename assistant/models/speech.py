"""Speech to text and back by an OpenAI-compatible address (`/audio/transcriptions`, `/audio/speech`): OpenAI, or a
server of one's own.

What always holds: each call is reserved in the ledger before it is made and settled after it, and none is made over a
cap (I9); the SDK's own retries are off; whatever goes wrong is a `ModelError` of one sentence, without the key.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI

from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelError
from assistant.core.messages import Usage
from assistant.core.model_api import ModelCall
from assistant.core.ports import LedgerPort
from assistant.core.text import host_of_address, shorten_line

MAX_AUDIO_BYTES = 25 * 1_000_000
# Servers go by the ending of the name.
_ENDINGS = {
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/webm": "webm",
    "video/webm": "webm",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/mp4": "m4a",
    "audio/m4a": "m4a",
    "audio/x-m4a": "m4a",
    "audio/aac": "m4a",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/flac": "flac",
}
# No recording of speech has fewer bits a second; most have about the other.
_FEWEST_BITS, _USUAL_BITS = 6_000, 16_000
_TOKENS_A_SECOND = 10
_CONNECT_SECONDS = 10.0
_LONGEST_TEXT = 20_000
_LONGEST_REASON = 120
_MOST_SPOKEN = 4_000  # characters; OpenAI takes 4,096
_LARGEST_SPOKEN = 8 * 1_000_000
_CODE = re.compile(r"```.*?(?:```|\Z)|`+", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKS = re.compile(r"https?://\S+|\*\*|__|^[ \t]*(?:#+|>|[-*+])[ \t]+|^\|[-:| ]+\|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SpeechToTextConfig:
    """`minute_usd`: what a minute of sound costs, 0 for nothing."""

    url: str
    key: str
    model: str
    minute_usd: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TextToSpeechConfig:
    """`thousand_usd`: what 1,000 characters cost, 0 for nothing."""

    url: str
    key: str
    model: str
    voice: str
    thousand_usd: float
    seconds: float


@dataclass(slots=True)
class _Cost:
    usage: Usage


class _SpeechAddress:
    """What both ways have in common: the client, the ledger, and what a person is told of a failure."""

    def __init__(
        self, config: SpeechToTextConfig | TextToSpeechConfig, ledger: LedgerPort, clock: Callable[[], datetime]
    ) -> None:
        self._url, self._key, self._seconds = config.url, config.key, config.seconds
        self._ledger = ledger
        self._clock = clock
        self._host = host_of_address(config.url)

    @contextmanager
    def _paid(self, call: ModelCall, usage: Usage) -> Iterator[_Cost]:
        """Reserve a call, and settle it after the block: what it cost, `usage` unless the block knows better. What goes
        wrong in the block is a `ModelError`; a call that was refused cost nothing."""
        reservation = self._ledger.reserve(call, self._clock())
        cost = _Cost(usage)
        try:
            yield cost
        except openai.APIStatusError as error:
            cost.usage = Usage()
            raise ModelError(f"{self._host} refused it ({_reason(error)}).", kind="bad_request") from error
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise ModelError(f"{self._host} did not answer.", kind="network") from error
        except TimeoutError as error:
            raise ModelError(f"{self._host} took longer than {self._seconds:g} s.", kind="network") from error
        finally:
            self._ledger.settle_reservation(reservation, cost.usage, self._clock())

    def _client(self) -> AsyncOpenAI:
        # Local servers want no key, the SDK insists on one.
        return AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._url.rstrip("/"),
            max_retries=0,
            timeout=httpx2.Timeout(self._seconds, connect=min(self._seconds, _CONNECT_SECONDS)),
        )


class TextToSpeech(_SpeechAddress):
    """An OpenAI-compatible address that speaks text. Each call is reserved in the ledger and settled."""

    def __init__(self, config: TextToSpeechConfig, ledger: LedgerPort, clock: Callable[[], datetime]) -> None:
        super().__init__(config, ledger, clock)
        self._config = config

    async def speak(self, text: str, session: str) -> bytes:
        """Return a text as speech, Ogg Opus; what is beyond 4,000 characters is not spoken. Raises `ModelError`."""
        said = readable_aloud(text)[:_MOST_SPOKEN]
        if not said:
            raise ModelError("It has no words.", kind="bad_request")
        usage = Usage(input=len(said), cost_usd=len(said) / 1000 * self._config.thousand_usd)
        call = ModelCall("speech", "openai", self._config.model, usage.input, 0, usage.cost_usd, session)
        with self._paid(call, usage):
            sound = await self._ask(said)
        if not sound.startswith(b"OggS"):
            raise ModelError(f"{self._host} gave an answer that is no recording.", kind="bad_request")
        return sound

    async def _ask(self, text: str) -> bytes:
        config = self._config
        async with self._client() as client, asyncio.timeout(config.seconds):
            asked = client.audio.speech.with_streaming_response.create(
                input=text, model=config.model, voice=config.voice, response_format="opus"
            )
            async with asked as answer:
                parts, size = [], 0
                async for part in answer.iter_bytes():
                    size += len(part)
                    if size > _LARGEST_SPOKEN:
                        raise ValueError("too large")
                    parts.append(part)
        return b"".join(parts)


def readable_aloud(markdown: str) -> str:
    """Return the words of a text, without its marks, code and addresses."""
    text = _CODE.sub(" ", markdown)
    text = _LINK.sub(r"\1", text)
    return _MARKS.sub("", text).strip()


class SpeechToText(_SpeechAddress):
    """An OpenAI-compatible address that writes down what is said. Each call is reserved in the ledger and settled."""

    def __init__(self, config: SpeechToTextConfig, ledger: LedgerPort, clock: Callable[[], datetime]) -> None:
        super().__init__(config, ledger, clock)
        self._config = config

    async def transcribe(self, data: bytes, mime: str, session: str) -> str:
        """What is said in a recording. Raises `ModelError`, also where nothing is."""
        if (ending := _ENDINGS.get(mime.partition(";")[0].lower())) is None:
            raise ModelError(f"{mime} is no format that can be turned into text.", kind="bad_request")
        if len(data) > MAX_AUDIO_BYTES:
            raise ModelError("The recording is larger than 25 MB.", kind="bad_request")
        # Until something else is known, a call that is cut off has cost what it usually costs.
        usual = self._usage(len(data) * 8 / _USUAL_BITS)
        with self._paid(self._call(len(data) * 8 / _FEWEST_BITS, session), usual) as cost:
            answer = await self._ask(data, f"voice.{ending}")
            reported = getattr(answer, "usage", None)
            if isinstance(seconds := getattr(reported, "seconds", None), int | float):
                cost.usage = self._usage(seconds)
            return _text_of(answer, self._host)

    async def _ask(self, data: bytes, name: str) -> Any:
        config = self._config
        async with self._client() as client, asyncio.timeout(config.seconds):
            return await client.audio.transcriptions.create(
                file=(name, data), model=config.model, response_format="json"
            )

    def _call(self, seconds: float, session: str) -> ModelCall:
        usage = self._usage(seconds)
        return ModelCall("transcription", "openai", self._config.model, usage.input, 0, usage.cost_usd, session)

    def _usage(self, seconds: float) -> Usage:
        return Usage(input=int(seconds * _TOKENS_A_SECOND) + 1, cost_usd=seconds / 60 * self._config.minute_usd)


def _text_of(answer: Any, host: str) -> str:
    text = getattr(answer, "text", None)
    if not isinstance(text, str):
        raise ModelError(f"{host} gave an answer that is no text.", kind="bad_request")
    if not text.strip():
        raise ModelError("No words were heard in it.", kind="bad_request")
    return text.strip()[:_LONGEST_TEXT]


def _reason(error: openai.APIStatusError) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return shorten_line(
        f"{error.status_code}: {message}" if isinstance(message, str) else str(error.status_code), _LONGEST_REASON
    )
