"""The runtime: what came in becomes turns, what came of them goes out, and nothing falls between.

One pass is `tick(now)`: every session that has accepted messages and no turn running gets one, side by side, one turn
at a time each; then the outboxes are pumped. Everything durable is in the stores, so a runtime that is killed and
built again continues where it was (`start`). Whatever is raised in one session's work ends there: a bug in a turn ends
that turn with a notice and is logged, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from assistant.core.bridge_api import TurnEvent
from assistant.core.errors import HomeReplaced, StoreError
from assistant.core.messages import Message
from assistant.core.notices import NoticeKind
from assistant.core.records import InboxItem, InboxReceipt, IncomingMessage, Turn, is_answer_key
from assistant.core.sessions import session_role
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, ShutdownTimeouts
from assistant.core.store_ports import Conversation, Outbox
from assistant.runtime.running_turns import RunningTurns
from assistant.runtime.turn import TurnControl, TurnOutcome, TurnRunner, prepare_if_long
from assistant.runtime.turn_context import TurnContextBuilder
from assistant.runtime.turn_outcomes import TurnOutcomes
from assistant.runtime.voice import VoiceMessages
from assistant.service.heartbeat import RuntimeActivity

log = structlog.get_logger()

_ACCEPTED_AT_ONCE = 4


class Runtime:
    """Inbox -> turns -> outbox for all sessions of a home."""

    def __init__(
        self,
        conversation: Conversation,
        outbox: Outbox,
        turns: TurnRunner,
        turn_context: TurnContextBuilder,
        running: RunningTurns,
        clock: Callable[[], datetime],
        *,
        wake_outbox: Callable[[], None],
        show: Callable[[TurnEvent], None],
        follow_turn: Callable[[Turn], AbstractContextManager[None]],
        check_home: Callable[[bool], None],
        store_attachments: Callable[[IncomingMessage, datetime], IncomingMessage],
        voice: VoiceMessages,
    ) -> None:
        """- `wake_outbox`: what is in the outbox may be sent now.
        - `show`: shows what happens to everybody who looks on; while `follow_turn` is open, where its messages came
          from as well.
        - `check_home`: raises `StoreError` while the data folder is away, or does not take what it refused.
        - `store_attachments`: stores the files of a message, and gives what is to be accepted.
        - `voice`: turns recordings into text before a turn begins.
        """
        self._conversation = conversation
        self._outbox = outbox
        self._turns = turns
        self._turn_context = turn_context
        self._running = running
        self._wake = running.wake
        self._clock = clock
        self._wake_outbox = wake_outbox
        self._show = show
        self._follow_turn = follow_turn
        self._check_home = check_home
        self._store_attachments = store_attachments
        self._voice = voice
        self.on_turn_ended: Callable[[str], None] = lambda session: None
        self._accepting = asyncio.Semaphore(_ACCEPTED_AT_ONCE)
        self._write_refused = False
        self._store_error = ""
        self._outcomes = TurnOutcomes()
        self._stopping = False
        self._last_tick: datetime | None = None
        self._progress_count = 0
        # By session, what looks up what goes with the message that a turn begins with; and what it failed with.
        self._beginning: dict[str, asyncio.Task[None]] = {}
        self._fault: BaseException | None = None

    # ------------------------------------------------------------------------------------------------------- life cycle

    async def start(self, recover: Callable[[datetime], Awaitable[None]]) -> None:
        """Finish what an earlier process left, `recover` for other rooms. Raises `StoreError`."""
        recovery = self._conversation.recover_after_crash(self._clock())
        if recovery.adopted_records or recovery.torn_files or recovery.running_turns:
            log.info(
                "settled",
                adopted=recovery.adopted_records,
                torn=list(recovery.torn_files),
                resumed=len(recovery.running_turns),
            )
        self._turn_context.recover_after_crash(self._clock())
        await recover(self._clock())
        for turn in recovery.running_turns:
            self._launch(turn)
        self._wake.set()

    async def run(self) -> None:
        """Tick whenever something happened, until `stop`. A disk that fails is tried again at the next wake-up. Raises
        `HomeReplaced`: what this process has open is not what stands there."""
        while not self._stopping:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.tick(self._clock())
                self._store_error = ""
            except HomeReplaced:
                raise
            except StoreError as error:
                if str(error) != self._store_error:
                    log.error("the home cannot be used", error=str(error))
                self._store_error = str(error)
                # It passes: what keeps it is told by itself, and no new start would mend it.
                self._progress_count += 1

    async def stop(
        self,
        drain_seconds: float,
        timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS,
        force_stop: asyncio.Event | None = None,
    ) -> None:
        """No new turns; running ones get the drain time, until `force_stop`, then are marked aborted. A turn that
        cannot be ended stays as it is, for the next start."""
        self._stopping, self._running.accepts_turns = True, False
        self._wake.set()
        for task in self._beginning.values():
            task.cancel()
        await self._drain(drain_seconds, force_stop)
        late = self._running.tasks()
        for session in list(self._running.by_session):
            self._abort(session, "The assistant was shut down before this was answered; ask again.")
        if late:
            await asyncio.wait(late, timeout=timeouts.abort)
        for session in self._running.by_session:
            log.warning("a turn could not be ended and is left for the next start", session=session)

    async def _drain(self, seconds: float, force_stop: asyncio.Event | None) -> None:
        tasks = self._running.tasks()
        if not tasks:
            return
        drained = asyncio.ensure_future(asyncio.wait(tasks))
        forced = asyncio.create_task((force_stop or asyncio.Event()).wait())
        await asyncio.wait([drained, forced], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        forced.cancel()

    # ------------------------------------------------------------------------------------------------------------- work

    async def accept(self, incoming: IncomingMessage) -> InboxReceipt:
        """Store a message durably; returns once it may be acknowledged. Raises `StoreError` when it was not kept."""
        # Of a flood a few in a round of the loop, so that others have their turn between them.
        async with self._accepting:
            try:
                return await self._accept(incoming, self._clock())
            except StoreError:
                self._write_refused = True
                raise
            finally:
                self._wake.set()
                await asyncio.sleep(0)

    async def _accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        # Files of a message are not to make a new home where one was taken away.
        self._check_home(False)
        store = partial(self._store_attachments, incoming, now)
        # Writing files to the disk may take a while.
        incoming = await asyncio.to_thread(store) if any(media.data for media in incoming.media) else store()
        return self._conversation.accept(incoming, now)

    async def tick(self, now: datetime) -> None:
        """One pass: start a turn in each session that waits, then see to the outboxes."""
        self._last_tick = now
        if self._fault is not None:
            raise self._fault
        if not self._stopping:
            self._running.accepts_turns = True
            self._check_home(self._write_refused)
            self._write_refused = False
            self._retry_blocked(now)
            for session in self._running.waiting_sessions():
                if self._running.is_running(session) or session in self._beginning:
                    continue
                if self._turn_context.looks_back(session) or self._has_voice(session):
                    # It may take a while, and nobody else waits for it.
                    task = asyncio.create_task(self._begin(session, now), name=f"beginning in {session}")
                    self._beginning[session] = task
                    task.add_done_callback(partial(self._on_begun, session))
                else:
                    await self._begin(session, now)
        self._wake_outbox()
        self._progress_count += 1

    async def wait_until_idle(self) -> None:
        """Wait until no turn runs and nobody waits for one."""
        while self._running.any_running or self._beginning or (not self._stopping and self._running.waiting_sessions()):
            if tasks := [*self._running.tasks(), *self._beginning.values()]:
                await asyncio.wait(tasks)
            await self.tick(self._clock())

    def _has_voice(self, session: str) -> bool:
        return self._voice.listens and any(map(self._voice.waits, self._conversation.list_accepted(session, limit=1)))

    async def _begin(self, session: str, now: datetime) -> None:
        """Begin a turn with the first message that waits; another one, where that was taken back or changed while it
        was looked up what goes with it, at the next tick."""
        try:
            if not (items := self._conversation.list_accepted(session, limit=1)):
                return
            if self._voice.waits(items[0]):
                await self._voice.transcribe(items[0])
                if not (items := self._conversation.list_accepted(session, limit=1)) or self._voice.waits(items[0]):
                    self._wake.set()
                    return
            item = items[0]
            volatile = await self._turn_context.build(item, now)
            said = item.incoming
            await prepare_if_long(self._conversation, Message("user", said.content, name=said.name, media=said.media))
            if self._stopping or self._running.is_running(session) or session not in self._running.waiting_sessions():
                return
            if self._conversation.list_accepted(session, limit=1) != items:
                self._wake.set()
                return
            turn = self._conversation.begin_turn(item, volatile, now)
            self._turn_context.mark_begun(session)
        except StoreError as error:
            self._block(session, error)
        else:
            self._launch(turn)

    def _on_begun(self, session: str, task: asyncio.Task[None]) -> None:
        del self._beginning[session]
        if not task.cancelled():
            self._fault = self._fault or task.exception()
        self._wake.set()

    def _launch(self, turn: Turn) -> None:
        control = self._running.unsaved.pop(turn.id, None) or TurnControl(turn)
        control.turn, control.is_started = turn, False
        task = asyncio.create_task(self._work(control), name=f"turn {turn.id}")
        self._running.by_session[turn.session] = (control, task)

    async def _work(self, control: TurnControl) -> None:
        turn, control.is_started = control.turn, True
        message_ids = [item.message_id for item in turn.items]
        with self._follow_turn(turn):
            try:
                self._show(TurnEvent("turn", turn.session, turn.id, {"state": "started", "message_ids": message_ids}))
                self._remember(await self._turns.run(control))
            except StoreError as error:
                self._hold(control, error)
            # A model's SDK or a tool may raise anything, and no session may take another one down with it.
            except Exception as error:
                log.exception("turn failed", turn=turn.id)
                self._give_up(control, error)
            finally:
                self._running.by_session.pop(turn.session, None)
                self._wake_outbox()
                self.on_turn_ended(turn.session)
                self._wake.set()

    def _give_up(self, control: TurnControl, error: Exception) -> None:
        details = f" ({type(error).__name__}: {error})" if session_role(control.turn.session) == "owner" else ""
        text = f"Something in the assistant failed{details}. Your message is kept."
        try:
            self._remember(self._turns.fail(control, text))
        except StoreError as store_error:
            control.abort_reason = text
            self._hold(control, store_error)

    def _remember(self, outcome: TurnOutcome) -> None:
        self._running.backoff.clear_notice(outcome.session)
        self._outcomes.add(outcome)

    # ----------------------------------------------------------------------------------- a home that cannot be written

    def _hold(self, control: TurnControl, error: StoreError) -> None:
        """The turn stays open; what it knows and the disk does not is kept until it is taken up again."""
        self._running.unsaved[control.turn.id] = control
        self._block(control.turn.session, error)

    def _block(self, session: str, error: StoreError) -> None:
        """The session waits for the disk, which is looked at again after a while; told once, however long it takes."""
        if self._running.backoff.start_waiting(session, str(error), self._clock()):
            log.error("home cannot be written", session=session, error=str(error))
            text = str(error) if session_role(session) == "owner" else StoreError.__doc__
            notice = NoticeKind.DISK_TROUBLE.fill(text=text)
            self._show(TurnEvent("notice", session, "", {"text": notice.text, "disk": True}))

    def _retry_blocked(self, now: datetime) -> None:
        """Take up the turns that wait for the disk, where it takes and gives again."""
        backoff = self._running.backoff
        if self._running.any_running or not backoff.should_retry(now):
            return
        try:
            recovery = self._conversation.recover_after_crash(now)
        except StoreError as error:
            backoff.keep_waiting(str(error), now)
            return
        backoff.sessions.clear()
        for turn in recovery.running_turns:
            self._launch(turn)

    # ---------------------------------------------------------------------------------------------------------- control

    @property
    def storage_error(self) -> str:
        """What keeps it from reading or writing the home just now; "" for nothing."""
        return self._store_error

    def progress_snapshot(self) -> RuntimeActivity:
        """What it is at, for the probe of its progress."""
        waiting: set[str] = set()
        with contextlib.suppress(StoreError):
            waiting = set(self._running.waiting_sessions())
        running = self._running.by_session
        turns = {control.turn.id: session for session, (control, _) in running.items()}
        return RuntimeActivity(self._progress_count, turns, frozenset(waiting - running.keys()))

    async def stop_turn(self, session: str) -> bool:
        """Abort the running turn of a session and wait until it has ended."""
        running = self._running.by_session.get(session)
        if running is None:
            return False
        self._abort(session, "Stopped.")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([running[1]])
        return True

    def _abort(self, session: str, reason: str) -> None:
        control, task = self._running.by_session[session]
        control.abort_reason = reason
        if control.is_started:
            task.cancel()

    def result(self, item: InboxItem) -> dict[str, Any]:
        """What became of an accepted message (see `DaemonControl.result`)."""
        sent = self._outbox.list_by_turn(item.turn) if item.turn else []
        answers = [one.outgoing.body for one in sent if is_answer_key(one.outgoing.key)]
        notices = [one.outgoing.body for one in sent if not is_answer_key(one.outgoing.key)]
        return self._outcomes.describe_result(item, answers[0] if answers else "", list(dict.fromkeys(notices)))

    def find_disk_trouble(self) -> str:
        """Why nothing can be written; "" where it can. After a failure the disk is tried now, and what waits for it is
        taken up as soon as there is room again: nobody is shown what was true before."""
        backoff = self._running.backoff
        if not (self._store_error or backoff.sessions):
            return ""
        try:
            self._check_home(True)
        except StoreError as error:
            self._store_error = str(error)
        else:
            self._store_error = ""
            backoff.retry_now()
        self._wake.set()
        return self._store_error

    def status(self) -> Mapping[str, Any]:
        self.find_disk_trouble()
        return {
            "last_tick": self._last_tick.isoformat() if self._last_tick else None,
            "running_turns": len(self._running.by_session),
            "waiting_sessions": len(self._conversation.sessions_waiting()),
            "blocked": dict(self._running.backoff.sessions),
            "trouble": self._store_error,
        }
