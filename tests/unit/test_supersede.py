"""What a later statement is to an earlier one, on a table of examples."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sleep.rules.supersede import (
    EntryDecision,
    MemoryCandidate,
    compare_statements,
    decide_entry,
    parse_entry,
    restate_correction,
)
from tests.support.sentence_tables import every_case

THEN = datetime(2026, 1, 10, tzinfo=UTC)
LATER = THEN + timedelta(days=90)

SUPERSEDES = (
    ("I live in Oslo.", "I moved from Oslo to Bergen."),
    ("I live in Oslo.", "We live in Bergen now."),
    ("The user lives in Oslo.", "The user has moved to Bergen."),
    ("My sister Anna lives in Rome.", "Anna moved to Paris."),
    ("I work at Acme.", "I no longer work at Acme."),
    ("I work at Acme.", "I started at Globex in May."),
    ("The dentist is on Mondays.", "The dentist is on Thursdays now."),
    ("The budget is 750.", "Actually the budget is 900, not 750."),
    ("The kitchen budget is 18k all in.", "scrap what i said about the kitchen, the budget is 15k not 18k"),
    ("Ina is in year 3.", "Ina's in year 4 now, not 3."),
    ("Ina is 7.", "Ina is 8."),
    ("We're going to Lisbon in May.", "Scrap that, we're not going to Lisbon after all."),
    ("I smoke ten a day.", "I stopped smoking."),
    ("I play tennis at the club.", "I used to play tennis."),
    ("I sing in a choir.", "I quit the choir."),
    ("The door code is 4711.", "The door code is 1200."),
    ("My phone number is 555 0100.", "My phone number is 555 0199."),
    ("The rent is 950 a month.", "The rent went up to 1100 a month."),
    ("The rent is 950.", "The rent is 1,100 from April."),
    ("Our landlord is Mr Harris.", "Our landlord is Mrs Okafor."),
    ("My line manager is Malcolm.", "my line manager is saskia now"),
    ("I like coriander.", "I don't like coriander any more."),
    ("I love running.", "I hate running."),
    ("I prefer tea to coffee.", "I prefer coffee to tea."),
    ("My favourite composer is Grieg.", "My favourite composer is Bach."),
    ("I eat meat.", "I don't eat meat."),
    ("Ada's swimming is saturdays at 9.30", "swimming's changed, it is on sundays from now on instead of saturdays"),
    ("Tea with Kim is on Thursday.", "Tea's moved to Tuesday, the place shuts on Thursdays"),
    ("Ben's party is at the pool in town.", "the pool is flooded so Ben's party is at the farm instead"),
    ("Fridays are my wfh day.", "my wfh day is wednesdays now, not fridays"),
    ("dad's cataract operation is on the 24th", "dad's operation's been put back, it's on the 31st now"),
    ("The meeting is at 10:30.", "The meeting has moved to 11:15."),
    ("The meeting is at 3pm.", "The meeting is at 4 pm."),
    ("I take 75 mcg of levothyroxine.", "The levothyroxine dose is 100 now, not 75."),
    ("We drive an Octavia.", "We drive a Niro now."),
    ("The party is at the soft play place.", "The party is at the trampolines, not the soft play."),
    ("My email is a@x.org.", "My email is b@x.org."),
    ("The kitchen tiles are going to be blue.", "The kitchen tiles are going to be green after all."),
    ("Bex lands on 2 April.", "bex lands on the 4th of april not the 2nd"),
    ("Ich wohne in Köln.", "Ich wohne jetzt in Berlin."),
    ("Ich arbeite bei Siemens.", "Ich arbeite nicht mehr bei Siemens."),
    ("J'habite à Lyon.", "J'habite maintenant à Paris."),
    ("Vivo en Sevilla.", "Ahora vivo en Madrid."),
    ("Jeg bor i Oslo.", "Jeg bor nå i Bergen."),
    ("Jeg jobber hos Telenor.", "Jeg jobber ikke lenger hos Telenor."),
    ("我住在上海。", "我搬到北京了。"),
    ("私は京都に住んでいます。", "今は大阪に住んでいます。"),
    ("我喜欢咖啡。", "我不喜欢咖啡。"),
    ("Our cleaner comes on Tuesdays.", "The cleaner comes on Fridays from now on."),
    ("I'm vegetarian.", "I'm not vegetarian any more."),
    ("I am a vegetarian.", "I eat meat again, I'm no longer vegetarian."),
    ("The deadline for the report is 3 May.", "The report deadline got pushed to 10 May."),
    ("My wife's birthday is 12 June.", "Correction: my wife's birthday is 13 June."),
    ("We're having 40 guests at the wedding.", "It's 55 guests at the wedding now."),
    ("The wifi password is tulip77.", "Wifi password changed to rose88"),
    ("I have two cats.", "I have three cats now."),
    ("The boiler service is booked for 9 March.", "the boiler service moved to 16 March"),
    ("I go to the gym on Mondays and Thursdays.", "I go to the gym on Tuesdays and Fridays now."),
    ("I'm single.", "I'm no longer single."),
    ("My bus is the 42.", "My bus is the 17 now."),
    ("We plan to paint the hall green.", "We're painting the hall white instead."),
    ("I want to run the marathon in Berlin.", "I gave up on the Berlin marathon."),
    ("My dentist is Dr Patel.", "My dentist is Dr Lund."),
    ("Ina goes to Grange school.", "Ina goes to Ashdown school now."),
    ("Leo is allergic to eggs.", "Turns out Leo isn't allergic to eggs."),
    ("The flight leaves at 9:40.", "The flight leaves at 11:05, not 9:40."),
)
SEPARATE = (
    ("Jonas, my best friend from school, lives in Lisbon now.", "We moved from Kreuzberg to Pankow."),
    ("My sister Anna lives in Rome.", "My sister Berit lives in Paris."),
    ("My sister is called Anna.", "My sister is called Berit."),
    ("I have a dentist appointment on 3 May.", "I have a dentist appointment on 12 June."),
    ("Jonas has a check-up on Monday.", "Ina has a check-up on Thursday."),
    ("The door code is 4711.", "The gate code is 1200."),
    ("I live in Oslo.", "I used to live in Rome."),
    ("I live in Oslo.", "My brother lives in Bergen."),
    ("I work at Acme.", "Tom works at Globex."),
    ("We bought two chairs.", "We bought four chairs."),
    ("I ran 5 km on Monday.", "I ran 8 km on Thursday."),
    ("I visited Rome in May.", "I visited Paris in June."),
    ("I like tea.", "I don't like coffee."),
    ("I love my garden.", "My neighbour hates his garden."),
    ("Our cat is called Mio.", "Our other cat is called Max."),
    ("My son is in year 3.", "My daughter is in year 4."),
    ("Swimming is on Saturdays.", "Judo is on Sundays now."),
    ("The kids have swimming on Saturdays.", "The kids have judo on Sundays now."),
    ("I drink coffee in the morning.", "I no longer drink wine in the evening."),
    ("The rent is 950.", "The deposit is 1900."),
    ("Anna's phone number is 555 0100.", "Tom's phone number is 555 0199."),
    ("I speak German.", "I also speak French."),
    ("My sister is a nurse.", "My sister is tall."),
    ("The flight to Rome leaves on 3 May.", "The flight to Lisbon leaves on 9 May."),
    ("I'm allergic to nuts.", "I'm allergic to penicillin."),
    ("The boat needs paint.", "The car needs new tyres."),
    ("We moved to Bergen.", "The meeting moved to Thursday."),
    ("Ich wohne in Köln.", "Mein Bruder wohnt in Berlin."),
    ("我住在上海。", "我妈妈住在北京。"),
    ("Tom's birthday is 12 June.", "Ann's birthday is 3 May."),
    ("I take the bus on Mondays.", "I take the train on Fridays."),
    ("The car is in the garage.", "The bike is in the shed."),
    ("I have two cats.", "I have three nephews."),
    ("My brother Tom lives in Leeds.", "My brother Sam lives in York."),
    ("I met Anna on Monday.", "I met Anna on Thursday."),
    ("Ina's swimming is on Mondays.", "Leo's swimming is on Thursdays now."),
    ("I paid 40 for the shoes.", "I paid 60 for the coat."),
    ("I like jazz.", "I like opera."),
    ("The boiler was serviced in May.", "The boiler was serviced in June."),
    ("I now run every morning.", "I now read every evening."),
    ("My mum's operation is on the 24th.", "My dad's operation is on the 31st."),
    ("Leo is allergic to eggs.", "Ina is allergic to nuts."),
    ("We decided to sell the boat.", "We decided to keep the cabin."),
    ("The party is at our house.", "The meeting is at the library now."),
    ("I have an appointment with Dr Lund on 3 May.", "I have another appointment with Dr Lund on 10 May."),
    ("I used to work at Acme.", "I work at Globex now."),
    ("My favourite book is Emma.", "My favourite film is Alien."),
    ("My son's team plays on Mondays.", "My daughter's team plays on Fridays now."),
    ("The north gate opens at 7.", "The south gate opens at 8 now."),
    ("The cat has supper at six.", "The dog has supper at seven now."),
    ("I have an alarm at 7.", "I have another alarm at 8."),
)
SAME = (
    ("I live in Oslo.", "The user lives in Oslo."),
    ("I have a dog called Rex.", "I've a dog called Rex"),
    ("My sister Anna is a nurse in Rome.", "My sister Anna is a nurse."),
    ("The rent is £950.", "the rent is 950"),
    ("The meeting is at 15:30.", "The meeting is at 3:30 pm."),
    ("My son Jonas has a peanut allergy.", "Jonas, my son, has a peanut allergy!"),
    ("The budget is 15k.", "The budget is 15,000."),
    ("Timesheets are due on Thursday.", "Timesheets are due Thursdays."),
    ("Wir haben einen Hund namens Rex.", "wir haben einen hund namens Rex"),
    ("我住在上海。", "我住在上海"),
    ("Remember that the boiler man is Steve Barnes.", "the boiler man is Steve Barnes"),
)


@every_case(SUPERSEDES)
def test_what_puts_something_right_takes_its_place(earlier: str, later: str) -> None:
    assert compare_statements(parse_entry(later), parse_entry(earlier)) == "supersedes"


@every_case(SEPARATE)
def test_what_is_only_alike_stands_beside_it(earlier: str, later: str) -> None:
    assert compare_statements(parse_entry(later), parse_entry(earlier)) == "separate"
    assert compare_statements(parse_entry(earlier), parse_entry(later)) == "separate"


@every_case(SAME)
def test_what_is_said_twice_is_the_same(earlier: str, later: str) -> None:
    assert compare_statements(parse_entry(later), parse_entry(earlier)) == "same"


# ---------------------------------------------------------------------------------------------------------- candidates


def candidate(name: str, text: str, said_at: datetime = THEN, **more: object) -> MemoryCandidate:
    return MemoryCandidate(name, parse_entry(text), said_at, **more)  # type: ignore[arg-type]


def test_without_anything_alike_an_entry_is_new() -> None:
    assert decide_entry(parse_entry("I live in Oslo."), LATER, [candidate("a", "I play the cello.")]) == EntryDecision()


def test_what_is_worded_alike_but_about_something_else_stands_beside_it() -> None:
    near = candidate("a", "My sister Berit lives in Paris.")
    assert decide_entry(parse_entry("My sister Anna lives in Rome."), LATER, [near]) == EntryDecision()


def test_where_somebody_else_moved_from_is_not_where_the_person_no_longer_lives() -> None:
    mine = MemoryCandidate("mine", parse_entry("I live in Oslo."), THEN)
    hers = MemoryCandidate("hers", parse_entry("My sister lives in Oslo."), THEN)

    def ended_by(text: str, *standing: MemoryCandidate) -> tuple[str, ...]:
        return decide_entry(parse_entry(text), LATER, standing).superseded_ids

    assert ended_by("Ruben moved from Oslo to Bergen.", mine) == ()
    assert ended_by("My sister moved from Oslo to Bergen.", mine, hers) == ("hers",)
    assert ended_by("I moved from Oslo to Bergen.", mine, hers) == ("mine",)


def test_all_that_is_put_right_is_named_whenever_it_was_said() -> None:
    two = [candidate("a", "I live in Oslo."), candidate("b", "I live in Rome.", LATER + timedelta(days=1))]
    assert decide_entry(parse_entry("I live in Bergen."), LATER, two) == EntryDecision("", ("a", "b"))


def test_of_all_values_that_one_attribute_had_only_the_newest_holds() -> None:
    had = [
        candidate("a", "The label of Greta's locker is harbour."),
        candidate("b", "The label of Greta's locker is now lighthouse."),
        candidate("c", "The label of Greta's boat is museum."),
        candidate("d", "The lender of Greta's locker is generous."),
    ]
    newest = parse_entry("The label of Greta's locker is now chapel.")
    assert decide_entry(newest, LATER, had) == EntryDecision("", ("a", "b"))


def test_a_mark_of_change_counts_in_what_was_said_later_whichever_is_read_first() -> None:
    change = candidate("a", "The kids' swimming is on Sundays now.", LATER)
    lessons = parse_entry("The kids have swimming lessons on Saturday mornings.")
    assert decide_entry(lessons, THEN, [change]) == EntryDecision("", ("a",))
    assert decide_entry(lessons, LATER + timedelta(days=9), [change]) == EntryDecision()


def test_what_was_over_before_it_is_said_again_is_not_the_same() -> None:
    over = candidate("a", "I live in Oslo.", until=THEN + timedelta(days=30))
    assert decide_entry(parse_entry("I live in Oslo."), THEN + timedelta(days=10), [over]).same_as == "a"
    assert decide_entry(parse_entry("I live in Oslo."), LATER, [over]).same_as == ""


def test_it_means_what_was_just_said_and_nothing_older() -> None:
    entry, budget = parse_entry("actually it's 900, not 750"), candidate("a", "The budget is 750.")
    assert decide_entry(entry, THEN + timedelta(hours=1), [budget]) == EntryDecision("", ("a",))
    assert decide_entry(entry, LATER, [budget]) == EntryDecision()


@every_case(
    [
        ("no, make it Friday, not Monday", "Tea is on Monday.", "Tea is on Friday. (no, make it Friday, not Monday)"),
        ("it's 900, not 750", "The budget is 750.", "The budget is 900. (it's 900, not 750)"),
        ("the rent is 900, not 750", "The rent is 750.", "the rent is 900, not 750"),
        ("it's 900, not 750", "The budget is 17500.", "it's 900, not 750"),
    ]
)
def test_what_says_it_only_is_restated_in_full(said: str, about: str, expected: str) -> None:
    assert restate_correction(said, about) == expected


@every_case(["", "…", "x" * 1_000_000, "not " * 2_000, "a, " * 1_000_000, "was " * 9_000 + "now", "的" * 5_000])
def test_any_text_is_read_soon(text: str) -> None:
    assert compare_statements(parse_entry(text), parse_entry("I live in Oslo.")) == "separate"
