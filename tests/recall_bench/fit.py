"""`python -m tests.recall_bench.fit [FILE...]`: the weights of the search's features (`assistant.search.scoring`),
fitted to generated talks.

A question's loss is listwise: how little of the softmax over all messages its evidence has. The weights are held near
those that were found by hand, and go only half the way to what is fitted, since what is generated is poorer than what
people say, and worded further away from what is asked. They are fitted to the half of
the templates that is seen; folds leave out a fifth of its questions at a time, by template. The unseen half, the two
written months, and FILEs of LoCoMo's form are only measured with: before, and with what was fitted.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import Floats
from assistant.search.scoring import WEIGHTS, candidate_features, likeness_to_best, weighted_parts
from tests.recall_bench.dataset import read_talks
from tests.recall_bench.engines import EVERYTHING, open_engine
from tests.recall_bench.months import write_months
from tests.recall_bench.talks import write_talks

NAMES = tuple(WEIGHTS)
DEPTHS = (5, 10, 25, 50)
_FOLDS = 5
_SHARPNESS = 6.0
_STEPS, _STEP = 80, 0.02
_WAY = 0.5
# Not to be learned from generated talk, which has too little of what these tell.
_HELD = ("feedback", "newer", "answer", "answer to its words", "question", "greeting")


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with the features of all that may answer it."""

    template: int
    features: Floats  # (units, features)
    source: NDArray[np.intp]  # (units) from 0
    is_evidence: NDArray[np.bool_]  # (sources)
    evidence: int  # how many there are, candidates or not


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recall_bench.fit", description="Fit the search's weights.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="of LoCoMo's form, to measure with")
    parser.add_argument("--strength", type=float, default=0.5, help="how strongly weights are held where they are")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fit-") as folder:
        written = {path.stem: path for path in (*write_talks(Path(folder)), write_months(Path(folder)))}
        written.update({path.stem: path for path in chosen.files})
        sets = {name: list(_asked(path, Path(folder))) for name, path in written.items()}
    start = np.array([with_assistant for _, with_assistant, _ in WEIGHTS.values()], np.float32)
    fitted = fit(sets["assistant-seen"], start, chosen.strength)
    print("".join(f'    "{name}": {weight:.2f},\n' for name, weight in zip(NAMES, fitted, strict=True)))
    print(f"{'set':<20}{'as it is':<28}fitted")
    for name, questions in sets.items():
        print(f"{name:<20}{_told(recall(questions, start)):<28}{_told(recall(questions, fitted))}")
    print(f"{'left out in turn':<20}{'':<28}{_told(cross_validated(sets['assistant-seen'], start, chosen.strength))}")


def fit(questions: Sequence[AskedQuestion], start: Floats, strength: float) -> Floats:
    """Weights near `start`, by Adam: half way to them."""
    free = np.array([name not in _HELD for name in NAMES], np.float32)
    weights, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(1, _STEPS + 1):
        slope = np.mean([_slope(question, weights) for question in questions], axis=0)
        slope = (slope + strength * (weights - start)) * free
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope * slope
        weights = weights - _STEP * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-6)
    fitted: Floats = (start + _WAY * (weights - start)).astype(np.float32)
    return fitted


def cross_validated(questions: Sequence[AskedQuestion], start: Floats, strength: float) -> list[float]:
    """Recall of questions by weights that were fitted to those of the other templates."""
    found = []
    for fold in range(_FOLDS):
        weights = fit([one for one in questions if one.template % _FOLDS != fold], start, strength)
        found += [_found(one, weights) for one in questions if one.template % _FOLDS == fold]
    return [100 * fmean(at) for at in zip(*found, strict=True)]


def recall(questions: Sequence[AskedQuestion], weights: Floats) -> list[float]:
    return [100 * fmean(at) for at in zip(*(_found(one, weights) for one in questions), strict=True)]


def _asked(path: Path, folder: Path) -> Iterable[AskedQuestion]:
    for number, talk in enumerate(read_talks(path)):
        engine = open_engine(talk, folder / f"{path.stem}-{number}.db")
        turns = {said.turn: place for place, said in enumerate(talk.said)}
        for template, question in enumerate(talk.questions):
            if not question.evidence:
                continue
            prepared = engine.prepare(question.text, EVERYTHING)
            if prepared is None:
                continue
            table = prepared.table
            features = candidate_features(table, prepared.terms, prepared.asked_for, sources=prepared.sources)
            so_far = np.asarray(np.sum(list(weighted_parts(table, features).values()), axis=0), np.float32)
            values = {**features.values, "feedback": likeness_to_best(table, so_far)}
            sources, places = np.unique(engine.index.meta["source"][prepared.candidates], return_inverse=True)
            evidence = [turns[turn] for turn in question.evidence]
            columns = np.stack([values[name] for name in NAMES], axis=1)
            yield AskedQuestion(template, columns, places, np.isin(sources, evidence), len(evidence))


def _slope(question: AskedQuestion, weights: Floats) -> Floats:
    """Of the loss of a question; each message stands for itself by its best unit."""
    scores = question.features @ weights
    order = np.argsort(scores, kind="stable")
    best = np.zeros(len(question.is_evidence), np.intp)
    best[question.source[order]] = order
    worth = np.exp(_SHARPNESS * (scores[best] - scores[best].max()))
    pull = np.zeros(len(best), np.float32)
    others = np.where(question.is_evidence, 0, worth)
    evidence = np.flatnonzero(question.is_evidence)
    for one in evidence:
        whole = others.sum() + worth[one]
        pull += others / whole / len(evidence)
        pull[one] += (worth[one] / whole - 1) / len(evidence)
    slope: Floats = _SHARPNESS * (pull @ question.features[best])
    return slope


def _found(question: AskedQuestion, weights: Floats) -> list[float]:
    scores = np.full(len(question.is_evidence), -np.inf, np.float32)
    np.maximum.at(scores, question.source, question.features @ weights)
    ranked = question.is_evidence[np.argsort(-scores, kind="stable")]
    return [float(ranked[:depth].sum()) / question.evidence for depth in DEPTHS]


def _told(shares: Sequence[float]) -> str:
    return " / ".join(f"{share:.1f}" for share in shares)


if __name__ == "__main__":
    main()
