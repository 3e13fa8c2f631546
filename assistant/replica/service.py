"""Replicates a data folder: ships changes, lets callers wait for theirs (the barrier), and makes full copies (bases).

- One task ships. A caller of the barrier waits for a shipment that began after its call; concurrent ones share it.
- A change counts as stored only if there is a complete base before it. If some may have been missed, a new one is made.
- The holder is the folder whose epoch the database has. Once another folder has taken over, the barrier always raises,
  whatever the settings say: nothing is acknowledged or sent any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from assistant.core.calendar import is_still_ahead
from assistant.core.errors import AssistantError, ReplicaLost, ReplicaUnavailable, StoreError, UsageError
from assistant.core.logger import get_logger
from assistant.core.text import pluralize
from assistant.replica.bases import BaseStore
from assistant.replica.capture import CaptureGap, HomeCapture
from assistant.replica.holder import Holder, load_holder, save_holder, save_remembered, take_remembered
from assistant.replica.options import MakeBase, ReplicaOptions
from assistant.replica.postgres import ReplicaDatabase
from assistant.replica.shipment import Shipment, pack

log = get_logger()

SECONDS_BETWEEN = 1.0
_LEAST_SECONDS_BETWEEN_TRIES, _MAX_SECONDS_BETWEEN_TRIES = 0.25, 30.0
_BASE_TRY_EVERY = timedelta(minutes=1)
_MANY_CHANGES = 500  # a restore with more takes long: the start makes a new base, for which nobody waits
_LOOK_FOR_BASE_EVERY = timedelta(hours=1)
# While the replica is unreachable the write-ahead logs grow; above this size they are dropped for a new base.
_MOST_UNREAD_BYTES = 128 << 20


class Replicator:
    def __init__(
        self,
        home: Path,
        capture: HomeCapture,
        database: ReplicaDatabase,
        bases: BaseStore,
        options: ReplicaOptions,
        make_base: MakeBase,
        *,
        is_erasing: Callable[[], bool],
        clock: Callable[[], datetime],
    ) -> None:
        """`bases` has a second connection, so that storing a base does not delay shipments."""
        self._home, self._capture, self._options = home, capture, options
        self._database, self._bases = database, bases
        self._make_base, self._is_erasing, self._clock = make_base, is_erasing, clock
        self._holder: Holder | None = None
        self._sequence = 0
        self._queue: deque[bytes] = deque()
        self._is_uncertain = False  # whether the first of the queue may be stored already
        self._is_reading = False  # whether what is read follows what was read before
        self._base_wanted = True
        self._base: asyncio.Task[tuple[int, int]] | None = None
        self._base_number, self._base_trouble = 0, ""
        self._look: asyncio.Task[bool] | None = None  # whether the base is where it was stored
        self._look_at = clock() + _LOOK_FOR_BASE_EVERY
        self._removal_at: datetime | None = None  # when files of earlier bases are to be deleted
        self._base_at: datetime | None = None
        self._base_retry_at: datetime | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lost: ReplicaLost | None = None
        self._trouble = "The replica has not got a first whole copy yet."
        self._down_since: datetime | None = clock()
        self._is_stopping = False
        self._failures, self._at_risk = 0, 0  # tries in a row; messages that only this machine has
        self._is_behind = False  # whether nobody waits, since it did not answer in time

    # ---------------------------------------------------------------------------------------------------------- barrier

    async def barrier(self, messages: int = 0) -> None:
        """Wait until everything committed so far is in the replica. `messages`: how many are acknowledged afterwards.
        Raises `ReplicaLost`. After the timeout it raises `ReplicaUnavailable` if `on_failure` is "refuse"; otherwise it
        returns, and the status counts these messages as at risk."""
        if self._lost is not None:
            raise self._lost
        refuses = self._options.on_failure == "refuse"
        if self._is_behind and not refuses:
            self._at_risk += messages
            return
        kept = asyncio.get_running_loop().create_future()
        self._waiting.append(kept)
        self._wake.set()
        try:
            async with asyncio.timeout(self._options.timeout_seconds):
                await kept
        except TimeoutError:
            self._is_behind = True
            self._at_risk += messages
            if not self._trouble:
                self._fail(ReplicaUnavailable("The replica does not answer in time."))
            if refuses:
                raise ReplicaUnavailable(self._trouble) from None

    def find_problems(self) -> list[str]:
        """Return what is wrong and what is at risk, one line each."""
        if self._lost is not None:
            return [
                f"{self._lost} This machine acknowledges and sends nothing more. Stop the assistant here; `assistant "
                "replica detach` makes this folder independent."
            ]
        if self._down_since is None or not self._trouble:
            return [self._base_trouble] if self._base_trouble else []
        since = f"{self._down_since:%Y-%m-%d %H:%M} UTC"
        risk = f"{pluralize(self._at_risk, 'message')} since {since}" if self._at_risk else f"what comes since {since}"
        return [f"{self._trouble} On this machine alone: {risk}. It is tried again automatically."]

    def request_base(self) -> None:
        """Have a new base made; earlier bases, and all changes before it, are deleted afterwards."""
        self._base_wanted, self._base_retry_at = True, None
        self._wake.set()

    # ------------------------------------------------------------------------------------------------------- life cycle

    async def start(self) -> None:
        """Claim the replica and start shipping. Raises `ReplicaLost` if another folder owns it; an unreachable replica
        is retried."""
        try:
            await self._claim()
            await self._resume()
        except ReplicaLost as error:
            await self._close()
            raise ReplicaLost(
                f"{error} Nothing was started; `assistant replica restore` brings it here, `assistant replica detach` "
                "makes this folder independent."
            ) from error
        except ReplicaUnavailable as error:
            self._fail(error)
        self._task = asyncio.create_task(self._run(), name="replica")

    async def stop(self, seconds: float = 10.0) -> None:
        """Stop, after shipping the remaining changes if that takes at most `seconds`."""
        if self._task is None:
            return
        self._is_stopping = True
        self._wake.set()
        with contextlib.suppress(TimeoutError, StoreError, OSError):
            async with asyncio.timeout(seconds):
                await self._task
                if self._lost is None and self._is_reading and await self._step():
                    await self._remember()
        for task in filter(None, (self._base, self._look)):
            task.cancel()
            await asyncio.wait([task])
        await self._close()

    async def _close(self) -> None:
        self._capture.close()
        await self._database.aclose()
        await self._bases.aclose()

    async def _run(self) -> None:
        wait = SECONDS_BETWEEN
        while self._lost is None and not self._is_stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            self._wake.clear()
            # Who calls from now on waits for the next shipment, and who is not served by this one, too.
            self._waiting = [kept for kept in self._waiting if not kept.done()]
            waiting = len(self._waiting)
            try:
                whole = await self._step()
            except ReplicaLost as error:
                self._lose(error)
            except (AssistantError, OSError) as error:
                self._fail(error)
                self._failures += 1
                wait = min(_MAX_SECONDS_BETWEEN_TRIES, wait * 2)
                await asyncio.sleep(_LEAST_SECONDS_BETWEEN_TRIES)
            else:
                self._failures, wait = 0, SECONDS_BETWEEN
                if whole:
                    self._succeed(waiting)

    def _succeed(self, waiting: int) -> None:
        """Tell so many callers, the first ones, that the replica has everything."""
        if self._down_since is not None:
            log.info("the replica has everything", at_risk_before=self._at_risk)
        self._down_since, self._is_behind, self._at_risk, self._trouble = None, False, 0, ""
        for kept in self._waiting[:waiting]:
            if not kept.done():
                kept.set_result(None)
        del self._waiting[:waiting]

    def _fail(self, error: Exception) -> None:
        self._down_since = self._down_since or self._clock()
        if str(error) != self._trouble:
            log.error("the replica is behind", error=str(error))
        self._trouble = str(error)

    def _lose(self, error: ReplicaLost) -> None:
        log.error("the home was taken over", error=str(error))
        self._lost = error
        for kept in self._waiting:
            if not kept.done():
                kept.set_exception(error)

    # --------------------------------------------------------------------------------------------------------- shipping

    async def _claim(self) -> Holder:
        if self._holder is not None:
            return self._holder
        known = load_holder(self._home)
        if known is not None and known.home not in ("", self._database.home):
            raise UsageError(
                f"This data folder is {known.home!r} in the replica, and replica.home_name is {self._database.home!r}. "
                f"Nothing was started; set it to {known.home!r}, or make a new copy after `assistant replica detach`."
            )
        await self._database.prepare()
        state = await self._database.read_state()
        if state is not None and (known is None or known.name != state.holder):
            if known is None:
                raise ReplicaLost(
                    f"The replica has a home {state.home!r} of {state.machine} already; without it, choose another "
                    "replica.home_name."
                )
            raise await self._database.describe_loss()
        holder = known or Holder()
        # Saved before the database stores it: after a crash in between, this folder is still the holder.
        save_holder(self._home, holder)
        epoch = await self._database.claim(holder.name, self._options.machine, state.epoch if state else 0)
        self._sequence = state.sequence if state else 0
        self._holder = Holder(holder.name, epoch, self._database.home)
        save_holder(self._home, self._holder)
        return self._holder

    async def _step(self) -> bool:
        """Ship what changed; return whether the replica has everything, including a base."""
        if self._failures and await asyncio.to_thread(self._capture.count_unread) > _MOST_UNREAD_BYTES:
            await self._start_over()
            await asyncio.to_thread(self._capture.abandon)
        await self._claim()
        await self._look_for_base()
        self._begin_base()
        if not self._is_reading:
            return False
        # Read after the base was made, the changes include all that was written while it was made.
        base_is_made = self._base is not None and self._base.done()
        try:
            await self._ship(self._capture.read)
            while self._capture.has_more:
                await self._ship(self._capture.read)
            await self._ship(self._capture.checkpoint)
        except CaptureGap:
            await self._start_over()
            return False
        if base_is_made:
            await self._finish_base()
        await self._remove_earlier_bases()
        return self._base_at is not None

    async def _resume(self) -> None:
        """Continue from the base of before, if it is known what changed since the last stop."""
        if (state := await self._database.read_state()) is None:
            return
        remembered = take_remembered(self._home, (state.sequence, state.base, self._options.cipher.key_id))
        is_there = remembered is not None and await self._bases.is_current(state.base)
        if remembered and is_there and await asyncio.to_thread(self._capture.resume, remembered):
            self._is_reading, self._base_wanted = True, state.sequence - state.base_after > _MANY_CHANGES
            self._base_at, self._base_number = state.base_at, state.base
            log.info("the replica continues", base=state.base)

    async def _remember(self) -> None:
        """Ship the rest at a stop, and keep for the next start that everything is there."""
        await self._ship(lambda: self._capture.checkpoint(-1))
        remembered = self._capture.remember()
        if remembered is not None and self._base is None and not self._base_wanted:
            save_remembered(self._home, remembered, (self._sequence, self._base_number, self._options.cipher.key_id))

    async def _ship(self, read: Callable[[], Shipment]) -> None:
        await asyncio.to_thread(self._enqueue, read)
        await self._send_queue()

    def _enqueue(self, read: Callable[[], Shipment]) -> None:
        if not (shipment := read()).is_empty:
            self._queue.append(pack(shipment, self._options.cipher.encrypt))

    async def _send_queue(self) -> None:
        holder = await self._claim()
        if self._is_uncertain:
            stored = await self._database.confirm(holder.epoch)
            if stored == self._sequence + 1 and self._queue:
                self._queue.popleft()
            elif stored != self._sequence:
                # A standby that lacked the newest changes was promoted.
                await self._start_over()
            self._sequence, self._is_uncertain = stored, False
        while self._queue:
            self._is_uncertain = True
            await self._database.ship(holder.epoch, self._sequence, self._queue[0])
            self._is_uncertain = False
            self._sequence += 1
            self._queue.popleft()

    async def _start_over(self, why: str = "A new whole copy is being made for the replica.") -> None:
        """Begin again with a new base: the changes in the replica do not lead to the current state."""
        log.warning("the replica needs a new base")
        self._queue.clear()
        self._is_reading, self._base_wanted, self._base_at, self._base_retry_at = False, True, None, None
        if self._base is not None:
            self._base.cancel()
            await asyncio.wait([self._base])
            self._base = None
        self._fail(ReplicaUnavailable(why))
        self._wake.set()

    # ------------------------------------------------------------------------------------------------------------ bases

    async def _look_for_base(self) -> None:
        """Begin again if the base is not where it was stored any more, such as in a bucket that somebody emptied."""
        if self._look is not None and self._look.done():
            look, self._look = self._look, None
            if error := look.exception():
                self._base_trouble = f"Whether the whole copy is still there is not known: {error} It is tried again."
            elif not look.result():
                await self._start_over("The whole copy is gone from where it was stored. A new one is made.")
        now = self._clock()
        waits = is_still_ahead(self._look_at, now, _LOOK_FOR_BASE_EVERY)
        if self._base_at is not None and not waits and not self._look and not self._base:
            self._look_at = now + _LOOK_FOR_BASE_EVERY
            self._look = asyncio.create_task(self._bases.is_current(self._base_number), name="replica look")
            self._look.add_done_callback(lambda _: self._wake.set())

    def _begin_base(self) -> None:
        now = self._clock()
        if self._base_at is not None and self._options.is_base_due(self._base_at, now):
            self._base_wanted = True
        is_early = self._base_retry_at is not None and is_still_ahead(self._base_retry_at, now, _BASE_TRY_EVERY)
        if self._base or self._look or not self._base_wanted or is_early or self._is_erasing():
            return
        self._base_wanted, self._base_retry_at = False, now + _BASE_TRY_EVERY
        if self._is_reading:
            self._capture.resend_files()
        else:
            self._capture.begin()
            self._is_reading = True
        self._base = asyncio.create_task(self._store_base(self._sequence), name="replica base")
        self._base.add_done_callback(lambda _: self._wake.set())

    async def _store_base(self, after: int) -> tuple[int, int]:
        """Store a base; return its number, and the number of the last change before it."""
        holder = await self._claim()
        path = await self._make_base(self._home, self._clock())
        try:
            return await self._bases.store(holder.epoch, path, self._options.cipher.encrypt), after
        finally:
            path.unlink(missing_ok=True)
            await self._bases.aclose()  # the next one is made in a day: homes share the connections of a server

    async def _finish_base(self) -> None:
        """Make a stored base valid, once everything written while it was made is in the replica."""
        if self._base is None:
            return
        task, self._base = self._base, None
        try:
            base, after = task.result()
            holder = await self._claim()
            await self._database.finish_base(holder.epoch, base, after)
        except BaseException as error:
            self._base_wanted = True
            if self._base_at is None:
                self._is_reading = False
            if self._base_at is None or isinstance(error, ReplicaLost) or not isinstance(error, AssistantError):
                raise
            # Nothing is at risk: the earlier base and all changes since are there.
            log.error("the replica got no new base", error=str(error))
            self._base_trouble = f"The replica got no new whole copy: {error} It is tried again automatically."
            return
        self._base_at, self._base_retry_at, self._base_trouble = self._clock(), None, ""
        self._base_number, self._removal_at = base, self._base_at
        log.info("the replica has a new base", base=base)

    async def _remove_earlier_bases(self) -> None:
        if self._removal_at is None or self._clock() < self._removal_at or self._look:
            return
        try:
            await self._bases.remove_others((await self._claim()).epoch, self._base_number)
        except ReplicaUnavailable as error:
            self._removal_at = self._clock() + _BASE_TRY_EVERY
            self._base_trouble = f"An earlier whole copy was not deleted: {error} It is tried again automatically."
        else:
            self._removal_at, self._base_trouble = None, ""
