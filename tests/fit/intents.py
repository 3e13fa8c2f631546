"""The weights by which offline mode tells what a sentence wants, fitted to the tables of `tests/data/utterances`.

Multinomial logistic regression with a Gaussian prior (L2), minimised by accelerated gradient descent with a fixed step
(Nesterov 1983): convex, so the same tables always give the same weights. Each line of a table has the intent of its
utterance; what the person has at that moment is what its `given` sentences made. Features of fewer than two lines say
nothing of other lines and are left out, weights near zero too. A sentence has some forty features
of ten thousand, so only those are kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import numpy as np

from assistant.core.messages import Message
from assistant.core.quoting import format_todos
from assistant.core.records import TodoItem
from assistant.models.offline.intents import WEIGHTS_FILE, sentence_features
from assistant.models.offline.matching import ListedItem
from assistant.models.offline.order_spelling import spell_lists, spell_order
from assistant.models.offline.parse import parse_message
from assistant.models.offline.plans import ToolStep
from assistant.models.offline.steps import StepContext, next_step
from tests.support.sentence_tables import read_sentences
from tests.support.utterances import NOW, TABLES, read_table

PLAIN = TABLES.parent / "intents" / "plain.jsonl"
# Without a thing that is there they read like something else.
_NEEDS_ITEMS = ("reopen", "rename", "relist", "undated")
STRENGTH = 1.0
_STEPS = 150
_FEWEST_LINES = 2
_LEAST_WEIGHT = 0.06
_MOST_CALLS = 8
_CONTEXT = StepContext(
    Message("user"),
    frozenset(["manage_todo_list", "set_reminder", "list_reminders", "cancel_reminder", "change_reminder"]),
    (),
    NOW.replace(tzinfo=None),
)

LabelledSentence = tuple[str, Sequence[ListedItem], str]
"""A sentence, what the person has, and the intent."""


def labelled_sentences() -> list[LabelledSentence]:
    """The lines of the tables that have an intent, each as the person has what `given` made, and orders that need no
    words of their own also for a person who has nothing; plain sentences of one intent each; and what people tell."""
    sentences: list[LabelledSentence] = []
    for path in sorted(TABLES.glob("*.jsonl")):
        for row in read_table(path):
            if row.get("intent", "undo") != "undo":  # what is taken back is told by its form alone
                items, text = items_of(row.get("given", ())), spell_order(row["say"])
                sentences.append((spell_lists(text, {item.list for item in items}), items, row["intent"]))
                if items and row["intent"] not in _NEEDS_ITEMS:
                    sentences.append((spell_lists(text, ()), (), row["intent"]))
    plain = [(spell_lists(spell_order(row["say"]), ()), (), row["intent"]) for row in read_table(PLAIN)]
    told = [(spell_order(line.split(" => ")[0]), (), "statement") for line in read_sentences("lasting")]
    return [*sentences, *plain, *plain, *told]


def items_of(given: Sequence[str]) -> list[ListedItem]:
    """What a person has who said these sentences: the calls that offline mode makes for them, carried out on a list."""
    items: list[ListedItem] = []
    for request in (request for text in given for request in parse_message(text)):
        results: list[str] = []
        while len(results) < _MOST_CALLS and isinstance(step := next_step(request, results, _CONTEXT), ToolStep):
            results.append(_carry_out(step, items))
    return items


def _carry_out(step: ToolStep, items: list[ListedItem]) -> str:
    """What a tool would answer, as far as offline mode reads it."""
    arguments = step.arguments
    ids = list(arguments.get("ids", ()))
    match step.tool, arguments.get("action"):
        case "set_reminder", _:
            items.append(ListedItem("reminder", len(items) + 1, str(arguments["text"]), NOW))
        case "cancel_reminder", _:
            items[:] = [item for item in items if item.kind != "reminder" or item.id != arguments["id"]]
        case _, "add":
            name = str(arguments.get("list", ""))
            items += [
                ListedItem("todo", len(items) + n, text, list=name) for n, text in enumerate(arguments["items"], 1)
            ]
        case _, "remove":
            items[:] = [item for item in items if item.kind != "todo" or item.id not in ids]
        case _, "complete" | "reopen" as action:
            items[:] = [replace(i, done=action == "complete") if i.kind == "todo" and i.id in ids else i for i in items]
    if step.tool == "list_reminders":
        there = [item for item in items if item.kind == "reminder"]
        return "\n".join(f"- {item.id}: {json.dumps(item.text)}, {NOW:%A %Y-%m-%d %H:%M}" for item in there)
    todos = [TodoItem(i.id, i.text, i.done, NOW, list=i.list) for i in items if i.kind == "todo"]
    return format_todos([t for t in todos if not t.done], UTC, done=[t for t in todos if t.done])


def fit_intents(sentences: Sequence[LabelledSentence]) -> dict[str, object]:
    """What `intent_weights.json` is to hold."""
    intents = sorted({intent for _, _, intent in sentences})
    rows = [sentence_features(text, items) for text, items, _ in sentences]
    by_text = {text: row for row, (text, _, _) in zip(rows, sentences, strict=True)}
    counts = Counter(name for row in by_text.values() for name in row)
    names = sorted(name for name, count in counts.items() if count >= _FEWEST_LINES)
    place = {name: number for number, name in enumerate(names)}
    features = _Features([[place[name] for name in row if name in place] for row in rows], len(names))
    labels = np.eye(len(intents), dtype=np.float32)[[intents.index(intent) for _, _, intent in sentences]]
    weights = _minimise(features, labels)
    kept = {
        name: [round(100 * float(weight)) for weight in weights[number]]
        for name, number in place.items()
        if np.abs(weights[number]).max() >= _LEAST_WEIGHT
    }
    return {"intents": intents, "features": kept}


class _Features:
    """A matrix of zeros and ones, (sentences, features), of which only the places of the ones are kept. Each sentence
    has at least one feature ("always"), and each feature a sentence."""

    def __init__(self, rows: Sequence[Sequence[int]], width: int) -> None:
        lengths = [len(row) for row in rows]
        self.width = width
        self._columns = np.concatenate([np.array(row, dtype=np.intp) for row in rows])
        self._row_starts = np.cumsum([0, *lengths[:-1]])
        order = np.argsort(self._columns, kind="stable")
        self._rows = np.repeat(np.arange(len(rows)), lengths)[order]
        self._column_starts = np.searchsorted(self._columns[order], np.arange(width))

    def times(self, weights: np.ndarray) -> np.ndarray:
        """The product with (features, n)."""
        return np.add.reduceat(weights[self._columns], self._row_starts, axis=0)

    def transposed_times(self, values: np.ndarray) -> np.ndarray:
        """The product of the transposed matrix with (sentences, n)."""
        return np.add.reduceat(values[self._rows], self._column_starts, axis=0)


def _minimise(features: _Features, labels: np.ndarray) -> np.ndarray:
    """`labels` (sentences, intents); returns (features, intents)."""
    weights = np.zeros((features.width, labels.shape[1]), dtype=np.float32)
    ahead, speed = weights, 1.0
    bound = 0.5 * _largest_singular_value(features) ** 2 + STRENGTH
    for _ in range(_STEPS):
        sums = features.times(ahead)
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        chances = powers / powers.sum(axis=1, keepdims=True)
        gradient = features.transposed_times(chances - labels) + STRENGTH * ahead
        following = ahead - gradient / bound
        faster = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
        ahead = following + (speed - 1) / faster * (following - weights)
        weights, speed = following, faster
    return weights


def _largest_singular_value(features: _Features) -> float:
    """By power iteration, and a little more: the step of the descent must not be too long."""
    vector = np.ones((features.width, 1), dtype=np.float32)
    for _ in range(20):
        vector = features.transposed_times(features.times(vector))
        vector /= np.linalg.norm(vector)
    return 1.02 * float(np.linalg.norm(features.times(vector)))


def write_weights(data: dict[str, object], path: Path = WEIGHTS_FILE) -> None:
    """One feature a line, so that a change can be read."""
    features = data["features"]
    assert isinstance(features, dict)
    lines = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}:{json.dumps(row, separators=(',', ':'))}"
        for name, row in features.items()
    )
    path.write_text(f'{{"intents":{json.dumps(data["intents"])},"features":{{\n{lines}\n}}}}\n', encoding="utf-8")
