"""From settings to the models that answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from assistant.core.errors import SettingsError
from assistant.core.ports import Model
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.wire.models import ModelDeps, build_model_chain
from tests.strict.asking import InMemoryLedger, InMemoryModelFacts, call_model, clock
from tests.strict.behaviour import ErrorStatus
from tests.strict.server import StrictServer
from tests.support.scripted import ScriptedModel

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


@pytest.fixture
def ledger() -> InMemoryLedger:
    return InMemoryLedger()


def settings(home: Path, **variables: str) -> Settings:
    return load_settings(Home(home), variables)


class FactorySetup:
    """Builds chains and closes them again. No wait is waited for."""

    def __init__(self, home: Path, ledger: InMemoryLedger) -> None:
        self.home = home
        self.ledger = ledger
        self.facts = InMemoryModelFacts()
        self.built: list[Model] = []
        self.waits: list[float] = []

    def __call__(self, **variables: str) -> Model:
        means = ModelDeps(
            self.ledger, self.facts, lambda request, name: 100, clock, lambda: ScriptedModel("noted"), self._wait
        )
        chain = build_model_chain(settings(self.home, **variables), means)
        self.built.append(chain)
        return chain

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
async def chains(tmp_path: Path, ledger: InMemoryLedger) -> AsyncIterator[FactorySetup]:
    made = FactorySetup(tmp_path, ledger)
    yield made
    for chain in made.built:
        await chain.aclose()


async def test_without_key_or_address_the_built_in_model_answers_unmetered(
    chains: FactorySetup, ledger: InMemoryLedger
) -> None:
    assert (await call_model(chains())).text == "noted"
    assert ledger.calls == []


async def test_with_a_key_claude_answers_metered_at_its_list_price(
    chains: FactorySetup, ledger: InMemoryLedger, server: StrictServer
) -> None:
    chain = chains(ANTHROPIC_API_KEY=server.key, ANTHROPIC_BASE_URL=server.url)
    said = await call_model(chain)
    assert chain.name == server.bodies[0]["model"] == ledger.calls[0].model == "claude-sonnet-5-5"
    assert said.reply.usage.cost_usd is not None
    assert said.notices == []


async def test_with_an_address_its_first_model_answers_without_a_price(
    chains: FactorySetup, ledger: InMemoryLedger, server: StrictServer
) -> None:
    chain = chains(ASSISTANT_MODEL__BASE_URL=f"{server.url}/v1", OPENAI_API_KEY=server.key)
    said = await call_model(chain)
    assert server.requests[0].path == "/v1/chat/completions"
    assert (ledger.calls[0].model, ledger.calls[0].usd) == ("local-model", None)
    assert "in tokens only" in said.notices[0].text


async def test_a_name_of_openai_s_has_no_price_at_another_address(
    chains: FactorySetup, ledger: InMemoryLedger, server: StrictServer
) -> None:
    chain = chains(
        ASSISTANT_MODEL__BASE_URL=f"{server.url}/v1", ASSISTANT_MODEL__NAME="gpt-6-sol", OPENAI_API_KEY=server.key
    )
    await call_model(chain)
    assert ledger.calls[0].usd is None


async def test_a_provider_that_is_down_is_followed_by_the_fallback_and_each_try_is_metered(
    chains: FactorySetup, ledger: InMemoryLedger, server: StrictServer
) -> None:
    server.play(*[ErrorStatus(529, "overloaded_error", "Overloaded")] * 3)
    said = await call_model(chains(ANTHROPIC_API_KEY=server.key, ANTHROPIC_BASE_URL=server.url))
    assert said.text == "noted"
    assert len(server.requests) == len(ledger.calls) == len(ledger.settled) == 3
    assert len(chains.waits) == 2
    assert not ledger.open
    assert all(usage.prompt == 0 for usage in ledger.settled)


async def test_a_used_up_budget_is_answered_by_the_built_in_model(
    chains: FactorySetup, ledger: InMemoryLedger, server: StrictServer
) -> None:
    ledger.cap = 0.0
    said = await call_model(chains(ANTHROPIC_API_KEY=server.key, ANTHROPIC_BASE_URL=server.url))
    assert said.text == "noted"
    assert server.requests == []


async def test_a_fallback_may_name_another_model_and_one_without_a_key_is_left_out(
    chains: FactorySetup, server: StrictServer
) -> None:
    server.play(ErrorStatus(404, "not_found_error", "model: claude-none"))
    chain = chains(
        ANTHROPIC_API_KEY=server.key,
        ANTHROPIC_BASE_URL=server.url,
        ASSISTANT_MODEL__NAME="claude-none",
        ASSISTANT_MODEL__FALLBACK='["openai", "anthropic:claude-haiku-5-5", "offline"]',
    )
    said = await call_model(chain)
    assert said.text == "ok"
    assert [body["model"] for body in server.bodies] == ["claude-none", "claude-haiku-5-5"]
    assert "Asking claude-haiku-5-5 instead." in said.notices[-1].text


def test_a_table_of_prices_that_cannot_be_read_is_refused_at_start(tmp_path: Path, ledger: InMemoryLedger) -> None:
    nowhere = tmp_path / "none.toml"
    means = ModelDeps(ledger, InMemoryModelFacts(), lambda request, name: 1, clock, ScriptedModel, prices_file=nowhere)
    with pytest.raises(SettingsError, match="table of prices"):
        build_model_chain(settings(tmp_path), means)


def test_an_sdk_is_imported_only_when_its_provider_is_used() -> None:
    """In a process of its own: half a second of every start depends on it."""
    program = "import sys, assistant.wire.models; print({'anthropic', 'openai'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ran.stdout.strip() == "set()"


async def test_the_provider_has_a_name_before_its_sdk_is_loaded(chains: FactorySetup) -> None:
    model = chains(ANTHROPIC_API_KEY="key")
    assert (model.provider, model.name) == ("anthropic", "claude-sonnet-5-5")
