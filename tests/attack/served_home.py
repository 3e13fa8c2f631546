"""A daemon that serves a home in a process of its own, somebody who talks to it, and what has to be so in the end.

The process is forked from one that has imported everything, so that a start costs a fraction of a second; it runs
`assistant run` as it is installed. What the world outside knows, it knows from answers of the daemon alone: a message
was accepted when the daemon said so, and is sent again under its name until it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from assistant.cli.client import SocketLink, open_socket_link
from assistant.cli.link import LinkLost
from assistant.core.errors import AssistantError, UsageError
from assistant.core.sessions import MAIN_SESSION, THREAD_PREFIX

SESSIONS = (MAIN_SESSION, f"{THREAD_PREFIX}garden", f"{THREAD_PREFIX}work")
_CONNECT_SECONDS = 60.0
_PRELOADED = [
    "tests.attack.served_home",
    "assistant.cli.main",
    "assistant.cli.run",
    "assistant.daemon",
    "assistant.web.app",
    "uvicorn",
]
# In a process of its own: whatever this one does with threads, what is forked has none.
_CONTEXT = multiprocessing.get_context("forkserver")


def settings_for(home: Path, model_url: str, **more: str) -> dict[str, str]:
    """Variables of a daemon's environment: the model of a soak, nothing by the clock of the day."""
    return {
        "ASSISTANT_HOME": str(home),
        "ASSISTANT_HOME__TIMEZONE": "UTC",
        "ASSISTANT_MODEL__PROVIDER": "openai",
        "ASSISTANT_MODEL__BASE_URL": f"{model_url}/v1",
        "ASSISTANT_MODEL__NAME": "local-model",
        "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "24000",
        "ASSISTANT_SLEEP__AT": "",
        "ASSISTANT_BACKUP__AT": "",
        "ASSISTANT_BUDGET__DAILY_TOKENS": "0",
        "ASSISTANT_LOG__LEVEL": "warning",
        "TIKTOKEN_CACHE_DIR": "",
        **more,
    }


