"""What recall is measured with: generated talks and files with roles."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from assistant.search.scoring import WEIGHTS
from tests.month.conversation import read_month
from tests.recall_bench.dataset import BadFile, read_talks
from tests.recall_bench.fit import NAMES, fit, recall
from tests.recall_bench.fit import AskedQuestion as Asked
from tests.recall_bench.months import MONTHS, write_months
from tests.recall_bench.talk_words import read_words
from tests.recall_bench.talks import write_talks


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_talks(tmp_path_factory.mktemp("talks"))


def test_a_seed_gives_the_same_talks(written: list[Path], tmp_path: Path) -> None:
    assert [path.read_bytes() for path in write_talks(tmp_path)] == [path.read_bytes() for path in written]


def test_all_evidence_of_a_generated_question_was_said(written: list[Path]) -> None:
    for path in written:
        for number, talk in enumerate(json.loads(path.read_text())):
            read = read_talks(path)[number]
            assert [len(one["evidence"]) for one in talk["qa"]] == [len(one.evidence) for one in read.questions]


def test_a_talk_with_an_assistant_has_roles_and_times_that_rise(written: list[Path]) -> None:
    talk = read_talks(written[0])[0]
    assert {said.role for said in talk.said} == {"user", "assistant"}
    assert not any(said.speaker for said in talk.said)
    assert [said.at for said in talk.said] == sorted(said.at for said in talk.said)


def test_between_friends_nobody_is_the_assistant(written: list[Path]) -> None:
    talk = read_talks(written[2])[0]
    assert {(said.role, said.speaker) for said in talk.said} == {("user", "Oskar"), ("user", "Mirela")}
    assert not re.search(r"\b(?:I|me|my|you|your)\b", " ".join(one.text for one in talk.questions))


def test_the_halves_share_no_template_and_no_topic() -> None:
    seen, unseen = read_words().values()
    for field in ("planted", "openings", "asides", "answers", "echoes", "follow_ups", "topics"):
        assert not set(getattr(seen, field)) & set(getattr(unseen, field))


def test_each_fact_of_the_written_months_has_a_question_and_the_turn_that_tells_it(tmp_path: Path) -> None:
    for path, talk in zip(MONTHS, read_talks(write_months(tmp_path)), strict=True):
        month = read_month(path)
        told = {said.turn: said.text for said in talk.said}
        texts = [month.message(fact.messages[-1]).text for fact in month.facts]
        assert [[told[turn] for turn in one.evidence] for one in talk.questions] == [[text] for text in texts]


def test_a_turn_may_have_a_role_and_a_time(tmp_path: Path) -> None:
    turns = [
        {"dia_id": "D1:1", "role": "user", "text": "Hello", "time": "2024-03-01T10:00:00+00:00"},
        {"dia_id": "D1:2", "role": "assistant", "speaker": "Nocturne", "text": "Good morning"},
    ]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"conversation": {"session_1": turns}, "qa": []}]))
    first, second = read_talks(path)[0].said
    assert (first.role, first.speaker, first.at) == ("user", "", datetime(2024, 3, 1, 10, tzinfo=UTC))
    assert (second.role, second.speaker) == ("assistant", "Nocturne")
    turns[0]["role"] = "narrator"
    path.write_text(json.dumps([{"conversation": {"session_1": turns}, "qa": []}]))
    with pytest.raises(BadFile, match="narrator"):
        read_talks(path)


def test_fitting_gives_weight_to_what_tells_evidence_apart() -> None:
    chance = np.random.default_rng(1)
    column = NAMES.index("number")
    questions = []
    for template in range(20):
        features = chance.random((30, len(NAMES)), np.float32)
        features[0, column], features[1:, column] = 1, 0
        questions.append(Asked(template, features, np.arange(30), np.arange(30) == 0, 1))
    start = np.array([people for people, *_ in WEIGHTS.values()], np.float32)
    fitted = fit(questions, start, 0.1)
    assert fitted[column] > start[column]
    assert recall(questions, fitted)[0] >= recall(questions, start)[0]
