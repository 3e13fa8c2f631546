"""The child process of semantic memory dies, hangs, talks nonsense: the app says so and goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.core.errors import MemoryUnavailable
from assistant.core.memories import MemoryChange
from assistant.mem0.client import Mem0Client, MemoryStoreSettings
from assistant.wire.memories import MEMORY_WORKER_COMMAND, open_mem0_client, open_memory_db
from tests.crash.available import needs_strace
from tests.support.semantic_memory import NOW, add_changes, make_memory, open_memories, update_changes, words_in_files
from tests.support.warm_memory_child import warm_child_command

OSLO = make_memory("I live in Oslo.", number=1)
CAKE = make_memory("Cake is nice.", number=2)


@pytest.fixture
def settings(tmp_path: Path) -> MemoryStoreSettings:
    return MemoryStoreSettings(tmp_path)


def script(tmp_path: Path, *lines: str) -> tuple[str, ...]:
    """A child of our own making: it reads its first line, then does as told."""
    path = tmp_path / "child.py"
    path.write_text("\n".join(["import json, sys, os", "sys.stdin.readline()", *lines]), encoding="utf-8")
    return sys.executable, str(path)


async def test_f30_a_child_that_was_killed_is_started_again(settings: MemoryStoreSettings) -> None:
    async with open_memories(settings) as app:
        await app.apply(add_changes(OSLO))
        os.kill(_pid(app), signal.SIGKILL)
        with pytest.raises(MemoryUnavailable, match="ended"):
            await app.apply(add_changes(CAKE))
        await app.apply(add_changes(CAKE))
        assert await app.all() == [OSLO, CAKE]


async def test_f30_a_child_that_hangs_is_stopped_and_started_again(settings: MemoryStoreSettings) -> None:
    async with open_memories(settings) as app:
        await app.apply(add_changes(OSLO))
        hanging = _pid(app)
        os.kill(hanging, signal.SIGSTOP)
        # Only this step is to be short: starting takes longer.
        app.child.seconds = 0.2
        with pytest.raises(MemoryUnavailable, match="did not answer within"):
            await app.apply(add_changes(CAKE))
        app.child.seconds = 60
        with pytest.raises(ProcessLookupError):
            os.kill(hanging, 0)
        await app.apply(add_changes(CAKE))
        assert await app.all() == [OSLO, CAKE]


async def test_what_lies_in_the_home_is_read_without_the_child(settings: MemoryStoreSettings, tmp_path: Path) -> None:
    async with open_memories(settings, warm_child_command()) as app:
        await app.apply(add_changes(OSLO))
    async with open_memories(settings, ("/nonexistent/program",)) as app:
        assert await app.all("main") == [OSLO]
        assert await app.get(OSLO.id) == OSLO
        assert len(await app.history(OSLO.id)) == 1
        with pytest.raises(MemoryUnavailable):
            await app.nearest(["Oslo"], "main")


@pytest.mark.parametrize(
    "said",
    ["no JSON", "[]", '{"id": 99, "result": null}', '"text"', "", "\\xff", '{"id": 1, "result": '],
)
async def test_f30_a_child_that_answers_nonsense_is_not_trusted_further(
    settings: MemoryStoreSettings, tmp_path: Path, said: str
) -> None:
    command = script(tmp_path, "sys.stdin.readline()", f"print({said!r}, flush=True)", "sys.stdin.read()")
    async with open_memories(settings, command) as app:
        with pytest.raises(MemoryUnavailable, match="nonsense"):
            await app.apply(add_changes(OSLO))
        assert app.child.pid is None


@pytest.mark.parametrize("result", ["5", "[[5]]", "null", '[[[{"id": "x"}, 0.5]]]', '[[[{"id": "x"}, "much"]]]'])
async def test_f30_an_answer_of_another_form_is_a_fault(
    settings: MemoryStoreSettings, tmp_path: Path, result: str
) -> None:
    answer = f'{{"id": 1, "result": {result}}}'
    async with open_memories(
        settings, script(tmp_path, "sys.stdin.readline()", f"print({answer!r}, flush=True)")
    ) as app:
        with pytest.raises(MemoryUnavailable, match="no memory"):
            await app.nearest(["Oslo"], "main")


async def test_changes_are_made_in_steps_that_each_fit_into_the_time_of_one(
    settings: MemoryStoreSettings, tmp_path: Path
) -> None:
    command = script(
        tmp_path,
        "for line in sys.stdin:",
        " told = json.loads(line)",
        " print(len(told['changes']), file=open('steps', 'a'))",
        " print(json.dumps({'id': told['id']}), flush=True)",
    )
    many = [make_memory("x", number=number) for number in range(450)]
    long = [make_memory("y" * 1_500_000, number=number) for number in range(3)]
    async with open_memories(settings, ("env", "-C", str(tmp_path), *command)) as app:
        await app.apply(add_changes(*many))
        await app.apply(add_changes(*long))
    assert (tmp_path / "steps").read_text().split() == ["200", "200", "50", "2", "1"]


async def test_f30_what_a_child_said_last_tells_why_it_ended(settings: MemoryStoreSettings, tmp_path: Path) -> None:
    command = script(tmp_path, "sys.stderr.write('first\\nout of luck\\n')", "sys.exit(3)")
    async with open_memories(settings, command) as app:
        with pytest.raises(MemoryUnavailable, match=r"ended \(out of luck\)"):
            await app.apply(add_changes(OSLO))


async def test_f30_a_home_that_cannot_be_written_is_told(settings: MemoryStoreSettings) -> None:
    async with open_memories(settings, warm_child_command()) as app:
        await app.apply(add_changes(OSLO))
    newer = open_memory_db(settings, NOW)
    with newer.write() as db:
        db.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('memory', '0999_x', '')")
    newer.close()
    app = open_mem0_client(settings, open_memory_db(settings, NOW, reading=True))
    with pytest.raises(MemoryUnavailable, match="newer version"):
        await app.apply(add_changes(CAKE))
    await app.aclose()


async def test_f30_a_memory_db_that_another_process_has_locked_is_told(settings: MemoryStoreSettings) -> None:
    async with open_memories(settings, warm_child_command()) as app:
        await app.apply(add_changes(OSLO))
        other = open_memory_db(settings, NOW)
        with other.write(), pytest.raises(MemoryUnavailable, match="Another process has locked it"):
            await app.apply(add_changes(CAKE))
        other.close()
        await app.apply(add_changes(CAKE))
        assert await app.all() == [OSLO, CAKE]


async def test_a_step_that_is_given_up_leaves_no_answer_for_the_next(settings: MemoryStoreSettings) -> None:
    async with open_memories(settings, warm_child_command()) as app:
        await app.apply(add_changes(OSLO))
        given_up = asyncio.create_task(app.nearest(["Oslo"], "main"))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await app.nearest(["I live in Oslo."], "main", limit=1))[0][0][0] == OSLO


async def test_closing_ends_the_child(settings: MemoryStoreSettings) -> None:
    async with open_memories(settings) as app:
        await app.apply(add_changes(OSLO))
        pid = _pid(app)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_no_memory_and_no_key_stands_on_a_command_line_or_in_what_the_child_says(
    settings: MemoryStoreSettings,
) -> None:
    secret = make_memory("The code of the door is 987654.")
    keyed = replace(settings, embedder=replace(settings.embedder, key="sk-very-secret"))
    async with open_memories(keyed) as app:
        await app.apply(
            [*add_changes(secret), *update_changes(replace(secret, text="The code of the door is 123456."))]
        )
        command = _shown(_pid(app))
        assert b"assistant.wire.memory_worker_main" in command
        assert b"sk-very-secret" not in command and b"987654" not in command
        assert list(app.child.last_output) == []
    assert words_in_files(settings.home, "sk-very-secret") == []


async def test_two_processes_read_while_one_writes(settings: MemoryStoreSettings) -> None:
    many = [make_memory(f"Thing number {number}.", number=number) for number in range(400)]
    reading = (
        "import sqlite3,sys; c=sqlite3.connect(f'file:{sys.argv[1]}?mode=ro',uri=True)\nwhile True:\n"
        " n=c.execute('SELECT count(*) FROM memories').fetchone()[0]\n"
        " v=c.execute('SELECT count(*) FROM vectors').fetchone()[0]\n"
        " print(n, v, flush=True)\n if n == 400: break"
    )
    async with open_memories(settings, warm_child_command()) as app:
        await app.apply(add_changes(many[0]))
        readers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", reading, str(settings.home / "memory.db"), stdout=asyncio.subprocess.PIPE
            )
            for _ in range(2)
        ]
        seen = [asyncio.create_task(reader.communicate()) for reader in readers]
        await app.apply(add_changes(*many))
        for output, _ in await asyncio.gather(*seen):
            counts = [tuple(map(int, line.split())) for line in output.splitlines()]
            # The two counts are two reads; what one step writes is never seen in part.
            assert {count for count, _ in counts} <= {1, 200, 400}
            assert counts[-1][0] == 400


@needs_strace
@pytest.mark.parametrize("write", [1, 2, 5, 60, 120, 145, 160])
async def test_f29_a_child_killed_while_it_writes_and_asked_again_makes_the_same_memories(
    settings: MemoryStoreSettings, tmp_path: Path, write: int
) -> None:
    kept = [make_memory(f"Thing number {number}.", number=number) for number in range(150)]
    changes = [
        *add_changes(*kept),
        *update_changes(*[replace(one, text=f"{one.text} Really.", until=NOW) for one in kept[:50]]),
    ]
    changes += [MemoryChange("delete", one) for one in kept[140:]]
    killing = (
        "strace",
        "-f",
        "-o",
        "/dev/null",
        "-P",
        str(tmp_path / "memory.db-wal"),
        "-e",
        "trace=pwrite64",
        "-e",
        f"inject=pwrite64:signal=KILL:when={write}",
        *MEMORY_WORKER_COMMAND,
    )
    async with open_memories(settings, killing) as app:
        with pytest.raises(MemoryUnavailable, match="ended"):
            await app.apply(changes)
    async with open_memories(settings, warm_child_command()) as app:
        await app.apply(changes)
        assert await app.all() == [*(one.memory for one in changes[150:200]), *kept[50:140]]
        assert [len(await app.history(kept[number].id)) for number in (0, 49, 50, 139, 140)] == [2, 2, 1, 1, 2]


async def test_a_forgotten_memory_is_found_nowhere_under_the_home(settings: MemoryStoreSettings) -> None:
    secrets = [make_memory(f"The password of {number} is swordfish{number}x.", number=number) for number in range(60)]
    told = [f"swordfish{number}x" for number in range(60)]
    async with open_memories(settings, warm_child_command()) as app:
        await app.apply(add_changes(*secrets))
        await app.apply(
            update_changes(*[replace(one, text=f"Changed to marlin{n}y.") for n, one in enumerate(secrets)])
        )
        assert words_in_files(settings.home, *told) == told
        await app.erase([one.id for one in secrets[:30]])
        assert words_in_files(settings.home, *told) == told[30:]
        assert (
            words_in_files(settings.home, *[f"marlin{n}y" for n in range(30)], *[one.id for one in secrets[:30]]) == []
        )
        assert await app.all() == [replace(one, text=f"Changed to marlin{n}y.") for n, one in enumerate(secrets)][30:]


def _pid(app: Mem0Client) -> int:
    pid = app.child.pid
    assert pid is not None
    return pid


def _shown(pid: int) -> bytes:
    """What other users may see of a process, and what its own may."""
    process = Path(f"/proc/{pid}")
    return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
