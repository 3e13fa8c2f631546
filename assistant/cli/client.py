"""A `Link` to a running daemon over the home's control socket: HTTP and server-sent events on a Unix socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import httpx2

from assistant.cli.link import LinkEvent, LinkLost
from assistant.cli.silence import DEFAULT_PATIENCE, Patience, SilenceWatch, tell_nobody
from assistant.core.errors import AssistantError, UsageError
from assistant.core.imports import hidden_modules
from assistant.core.messages import Media
from assistant.core.records import InboxReceipt
from assistant.service.home_lock import short_address

if TYPE_CHECKING:
    from assistant.commands.table import CommandResult

T = TypeVar("T")

# A daemon that is alive answers at once; one that is stuck for this long (seconds) is reported as gone.
_ANSWERS_WITHIN = 60.0
# The daemon sends a sign of life into an event stream every 15 seconds.
_SILENT_AT_MOST = 45.0
_LARGEST_EVENT = 256 * 1024 * 1024
_READ = "Nothing was sent or changed."
_ACCEPTED = "Your message is answered once it continues."
_CHANGED = "Whether this is done once it continues is not known: look before you repeat it."


@asynccontextmanager
async def open_socket_link(
    path: Path, tell: Callable[[str], None] = tell_nobody, patience: Patience = DEFAULT_PATIENCE
) -> AsyncIterator[SocketLink]:
    """A link over the control socket at `path`; nothing is sent until it is used. `tell` shows a line to whoever waits
    for a process that does not answer."""
    with short_address(path) as address:
        # Nothing is encrypted over a socket, so that the authorities which the machine trusts need not be read.
        with hidden_modules("trio", "h2"):  # httpx would import them where they are installed; neither is used
            transport = httpx2.AsyncHTTPTransport(uds=address, verify=False)
        timeout = httpx2.Timeout(_ANSWERS_WITHIN)
        async with httpx2.AsyncClient(transport=transport, base_url="http://assistant/v1", timeout=timeout) as client:
            watch = SilenceWatch(path.parent.parent, partial(_check_health, address), tell, patience)
            yield SocketLink(client, watch)


class SocketLink:
    """See `link.Link`."""

    def __init__(self, client: httpx2.AsyncClient, silence: SilenceWatch) -> None:
        self._client = client
        self._silence = silence

    async def send_message(
        self, text: str, external_id: str, session: str, media: Sequence[Media] = ()
    ) -> InboxReceipt:
        files = [{"mime": medium.mime, "name": medium.name, "data": medium.data} for medium in media]
        body = {"text": text, "external_id": external_id, "session": session, "media": files}
        answer = await self._ask("POST", "/messages", body)
        return InboxReceipt(answer["inbox_id"], answer["message_id"], answer["duplicate"])

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        """As the port says. Silence for longer than the other end's heartbeat is a `LinkLost`; who waits for the answer
        to one message is told before, as with any other question."""
        params: dict[str, str | int] = {"session": session}
        if inbox_id is not None:
            params["inbox_id"] = inbox_id
        timeout = httpx2.Timeout(_ANSWERS_WITHIN, read=_SILENT_AT_MOST)
        self._require_open()
        try:
            async with self._client.sse(
                "/events", params=params, timeout=timeout, max_event_size=_LARGEST_EVENT
            ) as stream:
                await _checked(stream.response)
                # A chat that lies open for days asks nothing meanwhile.
                async for event in stream if inbox_id is None else self._each_unless_silent(aiter(stream)):
                    yield event.event, json.loads(event.data)
        except httpx2.TransportError as error:
            raise LinkLost() from error

    async def _each_unless_silent(self, events: AsyncIterator[T]) -> AsyncGenerator[T]:
        with self._watched(_ACCEPTED) as watching:
            while (event := await _first_of(asyncio.ensure_future(anext(events, None)), watching)) is not None:
                yield event

    async def acknowledge(self, key: str) -> None:
        await self._ask("POST", "/deliveries/ack", {"key": key})

    async def run_command(self, text: str, session: str) -> str:
        """As the port says, and waits as long as the command may take."""
        from assistant.commands.catalog import max_seconds_of  # all commands: only where one was typed

        within = max(max_seconds_of(text), _ANSWERS_WITHIN)
        return str((await self._ask("POST", "/commands", {"text": text, "session": session}, within))["text"])

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        from assistant.commands.table import CommandResult, Confirmation

        answer = await self._ask("POST", "/commands", {"argv": list(argv), "session": session}, max_seconds)
        confirmation = Confirmation(**answer["confirmation"]) if answer["confirmation"] else None
        return CommandResult(answer["text"], answer["value"], answer["exit_code"], confirmation, answer["remark"])

    async def stop(self, session: str) -> bool:
        return bool((await self._ask("POST", "/stop", {"session": session}))["stopped"])

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return await self._ask("GET", f"/results/{inbox_id}")

    async def status(self) -> Mapping[str, Any]:
        return await self._ask("GET", "/status")

    async def unattended(self) -> str:
        return str((await self.status()).get("unattended", ""))

    def _require_open(self) -> None:
        """Raises `LinkLost` where whoever opened it found the daemon gone meanwhile."""
        if self._client.is_closed:
            raise LinkLost()

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, within: float = _ANSWERS_WITHIN
    ) -> Mapping[str, Any]:
        self._require_open()
        timeout = httpx2.Timeout(_ANSWERS_WITHIN, read=within)
        try:
            with self._watched(_READ if method == "GET" else _CHANGED) as watching:
                request = self._client.request(method, path, json=body, timeout=timeout)
                response = await _first_of(asyncio.ensure_future(request), watching)
            await _checked(response)
        except httpx2.TransportError as error:
            raise LinkLost() from error
        answer: Mapping[str, Any] = response.json()
        return answer

    @contextmanager
    def _watched(self, outcome: str) -> Iterator[asyncio.Future[NoReturn]]:
        """Yield what fails once the other end has given no sign of life for too long; `outcome` says what became of
        what was asked."""
        watching = asyncio.ensure_future(self._silence.wait_for_silence(outcome))
        # Both may end at once, and then nobody asks for this one's end.
        watching.add_done_callback(lambda watch: watch.cancelled() or watch.exception())
        try:
            yield watching
        finally:
            watching.cancel()


async def _first_of(awaited: asyncio.Future[T], watching: asyncio.Future[NoReturn]) -> T:
    try:
        await asyncio.wait((awaited, watching), return_when=asyncio.FIRST_COMPLETED)
        return awaited.result() if awaited.done() else watching.result()
    finally:
        if not awaited.done():
            awaited.cancel()
            # A stream is closed only once nobody reads it.
            await asyncio.wait((awaited,))


async def _check_health(address: str) -> None:
    """Return at any answer. Without the client: what it waits for may not be cut off, which asyncio would log."""
    try:
        reader, writer = await asyncio.open_unix_connection(address)
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: assistant\r\n\r\n")
            if not await reader.read(1):
                raise LinkLost()
        finally:
            writer.close()
    except OSError as error:
        raise LinkLost() from error


async def _checked(response: httpx2.Response) -> None:
    """Raises what the daemon said when it refused."""
    if response.is_success:
        return
    try:
        reason = str(json.loads(await response.aread())["error"])
    except (ValueError, KeyError, TypeError):
        reason = f"The daemon answered with status {response.status_code} and no reason."
    raise (UsageError if 400 <= response.status_code < 500 else AssistantError)(reason)
