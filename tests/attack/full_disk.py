"""A disk that fills and gets room again, over and over, while somebody talks and works: at each step there is no room,
a few pages of it, or plenty, drawn from the seed.

Whatever is refused is refused in words, at once; what was accepted is answered once, when there is room, by the same
process; then nobody is told of a full disk any more, and the home is sound. Needs the right to mount a file system of
its own: without it nothing is tried.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from structlog.testing import capture_logs

from assistant.core.errors import AssistantError
from assistant.core.messages import ToolCall
from assistant.core.records import is_answer_key
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.attack.tally import Tally
from tests.crash.homes import scratch
from tests.support.faulty_disk import MountedDisk, can_mount, mounted_disk
from tests.support.scripted import RecordingBridge, ScriptedModel, SteppingClock, owner_message

KIND = "full-disk"
CASES = 60
_STEPS = 30
# Pages are 4 kB: each of these runs out at another write of a turn.
_ROOM = (0, 4_096, 12_288, 40_960, 131_072, 524_288)
_COMMANDS = (
    "/todo oil for the lamp",
    "/remind stretch --at 'tomorrow at 9'",
    "/pins add The dog is called Flint",
    "/compact",
    "/reset --yes",
    "/sleep",
    "/undo",
    "/status",
    "/search lamp",
    "/memory list",
    "/todo",
    "/forget boat",
)
_WORDS = "boat lamp river pear chalk violin"
_SECONDS = 900.0


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    tried, failures = 0, []
    for case in range(cases) if only is None else [only]:
        if time.monotonic() >= until or not can_mount():
            break
        with TemporaryDirectory(dir=scratch()) as folder, mounted_disk(Path(folder) / "disk") as disk, capture_logs():
            problems = asyncio.run(_Case(disk, Random(f"{seed} {case}")).run())
        tried += 1
        if problems:
            failures.append(f"case {case}: {'; '.join(problems)}")
    return Tally(KIND, tried, tuple(failures))


class _Case:
    def __init__(self, disk: MountedDisk, chance: Random) -> None:
        self._disk, self._chance = disk, chance
        self._clock, self._bridge = SteppingClock(), RecordingBridge()
        self._accepted: dict[str, int] = {}
        self._problems: list[str] = []
        self._is_over = False

    async def run(self) -> list[str]:
        settings = load_settings(
            None,
            {
                "ASSISTANT_HOME": str(self._disk.place / "home"),
                "ASSISTANT_SLEEP__AT": "",
                "ASSISTANT_BACKUP__AT": "",
                "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "8000",
                "TIKTOKEN_CACHE_DIR": "",
            },
        )
        model = ScriptedModel(lambda _: self._answer())
        app = build_app(settings, self._clock, bridges={"kept": self._bridge}, model=model)
        await app.start()
        running = asyncio.create_task(app.runtime.run())
        try:
            async with asyncio.timeout(_SECONDS):
                for number in range(_STEPS):
                    await self._step(app, number)
                await self._settle(app)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is a failure of this case
            self._problems.append(repr(error)[:400])
        finally:
            self._disk.free()
            await app.stop(0)
            await asyncio.gather(running, return_exceptions=True)
            app.close()
        return self._problems

    def _answer(self) -> str | ToolCall:
        """What the model says, or does: the disk may be full when it has been thought of."""
        self._change_room(0.2)
        if self._chance.random() < 0.2:
            items = [f"thing {self._chance.random()}"]
            return ToolCall(f"c{self._chance.random()}", "manage_todo_list", {"action": "add", "items": items})
        return " ".join(self._chance.choices(_WORDS.split(), k=self._chance.choice((3, 300, 3_000))))

    def _change_room(self, how_likely: float) -> None:
        if not self._is_over and self._chance.random() < how_likely:
            room = self._chance.choice((*_ROOM, None, None))
            self._disk.free()
            if room is not None:
                self._disk.leave(room)

    async def _step(self, app: App, number: int) -> None:
        self._change_room(0.5)
        try:
            if self._chance.random() < 0.6:
                name = f"m{number}"
                text = " ".join(self._chance.choices(_WORDS.split(), k=self._chance.choice((3, 100, 2_000))))
                self._accepted[name] = (await app.runtime.accept(owner_message(text, external_id=name))).inbox_id
            else:
                await app.commands.run(self._chance.choice(_COMMANDS), "main", bridge="kept", target="main")
        except AssistantError as error:
            if not str(error).strip() or len(str(error).splitlines()) > 3:
                self._problems.append(f"refused in these words: {str(error)[:300]!r}")
        await self._go_on(app, self._chance.choice((1, 20)))

    async def _go_on(self, app: App, rounds: int) -> None:
        """Some time goes by, with as many wake-ups."""
        for _ in range(rounds):
            self._clock.now += timedelta(minutes=3)
            app.check_due()
            app.maintenance.run()
            app.running_turns.wake.set()
            for _ in range(30):
                await asyncio.sleep(0)

    async def _settle(self, app: App) -> None:
        """There is room; the same process does what it has not done, and tells of no trouble."""
        self._is_over = True
        self._disk.free()
        # As the status says, where a sleep could not write what it learned.
        await app.commands.run("/sleep", "main", bridge="kept", target="main")
        for _ in range(3):
            await self._go_on(app, 20)
            await app.runtime.wait_until_idle()
            await app.dispatcher.flush()
        self._problems += self._find_wrong(app)

    def _find_wrong(self, app: App) -> Iterator[str]:
        # Where the disk did not take that something was sent, it is sent again under its key, and the network shows it
        # once: it remembers keys for longer than this takes.
        shown = {(item.outgoing.key, item.outgoing.body): item.outgoing for item in self._bridge.sent}
        if len(shown) != len({key for key, _ in shown}):
            yield "something was sent again with other words"
        answers: dict[int | None, list[str]] = {}
        for outgoing in shown.values():
            if is_answer_key(outgoing.key):
                answers.setdefault(outgoing.inbox_id, []).append(outgoing.key)
        for name, inbox_id in self._accepted.items():
            item = app.stores.conversation.inbox_item(inbox_id)
            if item is None or item.state not in ("answered", "failed", "superseded"):
                yield f"{name} was accepted and is {item and item.state}"
            elif item.state == "answered" and len(answers.get(inbox_id, ())) != 1:
                yield f"{name} was answered by {answers.get(inbox_id)}"
        yield from (f"status: {line}" for line in app.status()["problems"] if "No space" in line or "full" in line)
        if blocked := app.runtime.status()["blocked"]:
            yield f"still blocked: {blocked}"
        yield from (f"verify: {problem}" for problem in app.stores.verifier.verify().problems)
