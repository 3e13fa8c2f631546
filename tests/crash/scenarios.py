"""The table of crash scenarios. Add one here and `python -m tests.crash`, and the sample in `make test`, run it."""

from __future__ import annotations

from tests.crash.agenda_scenarios import DUE
from tests.crash.approval_scenarios import APPROVED
from tests.crash.archive_scenarios import BROUGHT_BACK
from tests.crash.arrival_scenarios import ARRIVALS
from tests.crash.backup_scenarios import BACKUP, RESTORE
from tests.crash.bridge_scenarios import TELEGRAM
from tests.crash.calendar_scenarios import CALENDAR
from tests.crash.chat_scenarios import DISCORD, SLACK
from tests.crash.compaction_scenarios import (
    BRANCHED,
    BY_ECONOMY,
    COMPACTION,
    COMPACTION_TOLD,
    IN_BACKGROUND,
    UNCOMPACTION,
)
from tests.crash.config_scenarios import CONFIGURED
from tests.crash.import_scenarios import IMPORTED
from tests.crash.mail_scenarios import MAILED
from tests.crash.night_scenarios import NIGHT
from tests.crash.reset_scenarios import RESET
from tests.crash.scenario import Scenario
from tests.crash.spending_scenarios import SPENDING
from tests.crash.toy import TOYS
from tests.crash.turn_scenarios import (
    FAILED_TURN,
    FIRST_START,
    FLOOR,
    SIDE_BY_SIDE,
    STOPPED_TURN,
    TURN,
    TURN_ON_TERMINAL,
    TURN_SENT_ONCE,
)
from tests.crash.upkeep_scenarios import REPAIR, UNDO

_ALL = (
    TURN,
    TURN_SENT_ONCE,
    TURN_ON_TERMINAL,
    FIRST_START,
    FAILED_TURN,
    STOPPED_TURN,
    SIDE_BY_SIDE,
    FLOOR,
    APPROVED,
    MAILED,
    CALENDAR,
    UNDO,
    REPAIR,
    COMPACTION,
    COMPACTION_TOLD,
    IN_BACKGROUND,
    BY_ECONOMY,
    UNCOMPACTION,
    BRANCHED,
    NIGHT,
    BACKUP,
    RESTORE,
    RESET,
    BROUGHT_BACK,
    IMPORTED,
    DUE,
    CONFIGURED,
    ARRIVALS,
    TELEGRAM,
    SLACK,
    DISCORD,
    SPENDING,
)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}


def find(name: str) -> Scenario:
    """The scenario of this name; toys have names too. Raises `KeyError`."""
    return {**SCENARIOS, **TOYS}[name]
