"""What two messages leave known, the second of which puts the first right, through the rules of extraction and of
memory: the newer word alone."""

from __future__ import annotations

from sleep.rules.extract_statements import SourcedStatement, extract_from_conversation
from tests.support.correction_table import as_records, current
from tests.support.sentence_tables import every_case


def learned(*said: str) -> list[SourcedStatement]:
    """What a conversation leaves in the journal in which everything is acknowledged."""
    return extract_from_conversation(as_records(*said))


@every_case(
    [
        ("Remember that my dentist is Dr. Hansen on Storgata.", "No, my dentist is Dr. Olsen."),
        ("Remember that my dentist is Dr. Hansen on Storgata.", "No, Dr. Olsen is my dentist."),
        ("Remember that the boiler code is 4711.", "No, the boiler code is 4712."),
        ("Remember that the boiler code is 4711.", "The boiler code is 4712."),
        ("Remember that the boiler code is 4711.", "No, it's 4712."),
        ("remember: my car is red", "no, my car is blue"),
        ("Remember that the wifi password is hunter2", "No, the wifi password is hunter3"),
        ("Merk dir, dass mein Zahnarzt Dr. Hansen ist.", "Nein, mein Zahnarzt ist Dr. Olsen."),
        ("Merk dir, dass der Code 4711 ist.", "Nein, der Code ist 4712."),
        ("Merke dir: Der Kellercode ist 4711.", "Nein, der Kellercode ist 4712."),
        ("Souviens-toi que mon dentiste est le Dr. Martin.", "Non, mon dentiste est le Dr. Petit."),
        ("Souviens-toi que le code est 4711.", "Non, le code est 4712."),
        ("N'oublie pas que le code de la cave est 4711.", "Non, le code de la cave est 4712."),
        ("Recuerda que mi dentista es el Dr. Ruiz.", "No, mi dentista es el Dr. Soto."),
        ("Recuerda que el código es 4711.", "No, el código es 4712."),
        ("my sister's birthday is 3 may", "no wait, it's june 13th"),
        ("My sister's birthday is May 3rd.", "No wait, it's June 13th."),
        ("Mein Flug geht am 3. Mai.", "Nein, es ist der 13. Juni."),
        ("The anniversary of my sister is le 3 mai", "non, c'est le 13 juin"),
        ("L'anniversaire de ma soeur est le 3 mai.", "Non, c'est le 13 juin."),
        ("El cumpleaños de mi hermana es el 3 de mayo.", "No, es el 13 de junio."),
        ("Der Geburtstag meiner Schwester ist am 3. Mai.", "Nein, am 13. Juni."),
        ("Remember that my sister's birthday is May 3rd.", "no wait, June 13th"),
        ("My rent is 750 euros.", "no, it's 900"),
        ("My car is red.", "No, it's blue."),
        ("My cat is called Mio.", "no wait, Milo"),
        ("Remember that the spare key is with Ines.", "No, it's with Otto."),
        ("Remember that I live in Oslo.", "I moved to Bergen."),
        ("I live in Oslo", "I moved to Bergen"),
        ("Don't forget that the boat is at berth 31.", "No, the boat is at berth 12."),
        ("Note that the alarm code is 1234", "The alarm code is 9902 now"),
    ]
)
def test_the_newer_word_alone_stands(told: str, corrected: str) -> None:
    statements = learned(told, corrected)
    assert [statement.record.id for statement in statements] == [0, 2]
    assert current(statements) == [statements[1].statement.content]


@every_case(
    [
        ("Remember that my dentist is Dr. Hansen.", "Remember that my doctor is Dr. Olsen."),
        ("Remember that the boiler code is 4711.", "Remember that the garage code is 4712."),
        ("Merk dir, dass der Kellercode 4711 ist.", "Merk dir, dass der Garagencode 4712 ist."),
        ("My sister's birthday is May 3rd.", "My brother's birthday is June 13th."),
        ("My sister Ines lives in Bergen.", "Remember that I live in Oslo."),
        ("I take no sugar in my coffee.", "No sugar in my tea either."),
    ]
)
def test_what_speaks_of_something_else_puts_nothing_right(told: str, other: str) -> None:
    statements = learned(told, other)
    assert current(statements) == [statement.statement.content for statement in statements]
    assert statements[0].record.id == 0


def test_what_the_person_does_on_two_days_holds_for_both() -> None:
    for first, other in (("Tuesday", "Thursday"), ("May 3rd", "May 5th")):
        statements = learned(f"I meet Anna on {first}.", f"I meet Anna on {other}.")
        assert len(current(statements)) == 2
        assert len(current(learned(f"I meet Anna on {first}.", f"No, I meet Anna on {other}."))) == 1


def test_what_was_asked_in_between_is_no_hindrance_to_a_correction() -> None:
    statements = learned("My dentist is on Tuesday.", "When is my dentist?", "no, it's on Friday")
    assert current(statements) == ["My dentist is on Friday, not Tuesday (6 March 2026)"]


def test_one_correction_after_the_other_leaves_the_last_one() -> None:
    said = ("My dentist is on Tuesday.", "Nein, der Zahnarzt ist am Mittwoch.", "non, c'est jeudi", "no, es el viernes")
    assert current(learned(*said)) == ["der Zahnarzt ist am viernes, no jeudi"]


@every_case(["Remember to buy milk.", "Recuerda comprar pan.", "Do you remember that the code is 4711?"])
def test_an_order_and_a_question_ask_for_nothing_to_be_kept(said: str) -> None:
    assert not [one for one in learned(said) if one.statement.kind != "task"]
