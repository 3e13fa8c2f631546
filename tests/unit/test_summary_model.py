"""From settings to the model that writes summaries, and the words it is asked with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assistant.core.errors import SettingsError
from assistant.core.ports import Model
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from assistant.wire.models import ModelDeps, build_summary_model
from tests.strict.asking import InMemoryLedger, InMemoryModelFacts, call_model, clock
from tests.strict.behaviour import ErrorStatus
from tests.strict.server import StrictServer
from tests.support.scripted import ScriptedModel, SteppingClock


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


@asynccontextmanager
async def writer(home: Path, ledger: InMemoryLedger, **variables: str) -> AsyncIterator[Model]:
    async def wait(seconds: float) -> None:
        pass

    means = ModelDeps(
        ledger,
        InMemoryModelFacts(),
        lambda request, name: 100,
        clock,
        lambda: ScriptedModel("built in", name="offline"),
        wait,
    )
    made = build_summary_model(load_settings(Home(home), variables), means)
    try:
        yield made
    finally:
        await made.aclose()


async def test_where_claude_answers_its_small_model_writes_metered(tmp_path: Path, server: StrictServer) -> None:
    ledger = InMemoryLedger()
    async with writer(tmp_path, ledger, ANTHROPIC_API_KEY=server.key, ANTHROPIC_BASE_URL=server.url) as model:
        assert (await call_model(model)).text == "ok"
        assert model.name == server.bodies[0]["model"] == ledger.calls[0].model == "claude-haiku-5-5"


async def test_where_another_answers_it_writes_too(tmp_path: Path, server: StrictServer) -> None:
    local = {"ASSISTANT_MODEL__BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": server.key}
    async with writer(tmp_path, InMemoryLedger(), ASSISTANT_MODEL__NAME="local-model", **local) as model:
        await call_model(model)
        assert [body["model"] for body in server.bodies] == ["local-model"]


async def test_who_writes_can_be_chosen(tmp_path: Path, server: StrictServer) -> None:
    chosen = {
        "ASSISTANT_COMPACTION__SUMMARY_MODEL": "openai:qwen3",
        "ANTHROPIC_API_KEY": "sk-of-who-answers",
        "ASSISTANT_MODEL__BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": server.key,
    }
    async with writer(tmp_path, InMemoryLedger(), ASSISTANT_MODEL__PROVIDER="anthropic", **chosen) as model:
        await call_model(model)
        assert server.requests[0].path == "/v1/chat/completions"
        assert [body["model"] for body in server.bodies] == ["qwen3"]


async def test_where_the_built_in_model_answers_it_writes(tmp_path: Path) -> None:
    ledger = InMemoryLedger()
    async with writer(tmp_path, ledger) as model:
        assert ((await call_model(model)).text, model.name, ledger.calls) == ("built in", "offline", [])


async def test_nobody_writes_instead_of_a_writer_that_fails(tmp_path: Path, server: StrictServer) -> None:
    server.play(*[ErrorStatus(529, "overloaded_error", "Overloaded")] * 3)
    remote = {"ANTHROPIC_API_KEY": server.key, "ANTHROPIC_BASE_URL": server.url}
    async with writer(tmp_path, InMemoryLedger(), ASSISTANT_MODEL__FALLBACK='["offline"]', **remote) as model:
        heard = await call_model(model)
        assert heard.error is not None and heard.replies == [] and len(server.requests) == 3


# -------------------------------------------------------------------------------------------------------------- prompts


def app(home: Path) -> App:
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    return build_app(settings, SteppingClock(), model=ScriptedModel("ok"))


@pytest.mark.parametrize("name", ["summary", "summary_merge", "summary_prefix", "extraction", "delegate"])
def test_a_prompt_of_the_home_that_cannot_be_read_is_refused_at_start(tmp_path: Path, name: str) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / f"{name}.md").write_bytes(b"Summarise \xff\xfe this.")
    with pytest.raises(
        SettingsError, match=rf"{name}\.md is not UTF-8 text .* Nothing was started; save it as"
    ) as refused:
        app(tmp_path)
    assert len(str(refused.value).splitlines()) == 1
    (tmp_path / "prompts" / f"{name}.md").write_text("Summarise this: <summary>, <memories>.", "utf-8")
    app(tmp_path).close()
