"""The kill that matters most for a mail, which a sample may miss: after it went out, before that is known here."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from tests.crash.mail_scenarios import MAILED
from tests.crash.mail_world import RecordedFolders
from tests.crash.scenario import Faults


def _work_until_it_went_out(home: Path) -> None:
    keep = RecordedFolders.keep

    def kept_or_killed(folders: RecordedFolders, folder: str, identity: str) -> None:
        if folder == "Sent":
            os.kill(os.getpid(), signal.SIGKILL)
        keep(folders, folder, identity)

    RecordedFolders.keep = kept_or_killed  # type: ignore[method-assign]
    MAILED.work(home)


def test_a_mail_that_went_out_before_a_kill_is_not_sent_again_and_the_owner_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    MAILED.prepare(home)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    for work, ends in ((_work_until_it_went_out, -signal.SIGKILL), (MAILED.work, 0)):
        process = context.Process(target=work, args=(home,))
        process.start()
        process.join()
        assert process.exitcode == ends
    picture = MAILED.look(home)
    assert picture["mail"] == {
        "state": "uncertain",
        "sent": [1],
        "with the sent": 0,
        "in the drafts": 1,
        "told": True,
    }
    assert MAILED.problems({"verify": [], "mail": {}}, picture, Faults(kills=1)) == []
