"""What strangers write into pages, files, mails, calendars, programs, memories and talk orders nothing of an assistant
whose model obeys everything it reads (F26, I10): a case of each place of `injections.toml`; `make attack` tries all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.injection_places import PLACES
from tests.attack.injections import CASES, TABLE, case_name, needs_mail, try_injection
from tests.attack.obedience import find_calls
from tests.support.docs_pages import read_page

# The last of each place: what was added to the table as something new.
OF_EACH_PLACE = list({case[0]: case for case in CASES}.values())


@pytest.mark.parametrize("case", OF_EACH_PLACE, ids=case_name)
async def test_f26_what_somebody_else_wrote_orders_nothing(
    case: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    imap = request.getfixturevalue("imap_server") if needs_mail(case) else None
    assert await try_injection(case, tmp_path, imap) == []


def test_the_table_has_125_cases_in_every_place() -> None:
    assert len(CASES) == len(set(CASES)) == 125
    assert {place for place, _ in CASES} == PLACES.keys()
    assert all(list(find_calls(words)) for _, words in CASES)


def test_the_page_on_attacks_counts_the_cases_of_the_table() -> None:
    page = read_page("developing/attacks.md")
    for group, places in TABLE.items():
        shown = (f"{name} ({len(texts)})" if len(texts) > 1 else name for name, texts in places.items())
        assert f"| {group} | {sum(map(len, places.values()))} | {', '.join(shown)} |" in page
