"""What a search of the history finds of the turns that answer a question.

`python -m tests.recall_bench.turns FILE NUMBER SESSIONS` measures conversation NUMBER (from 1) of a file and prints one
JSON object: `asked`, a row a question (`Asked`), and times. SESSIONS is "one" or "each" (`homes`).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.context.tokens import estimate_tokens
from assistant.core.calendar import format_local_time
from assistant.core.quoting import QuotedMessage, format_quote
from assistant.core.records import SearchHit
from assistant.core.sessions import OWNER_SCOPE
from tests.recall_bench.dataset import DatasetQuestion, read_talks
from tests.recall_bench.homes import DatasetHome, SessionOf, make_dataset_home, one_session, session_each
from tools.history_search import find_messages

DEPTHS = (5, 10, 25, 50)
BUDGET = 2_000
SESSIONS: dict[str, SessionOf] = {"one": one_session, "each": session_each}
_DEEPEST = 100
_SESSION_DEPTH = 10
_TOOL_LIMIT = 12


@dataclass(frozen=True, slots=True)
class QuestionRecall:
    """Of one question the share of its evidence that is found: `turns` at each depth, `sessions` among the first ten
    (`reached`: 1 where one of them is), `quoted` and `whole` within the budget (as excerpts; as whole messages),
    `shown` by the model's tool, which shows `lines` messages."""

    kind: str
    turns: list[float]
    sessions: float
    reached: float
    quoted: float
    whole: float
    shown: float
    lines: int
    seconds: float


def main(path: str, number: str, sessions: str) -> None:
    talk = read_talks(Path(path))[int(number) - 1]
    with (
        tempfile.TemporaryDirectory(prefix="recall-") as folder,
        make_dataset_home(talk, Path(folder), SESSIONS[sessions]) as home,
    ):
        home.history.search("Where did we meet?", OWNER_SCOPE)
        asked = [asdict(_asked(home, question)) for question in talk.questions if question.evidence]
        print(json.dumps({"asked": asked, "indexed": home.indexed}))


def _asked(home: DatasetHome, question: DatasetQuestion) -> QuestionRecall:
    began = time.perf_counter()
    hits = home.history.search(question.text, OWNER_SCOPE, limit=DEPTHS[-1])
    seconds = time.perf_counter() - began
    wanted = frozenset(question.evidence)
    ranked = [home.turns[hit.message_id].turn for hit in hits]
    sessions = _share({turn.partition(":")[0] for turn in wanted}, _sessions(home, hits))
    more = home.history.search(question.text, OWNER_SCOPE, limit=_DEEPEST)
    shown = _shown_by_tool(home, question.text)
    return QuestionRecall(
        question.kind,
        [_share(wanted, ranked[:depth]) for depth in DEPTHS],
        sessions,
        float(sessions > 0),
        _share(wanted, _within(home, more, whole=False)),
        _share(wanted, _within(home, more, whole=True)),
        _share(wanted, shown),
        len(shown),
        seconds,
    )


def _shown_by_tool(home: DatasetHome, question: str) -> list[str]:
    """The turns that the model's tool shows, by its usual limit, the day after the last was said."""

    def search(words: str, most: int, since: datetime | None, until: datetime | None) -> Sequence[SearchHit]:
        return home.history.search(words, OWNER_SCOPE, limit=most, after=since, before=until)

    today = max(said.at for said in home.turns.values()).date() + timedelta(1)
    found = find_messages(search, question, _TOOL_LIMIT, None, None, today, ZoneInfo("UTC"))
    return [home.turns[hit.message_id].turn for hit in found.hits]


def _share(wanted: Iterable[str], found: Iterable[str]) -> float:
    wanted = frozenset(wanted)
    return len(wanted.intersection(found)) / len(wanted)


def _sessions(home: DatasetHome, hits: Sequence[SearchHit]) -> list[str]:
    """The first ten sessions in the order of their best hits."""
    ranked = dict.fromkeys(home.turns[hit.message_id].turn.partition(":")[0] for hit in hits)
    return list(ranked)[:_SESSION_DEPTH]


def _within(home: DatasetHome, hits: Sequence[SearchHit], *, whole: bool) -> list[str]:
    """The turns of the hits that fit into the budget in the order of their rank, as the assistant is shown them."""
    lines: list[str] = []
    shown = []
    for hit in hits:
        said = home.turns[hit.message_id]
        quote = QuotedMessage(
            hit.message_id, format_local_time(hit.ts, UTC), hit.role, said.text if whole else hit.text, hit.name
        )
        lines.append(format_quote(quote))
        if estimate_tokens("\n".join(lines)) > BUDGET:
            break
        shown.append(said.turn)
    return shown


if __name__ == "__main__":
    main(*sys.argv[1:])
