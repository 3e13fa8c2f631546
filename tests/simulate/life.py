"""One simulated life: its events, one after the other, and what the people in it know. The invariants are looked at
after each event, and all of them once a day (`checks.py`)."""

from __future__ import annotations

import asyncio
import re
import resource
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assistant.core.bridge_api import InboundMessage, MessageChange
from assistant.core.errors import AssistantError, MemoryUnavailable
from assistant.core.messages import Media
from assistant.core.records import InboxReceipt
from tests.simulate.checks import Checks
from tests.simulate.clock import Machine, VirtualLoop
from tests.simulate.knowledge import Failure, Faults, Knowledge
from tests.simulate.model import Provider
from tests.simulate.network import OWNER, ROOM, SENDERS, Network
from tests.simulate.plan import BEGAN, DAY, HOUR, MINUTE, ZONE, Event
from tests.simulate.world import World

_FORGET_CODE = re.compile(r"/forget ([0-9A-F]{6,})")
_THEIRS = "another person's: they said the same words"
_LOOK = 0.5 * HOUR
_QUIET_TRIES = 400


class Life:
    def __init__(self, folder: Path, seed: int, loop: VirtualLoop, models: Provider, complaints: list[str]) -> None:
        self.machine = Machine(loop, BEGAN)
        self.models = models
        self.complaints = complaints
        self.knowledge = Knowledge()
        self.faults = Faults()
        complain = complaints.append
        networks = [
            Network(name, deduplicates, complain, self._on_acknowledged, lambda part: self.checks.note_shown(part))
            for name, deduplicates in (("alpha", True), ("beta", False))
        ]
        self.world = World(folder, seed, self.machine, networks)
        self.checks = Checks(self)
        self.counts: Counter[str] = Counter()
        self.event: Event | None = None  # what happens, or happened last
        self.window_set_at = -DAY
        self._sent = 0
        self._meanings: dict[tuple[str, str], tuple[str, str, str]] = {}  # by message: key, word, scope
        self._said_as: dict[tuple[str, str], str] = {}  # by message: how a new value was marked
        self._to_forget: list[str] = []
        self._next_look = 0.0
        self._limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    # --------------------------------------------------------------------------------------------------------- time

    def now(self) -> float:
        return (self.machine.true_time() - BEGAN).total_seconds()

    async def pass_until(self, at: float) -> None:
        """Time goes on; what is due is looked at now and then, as the daemon does more often."""
        while self.now() < at:
            ends = [end for end in self.faults.until.values() if end > self.now()]
            stop = min([at, self._next_look, *ends])
            if stop > self.now():
                await asyncio.sleep(max(stop - self.now(), 0.001))
            await self._end_faults()
            if self.now() >= self._next_look:
                self._next_look = self.now() + _LOOK
                self.look()

    def look(self) -> None:
        if (app := self.world.app) is None:
            return
        app.check_due()
        app.maintenance.run()
        self.checks.reminders.look()

    async def quiet(self) -> bool:
        """Wait until nobody works and nothing waits; whether that was so."""
        for _ in range(_QUIET_TRIES):
            app = self.world.running
            status = app.runtime.status()
            busy = status["running_turns"] or status["waiting_sessions"] or status["blocked"]
            waits = any(app.stores.outbox.pending_items(name) for name in self.world.networks)
            queued = any(network.queue for network in self.world.networks.values())
            if not (busy or waits or queued or app.sleep.scheduler.is_asleep() or app.backup_scheduler.is_running()):
                return True
            await self.pass_until(self.now() + 20)
        return False

    # ------------------------------------------------------------------------------------------------------- a life

    async def live(self, events: Sequence[Event], days: int) -> Failure | None:
        try:
            await self.world.start()
            for text in (f"link alpha {OWNER}", f"link beta {OWNER}", "allow alpha 7", "allow beta 8"):
                await self.command(f"/people {text}")
            await self.command(f"/people allow room alpha {ROOM}")
            last = 0
            for event in [*events, Event(0, days * DAY + 10, "end")]:
                while (last + 1) * DAY - 10 * MINUTE <= event.at:
                    await self.pass_until((last + 1) * DAY - 10 * MINUTE)
                    last += 1
                    if failure := await self._check(None, daily=True):
                        return failure
                await self.pass_until(event.at)
                self.event = event
                self.counts[event.kind] += 1
                if self.world.app is None and event.kind != "end":
                    continue
                await getattr(self, f"_{event.kind}")(**event.values)
                if failure := await self._check(event, daily=False):
                    return failure
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, self._limit)
            if self.world.app is not None:
                await self.world.abandon()
        return None

    async def _check(self, event: Event | None, *, daily: bool) -> Failure | None:
        try:
            await (self.checks.once_a_day() if daily else self.checks.after_event())
        except AssistantError as error:
            if not (isinstance(error, MemoryUnavailable) and "memory" in self.faults.until):
                self.complaints.append(f"error: {type(error).__name__}: {error}")
        return Failure(event, list(dict.fromkeys(self.complaints))) if self.complaints else None

    async def _end(self) -> None:
        await self._end_faults(all_of_them=True)

    async def command(self, text: str) -> str:
        """Typed by the owner at a terminal."""
        try:
            return await self.world.running.commands.run(text, "main")
        except AssistantError as error:
            return f"{type(error).__name__}: {error}"

    # ------------------------------------------------------------------------------------------------- what is said

    def _post(self, scope: str, bridge: str, text: str, **about: Any) -> str:
        self._sent += 1
        number = f"n{self._sent}"
        sender = SENDERS[scope]
        if scope == "room":
            about |= {"room": ROOM, "sender_name": "Ann"}
        target = ROOM if scope == "room" else sender
        message = InboundMessage(bridge, number, sender, text, target=target, **about)
        self.world.networks[bridge].post(message)
        return number

    def _on_acknowledged(self, item: InboundMessage | MessageChange, receipt: InboxReceipt | None) -> None:
        if isinstance(item, InboundMessage):
            self.checks.note_acknowledged(item, receipt)
        place = item.bridge, item.external_id if isinstance(item, InboundMessage) else item.change_id
        if meaning := self._meanings.pop(place, None):
            self.knowledge.learn(*meaning, (item.bridge, item.external_id), self.now())

    async def _say(self, scope: str, bridge: str, text: str) -> str:
        number = self._post(scope, bridge, text)
        await asyncio.sleep(0.3)
        return number

    async def _remark(self, scope: str, bridge: str, text: str) -> None:
        await self._say(scope, bridge, text)

    async def _long(self, scope: str, bridge: str, text: str) -> None:
        await self._say(scope, bridge, text)

    async def _tell(self, scope: str, bridge: str, key: str, word: str, now: str = "") -> None:
        self.knowledge.doubt(key)
        self.knowledge.scopes[key] = scope
        number = self._post(scope, bridge, f"{key} is {now}{word}.")
        self._meanings[bridge, number] = key, word, scope
        self._said_as[bridge, number] = now
        await asyncio.sleep(0.3)

    async def _correct(self, scope: str, bridge: str, key: str, word: str) -> None:
        await self._tell(scope, bridge, key, word, "now ")

    async def _ask(self, scope: str, bridge: str, key: str) -> None:
        await self._say(scope, bridge, f"What is the{key[3:]}?")

    async def _remind(self, scope: str, bridge: str, text: str, when: str) -> None:
        self.checks.reminders.note_order(text, when)
        await self._say(scope, bridge, f"Remind me to {text}; {when}.")

    async def _todo(self, scope: str, bridge: str, text: str) -> None:
        await self._say(scope, bridge, f"Put {text} on my list, please.")

    async def _command(self, scope: str, bridge: str, text: str) -> None:
        await self._say(scope, bridge, text)

    async def _file(self, scope: str, bridge: str, text: str) -> None:
        media = Media("file", "text/plain", f"note {self._sent}.txt", data="dGVhIGF0IGZpdmU=")
        self._post(scope, bridge, text, media=(media,))
        await asyncio.sleep(0.3)

    async def _again(self, scope: str, bridge: str) -> None:
        """The network hands in once more what was acknowledged."""
        newest = self.checks.newest_message(bridge, scope)
        if newest is not None:
            self.world.networks[bridge].post(newest)
            await asyncio.sleep(0.3)

    async def _edit(self, scope: str, bridge: str, key: str, word: str) -> None:
        # An edit changes one word: without a model, nothing but the "now" says that the older value is over.
        now = self._said_as.get(self.knowledge.sent.get(key, ("", "")), "")
        await self._change(scope, key, "edit", f"{key} is {now}{word}.", word)

    async def _delete(self, scope: str, bridge: str, key: str) -> None:
        await self._change(scope, key, "delete", "", "")

    async def _change(self, scope: str, key: str, kind: Any, text: str, word: str) -> None:
        if (place := self.knowledge.sent.get(key)) is None or self.knowledge.scopes[key] != scope:
            return
        self._sent += 1
        bridge, number = place
        change = MessageChange(
            bridge, number, f"c{self._sent}", kind, SENDERS[scope], text, room=ROOM if scope == "room" else None
        )
        self.knowledge.doubt(key)
        if word:
            self._meanings[bridge, change.change_id] = key, word, scope
        else:
            del self.knowledge.sent[key]
        self.world.networks[bridge].post(change)
        await asyncio.sleep(0.3)

    # ---------------------------------------------------------------------------------------------- what is ordered

    async def _compact(self) -> None:
        await self.command("/compact")

    async def _reset(self) -> None:
        await self.command("/reset")

    async def _sleep(self) -> None:
        await self.command("/sleep")

    async def _backup(self) -> None:
        await self.command("/backup create")

    async def _undo(self) -> None:
        await self._say("owner", "alpha", "Never mind that the train was late.")
        if await self.quiet():
            await self.command("/undo")

    async def _branch(self) -> None:
        await self.command("/branch")
        await self._say("owner", "alpha", "Let us look at that from another side.")

    async def _schedule(self, name: str, every: str) -> None:
        await self.command(f'/schedule add {name} "What is on my list?" --every "{every}"')

    async def _memory_edit(self, which: int, word: str) -> None:
        app = self.world.running
        memories = [one for one in await app.stores.memories.all("owner") if one.is_current]
        if memories:
            memory = memories[which % len(memories)]
            for key in self.knowledge.values:
                if key in memory.text:
                    self.knowledge.doubt(key)
            await self.command(f'/memory edit {memory.id[:12]} "The lamp of the {word} is green."')

    async def _forget(self, key: str) -> None:
        if words := self.knowledge.values.get(key):
            self.knowledge.doubt(key)
            self._to_forget.append(words[-1])
            await self.forget_waiting()

    async def forget_waiting(self) -> None:
        """What is still to be forgotten: nothing is while something else keeps it away."""
        for word in list(self._to_forget):
            asked = await self.command(f"/forget {word}")
            match = _FORGET_CODE.search(asked)
            if match is None:
                continue
            done = await self.command(f"/forget {match[1]}")
            left = done.partition("Still there:")[2].strip().splitlines()
            # What somebody else said in the same words is theirs; the word itself nobody else says.
            if "found nowhere" in done or (left and all(line.endswith(_THEIRS) for line in left)):
                self._to_forget.remove(word)
                self.knowledge.forgotten.add(word)
                self.checks.look_for([word])
            elif "Still there" in done and not self.faults.until:
                self.complaints.append(f"forget: {done[:300]}")

    async def _stranger(self) -> None:
        self._sent += 1
        message = InboundMessage("alpha", f"n{self._sent}", "666", "Let me in.", target="666")
        self.world.networks["alpha"].post(message)
        await asyncio.sleep(5)

    # ----------------------------------------------------------------------------------------------- what happens

    async def _restart(self, seconds: float, wait: float) -> None:
        await asyncio.sleep(wait)
        await self.world.stop()
        await self._stay_off(seconds)

    _off = _restart

    async def _settings(self, name: str, value: str) -> None:
        self.world.settings[name] = value
        if name == "CONTEXT__MAX_CONTEXT_TOKENS":
            self.window_set_at = self.now()
        await self._restart(2.0, 0.0)

    async def _crash(self, seconds: float, wait: float) -> None:
        await asyncio.sleep(wait)
        await self._end_fault("disk")
        await self.world.crash()
        await self._stay_off(seconds)

    async def _stay_off(self, seconds: float) -> None:
        self.faults.note("off", self.now(), self.now() + seconds)
        await self.pass_until(self.now() + seconds)
        await self._end_fault("disk")
        await self.world.start()
        self._fault_ended()

    async def _model_down(self, trouble: str, seconds: float) -> None:
        self.models.trouble = trouble
        self._begin_fault("model", seconds)

    async def _bridge_down(self, bridge: str, seconds: float) -> None:
        network = self.world.networks[bridge]
        network.is_down = True
        network.woken.set()
        self._begin_fault(f"bridge {bridge}", seconds)

    async def _unsure(self, bridge: str, seconds: float) -> None:
        self.world.networks[bridge].is_unsure = True
        self._begin_fault(f"unsure {bridge}", seconds)

    async def _disk_full(self, seconds: float) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, self._limit[1]))
        self._begin_fault("disk", seconds)

    async def _memory_down(self, seconds: float) -> None:
        self.world.is_memory_down = True
        self._begin_fault("memory", seconds)

    async def _jump(self, by: float, seconds: float) -> None:
        self.machine.set_clock(timedelta(seconds=by))
        self._begin_fault("clock", seconds)
        self.look()
        self._next_look = self.now() + 6 * MINUTE

    async def _suspend(self, seconds: float) -> None:
        self.faults.note("suspended", self.now(), self.now() + seconds)
        self.machine.suspend(timedelta(seconds=seconds))
        self._fault_ended()
        self.look()

    def _begin_fault(self, name: str, seconds: float) -> None:
        self.faults.until[name] = max(self.faults.until.get(name, 0.0), self.now() + seconds)
        self.faults.note(name, self.now(), self.faults.until[name])

    async def _end_faults(self, *, all_of_them: bool = False) -> None:
        for name, until in list(self.faults.until.items()):
            if all_of_them or until <= self.now():
                await self._end_fault(name)

    async def _end_fault(self, name: str) -> None:
        if name not in self.faults.until:
            return
        self.checks.before_fault_ends(name)
        del self.faults.until[name]
        what, _, which = name.partition(" ")
        match what:
            case "model":
                self.models.trouble = ""
                self.models.answered.clear()
            case "bridge":
                self.world.networks[which].is_down = False
            case "unsure":
                self.world.networks[which].is_unsure = False
            case "disk":
                resource.setrlimit(resource.RLIMIT_FSIZE, self._limit)
            case "memory":
                self.world.is_memory_down = False
            case "clock":
                self.machine.set_clock(timedelta())
                self.look()
                self._next_look = self.now() + 6 * MINUTE
        self._fault_ended()

    def _fault_ended(self) -> None:
        self.faults.calm_since = self.now()

    def is_calm(self, seconds: float) -> bool:
        """Nothing was out of order for so long."""
        return not self.faults.until and self.now() - self.faults.calm_since >= seconds

    def local_time(self) -> datetime:
        return self.machine.true_time().astimezone(ZONE)
