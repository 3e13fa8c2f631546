"""The machine and the primary are lost while somebody writes: another machine continues with all that was acknowledged,
and the first is refused when it comes back.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import TIMEOUT_SECONDS, run_assistant, run_daemon, run_in_process
from tests.support.postgres import run_postgres_pair
from tests.support.writer import Writer


def test_machine_and_primary_die_and_another_machine_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    with run_postgres_pair() as pair:
        settings = {
            "ASSISTANT_REPLICA__URL": pair.new_database(),
            "ASSISTANT_REPLICA__ON_FAILURE": "refuse",
            "ASSISTANT_REPLICA__TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
        }
        with run_daemon(home, **settings) as running:
            writer = Writer(home, limit=25)
            writer.start()
            while not writer.has_enough:
                writer.join(0.01)
                assert writer.is_alive()
            running.kill()
            pair.fail_over()
            writer.join(TIMEOUT_SECONDS)
        restored = run_assistant(elsewhere, "replica", "restore", "--json", **settings)
        assert restored.returncode == 0, restored.err
        verified = run_assistant(elsewhere, "verify", **settings)
        assert verified.returncode == 0, verified.out
        with run_daemon(elsewhere, **settings):
            last = run_assistant(elsewhere, "chat", "-m", "how many parcels are there?", **settings)
            assert last.returncode == 0, last.err
            report = json.loads(run_in_process(elsewhere, "replica", "status", "--json", **settings).out)
            assert (report["ok"], report["is_ours"]) == (True, True)
            said = run_in_process(elsewhere, "log", "--json", "--limit", "100000", **settings).out
            missing = [text for text in writer.acknowledged if json.dumps(text)[1:-1] not in said]
            assert missing == []
            refused = run_assistant(home, "run", **settings)
            assert refused.returncode == 1
            assert "took this home over" in refused.err and "Nothing was started" in refused.err
            detached = run_assistant(home, "replica", "detach", **settings)
            assert "another machine's" in detached.out
        proof = json.loads(run_assistant(elsewhere, "replica", "verify", "--json", **settings).out)
        assert proof["ok"] and proof["records"] >= len(writer.acknowledged)
        for said in ("The server's copy is deleted.", "The server has no copy."):
            assert said in run_assistant(elsewhere, "replica", "detach", **settings).out


@pytest.mark.parametrize("action", ["verify", "restore", "detach"])
def test_without_a_replica_its_commands_say_so(tmp_path: Path, action: str) -> None:
    done = run_in_process(tmp_path / "home", "replica", action)
    assert done.returncode == 2 and "replica.url is not set" in done.err
