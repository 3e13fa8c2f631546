"""Each notice that is declared, brought about in the whole app over a bridge, each in its turn: it is read there, in
its own words, once, by those whom the table names. That every notice is shown over every bridge is in
`test_conformance_notices.py`: what brings one about does not know the bridge that it goes out over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.notices import NoticeKind
from tests.contract.bridges.conftest import NETWORKS
from tests.strict.server import StrictServer
from tests.support.networks.conformance_app import AppParts, ConformanceApp, run_conformance_app
from tests.support.networks.discord import DiscordNetwork
from tests.support.networks.mail import MailNetwork
from tests.support.networks.matrix import MatrixNetwork
from tests.support.networks.network import Network
from tests.support.networks.provocations import PROVOCATIONS, Provocation, words_of
from tests.support.networks.slack import SlackNetwork
from tests.support.networks.telegram import TelegramNetwork
from tests.support.networks.terminal import TerminalNetwork
from tests.support.networks.web import WebNetwork

# What only an encrypted room of Matrix, or a recording, can bring about, with the test that does and words of it.
ELSEWHERE = {
    NoticeKind.ANSWER_NOT_SPOKEN: ("tests/scenario/test_voice_answers.py", "I could not speak my answer"),
    NoticeKind.VOICE_NOT_HEARD: ("tests/scenario/test_voice.py", "I could not turn your voice message into text."),
    NoticeKind.KEY_MISSING: ("tests/contract/test_bridge_matrix_encrypted.py", "its key has not reached me"),
}
ROOT = Path(__file__).parents[3]
REAL_NETWORKS: dict[str, type[Network]] = {
    "terminal": TerminalNetwork,
    "web": WebNetwork,
    "telegram": TelegramNetwork,
    "matrix": MatrixNetwork,
    "mail": MailNetwork,
    "discord": DiscordNetwork,
    "slack": SlackNetwork,
}


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


def test_each_kind_is_provoked_and_each_bridge_has_its_share() -> None:
    assert set(NoticeKind) == PROVOCATIONS.keys() | ELSEWHERE.keys()
    assert REAL_NETWORKS.keys() == NETWORKS.keys() - {"able", "plain"}
    for kind, (page, words) in ELSEWHERE.items():
        assert words in kind.form.template and words in (ROOT / page).read_text(encoding="utf-8")


def provider(server: StrictServer) -> dict[str, str]:
    """Two models, and offline mode behind them."""
    return {
        "ASSISTANT_MODEL__PROVIDER": "anthropic",
        "ASSISTANT_MODEL__RETRIES": "0",
        "ASSISTANT_MODEL__FALLBACK": '["openai:gpt-6-luna", "offline"]',
        "ANTHROPIC_API_KEY": server.key,
        "ANTHROPIC_BASE_URL": server.url,
        "OPENAI_API_KEY": server.key,
        "OPENAI_BASE_URL": f"{server.url}/v1",
    }


def can(network: type[Network], provocation: Provocation) -> bool:
    """Whether the network has what this is about. Elsewhere there is nobody whom it could be told to."""
    match provocation.needs:
        case "":
            return True
        case "live":
            return network is TerminalNetwork
        case needs:
            return bool(getattr(network.abilities, needs))


def cases() -> Iterator[tuple[str, NoticeKind]]:
    """Each kind with the network that has had the fewest of those that can: so each has its share of the kinds."""
    turns: Counter[str] = Counter()
    for kind, provocation in PROVOCATIONS.items():
        able = [name for name, network in REAL_NETWORKS.items() if can(network, provocation)]
        name = min(able, key=lambda name: turns[name])
        turns[name] += 1
        yield name, kind


def read(it: ConformanceApp, kind: NoticeKind, provocation: Provocation) -> str:
    """All that the one whom it is for has read, without marks. What cannot be told on the bridge itself is told in the
    terminal; what is shown and not stored is seen by those who are connected."""
    if kind.form.place == "live":
        texts = it.network.live_texts if isinstance(it.network, TerminalNetwork) else []
    elif kind.form.place == "terminal":
        texts = [item.outgoing.body for item in it.app.stores.outbox.pending_items("terminal")]
    else:
        texts = it.texts(provocation.reader, provocation.where)
    return " ".join(" ".join(texts).replace("`", "").split())


@pytest.mark.parametrize(
    ("network", "kind"),
    list(cases()),
    indirect=["network"],
    ids=lambda it: it if isinstance(it, str) else it.name.lower(),
)
async def test_what_brings_a_notice_about_has_it_read_once(
    network: Network, home: Path, kind: NoticeKind, shared: StrictServer
) -> None:
    provocation = PROVOCATIONS[kind]
    parts, environ = provocation.parts(), dict(provocation.environ)
    if provocation.script:
        shared.play(*provocation.script)
        parts, environ = AppParts(configured=True), {**provider(shared), **environ}
    pattern = words_of(kind, provocation.words)
    async with run_conformance_app(network, home, parts=parts, **environ) as it:
        await provocation.act(it)
        await it.wait_until(lambda: bool(pattern.search(read(it, kind, provocation))))
        await it.wait_idle()
        seen = pattern.findall(read(it, kind, provocation))
        assert len(seen) == 1 or kind.form.place == "live" or not kind.form.once
        stored = [item.outgoing.body for item in it.outbox() if item.outgoing.kind == "notice"]
        assert kind.form.place != "live" or not any(pattern.search(body) for body in stored)
        if provocation.reader != "owner":
            assert not pattern.search(" ".join(it.texts()))
