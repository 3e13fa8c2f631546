"""`aihistory` over compactions in every state, and over branches."""

from __future__ import annotations

from pathlib import Path

from assistant.cli.aihistory.main import aihistory
from assistant.core.checkpoints import Compaction
from tests.support.command_line import run_in_process
from tests.support.compacted_home import compact_view, days_later, json_output, open_empty_home
from tests.support.store_home import NOW


def of_every_state(path: Path) -> Path:
    """1 live then absorbed, 2 failed, 3 masked, 4 undone, 5 live and absorbing, 6 started."""
    stores = open_empty_home(path)
    talk = stores.conversation
    stores.say("the gate code is 4471", "noted")
    stores.chat(2)
    first = compact_view(stores, 4, "A gate.", at=days_later(1))
    view = talk.load_view("main")
    ids = (view.messages[1].id or 0, view.messages[2].id or 0)
    tried = talk.begin_compaction("main", view.prefix_rev, "nap", ids, days_later(3), days_later(2))
    assert tried is not None
    talk.abandon_compaction(tried, "the model refused")
    long = view.messages[1]
    shorter = long.with_content("[...]", archived=True)
    talk.commit_compaction(
        Compaction(
            "main", view.prefix_rev, "sleep", "mask", long.id or 0, long.id or 0, 1, (), "", 6, 4, shortened=(shorter,)
        ),
        days_later(3),
    )
    compact_view(stores, 2, "To be taken back.", at=days_later(4))
    talk.undo_compaction(talk.plan_uncompact("main"), "main", days_later(5))
    stores.chat(1)
    compact_view(stores, 2, "A gate and questions.", at=days_later(6), absorbs=(first.id,))
    view = talk.load_view("main")
    tail = [m.id for m in view.messages if m.id is not None]
    talk.begin_compaction("main", view.prefix_rev, "command", (tail[0], tail[-1]), days_later(8), days_later(7))
    stores.close()
    return path


def test_every_state_is_listed_shown_and_recovered(tmp_path: Path) -> None:
    home = of_every_state(tmp_path / "home")
    rows = json_output(home)
    assert [row["state"] for row in rows] == ["started", "live", "undone", "masked", "failed", "absorbed"]
    assert "failed (the model refused)" in run_in_process(home, "show", "2", command=aihistory).out
    for row in rows:
        found = json_output(home, "recover", str(row["id"]))
        assert (found[0]["id"], found[-1]["id"]) == (row["from_message_id"], row["to_message_id"])
        assert json_output(home, "show", str(row["id"]))["state"] == row["state"]
    assert next(r["content"] for r in json_output(home, "recover", "5")) == "the gate code is 4471"
    (month,) = [m for m in json_output(home, "stats") if m["month"] == "2026-11"]
    assert (month["compactions"], month["failed"]) == (4, 1)


def test_people_read_what_became_of_a_compaction_in_plain_words(tmp_path: Path) -> None:
    listed = run_in_process(of_every_state(tmp_path / "home"), command=aihistory).out
    told = ["under way", "in use", "undone", "only shortened", "failed", "merged into a later one"]
    assert [next(words for words in told if f", {words}, " in line) for line in listed.splitlines()] == told


def test_search_names_the_compaction_under_which_a_message_stands_now(tmp_path: Path) -> None:
    home = of_every_state(tmp_path / "home")
    assert [(row["id"], row["state"]) for row in json_output(home, "search", "4471")] == [(5, "live")]


def test_recover_of_a_branch_begins_with_what_was_said_before_it(tmp_path: Path) -> None:
    stores = open_empty_home(tmp_path / "home")
    stores.say("the boat is called Fram", "noted")
    stores.say("it lies in Oslo", "noted too")
    at = stores.conversation.load_view("main").messages[1].id or 0
    branch = stores.conversation.branch_session("main", at, NOW).key
    stores.say("and its captain?", "Nansen", session=branch)
    stores.say("when?", "1893", session=branch)
    place = stores.conversation.find_log_places([at])[at]
    elsewhere = [[place.path, 0, place.span.end]]
    made = compact_view(stores, 2, "About a boat.", session=branch, key_facts={"byte_ranges": elsewhere})
    stores.close()
    found = json_output(tmp_path / "home", "recover", str(made.id))
    said = [row["content"] for row in found if row["kind"] == "message"]
    assert said == ["the boat is called Fram", "noted", "and its captain?", "Nansen"]
    assert "it lies in Oslo" not in run_in_process(tmp_path / "home", "recover", str(made.id), command=aihistory).out
