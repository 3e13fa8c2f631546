"""The invariants of a simulated life: what is looked at after each event, and what once a day, when nothing goes on.

Each adds a line to the complaints that begins with the invariant, as in "I1: ...". Those that the model and the
networks look at themselves (I5, I8, I10) are in `model.py` and `network.py`.
"""

from __future__ import annotations

import gzip
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from assistant.core.bridge_api import InboundMessage, OutgoingPart
from assistant.core.errors import AssistantError
from assistant.core.messages import Usage
from assistant.core.records import InboxReceipt, is_answer_key
from assistant.models.prices import load_prices
from assistant.settings.settings import shipped_config_dir
from assistant.wire.models import PRICES_FILE
from tests.simulate.network import SENDERS
from tests.simulate.reminders import Reminders
from tests.simulate.words import FACT

if TYPE_CHECKING:
    from tests.simulate.life import Life

_DONE = ("answered", "failed", "superseded")
_DAY = 86_400.0
_LEARNED_WITHIN = 3 * _DAY
# What is damaged stays damaged: later, when it takes long to read all, each third day is enough.
_EVERY_DAY = 40
# A day of remarks alone: a warning by design, until a sleep learns something.
_MODEL_AWAY = re.compile(r"(\S+) has not answered since")
_WITHOUT_MODEL = {
    "Summaries are made without a model": ("summary", "sleep_summary"),
    "The journal is written without a model": ("extraction",),
}
_LEARNED_NOTHING = "nothing was saved from them"


