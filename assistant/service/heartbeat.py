"""The daemon's heartbeat: each beat asks the runtime for a pass, and notifies the watchdog only while the runtime makes
progress (F40). `at` is monotonic, in seconds.

A separate timer would keep notifying while the runtime is stuck. Here a blocked event loop does not reach its next
beat, and a failing runtime, or a conversation that is never processed, is detected by the `StallDetector`: at each beat
it compares the runtime with its previous state (completed passes, running turns, sessions that wait without a reason).
Then the watchdog is not notified, and the service manager restarts the daemon. A data folder that cannot be written is
not a stall: it is reported separately, and a restart would not help. Without a service manager the heartbeat only
reports the status.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, NoReturn

from assistant.core.dataclass import dataclass
from assistant.core.logger import get_logger

# Time a turn may take beyond its limit: to be cancelled, and to record its failure.
TURN_GRACE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RuntimeActivity:
    """The current activity of the runtime."""

    ticks: int  # passes completed so far
    turns: Mapping[str, str] = field(default_factory=dict)  # sessions of running turns, by turn id
    waiting: frozenset[str] = frozenset()  # sessions waiting for a turn without a known reason


class StallDetector:
    """Detects a runtime without progress: remembers since when each turn runs and each session waits."""

    def __init__(self, turn_seconds: float) -> None:
        """`turn_seconds` is the longest permitted turn (turn.max_seconds)."""
        self._max_seconds = turn_seconds + TURN_GRACE_SECONDS
        self._ticks = -1
        self._ticked_at = 0.0
        self._since: dict[tuple[str, str], float] = {}
        self._lag = 0.0
        self.fault = ""

    def check_progress(self, activity: RuntimeActivity, at: float, *, late: float, every: float) -> str:
        """Return the problem as a sentence, or "". `every` is the time between two beats, at each of which the runtime
        is asked for a pass; `late` is how late this beat was; all in seconds."""
        if activity.ticks != self._ticks:
            self._ticks, self._ticked_at = activity.ticks, at
        present = {("turn", turn) for turn in activity.turns} | {("waiting", session) for session in activity.waiting}
        self._since = {key: self._since.get(key, at) for key in present}
        self._lag = max(late, 0.0)
        self.fault = self._fault(activity, at, every)
        return self.fault

    def status(self) -> Mapping[str, Any]:
        """Return the result of the last beat."""
        return {"stalled": self.fault, "loop_lag_seconds": round(self._lag, 3)}

    def _fault(self, activity: RuntimeActivity, at: float, every: float) -> str:
        # One beat without a pass may be by chance.
        if at - self._ticked_at > every * 1.5:
            return f"The runtime has not passed for {at - self._ticked_at:.0f} s."
        if self._lag > every:
            return f"Nothing moved for {self._lag:.0f} s, until just now."
        for (kind, name), since in sorted(self._since.items()):
            if at - since <= self._max_seconds:
                continue
            if kind == "turn":
                return f"A turn of {activity.turns[name]} has not ended for {at - since:.0f} s, and cannot be ended."
            return f"Messages of {name} have waited for {at - since:.0f} s, and no turn takes them."
        return ""


log = get_logger()

# Beats per watchdog period: one may be missed, and a stall is detected at the third.
_BEATS = 4


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Sends heartbeats while the daemon runs."""

    progress: StallDetector
    activity: Callable[[], RuntimeActivity]
    wake: Callable[[], None]  # asks the runtime for a pass
    manager: SystemdNotifier
    serving: Callable[[], str]  # the status while there is no problem
    feed: Callable[[], None]  # called at each beat without a problem

    async def run(self, every: float) -> NoReturn:
        """Send beats until cancelled, the first immediately."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            self.beat(loop.time(), due, every)
            due = loop.time() + every
            await asyncio.sleep(every)

    async def keep_alive_during(self, ending: Awaitable[None], every: float) -> None:
        """Keep notifying the watchdog until `ending` is done, which has its own time limit."""
        task = asyncio.ensure_future(ending)
        while not task.done():
            self.manager.notify(WATCHDOG="1")
            await asyncio.wait([task], timeout=every)
        await task

    def beat(self, at: float, due: float, every: float) -> None:
        """Check the daemon's progress and tell the service manager: the watchdog is only fed while there is progress.
        `at`, `due` (when it was to run) and `every` are seconds of the loop's clock."""
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
    """Return the time between two beats; `watchdog_seconds` is 0 without a service manager."""
    return min(watch_seconds, watchdog_seconds / _BEATS) if watchdog_seconds else watch_seconds


# How long the manager's queue may be full.
_SECONDS = 0.5
_LONGEST_STATUS = 300


class SystemdNotifier:
    """Sends messages to one service manager, or none if the address is "". Thread-safe."""

    def __init__(self, address: str = "") -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def notify(self, **values: str) -> bool:
        """Send one message, such as `READY="1"`, one line per name; return whether it was delivered."""
        # Other addresses are neither a path nor an abstract name.
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
    """Return the message that stopping takes at most `seconds`, even if the setting changed after the unit was
    written."""
    return {
        "STOPPING": "1",
        "STATUS": "Stopping: running turns are finished.",
        "EXTEND_TIMEOUT_USEC": str(round(seconds * 1_000_000)),
    }
