"""Undoes the last sleep cycle, or one of its changes: memories, journal entries, edits of files and profiles,
compactions.

- Memories first, all or none: if a later change depends on one, nothing is undone.
- Journal entries are kept with their sources but withdrawn: later cycles ignore them and the journal does not list
  them. Their messages still count as read, so nothing is learned from them again.
- Files, profiles and compactions changed since are kept and reported (a person's edits take precedence).
- The start is persisted, so that an interrupted undo resumes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, UsageError
from assistant.core.memories import ChangePlan, SleepReport, UndoableEdit
from assistant.core.memory_api import ConsolidationsPort, Memories, MemoryFilesPort
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation, Journal
from sleep.cycle.change_plan import separate_change
from sleep.cycle.consolidate import ConsolidationPhase

_LOOKED_BACK = 500
_COMMITTED = ("live", "masked", "absorbed")


@dataclass(frozen=True, slots=True)
class SleepUndoResult:
    """The result of undoing a cycle."""

    cycle: SleepReport
    memory_count: int  # changes of memories
    entry_count: int  # journal entries
    edits: tuple[str, ...]  # targets of the undone edits
    sessions: tuple[str, ...]  # those with undone compactions
    not_undone: tuple[str, ...]  # a line for each item that was kept


@dataclass(frozen=True, slots=True)
class SleepUndo:
    """Undoes sleep cycles."""

    journal: Journal
    consolidations: ConsolidationsPort
    memories: Memories
    files: MemoryFilesPort
    conversation: Conversation
    # undoes a session's compactions from a checkpoint on; raises `UsageError` if impossible
    undo_compaction: Callable[[str, int], Awaitable[object]]

    async def undo_last_sleep(self, now: datetime) -> SleepUndoResult:
        """Undo the newest cycle with changes that is not undone. Raises `UsageError` if there is none or later changes
        depend on its memories; after `MemoryUnavailable` and `StoreError`, a repeated call resumes."""
        report = self._newest()
        begun = replace(report, state="undoing")
        self.journal.save_cycle(begun)
        learned = {entry.id: entry for entry in self.consolidations.entries_of_cycle(report.id)}
        memories = await self._memories(report, now)
        left: list[str] = []
        sessions = [session async for session in self._compactions(report, left)]
        undone = [
            number for session, ids in _checkpoints(report) for number in self._in_state(session, ids, ("undone",))
        ]
        learned |= {entry.id: entry for entry in self.consolidations.entries_of_cycle(report.id, undone)}
        self.consolidations.withdraw_entries(list(learned.values()), now)
        edits = tuple(self._edits(report, left, now))
        self.journal.save_cycle(replace(begun, state="undone"))
        return SleepUndoResult(report, memories, len(learned), edits, tuple(sessions), tuple(left))

    async def undo_memory(self, memory_id: str, scope: str, now: datetime) -> int:
        """Undo a cycle's last change of one memory, and of memories linked to it by supersession; returns the number of
        changes. Source entries stay withdrawn. Raises like `undo_last_sleep`."""
        plan = self._separate_change(memory_id, scope)
        try:
            return await ConsolidationPhase(self.consolidations, self.memories).undo_plans([plan], plan.cycle, now)
        finally:
            await self.memories.aclose()

    def accept_memory(self, memory_id: str, scope: str, now: datetime) -> int:
        """Mark a cycle's last change of a memory as confirmed by a person; returns the number of changes."""
        plan = self._separate_change(memory_id, scope)
        self.consolidations.mark_accepted([plan.key], now)
        return len(plan.changes)

    def accept_sleep(self, cycle: int, scope: str, now: datetime) -> int:
        """Mark all of a cycle's changes in a scope as confirmed; returns their number."""
        plans = [plan for plan in self.consolidations.applied_plans(cycle) if plan.scope == scope]
        self.consolidations.mark_accepted([plan.key for plan in plans], now)
        edits = [edit for edit in self.files.edits_of_cycle(cycle) if edit.scope == scope]
        for edit in edits:
            self.files.accept_edit(edit.id or 0, scope, now)
        return sum(len(plan.changes) for plan in plans) + len(edits)

    def _separate_change(self, memory_id: str, scope: str) -> ChangePlan:
        """Split the change off into a plan of its own."""
        plan = self.consolidations.last_plan_of_memory(memory_id, scope)
        if plan is None or plan.cycle < 1:
            raise UsageError(
                f"What memory {memory_id[:8]} says now is not from a sleep. Nothing was changed. `assistant memory "
                "edit` and `assistant forget` change a single memory."
            )
        rest, part = separate_change(plan, memory_id)
        if rest is not None:
            self.consolidations.split_plan(rest, part)
        return part

    async def _memories(self, report: SleepReport, now: datetime) -> int:
        try:
            return await ConsolidationPhase(self.consolidations, self.memories).undo_cycle(report.id, now)
        except UsageError:
            self.journal.save_cycle(report)
            raise
        finally:
            await self.memories.aclose()

    def _newest(self) -> SleepReport:
        for report in self.journal.list_cycles(limit=_LOOKED_BACK):
            if report.state != "undone" and self._changed(report):
                return report
        raise UsageError("There is no sleep to undo: none changed anything that is still there.")

    def _changed(self, report: SleepReport) -> bool:
        """Return whether anything of the cycle is still in effect."""
        if report.state == "undoing":
            return True
        plans = [*self.consolidations.applied_plans(report.id), *self.consolidations.unapplied_plans()]
        return (
            any(plan.changes for plan in plans if plan.cycle == report.id)
            or bool(self.consolidations.entries_of_cycle(report.id))
            or bool(self.files.edits_of_cycle(report.id))
            or any(self._in_state(session, ids, _COMMITTED) for session, ids in _checkpoints(report))
        )

    # ------------------------------------------------------------------------------------------------------ compactions

    async def _compactions(self, report: SleepReport, left: list[str]) -> AsyncGenerator[str]:
        for session, ids in _checkpoints(report):
            standing = self._in_state(session, ids, _COMMITTED)
            if not standing:
                continue
            try:
                chain = self.conversation.plan_uncompact(session, min(standing)).checkpoint_ids
                if set(chain) - set(ids):
                    left.append(
                        f"{session_name(session)}: it was compacted again since; undo that first with `/compact --undo`"
                    )
                    continue
                await self.undo_compaction(session, min(standing))
            except AssistantError as error:
                left.append(f"{session_name(session)}: {error}")
                continue
            yield session

    def _in_state(self, session: str, ids: Sequence[int], states: Sequence[str]) -> list[int]:
        """Return the ids of a session's checkpoints that are in one of the states."""
        checkpoints = self.conversation.checkpoints(session)
        return [checkpoint.id for checkpoint in checkpoints if checkpoint.id in ids and checkpoint.state in states]

    # ------------------------------------------------------------------------------------------------------------ edits

    def _edits(self, report: SleepReport, left: list[str], now: datetime) -> Iterator[str]:
        for edit in self.files.edits_of_cycle(report.id):
            try:
                self.files.undo_edit(edit.id or 0, edit.scope, now)
            except AssistantError as error:
                left.append(f"{_name(edit)}: {error}")
            else:
                yield edit.target


def _checkpoints(report: SleepReport) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the checkpoints a cycle made, by session."""
    for session, compacted in report.phases.get("compact", {}).get("compacted", {}).items():
        yield session, tuple(compacted.get("checkpoints", ()))


def _name(edit: UndoableEdit) -> str:
    return edit.target.partition(":")[2] if edit.target.startswith("file:") else "a profile"
