"""The daemon's heartbeat: at every beat the runtime is asked to tick, and only while it makes progress is the watchdog
fed (F40). `at` is monotonic, in seconds.

A timer that feeds would go on over a runtime that is stuck. Here a loop that is blocked does not come to its next
beat, and a runtime that fails, or a conversation that nothing takes up, is found by the `StallDetector`: at each
beat it compares the runtime with what it was before (ticks completed, turns that run, sessions that wait although
nothing keeps them). Then nothing is fed, and the service manager starts the daemon again. A data folder that cannot
be written is no stall: it is reported by itself, and a new start would not mend it. Without a manager the heartbeat
only reports the status.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, NoReturn

from assistant.core.dataclass import dataclass
from assistant.core.logger import get_logger

# What a turn may take beyond its own limit: to be cancelled, and to note that it failed.
TURN_GRACE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RuntimeActivity:
    """What the runtime does now."""

    ticks: int  # completed so far
    turns: Mapping[str, str] = field(default_factory=dict)  # the sessions of running turns, by the turns' ids
    waiting: frozenset[str] = frozenset()  # sessions that wait for a turn although nothing is known to prevent it


class StallDetector:
    """Finds a runtime that makes no progress: remembers since when each turn runs and each session waits."""

    def __init__(self, turn_seconds: float) -> None:
        """`turn_seconds` is the longest that a turn may take (turn.max_seconds)."""
        self._max_seconds = turn_seconds + TURN_GRACE_SECONDS
        self._ticks = -1
        self._ticked_at = 0.0
        self._since: dict[tuple[str, str], float] = {}
        self._lag = 0.0
        self.fault = ""

    def check_progress(self, activity: RuntimeActivity, at: float, *, late: float, every: float) -> str:
        """What is wrong now, as a sentence, or "". `every` is the time between two beats, at each of which the runtime
        is asked to tick; `late` is by how much this one was late; all in seconds."""
        if activity.ticks != self._ticks:
            self._ticks, self._ticked_at = activity.ticks, at
        present = {("turn", turn) for turn in activity.turns} | {("waiting", session) for session in activity.waiting}
        self._since = {key: self._since.get(key, at) for key in present}
        self._lag = max(late, 0.0)
        self.fault = self._fault(activity, at, every)
        return self.fault

    def status(self) -> Mapping[str, Any]:
        """What the last beat found."""
        return {"stalled": self.fault, "loop_lag_seconds": round(self._lag, 3)}

    def _fault(self, activity: RuntimeActivity, at: float, every: float) -> str:
        # One beat without a pass may be chance.
        if at - self._ticked_at > every * 1.5:
            return f"The runtime has not passed for {at - self._ticked_at:.0f} s."
        if self._lag > every:
            return f"Nothing moved for {self._lag:.0f} s."
        for (kind, name), since in sorted(self._since.items()):
            if at - since <= self._max_seconds:
                continue
            if kind == "turn":
                return f"A turn of {activity.turns[name]} has not ended for {at - since:.0f} s, and cannot be ended."
            return f"Messages of {name} have waited for {at - since:.0f} s, and no turn takes them."
        return ""


log = get_logger()

# Beats within the time after which the manager kills: one may be missed, and what is wrong is seen at the third.
_BEATS = 4


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Beats while the daemon runs."""

    progress: StallDetector
    activity: Callable[[], RuntimeActivity]
    wake: Callable[[], None]  # asks the runtime to tick
    manager: SystemdNotifier
    serving: Callable[[], str]  # the status while nothing is wrong
    feed: Callable[[], None]  # called at each beat that finds nothing wrong

    async def run(self, every: float) -> NoReturn:
        """Beat until cancelled, the first time at once."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            self.beat(loop.time(), due, every)
            due = loop.time() + every
            await asyncio.sleep(every)

    async def keep_alive_during(self, ending: Awaitable[None], every: float) -> None:
        """Keep the watchdog quiet until `ending` is over; that has a limit of its own."""
        task = asyncio.ensure_future(ending)
        while not task.done():
            self.manager.notify(WATCHDOG="1")
            await asyncio.wait([task], timeout=every)
        await task

    def beat(self, at: float, due: float, every: float) -> None:
        previous = self.progress.fault
        fault = self.progress.check_progress(self.activity(), at, late=at - due, every=every)
        self.wake()
        if not fault:
            self.feed()
            self.manager.notify(WATCHDOG="1", STATUS=self.serving())
        else:
            self.manager.notify(STATUS=fault)
        if fault and not previous:
            log.error("the daemon makes no progress", fault=fault)
        elif previous and not fault:
            log.info("the daemon makes progress again")


def beat_interval(watchdog_seconds: float, watch_seconds: float) -> float:
    """The time between two beats; `watchdog_seconds` is 0 where no manager watches."""
    return min(watch_seconds, watchdog_seconds / _BEATS) if watchdog_seconds else watch_seconds


# Longest that the manager's queue may be full.
_SECONDS = 0.5
_LONGEST_STATUS = 300


class SystemdNotifier:
    """Sends to one manager; with "" as address, nothing. May be used from any thread."""

    def __init__(self, address: str = "") -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def notify(self, **values: str) -> bool:
        """Send one message, such as `READY="1"`, a line a name; whether the manager has it."""
        # Any other address is neither a path nor an abstract name.
        if not self._address.startswith(("/", "\0")):
            return False
        lines = (f"{name}={' '.join(value.split())[:_LONGEST_STATUS]}" for name, value in values.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
                client.settimeout(_SECONDS)
                client.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except OSError:
            return False
        return True


def stopping_message(seconds: float) -> dict[str, str]:
    """Stopping takes `seconds` at most, also where the setting grew after the unit was written."""
    return {
        "STOPPING": "1",
        "STATUS": "Stopping: running turns are finished.",
        "EXTEND_TIMEOUT_USEC": str(round(seconds * 1_000_000)),
    }
