"""An interactive chat: what is typed goes out once, what happens is drawn, what is delivered is shown once.

The connection may break at any time. What was typed and not accepted is kept and sent again under the same id; what
was not confirmed is delivered again and recognised by its key.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from rich.console import Console

from assistant.cli.chat.answers import DELIVERED_WITHIN, ask_last_question_again, is_retry, new_external_id
from assistant.cli.chat.draft import StreamingDraft
from assistant.cli.chat.screen import Screen
from assistant.cli.handover import HandedOver, HandoverLink
from assistant.cli.link import Link, LinkLost
from assistant.cli.named_files import run_typed_command
from assistant.commands.argv import command_name, is_leave_command, session_after_command
from assistant.core.errors import AssistantError
from assistant.core.sessions import MAIN_SESSION, session_name
from assistant.core.text import drop_unfinished_word
from assistant.settings.settings import Settings

_FRAME_SECONDS = 0.08
_MENU_WITHIN = 5.0
_QUICK_SECONDS = 0.5
_RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
# A connection that broke just now is often back at once; then there is nothing to tell.
_TOLD_AFTER = 2
_LOST = "Connection to the assistant lost; reconnecting…"


async def run_dialog(link: Link, session: str, settings: Settings) -> None:
    """Talk until the person leaves."""
    screen = Screen(Console(highlight=False), settings.home.path / "chat_history")
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
        self._told_away = False
        self._is_asking_again = False
        self._stale = asyncio.Event()
        self._to_send = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._commands: dict[asyncio.Task[None], str] = {}
        self._happened = asyncio.Event()
        screen.on_interrupt = self.interrupt
        screen.conversation = _prompt_name(session)
        screen.menu.run = self._list_for_menu

    async def run(self) -> None:
        """Raises `AssistantError` when the other end refuses to be listened to."""
        await self._greet()
        tasks = [asyncio.create_task(work) for work in (self._read(), self._send(), self._listen(), self._redraw())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
            await self._finish()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if not await self._hand_over():
            await self._screen.show_remark(
                "Not sent, because the assistant was not reachable: "
                + " / ".join(text for _, text in self._unsent.values())
            )

    async def _finish(self) -> None:
        """What is under way in this process when the person leaves is done first."""
        if self._commands or (self._turn and isinstance(self._link, HandoverLink) and self._link.serves_here):
            await self._screen.show_remark("What is under way is finished first. Ctrl-C leaves now; nothing is lost.")
            await self._await_answer(self._turn)
        await asyncio.gather(*self._commands, return_exceptions=True)

    async def _await_answer(self, turn: str) -> None:
        """Until the answer of this turn is shown; one that ends without any is waited for a moment."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None) as waiting:
                while turn and not any(turn in key.split(":") for key in self._shown):
                    if self._turn != turn:
                        waiting.reschedule(asyncio.get_running_loop().time() + DELIVERED_WITHIN)
                    self._happened.clear()
                    await self._happened.wait()

    async def _read(self) -> None:
        while (text := await self._screen.read()) is not None and not is_leave_command(text):
            self._state = self._state if self._turn else self._idle_state
            self._stale.set()
            await self._screen.echo_input(text)
            if command_name(text):
                await self._command(text)
            else:
                self._unsent[new_external_id()] = (self._session, text)
                self._to_send.set()

    async def _list_for_menu(self, argv: Sequence[str]) -> Any:
        return (await self._link.run_argv(argv, self._session, _MENU_WITHIN)).value

    def interrupt(self) -> None:
        """Ctrl-C on an empty line: stop the running turn, or else say how to leave."""
        self._state = "stopping…" if self._turn else "To leave: Ctrl-D, or type exit."
        self._stale.set()
        if self._turn:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    async def _stop(self) -> None:
        with contextlib.suppress(AssistantError):
            await self._link.stop(self._session)

    async def _greet(self) -> None:
        status = await self._link.status()
        for line in greeting(status):
            await self._screen.show_remark(line)
        for problem in status.get("problems", ()):
            await self._screen.show_remark(f"Needs you: {problem}")

    async def _command(self, text: str) -> None:
        """Run it; one that takes long runs on while the next line is typed."""
        if command_name(text) == "stop" and self._turn:
            # The turn that ends says so.
            self.interrupt()
            return
        running = asyncio.create_task(self._run_command(text))
        await asyncio.wait([running], timeout=_QUICK_SECONDS)
        if running.done():
            running.result()
            return
        self._commands[running] = f"/{command_name(text)} is running…"
        running.add_done_callback(self._on_command_ended)
        self._state = self._state if self._turn else self._idle_state
        self._stale.set()

    def _on_command_ended(self, running: asyncio.Task[None]) -> None:
        del self._commands[running]
        self._state = self._state if self._turn else self._idle_state
        self._stale.set()

    @property
    def _idle_state(self) -> str:
        """What is shown above the line while no answer is being written."""
        return next(iter(self._commands.values()), "")

    async def _run_command(self, text: str) -> None:
        try:
            if is_retry(text):
                await self._ask_again()
                return
            await self._screen.show_markdown(await run_typed_command(self._link, text, self._session))
            self._switch(session_after_command(text, self._session))
        except AssistantError as error:
            await self._screen.show_remark(str(error))

    async def _ask_again(self) -> None:
        self._is_asking_again = True
        try:
            text, accepted = await ask_last_question_again(self._link, self._session)
            self._mine.add(accepted.inbox_id)
        finally:
            self._is_asking_again = False
        await self._screen.show_markdown(text)

    def _switch(self, session: str) -> None:
        """From now on what is typed goes there, and what happens there is shown. What was typed before goes where it
        was typed."""
        if session == self._session:
            return
        self._session = session
        self._screen.conversation = _prompt_name(session)
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
                lost = _LOST
            except HandedOver as error:
                lost = str(error)
            except LinkLost:
                lost = _LOST
            if attempt == 0:
                self._forget_drafts()
                await self._screen.show_remark(lost)
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
                self._state = "writing… (Ctrl-C stops)"
            case "discard":
                await self._withdraw(data)
            case "tool":
                self._draft(data)
                self._state = _progress_of(data["name"], data["state"])
            case "notice":
                if data.get("progress"):
                    self._state = data["text"]
                else:
                    await self._screen.show_remark(data["text"])
            case "deliver":
                await self._deliver(data)
        self._stale.set()
        self._happened.set()

    def _on_turn(self, data: Mapping[str, Any]) -> None:
        if data["state"] == "started":
            self._draft(data)
            self._state = "thinking… (Ctrl-C stops)"
        elif data["turn"] == self._turn:
            self._turn, self._state = "", self._idle_state

    def _draft(self, data: Mapping[str, Any]) -> StreamingDraft:
        """The draft of the turn that an event speaks of, which is the one that runs."""
        self._turn = data["turn"]
        return self._drafts.setdefault(self._turn, StreamingDraft())

    async def _withdraw(self, data: Mapping[str, Any]) -> None:
        if self._draft(data).clear():
            await self._screen.show_remark("(The text above is withdrawn; the answer starts again.)")

    def _forget_drafts(self) -> None:
        self._drafts.clear()
        self._turn, self._state = "", self._idle_state
        self._screen.draw("", self._state)

    async def _deliver(self, data: Mapping[str, Any]) -> None:
        """Show a delivery once, then confirm it, as often as it is given."""
        key = str(data["key"])
        if key not in self._shown:
            await self._show(key, data)
            self._shown.add(key)
        with contextlib.suppress(LinkLost):
            await self._link.acknowledge(key)

    async def _introduce(self, data: Mapping[str, Any]) -> None:
        """Tell apart what waited for this terminal, and what answers a message from another one. Reminders, notices and
        what a schedule asked for answer nobody, and say themselves what they are."""
        if data["inbox_id"] in self._mine or self._unsent or self._is_asking_again:
            return
        if data["waited"]:
            if not self._told_away:
                self._told_away = True
                await self._screen.show_remark("While you were away:")
        elif data["inbox_id"] is not None:
            await self._screen.show_remark("In reply to a message from elsewhere:")

    async def _show(self, key: str, data: Mapping[str, Any]) -> None:
        await self._introduce(data)
        if data["inbox_id"] is None and not data["waited"]:
            # It answers nobody who waits for it: a reminder, a notice.
            self._screen.ring()
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
            self._screen.draw(drop_unfinished_word(draft.tail), self._state)
            await asyncio.sleep(_FRAME_SECONDS)


