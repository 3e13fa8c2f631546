"""The weights of the rules are those that the fit gives."""

from __future__ import annotations

from sleep.rules.pattern_files import DATA_FILES
from tests.fit.weights import fit_weights, labelled_clauses, replace_weights, shipped_weights


def test_the_shipped_weights_are_the_fitted_ones() -> None:
    fitted, shipped = fit_weights(), shipped_weights()
    differing = {name: (shipped[name], weight) for name, weight in fitted.items() if weight != shipped[name]}
    assert fitted.keys() == shipped.keys() and not differing, f"`make fit-rules` changes {differing}"


def test_the_fit_reads_lasting_and_passing_clauses() -> None:
    labels = [is_lasting for _, is_lasting in labelled_clauses()]
    assert labels.count(True) > 400 and labels.count(False) > 600


def test_writing_the_shipped_weights_changes_nothing() -> None:
    text = (DATA_FILES / "signs.toml").read_text(encoding="utf-8")
    assert replace_weights(text, shipped_weights()) == text
