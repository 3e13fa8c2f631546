"""The runtime: what came in becomes turns, what came of them goes out, and nothing falls between.

One pass is `tick(now)`: every session that has accepted messages and no turn running gets one, side by side, one turn
at a time each; then the outboxes are pumped. Everything durable is in the stores, so a runtime that is killed and
built again goes on where it was (`start`). Whatever is raised in one session's work ends there: a bug in a turn ends
that turn with a notice and is logged, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import structlog

from assistant.core.bridge_api import InboundPort, TurnEvent
from assistant.core.errors import HomeReplaced, StoreError, UsageError
from assistant.core.records import InboxItem, InboxReceipt, IncomingMessage, Turn
from assistant.core.sessions import session_role
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, ShutdownTimeouts
from assistant.core.store_ports import Conversation
from assistant.gateway.dispatcher import Dispatcher
from assistant.runtime.store_backoff import StoreBackoff
from assistant.runtime.turn import TurnControl, TurnRunner
from assistant.runtime.turn_context import TurnContextBuilder
from assistant.runtime.turn_outcomes import TurnOutcome, TurnOutcomes
from assistant.service.heartbeat import RuntimeActivity

log = structlog.get_logger()

StoreAttachments = Callable[[IncomingMessage, datetime], IncomingMessage]

_POLL_SECONDS = 0.005


class Runtime:
    """Inbox -> turns -> outbox for all sessions of a home."""

    def __init__(
        self,
        conversation: Conversation,
        turns: TurnRunner,
        delivery: Dispatcher,
        turn_context: TurnContextBuilder,
        recover: Callable[[datetime], Awaitable[None]],
        inbound: Callable[[], InboundPort],
        clock: Callable[[], datetime],
        check_home: Callable[[bool], None] = lambda refused: None,
        store_attachments: StoreAttachments | None = None,
    ) -> None:
        """`settle` sees to what an earlier process left half done; `door` is where bridges bring things. `must_stand`
        raises `StoreError` while the home is away, or does not take what it refused; `taken` is what is to be
        accepted of a message, its files kept."""
        self._conversation = conversation
        self._turns = turns
        self._delivery = delivery
        self._surroundings = turn_context
        self._settle = recover
        self._door = inbound
        self._clock = clock
        self._must_stand = check_home
        self._refused = False
        self._taken = store_attachments
        self._wake = asyncio.Event()
        self._running: dict[str, tuple[TurnControl, asyncio.Task[None]]] = {}
        self._waited_for: dict[str, asyncio.Task[None]] = {}
        self._standstill = StoreBackoff()
        self._held: dict[str, TurnControl] = {}
        self._at_rest: set[str] = set()
        self._trouble = ""
        self._outcomes = TurnOutcomes()
        self._stopping = False
        self._last_tick: datetime | None = None
        self._passes = 0

    # ------------------------------------------------------------------------------------------------------- life cycle

    async def start(self) -> None:
        """Settle what an earlier process left behind, then open the bridges. Raises `StoreError`."""
        found = self._conversation.recover_after_crash(self._clock())
        if found.adopted_records or found.torn_files or found.running_turns:
            log.info(
                "settled", adopted=found.adopted_records, torn=list(found.torn_files), resumed=len(found.running_turns)
            )
        self._surroundings.recover_after_crash(self._clock())
        await self._settle(self._clock())
        for turn in found.running_turns:
            self._launch(turn)
        await self._delivery.start(self._door())
        self._wake.set()

    async def run(self) -> None:
        """Tick whenever something happened, until `stop`. A disk that fails is tried again at the next wake-up. Raises
        `HomeReplaced`: what this process has open is not what stands there."""
        while not self._stopping:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.tick(self._clock())
                self._trouble = ""
            except HomeReplaced:
                raise
            except StoreError as error:
                if str(error) != self._trouble:
                    log.error("the home cannot be used", error=str(error))
                self._trouble = str(error)
                # It passes: what keeps it is told by itself, and no new start would mend it.
                self._passes += 1

    def wake(self) -> None:
        """Something may be due: look again soon."""
        self._wake.set()

    async def stop(
        self,
        drain_seconds: float,
        timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS,
        force_stop: asyncio.Event | None = None,
    ) -> None:
        """No new turns; running ones get the drain time, until `hurry`, then are marked aborted; then bridges close.
        A turn that cannot be ended stays as it is, for the next start."""
        self._stopping = True
        self._wake.set()
        await self._drain(drain_seconds, force_stop)
        late = list(self._running.items())
        for session, _ in late:
            self._abort(session, "The assistant was shut down before this was answered; ask again.")
        if late:
            await asyncio.wait([task for _, (_, task) in late], timeout=timeouts.abort)
        for session in self._running:
            log.warning("a turn could not be ended and is left for the next start", session=session)
        await self._delivery.stop(timeouts)

    async def _drain(self, seconds: float, hurry: asyncio.Event | None) -> None:
        tasks = [task for _, task in self._running.values()]
        if not tasks:
            return
        drained = asyncio.ensure_future(asyncio.wait(tasks))
        hurried = asyncio.create_task((hurry or asyncio.Event()).wait())
        await asyncio.wait([drained, hurried], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        hurried.cancel()

    # ------------------------------------------------------------------------------------------------------------- work

    async def accept(self, incoming: IncomingMessage) -> InboxReceipt:
        """Store a message durably; returns once it may be acknowledged. Raises `StoreError` when it was not kept."""
        now = self._clock()
        try:
            # Files of a message are not to make a new home where one was taken away.
            self._must_stand(False)
            if self._taken is not None:
                # Files are written to the disk, and that may take a while.
                slow = any(one.data for one in incoming.media)
                incoming = await asyncio.to_thread(self._taken, incoming, now) if slow else self._taken(incoming, now)
            return self._conversation.accept(incoming, now)
        except StoreError:
            self._refused = True
            raise
        finally:
            self._wake.set()

    async def tick(self, now: datetime) -> None:
        """One pass: start a turn in each session that waits, then see to the outboxes."""
        self._last_tick = now
        if not self._stopping:
            self._must_stand(self._refused)
            self._refused = False
            self._unblock(now)
            if self._conversation.sessions_waiting():
                await self._surroundings.prepare()
        if not self._stopping:
            for session in self._conversation.sessions_waiting():
                if session not in {*self._running, *self._standstill.sessions, *self._at_rest}:
                    self._begin(session, now)
        self._delivery.wake()
        self._passes += 1

    async def wait_until_quiet(self, seconds: float) -> None:
        """Wait until nothing is being answered or waits to be, but no longer than that: for work that can wait. A turn
        that takes longer is not waited for again."""
        await asyncio.sleep(0)
        if self._last_tick is None or self._stopping:
            return
        try:
            async with asyncio.timeout(seconds):
                while (short := self._running.keys() - self._long()) or self._expecting() - self._long():
                    tasks = [self._running[session][1] for session in short]
                    await (asyncio.wait(tasks) if tasks else asyncio.sleep(_POLL_SECONDS))
        except TimeoutError:
            self._waited_for = {session: task for session, (_, task) in self._running.items()}

    def _long(self) -> set[str]:
        """Sessions whose turn still runs after it was waited for in vain."""
        return {session for session, (_, task) in self._running.items() if self._waited_for.get(session) is task}

    async def wait_until_idle(self) -> None:
        """Wait until no turn runs and nobody waits for one."""
        while self._running or (not self._stopping and self._expecting()):
            if self._running:
                await asyncio.wait([task for _, task in self._running.values()])
            await self.tick(self._clock())

    def _expecting(self) -> set[str]:
        """Sessions in which something waits that may be answered now."""
        return set(self._conversation.sessions_waiting()) - self._standstill.sessions.keys() - self._at_rest

    @contextmanager
    def pause_session(self, session: str) -> Iterator[None]:
        """No turn of the session begins while this lasts; what arrives is accepted, and answered after. Raises
        `UsageError` while one is open, or the session is held already."""
        if session in self._at_rest:
            raise UsageError(f"{session} is being reset. Nothing was changed; wait until that has ended.")
        if session in self._running or any(one.turn.session == session for one in self._held.values()):
            raise UsageError(
                f"A message in {session} is being answered. Nothing was changed; wait for the answer, or `/stop` it."
            )
        self._at_rest.add(session)
        try:
            yield
        finally:
            self._at_rest.discard(session)
            self._wake.set()

    def _begin(self, session: str, now: datetime) -> None:
        try:
            item = self._conversation.list_accepted(session, limit=1)[0]
            turn = self._conversation.begin_turn(item, self._surroundings.build(item, now), now)
        except StoreError as error:
            self._block(session, error)
        else:
            self._launch(turn)

    def _launch(self, turn: Turn) -> None:
        steering = self._held.pop(turn.id, None) or TurnControl(turn)
        steering.turn = turn
        task = asyncio.create_task(self._work(steering), name=f"turn {turn.id}")
        self._running[turn.session] = (steering, task)
        message_ids = [item.message_id for item in turn.items]
        self._delivery.follow_turn(turn.id, [item.incoming for item in turn.items])
        self._delivery.show(TurnEvent("turn", turn.session, turn.id, {"state": "started", "message_ids": message_ids}))

    async def _work(self, steering: TurnControl) -> None:
        turn = steering.turn
        try:
            self._remember(await self._turns.run(steering))
        except StoreError as error:
            self._hold(steering, error)
        # A model's SDK or a tool may raise anything, and no session may take another one down with it.
        except Exception as error:
            log.exception("turn failed", turn=turn.id)
            self._give_up(steering, error)
        finally:
            self._running.pop(turn.session, None)
            self._delivery.unfollow_turn(turn.id)
            self._delivery.wake()
            self._wake.set()

    def _give_up(self, steering: TurnControl, error: Exception) -> None:
        what = f" ({type(error).__name__}: {error})" if session_role(steering.turn.session) == "owner" else ""
        text = f"Something in the assistant failed{what}. Your message is kept."
        try:
            self._remember(self._turns.fail(steering, text))
        except StoreError as store_error:
            steering.abort_reason = text
            self._hold(steering, store_error)

    def _remember(self, outcome: TurnOutcome) -> None:
        self._standstill.clear_notice(outcome.session)
        self._outcomes.add(outcome)

    # ----------------------------------------------------------------------------------- a home that cannot be written

    def _hold(self, steering: TurnControl, error: StoreError) -> None:
        """The turn stays open; what it knows and the disk does not is kept until it is taken up again."""
        self._held[steering.turn.id] = steering
        self._block(steering.turn.session, error)

    def _block(self, session: str, error: StoreError) -> None:
        """The session waits for the disk, which is looked at again after a while; told once, however long it takes."""
        if self._standstill.start_waiting(session, str(error), self._clock()):
            log.error("home cannot be written", session=session, error=str(error))
            told = str(error) if session_role(session) == "owner" else StoreError.__doc__
            self._delivery.show(TurnEvent("notice", session, "", {"text": told, "disk": True}))

    def _unblock(self, now: datetime) -> None:
        if self._running or not self._standstill.should_retry(now):
            return
        try:
            found = self._conversation.recover_after_crash(now)
        except StoreError as error:
            self._standstill.keep_waiting(str(error), now)
            return
        self._standstill.end_waiting()
        for turn in found.running_turns:
            self._launch(turn)

    # ---------------------------------------------------------------------------------------------------------- control

    @property
    def storage_error(self) -> str:
        """What keeps it from reading or writing the home just now; "" for nothing."""
        return self._trouble

    @property
    def busy(self) -> bool:
        """Whether any turn runs."""
        return bool(self._running)

    def is_running(self, session: str) -> bool:
        return session in self._running

    def progress_snapshot(self) -> RuntimeActivity:
        """What it is at, for the probe of its progress."""
        waiting: set[str] = set()
        with contextlib.suppress(StoreError):
            waiting = set(self._conversation.sessions_waiting())
        turns = {steering.turn.id: session for session, (steering, _) in self._running.items()}
        kept = {*self._running, *self._standstill.sessions, *self._at_rest}
        return RuntimeActivity(self._passes, turns, frozenset(waiting - kept))

    async def stop_turn(self, session: str) -> bool:
        """Abort the running turn of a session and wait until it has ended."""
        running = self._running.get(session)
        if running is None:
            return False
        self._abort(session, "Stopped.")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([running[1]])
        return True

    def _abort(self, session: str, reason: str) -> None:
        steering, task = self._running[session]
        steering.abort_reason = reason
        task.cancel()

    def result(self, item: InboxItem) -> dict[str, Any]:
        """What became of an accepted message (see `DaemonControl.result`)."""
        return self._outcomes.describe_result(item, self._delivery.bodies_of_turn(item.turn) if item.turn else [])

    def status(self) -> Mapping[str, Any]:
        return {
            "last_tick": self._last_tick.isoformat() if self._last_tick else None,
            "running_turns": len(self._running),
            "waiting_sessions": len(self._conversation.sessions_waiting()),
            "blocked": dict(self._standstill.sessions),
            "trouble": self._trouble,
        }
