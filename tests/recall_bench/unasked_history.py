"""What comes to mind unasked of earlier messages: of questions that they answer, how many bring up something, and how
many what answers; of questions of other people and of chatter, how many bring up anything.

`python -m tests.recall_bench.unasked_history FILE NUMBER` measures conversation NUMBER (from 1) and prints one JSON
object. All but the last messages were compacted. FILE is of LoCoMo's form; "one-subject" is a generated talk about one
thing for months, whose questions have the words that all of it has.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path

from assistant.context.tokens import estimate_tokens
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.runtime.recall import HistoryRecall
from tests.bench.chatter import CHATTER
from tests.bench.recollection import ROOM, archived_view
from tests.recall_bench.dataset import ADVERSARIAL, DatasetConversation, DatasetQuestion, read_talks
from tests.recall_bench.homes import make_dataset_home
from tests.recall_bench.talks import write_talks
from tests.recall_bench.unasked import HALF, questions_of_others

ONE_SUBJECT = "one-subject"
_SUBJECT = "kitchen renovation"
_PARTS = ("worktop", "tiles", "sink", "drawers", "lighting", "budget")
_SHOPS = ("Brandt", "Okafor", "Varga", "Novak", "Pereira", "Dunmore")
_FACTS = (
    ("What does {shop} ask for the {part}?", "{shop} wants {n} euros for the {part}, delivery not included."),
    ("When does {shop} deliver the {part}?", "The {part} from {shop} arrive in week {n}, the van comes before nine."),
    ("Which colour did I choose for the {part} at {shop}?", "For the {part} at {shop} it will be shade {n}, greenish."),
)


def main(path: str, number: str) -> None:
    if path == ONE_SUBJECT:
        talk, others = _about_one_subject(), []
    else:
        talks, place = read_talks(Path(path)), int(number) - 1
        talk = talks[place]
        others = list(questions_of_others(talk, talks[:HALF] if place < HALF else talks[HALF:]))
    with tempfile.TemporaryDirectory(prefix="recall-") as folder:
        print(json.dumps(_measured(talk, others, Path(folder))))


def _measured(talk: DatasetConversation, others: list[tuple[str, str]], path: Path) -> dict[str, object]:
    with make_dataset_home(talk, path) as home:
        view, now = archived_view(home.history), talk.said[-1].at + timedelta(days=3)
        recall = HistoryRecall(home.history, estimate_tokens, UTC, lambda: ROOM)
        seconds: list[float] = []

        def brought(question: str) -> set[str]:
            began = time.perf_counter()
            lines = recall.recall_lines(question, MAIN_SESSION, OWNER_SCOPE, view, now)
            seconds.append(time.perf_counter() - began)
            return {home.turns[message].turn for message in lines}

        own = [one for one in talk.questions if one.evidence and one.kind != ADVERSARIAL]
        found = [(brought(one.text), one.evidence) for one in own]
        return {
            "entries": len(talk.said),
            "own": len(own),
            "brought": sum(bool(turns) for turns, _ in found),
            "right": sum(not turns.isdisjoint(evidence) for turns, evidence in found),
            "strange": len(others),
            "unrelated": sum(bool(brought(asked)) for asked, _ in others),
            "renamed": sum(bool(brought(asked)) for _, asked in others),
            "lines": len(CHATTER),
            "chatter": sum(bool(brought(line)) for line in CHATTER),
            "seconds": seconds,
        }


def _about_one_subject() -> DatasetConversation:
    """A generated talk with an assistant, all of it about one kitchen, and facts about it in between."""
    with tempfile.TemporaryDirectory(prefix="talks-") as folder:
        talk = read_talks(write_talks(Path(folder), topics=(_SUBJECT,))[0])[0]
    chance = random.Random(7)
    facts = list(_facts(chance))
    places = sorted(chance.sample([n for n, said in enumerate(talk.said) if said.role == "user"], len(facts)))
    said, questions = list(talk.said), []
    for place, (asked, told) in zip(places, facts, strict=True):
        said[place] = replace(said[place], text=told)
        questions.append(DatasetQuestion(asked, "one message", (said[place].turn,)))
    return replace(talk, said=tuple(said), questions=tuple(questions))


def _facts(chance: random.Random) -> Iterator[tuple[str, str]]:
    for asked, told in _FACTS:
        for part in _PARTS:
            for shop in chance.sample(_SHOPS, 3):
                words = {"part": part, "shop": shop, "n": chance.randint(10, 990)}
                yield asked.format(**words), told.format(**words)


if __name__ == "__main__":
    main(*sys.argv[1:])
