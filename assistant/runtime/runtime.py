"""The runtime: turns accepted messages into turns, and delivers their results.

`tick(now)` is one pass: every session with accepted messages and no running turn gets one; sessions run concurrently,
each one turn at a time; then the outboxes are woken. All durable state is in the stores, so a killed runtime continues
after a restart (`start`). Exceptions are contained per session: a bug in a turn ends that turn with a notice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

from assistant.core.bridge_api import TurnEvent
from assistant.core.errors import HomeReplaced, StoreError
from assistant.core.logger import get_logger
from assistant.core.messages import STOPPED_REPLY, Message
from assistant.core.notices import NoticeKind
from assistant.core.ports import Barrier
from assistant.core.records import InboxItem, InboxReceipt, IncomingMessage, Turn, is_answer_key
from assistant.core.sessions import session_role
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, ShutdownTimeouts
from assistant.core.store_ports import Conversation, Outbox
from assistant.gateway.attachments import is_long_text
from assistant.runtime.long_texts import prepare_if_long
from assistant.runtime.running_turns import RunningTurns
from assistant.runtime.spoken import SpokenAnswers
from assistant.runtime.turn import ASK_AGAIN, TurnControl, TurnOutcome, TurnRunner
from assistant.runtime.turn_context import TurnContextBuilder
from assistant.runtime.turn_outcomes import TurnOutcomes
from assistant.runtime.voice import VoiceMessages
from assistant.service.heartbeat import RuntimeActivity

log = get_logger()

_ACCEPTED_AT_ONCE = 4


class Runtime:
    """Inbox -> turns -> outbox, for all sessions of a home."""

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
        spoken: SpokenAnswers,
    ) -> None:
        """- `wake_outbox`: triggers delivery of the outbox.
        - `show`: shows events to connected clients; within `follow_turn`, also where the turn's messages came from.
        - `check_home`: raises `StoreError` while the data folder is missing, or still not writable.
        - `store_attachments`: stores the files of a message, and returns the message to accept.
        - `voice`: transcribes recordings before a turn starts; `spoken`: speaks answers after one.
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
        self._spoken = spoken
        self.barrier: Barrier | None = None
        self.on_turn_ended: Callable[[str], None] = lambda session: None
        self._accepting = asyncio.Semaphore(_ACCEPTED_AT_ONCE)
        self._write_refused = False
        self._store_error = ""
        self._outcomes = TurnOutcomes()
        self._stopping = False
        self._last_tick: datetime | None = None
        self._progress_count = 0
        # By session, the task preparing the next turn; and the exception of a failed one.
        self._beginning: dict[str, asyncio.Task[None]] = {}
        self._fault: BaseException | None = None

    # ------------------------------------------------------------------------------------------------------- life cycle

    async def start(self, recover: Callable[[datetime], Awaitable[None]]) -> None:
        """Recover the state of an earlier process; `recover` does the same for other rooms. Raises `StoreError`."""
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
        for turn in recovery.answered_turns:
            self._spoken.resume(turn, self._wake_outbox)
        self._wake.set()

    async def run(self) -> None:
        """Tick on every wake-up until `stop`. A failing disk is retried at the next wake-up. Raises `HomeReplaced` if
        the data folder was replaced."""
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
                # Disk errors are transient and reported elsewhere; a restart would not help.
                self._progress_count += 1

    async def stop(
        self,
        drain_seconds: float,
        timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS,
        force_stop: asyncio.Event | None = None,
    ) -> None:
        """Stop starting turns; running ones get the drain time (until `force_stop`), then are aborted. A turn that
        cannot be ended is left for the next start."""
        self._stopping, self._running.accepts_turns = True, False
        self._turn_context.stop()
        self._wake.set()
        for task in self._beginning.values():
            task.cancel()
        await self._drain(drain_seconds, force_stop)
        await self._spoken.stop()
        late = self._running.tasks()
        for session in list(self._running.by_session):
            self._abort(session, "The assistant was shut down before this was answered; ask again.")
        if late:
            await asyncio.wait(late, timeout=timeouts.abort)
        for session in self._running.by_session:
            log.warning("a turn could not be ended and is left for the next start", session=session)

    async def _drain(self, seconds: float, force_stop: asyncio.Event | None) -> None:
        if not (tasks := self._running.tasks()):
            return
        drained = asyncio.ensure_future(asyncio.wait(tasks))
        forced = asyncio.create_task((force_stop or asyncio.Event()).wait())
        await asyncio.wait([drained, forced], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        forced.cancel()

    # ------------------------------------------------------------------------------------------------------------- work

    async def accept(self, incoming: IncomingMessage) -> InboxReceipt:
        """Store a message durably; it may be acknowledged afterwards. Raises `StoreError` if it was not stored."""
        # Limit concurrency, so that a flood of messages does not starve other tasks.
        async with self._accepting:
            try:
                receipt = await self._accept(incoming, self._clock())
            except StoreError:
                self._write_refused = True
                raise
            finally:
                self._wake.set()
                await asyncio.sleep(0)
        if self.barrier is not None:
            await self.barrier(1)
        return receipt

    async def _accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        # Storing attachments must not recreate a data folder that was removed, and may be slow.
        self._check_home(False)
        store = partial(self._store_attachments, incoming, now)
        has_files = any(media.data for media in incoming.media) or is_long_text(incoming)
        incoming = await asyncio.to_thread(store) if has_files else store()
        if not self._is_busy(incoming.session):
            self._turn_context.begin_recall(incoming, now)
        return self._conversation.accept(incoming, now)

    async def tick(self, now: datetime) -> None:
        """Run one pass: start a turn in each waiting session, then wake the outboxes."""
        self._last_tick = now
        if self._fault is not None:
            raise self._fault
        if not self._stopping:
            self._running.accepts_turns = True
            self._check_home(self._write_refused)
            self._write_refused = False
            self._retry_blocked(now)
            for session in self._running.waiting_sessions():
                if self._is_busy(session):
                    continue
                await self._running.pacer.wait()
                if self._is_busy(session):
                    continue
                if self._turn_context.looks_back(session) or self._has_voice(session):
                    # Preparing may be slow, and must not delay other sessions.
                    task = asyncio.create_task(self._begin(session, now), name=f"beginning in {session}")
                    self._beginning[session] = task
                    task.add_done_callback(partial(self._on_begun, session))
                else:
                    await self._begin(session, now)
        self._wake_outbox()
        self._progress_count += 1

    async def wait_until_idle(self) -> None:
        """Wait until no turn is running or waiting."""
        while self._running.any_running or self._beginning or (not self._stopping and self._running.waiting_sessions()):
            if tasks := [*self._running.tasks(), *self._beginning.values()]:
                await asyncio.wait(tasks)
            await self.tick(self._clock())
        if self._spoken.tasks:
            await asyncio.wait(list(self._spoken.tasks))

    def _is_busy(self, session: str) -> bool:
        return self._running.is_running(session) or session in self._beginning

    def _has_voice(self, session: str) -> bool:
        return self._voice.listens and any(map(self._voice.waits, self._conversation.list_accepted(session, limit=1)))

    async def _begin(self, session: str, now: datetime) -> None:
        """Start a turn with the first waiting message. If it was withdrawn or changed while its context was prepared,
        the next tick starts another one."""
        try:
            if not (items := self._conversation.list_accepted(session, limit=1)):
                return
            if self._voice.waits(items[0]):
                await self._voice.transcribe(items[0])
                if not (items := self._conversation.list_accepted(session, limit=1)) or self._voice.waits(items[0]):
                    self._wake.set()
                    return
            item, said = items[0], items[0].incoming
            with self._running.beginning():
                volatile = await self._turn_context.build(item, now)
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
        await self._running.pacer.wait()
        turn, control.is_started = control.turn, True
        message_ids = [item.message_id for item in turn.items]
        with self._follow_turn(turn):
            try:
                self._show(TurnEvent("turn", turn.session, turn.id, {"state": "started", "message_ids": message_ids}))
                self._remember(await self._turns.run(control))
                self._spoken.begin(turn, self._wake_outbox)
            except StoreError as error:
                self._hold(control, error)
            # A model's SDK or a tool may raise anything; other sessions must not be affected.
            except Exception as error:
                log.exception("turn failed", turn=turn.id)
                self._give_up(control, error)
            finally:
                self._running.end(turn.session)
                self._wake_outbox()
                self.on_turn_ended(turn.session)
                self._wake.set()

    def _give_up(self, control: TurnControl, error: Exception) -> None:
        details = f" ({type(error).__name__}: {error})" if session_role(control.turn.session) == "owner" else ""
        text = f"Something in the assistant failed{details}. Your message is kept; {ASK_AGAIN}."
        try:
            self._remember(self._turns.fail(control, text))
        except StoreError as store_error:
            control.abort_reason = text
            self._hold(control, store_error)

    def _remember(self, outcome: TurnOutcome) -> None:
        self._running.backoff.clear_notice(outcome.session)
        self._outcomes.add(outcome)

    # the data folder is not writable

    def _hold(self, control: TurnControl, error: StoreError) -> None:
        """Keep the turn open, and its unsaved state until it is resumed."""
        self._running.unsaved[control.turn.id] = control
        self._block(control.turn.session, error)

    def _block(self, session: str, error: StoreError) -> None:
        """Block the session until the disk is retried; reported once."""
        if self._running.backoff.start_waiting(session, str(error), self._clock()):
            log.error("home cannot be written", session=session, error=str(error))
            text = str(error) if session_role(session) == "owner" else StoreError.__doc__
            notice = NoticeKind.DISK_TROUBLE.fill(text=text)
            self._show(TurnEvent("notice", session, "", {"text": notice.text, "disk": True}))

    def _retry_blocked(self, now: datetime) -> None:
        """Resume blocked turns if the disk works again."""
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
        """The current storage error, "" if none."""
        return self._store_error

    def progress_snapshot(self) -> RuntimeActivity:
        """Return the current activity, for the watchdog."""
        waiting: set[str] = set()
        with contextlib.suppress(StoreError):
            waiting = set(self._running.waiting_sessions())
        running = self._running.by_session
        turns = {control.turn.id: session for session, (control, _) in running.items()}
        return RuntimeActivity(self._progress_count, turns, frozenset(waiting - running.keys()))

    async def stop_turn(self, session: str) -> bool:
        """Abort the running turn of a session and wait for its end."""
        running = self._running.by_session.get(session)
        if running is None:
            return False
        self._abort(session, STOPPED_REPLY)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([running[1]])
        return True

    def _abort(self, session: str, reason: str) -> None:
        control, task = self._running.by_session[session]
        control.abort_reason = reason
        if control.is_started:
            task.cancel()

    def result(self, item: InboxItem) -> dict[str, Any]:
        """Return the result of an accepted message (see `DaemonControl.result`)."""
        sent = self._outbox.list_by_turn(item.turn) if item.turn else []
        answers = [one.outgoing.body for one in sent if is_answer_key(one.outgoing.key)]
        notices = [one.outgoing.body for one in sent if not is_answer_key(one.outgoing.key)]
        return self._outcomes.describe_result(item, answers[0] if answers else "", list(dict.fromkeys(notices)))

    def find_disk_trouble(self) -> str:
        """Return why nothing can be written, or "". After a failure the disk is retried now, so the result is current;
        blocked turns resume if it works."""
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
