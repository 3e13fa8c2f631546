"""The weights of the classifier of lasting clauses, fitted to the sentences of the tests.

Logistic regression with a Gaussian prior (L2) towards given weights (`priors.toml`): a clause lasts with the
probability `sigmoid(sum of its weights - threshold)`. It is convex and solved by Newton's method, so the same sentences
always give the same weights. Nothing but our own sentences is read: the tables of `tests/data/sentences` and both
months of `tests/month`.

A message that tells something lasting does not say which of its clauses does: it is the one that weighs most by the
priors. Of a passing message every clause is passing. Clauses that ask, order, suppose or disclaim are decided before
anything is weighed, and are left out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from sleep.rules.classifier import durable_threshold, find_signs
from sleep.rules.clauses import (
    find_clauses,
    is_disclaimer,
    is_hypothetical,
    is_order,
    is_question_clause,
    is_small_talk_clause,
    is_standing_instruction,
    is_too_short,
    strip_opening_words,
)
from sleep.rules.pattern_files import read_classifier
from sleep.rules.sentences import blank_foreign_text, split_sentences
from tests.month.conversation import MONTH, SECOND, MonthConversation, has_phrase, read_month
from tests.support.sentence_tables import read_sentences

# How strongly the weights are drawn towards the priors. Less, and weights follow single sentences: junk of the months
# grows (docs/developing/decisions.md).
STRENGTH = 100.0
EXTRA_WORD = "extra word"
_PRIORS = Path(__file__).with_name("priors.toml")
_LASTING = ("lasting", "lasting_in_messages", "lasting_unseen")
_PASSING = ("passing", "passing_messages", "passing_unseen")
_DECIDED_BEFORE = (
    is_question_clause,
    is_order,
    is_hypothetical,
    is_disclaimer,
    is_small_talk_clause,
    is_standing_instruction,
    is_too_short,
)

LabelledClause = tuple[str, bool]
"""A clause, and whether it is lasting."""


def shipped_weights() -> dict[str, float]:
    """The weights of `signs.toml` by name, in the order of the file."""
    rules = read_classifier()
    return {**rules.weights, EXTRA_WORD: rules.word_weight}


def fit_weights(strength: float = STRENGTH) -> dict[str, float]:
    """The fitted weights by name, rounded as they are shipped."""
    names = list(shipped_weights())
    prior = np.array([_priors()[name] for name in names])
    clauses = labelled_clauses()
    rows = [_features(clause) for clause, _ in clauses]
    features = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    labels = np.array([float(is_lasting) for _, is_lasting in clauses])
    weights = _newton(features, labels, prior, strength)
    return {name: _rounded(name, float(weight)) for name, weight in zip(names, weights, strict=True)}


def labelled_clauses() -> list[LabelledClause]:
    lasting = [clause for table in _LASTING for line in read_sentences(table) if (clause := _heaviest_clause(line))]
    passing = [clause for table in _PASSING for line in read_sentences(table) for clause in _weighed_clauses(line)]
    tables = [*((clause, True) for clause in lasting), *((clause, False) for clause in passing)]
    return [*tables, *(row for path in (MONTH, SECOND) for row in _month_clauses(read_month(path)))]


def replace_weights(text: str, weights: Mapping[str, float]) -> str:
    """`signs.toml` with these weights, and nothing else of it changed."""
    for name, weight in weights.items():
        if name.startswith("of "):
            place = rf"(?m)^({re.escape(name.removeprefix('of '))} = )-?[\d.]+$"
        elif name == EXTRA_WORD:
            place = r"(\[length\]\nweight = )-?[\d.]+"
        elif name in ("unlinked", "so-many"):
            place = rf"(?m)^({name} = )-?[\d.]+$"
        else:
            place = rf'(\[\[sign\]\]\nname = "{re.escape(name)}"\nweight = )-?[\d.]+'
        text, count = re.subn(place, rf"\g<1>{weight}", text)
        if count != 1:
            raise ValueError(f"signs.toml has {count} places for the weight of {name}")
    return text


def _newton(features: np.ndarray, labels: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    weights = prior.copy()
    for _ in range(100):
        chance = 1 / (1 + np.exp(durable_threshold() - features @ weights))
        slope = features.T @ (chance - labels) + strength * (weights - prior)
        curve = (features.T * (chance * (1 - chance))) @ features + strength * np.eye(len(prior))
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-9:
            return weights
    raise ArithmeticError("the fit does not converge")


def _month_clauses(month: MonthConversation) -> Iterator[LabelledClause]:
    """Clauses of a message that tells something are lasting where they hold what it tells, passing where they hold what
    is marked as passing in it, and else not used."""
    for said in month.said:
        if said.role != "user":
            continue
        keys = [fact.keys for fact in month.facts if said.number in fact.messages]
        keys += [each.new for each in month.corrections if each.message == said.number]
        for clause in _weighed_clauses(said.text):
            if said.noise or any(has_phrase(clause, phrase) for phrase in said.passing):
                yield clause, False
            elif any(key.held_by(clause) for key in keys):
                yield clause, True


def _weighed_clauses(message: str) -> Iterator[str]:
    for sentence in split_sentences(blank_foreign_text(message)):
        for start, end in find_clauses(sentence.own_text):
            clause = sentence.own_text[start:end]
            if not any(decides(clause) for decides in _DECIDED_BEFORE):
                yield strip_opening_words(clause)


def _heaviest_clause(line: str) -> str:
    """By the priors; "" where nothing is weighed."""
    return max(_weighed_clauses(line.rsplit(" => ", 1)[0]), key=_prior_score, default="")


def _prior_score(clause: str) -> float:
    return sum(_priors()[name] * count for name, count in _features(clause).items())


def _features(clause: str) -> dict[str, float]:
    rules = read_classifier()
    extra = min(rules.most_words, max(0, len(clause.split()) - rules.words_before))
    return {**dict.fromkeys(find_signs(clause), 1.0), EXTRA_WORD: float(extra)}


@cache
def _priors() -> dict[str, float]:
    return tomllib.loads(_PRIORS.read_text(encoding="utf-8"))


def _rounded(name: str, weight: float) -> float:
    return round(weight, 2 if name == EXTRA_WORD else 1)
