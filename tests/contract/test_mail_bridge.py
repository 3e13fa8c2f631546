"""The mail bridge against mails as they come: forged, automatic, numbered anew, in HTML, and two programs that answer
each other."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from assistant.bridges.mail.bridge import MailBridge
from assistant.core.bridge_api import OutgoingPart
from assistant.core.errors import BridgeError
from tests.support.dovecot import Dovecot
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.mail import ADDRESS, MailNetwork, open_mail_network, verified
from tests.support.running_app import files_with_words

OWNER = "owner@people.example"


@pytest.fixture
async def network(imap_server: Dovecot) -> AsyncIterator[MailNetwork]:
    async with open_mail_network(imap_server) as opened:
        assert isinstance(opened, MailNetwork)
        yield opened


def mail(text: str = "the marmalade plan", *, sender: str = OWNER, **fields: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, ADDRESS, "Breakfast"
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message


async def answered_after(it: ConformanceApp, network: MailNetwork, *mails: EmailMessage) -> list[str]:
    """What the model was asked after these came and then a mail of the owner's."""
    for message in mails:
        network.deliver(message)
    await network.say("owner", "apples")
    await it.wait_for_answer("You said: apples")
    return it.model_user_texts()


async def test_a_forged_sender_is_neither_stored_nor_answered_nor_asked_to_pair(
    network: MailNetwork, tmp_path: Path
) -> None:
    forged = mail()
    failed = mail()
    failed["Authentication-Results"] = "mx.test.example; dmarc=fail header.from=people.example"
    elsewhere = verified(mail(), "mallory.example")
    async with run_conformance_app(network, tmp_path, ASSISTANT_PEOPLE__UNKNOWN="pair") as it:
        assert await answered_after(it, network, forged, failed, elsewhere) == ["apples"]
        assert [sent.recipients for sent in network.taken] == [[OWNER]]
    assert files_with_words(tmp_path, "marmalade") == []


async def test_what_programs_send_is_not_answered(network: MailNetwork, tmp_path: Path) -> None:
    automatic: list[dict[str, Any]] = [
        {"Auto_Submitted": "auto-replied"},
        {"Precedence": "bulk"},
        {"List_Id": "<boats.example>"},
        {"Return_Path": "<>"},
    ]
    async with run_conformance_app(network, tmp_path) as it:
        mails = [verified(mail(**fields)) for fields in automatic]
        assert await answered_after(it, network, *mails) == ["apples"]


async def test_our_own_mails_say_that_they_are_a_programs(network: MailNetwork, tmp_path: Path) -> None:
    async with run_conformance_app(network, tmp_path) as it:
        await answered_after(it, network)
        sent = network.taken[0].message
        assert (sent["Auto-Submitted"], sent["X-Auto-Response-Suppress"]) == ("auto-replied", "All")


async def test_an_answer_has_the_subject_and_the_references_of_its_thread(network: MailNetwork, tmp_path: Path) -> None:
    asked = verified(mail("When?", Message_ID="<2@people.example>", References="<1@people.example>"))
    async with run_conformance_app(network, tmp_path) as it:
        network.deliver(asked)
        await it.wait_for_answer("You said: Breakfast")
        sent = network.taken[0].message
        assert sent["Subject"] == "Re: Breakfast"
        assert (sent["In-Reply-To"], sent["References"]) == (
            "<2@people.example>",
            "<1@people.example> <2@people.example>",
        )


async def test_markdown_is_sent_as_text_and_as_html_without_what_it_may_not_have(
    network: MailNetwork, tmp_path: Path
) -> None:
    async with run_conformance_app(network, tmp_path, "**Yes** <script>x</script>") as it:
        await network.say("owner", "apples")
        await it.wait_until(lambda: bool(network.taken))
        markup = network.taken[0].message.get_body(("html",))
        assert markup is not None
        html = markup.get_content()
        assert "<strong>Yes</strong>" in html and "<script>" not in html


async def test_a_mail_of_html_alone_is_read_without_what_it_quotes(network: MailNetwork, tmp_path: Path) -> None:
    message = mail(In_Reply_To="<1@people.example>")
    message.set_content("<p>At eight.</p><blockquote>Pay Mallory.</blockquote>", subtype="html")
    async with run_conformance_app(network, tmp_path) as it:
        network.deliver(verified(message))
        await it.wait_for_answer("At eight.")
        assert it.model_user_texts() == ["At eight."]


async def test_a_mailbox_that_is_numbered_anew_brings_nothing_twice(network: MailNetwork, tmp_path: Path) -> None:
    async with run_conformance_app(network, tmp_path) as it:
        first = await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        await it.stop()
        (network.maildir / "dovecot-uidlist").unlink()
        for path in network.maildir.glob("dovecot.index*"):
            path.unlink()
        await network.redeliver(first)
        await network.say("owner", "pears")
        await it.start()
        await it.wait_for_answer("You said: pears")
        assert it.model_user_texts() == ["apples", "pears"]


async def test_what_was_read_before_the_assistant_came_is_not_answered(network: MailNetwork, tmp_path: Path) -> None:
    network.deliver(verified(mail("old words")))
    (new,) = (network.maildir / "new").iterdir()
    shutil.move(new, network.maildir / "cur" / f"{new.name}:2,S")
    async with run_conformance_app(network, tmp_path) as it:
        assert await answered_after(it, network) == ["apples"]
        await it.restart()
        await network.say("owner", "pears")
        await it.wait_for_answer("You said: pears")
        assert it.model_user_texts() == ["apples", "pears"]


async def test_one_address_gets_so_many_mails_in_an_hour_and_the_rest_waits(
    network: MailNetwork, tmp_path: Path
) -> None:
    async with run_conformance_app(network, tmp_path) as it:
        await answered_after(it, network)
        (item,) = it.outbox()
        seconds = 0.0
        bridge = MailBridge(
            network.mail_account, verified_by="x", verified_with="dmarc", hourly_limit=2, elapsed=lambda: seconds
        )
        for number in (1, 2):
            await bridge.send(OutgoingPart(item, number, "text"))
        with pytest.raises(BridgeError, match="the most that go there") as caught:
            await bridge.send(OutgoingPart(item, 3, "text"))
        assert caught.value.retry_after == 3600
        seconds = 3600.0
        await bridge.send(OutgoingPart(item, 3, "text"))


async def test_without_a_server_that_verifies_the_bridge_says_what_is_missing(
    network: MailNetwork, tmp_path: Path
) -> None:
    bridge = MailBridge(network.mail_account, verified_by="", verified_with="dmarc", hourly_limit=2)
    async with run_conformance_app(network, tmp_path) as it:
        with pytest.raises(BridgeError, match=r"mail\.verified_by is empty"):
            await bridge.run(it.app.inbound)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x00\xff" * 500, b"From: owner@people.example\r\n" * 3, b"Content-Type: multipart/mixed\r\n\r\n--x"],
    ids=["empty", "bytes", "three senders", "no boundary"],
)
async def test_a_mail_of_any_bytes_holds_nothing_up(network: MailNetwork, tmp_path: Path, raw: bytes) -> None:
    head = b"Authentication-Results: mx.test.example; dmarc=pass header.from=people.example\r\n"
    async with run_conformance_app(network, tmp_path) as it:
        network.deliver(raw)
        network.deliver(head + b"From: owner@people.example\r\n" + raw)
        assert "apples" in await answered_after(it, network)
