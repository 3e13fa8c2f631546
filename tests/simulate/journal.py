"""Which lives have been lived: a file to which each is appended when it has ended, so that many years may be lived in
several runs. A life that held is not lived again; one that failed is, and a later entry takes the place of an earlier
one. Each names the commit at which it was lived: a file begun anew begins the count anew."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.crash.journal import checked_out_commit


@dataclass(frozen=True, slots=True)
class LivedLife:
    """One life: how it went, in words, and how much processor time it took."""

    seed: int
    days: int
    held: bool
    text: str
    seconds: int
    commit: str


class LifeJournal:
    """Without a path nothing is kept, and everything is left to do."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        # At the beginning: another may be checked out while years are lived.
        self._commit = checked_out_commit()
        self._lives: dict[tuple[int, int], LivedLife] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
            # A run that was killed may leave half a line at the end.
            if line.endswith("}"):
                self._note(LivedLife(**json.loads(line)))

    def _note(self, life: LivedLife) -> None:
        self._lives[life.seed, life.days] = life

    def has_held(self, seed: int, days: int) -> bool:
        life = self._lives.get((seed, days))
        return life is not None and life.held

    def add(self, seed: int, days: int, held: bool, text: str, seconds: float) -> None:
        life = LivedLife(seed, days, held, text, round(seconds), self._commit)
        self._note(life)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                # What a killed run left of a line is ended by it.
                file.write(f"\n{json.dumps(asdict(life))}")

    def report(self) -> str:
        """What was lived in all runs."""
        held = [life for life in self._lives.values() if life.held]
        failed = [life for life in self._lives.values() if not life.held]
        commits = Counter(life.commit for life in self._lives.values())
        years = sum(life.days for life in held) / 365
        return "\n".join(
            [
                f"{len(held)} lives held, {years:.1f} years together; {len(failed)} failed; at "
                + ", ".join(f"{commit} ({count})" for commit, count in commits.items()),
                *(f"  seed {life.seed}, {life.days} days: {life.text}" for life in failed),
            ]
        )
