"""The terminal of an interactive chat: one prompt that is always there, everything else printed above it.

The prompt is prompt_toolkit's; what is printed is drawn by rich. An answer that is being written stands directly above
the input line and moves into the scrollback when it is complete, so typing is possible at any time. All text of others
passes through `clean` here: no escape sequence but our own reaches the terminal.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.utils import is_dumb_terminal
from rich.console import Console, Group, RenderableType
from rich.text import Text

from assistant.cli.chat.completion import CommandCompleter
from assistant.cli.output import clean_for_terminal, render_markdown

_PROMPT = "› "
# Lines of the screen left to the input and its completions while an answer is drawn above it.
_ROOM_FOR_COMPLETIONS = 4
_ROOM_FOR_INPUT = _ROOM_FOR_COMPLETIONS + 4
_FEWEST_LINES = 4


class Screen:
    """`menu` opens after a slash. `on_interrupt` is called at Ctrl-C on an empty line. `conversation` is named before
    the line that is typed, where it has a name."""

    def __init__(self, console: Console, history: Path) -> None:
        self.menu = CommandCompleter()
        self.on_interrupt: Callable[[], None] = lambda: None
        self.conversation = ""
        self._console = console
        self._above = ""
        # Nothing can be drawn again there: what is said is printed below the line that is being typed, which then
        # follows once more.
        self._is_dumb = is_dumb_terminal()
        self._is_reading = False
        self._prompt: PromptSession[str] = PromptSession(
            message=self._message,
            history=FileHistory(str(_private_file(history))),
            completer=self.menu,
            complete_while_typing=True,
            multiline=True,
            prompt_continuation="  ",
            key_bindings=_keys(lambda: self.on_interrupt()),
            erase_when_done=True,
            reserve_space_for_menu=_ROOM_FOR_COMPLETIONS,
        )
        # A terminal that does not tell where its cursor is can be used all the same; the library prints a warning.
        self._prompt.app.renderer.cpr_not_supported_callback = None

    async def read(self) -> str | None:
        """What the person typed; None when they leave (Ctrl-D)."""
        self.menu.clear()
        while True:
            self._is_reading = True
            try:
                return await self._prompt.prompt_async()
            except EOFError:
                return None
            except KeyboardInterrupt:
                # A dumb terminal has the library's own Ctrl-C, and no place above the line for what comes of it.
                self.on_interrupt()
            finally:
                self._is_reading = False
            self._print(Text("Ctrl-C stops the answer that is being written. To leave: Ctrl-D, or type exit."))

    async def echo_input(self, text: str) -> None:
        """What the person said, as it stays on the screen."""
        if not self._is_dumb:
            await self._show(Text(self._line_start + clean_for_terminal(text), style="bold"))

    async def show_markdown(self, text: str) -> None:
        if text.strip():
            await self._show(Group(render_markdown(text), Text()))

    async def show_remark(self, text: str) -> None:
        await self._show(Text(clean_for_terminal(text), style="dim"))

    def ring(self) -> None:
        """The bell of the terminal, where somebody looks at another window."""
        self._console.bell()

    async def _show(self, drawn: RenderableType) -> None:
        await run_in_terminal(lambda: self._print(drawn))

    def _print(self, drawn: RenderableType) -> None:
        typing = self._is_dumb and self._is_reading
        if typing:
            self._console.print()
        self._console.print(drawn)
        if typing:
            self._console.print(self._line_start + self._prompt.default_buffer.text, end="", markup=False)

    def draw(self, draft: str, state: str) -> None:
        """Show the end of an unfinished answer, and what is going on, directly above the input line."""
        if self._is_dumb:
            return
        lines = self._lines(draft)[-self._room() :]
        if state:
            lines += self._rendered(Text(clean_for_terminal(state), style="dim")).splitlines()
        above = "".join(f"{line}\n" for line in lines)
        if above != self._above:
            self._above = above
            self._prompt.app.invalidate()

    def fits(self, draft: str) -> bool:
        """Whether all of an unfinished answer can be seen above the input line."""
        return len(self._lines(draft)) <= self._room()

    def _room(self) -> int:
        return max(_FEWEST_LINES, self._console.height - _ROOM_FOR_INPUT)

    def _lines(self, draft: str) -> list[str]:
        return self._rendered(render_markdown(draft)).splitlines() if draft.strip() else []

    def _rendered(self, drawn: RenderableType) -> str:
        with self._console.capture() as captured:
            self._console.print(drawn)
        return captured.get()

    def _message(self) -> AnyFormattedText:
        return ANSI(self._above + self._line_start)

    @property
    def _line_start(self) -> str:
        return f"{self.conversation} {_PROMPT}".lstrip()


def _private_file(path: Path) -> Path:
    """Make the history readable by its owner alone before anything is written to it."""
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    path.chmod(0o600)
    return path


def _keys(on_interrupt: Callable[[], None]) -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing)
    def _send(event: KeyPressEvent) -> None:
        if event.current_buffer.text.strip():
            event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    @keys.add("c-c", filter=typing)
    def _interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            on_interrupt()

    return keys
