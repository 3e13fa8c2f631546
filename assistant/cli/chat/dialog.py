"""An interactive chat: what is typed goes out once, what happens is drawn, what is delivered is shown once.

The connection may break at any time. What was typed and not accepted is kept and sent again under the same id; what
was not confirmed is delivered again and recognised by its key. Of an answer that is being written the screen shows
a moving tail; what no longer fits is printed for good, in whole Markdown blocks, because a block that is closed
does not change any more. A short answer is therefore still free to be withdrawn without a trace.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from markdown_it import MarkdownIt
from rich.console import Console

from assistant.cli.chat.command import new_external_id
from assistant.cli.chat.screen import Screen
from assistant.cli.link import Link, LinkLost
from assistant.commands.argv import LEAVE_COMMANDS, SLASH_COMMANDS, is_leave_command, session_after_command
from assistant.core.errors import AssistantError
from assistant.settings.settings import Settings

_FRAME_SECONDS = 0.08
_RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
# A connection that broke just now is often back at once; then there is nothing to tell.
_TOLD_AFTER = 2


async def run_dialog(link: Link, session: str, settings: Settings) -> None:
    """Talk until the person leaves."""
    screen = Screen(Console(highlight=False), settings.home.path / "chat_history", [*SLASH_COMMANDS, *LEAVE_COMMANDS])
    await Dialog(link, session, screen).run()


class Dialog:
    """One terminal's conversation. Drafts are kept by turn, because a late delivery may meet the next turn's draft."""

    def __init__(self, link: Link, session: str, screen: Screen) -> None:
        self._link = link
        self._session = session
        self._screen = screen
        self._unsent: dict[str, tuple[str, str]] = {}
        self._mine: set[int] = set()
        self._shown: set[str] = set()
        self._drafts: dict[str, StreamingDraft] = {}
        self._turn = ""
        self._state = ""
        self._seen_a_turn = False
        self._told_away = False
        self._stale = asyncio.Event()
        self._to_send = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None
        screen.on_interrupt = self.interrupt

    async def run(self) -> None:
        """Raises `AssistantError` when the other end refuses to be listened to."""
        await self._greet()
        tasks = [asyncio.create_task(work) for work in (self._read(), self._send(), self._listen(), self._redraw())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if not await self._hand_over():
            await self._screen.show_remark(
                "Not sent, because the assistant was not reachable: "
                + " / ".join(text for _, text in self._unsent.values())
            )

    async def _read(self) -> None:
        while (text := await self._screen.read()) is not None and not is_leave_command(text):
            await self._screen.echo_input(text)
            if text.startswith("/"):
                await self._command(text)
            else:
                self._unsent[new_external_id()] = (self._session, text)
                self._to_send.set()

    def interrupt(self) -> None:
        """Ctrl-C: stop the running turn."""
        if self._turn:
            self._state = "stopping…"
            self._stale.set()
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    async def _stop(self) -> None:
        with contextlib.suppress(AssistantError):
            await self._link.stop(self._session)

    async def _greet(self) -> None:
        status = await self._link.status()
        await self._screen.show_remark(
            f"Nocturne {status.get('version', '')} · {status.get('model', '')} · /help lists commands, Ctrl-D leaves"
        )
        for problem in status.get("problems", ()):
            await self._screen.show_remark(f"Needs you: {problem}")

    async def _command(self, text: str) -> None:
        try:
            await self._screen.show_markdown(await self._link.run_command(text, self._session))
            self._switch(session_after_command(text, self._session))
        except AssistantError as error:
            await self._screen.show_remark(str(error))

    def _switch(self, session: str) -> None:
        """From now on what is typed goes there, and what happens there is shown. What was typed before goes where it
        was typed."""
        if session == self._session:
            return
        self._session = session
        self._forget_drafts()
        if self._hearing is not None:
            self._hearing.cancel()

    async def _send(self) -> None:
        """Hand over what was typed, until somebody took it."""
        lost = 0
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            if await self._hand_over():
                lost = 0
                continue
            lost += 1
            if lost == _TOLD_AFTER:
                await self._screen.show_remark(
                    "The assistant is not reachable; this is kept here and sent when it is back."
                )
            await asyncio.sleep(_pause(lost - 1))
            self._to_send.set()

    async def _hand_over(self) -> bool:
        """Say what nobody took yet, oldest first; False when nobody is there. What is refused is told and let go."""
        for external_id, (session, text) in list(self._unsent.items()):
            try:
                self._mine.add((await self._link.send_message(text, external_id, session)).inbox_id)
            except LinkLost:
                return False
            except AssistantError as error:
                await self._screen.show_remark(str(error))
            self._unsent.pop(external_id, None)
        return True

    async def _listen(self) -> None:
        """Listen to the session one is in, anew after each switch."""
        while True:
            self._hearing = asyncio.create_task(self._hear())
            try:
                await asyncio.wait([self._hearing])
            finally:
                self._hearing.cancel()
            if not self._hearing.cancelled():
                self._hearing.result()

    async def _hear(self) -> None:
        attempt = 0
        while True:
            try:
                async with aclosing(self._link.events(self._session)) as events:
                    async for name, data in events:
                        attempt = 0 if name == "hello" else attempt
                        await self._on(name, data)
            except LinkLost:
                pass
            if attempt == 0:
                self._forget_drafts()
                await self._screen.show_remark("Connection to the assistant lost; reconnecting…")
            await asyncio.sleep(_pause(attempt))
            attempt += 1

    async def _on(self, name: str, data: Mapping[str, Any]) -> None:
        match name:
            case "hello":
                self._to_send.set()
            case "turn":
                self._on_turn(data)
            case "delta":
                self._draft(data).feed(data["text"])
            case "discard":
                await self._withdraw(data)
            case "tool":
                self._draft(data)
                self._state = f"{data['name']}: {data['state']}…"
            case "notice":
                await self._screen.show_remark(data["text"])
            case "deliver":
                await self._deliver(data)
        self._stale.set()

    def _on_turn(self, data: Mapping[str, Any]) -> None:
        if data["state"] == "started":
            self._draft(data)
            self._state = "thinking… (Ctrl-C stops)"
        elif data["turn"] == self._turn:
            self._turn = self._state = ""

    def _draft(self, data: Mapping[str, Any]) -> StreamingDraft:
        """The draft of the turn that an event speaks of, which is the one that runs."""
        self._turn = data["turn"]
        self._seen_a_turn = True
        return self._drafts.setdefault(self._turn, StreamingDraft())

    async def _withdraw(self, data: Mapping[str, Any]) -> None:
        if self._draft(data).clear():
            await self._screen.show_remark("(The text above is withdrawn; the answer starts again.)")

    def _forget_drafts(self) -> None:
        self._drafts.clear()
        self._turn = self._state = ""
        self._screen.draw("", "")

    async def _deliver(self, data: Mapping[str, Any]) -> None:
        """Show a delivery once, then confirm it, as often as it is given."""
        key = str(data["key"])
        if key not in self._shown:
            await self._show(key, data)
            self._shown.add(key)
        with contextlib.suppress(LinkLost):
            await self._link.acknowledge(key)

    async def _introduce(self, data: Mapping[str, Any]) -> None:
        """Tell apart what answers somebody else: said before this terminal came, or at another one."""
        if data["inbox_id"] in self._mine or self._unsent:
            return
        if self._seen_a_turn:
            await self._screen.show_remark("In reply to a message from elsewhere:")
        elif not self._told_away:
            self._told_away = True
            await self._screen.show_remark("While you were away:")

    async def _show(self, key: str, data: Mapping[str, Any]) -> None:
        await self._introduce(data)
        turn = next((turn for turn in self._drafts if turn in key.split(":")), "")
        draft = self._drafts.pop(turn, StreamingDraft())
        if self._turn in ("", turn):
            self._screen.draw("", self._state)
        if data["kind"] == "notice":
            await self._screen.show_markdown(draft.tail)
            await self._screen.show_remark(data["body"])
            return
        rest = draft.unprinted_part(data["body"])
        if rest is None:
            await self._screen.show_remark("(The text above is withdrawn; this is the answer.)")
        await self._screen.show_markdown(data["body"] if rest is None else rest)

    async def _redraw(self) -> None:
        """Draw at most every frame, however fast the words come; print what no longer fits."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            draft = self._drafts.get(self._turn, StreamingDraft())
            await self._screen.show_markdown(draft.take_closed_blocks(self._screen.fits))
            self._screen.draw(draft.tail, self._state)
            await asyncio.sleep(_FRAME_SECONDS)


