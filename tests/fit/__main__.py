"""`python -m tests.fit`: fits the weights of the rules of sleep (`sleep/rules/data/signs.toml`) and of the intents of
offline mode (`assistant/models/offline/intent_weights.json`), and writes them."""

from __future__ import annotations

from sleep.rules.pattern_files import DATA_FILES
from tests.fit.intents import fit_intents, labelled_sentences, write_weights
from tests.fit.weights import fit_weights, replace_weights, shipped_weights


def main() -> None:
    shipped, fitted = shipped_weights(), fit_weights()
    for name, weight in fitted.items():
        if weight != shipped[name]:
            print(f"{name}: {shipped[name]} -> {weight}")
    path = DATA_FILES / "signs.toml"
    path.write_text(replace_weights(path.read_text(encoding="utf-8"), fitted), encoding="utf-8")
    sentences = labelled_sentences()
    write_weights(fit_intents(sentences))
    print(f"the intents of offline mode, of {len(sentences)} sentences")


if __name__ == "__main__":
    main()
