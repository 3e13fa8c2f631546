"""The conversation held with the real app: real stores, runtime, compaction and SDK, over HTTP with the strict
server. Time is injected; between sittings the app naps, and at night it sleeps, as the daemon would let it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from assistant.core.checkpoints import Checkpoint
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings, load_settings
from assistant.wire.app import App, build_app
from tests.study.answerer import Answerer, QuestionOutcomes
from tests.study.conversation import StudyConversation, StudyTurn
from tests.study.measure import MODEL, MeasuredRequest, StudyServer
from tests.support.scripted import RecordingBridge, SteppingClock, owner_message

_A_WHILE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class StudyRun:
    """What came of a conversation. `frame` are the system blocks and tools of the first request; `reserve` is the room
    that was kept for answers, `refused` the complaints of the strict server, `failed` turns that had no answer."""

    seen: tuple[MeasuredRequest, ...]
    outcomes: QuestionOutcomes
    checkpoints: tuple[Checkpoint, ...]
    refused: tuple[str, ...]
    failed: tuple[str, ...]
    frame: Mapping[str, object]
    reserve: int


async def run_study(
    conversation: StudyConversation,
    home: Path,
    *,
    window: int,
    keep: int,
    sleeps: bool = True,
    rests: bool = True,
    wanted: Mapping[str, str] | None = None,
) -> StudyRun:
    """Hold the conversation in a new home, with a model of that window whose summaries keep so many facts. `wanted`
    are settings beside the defaults, as in {"compaction.target": "0.4"}. Without `rests` nothing runs between
    sittings, as if the machine slept."""
    clock = SteppingClock(conversation.turns[0].at)
    answerer = Answerer(conversation.facts, keep, conversation.wishes)
    with StudyServer(answerer, window, lambda: clock.now.timestamp()) as server:
        settings = _settings(home, server, wanted or {})
        _furnish(settings.home.workspace, conversation.files)
        app = build_app(settings, clock, bridges={"kept": (bridge := RecordingBridge())})
        life = _Life(app, bridge, clock, server, answerer)
        try:
            await app.start()
            await life.live(conversation, sleeps=sleeps, rests=rests)
            return life.told()
        finally:
            await app.stop(5)
            await app.models.aclose()
            app.close()


class _Life:
    def __init__(
        self, app: App, bridge: RecordingBridge, clock: SteppingClock, server: StudyServer, answerer: Answerer
    ) -> None:
        self._app = app
        self._bridge = bridge
        self._clock = clock
        self._server = server
        self._answerer = answerer
        self._failed: list[str] = []
        self._frame: dict[str, object] = {}

    async def live(self, conversation: StudyConversation, *, sleeps: bool, rests: bool) -> None:
        for earlier, turn in zip((None, *conversation.turns), conversation.turns, strict=False):
            if rests and earlier is not None and turn.at - earlier.at > _A_WHILE:
                self._app.maintenance.run()
                if sleeps:
                    await self._rest(earlier.at, turn.at)
            await self._hold(turn)

    async def _hold(self, turn: StudyTurn) -> None:
        self._clock.now = turn.at
        self._answerer.turn, self._server.turn = turn, turn.number
        await self._app.runtime.accept(owner_message(turn.text, external_id=str(turn.number)))
        await self._app.runtime.wait_until_idle()
        await self._app.background_compaction.wait_until_idle()
        await self._app.dispatcher.flush()
        if not self._frame:
            body = self._server.bodies[0]
            self._frame = {key: body[key] for key in ("system", "tools")}
        if not any(item.outgoing.kind == "reply" for item in self._bridge.sent):
            self._failed += [item.outgoing.body for item in self._bridge.sent] or ["nothing was sent"]
        self._bridge.sent.clear()
        self._bridge.events.clear()
        self._server.forget_bodies()

    async def _rest(self, since: datetime, until: datetime) -> None:
        """What happens in a gap: a nap when it is quiet for long enough, sleep at night."""
        for minutes in (5.5, 61):
            if since + timedelta(minutes=minutes) < until:
                self._clock.now = since + timedelta(minutes=minutes)
                self._app.background_compaction.check_due()
                await self._app.background_compaction.wait_until_idle()
        wanted = self._app.settings.values.sleep
        nap = since + timedelta(minutes=wanted.nap_minutes, seconds=30)
        if wanted.nap_minutes and nap < until:
            self._clock.now = max(nap, self._clock.now)
            self._app.sleep.scheduler.check_due()
            if self._app.sleep.scheduler.is_asleep():
                await self._app.sleep.scheduler.run_now("nap")
        for night in _nights(since, until, wanted.at):
            self._clock.now = night
            await asleep(self._app)
        self._server.forget_bodies()

    def told(self) -> StudyRun:
        measures = self._app.contexts.meter
        terms = measures.terms(MAIN_SESSION)
        assert terms is not None
        return StudyRun(
            tuple(self._server.seen()),
            self._answerer.outcomes,
            tuple(self._app.stores.conversation.checkpoints(MAIN_SESSION)),
            tuple(self._server.refused),
            tuple(self._failed),
            self._frame,
            terms.budgets.reserve,
        )


async def asleep(app: App) -> None:
    """One night."""
    await app.sleep.scheduler.run_now("sleep")


def _nights(since: datetime, until: datetime, at: str) -> list[datetime]:
    """The moments between two others at which the nightly sleep begins."""
    if not at:
        return []
    hour, minute = map(int, at.split(":"))
    first = since.replace(hour=hour, minute=minute, second=0, microsecond=0)
    days = (first + timedelta(days=n) for n in itertools.count())
    return [night for night in itertools.takewhile(lambda night: night < until, days) if night > since]


def _settings(home: Path, server: StudyServer, wanted: Mapping[str, str]) -> Settings:
    environment = {
        "ASSISTANT_HOME": str(home),
        "ASSISTANT_HOME__TIMEZONE": "UTC",
        "ASSISTANT_MODEL__NAME": MODEL,
        "ASSISTANT_MODEL__FALLBACK": "[]",
        "ASSISTANT_BUDGET__DAILY_USD": "0",
        "ASSISTANT_BUDGET__MONTHLY_USD": "0",
        "ANTHROPIC_API_KEY": server.key,
        "ANTHROPIC_BASE_URL": server.url,
    }
    named = {f"ASSISTANT_{name.upper().replace('.', '__')}": value for name, value in wanted.items()}
    return load_settings(None, {**environment, **named})


def _furnish(workspace: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