def _pause(attempt: int) -> float:
    """Seconds to wait before trying again."""
    return _RECONNECT_SECONDS[min(attempt, len(_RECONNECT_SECONDS) - 1)]


_PARSER = MarkdownIt("commonmark").enable("table")


class StreamingDraft:
    """`printed` characters of `text` stand on the screen for good."""

    def __init__(self) -> None:
        self.text = ""
        self.printed = 0

    def feed(self, text: str) -> None:
        self.text += text if self.text else text.lstrip()

    @property
    def tail(self) -> str:
        return self.text[self.printed :]

    def take_closed_blocks(self, fits: Callable[[str], bool]) -> str:
        """The closed blocks to print now so that the tail fits; empty when it does, or when nothing is closed."""
        tail = self.tail
        if not tail or fits(tail):
            return ""
        closed = tail[: _start_of_last_block(tail)]
        self.printed += len(closed)
        return closed

    def unprinted_part(self, body: str) -> str | None:
        """What of the final `body` is not on the screen yet; None when the screen shows something else."""
        return body[self.printed :] if body.startswith(self.text[: self.printed]) else None

    def clear(self) -> bool:
        """Forget all of it; True when some of it stands on the screen and has to be taken back in words."""
        stood = self.printed > 0
        self.text, self.printed = "", 0
        return stood


def _start_of_last_block(text: str) -> int:
    """Where the last top-level Markdown block of `text` begins, in characters."""
    starts = [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    if not starts:
        return 0
    return sum(len(line) for line in text.split("\n")[: starts[-1]]) + starts[-1]
