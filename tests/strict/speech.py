"""A transcription and speech API that is as strict as OpenAI's, on a real socket of this machine.

    async with StrictSpeech("remind me to call mum") as server:
        url, key = server.url, server.key

Each request is answered with the next of `answers`: a text, or a status with which it is refused. What came stands in
`requests`; what was asked in the wrong way is refused in OpenAI's words, and stands in `complaints`. While `gate` is
not set nothing is answered.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

KEY = "sk-strict-speech-key-of-a-test"
_FORMATS = frozenset(["flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm"])
_FIELDS = frozenset(["file", "model", "language", "prompt", "response_format", "temperature", "stream", "include[]"])
_LARGEST = 25 * 1024 * 1024


@dataclass(frozen=True)
class SpeechRequest:
    name: str
    data: bytes
    model: str


class StrictSpeech:
    def __init__(self, *answers: str | int, seconds: float = 12.0) -> None:
        self.key = KEY
        self.answers = list(answers)
        self.seconds = seconds
        self.requests: list[SpeechRequest] = []
        self.complaints: list[str] = []
        self.spoken: list[str] = []
        self.speech: list[bytes | int] = []  # answers to texts that are to be spoken
        self.gate, self.arrived = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2 * _LARGEST)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_post("/v1/audio/speech", self._speak)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        self.gate.set()
        await self._runner.cleanup()

    async def _transcribe(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return self._refuse(401, "Incorrect API key provided.")
        if request.content_type != "multipart/form-data":
            return self._refuse(400, "Could not parse multipart form")
        form = await request.post()
        if unknown := form.keys() - _FIELDS:
            return self._refuse(400, f"Unrecognized request argument supplied: {', '.join(unknown)}")
        file, model = form.get("file"), form.get("model")
        if not isinstance(file, web.FileField):
            return self._refuse(400, "Field required: file")
        if not isinstance(model, str) or not model:
            return self._refuse(400, "you must provide a model parameter")
        if form.get("response_format", "json") not in ("json", "text", "srt", "verbose_json", "vtt"):
            return self._refuse(400, "Invalid response_format")
        data = file.file.read()
        if file.filename.rpartition(".")[2].lower() not in _FORMATS:
            return self._refuse(400, f"Invalid file format. Supported formats: {sorted(_FORMATS)}")
        if not data or len(data) > _LARGEST:
            return self._refuse(413, "Maximum content size limit exceeded")
        self.requests.append(SpeechRequest(file.filename, data, model))
        self.arrived.set()
        await self.gate.wait()
        answer = self.answers.pop(0) if self.answers else "nothing was scripted"
        if isinstance(answer, int):
            return self._error(answer, "The server is overloaded.")
        return web.json_response({"text": answer, "usage": {"type": "duration", "seconds": self.seconds}})

    async def _speak(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return self._refuse(401, "Incorrect API key provided.")
        asked = await request.json()
        if unknown := asked.keys() - {"input", "model", "voice", "response_format", "speed", "instructions"}:
            return self._refuse(400, f"Unrecognized request argument supplied: {', '.join(unknown)}")
        if not asked.get("model") or not asked.get("voice") or not 0 < len(asked.get("input", "")) <= 4096:
            return self._refuse(400, "input, model and voice are required; input has at most 4096 characters")
        if asked.get("response_format") not in ("mp3", "opus", "aac", "flac", "wav", "pcm"):
            return self._refuse(400, "Invalid response_format")
        self.spoken.append(asked["input"])
        self.arrived.set()
        await self.gate.wait()
        answer = self.speech.pop(0) if self.speech else b"OggS" + bytes(100)
        if isinstance(answer, int):
            return self._error(answer, "The server is overloaded.")
        return web.Response(body=answer, content_type="audio/ogg")

    def _refuse(self, status: int, message: str) -> web.Response:
        self.complaints.append(message)
        return self._error(status, message)

    def _error(self, status: int, message: str) -> web.Response:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return web.json_response({"error": error}, status=status)