class ServedHome:
    """A daemon over `home`. `output` has what it printed, over all its lives."""

    def __init__(
        self, home: Path, environment: Mapping[str, str], prepare: Callable[..., None] | None = None, *about: str
    ) -> None:
        """`prepare` is called with `about` in the process of the daemon, before it begins."""
        self._prepare, self._about = prepare, about
        self.home = home
        self.output = home.with_name(f"{home.name}.output")
        self._environment = dict(environment)
        self._process: Any = None
        self._gate: Connection | None = None

    @property
    def process_id(self) -> int:
        return int(self._process.pid)

    def start(self, *, at_gate: bool = False) -> None:
        """Begin a life. `at_gate`: it waits for `go`, so that a tracer can hold it from its first call."""
        _CONTEXT.set_forkserver_preload(_PRELOADED)
        waits, self._gate = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(
            target=_run, args=(self._environment, str(self.output), waits, self._prepare, self._about)
        )
        self._process.start()
        waits.close()
        if not at_gate:
            self.go()

    def go(self) -> None:
        assert self._gate is not None
        self._gate.send(True)
        self._gate.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def stop(self, seconds: float = 60.0) -> int | None:
        """Ask it to stop; its exit code, None if it had to be killed."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process_id, signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float = 60.0) -> int | None:
        """Until it ends by itself; its exit code, None if it had to be killed."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            self.kill()
            return None
        return int(self._process.exitcode)

    @property
    def exit_code(self) -> int | None:
        """None while it lives."""
        code = self._process.exitcode
        return None if code is None else int(code)

    def printed(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace") if self.output.exists() else ""

    @asynccontextmanager
    async def linked(self) -> AsyncIterator[SocketLink]:
        """A link, once the daemon answers. Raises `LinkLost` when it ends or does not come up."""
        until = time.monotonic() + _CONNECT_SECONDS
        while not await self._answers():
            if self.exit_code is not None or time.monotonic() >= until:
                raise LinkLost()
            await asyncio.sleep(0.02)
        async with open_socket_link(self._socket) as link:
            yield link

    @property
    def _socket(self) -> Path:
        return self.home / "run" / "control.sock"

    async def _answers(self) -> bool:
        """Be it with an error, as where a disk that refuses keeps the status from being read."""
        try:
            async with open_socket_link(self._socket) as link:
                await link.status()
        except (LinkLost, OSError):
            return False
        except AssistantError:
            return True
        return True


def _run(
    environment: Mapping[str, str],
    output: str,
    gate: Connection,
    prepare: Callable[..., None] | None,
    about: Sequence[str],
) -> None:
    from assistant.cli.main import main

    if prepare is not None:
        prepare(*about)

    os.environ.update(environment)
    file = os.open(output, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    gate.recv()
    gate.close()
    sys.argv = ["assistant", "run"]
    main()


@contextmanager
def stopped_in_the_end(served: ServedHome) -> Iterator[ServedHome]:
    try:
        yield served
    finally:
        if served._process is not None and served.exit_code is None:
            served.kill()


# ----------------------------------------------------------------------------------------------- what the world knows


@dataclass
class WorldRecord:
    """`said`: texts by their external ids; `accepted`: their numbers in the inbox, once the daemon said so. `done`:
    commands that were answered, as (verb, text). `shown`: bodies of deliveries by key; `answers`: how many different
    replies came for a number in the inbox."""

    said: dict[str, tuple[str, str]] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    done: list[tuple[str, str]] = field(default_factory=list)
    tried: list[tuple[str, str]] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    replies: dict[int, set[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    async def say(self, link: SocketLink, name: str, text: str, session: str) -> None:
        """Send it; when it is sent again later, it is the same message."""
        self.said[name] = (text, session)
        receipt = await link.send_message(text, name, session)
        before = self.accepted.setdefault(name, receipt.inbox_id)
        if before != receipt.inbox_id:
            self.wrong.append(f"message {name} was accepted as {before} and as {receipt.inbox_id}")

    async def say_again(self, link: SocketLink) -> None:
        """What was sent and not confirmed, as a network would."""
        for name, (text, session) in list(self.said.items()):
            if name not in self.accepted:
                await self.say(link, name, text, session)

    async def order(self, link: SocketLink, verb: str, text: str, argv: Sequence[str], session: str) -> None:
        self.tried.append((verb, text))
        result = await link.run_argv(argv, session, 60.0)
        # That there is nothing to do yet, as to reset in a home where nothing was said, is no error and has no value.
        if result.exit_code == 0 and result.value is not None:
            self.done.append((verb, text))

    async def listen(self, served: ServedHome, session: str) -> None:
        """Show and confirm what comes in a conversation, until the daemon is gone."""
        with contextlib.suppress(LinkLost, OSError, AssistantError):
            async with served.linked() as link:
                async for name, data in link.events(session):
                    if name == "deliver":
                        self._show(data)
                        # Confirmed elsewhere meanwhile, by the same person's other terminal.
                        with contextlib.suppress(UsageError):
                            await link.acknowledge(data["key"])

    def _show(self, data: Mapping[str, Any]) -> None:
        key, body = str(data["key"]), str(data.get("body", data.get("text", "")))
        if self.shown.setdefault(key, body) != body:
            self.wrong.append(f"delivery {key} was shown with two bodies")
        if data["kind"] == "reply" and data.get("inbox_id") is not None:
            self.replies.setdefault(int(data["inbox_id"]), set()).add(key)


@asynccontextmanager
async def terminals(served: ServedHome, world: WorldRecord) -> AsyncIterator[None]:
    """A terminal in each conversation."""
    listening = [asyncio.create_task(world.listen(served, session)) for session in SESSIONS]
    try:
        yield
    finally:
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
