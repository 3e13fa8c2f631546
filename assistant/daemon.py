"""The daemon: one process serves one data folder.

It holds the lock of the data folder, builds the app, serves the control socket, and wakes the runtime for a
message, for due work, and at least every `daemon.watch_seconds` by the wall clock: APScheduler's own timer is
monotonic and stands still while a laptop sleeps. Signals only set a flag; stopping drains running turns first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING

from assistant.core.dataclass import dataclass
from assistant.core.imports import no_package_metadata, placeholder_modules
from assistant.core.logger import get_logger, load_logging
from assistant.core.shutdown import (
    SHUTDOWN_TIMEOUTS,
    ShutdownTimeouts,
    finish_within,
    load_in_thread,
    service_manager_timeout,
    shutdown_seconds,
)
from assistant.runtime.current_models import model_label
from assistant.service.clock import SteadyClock
from assistant.service.heartbeat import Heartbeat, SystemdNotifier, beat_interval, stopping_message
from assistant.service.home_lock import LockRole, home_lock
from assistant.service.idle_note import IdleOptions
from assistant.service.malloc import keep_for_good
from assistant.service.presence import will_stay
from assistant.service.stop_signals import listen_for_stop
from assistant.settings.home import NotifyTarget
from assistant.settings.settings import Settings
from assistant.wire.app import App, build_app

if TYPE_CHECKING:
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

log = get_logger()

_UPKEEP_MINUTES = 5
# Seconds until the schedule is loaded where somebody waits for the answer to one question.
_SCHEDULED_AFTER = 1.0
SWITCH_SECONDS = 0.00005


@dataclass(frozen=True, slots=True)
class Supervision:
    """What watches a daemon from outside."""

    manager: NotifyTarget = field(default_factory=NotifyTarget)  # the service manager that started it
    force_stop: asyncio.Event | None = None  # cuts the shutdown short
    watchdog: Callable[[float], None] | None = None  # gets within how many seconds it is called again
    idle: IdleOptions | None = None  # None: whether anybody needs it is not noted


_NO_SUPERVISION = Supervision()


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon."""

    app: App
    worker: asyncio.Task[None]  # the runtime's loop

    async def wait_until(self, stop: asyncio.Event) -> None:
        """Wait for `stop`; raises what the runtime raised if it ended before."""
        waiter = asyncio.create_task(stop.wait())
        await asyncio.wait([waiter, self.worker], return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if self.worker.done():
            self.worker.result()


@asynccontextmanager
async def serve_daemon(
    settings: Settings,
    supervision: Supervision = _NO_SUPERVISION,
    *,
    warm_after: float | None = 0.0,
    role: LockRole = "daemon",
    listens: bool = True,
) -> AsyncIterator[Daemon]:
    """The daemon, in this process, while the context is open. What is heavy and was not needed to be ready is loaded
    `warm_after` seconds later, or, with None, only when it is needed. Without `listens` the page is served only where
    a port was chosen."""
    every = beat_interval(supervision.manager.watchdog_seconds, settings.values.daemon.watch_seconds)
    if warm_after is not None:
        # Else they are imported later, and seldom: most questions are answered by then, and no line was written.
        _import_without_plugins()
        load_logging()
    with home_lock(settings.home.path, role):
        async with contextlib.AsyncExitStack() as stack:
            app = build_app(settings, SteadyClock(), listens=listens)
            stack.callback(app.close)
            app.agenda.stays = partial(will_stay, settings.home.path)
            await app.start()
            worker = asyncio.create_task(app.runtime.run(), name="runtime")
            stack.callback(worker.cancel)
            if supervision.idle:
                from assistant.wire.idle import IdleWatch  # only on a host of a fleet

                watch = IdleWatch(app, supervision.idle)
                stack.callback(watch.end)
                stack.callback(asyncio.create_task(watch.run(), name="idle").cancel)
            # Entered before the shutdown is planned, so that terminals are still attached while turns finish.
            await stack.enter_async_context(app.serve())
            pulse = _heartbeat(app, settings, supervision)
            drain_seconds = settings.values.daemon.drain_seconds
            shutdown = partial(shut_down, app, worker, drain_seconds, force_stop=supervision.force_stop)
            stack.push_async_callback(lambda: pulse.keep_alive_during(shutdown(), every))
            scheduled_after = _SCHEDULED_AFTER if warm_after is None else warm_after
            scheduling = asyncio.create_task(_run_schedule(app, settings, scheduled_after), name="schedule")
            stack.callback(scheduling.cancel)
            app.agenda_scheduler.start()
            if warm_after is not None:
                warming = asyncio.create_task(_warm(app, warm_after), name="warming")
                stack.callback(warming.cancel)
            stack.callback(asyncio.create_task(pulse.run(every), name="pulse").cancel)
            model = app.models.answering
            counting = app.estimates.describe(model.name)
            log.info("ready", home=str(settings.home.path), model=model_label(model), tokens=counting)
            yield Daemon(app, worker)


async def shut_down(
    app: App,
    worker: asyncio.Task[None],
    drain_seconds: float,
    timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS,
    force_stop: asyncio.Event | None = None,
) -> None:
    """End what runs, each step within its time (F38); what does not end is logged and left for the next start."""
    unfinished = asyncio.gather(
        app.sleep.scheduler.stop(),
        app.background_compaction.stop(),
        app.resets.stop(),
        app.backup_scheduler.stop(),
        app.agenda_scheduler.stop(),
        app.briefs.stop(),
        app.notifier.stop(),
    )
    await finish_within(timeouts.sleep, unfinished, "a sleep or a reset")
    await finish_within(timeouts.commands, app.inbound.stop(), "the commands")
    await app.stop(drain_seconds, timeouts, force_stop)
    await finish_within(timeouts.runtime, asyncio.wait([worker]), "the runtime")
    await finish_within(timeouts.model, app.models.aclose(), "the model")


async def _warm(app: App, after: float) -> None:
    await asyncio.sleep(after)
    # On a slow machine the only question of `chat -m` may still be at work.
    await app.running_turns.wait_until_quiet()
    await load_in_thread(compile_patterns)
    await load_in_thread(lambda: app.commands.root)
    await app.warm()


def compile_patterns() -> None:
    """Compile what every message is matched with, which would block the event loop or the search at the first one."""
    from assistant.search.query import find_names, parse_question
    from sleep.rules.classifier import classify_request
    from sleep.rules.secrets import compile_secret_patterns

    # A question and a statement are matched with nearly all of them.
    classify_request("Is it wet? It may be wet on the hills.")
    compile_secret_patterns()
    parse_question("Is it wet?", lambda words: {word: word for word in words})
    find_names("Is it wet?")


def _heartbeat(app: App, settings: Settings, supervision: Supervision) -> Heartbeat:
    manager, watchdog = supervision.manager, supervision.watchdog

    def feed() -> None:
        # A manager with an address has a watchdog of its own.
        if watchdog is not None and manager.watchdog_seconds and not manager.address:
            watchdog(manager.watchdog_seconds)

    def serving() -> str:
        return app.runtime.storage_error or f"Serves {settings.home.path}."

    return Heartbeat(
        app.progress,
        app.runtime.progress_snapshot,
        app.running_turns.wake.set,
        SystemdNotifier(manager.address),
        serving,
        feed,
    )


def _import_without_plugins() -> None:
    """Import APScheduler, without its pools of processes, which need another fifty modules, and what finds pydantic's
    plugins: neither has any here. Call it before threads start, which would find none either."""
    with placeholder_modules(**{"concurrent.futures.process": "BrokenProcessPool"}), no_package_metadata():
        import apscheduler.schedulers.asyncio
        import apscheduler.triggers.cron
        import apscheduler.triggers.interval  # noqa: F401
        import pydantic.plugin._loader  # noqa: F401


async def _run_schedule(app: App, settings: Settings, after: float) -> None:
    """Do what is due at intervals, from `after` seconds on, until this is cancelled."""
    await asyncio.sleep(after)
    scheduler = _schedule(app, settings)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        scheduler.shutdown(wait=False)


def _schedule(app: App, settings: Settings) -> AsyncIOScheduler:
    """The jobs are coroutines: APScheduler runs anything else in a thread, and neither the runtime nor the stores are
    thread-safe."""
    from apscheduler.schedulers.asyncio import AsyncIOScheduler
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    async def watch() -> None:
        # The stores know whether something was done already, as in an hour that comes twice.
        app.check_due()

    async def upkeep() -> None:
        app.maintenance.run()
        app.note_health()

    async def index() -> None:
        # Of its own: after an import of a gigabyte it takes long, and the rest is not left out meanwhile.
        # The shutdown cuts this off, and the next start continues; APScheduler would log that as a failure.
        with contextlib.suppress(asyncio.CancelledError):
            await app.maintenance.index_new_messages()
            await app.maintenance.remake_memories()

    # It would warn, in its own words, each time that a job still runs.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = AsyncIOScheduler(timezone=UTC)
    every = IntervalTrigger(seconds=settings.values.daemon.watch_seconds, timezone=UTC)
    scheduler.add_job(watch, every, id="watch", coalesce=True)
    for job in (upkeep, index):
        trigger = IntervalTrigger(minutes=_UPKEEP_MINUTES, timezone=UTC)
        scheduler.add_job(job, trigger, id=job.__name__, coalesce=True)
    if at := settings.values.sleep.at:
        hour, minute = at.split(":")
        # A night that was missed, while the daemon was off or a laptop suspended, is found by the next watch.
        night = CronTrigger(hour=int(hour), minute=int(minute), timezone=settings.zone)
        scheduler.add_job(watch, night, id="night", coalesce=True)
    scheduler.start()
    return scheduler


async def main(
    settings: Settings,
    on_ready: Callable[[str], None] | None = None,
    manager: NotifyTarget | None = None,
    idle: IdleOptions | None = None,
) -> None:
    """Serve in the foreground until SIGINT, SIGTERM, or SIGHUP (the terminal went away); a second one hurries the
    shutdown, which has a limit in any case: see `stop_signals`. `on_ready` gets the page's address, "" for none."""
    stop, force_stop, manager = asyncio.Event(), asyncio.Event(), manager or NotifyTarget()
    loop = asyncio.get_running_loop()
    drain_seconds = settings.values.daemon.drain_seconds
    notifier = SystemdNotifier(manager.address)

    def begin() -> None:
        notifier.notify(**stopping_message(service_manager_timeout(drain_seconds)))
        _in_loop(loop, stop.set)

    with listen_for_stop(shutdown_seconds(drain_seconds), begin, partial(_in_loop, loop, force_stop.set)) as listener:
        supervision = Supervision(manager, force_stop, listener.arm_watchdog, idle)
        async with serve_daemon(settings, supervision) as daemon:
            keep_for_good()
            # What works beside the loop gives the interpreter back sooner.
            sys.setswitchinterval(SWITCH_SECONDS)
            notifier.notify(READY="1")
            if on_ready is not None:
                on_ready(await daemon.app.web.first_url())
            await daemon.wait_until(stop)
            log.info("stopping")


def _in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    """Call `act` in the loop, from another thread; not once the loop is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(act)
