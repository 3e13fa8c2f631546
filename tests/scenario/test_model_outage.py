"""A model that cannot be reached: told once wherever the person is, red meanwhile, told again when it is back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assistant.core.model_api import Message, ModelRequest, SystemBlock
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.strict.asking import call_model
from tests.strict.behaviour import Behaviour, ConnectionCut, ErrorStatus, ScriptedAnswer
from tests.strict.server import StrictServer
from tests.support.command_line import run_assistant, run_in_process
from tests.support.compaction_app import LONG_MESSAGE, SMALL_CONTEXT
from tests.support.scripted import RecordingBridge, SteppingClock, owner_message

OUT = "claude-sonnet-5-5 does not answer: "
BACK = "The model answers again. claude-sonnet-5-5 had not answered since "


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


class OutageApp:
    """One home over Telegram-like bridges `kept` and `other`; apps come and go."""

    def __init__(self, app: App, kept: RecordingBridge, other: RecordingBridge) -> None:
        self.app, self.kept, self.other = app, kept, other
        self._said = 0

    async def say(self, text: str, session: str = "main", bridge: str = "kept") -> dict[str, object]:
        scope = "owner" if session == "main" else session
        external_id = f"{id(self)}:{self._said}"
        message = owner_message(text, external_id=external_id, session=session, scope=scope, bridge=bridge)
        self._said += 1
        accepted = await self.app.runtime.accept(message)
        await self.app.runtime.wait_until_idle()
        await self.app.dispatcher.flush()
        item = self.app.stores.conversation.inbox_item(accepted.inbox_id)
        assert item is not None
        return self.app.runtime.result(item)


@asynccontextmanager
async def open_app(home: Path, server: StrictServer, **more: str) -> AsyncIterator[OutageApp]:
    environ = {
        "ASSISTANT_HOME": str(home),
        "ASSISTANT_HOME__TIMEZONE": "UTC",
        "ASSISTANT_MODEL__PROVIDER": "anthropic",
        "ASSISTANT_MODEL__RETRIES": "0",
        "ANTHROPIC_API_KEY": server.key,
        "ANTHROPIC_BASE_URL": server.url,
        **more,
    }
    kept, other = RecordingBridge(), RecordingBridge("other")
    app = build_app(load_settings(None, environ), SteppingClock(), bridges={"kept": kept, "other": other})
    try:
        await app.start()
        yield OutageApp(app, kept, other)
        assert app.stores.verifier.verify().ok
    finally:
        await app.stop(5)
        await app.models.aclose()
        app.close()


def told(bridge: RecordingBridge, words: str) -> list[str]:
    return [body for body in bridge.bodies if words in body]


DOWN = ErrorStatus(529, "overloaded_error", "too much")


async def test_an_outage_is_told_once_and_its_end_too_across_a_restart(tmp_path: Path, server: StrictServer) -> None:
    server.play(DOWN, DOWN, DOWN, ScriptedAnswer("Here again."), ScriptedAnswer("Still here."))
    async with open_app(tmp_path, server) as it:
        assert it.app.status()["ok"]
        first = await it.say("remember that the key is under the pot")
        await it.say("remember that the door is blue")
        (outage,) = told(it.kept, OUT)
        assert "Offline mode (no language model) answers meanwhile" in outage and "wait a little" in outage
        # The notice comes before the answer.
        assert it.kept.bodies.index(outage) == 0
        assert first["fallback"] and OUT[:-2].split()[0] in str(first["fallback_reason"])
        assert first["notices"] == [outage]
    async with open_app(tmp_path, server) as it:
        report = it.app.status()
        (problem,) = (text for text in report["problems"] if "has not answered since" in text)
        assert not report["ok"] and "Sunday 2026-03-01 09:00" in problem and "overloaded" in problem
        await it.say("remember that the roof is red")
        assert told(it.kept, OUT) == []
        back = await it.say("hello")
        assert not back["fallback"]
        assert it.kept.bodies[-2].startswith(BACK) and it.kept.bodies[-1] == "Here again."
        assert it.app.status()["ok"]
        await it.say("hello")
        assert len(told(it.kept, "answers again")) == 1


TWO = {"ASSISTANT_MODEL__FALLBACK": '["openai:glm", "offline"]'}


def second_model(server: StrictServer) -> dict[str, str]:
    return {**TWO, "OPENAI_API_KEY": server.key, "OPENAI_BASE_URL": f"{server.url}/v1"}


async def test_of_two_models_that_are_out_the_notice_the_status_and_the_answer_name_both(
    tmp_path: Path, server: StrictServer
) -> None:
    server.play(DOWN, ErrorStatus(401, "invalid_api_key", "no such key"))
    async with open_app(tmp_path, server, **second_model(server)) as it:
        answer = await it.say("remember that the key is under the pot")
        (notice,) = told(it.kept, OUT)
        assert "glm does not either: " in notice and "refuses the key" in notice
        assert notice.count("answers meanwhile") == 1
        assert notice.endswith("What to do: wait a little; check the key and the account, then type `/retry`.")
        assert "claude-sonnet-5-5 did not: " in str(answer["fallback_reason"])
        assert "glm did not either: " in str(answer["fallback_reason"])
        out = [text for text in it.app.status()["problems"] if "has not answered since" in text]
        assert [text.split()[0] for text in out] == ["claude-sonnet-5-5", "glm"]


async def test_a_second_model_that_goes_out_later_is_told_then(tmp_path: Path, server: StrictServer) -> None:
    server.play(DOWN, ScriptedAnswer("From glm."), DOWN, DOWN, DOWN, DOWN)
    async with open_app(tmp_path, server, **second_model(server)) as it:
        await it.say("hello")
        assert "glm answers meanwhile" in told(it.kept, OUT)[0]
        await it.say("remember that the key is under the pot")
        await it.say("remember that the door is blue")
        first, second = told(it.kept, OUT)
        assert "glm does not either" not in first and "glm does not either" in second


async def test_each_place_is_told_once_and_all_of_them_when_it_is_back(tmp_path: Path, server: StrictServer) -> None:
    server.play(DOWN, DOWN, DOWN, ScriptedAnswer("Here again."))
    async with open_app(tmp_path, server) as it:
        await it.say("remember that the key is under the pot")
        await it.say("remember that the door is blue", bridge="other")
        await it.say("remember that the roof is red", bridge="other")
        assert len(told(it.kept, OUT)) == len(told(it.other, OUT)) == 1
        await it.say("hello")
        assert len(told(it.kept, BACK)) == len(told(it.other, BACK)) == 1


async def test_a_guest_is_told_of_it_without_names_and_never_of_what_the_owner_is_told(
    tmp_path: Path, server: StrictServer
) -> None:
    server.play(DOWN, DOWN, ScriptedAnswer("Here again."))
    async with open_app(tmp_path, server) as it:
        await it.say("hello", session="peer:kept:7")
        guest = [item.outgoing.body for item in it.kept.sent if item.outgoing.session == "peer:kept:7"]
        assert guest[0].startswith("My language model does not answer just now.") and "claude" not in guest[0]
        await it.say("hello")
        await it.say("hello")
        told_guest = [item.outgoing.body for item in it.kept.sent if item.outgoing.session == "peer:kept:7"]
        assert told_guest[2:] == ["My language model answers again."]


async def test_without_any_answer_the_failure_is_the_answer_and_its_end_is_told(
    tmp_path: Path, server: StrictServer
) -> None:
    server.play(DOWN, ScriptedAnswer("Here again."))
    async with open_app(tmp_path, server, ASSISTANT_MODEL__FALLBACK="[]") as it:
        failed = await it.say("hello")
        assert (failed["state"], failed["exit_code"], len(it.kept.bodies)) == ("failed", 3, 1)
        await it.say("hello")
        assert it.kept.bodies[1].startswith(BACK)


CAUSES = [
    (ErrorStatus(401, "authentication_error", "invalid x-api-key"), "refuses the key", "check the key"),
    (ErrorStatus(404, "not_found_error", "model: claude-9"), "does not know the model", "check model.name"),
    (ErrorStatus(400, "invalid_request_error", "Your credit balance is too low"), "no credit left", "add credit"),
    (ConnectionCut(), "Anthropic broke off", "check the connection"),
]


@pytest.mark.parametrize(("fault", "what", "advice"), CAUSES, ids=["key", "model", "credit", "network"])
async def test_each_cause_says_what_happened_and_what_to_do(
    tmp_path: Path, server: StrictServer, fault: Behaviour, what: str, advice: str
) -> None:
    server.play(fault)
    async with open_app(tmp_path, server) as it:
        await it.say("remember that the key is under the pot")
        (notice,) = told(it.kept, OUT)
        (problem,) = (text for text in it.app.status()["problems"] if "has not answered since" in text)
        for text in (notice, problem):
            assert what in text and advice in text


async def test_a_sleep_that_cannot_reach_its_model_tells_the_owner_where_they_wrote_last(
    tmp_path: Path, server: StrictServer
) -> None:
    server.play(ScriptedAnswer("Nice."))
    async with open_app(tmp_path, server) as it:
        await it.say("I moved to Bergen in May.")
        await it.say("hello", session="peer:kept:7")
        await it.say("It rains a lot there.", bridge="other")
        server.play(DOWN)
        await it.app.commands.run("/sleep", "main")
        await it.app.dispatcher.flush()
        assert len(told(it.other, "Sleep and summaries are made by rules")) == 1
        assert told(it.kept, "Sleep and summaries") == []
        assert not it.app.status()["ok"]


async def test_a_nap_in_an_outage_sends_one_message_however_much_it_does_without_a_model(
    tmp_path: Path, server: StrictServer
) -> None:
    """Reading and the summary fail for one reason, and the second model is of the provider that is known to be out."""
    server.play(ScriptedAnswer("A fine walk."))
    async with open_app(tmp_path, server, **SMALL_CONTEXT) as it:
        for number in range(30):
            await it.say(f"walk {number}: {LONG_MESSAGE}")
        server.play(*[DOWN] * 20)
        before = len(it.kept.sent)
        report = await it.app.sleep.scheduler.run_now("nap")
        await it.app.dispatcher.flush()
        assert report is not None and report.phases["compact"]["compacted"]
        (only,) = it.kept.bodies[before:]
        assert "Sleep and summaries are made by rules" in only

        # What the chat's own model told is enough for the next sleep.
        await it.say("remember that the key is under the pot", bridge="other")
        assert len(told(it.other, OUT)) == 1
        await it.app.sleep.scheduler.run_now("nap")
        await it.app.dispatcher.flush()
        assert told(it.other, "Sleep and summaries") == []


async def test_where_no_message_waits_nothing_says_that_one_is_kept_or_to_say_retry(
    tmp_path: Path, server: StrictServer
) -> None:
    server.play(ScriptedAnswer("Nice."))
    async with open_app(tmp_path, server) as it:
        await it.say("I moved to Bergen in May.")
        server.play(DOWN)
        report = await it.app.commands.run("/sleep", "main")
        await it.app.dispatcher.flush()
        (notice,) = told(it.kept, "Sleep and summaries are made by rules")
        for text in (notice, str(report), *it.app.status()["problems"]):
            assert "overloaded" not in text or ("/retry" not in text and "is kept" not in text)
        assert notice.endswith("What to do: wait a little.")


async def test_a_model_that_nobody_asks_any_more_is_no_outage(tmp_path: Path, server: StrictServer) -> None:
    server.play(DOWN)
    async with open_app(tmp_path, server) as it:
        await it.say("remember that the key is under the pot")
        assert not it.app.status()["ok"]
    async with open_app(tmp_path, server, ASSISTANT_MODEL__PROVIDER="offline") as it:
        assert it.app.status()["ok"]


async def test_a_fallback_that_is_not_needed_any_more_is_no_outage(tmp_path: Path, server: StrictServer) -> None:
    """Nobody asks it while the first model answers, so that nobody would note that it answers again."""
    second = {"OPENAI_API_KEY": server.key, "OPENAI_BASE_URL": f"{server.url}/v1"}
    server.play(DOWN, DOWN, ScriptedAnswer("Here again."))
    async with open_app(tmp_path, server, ASSISTANT_MODEL__FALLBACK='["openai:glm", "offline"]', **second) as it:
        await it.say("remember that the key is under the pot")
        assert sum("has not answered since" in text for text in it.app.status()["problems"]) == 2
        await it.say("hello")
        assert it.app.status()["ok"] and len(told(it.kept, "answers again")) == 1


async def test_what_is_said_beside_a_conversation_ends_an_outage_too(tmp_path: Path, server: StrictServer) -> None:
    server.play(DOWN, ScriptedAnswer("Hi."))
    async with open_app(tmp_path, server) as it:
        await it.say("remember that the key is under the pot")
        await call_model(it.app.models.answering, ModelRequest((SystemBlock("Greet."),), (Message("user", "Hello?"),)))
        await it.app.runtime.wait_until_idle()
        await it.app.dispatcher.flush()
        assert len(told(it.kept, BACK)) == 1


# --------------------------------------------------------------------------------------------------- the command line


def _unreachable(server: StrictServer, **more: str) -> dict[str, str]:
    return {
        "ASSISTANT_MODEL__PROVIDER": "anthropic",
        "ASSISTANT_MODEL__RETRIES": "0",
        "ANTHROPIC_API_KEY": server.key,
        "ANTHROPIC_BASE_URL": server.url,
        **more,
    }


def test_one_question_says_on_standard_error_who_answered_and_why(tmp_path: Path, server: StrictServer) -> None:
    home, settings = tmp_path / "home", _unreachable(server)
    server.play(DOWN, DOWN, ScriptedAnswer("Here again."))
    first = run_assistant(home, "chat", "-m", "remember that the key is under the pot", **settings)
    assert first.returncode == 0 and OUT in first.err and "Noted" in first.out and OUT not in first.out
    assert len(first.err.splitlines()) == 1
    again = run_assistant(home, "chat", "-m", "remember that the door is blue", "--json", **settings)
    answer = json.loads(again.out)
    assert (again.returncode, answer["model"], answer["fallback"], answer["notices"]) == (0, "offline", True, [])
    assert "Offline mode (no language model) answered, because claude-sonnet-5-5 did not" in again.err
    assert answer["fallback_reason"] == again.err.strip()
    red = run_in_process(home, "status", **settings)
    assert red.returncode == 1 and "claude-sonnet-5-5 has not answered since" in red.out
    back = run_assistant(home, "chat", "-m", "hello", "--json", **settings)
    answer = json.loads(back.out)
    assert (answer["reply"], answer["model"], answer["fallback"]) == ("Here again.", "claude-sonnet-5-5", False)
    assert len(answer["notices"]) == 1 and answer["notices"][0].startswith(BACK) and BACK in back.err


def test_lines_of_a_pipe_are_told_once(tmp_path: Path, server: StrictServer) -> None:
    server.play(DOWN, DOWN, DOWN, DOWN)
    lines = b"remember that the key is under the pot\nremember that the door is blue\n"
    done = run_assistant(tmp_path / "home", "chat", said=lines, **_unreachable(server))
    assert done.returncode == 0 and done.err.count(OUT) == 1 and len(done.err.splitlines()) == 1
    # In an outage that is known the first line of a pipe is told who answers, and no other.
    again = run_assistant(tmp_path / "home", "chat", said=lines, **_unreachable(server))
    assert again.err.count("Offline mode (no language model) answered, because") == len(again.err.splitlines()) == 1


@pytest.mark.parametrize("as_json", [False, True], ids=["plain", "json"])
def test_retry_in_a_shell_prints_the_answer_and_its_exit_code(
    tmp_path: Path, server: StrictServer, as_json: bool
) -> None:
    home, settings = tmp_path / "home", {**_unreachable(server), "ASSISTANT_MODEL__FALLBACK": "[]"}
    server.play(DOWN, DOWN, ScriptedAnswer("It is brass."))
    asked = run_assistant(home, "chat", "-m", "what is the bell?", **settings)
    assert (asked.returncode, asked.out) == (3, "")
    options = ("--json",) if as_json else ()
    still_out = run_assistant(home, "chat", "-m", "/retry", *options, **settings)
    assert still_out.returncode == 3 and "Asking again: 'what is the bell?'" in still_out.err
    assert "Error: Anthropic is overloaded" in still_out.err
    back = run_assistant(home, "chat", *options, said=b"/retry\n", **settings)
    reply = json.loads(back.out)["reply"] if as_json else back.out.strip()
    assert (back.returncode, reply) == (0, "It is brass.")
    assert BACK in back.err
    assert json.loads(run_in_process(home, "status", "--json", **settings).out)["outbox"] == {"sent": 4}