def greeting(status: Mapping[str, Any]) -> Sequence[str]:
    """The first lines on the screen: what this is for somebody who never said anything, less for others."""
    model, keys = str(status.get("model", "")), "/help lists commands, Ctrl-D leaves"
    is_offline = model == "offline"
    if status.get("sessions") != []:
        return [f"Nocturne {status.get('version', '')} · {'offline mode' if is_offline else model} · {keys}"]
    return [
        "This is Nocturne: it keeps what you tell it, finds it again, and reminds you.",
        "Try: remember that Anna has the spare key · remind me to call Ines at 9",
        f"{'`assistant setup` connects a language model' if is_offline else f'{model} answers'}. {keys}",
    ]


def _prompt_name(session: str) -> str:
    """A conversation as the line that is typed names it; the main one needs no name."""
    return "" if session == MAIN_SESSION else session_name(session)


def _progress_of(tool: str, state: str) -> str:
    """What the assistant is doing, in words: the name of the tool that it runs (`set_reminder`), or that it goes on."""
    words = tool.replace("_", " ")
    return {"started": f"{words}…", "failed": f"{words} did not work; thinking…"}.get(state, "thinking… (Ctrl-C stops)")


def _pause(attempt: int) -> float:
    """Seconds to wait before trying again."""
    return _RECONNECT_SECONDS[min(attempt, len(_RECONNECT_SECONDS) - 1)]
