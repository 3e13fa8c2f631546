"""Each key fact of a compaction without a model is worth a line: what the person stated, whom and what they named."""

from __future__ import annotations

from datetime import UTC, datetime

from assistant.core.messages import Message
from sleep.compaction.key_facts import collect_key_facts
from sleep.compaction.values import SummaryInput
from tests.support.sentence_tables import every_case

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def facts_of(*said: str, answered: str = "I see.") -> dict[str, tuple[str, ...]]:
    rows = [Message(role, text, ts=NOW) for words in said for role, text in (("user", words), ("assistant", answered))]  # type: ignore[arg-type]
    return collect_key_facts(SummaryInput("main", "owner", tuple(rows), {}, 400))


def test_what_the_person_stated_is_kept_by_its_kind() -> None:
    facts = facts_of(
        "We decided to take the night train instead.",
        "I don't like coffee",
        "My sister Ines moved to Bergen last week, her new number is +47 912 34 567.",
    )
    assert facts["decisions"] == ("We decided to take the night train instead.",)
    assert facts["preferences"] == ("I don't like coffee",)
    assert facts["facts"] == ("My sister Ines moved to Bergen last week, her new number is +47 912 34 567.",)
    assert set(facts["entities"]) == {"Ines", "Bergen"}


def test_names_are_whole() -> None:
    assert facts_of("Then call Dr. Okafor and Marta Lindqvist")["entities"] == ("Dr. Okafor", "Marta Lindqvist")


@every_case(
    [
        "I need the ferry on Tuesday, or in May",
        "Ich mag im Juni gar keinen Kaffee und auch nicht den Tee",
        "It says so. OK, The end. And the rest",
        "GREAT, THANKS SO MUCH FOR IT",
    ]
)
def test_days_nouns_and_shouting_are_no_names(said: str) -> None:
    assert "entities" not in facts_of(said)


def test_a_name_counts_if_it_is_anywhere_without_an_article() -> None:
    assert facts_of("The Oslo trains are full, so Oslo is out")["entities"] == ("Oslo",)
    assert "Bergen" not in facts_of("Bergenline first, then the Bergen boat").get("entities", ())
    assert "entities" not in facts_of("Ich suche den Koffer. Wo ist der Koffer?")


def test_what_only_an_answer_names_once_is_no_fact() -> None:
    answered = "The error of Grubhub is in /srv/notes/x.py, see https://example.org/a?id=99812"
    assert facts_of("can you run it?", answered=answered) == {}
    assert facts_of("can you run it?", "and now?", answered=answered)["entities"] == ("Grubhub",)


def test_of_identifiers_the_longest_stays_and_no_secret() -> None:
    facts = facts_of("It is in /srv/notes/x.py, below /srv/notes", "My wifi password is Hunter2-blue")
    assert facts["identifiers"] == ("/srv/notes/x.py",) and "Hunter2-blue" not in str(facts)
