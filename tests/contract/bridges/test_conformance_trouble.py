"""Every bridge in trouble: killed at each step, the network gone or refusing, the disk full, a neighbour broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.errors import BridgeError
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.network import Network
from tests.support.networks.plain import PlainNetwork
from tests.support.networks.probed_bridge import CrashMoment

_WORDS = ["apples", "pears", "plums"]
# The calls of the door at which a bridge dies, and on which side of each.
_DEATHS: list[tuple[int, CrashMoment]] = [(1, "before"), (1, "after"), (2, "before"), (2, "after")]


async def known(it: ConformanceApp) -> None:
    """The owner was answered once, so that there is somewhere to write to."""
    await it.network.say("owner", "hello")
    await it.wait_for_answer("You said: hello")


def within_window(it: ConformanceApp) -> float:
    """Longer than it waits between two tries, and well within the time for which the network knows a key."""
    return min(600, it.capabilities.dedupe_seconds / 4 or 600)


async def all_answered(it: ConformanceApp, words: list[str]) -> None:
    """Each was kept once, and whatever a model was asked is shown once."""
    await it.wait_until(lambda: all(it.visible_with(word) for word in words))
    await it.wait_idle()
    assert sorted(it.logged_user_texts()) == sorted(words)
    assert sorted(it.texts()) == sorted(f"You said: {said}" for said in it.model_user_texts())


# ----------------------------------------------------------------------------------------------------------- coming in


async def test_f35_what_was_acknowledged_is_never_lost(network: Network, home: Path) -> None:
    """The bridge dies at each call of the door, before and after it took effect; its place is never ahead (I1). Where
    people come in by calls of their own, they call again."""
    async with run_conformance_app(network, home) as it:
        words: list[str] = []
        for step, when in _DEATHS:
            it.watch.crash_at_call, it.watch.when = step, when
            new = [f"apples {len(words)}", f"pears {len(words)}"]
            said = [await network.say("owner", word) for word in new]
            if network.abilities.redelivers:
                await it.wait_until(lambda: it.watch.crashed)
                assert it.accepted_count() - len(words) == step - (when == "before")
                await it.renew_bridge()
            else:
                await it.restart()
                for message in said:
                    await network.redeliver(message)
            words += new
            await all_answered(it, words)


async def test_what_a_full_disk_refused_is_asked_for_again(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.redelivers:
            return
        it.watch.crash_at_call, it.watch.disk_full = 2, True
        for word in _WORDS:
            await network.say("owner", word)
        await it.wait_until(lambda: not it.bridge_status()["ok"])
        assert "The disk is full." in it.bridge_status()["error"]
        it.app.dispatcher.retry_now(network.name)
        await all_answered(it, _WORDS)
        assert it.bridge_status()["ok"]


async def test_a_network_that_comes_back_brings_what_was_said_meanwhile(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.outages:
            return
        await known(it)
        await network.go_offline()
        await it.wait_until(lambda: not it.bridge_status()["ok"])
        assert it.bridge_status()["state"] == "failing"
        await network.say("owner", "apples")
        await network.go_online()
        it.app.dispatcher.retry_now(network.name)
        await it.wait_for_answer("You said: apples")
        assert it.bridge_status()["ok"] and it.model_user_texts() == ["hello", "apples"]


async def test_who_we_are_there_is_told_or_that_nobody_answers(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        bridge = it.app.dispatcher.bridges[network.name]
        assert await bridge.check()
        if network.abilities.outages:
            await network.go_offline()
            with pytest.raises(BridgeError):
                await bridge.check()


# ----------------------------------------------------------------------------------------------------------- going out


async def test_f36_a_reply_that_may_have_arrived_is_never_shown_twice(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await known(it)
        network.cut_connections("after", 2)
        key = it.push_notice("marmalade")
        await it.wait_for_answer("marmalade")
        await it.advance_clock(within_window(it))
        await it.advance_clock(within_window(it))
        await it.restart()
        await it.advance_clock(within_window(it))
        assert it.texts().count("marmalade") == 1
        assert it.item(key).state == ("sent" if it.capabilities.dedupe_seconds else "ambiguous")


async def test_a_reply_that_did_not_arrive_arrives_or_is_told_as_uncertain(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await known(it)
        network.cut_connections("before")
        sends = network.send_attempts
        key = it.push_notice("marmalade")
        await it.wait_until(lambda: network.send_attempts > sends)
        await it.wait_idle()
        await it.advance_clock(within_window(it))
        state = it.item(key).state
        assert state == "sent" or (state == "ambiguous" and not it.capabilities.dedupe_seconds)
        assert it.texts().count("marmalade") == (state == "sent")


async def test_f36_after_the_window_nothing_is_repeated(network: Network, home: Path) -> None:
    """A network shows a key once for so long; who does not know by then whether it arrived says so. A terminal that
    comes again says whether it has it."""
    async with run_conformance_app(network, home) as it:
        await known(it)
        network.cut_connections("after")
        key = it.push_notice("marmalade")
        await it.wait_for_answer("marmalade")
        sends = network.send_attempts
        await it.advance_clock(it.capabilities.dedupe_seconds + 1)
        await it.restart()
        await it.advance_clock(600)
        assert it.texts().count("marmalade") == 1
        # The one more is what the owner is told of it; without a window they were told at once.
        told = sends + int(it.capabilities.dedupe_seconds > 0)
        assert it.capabilities.shows_sessions or (it.item(key).state, network.send_attempts) == ("ambiguous", told)


async def test_a_network_that_asks_for_patience_gets_it(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.refuses:
            return
        await known(it)
        sends = network.send_attempts
        network.refuse_sends(1, retry_after=40)
        key = it.push_notice("marmalade")
        await it.wait_until(lambda: network.send_attempts > sends)
        await it.wait_idle()
        await it.advance_clock(30)
        assert (network.send_attempts, it.visible_with("marmalade")) == (sends + 1, [])
        await it.advance_clock(11)
        assert it.item(key).state == "sent"
        assert it.texts().count("marmalade") == 1


async def test_what_was_to_go_out_waits_for_the_network(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.outages:
            return
        await known(it)
        await network.go_offline()
        key = it.push_notice("marmalade")
        await it.wait_idle()
        assert it.item(key).state == "pending"
        await network.go_online()
        it.app.dispatcher.retry_now(network.name)
        await it.wait_for_answer("marmalade")
        assert it.item(key).state == "sent"


async def test_after_an_outage_what_waits_for_a_place_arrives_in_its_order(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.outages:
            return
        await known(it)
        await network.go_offline()
        for word in _WORDS:
            it.push_notice(word)
            await it.advance_clock(1)
        await network.go_online()
        it.app.dispatcher.retry_now(network.name)
        await it.wait_for_answer(_WORDS[-1])
        assert it.texts()[-len(_WORDS) :] == _WORDS


async def test_what_is_refused_for_good_holds_up_nothing_and_the_owner_is_told(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.refuses:
            return
        await known(it)
        network.refuse_sends(1, None)
        refused, taken = it.push_notice("marmalade"), it.push_notice("jam")
        await it.wait_for_answer("jam")
        for _ in range(2):
            await it.advance_clock(600)
        assert (it.item(refused).state, it.item(taken).state, it.visible_with("marmalade")) == ("failed", "sent", [])
        (told,) = it.app.stores.outbox.pending_items("terminal")
        assert f"/deliveries again {it.item(refused).id}" in told.outgoing.body
        assert it.bridge_status()["ok"]


# ---------------------------------------------------------------------------------------------------------- neighbours


async def test_f39_one_bridge_in_trouble_touches_no_other(network: Network, home: Path) -> None:
    """The neighbour does not answer at all; then this one does not, and the neighbour goes on."""
    neighbour = PlainNetwork(able=True)
    neighbour.name = "neighbour"
    await neighbour.go_offline()
    async with run_conformance_app(network, home, others=(neighbour,)) as it:
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        assert it.bridge_status()["ok"]
        assert not it.bridge_status(neighbour)["ok"]
        await neighbour.go_online()
        it.app.dispatcher.retry_now(neighbour.name)
        if network.abilities.outages:
            await network.go_offline()
            await it.wait_until(lambda: not it.bridge_status()["ok"])
        await neighbour.say("owner", "pears")
        await it.wait_until(lambda: len(neighbour.visible_messages("owner")) == 1)
        assert it.bridge_status(neighbour)["ok"]


async def test_a_bridge_that_is_paused_neither_receives_nor_sends_until_it_goes_on(
    network: Network, home: Path
) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.outages:
            return
        await known(it)
        await it.app.dispatcher.pause(network.name)
        await network.say("owner", "apples")
        key = it.push_notice("marmalade")
        await it.restart()
        await it.wait_idle()
        assert it.bridge_status()["state"] == "paused"
        assert (it.item(key).state, it.model_user_texts()) == ("pending", ["hello"])
        await it.app.dispatcher.resume(network.name)
        await it.wait_for_answer("marmalade")
        await it.wait_for_answer("You said: apples")
