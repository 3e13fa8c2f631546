"""Whatever is said, reset, resumed, compacted, undone, cleared or cut off by a crash, in whatever order: nothing that
was accepted is lost or answered twice, every generation is covered, and the log only grows (I1-I4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.core.errors import UsageError
from assistant.core.sessions import GenerationEnd
from assistant.store.script.generations import StoredGenerations
from tests.contract.test_store_crash import crash_after
from tests.support.compactions import kept_copy, live_messages, plan_compaction, summary_message
from tests.support.store_home import NOW, StoreHome, memory_backed_directory

Kind = Literal["say", "accept", "answer", "reset", "resume", "compact", "undo", "upkeep", "restart"]
_KINDS: tuple[Kind, ...] = ("say", "accept", "answer", "reset", "resume", "compact", "undo", "upkeep", "restart")


@dataclass(frozen=True, slots=True)
class ResetStep:
    kind: Kind
    share: float
    crash: bool


steps = st.builds(ResetStep, st.sampled_from(_KINDS), st.floats(0, 1), st.booleans())


class ResetSequence:
    def __init__(self, home: StoreHome) -> None:
        self.home = home
        self.words = 0
        self.waiting: list[str] = []
        self.said: list[str] = []
        self.raw = b""

    def live(self, step: ResetStep) -> None:
        act = getattr(self, f"_{step.kind}")
        if step.crash and step.kind in ("reset", "resume", "say"):
            crash_after(self.home, lambda: act(step))
        else:
            act(step)
        self.check()

    # ------------------------------------------------------------------------------------------------------- steps

    def _say(self, step: ResetStep) -> None:
        self.words += 1
        self.said += [f"q{self.words}", f"a{self.words}"]
        self.home.say(f"q{self.words}", f"a{self.words}")

    def _accept(self, step: ResetStep) -> None:
        self.words += 1
        self.home.accept(f"q{self.words}")
        self.waiting.append(f"q{self.words}")

    def _answer(self, step: ResetStep) -> None:
        waiting = self.home.conversation.list_accepted("main", limit=1)
        if waiting:
            turn = self.home.conversation.begin_turn(waiting[0], "", NOW)
            self.home.conversation.finish_turn(turn, "answered", None, [], NOW)
            self.said.append(self.waiting.pop(0))

    def _reset(self, step: ResetStep, resumes: int | None = None) -> None:
        known = StoredGenerations(self.home.db, self.home.log)
        spoken = known.current_activity("main")
        if spoken is not None:
            ending = GenerationEnd(
                "main", spoken.generation, known.last_seq("main"), "It ended.", "manual", resumes=resumes
            )
            try:
                self.home.conversation.begin_next_generation(ending, NOW)
            except UsageError:
                assert resumes is not None

    def _resume(self, step: ResetStep) -> None:
        count = len(StoredGenerations(self.home.db, self.home.log).list_generations("main"))
        self._reset(step, resumes=1 + int(step.share * max(count - 1, 0)))

    def _compact(self, step: ResetStep) -> None:
        rows = live_messages(self.home)
        last = int(step.share * len(rows)) - 1
        if last >= 0:
            self.home.conversation.commit_compaction(
                plan_compaction(self.home, 0, last, summary_message(), kept_copy(rows[0])), NOW
            )

    def _undo(self, step: ResetStep) -> None:
        rows = [row for row in live_messages(self.home) if row.role in ("user", "assistant")]
        if rows:
            self.home.conversation.hide_messages("main", [rows[-1].id or 0], NOW)

    def _upkeep(self, step: ResetStep) -> None:
        self.home.conversation.run_maintenance()

    def _restart(self, step: ResetStep) -> None:
        self.home.restart().conversation.recover_after_crash(NOW)

    # ------------------------------------------------------------------------------------------------------- checks

    def check(self) -> None:
        assert self.home.verify().problems == ()
        path = self.home.log.path("main")
        raw = path.read_bytes() if path.exists() else b""
        assert raw.startswith(self.raw)
        self.raw = raw
        logged = [record for record in self.home.log.scan("main") if record.kind == "message"] if raw else []
        assert [record.content for record in logged] == self.said
        inbox = [item.incoming.content for item in self.home.conversation.list_accepted("main", limit=1000)]
        assert [one for one in inbox if one not in self.said] == self.waiting
        generations = [record.generation for record in logged]
        assert generations == sorted(generations)
        view = self.home.conversation.load_view("main")
        assert view.tokens == sum(size[0] for size in view.sizes)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lived=st.lists(steps, min_size=1, max_size=20))
def test_f31_resets_lose_nothing_however_they_fall_between_other_things(lived: list[ResetStep]) -> None:
    with memory_backed_directory() as directory:
        home = StoreHome(directory / "home").open()
        life = ResetSequence(home)
        for step in lived:
            life.live(step)
        assert sum(one.startswith("q") for one in life.said + life.waiting) == life.words
        home.close()
