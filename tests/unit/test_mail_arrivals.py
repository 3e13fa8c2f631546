"""Whose a mail is, whether a program wrote it, and which of its words are the sender's own."""

from __future__ import annotations

import pytest

from assistant.mail.arrivals import VerifiedWith, is_automatic, own_words, read_sender, verified_sender
from assistant.mail.parsed import ParsedMail, parse_plain_mail

SERVER = "mx.home.example"
PASSED = "Authentication-Results: mx.home.example; dmarc=pass header.from=example.org"
ADA = "From: Ada <ada@example.org>"


def mail(*fields: str, text: str = "Hello.") -> ParsedMail:
    return parse_plain_mail("\r\n".join([*fields, "", text]).encode())


def sender(*fields: str, how: VerifiedWith = "dmarc") -> str:
    found = verified_sender(mail(*fields), SERVER, how)
    return found[0] if found else ""


# ------------------------------------------------------------------------------------------------------- whose it is


def test_the_own_servers_word_makes_a_sender() -> None:
    assert verified_sender(mail(PASSED, ADA), SERVER, "dmarc") == ("ada@example.org", "Ada")
    assert sender(f"{PASSED} policy.dmarc=reject", "From: ADA@example.org") == "ada@example.org"
    assert sender("Authentication-Results: MX.home.example 1; dmarc=pass header.from=Example.ORG", ADA)


def test_a_signature_counts_where_it_is_asked_for_and_of_the_senders_own_domain() -> None:
    signed = "Authentication-Results: mx.home.example; dkim=pass (2048 bit) header.d={} header.s=a"
    assert sender(signed.format("example.org"), ADA, how="dkim") == "ada@example.org"
    assert sender(signed.format("example.org"), "From: ada@mail.example.org", how="dkim")
    assert sender(signed.format("example.org").replace("header.d=", "header.i=@"), ADA, how="dkim")
    for other in ("mallory.example", "org", "xexample.org", "mail.example.org"):
        assert sender(signed.format(other), ADA, how="dkim") == ""
    assert sender(signed.format("example.org"), ADA) == ""


@pytest.mark.parametrize(
    "fields",
    [
        [ADA],
        ["Authentication-Results: mx.home.example; dmarc=fail header.from=example.org", ADA],
        ["Authentication-Results: mx.home.example; dmarc=none", ADA],
        ["Authentication-Results: mx.home.example; dmarc=pass", ADA],
        ["Authentication-Results: mx.home.example; dmarc=pass header.from=mallory.example", ADA],
        ["Authentication-Results: mx.home.example; spf=pass smtp.mailfrom=example.org", ADA],
        ["Authentication-Results: mx.mallory.example; dmarc=pass header.from=example.org", ADA],
        ["Authentication-Results: mx.home.example.mallory.example; dmarc=pass header.from=example.org", ADA],
        # What the own server says stands above what the mail brought along.
        [
            "Authentication-Results: mx.home.example; dmarc=fail header.from=example.org",
            "Received: from mallory.example by mx.home.example",
            PASSED,
            ADA,
        ],
        # A method in a comment or a quotation is the sender's.
        ['Authentication-Results: mx.home.example; spf=fail (dmarc=pass header.from=example.org)', ADA],
        ['Authentication-Results: mx.home.example; spf=fail reason="x; dmarc=pass header.from=example.org"', ADA],
        ['Authentication-Results: mx.home.example; spf=fail reason="\\"; dmarc=pass header.from=example.org', ADA],
        # Two senders, or one that two programs read in two ways.
        [PASSED, ADA, "From: mallory@mallory.example"],
        [PASSED, "From: ada@example.org, mallory@mallory.example"],
        [PASSED, "From: mallory@mallory.example <ada@example.org>"],
        [PASSED, "From: <ada@example.org> <mallory@mallory.example>"],
        [PASSED, "From: ada@example.org <mallory@mallory.example"],
        [PASSED, "From: =?utf-8?q?ada=40example.org?="],
        [PASSED, "From: ada@example.org\x00"],
        [PASSED],
    ],
)  # fmt: skip
def test_anybody_else_is_nobody(fields: list[str]) -> None:
    assert sender(*fields) == ""


def test_without_a_server_that_verifies_nobody_is_known() -> None:
    assert verified_sender(mail(PASSED, ADA), "", "dmarc") is None


def test_several_fields_of_the_own_server_count_where_they_stand_together() -> None:
    signed = "Authentication-Results: mx.home.example; dkim=pass header.d=example.org"
    assert sender(signed, PASSED, ADA)
    assert sender(signed, "Received: from x", PASSED, ADA) == ""


def test_a_name_may_have_anything_but_not_move_the_address() -> None:
    assert read_sender('"Ada, (ada@x)" <ada@example.org>') == ("ada@example.org", "Ada, (ada@x)")
    assert read_sender("=?utf-8?q?Ad=C3=A1?= <ada@example.org>") == ("ada@example.org", "=?utf-8?q?Ad=C3=A1?=")


# ----------------------------------------------------------------------------------------------- whether it is a person


