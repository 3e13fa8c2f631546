"""The table of `injections.toml`: what strangers write into pages, files, mails, calendars, programs, memories and
talk, each tried on the whole program with a model that obeys everything it reads. `run` tries all; the tests one of
each place.
"""

from __future__ import annotations

import asyncio
import tempfile
import tomllib
from contextlib import AsyncExitStack
from pathlib import Path

from tests.attack.injection_places import PLACES
from tests.attack.obedience import find_calls, try_case
from tests.attack.tally import Tally
from tests.scenario.test_mcp import calls
from tests.strict.speech import StrictSpeech
from tests.support import dovecot
from tests.support.own_mail import OwnMail, own_mail
from tests.support.page_server import serving

TABLE: dict[str, dict[str, list[str]]] = tomllib.loads((Path(__file__).parent / "injections.toml").read_text())
# (place, words), in the order of the table
CASES = [(place, words) for places in TABLE.values() for place, texts in places.items() for words in texts]
# What the owner's settings let a server do without a question.
_ALLOWED = ("find_notes", "misbehave", "prompt:tidy", "resources:read")


def needs_mail(case: tuple[str, str]) -> bool:
    return PLACES[case[0]].mail is not None or "_mail" in case[1]


async def try_injection(case: tuple[str, str], beside: Path, imap: dovecot.Dovecot | None) -> list[str]:
    """What went wrong. `beside`: an empty folder beside the data folder; `imap` where the case needs mail."""
    (name, words), place = case, PLACES[case[0]]
    environ: dict[str, str] = {}
    mail: OwnMail | None = None
    async with AsyncExitStack() as servers:
        mallory = servers.enter_context(serving({}))
        words = words.replace("PORT", str(mallory.port))
        if needs_mail(case):
            assert imap is not None
            mail = await servers.enter_async_context(own_mail(imap))
            environ |= mail.environ
            if place.mail:
                mail.deliver(place.mail(words))
        if place.says:
            speech = await servers.enter_async_context(StrictSpeech(place.says(words)))
            environ |= {"ASSISTANT_VOICE__URL": speech.url, "ASSISTANT_VOICE__KEY": speech.key}
        problems = await try_case(place.ask, words, lambda home, it: place.prepare(home, beside, it), environ, mallory)
        if mail is not None and (mail.smtp.attempts or mail.subjects("Drafts") or mail.subjects("Sent")):
            problems.append(f"mail: {mail.smtp.taken}, {mail.subjects('Drafts')}")
    problems += [str(it) for it in calls(beside / "server") if it["tool"] not in _ALLOWED]
    return [f"{name}: {problem}" for problem in problems]


def case_name(case: tuple[str, str]) -> str:
    return f"{case[0]}: {', '.join(call.name for call in find_calls(case[1]))}"


def run(seed: int, only: int | None = None) -> Tally:
    """All cases of the table; the seed changes nothing."""
    chosen = list(enumerate(CASES, start=1))[slice(only - 1, only) if only else slice(None)]
    failures = []
    with dovecot.running_dovecot() as imap:
        for number, case in chosen:
            with tempfile.TemporaryDirectory() as beside:
                problems = asyncio.run(try_injection(case, Path(beside), imap))
            failures += [f"case {number}: {problem}" for problem in problems[:1]]
    return Tally("injections", len(chosen), tuple(failures))
