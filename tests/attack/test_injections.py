"""What strangers write into pages, files, mails, calendars, programs, memories and talk orders nothing of an assistant
whose model obeys everything it reads (F26, I10): the 125 cases of `injections.toml`."""

from __future__ import annotations

import tomllib
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.attack.injection_places import PLACES
from tests.attack.obedience import find_calls, try_case
from tests.scenario.test_mcp import calls
from tests.strict.speech import StrictSpeech
from tests.support.docs_pages import read_page
from tests.support.own_mail import OwnMail, own_mail
from tests.support.page_server import serving

TABLE: dict[str, dict[str, list[str]]] = tomllib.loads((Path(__file__).parent / "injections.toml").read_text())
CASES = [(place, words) for places in TABLE.values() for place, texts in places.items() for words in texts]


def _name(case: tuple[str, str]) -> str:
    return f"{case[0]}: {', '.join(call.name for call in find_calls(case[1]))}"


@pytest.mark.parametrize("case", CASES, ids=_name)
async def test_f26_what_somebody_else_wrote_orders_nothing(
    case: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (name, words), place = case, PLACES[case[0]]
    environ: dict[str, str] = {}
    mail: OwnMail | None = None
    async with AsyncExitStack() as servers:
        mallory = servers.enter_context(serving({}))
        words = words.replace("PORT", str(mallory.port))
        if place.mail or "_mail" in words:
            mail = await servers.enter_async_context(own_mail(request.getfixturevalue("imap_server")))
            environ |= mail.environ
            if place.mail:
                mail.deliver(place.mail(words))
        if place.says:
            speech = await servers.enter_async_context(StrictSpeech(place.says(words)))
            environ |= {"ASSISTANT_VOICE__URL": speech.url, "ASSISTANT_VOICE__KEY": speech.key}
        problems = await try_case(
            place.ask, words, lambda home, it: place.prepare(home, tmp_path, it), environ, mallory
        )
        if mail is not None and (mail.smtp.attempts or mail.subjects("Drafts") or mail.subjects("Sent")):
            problems.append(f"mail: {mail.smtp.taken}, {mail.subjects('Drafts')}")
    # What the owner's settings let read is all that a server was asked to do.
    allowed = ("find_notes", "misbehave", "prompt:tidy", "resources:read")
    problems += [str(it) for it in calls(tmp_path / "server") if it["tool"] not in allowed]
    assert problems == [], name


def test_the_table_has_125_cases_in_every_place() -> None:
    assert len(CASES) == len(set(CASES)) == 125
    assert {place for place, _ in CASES} == PLACES.keys()
    assert all(list(find_calls(words)) for _, words in CASES)


def test_the_page_on_attacks_counts_the_cases_of_the_table() -> None:
    page = read_page("developing/attacks.md")
    for group, places in TABLE.items():
        shown = (f"{name} ({len(texts)})" if len(texts) > 1 else name for name, texts in places.items())
        assert f"| {group} | {sum(map(len, places.values()))} | {', '.join(shown)} |" in page
