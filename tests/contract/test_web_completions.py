"""The OpenAI-compatible part of the web API, as the official SDK and somebody else's command line use it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import openai
import pytest

from assistant.core.errors import ModelError
from assistant.core.messages import Message, ToolCall, Usage
from assistant.core.model_api import ModelReply
from tests.support.running_app import files_with_words
from tests.support.scripted import ScriptStep
from tests.support.web_api import TOKEN, LiveApi, run_web_api

User = dict[str, Any]


def user(text: str) -> User:
    return {"role": "user", "content": text}


def assistant(text: str) -> User:
    return {"role": "assistant", "content": text}


@asynccontextmanager
async def client_of(
    home: Path, *script: ScriptStep, **environ: str
) -> AsyncIterator[tuple[LiveApi, openai.AsyncOpenAI]]:
    async with run_web_api(home, *script, **environ) as it:
        address = f"http://127.0.0.1:{it.port}/v1"
        client = openai.AsyncOpenAI(base_url=address, api_key=TOKEN, max_retries=0)
        async with client:
            yield it, client


async def ask(client: openai.AsyncOpenAI, *messages: User, **more: Any) -> str:
    made = await client.chat.completions.create(model="nocturne", messages=list(messages), **more)  # type: ignore[arg-type]
    return made.choices[0].message.content or ""


def sessions(it: LiveApi) -> list[str]:
    return [info.key for info in it.app.stores.conversation.list_sessions() if info.key != "main"]


def said(it: LiveApi, session: str) -> list[str]:
    return [one.content for one in it.app.stores.history.recent("owner", session=session) if one.kind == "message"]


async def test_a_conversation_of_a_client_is_one_thread_and_its_history_is_not_said_again(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Hello Ada.", "The boat is Heron.", "Blue.") as (it, client):
        talk = [user("I am Ada.")]
        for question in ("What is the boat called?", "And its colour?"):
            talk += [assistant(await ask(client, *talk)), user(question)]
        assert await ask(client, {"role": "system", "content": "Be terse."}, *talk) == "Blue."
        [thread] = sessions(it)
        assert thread == "thread:api-20260301-090000"
        assert said(it, thread) == [
            *("I am Ada.", "Hello Ada.", "What is the boat called?", "The boat is Heron.", "And its colour?", "Blue.")
        ]
        assert await it.tcp.get("/v1/messages") == {"messages": []}


async def test_two_conversations_that_begin_alike_are_two_threads(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Hi.", "Hi there.", "Good.", "Bad.") as (it, client):
        assert [await ask(client, user("hi")), await ask(client, user("hi"))] == ["Hi.", "Hi there."]
        assert await ask(client, user("hi"), assistant("Hi."), user("how are you")) == "Good."
        assert len(sessions(it)) == 2


async def test_words_are_streamed_and_the_usage_is_told(tmp_path: Path) -> None:
    async with client_of(tmp_path, "The blue boat is called Heron.") as (it, client):
        it.model.by_word = True
        stream = await client.chat.completions.create(
            model="nocturne",
            messages=[user("boat?")],
            stream=True,
            stream_options={"include_usage": True},  # type: ignore[list-item]
        )
        chunks = [chunk async for chunk in stream]
        texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        assert "".join(texts) == "The blue boat is called Heron."
        assert len([text for text in texts if text]) > 1
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        usage = chunks[-1].usage
        assert usage is not None and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0


async def test_what_is_said_before_a_tool_runs_is_a_paragraph_of_its_own(tmp_path: Path) -> None:
    call = ToolCall("c1", "search_history", {"query": "boat"})
    looks = ModelReply(Message("assistant", "Let me look.", tool_calls=(call,)), Usage(), "tool_calls")
    async with client_of(tmp_path, looks, "Heron.") as (_, client):
        assert await ask(client, user("boat?")) == "Let me look.\n\nHeron."


async def test_an_answer_that_did_not_reach_the_client_is_given_when_it_asks_again_and_asked_for_once(
    tmp_path: Path,
) -> None:
    async with client_of(tmp_path, "Heron.") as (it, client):
        it.model.gate = asyncio.Event()
        stream = await client.chat.completions.create(model="nocturne", messages=[user("boat?")], stream=True)  # type: ignore[list-item]
        await stream.close()
        it.model.gate.set()
        await it.wait_idle()
        assert await ask(client, user("boat?")) == "Heron."
        again = {"x-stainless-retry-count": "1"}
        assert await ask(client, user("boat?"), extra_headers=again) == "Heron."
        [thread] = sessions(it)
        assert said(it, thread) == ["boat?", "Heron."]


async def test_another_answer_and_another_question_go_on_in_branches(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Hi.", "Heron.", "It is Heron.", "Blue.") as (it, client):
        begun = [user("I have a boat."), assistant(await ask(client, user("I have a boat.")))]
        assert await ask(client, *begun, user("its name?")) == "Heron."
        assert await ask(client, *begun, user("its name?")) == "It is Heron."
        assert await ask(client, *begun, user("its colour?")) == "Blue."
        *branches, thread = sorted(sessions(it))
        assert said(it, thread) == ["I have a boat.", "Hi.", "its name?", "Heron."]
        assert branches == ["branch:1", "branch:2"]
        assert [said(it, branch) for branch in branches] == [["its name?", "It is Heron."], ["its colour?", "Blue."]]


async def test_a_thread_is_found_again_after_a_restart_and_by_the_end_of_a_history(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Hi.", "Heron.") as (_, client):
        begun = [user("I have a boat."), assistant(await ask(client, user("I have a boat.")))]
        begun += [user("its name?"), assistant(await ask(client, *begun, user("its name?")))]
    async with client_of(tmp_path, "Blue.") as (it, client):
        assert await ask(client, *begun[2:], user("its colour?")) == "Blue."
        [thread] = sessions(it)
        assert said(it, thread)[-2:] == ["its colour?", "Blue."]


async def test_a_forgotten_message_is_found_in_no_thread(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Noted.", "I do not know.") as (it, client):
        begun = [user("The pin is wagtail-4711."), assistant(await ask(client, user("The pin is wagtail-4711.")))]
        await it.app.commands.run_argv(["forget", "wagtail-4711", "--yes"], "main")
        assert files_with_words(tmp_path, "wagtail-4711") == []
        await ask(client, *begun, user("what was it?"))
        assert len(sessions(it)) == 1


async def test_commands_work_and_are_no_messages(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Hi.", "Done.") as (it, client):
        begun = [user("hi"), assistant(await ask(client, user("hi")))]
        begun += [user("/todo add call Ada"), assistant(await ask(client, *begun, user("/todo add call Ada")))]
        assert "call Ada" in begun[-1]["content"]
        assert await ask(client, *begun, user("thanks")) == "Done."
        [thread] = sessions(it)
        assert said(it, thread) == ["hi", "Hi.", "thanks", "Done."]


async def test_pictures_and_files_are_kept_with_the_message(tmp_path: Path) -> None:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "file", "file": {"filename": "a.txt", "file_data": f"data:text/plain;base64,{data}"}},
    ]
    async with client_of(tmp_path, "A boat.") as (it, client):
        assert await ask(client, {"role": "user", "content": parts}) == "A boat."
        [record] = [one for one in it.app.stores.history.recent("owner") if one.role == "user"]
        assert [media.mime for media in record.media] == ["image/png", "text/plain"]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"messages": [user("### Task:\nGenerate a concise title")]}, "task of the client's own"),
        ({"messages": [user("hi"), assistant("Hello.")]}, "nothing new to answer"),
        ({"messages": [user("  ")]}, "empty"),
        ({"messages": [user("hi")], "n": 2}, "one answer"),
        ({"messages": [user("hi")], "response_format": {"type": "json_object"}}, "words only"),
        ({"messages": [user("hi")], "tool_choice": "required"}, "its own tools"),
        ({"messages": [user("hi")], "model": "gpt-9"}, "the assistant is 'nocturne'"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}
                ]
            },
            "fetches none",
        ),
    ],
)
async def test_what_cannot_be_had_is_refused_and_nothing_is_kept(
    tmp_path: Path, request_: dict[str, Any], told: str
) -> None:
    async with client_of(tmp_path) as (it, client):
        with pytest.raises(openai.APIStatusError, match=told):
            await client.chat.completions.create(**{"model": "nocturne", **request_})
        assert sessions(it) == []


async def test_instructions_settings_and_tools_of_a_client_are_passed_over(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}
    async with client_of(tmp_path, "Ahoy.") as (it, client):
        pirate = {"role": "system", "content": "Speak like a pirate."}
        await ask(client, pirate, user("hi"), temperature=1.9, max_tokens=3, tools=[tool])
        request = it.model.requests[-1]
        assert "pirate" not in str(request) and "pay" not in [tool.name for tool in request.tools]
        assert files_with_words(tmp_path, "pirate") == []


async def test_what_is_due_comes_with_the_next_answer_as_a_quotation(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Hi.", "Fine.") as (it, client):
        begun = [user("hi"), assistant(await ask(client, user("hi")))]
        command = user("/remind call Ines in 1 minute")
        begun += [command, assistant(await ask(client, *begun, command))]
        it.clock.now += timedelta(minutes=2)
        await it.app.agenda_scheduler.fire_due()
        await it.wait_idle()
        answer = await ask(client, *begun, user("how are you?"))
        assert answer.startswith("> ") and "call Ines" in answer.splitlines()[0] and answer.endswith("\n\nFine.")


async def test_a_client_may_choose_the_conversation_and_it_goes_on_in_a_terminal(tmp_path: Path) -> None:
    async with client_of(tmp_path, "Hi.", "Heron.") as (it, client):
        assert await ask(client, user("I have a boat."), extra_body={"session": "thread:Trip"}) == "Hi."
        await it.socket.say("its name?", "thread:trip")
        await it.wait_idle()
        assert said(it, "thread:trip") == ["I have a boat.", "Hi.", "its name?", "Heron."]


async def test_a_wrong_token_is_refused(tmp_path: Path) -> None:
    async with client_of(tmp_path) as (it, client):
        with pytest.raises(openai.AuthenticationError, match="not the right one"):
            await ask(client.with_options(api_key="another-token-of-enough-characters"), user("hi"))
        assert sessions(it) == []


async def test_a_model_that_fails_is_told_in_the_answer_and_in_the_stream(tmp_path: Path) -> None:
    failure = ModelError("The provider is down.", kind="overload", provider="scripted")
    async with client_of(tmp_path, failure, failure) as (it, client):
        with pytest.raises(openai.InternalServerError, match="provider"):
            await ask(client, user("hi"))
        stream = await client.chat.completions.create(model="nocturne", messages=[user("ho")], stream=True)  # type: ignore[list-item]
        with pytest.raises(openai.APIError, match="provider"):
            [chunk async for chunk in stream]
        assert len(sessions(it)) == 2


async def test_the_models_are_listed(tmp_path: Path) -> None:
    async with client_of(tmp_path) as (_, client):
        assert [model.id async for model in client.models.list()] == ["nocturne"]
        assert (await client.models.retrieve("nocturne")).owned_by == "nocturne"


async def test_a_command_line_of_others_talks_to_it(tmp_path: Path) -> None:
    """`llm`, set up as its documentation says for OpenAI-compatible servers."""
    folder = tmp_path / "llm"
    folder.mkdir()
    async with client_of(tmp_path / "home", "Hello Ada.", "Heron.") as (it, _):
        (folder / "extra-openai-models.yaml").write_text(
            f"- model_id: nocturne\n  model_name: nocturne\n  api_base: http://127.0.0.1:{it.port}/v1\n"
            "  api_key_name: nocturne\n"
        )
        (folder / "keys.json").write_text(json.dumps({"nocturne": TOKEN}))

        async def type_in(*words: str) -> str:
            program = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "llm", "-m", "nocturne", *words),
                env={**os.environ, "LLM_USER_PATH": str(folder)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            printed, errors = await program.communicate()
            assert program.returncode == 0, errors.decode()
            return printed.decode().strip()

        assert await type_in("I am Ada.") == "Hello Ada."
        assert await type_in("-c", "What is the boat called?") == "Heron."
        [thread] = sessions(it)
        assert said(it, thread) == ["I am Ada.", "Hello Ada.", "What is the boat called?", "Heron."]
