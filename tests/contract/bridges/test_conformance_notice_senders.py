"""What the program itself sends of the notices of a bridge, over every bridge: each in its own words, to those whom the
table names, where it says."""

from __future__ import annotations

import re
from pathlib import Path

from assistant.core.bridge_api import NETWORK_NAMES
from assistant.core.model_api import ModelRequest
from assistant.core.notices import NoticeKind
from tests.contract.bridges.conftest import NETWORKS
from tests.support.networks.conformance_app import ConformanceApp, echo, last_user_text, run_conformance_app
from tests.support.networks.network import Network, PersonKind


def sent(it: ConformanceApp, kind: NoticeKind, who: PersonKind = "owner") -> list[re.Match[str]]:
    """Each time that they read the words of the kind, whatever is filled in, in as many parts as it came."""
    words = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(kind.form.template.replace("`", "")))
    read = " ".join(" ".join(it.texts(who)).replace("`", "").split())
    return list(re.finditer(rf"{words}(?= |\Z)", read))


async def expect_sent(it: ConformanceApp, kind: NoticeKind, who: PersonKind = "owner") -> re.Match[str]:
    await it.wait_until(lambda: bool(sent(it, kind, who)))
    await it.wait_idle()
    (match,) = sent(it, kind, who)
    return match


def test_every_network_of_the_program_is_in_the_suite() -> None:
    assert set(NETWORKS) == {*NETWORK_NAMES, "terminal", "web", "able", "plain"}


async def test_a_stranger_their_owner_and_who_is_approved_are_told_each_their_part(
    network: Network, home: Path
) -> None:
    async with run_conformance_app(network, home, ASSISTANT_PEOPLE__UNKNOWN="pair") as it:
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        if not network.abilities.strangers:
            return
        await network.say("stranger", "hello")
        code = (await expect_sent(it, NoticeKind.PAIRING_CODE, "stranger"))["code"]
        assert (await expect_sent(it, NoticeKind.ACCESS_REQUEST))["allow"] == "/pair allow 1"
        assert sent(it, NoticeKind.ACCESS_REQUEST, "stranger") == []
        await network.say("owner", f"/pair {code}")
        await expect_sent(it, NoticeKind.APPROVED, "stranger")
        assert sent(it, NoticeKind.APPROVED) == []


async def test_a_stranger_is_told_that_nothing_of_theirs_is_kept(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home, ASSISTANT_PEOPLE__UNKNOWN="tell") as it:
        if not network.abilities.strangers:
            return
        for text in ("hello", "hello again"):
            await network.say("stranger", text)
            await expect_sent(it, NoticeKind.NOT_LET_IN, "stranger")


async def test_a_test_message_arrives_at_the_owner(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        if network.name in NETWORK_NAMES:
            await it.app.commands.run(f"/bridge test {network.name}", "main")
            await expect_sent(it, NoticeKind.BRIDGE_TEST)


def fail_once_asked(request: ModelRequest) -> str:
    if "pears" in last_user_text(request):
        raise RuntimeError("a fault")
    return echo(request)


async def test_what_a_turn_says_that_failed_arrives_where_it_was_asked(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home, fail_once_asked) as it:
        await network.say("owner", "pears")
        await it.wait_until(lambda: bool(it.texts()))
        await it.wait_idle()
        (item,) = [item.outgoing for item in it.outbox() if item.outgoing.kind == "notice"]
        assert item.inbox_id is not None and "kept" in item.body
        assert [text.replace("`", "") for text in it.texts()] == [item.body.replace("`", "")]
