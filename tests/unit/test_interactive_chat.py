"""The interactive chat over a scripted link, with keys from a pipe and the screen kept as text."""

from __future__ import annotations

import asyncio
import io
import re
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console

from assistant.cli.chat.dialog import Dialog
from assistant.cli.chat.screen import Screen
from assistant.cli.link import LinkEvent, LinkLost
from assistant.commands.table import CommandResult
from assistant.core.errors import AssistantError
from assistant.core.records import InboxReceipt

ENTER, CTRL_C, CTRL_D, ALT_ENTER = "\r", "\x03", "\x04", "\x1b\r"


class ChatLink:
    """What the other end does is written by the test: `happen` puts an event into the stream, None breaks it."""

    def __init__(self) -> None:
        self.happens: asyncio.Queue[LinkEvent | None] = asyncio.Queue()
        self.away = False
        self.stuck: asyncio.Event | None = None
        self.said: list[tuple[str, str]] = []
        self.sessions: list[str] = []
        self.listened: list[str] = []
        self.heard = asyncio.Event()
        self.confirmed: list[str] = []
        self.confirmation = asyncio.Event()
        self.commands: list[str] = []
        self.stops = asyncio.Event()

    def happen(self, event: str, **data: Any) -> None:
        self.happens.put_nowait((event, data))

    def deliver(self, key: str, body: str, **about: Any) -> None:
        delivery = {"kind": "reply", "message_id": 9, "inbox_id": 1, "waited": False, **about}
        self.happen("deliver", key=key, body=body, **delivery)

    def turn(self, turn: str, state: str) -> None:
        self.happen("turn", turn=turn, state=state, message_ids=[1])

    async def send_message(self, text: str, external_id: str, session: str, media: object = ()) -> InboxReceipt:
        if self.away:
            raise LinkLost()
        if self.stuck is not None and not self.stuck.is_set():
            self.stuck.set()
            await asyncio.Event().wait()
        duplicate = external_id in [known for known, _ in self.said]
        self.said.append((external_id, text))
        self.sessions.append(session)
        self.heard.set()
        if "refuse" in text:
            raise AssistantError("The disk is full. Nothing was kept.")
        return InboxReceipt(len(self.said), 100, duplicate)

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        if self.away:
            raise LinkLost()
        self.listened.append(session)
        yield "hello", {"session": session}
        while (event := await self.happens.get()) is not None:
            yield event
        raise LinkLost()

    async def acknowledge(self, key: str) -> None:
        self.confirmed.append(key)
        self.confirmation.set()

    async def run_command(self, text: str, session: str) -> str:
        self.commands.append(text)
        return f"did *{text}*"

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        raise LinkLost()

    async def stop(self, session: str) -> bool:
        self.stops.set()
        return True

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return {}

    async def status(self) -> Mapping[str, Any]:
        return {"version": "9", "model": "scripted", "problems": ["the disk is nearly full"]}


class TerminalScreen(io.StringIO):
    """Everything that reaches the terminal; `written` is set at each write."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


class ChatSession:
    def __init__(self, link: ChatLink, keys: PipeInput, paper: TerminalScreen) -> None:
        self.link, self.keys, self._paper = link, keys, paper

    @property
    def raw(self) -> str:
        return self._paper.getvalue()

    @property
    def text(self) -> str:
        """What was printed, without our own colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.raw)

    async def confirmed(self, key: str) -> None:
        while key not in self.link.confirmed:
            self.link.confirmation.clear()
            await self.link.confirmation.wait()

    async def printed(self, text: str) -> None:
        while text not in self.text:
            self._paper.written.clear()
            await self._paper.written.wait()


@asynccontextmanager
async def chatting(
    home: Path, link: ChatLink | None = None, *, height: int = 40, prompt_on_paper: bool = False
) -> AsyncIterator[ChatSession]:
    """A running dialog; it is left with Ctrl-D at the end. The prompt is drawn nowhere unless `prompt_on_paper`."""
    link = link or ChatLink()
    paper = TerminalScreen()
    output = Vt100_Output(paper, lambda: Size(height, 80), term="xterm") if prompt_on_paper else DummyOutput()
    with create_pipe_input() as keys, create_app_session(input=keys, output=output):
        console = Console(file=paper, force_terminal=True, width=80, height=height, highlight=False)
        screen = Screen(console, home / "chat_history")
        running = asyncio.create_task(Dialog(link, "main", screen).run())
        async with asyncio.timeout(20):
            yield ChatSession(link, keys, paper)
            keys.send_text(CTRL_D)
            await running


