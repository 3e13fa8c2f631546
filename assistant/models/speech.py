"""Speech to text by an OpenAI-compatible address (`/audio/transcriptions`): OpenAI, or a server of one's own.

What always holds: each call is reserved in the ledger before it is made and settled after it, and none is made over a
cap (I9); the SDK's own retries are off; whatever goes wrong is a `ModelError` of one sentence, without the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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


@dataclass(frozen=True, slots=True)
class SpeechConfig:
    """`minute_usd`: what a minute of sound costs, 0 for nothing."""

    url: str
    key: str
    model: str
    minute_usd: float
    seconds: float


class SpeechToText:
    def __init__(self, config: SpeechConfig, ledger: LedgerPort, clock: Callable[[], datetime]) -> None:
        self._config = config
        self._ledger = ledger
        self._clock = clock
        self._host = host_of_address(config.url)

    async def transcribe(self, data: bytes, mime: str, session: str) -> str:
        """What is said in a recording. Raises `ModelError`, also where nothing is."""
        if (ending := _ENDINGS.get(mime.partition(";")[0].lower())) is None:
            raise ModelError(f"{mime} is no format that can be turned into text.", kind="bad_request")
        if len(data) > MAX_AUDIO_BYTES:
            raise ModelError("The recording is larger than 25 MB.", kind="bad_request")
        reservation = self._ledger.reserve(self._call(len(data) * 8 / _FEWEST_BITS, session), self._clock())
        # Until something else is known, a call that is cut off has cost what it usually costs.
        usage = self._usage(len(data) * 8 / _USUAL_BITS)
        try:
            answer = await self._ask(data, f"voice.{ending}")
            reported = getattr(answer, "usage", None)
            if isinstance(seconds := getattr(reported, "seconds", None), int | float):
                usage = self._usage(seconds)
            return _text_of(answer, self._host)
        except openai.APIStatusError as error:
            usage = Usage()
            raise ModelError(f"{self._host} refused it ({_reason(error)}).", kind="bad_request") from error
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise ModelError(f"{self._host} did not answer.", kind="network") from error
        except TimeoutError as error:
            raise ModelError(f"{self._host} took longer than {self._config.seconds:g} s.", kind="network") from error
        finally:
            self._ledger.settle_reservation(reservation, usage, self._clock())

    async def _ask(self, data: bytes, name: str) -> Any:
        config = self._config
        # Local servers want no key, the SDK insists on one.
        async with AsyncOpenAI(
            api_key=config.key or "none",
            base_url=config.url.rstrip("/"),
            max_retries=0,
            timeout=httpx2.Timeout(config.seconds, connect=min(config.seconds, _CONNECT_SECONDS)),
        ) as client:
            async with asyncio.timeout(config.seconds):
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