class Checks:
    def __init__(self, life: Life) -> None:
        self._life = life
        self._open: dict[int, InboundMessage] = {}  # by inbox id: acknowledged, and no end was seen of it
        self._newest: dict[tuple[str, str], InboundMessage] = {}
        self._logs: dict[Path, int] = {}
        self._shown = dict.fromkeys(life.world.networks, 0)
        self._answers: dict[int, set[str]] = defaultdict(set)  # by inbox id: keys of answers that were shown
        self._newest_compactions: dict[str, int] = defaultdict(int)
        self._compactions = 0
        self._luck = Random(f"checks {life.world.seed}")
        self._days = 0
        self._prices = load_prices(shipped_config_dir() / PRICES_FILE)["anthropic"]
        self._billed: dict[date, float] = defaultdict(float)  # US dollars, by day
        self._caps: dict[date, set[float]] = defaultdict(set)
        self.reminders = Reminders(life)
        self._shown_keys: set[str] = set()
        self._dropped_keys: set[str] = set()
        self._journal_entries = self._forgotten = 0

    def _complain(self, text: str) -> None:
        self._life.complaints.append(text)

    # ---------------------------------------------------------------------------------------------------- what was seen

    def note_acknowledged(self, message: InboundMessage, receipt: InboxReceipt | None) -> None:
        self._newest[message.bridge, message.sender] = message
        if receipt is not None and not receipt.duplicate:
            self._open[receipt.inbox_id] = message
        if receipt is not None and receipt.conflicts:
            self._complain(f"I1: {message.external_id} was acknowledged and is another message in the inbox")

    def note_billed(self, model: str, usage: Usage) -> None:
        price = self._prices.price_for_model(model)
        assert price is not None
        day = self._life.local_time().date()
        self._billed[day] += price.cost_of_call(usage)
        self._caps[day].add(float(self._life.world.settings.get("BUDGET__DAILY_USD", "5")))

    def note_shown(self, part: OutgoingPart) -> None:
        self._shown_keys.add(part.item.outgoing.key)
        self.reminders.note_shown(part)

    def newest_message(self, bridge: str, scope: str) -> InboundMessage | None:
        return self._newest.get((bridge, SENDERS[scope]))

    # ------------------------------------------------------------------------------------------------------ each event

    async def after_event(self) -> None:
        self._check_shown()
        if self._life.world.app is not None:
            self._check_logs_grow()
            self.reminders.look()

    def _check_shown(self) -> None:
        """Nothing is answered twice (I1, I8)."""
        for name, network in self._life.world.networks.items():
            for part in network.shown[self._shown[name] :]:
                outgoing = part.item.outgoing
                if outgoing.inbox_id is not None and is_answer_key(outgoing.key):
                    self._answers[outgoing.inbox_id].add(outgoing.key)
                    if len(self._answers[outgoing.inbox_id]) > 1:
                        self._complain(
                            f"I1: message {outgoing.inbox_id} was answered by {self._answers[outgoing.inbox_id]}"
                        )
            self._shown[name] = len(network.shown)

    def _check_logs_grow(self) -> None:
        """The logs only grow (I2)."""
        for path in (self._life.world.home / "log").glob("*/conversation.jsonl"):
            size = path.stat().st_size
            if size < self._logs.get(path, 0):
                self._complain(f"I2: {path.parent.name} shrank from {self._logs[path]} to {size} bytes")
            self._logs[path] = size

    # ------------------------------------------------------------------------------------------------------- each day

    async def once_a_day(self) -> None:
        life = self._life
        self._days += 1
        if life.world.app is None:
            return
        if "disk" in life.faults.until:
            return
        is_quiet = await life.quiet()
        await self.after_event()
        if not life.faults.until and not is_quiet:
            self._complain(f"I1: it does not come to rest: {self._what_is_open()}")
        self._check_ended()
        await self._look_after_deliveries()
        await life.forget_waiting()
        await life.world.running.maintenance.index_new_messages()
        if self._days <= _EVERY_DAY or self._days % 3 == 0:
            self._check_integrity()
        self._check_agenda()
        self.reminders.check()
        await self._check_lists()
        self._check_journal()
        self._check_compactions()
        await self._check_status()
        # Last, as it is done with the day.
        self._check_spending()
        await self._check_recall()
        if self._days % 7 == 0:
            await self._check_memories()
            self.look_for(life.knowledge.forgotten)

    def _what_is_open(self) -> str:
        app = self._life.world.running
        waiting = {name: len(app.stores.outbox.pending_items(name)) for name in self._life.world.networks}
        queues = {name: len(network.queue) for name, network in self._life.world.networks.items()}
        asleep = app.sleep.scheduler.is_asleep(), app.backup_scheduler.is_running()
        return f"{dict(app.runtime.status())}, to send {waiting}, to hand in {queues}, asleep or backing up {asleep}"

    def _check_ended(self) -> None:
        """Each acknowledged message has come to its end, and was answered, or its person told why not (I1)."""
        life = self._life
        stores = life.world.running.stores
        for inbox_id, message in list(self._open.items()):
            item = stores.conversation.inbox_item(inbox_id)
            if item is None:
                self._complain(
                    f"I1: {message.external_id} ({message.content[:40]!r}) was acknowledged and is not there"
                )
            elif item.state not in _DONE:
                if life.is_calm(3600):
                    self._complain(f"I1: {message.external_id} ({message.content[:40]!r}) is still {item.state}")
                continue
            elif item.state in ("answered", "failed"):
                sent = stores.outbox.list_by_turn(item.turn) if item.turn else []
                keys = {one.outgoing.key for one in sent if is_answer_key(one.outgoing.key)}
                if not keys:
                    self._complain(f"I1: {message.external_id} is {item.state}, and nothing was sent for it")
                elif not keys & (self._shown_keys | self._dropped_keys):
                    if not life.is_calm(_DAY):
                        continue
                    self._complain(f"I1: {message.external_id} is {item.state}, and nobody was shown that")
            del self._open[inbox_id]
        if life.is_calm(3600) and (left := stores.typed_commands.list_open()):
            self._complain(f"I1: commands without an answer: {[command.text for command in left]}")

    async def _look_after_deliveries(self) -> None:
        """The owner discards what may or may not have arrived."""
        for item in self._life.world.running.stores.deliveries.list_stuck():
            if not item.is_sent_automatically:
                key = self._life.world.read_value("script.db", "SELECT key FROM outbox WHERE id = ?", item.id)
                self._dropped_keys.add(key)
                self.reminders.note_dropped(key)
                await self._life.command(f"/deliveries drop {item.id}")

    def _check_integrity(self) -> None:
        """The chain of the logs, the index, coverage, the databases (I2, I3)."""
        for problem in self._life.world.running.stores.verifier.verify().problems:
            self._complain(f"I2: {problem.kind} {problem.where}: {problem.text}")

    def _check_agenda(self) -> None:
        """No time that is due is left (I11)."""
        life = self._life
        if not life.is_calm(3 * 3600):
            return
        overdue = life.world.running.stores.jobs.next_due_at()
        if overdue is not None and overdue < life.machine.true_time() - timedelta(hours=12):
            self._complain(f"I11: something was due at {overdue} and is not told")

    async def _check_lists(self) -> None:
        """What is listed of reminders is what is stored: as many, and the next ones."""
        life = self._life
        waiting = life.world.running.stores.jobs.list_waiting("owner", "reminder")
        listed = await life.command("/remind list")
        for job in waiting[:5]:
            if job.text not in listed:
                self._complain(f"I11: reminder {job.id} ({job.text!r}) waits and is not listed in {listed[:200]!r}")

    def _check_journal(self) -> None:
        """No entry of the journal goes but by being forgotten (I4)."""
        count = self._life.world.read_value("character.db", "SELECT count(*) FROM journal")
        if count < self._journal_entries and self._forgotten == len(self._life.knowledge.forgotten):
            self._complain(f"I4: the journal had {self._journal_entries} entries and has {count}")
        self._journal_entries, self._forgotten = count, len(self._life.knowledge.forgotten)

    def _check_spending(self) -> None:
        """No cap is passed (I9), by the bills of the provider, on days on which no cap and no clock was changed."""
        today = self._life.local_time().date()
        for day in [day for day in self._billed if day < today or self._life.local_time().hour == 23]:
            spent = self._billed.pop(day)
            if len(self._caps[day]) == 1 and self._life.is_calm(_DAY) and spent > (cap := min(self._caps[day])):
                self._complain(f"I9: {spent:.4f} USD were spent on {day}, of {cap}")

    def _check_compactions(self) -> None:
        """Each gains something, none is repeated without a gain (I7), and no conversation stays too full. Of too many
        light messages it is enough that they are fewer."""
        app = self._life.world.running
        for info in app.stores.conversation.list_sessions():
            newest = self._newest_compactions[info.key]
            for checkpoint in app.stores.conversation.checkpoints(info.key, after=newest):
                self._compactions += 1
                self._newest_compactions[info.key] = checkpoint.num
                before, after = checkpoint.key_facts.get("pressure", (1.0, 0.0))
                is_larger = after >= before and checkpoint.trigger != "messages"
                if checkpoint.state == "live" and is_larger:
                    self._complain(f"I7: a compaction of {info.key} ({checkpoint.trigger}) left {before} at {after}")
            pressure = app.contexts.window.pressure(info.key)
            # A conversation in which nobody spoke since the window was made smaller is compacted in the night.
            is_settled = self._life.now() - self._life.window_set_at > _DAY
            if pressure is not None and pressure >= 0.95 and is_settled:
                self._complain(f"I7: {info.key} is {pressure:.0%} full at the end of the day")

    async def _check_status(self) -> None:
        """Green again once nothing has been out of order for a while (I11). The person has read what came late."""
        await self._life.command("/schedule history")
        if not self._life.is_calm(1.5 * _DAY):
            return
        report = self._life.world.running.status()
        today = self._life.local_time().date()
        for problem in report["problems"]:
            if is_of_todays_calls(problem, self._billed.get(today, 0.0), self._caps.get(today, set())):
                continue
            if _LEARNED_NOTHING not in problem and self._was_asked_again(problem):
                self._complain(f"I11: status is not green again: {problem}")

    def _was_asked_again(self, problem: str) -> bool:
        """A model that was away is known to be back when it answers; nobody asks it where there is nothing to ask
        (I9)."""
        answered = self._life.models.answered
        if match := _MODEL_AWAY.match(problem):
            return bool(answered[match[1]])
        purposes = next((purposes for begin, purposes in _WITHOUT_MODEL.items() if problem.startswith(begin)), None)
        return purposes is None or any(answered[purpose] for purpose in purposes)

    def before_fault_ends(self, name: str) -> None:
        """Red while it must be (I11)."""
        app = self._life.world.app
        if app is None:
            return
        what, _, which = name.partition(" ")
        try:
            if what == "bridge" and app.dispatcher.bridge_states()[which]["ok"]:
                self._complain(f"I11: {which} was away, and the status says that it is well")
        except AssistantError:
            return

    def list_untried(self) -> list[str]:
        """What a life of some weeks has, and this one had not: then what would be wrong with it was not looked at."""
        models, networks = self._life.models, self._life.world.networks.values()
        keys = [part.key for network in networks for part in network.shown]
        seen = {
            "answers": len(self._answers),
            "reminders": sum(key.startswith("reminder:") for key in keys),
            "questions answered from what was shown": models.recalled["shown"],
            "questions answered by a search": models.recalled["searched"],
            "calls of a night": models.calls_by_purpose["consolidation"],
            "compactions": self._compactions,
            "words that were forgotten": len(self._life.knowledge.forgotten),
            "calls that a provider refused": models.refused_calls,
            "starts": self._life.world.lives - 1,
        }
        return [name for name, count in seen.items() if not count]

    # --------------------------------------------------------------------------------------------- what is remembered

    async def _check_recall(self) -> None:
        """Something that was told is found by its own words, in its own scope."""
        life = self._life
        certain = life.knowledge.certain("owner")
        history = life.world.running.stores.history
        for key, word in self._luck.sample(certain, min(2, len(certain))):
            hits = history.search(f"{key} {word}", "owner", limit=8)
            if not any(word in hit.text for hit in hits):
                self._complain(f"recall: {key} is {word} is not found among what was said")

    async def _check_memories(self) -> None:
        """Of two values only the newest is a memory that holds; and after some quiet nights an older one does not hold
        alone."""
        life = self._life
        is_learned = life.is_calm(_LEARNED_WITHIN) and float(life.world.settings.get("BUDGET__DAILY_USD", "5")) > 1
        newest = dict(life.knowledge.certain("owner"))
        held: dict[str, set[str]] = defaultdict(set)
        for memory in await life.world.running.stores.memories.all("owner"):
            if memory.is_current and (match := FACT.search(memory.text)):
                held[match["key"]].add(match["value"])
        for key, values in held.items():
            if newest.get(key) in values and len(values) > 1:
                self._complain(f"memory: {key} is {newest[key]}, and still {values - {newest[key]}}")
            told_at = life.knowledge.learned_at.get(key, math.inf)
            if is_learned and key in newest and newest[key] not in values and life.now() - told_at > _LEARNED_WITHIN:
                self._complain(f"memory: {key} is {newest[key]}, and {values} is remembered alone")

    def look_for(self, words: Iterable[str]) -> None:
        """None of these stands in any file."""
        pattern = re.compile("|".join(words).encode()) if words else None
        if pattern is None:
            return
        for name, data in _contents(self._life.world.home):
            if match := pattern.search(data):
                self._complain(f"forget: {match[0].decode()} is forgotten and still in {name}")


def is_of_todays_calls(problem: str, billed: float, caps: set[float]) -> bool:
    """Whether a day's budget is too small for one more call by what was spent on that day: then it is red until the
    day ends. A call is refused where the most that it may cost is more than the rest, which is less than half of the
    lowest cap; the bill alone says nothing of that. What is left of the day before is out of order."""
    return problem.startswith("The daily budget ") and bool(caps) and billed >= min(caps) / 2


def _contents(home: Path) -> Iterator[tuple[str, bytes]]:
    """Every file, unpacked; of a packed folder the files one after another."""
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            yield path.relative_to(home).as_posix(), gzip.decompress(data) if path.suffix in (".gz", ".tgz") else data
