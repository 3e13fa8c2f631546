"""Codes by which strangers ask to be let in, through the whole app: for an hour, a few at most, given once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import BridgeError, UsageError
from assistant.core.notices import NoticeKind
from assistant.core.records import InboxReceipt
from assistant.core.sessions import peer_session_key
from tests.support.running_app import ANN, IVO, STRANGER, BridgePeople, files_with_words, run_app

NOT_LET_IN = NoticeKind.NOT_LET_IN.fill().text
TOO_MANY = NoticeKind.TOO_MANY_STRANGERS.fill().text
ANNS = peer_session_key("kept", ANN)
WELCOME = NoticeKind.APPROVED.fill().text


async def test_a_stranger_gets_one_code_and_the_owner_lets_them_in_with_it(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello Ann") as it:
        them = BridgePeople(it)
        await them.write("may I come in", ANN, sender_name="Ann\n# Lee")
        await them.write("hello?", ANN)
        code = them.pairing_code()
        assert len(them.sent_since_last()) == 1
        listed = await them.command("/people")
        assert "Ann # Lee" in listed and f"`{ANN}` on kept" in listed and code not in listed
        assert "approved, as a guest" in await them.command(f"/pair {code[:4].lower()}-{code[4:].lower()}")
        await them.wait_idle()
        assert them.sent_since_last() == [(ANN, WELCOME)]
        accepted = await them.write("hello", ANN)
        assert isinstance(accepted, InboxReceipt)
        assert it.view_contents(ANNS) == [("user", "hello"), ("assistant", "hello Ann")]
        record = it.app.stores.history.recent(ANNS)[0]
        assert (record.scope, record.trust, record.sender) == (ANNS, "guest", ANN)
        with pytest.raises(UsageError, match="used, or it has expired"):
            await them.command(f"/pair {code}")


@pytest.mark.parametrize("decision", ["/pair allow 1", "/pair deny 1", f"/people allow kept {ANN}"])
async def test_a_code_that_waits_to_be_sent_does_not_arrive_after_the_decision(tmp_path: Path, decision: str) -> None:
    async with run_app(tmp_path) as it:
        it.bridge.send_errors = [BridgeError("no network", retry_after=600)]
        them = BridgePeople(it)
        await them.write("may I come in", ANN)
        (waiting,) = it.app.stores.outbox.list_open("kept", ANNS, limit=9)
        assert "code" in waiting.outgoing.body
        await them.command(decision)
        it.clock.now += timedelta(minutes=20)
        await them.wait_idle()
        assert it.app.stores.outbox.list_open("kept", ANNS, limit=9) == []
        assert them.sent_since_last() == ([(ANN, WELCOME)] if decision == "/pair allow 1" else [])


async def test_numbers_of_requests_are_given_once_so_that_the_owner_is_asked_about_each(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        for number, sender in enumerate((ANN, IVO), 1):
            await them.write("may I come in", sender, sender_name=sender)
            (question,) = it.app.stores.outbox.list_open("terminal", "main", limit=9)
            assert f"`{sender}`" in question.outgoing.body
            await them.command(f"/pair deny {number}")
        # The button of an earlier question decides on nobody else.
        await them.write("may I come in", STRANGER)
        with pytest.raises(UsageError, match="No request has the number 1"):
            await them.command("/pair allow 1")


async def test_of_a_code_only_its_hash_is_kept_with_who_waits(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.write("may I come in", ANN)
        (waiting,) = it.app.stores.pairings.pending_pairings(it.clock.now)
        assert waiting.code.matches(them.pairing_code()) and not waiting.code.matches("AAAAAAAA")
        link = (await them.command("/people link kept")).split()[1]
    assert files_with_words(tmp_path, link) == []


async def test_three_wait_at_most_and_the_fourth_is_told_so_once(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        for sender in ("1", "2", "3", "4", "4", "5"):
            await them.write("may I come in", sender)
        told = dict(them.sent_since_last())
        assert [target for target, body in told.items() if body == TOO_MANY] == ["4", "5"]
        assert len(it.app.stores.pairings.pending_pairings(it.clock.now)) == 3
        it.clock.now += timedelta(minutes=61)
        await them.write("may I come in", "4")
        assert [target for target, _ in them.sent_since_last()] == ["4"]
        assert "approved" in await them.command(f"/pair {them.pairing_code()}")


async def test_a_code_holds_for_an_hour(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.write("may I come in", ANN)
        first = them.pairing_code()
        it.clock.now += timedelta(minutes=61)
        with pytest.raises(UsageError, match="it was used, or it has expired"):
            await them.command(f"/pair {first}")
        await them.write("may I come in now", ANN)
        assert them.pairing_code() != first
        assert "approved" in await them.command(f"/pair {them.pairing_code()} Ann")
        assert it.app.stores.people.list_people()[0].name == "Ann"


async def test_wrong_codes_lock_what_waits_until_it_expires(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.write("may I come in", ANN)
        code = them.pairing_code()
        for _ in range(4):
            with pytest.raises(UsageError, match="No request has that code"):
                await them.command("/pair AAAABBBB")
        with pytest.raises(UsageError, match="Pairing is locked after 5 wrong codes, until"):
            await them.command("/pair AAAABBBB")
        with pytest.raises(UsageError, match="Pairing is locked"):
            await them.command(f"/pair {code}")
        assert "locked after wrong codes" in await them.command("/people")
        assert it.app.stores.people.list_people() == []
        await them.command(f"/people allow kept {ANN}")
        assert "waiting" not in (await them.command("/people")).lower()


async def test_what_is_no_code_costs_no_try(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.write("may I come in", ANN)
        for text in ("/pair", "/pair ABC", "/pair 0OIL1111", '/pair "ABC'):
            with pytest.raises(UsageError):
                await them.command(text)
        assert it.app.stores.pairings.pending_pairings(it.clock.now)[0].tries == 0


# ---------------------------------------------------------------------------------------------------------- the owner