async def test_a_line_is_said_once_and_its_answer_shown_once_and_confirmed(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.keys.send_text("hello there" + ENTER)
        await chat.link.heard.wait()
        chat.link.turn("t1", "started")
        for piece in ("An answer", " in **two**", " pieces."):
            chat.link.happen("delta", turn="t1", text=piece)
        chat.link.turn("t1", "answered")
        chat.link.deliver("reply:t1", "An answer in **two** pieces.")
        await chat.confirmed("reply:t1")
    assert [text for _, text in chat.link.said] == ["hello there"]
    assert chat.text.count("An answer in two pieces.") == 1
    assert "› hello there" in chat.text


async def test_the_greeting_names_the_model_and_what_needs_the_person(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        await chat.printed("the disk is nearly full")
    assert "scripted" in chat.text


async def test_a_delivery_given_again_is_confirmed_again_and_not_shown_again(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.deliver("reply:t1", "only once")
        chat.link.deliver("reply:t1", "only once")
        chat.link.deliver("reply:t2", "the other")
        await chat.confirmed("reply:t2")
    assert chat.link.confirmed == ["reply:t1", "reply:t1", "reply:t2"]
    assert chat.text.count("only once") == 1


async def test_the_bell_rings_for_what_answers_nobody_and_comes_while_it_is_open(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.deliver("reply:t1", "an answer")
        chat.link.deliver("reminder:1", "Reminder: call mum", inbox_id=None, waited=True)
        await chat.confirmed("reminder:1")
        assert chat.raw.count("\a") == 0
        chat.link.deliver("reminder:2", "Reminder: call dad", inbox_id=None)
        await chat.confirmed("reminder:2")
        assert chat.raw.count("\a") == 1


async def test_what_was_pending_is_shown_on_attach_under_a_heading(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.deliver("reply:t1", "an old answer", waited=True)
        chat.link.deliver("notice:t2", "an old notice", kind="notice", waited=True)
        await chat.confirmed("notice:t2")
    assert chat.text.count("While you were away:") == 1
    assert chat.text.index("While you were away:") < chat.text.index("an old answer") < chat.text.index("an old notice")


async def test_an_answer_to_what_was_just_said_is_not_announced_as_old(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.keys.send_text("hi" + ENTER)
        await chat.link.heard.wait()
        await chat.printed("› hi")
        chat.link.turn("t1", "started")
        chat.link.deliver("reply:t1", "hello")
        await chat.confirmed("reply:t1")
    assert "While you were away" not in chat.text and "said elsewhere" not in chat.text


async def test_what_was_typed_while_the_daemon_is_away_is_sent_when_it_is_back_under_the_same_id(
    tmp_path: Path,
) -> None:
    async with chatting(tmp_path) as chat:
        await chat.printed("scripted")
        chat.link.away = True
        chat.link.happens.put_nowait(None)
        chat.keys.send_text("keep this" + ENTER)
        await chat.printed("kept here")
        chat.link.away = False
        await chat.link.heard.wait()
        chat.link.deliver("reply:t1", "kept and answered")
        await chat.confirmed("reply:t1")
    assert [text for _, text in chat.link.said] == ["keep this"]
    assert "onnection to the assistant lost" in chat.text


async def test_what_is_refused_is_told_and_not_sent_again(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.keys.send_text("refuse this" + ENTER)
        await chat.printed("The disk is full. Nothing was kept.")
        chat.link.happens.put_nowait(None)
        chat.link.deliver("reply:t1", "back")
        await chat.confirmed("reply:t1")
    assert len(chat.link.said) == 1


async def test_leaving_while_the_daemon_is_away_names_what_was_not_sent(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        await chat.printed("scripted")
        chat.link.away = True
        chat.keys.send_text("never arrives" + ENTER)
        await chat.printed("kept here")
    assert "Not sent, because the assistant was not reachable: never arrives" in chat.text


async def test_what_is_being_sent_while_the_person_leaves_is_sent_to_the_end(tmp_path: Path) -> None:
    link = ChatLink()
    link.stuck = asyncio.Event()
    async with chatting(tmp_path, link) as chat:
        chat.keys.send_text("one last thing" + ENTER)
        await link.stuck.wait()
    assert [text for _, text in chat.link.said] == ["one last thing"]


async def test_alt_enter_makes_a_new_line_and_a_paste_keeps_its_lines(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.keys.send_text("one" + ALT_ENTER + "\x1b[200~two\nthree\x1b[201~" + ENTER)
        await chat.link.heard.wait()
    assert chat.link.said[0][1] == "one\ntwo\nthree"


async def test_ctrl_c_clears_the_line_and_stops_the_turn_that_runs(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.turn("t1", "started")
        chat.link.deliver("notice:x", "seen", kind="notice")
        await chat.confirmed("notice:x")
        chat.keys.send_text("not this" + CTRL_C)
        chat.keys.send_text("but this" + ENTER)
        await chat.link.heard.wait()
        assert not chat.link.stops.is_set()
        chat.keys.send_text(CTRL_C)
        await chat.link.stops.wait()
    assert [text for _, text in chat.link.said] == ["but this"]


async def test_commands_are_run_by_the_other_end_and_quit_leaves(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.keys.send_text("/todo add milk" + ENTER)
        await chat.printed("did /todo add milk")
        chat.keys.send_text("/quit" + ENTER)
    assert chat.link.commands == ["/todo add milk"]
    assert chat.link.said == []


async def test_no_escape_sequence_of_an_answer_reaches_the_terminal(tmp_path: Path) -> None:
    attack = "before \x1b]52;c;ZXZpbA==\x07\x1b[5;5H after [a](https://evil.example) `\x1b[41m` \x9b2J"
    async with chatting(tmp_path, prompt_on_paper=True) as chat:
        chat.link.turn("t1", "started")
        chat.link.happen("delta", turn="t1", text=attack)
        chat.link.happen("tool", turn="t1", name="\x1b[45mlook_up", state="started", call="c")
        await chat.printed("look up…")
        chat.link.happen("tool", turn="t1", name="\x1b[45mlook_up", state="failed", call="c")
        await chat.printed("did not work; thinking…")  # the words before it stand there already
        chat.link.happen("notice", turn="t1", text=attack)
        chat.link.deliver("reply:t1", attack)
        await chat.confirmed("reply:t1")
        chat.keys.send_text("\x1b[200~pasted \x1b[5;5H\x1b[201~" + ENTER)
        await chat.link.heard.wait()
    for sequence in ("\x1b]", "\x1b[5;5H", "\x1b[41m", "\x07", "\x9b"):
        assert sequence not in chat.raw
    assert not re.search(r"\x1b\[[0-9;]*\b4[15]\b[0-9;]*m", chat.raw)
    assert "https://evil.example" in chat.text


async def test_an_unfinished_answer_is_drawn_above_the_input_line_in_whole_words(tmp_path: Path) -> None:
    async with chatting(tmp_path, prompt_on_paper=True) as chat:
        chat.link.turn("t1", "started")
        await chat.printed("thinking…")
        chat.link.happen("delta", turn="t1", text="half an ans")
        await chat.printed("half an")
        chat.keys.send_text("typed meanwhile" + ENTER)
        await chat.link.heard.wait()
    assert chat.link.said[0][1] == "typed meanwhile"
    assert "half an ans" not in chat.text


async def test_a_long_answer_moves_into_the_scrollback_and_is_shown_whole_once(tmp_path: Path) -> None:
    paragraphs = [f"paragraph {n:03}\n\n" for n in range(60)]
    async with chatting(tmp_path, height=20) as chat:
        chat.link.turn("t1", "started")
        for paragraph in paragraphs:
            chat.link.happen("delta", turn="t1", text=paragraph)
        await chat.printed("paragraph 010")
        chat.link.turn("t1", "answered")
        chat.link.deliver("reply:t1", "".join(paragraphs).strip())
        await chat.confirmed("reply:t1")
    assert re.findall(r"paragraph (\d+)", chat.text) == [f"{n:03}" for n in range(60)]


async def test_a_withdrawn_draft_leaves_only_the_answer(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.turn("t1", "started")
        chat.link.happen("delta", turn="t1", text="let me look")
        chat.link.happen("discard", turn="t1")
        chat.link.happen("delta", turn="t1", text="found it")
        chat.link.turn("t1", "answered")
        chat.link.deliver("reply:t1", "found it")
        await chat.confirmed("reply:t1")
    assert "let me look" not in chat.text
    assert chat.text.count("found it") == 1


async def test_a_draft_that_stood_on_the_screen_is_withdrawn_in_words(tmp_path: Path) -> None:
    async with chatting(tmp_path, height=14) as chat:
        chat.link.turn("t1", "started")
        chat.link.happen("delta", turn="t1", text="one guess\n\n" * 30)
        await chat.printed("one guess")
        chat.link.happen("discard", turn="t1")
        chat.link.happen("delta", turn="t1", text="found it")
        chat.link.turn("t1", "answered")
        chat.link.deliver("reply:t1", "found it")
        await chat.confirmed("reply:t1")
    assert chat.text.index("one guess") < chat.text.index("starts again") < chat.text.index("found it")
    assert chat.text.count("found it") == 1


async def test_a_late_delivery_does_not_disturb_the_next_answer(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.turn("t1", "started")
        chat.link.happen("delta", turn="t1", text="the first answer")
        chat.link.turn("t1", "answered")
        chat.link.turn("t2", "started")
        chat.link.happen("delta", turn="t2", text="the second")
        chat.link.deliver("reply:t1", "the first answer")
        chat.link.happen("delta", turn="t2", text=" answer")
        chat.link.turn("t2", "answered")
        chat.link.deliver("reply:t2", "the second answer")
        await chat.confirmed("reply:t2")
    assert chat.text.count("the first answer") == chat.text.count("the second answer") == 1


async def test_a_stopped_answer_leaves_what_was_written_and_the_notice(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        chat.link.turn("t1", "started")
        chat.link.happen("delta", turn="t1", text="half an ans")
        chat.link.turn("t1", "aborted")
        chat.link.deliver("notice:t1", "Stopped.", kind="notice")
        await chat.confirmed("notice:t1")
    assert chat.text.index("half an ans") < chat.text.index("Stopped.")


async def test_what_is_typed_is_kept_for_the_next_time_and_private(tmp_path: Path) -> None:
    history = tmp_path / "chat_history"
    history.touch(0o644)
    async with chatting(tmp_path) as chat:
        chat.keys.send_text("remember this line" + ENTER)
        await chat.link.heard.wait()
    assert "remember this line" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