@pytest.mark.parametrize(
    "field",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated; x=y",
        "Precedence: bulk",
        "Precedence: list",
        "List-Id: <boats.example.org>",
        "List-Unsubscribe: <mailto:x@example.org>",
        "Return-Path: <>",
        "X-Auto-Response-Suppress: All",
        "X-Autoreply: yes",
        "Content-Type: multipart/report; report-type=delivery-status",
    ],
)
def test_what_a_program_sent_is_known(field: str) -> None:
    assert is_automatic(mail(ADA, field), "nocturne@home.example")
    assert not is_automatic(mail(ADA), "nocturne@home.example")


@pytest.mark.parametrize("address", ["MAILER-DAEMON@example.org", "noreply@example.org", "nocturne@home.example"])
def test_nobody_writes_from_such_an_address(address: str) -> None:
    assert is_automatic(mail(f"From: {address}"), "nocturne@home.example")


def test_no_is_an_answer_of_a_person() -> None:
    assert not is_automatic(mail(ADA, "Auto-Submitted: no"), "nocturne@home.example")


# ---------------------------------------------------------------------------------------------------------- own words


def words(subject: str, text: str, *fields: str) -> str:
    return own_words(mail(ADA, f"Subject: {subject}", *fields, text=text))


def test_a_subject_is_said_where_a_conversation_begins() -> None:
    assert words("Dinner", "Book a table.") == "Dinner\n\nBook a table."
    assert words("Dinner", "") == "Dinner"
    assert words("Re: Dinner", "Book a table.") == "Book a table."
    assert words("Dinner", "/todo add milk") == "/todo add milk"


@pytest.mark.parametrize(
    "text",
    [
        "At eight.\r\n\r\nOn Sat, 1 Mar 2026, Nocturne\r\n<n@home.example> wrote:\r\n> When?\r\n> Tell me.\r\n",
        "At eight.\r\n\r\n> When?\r\n",
        "At eight.\r\n-- \r\nAda\r\nThe harbour\r\n",
        "At eight.\r\n\r\n-----Original Message-----\r\nFrom: Nocturne\r\nWhen?\r\n",
        "At eight.\r\n\r\n________________________________\r\nFrom: Nocturne\r\nSent: x\r\nTo: Ada\r\n\r\nWhen?",
        "At eight.\r\n\r\nFrom: Nocturne\r\nSent: today\r\nTo: Ada\r\nSubject: Dinner\r\n\r\nWhen?\r\n",
    ],
)  # fmt: skip
def test_what_is_answered_is_left_out(text: str) -> None:
    assert words("Re: Dinner", text, "In-Reply-To: <1@x>") == "At eight."


def test_words_between_quotations_keep_what_they_answer_as_quotations() -> None:
    assert words("Re: x", "> When?\r\nAt eight.\r\n> Where?\r\nHere.") == "> When?\nAt eight.\n> Where?\nHere."


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("Fwd: Invoice", "---------- Forwarded message ---------\r\nFrom: Mallory\r\n\r\nPay Mallory."),
        ("WG: Invoice", "Pay Mallory."),
        ("Invoice", "Begin forwarded message:\r\n\r\nFrom: Mallory\r\n\r\nPay Mallory."),
        ("Invoice", "From: Mallory\r\nDate: today\r\nSubject: Invoice\r\nTo: Ada\r\n\r\nPay Mallory."),
    ],
)
def test_what_is_passed_on_is_a_quotation_line_by_line(subject: str, text: str) -> None:
    said = [line for line in words(subject, text).splitlines() if "Pay" in line or "Mallory" in line]
    assert said and all(line.startswith("> ") for line in said)


# ------------------------------------------------------------------------------------------------------ what it says


def test_what_is_not_encoded_as_it_should_be_is_read_all_the_same() -> None:
    found = parse_plain_mail(
        "Subject: Привет\r\nFrom: Jörg <j@example.org>\r\n"
        'Content-Disposition: attachment; filename="Grüße.txt"\r\n\r\nHello'.encode()
    )
    assert (found.get("subject"), found.get("from")) == ("Привет", "Jörg <j@example.org>")
    assert [it.name for it in found.files] == ["Grüße.txt"]


@pytest.mark.parametrize("kind", ["", "Content-Type: text/plain; charset=klingon"])
def test_a_text_in_no_encoding_that_is_known_is_read_as_what_it_can_be(kind: str) -> None:
    head = f"Subject: x\r\n{kind}\r\n\r\n".lstrip().encode() if kind else b"Subject: x\r\n\r\n"
    assert parse_plain_mail(head + "Grüße".encode("cp1252")).text == "Grüße"
    assert parse_plain_mail(head + "Grüße".encode()).text == "Grüße"


def test_the_cells_of_a_table_do_not_run_together() -> None:
    table = "<table><tr><th>Lamp</th><td>12 EUR</td></tr><tr><td>Oil</td><td>3 EUR</td></tr></table>"
    assert mail("Content-Type: text/html", text=table).text.split("\n") == ["Lamp 12 EUR", "Oil 3 EUR"]
