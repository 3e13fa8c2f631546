"""What a conversation pays for in full, request by request, held with the real app against a strict server."""

from __future__ import annotations

import re
from itertools import pairwise

from assistant.runtime.recall import HISTORY_MARK
from tests.economy.strict_run import measure

# A line of a message that was recalled, and the time to the minute.
_QUOTED, _TIME = re.compile(r"#\d+ \w{3} \d{4}-\d\d-\d\d \d\d:\d\d (?:user|assistant|tool)"), re.compile("Now: ")


def test_nothing_is_paid_in_full_by_two_requests_in_a_row_but_what_is_recalled_for_both() -> None:
    measured = measure(turns=60, questions=12, keep=3)
    assert measured.answered == 12 and measured.paid_twice == 0
    chat = [one for one in measured.held.seen if one.purpose == "chat"]
    assert len(chat) >= 60 and all(one.volatile for one in chat)
    again = [line for before, one in pairwise(chat) for line in before.volatile & one.volatile]
    assert [line for line in again if line != HISTORY_MARK and not _QUOTED.match(line) and not _TIME.match(line)] == []
