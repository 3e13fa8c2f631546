"""Generated talks, in the form of the data sets: of a person and an assistant, and the same of two friends. Everything
follows from the seed.

Over most of a year the person asks for help with one thing after another and gets long answers; in between they say
what the questions are about: facts in passing, wishes, rules, corrections, things that change, the parts of a series.
What is said to that takes up its words, as people and assistants do. It is seldom worded as the question is. The two
halves share no template and no topic (`talk_words`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.recall_bench.talk_words import TalkWords, read_words

EXCHANGES = (300, 300, 500, 500, 1_000)
"""The lives of a half, by how many questions the person asks."""

_START = datetime(2024, 1, 8, 7, 30, tzinfo=UTC)
_DAYS = 280
_SLOT = re.compile(r"\{(\w+)\}")
_SECONDS = (20, 240)
_SENTENCES = (6, 24)
_SENTENCES_OF_FRIENDS = (1, 3)
_NEW_SESSION, _OWN_SESSION = 0.15, 0.7
_SHORT_WORD = 3
_HE = {"do": "does", "have": "has", "am": "is"}


def write_talks(folder: Path, seed: int = 1, topics: Sequence[str] = ()) -> list[Path]:
    """A file for each half, of talks with an assistant and of those between friends; where `topics` are given, all but
    what is planted is about those that a half has of them."""
    paths = []
    for form, friends in (("assistant", None), ("friends", ("Oskar", "Mirela"))):
        for half, words in read_words().items():
            some = {topic: words.topics[topic] for topic in topics if topic in words.topics}
            lives = [
                _Life(
                    replace(words, topics=some or words.topics), random.Random(f"{seed} {half} {number}"), friends
                ).talk(size)
                for number, size in enumerate(EXCHANGES)
            ]
            paths.append(folder / f"{form}-{half}.json")
            paths[-1].write_text(json.dumps(lives), encoding="utf-8")
    return paths


class _Life:
    def __init__(self, words: TalkWords, chance: random.Random, friends: tuple[str, str] | None) -> None:
        self._words = words
        self._chance = chance
        self._friends = friends

    def talk(self, exchanges: int) -> dict[str, object]:
        """A conversation as a file has it."""
        questions, planted = self._questions(exchanges)
        sessions: list[list[dict[str, str]]] = [[]]
        topic, at = self._topic(), _START
        turn_ids: dict[tuple[int, int], str] = {}
        for place in range(exchanges):
            if place in planted or self._chance.random() < _NEW_SESSION or not sessions[-1]:
                topic = self._topic()
                if sessions[-1] and (place not in planted or self._chance.random() < _OWN_SESSION):
                    sessions.append([])
                at = max(at + timedelta(hours=1), _START + timedelta(days=_DAYS * place / exchanges))
            for number, said in planted.get(place, [(None, self._request(topic))]):
                for role, text in self._exchange(said, topic, is_planted=number is not None):
                    at += timedelta(seconds=self._chance.randint(*_SECONDS))
                    turn = f"D{len(sessions)}:{len(sessions[-1]) + 1}"
                    sessions[-1].append({"dia_id": turn, **self._by(role), "text": text, "time": at.isoformat()})
                    if number is not None and said.removeprefix("bot ") in text:
                        turn_ids.setdefault(number, turn)
        asked = [
            {
                "question": self._as_asked(text),
                "category": kind,
                "evidence": [turn_ids[number, part] for part in range(parts)],
            }
            for number, (kind, text, parts) in enumerate(questions)
        ]
        numbered = {f"session_{number}": turns for number, turns in enumerate(sessions, 1)}
        return {"conversation": numbered, "qa": asked}

    def _by(self, role: str) -> dict[str, str]:
        if self._friends is None:
            return {"role": role}
        return {"speaker": self._friends[role == "assistant"]}

    def _as_asked(self, question: str) -> str:
        """Between friends somebody else asks, by their names."""
        if self._friends is None:
            return question
        person, friend = self._friends
        for pattern, instead in (
            (r"\b(?:my|mine)\b", f"{person}'s"),
            (r"\byour\b", f"{friend}'s"),
            (r"\b(do|have|am) I\b", lambda found: f"{_HE[found[1].lower()]} {person}"),
            (r"\b(?:I|me)\b", person),
            (r"\byou\b", friend),
        ):
            question = re.sub(pattern, instead, question, flags=re.IGNORECASE)
        return question

    def _questions(
        self, exchanges: int
    ) -> tuple[list[tuple[str, str, int]], dict[int, list[tuple[tuple[int, int] | None, str]]]]:
        """The questions with the number of things that answer each, and where these are said."""
        questions = []
        planted: dict[int, list[tuple[tuple[int, int] | None, str]]] = {}
        for number, line in enumerate(self._words.planted):
            kind, asked, said = (part.strip() for part in line.split(" | "))
            chosen = {slot: self._chance.choice(values) for slot, values in self._words.slots.items()}
            asked, said = (re.sub(_SLOT, lambda found, of=chosen: of[found[1]], text) for text in (asked, said))
            parts = said.split(" || ")
            questions.append((kind, asked, len(parts)))
            for part, place in enumerate(sorted(self._chance.sample(range(exchanges), len(parts)))):
                planted.setdefault(place, []).append(((number, part), parts[part]))
        return questions, planted

    def _exchange(self, said: str, topic: str, *, is_planted: bool) -> Iterator[tuple[str, str]]:
        """What the person says and is answered; of what is planted there is more talk."""
        if said.startswith("bot "):
            said = said.removeprefix("bot ")
            answer = self._answer(topic)
            answer.insert(self._chance.randint(0, len(answer)), said)
            yield "user", self._about(self._words.follow_ups, said)
            yield "assistant", self._joined(answer)
            return
        yield "user", said
        answer = self._answer(topic)
        if not is_planted:
            yield "assistant", self._joined(answer)
            return
        for place in range(self._chance.randint(1, 4)):
            answer.insert(place, self._about(self._words.echoes, said))
        yield "assistant", self._joined(answer)
        for _ in range(self._chance.randint(0, 2)):
            yield "user", self._about(self._words.follow_ups, said)
            yield "assistant", self._joined([self._about(self._words.echoes, said), *self._answer(topic)])

    def _about(self, templates: Sequence[str], said: str) -> str:
        """Words about something that was said, with words of it."""
        words = [word.strip(".,!?:;") for word in said.split() if len(word) > _SHORT_WORD] or [said]
        one, other = self._chance.choice(words), self._chance.choice(words)
        return self._chance.choice(list(templates)).format(one=one, other=other)

    def _topic(self) -> str:
        return self._chance.choice(list(self._words.topics))

    def _request(self, topic: str) -> str:
        if self._chance.random() < 0.25:
            return self._chance.choice(self._words.asides)
        return self._filled(self._chance.choice(self._words.openings), topic)

    def _answer(self, topic: str) -> list[str]:
        few, many = _SENTENCES if self._friends is None else _SENTENCES_OF_FRIENDS
        count = min(self._chance.randint(few, many), len(self._words.answers))
        return [self._filled(one, topic) for one in self._chance.sample(list(self._words.answers), count)]

    def _filled(self, template: str, topic: str) -> str:
        part = self._chance.choice(self._words.topics[topic])
        return template.format(topic=topic, part=part)

    def _joined(self, sentences: Sequence[str]) -> str:
        """Prose, or a list."""
        if self._chance.random() < 0.4:
            return "\n".join(f"- {one}" for one in sentences)
        return " ".join(sentences)
