"""Every notice that is declared arrives over every bridge, once, whatever is restarted; and a guest reads what concerns
their own conversation alone."""

from __future__ import annotations

import string
from pathlib import Path

from assistant.core.notices import Notice, NoticeKind
from assistant.core.records import Turn
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.network import Network, PersonKind


def samples() -> list[Notice]:
    """Each that is stored, with a word of its own."""
    notices = []
    for kind in NoticeKind:
        if kind.form.place != "live":
            fields = [name for _, name, _, _ in string.Formatter().parse(kind.form.template) if name]
            filled = kind.fill("sample", **dict.fromkeys(fields, "something"))
            notices.append(Notice(kind, f"{filled.text} {_word(kind)}", filled.once))
    return notices


def _word(kind: NoticeKind) -> str:
    return f"kind{kind.name.lower().replace('_', '')}end"


def last_turn(it: ConformanceApp, who: PersonKind) -> Turn:
    """The turn that answered what they said last, as the store has it."""
    inbox_id = max(item.outgoing.inbox_id or 0 for item in it.outbox(who))
    item = it.app.stores.conversation.inbox_item(inbox_id)
    assert item is not None and item.turn is not None
    incoming = item.incoming
    return Turn(item.turn, incoming.session, 1, incoming.scope, "", "answered", it.clock(), (item,))


def read(it: ConformanceApp, who: PersonKind) -> str:
    """What was sent: of what is too long, the file and not its start again."""
    seen = [one for one in it.network.visible_messages(who) if " characters are in answer.md." not in one.text]
    return "\n".join(one.file.decode() if one.file and one.file_name == "answer.md" else one.text for one in seen)


def kinds_seen(it: ConformanceApp, who: PersonKind) -> list[str]:
    text = read(it, who)
    return sorted(kind.name for kind in NoticeKind for _ in range(text.count(_word(kind))))


async def test_every_notice_of_a_turn_arrives_once_where_its_message_came_from(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        for _ in range(2):
            for notice in samples():
                it.app.base.notices.send_to_turn(last_turn(it, "owner"), notice)
            last = samples()[-1]
            await it.wait_for_answer(_word(last.kind))
        await it.restart()
        for notice in samples():
            it.app.base.notices.send_to_turn(last_turn(it, "owner"), notice)
        await network.say("owner", "pears")
        await it.wait_for_answer("You said: pears")
        assert kinds_seen(it, "owner") == sorted(notice.kind.name for notice in samples())


async def test_what_comes_of_a_night_is_one_message_where_the_owner_wrote_last(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        before = len(it.outbox())
        it.app.base.notices.send_to_session("main", *samples())
        await it.wait_until(lambda: _word(samples()[-1].kind) in read(it, "owner"))
        await it.wait_idle()
        assert kinds_seen(it, "owner") == sorted(notice.kind.name for notice in samples())
        assert len(it.outbox()) == before + 1


async def test_a_guest_gets_what_concerns_their_own_conversation_alone(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.strangers:
            return
        await network.say("guest", "pears")
        await it.wait_for_answer("You said: pears", "guest")
        it.app.base.notices.send_to_turn(last_turn(it, "guest"), *samples())
        it.app.base.notices.send_to_session("main", *samples())
        await it.wait_for_answer(_word(NoticeKind.MESSAGE_SHORTENED), "guest")
        theirs = sorted(
            kind.name for kind in NoticeKind if kind.form.to == "conversation" and kind.form.place != "live"
        )
        assert kinds_seen(it, "guest") == theirs


async def test_what_looks_like_a_secret_is_named_once_a_conversation_and_not_repeated(
    network: Network, home: Path
) -> None:
    async with run_conformance_app(network, home) as it:
        for words in ("My wifi password is Hunter2-blue", "My PIN is 4711", "pears"):
            await network.say("owner", words)
            await it.wait_for_answer(f"You said: {words}")
        await it.restart()
        await network.say("owner", "The door code is 4712")
        await it.wait_for_answer("You said: The door code is 4712")
        [notice] = [item.outgoing.body for item in it.outbox("owner") if item.outgoing.kind == "notice"]
        assert notice.startswith("That looks like a password.") and "Hunter2" not in notice
        assert len([text for text in it.texts("owner") if "looks like a password" in text]) == 1
        if network.abilities.strangers:
            await network.say("guest", "My PIN is 4711")
            await it.wait_for_answer("You said: My PIN is 4711", "guest")
            assert [text for text in it.texts("guest") if "My owner can remove it" in text]


async def test_what_only_terminals_show_is_stored_nowhere(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        before = len(it.outbox())
        it.app.dispatcher.show_progress("main", "marmalade")
        await it.wait_idle()
        assert len(it.outbox()) == before and it.visible_with("marmalade") == []
