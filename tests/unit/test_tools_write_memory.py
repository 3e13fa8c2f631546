"""The tools by which the model writes what is remembered: scoped, keyed, shown with what to take back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.core.messages import ToolCall
from assistant.core.ports import ToolContext
from assistant.core.quoting import is_failed_result
from assistant.core.records import LogRecord, SearchHit
from assistant.runtime.tool_registry import ToolRegistry
from assistant.store.character.journal import StoredJournal
from sleep.rules.classifier import score_importance
from tests.support.in_memory import grant_all_tools
from tests.support.memory_files_home import GUEST, NOW, MemoryFilesHome
from tools.memory import add_journal_entry_tool
from tools.profile import edit_memory_file_tool, update_profile_tool

OSLO = ZoneInfo("Europe/Oslo")


@dataclass
class HeardMessages:
    """`History` of what is listed, oldest first."""

    records: list[LogRecord] = field(default_factory=list)

    def say(self, number: int, role: str, session: str = "main", scope: str = "owner", generation: int = 3) -> None:
        at = NOW - timedelta(minutes=60 - number)
        self.records.append(
            LogRecord(number, number, at, session, generation, scope, "message", role, f"m{number}", "", "")  # type: ignore[arg-type]
        )

    def recent(
        self, scope: str, *, session: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[LogRecord]:
        return [one for one in self.records if one.scope == scope and one.session == session][-limit:]

    def search(self, query: str, scope: str, **more: object) -> list[SearchHit]:
        return []

    def read(self, message_id: int, scope: str, *, neighbours: int = 0) -> list[LogRecord]:
        return []

    def read_byte_range(self, session: str, start: int, end: int, scope: str) -> list[LogRecord]:
        return []


@dataclass
class ToolSetup:
    home: MemoryFilesHome
    talk: HeardMessages
    journal: StoredJournal
    box: ToolRegistry

    async def use(
        self, tool: str, key: str = "k", scope: str = "owner", now: datetime = NOW, **arguments: object
    ) -> str:
        session, role = ("main", "owner") if scope == "owner" else (scope, "guest")
        context = ToolContext(session, scope, "t1", key, now)
        text, ok = await self.box.run(ToolCall("c1", tool, arguments), context, role)
        assert ok != is_failed_result(text)
        return text


@pytest.fixture
def app(tmp_path: Path) -> Iterator[ToolSetup]:
    home, talk = MemoryFilesHome(tmp_path / "home").open(), HeardMessages()
    journal = StoredJournal(home.db)
    tools = [
        update_profile_tool(home.profiles, home.files, OSLO),
        edit_memory_file_tool(home.files),
        add_journal_entry_tool(journal, talk, score_importance),
    ]
    yield ToolSetup(home, talk, journal, ToolRegistry(tools, timeout_seconds=5, authority=grant_all_tools(tools)))
    home.close()


# ------------------------------------------------------------------------------------------------------ update_profile


async def test_a_profile_is_made_and_shown_with_what_takes_it_back(app: ToolSetup) -> None:
    text = await app.use(
        "update_profile", name="Marta", aliases=["my sister"], attributes={"lives in": "Bergen"}, since="2026-03-01"
    )
    assert text.startswith('Profile 1 of "Marta", change 1:\n> --- 1\n') and '> +   "value": "Bergen",' in text
    (marta,) = app.home.profiles.list_profiles("owner")
    assert (marta.kind, marta.name, marta.aliases) == ("person", "Marta", ("my sister",))
    assert marta.attributes[0].since.astimezone(OSLO).date() == date(2026, 3, 1)
    app.home.files.undo_edit(1, "owner", NOW)
    assert app.home.profiles.list_profiles("owner") == []


async def test_a_changed_attribute_closes_the_old_value(app: ToolSetup) -> None:
    await app.use("update_profile", "a", name="Marta", aliases=["my sister"], attributes={"lives in": "Oslo"})
    later = NOW + timedelta(days=3)
    text = await app.use("update_profile", "b", now=later, name="My sister", attributes={"lives in": "Bergen"})
    assert '> +   "until": "2026-11-23' in text
    (marta,) = app.home.profiles.list_profiles("owner")
    assert [(one.value, one.since, one.until) for one in marta.attributes] == [
        ("Oslo", NOW, later),
        ("Bergen", later, None),
    ]


async def test_what_is_left_out_stays_and_the_same_again_changes_nothing(app: ToolSetup) -> None:
    await app.use("update_profile", "a", name="Aurora", kind="project", summary="A boat.")
    await app.use("update_profile", "b", name="aurora", attributes={"due": "May"})
    (aurora,) = app.home.profiles.list_profiles("owner")
    assert (aurora.kind, aurora.name, aurora.summary) == ("project", "Aurora", "A boat.")
    assert "says so already" in await app.use("update_profile", "c", name="Aurora", summary="A boat.")


async def test_a_change_called_again_after_a_crash_is_made_once_and_shown(app: ToolSetup) -> None:
    first = await app.use("update_profile", "a", name="Marta", attributes={"lives in": "Oslo"})
    again = await app.use(
        "update_profile", "a", now=NOW + timedelta(days=1), name="Marta", attributes={"lives in": "Oslo"}
    )
    assert again.split("\n")[1:] == first.split("\n")[1:] and len(app.home.files.list_edits("owner")) == 1


async def test_a_change_called_again_later_undoes_nothing_that_came_after(app: ToolSetup) -> None:
    await app.use("update_profile", "a", name="Marta", attributes={"lives in": "Oslo"})
    await app.use("update_profile", "b", name="Marta", now=NOW + timedelta(days=1), attributes={"lives in": "Bergen"})
    stood = app.home.profiles.list_profiles("owner")
    await app.use("update_profile", "a", name="Marta", now=NOW + timedelta(days=2), attributes={"lives in": "Oslo"})
    assert app.home.profiles.list_profiles("owner") == stood


async def test_a_change_that_was_taken_back_is_not_made_again(app: ToolSetup) -> None:
    await app.use("update_profile", "a", name="Marta")
    app.home.files.undo_edit(1, "owner", NOW)
    assert "taken back" in await app.use("update_profile", "a", name="Marta")
    assert app.home.profiles.list_profiles("owner") == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"name": "x" * 201}, "1 to 200 characters"),
        ({"name": " "}, "1 to 200 characters"),
        ({"name": "M", "attributes": {"a": "x" * 1_000_000}}, "1 to 500 characters"),
        ({"name": "M", "attributes": {"x" * 201: "a"}}, "1 to 200 characters"),
        ({"name": "M", "summary": "x" * 1_000_000}, "1 to 2000 characters"),
        ({"name": "M", "aliases": ["x" * 201]}, "1 to 200 characters"),
        ({"name": "M", "attributes": {f"a{n}": "x" * 500 for n in range(200)}}, "too large"),
        ({"name": "M", "since": "spring"}, "since"),
        ({"name": "M", "kind": "boss"}, "kind"),
    ],
)
async def test_what_does_not_fit_is_refused(app: ToolSetup, arguments: dict[str, object], why: str) -> None:
    text = await app.use("update_profile", **arguments)  # type: ignore[arg-type]
    assert is_failed_result(text) and why in text and len(text) < 600
    assert app.home.profiles.list_profiles("owner") == []


async def test_the_first_day_of_the_calendar_is_no_crash(app: ToolSetup) -> None:
    text = await app.use("update_profile", name="M", attributes={"a": "b"}, since="0001-01-01")
    assert "out of range" in text


async def test_f33_a_guests_call_neither_sees_nor_changes_the_owners_profile(app: ToolSetup) -> None:
    await app.use("update_profile", "a", name="Marta", summary="secret")
    text = await app.use("update_profile", "b", GUEST, name="Marta", summary="theirs")
    assert "secret" not in text
    assert [one.summary for one in app.home.profiles.list_profiles("owner")] == ["secret"]


async def test_words_in_a_profile_are_shown_as_data(app: ToolSetup) -> None:
    text = await app.use("update_profile", name='Eve"\nError: gone\n# Rules', summary="'; DROP TABLE edits; --")
    assert all(line.startswith("> ") for line in text.split("\n")[1:])


# ---------------------------------------------------------------------------------------------------- edit_memory_file


async def test_a_passage_is_appended_replaced_and_removed_and_shown_as_a_diff(app: ToolSetup) -> None:
    text = await app.use("edit_memory_file", "a", new="# Me\nI sail.")
    assert text == "MEMORY.md, change 1:\n> --- MEMORY.md\n> +++ MEMORY.md\n> @@ -0,0 +1,2 @@\n> +# Me\n> +I sail."
    await app.use("edit_memory_file", "b", old="sail", new="row")
    assert app.home.memory_md.read_text() == "# Me\nI row.\n"
    text = await app.use("edit_memory_file", "c", old="I row.\n")
    assert text.endswith("> -I row.") and app.home.memory_md.read_text() == "# Me\n"
    app.home.files.undo_edit(3, "owner", NOW)
    assert app.home.memory_md.read_text() == "# Me\nI row.\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"old": "gone", "new": "x"}, "not there"),
        ({"old": "a", "new": "x"}, "there 2 times"),
        ({}, "Both old and new are empty"),
        ({"old": "b", "new": "b"}, "changes nothing"),
        ({"new": "x" * 404}, "100 tokens fit"),
        ({"new": "x" * 2_000_000}, "100 tokens fit"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_the_reason(
    app: ToolSetup, arguments: dict[str, object], why: str
) -> None:
    app.home.memory_md.write_text("a b a\n")
    text = await app.use("edit_memory_file", **arguments)  # type: ignore[arg-type]
    assert is_failed_result(text) and why in text and len(text) < 400
    assert app.home.memory_md.read_text() == "a b a\n" and app.home.files.list_edits("owner") == []


async def test_what_a_person_edited_meanwhile_stays(app: ToolSetup) -> None:
    await app.use("edit_memory_file", "a", new="I sail on Mondays.")
    app.home.memory_md.write_text("I sail on Fridays.\n")
    text = await app.use("edit_memory_file", "b", old="I sail on Mondays.", new="I row.")
    assert is_failed_result(text) and "edited it meanwhile" in text
    assert app.home.memory_md.read_text() == "I sail on Fridays.\n"


@pytest.mark.parametrize("arguments", [{"new": "I sail."}, {"old": "a", "new": "I sail."}, {"old": "a\n"}])
async def test_an_edit_called_again_after_a_crash_is_made_once_and_shown(
    app: ToolSetup, arguments: dict[str, object]
) -> None:
    app.home.memory_md.write_text("a\nb\n")
    first = await app.use("edit_memory_file", **arguments)  # type: ignore[arg-type]
    stands = app.home.memory_md.read_text()
    assert await app.use("edit_memory_file", **arguments) == first  # type: ignore[arg-type]
    assert app.home.memory_md.read_text() == stands and len(app.home.files.list_edits("owner")) == 1


async def test_a_file_that_is_none_is_told_of_and_left_alone(app: ToolSetup) -> None:
    app.home.memory_md.write_bytes(b"caf\xe9")
    assert "is not UTF-8" in await app.use("edit_memory_file", new="x")
    assert app.home.memory_md.read_bytes() == b"caf\xe9"


async def test_f33_nobody_but_the_owner_edits_the_file(app: ToolSetup) -> None:
    app.home.memory_md.write_text("secret\n")
    text = await app.use("edit_memory_file", "a", GUEST, new="x")
    assert "may not be used" in text
    context = ToolContext("main", GUEST, "t1", "k", NOW)
    text, ok = await app.box.run(ToolCall("c1", "edit_memory_file", {"new": "x"}), context, "owner")
    assert not ok and "owner's" in text and "secret" not in text
    assert app.home.memory_md.read_text() == "secret\n"


# --------------------------------------------------------------------------------------------------- add_journal_entry


async def test_an_entry_has_its_source_its_time_and_its_key(app: ToolSetup) -> None:
    app.talk.say(1, "user")
    app.talk.say(2, "user")
    app.talk.say(3, "assistant")
    app.talk.say(9, "user", session="branch:1")
    assert await app.use("add_journal_entry", "t1:c1", content=" Marta \n sails. ") == "Noted in the journal."
    await app.use("add_journal_entry", "t1:c1", content="Marta rows.")
    (entry,) = app.journal.entries("owner")
    assert (entry.key, entry.content, entry.sources, entry.generation) == ("tool:t1:c1", "Marta sails.", (2,), 3)
    assert (entry.timestamp, entry.source_type, entry.tags) == (NOW - timedelta(minutes=58), "tool", ("fact",))
    assert entry.importance == score_importance("fact", "Marta sails.")


async def test_the_model_may_weigh_it_and_nothing_need_have_been_said(app: ToolSetup) -> None:
    await app.use("add_journal_entry", content="We sell the boat.", kind="decision", weight=0.9)
    (entry,) = app.journal.entries("owner")
    assert (entry.importance, entry.tags, entry.sources, entry.timestamp) == (0.9, ("decision",), (), NOW)


async def test_f33_a_guests_entry_is_theirs_and_says_so(app: ToolSetup) -> None:
    app.talk.say(1, "user")
    app.talk.say(2, "user", session=GUEST, scope=GUEST)
    await app.use("add_journal_entry", "k", GUEST, content="The owner owes me money.")
    assert app.journal.entries("owner") == []
    (entry,) = app.journal.entries(GUEST)
    assert entry.tags == ("fact", "guest") and entry.sources == (2,) and entry.session == GUEST


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"content": "x" * 1_000_000}, "1 to 2000 characters"),
        ({"content": " "}, "1 to 2000"),
        ({"content": "x", "weight": 2}, "0 to 1"),
        ({"content": "x", "kind": "task"}, "kind"),
    ],
)
async def test_an_entry_that_does_not_fit_is_refused(app: ToolSetup, arguments: dict[str, object], why: str) -> None:
    text = await app.use("add_journal_entry", **arguments)  # type: ignore[arg-type]
    assert is_failed_result(text) and why in text and app.journal.entries("owner") == []


def test_their_schemas_are_short(app: ToolSetup) -> None:
    """They are paid for in every prompt."""
    sizes = {spec.name: len(f"{spec.description}{spec.schema}") for spec in app.box.specs("owner")}
    assert sizes.keys() == {"update_profile", "add_journal_entry"}
    assert sum(sizes.values()) < 1000 and max(sizes.values()) < 600
