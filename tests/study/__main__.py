"""One long conversation through the whole app: what it cost and what it remembered, in one plain table.

`python -m tests.study [--turns 2000] [--facts 200] [--keep 10,3] [--seed 7] [--window 32000] [--awake] [--unbroken]
[--set context.target=0.4] [--quick]`. Every summary forgets all but `--keep` facts; several numbers hold the
conversation as many times. `--quick` is a small one, to see that it works: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

import structlog

from tests.bench.figures import Row, table
from tests.bench.machine import description
from tests.study.conversation import StudyConversation, written
from tests.study.life import run_study
from tests.study.report import rows


def main() -> int:
    """0 when every target is met, 1 when one is missed."""
    chosen = _chosen()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    conversation = written(chosen.turns, chosen.facts, chosen.seed, unbroken=chosen.unbroken)
    with tempfile.TemporaryDirectory(prefix="study-") as folder:
        print(description(Path(folder)), end="\n\n", flush=True)
        print(_size(conversation, chosen.window), end="\n\n", flush=True)
        found: list[Row] = []
        for keep in chosen.keep:
            print(f"holding the conversation, summaries keep {keep} facts ...", file=sys.stderr, flush=True)
            began = time.perf_counter()
            home = Path(folder) / f"keep-{keep}"
            held = asyncio.run(
                run_study(
                    conversation,
                    home,
                    window=chosen.window,
                    keep=keep,
                    sleeps=not chosen.awake,
                    wanted=dict(chosen.wanted),
                )
            )
            took = time.perf_counter() - began
            found += rows(f"keeps {keep}", conversation, held, chosen.window)
            found.append(Row(f"keeps {keep}", None, "time it took to hold", f"{took:.0f} s"))
    print(table(found))
    return 1 if any(row.good is False for row in found) else 0


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.study", description="Hold a long conversation.")
    parser.add_argument("--turns", type=int, default=2_000, help="messages of the person")
    parser.add_argument("--facts", type=int, default=200, help="facts planted, and asked for later")
    parser.add_argument("--keep", type=_numbers, default=[10, 3], help="facts a summary keeps, by commas")
    parser.add_argument("--seed", type=int, default=7, help="another one is another conversation")
    parser.add_argument("--window", type=int, default=32_000, help="tokens of the model's window")
    parser.add_argument("--awake", action="store_true", help="neither naps nor nights: only emergencies compact")
    parser.add_argument("--unbroken", action="store_true", help="one sitting: no gaps, so that the cache always lives")
    parser.add_argument(
        "--set",
        dest="wanted",
        type=_setting,
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="a setting of the house beside its defaults; may be given several times",
    )
    parser.add_argument("--quick", action="store_true", help="150 turns, 15 facts")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.turns, chosen.facts, chosen.keep = 150, 15, chosen.keep[:1]
    return chosen


def _setting(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if "." not in name:
        raise argparse.ArgumentTypeError(f"{text} is no setting; write it as in compaction.target=0.4")
    return name, value


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _size(conversation: StudyConversation, window: int) -> str:
    turns = conversation.turns
    tools = sum(turn.call is not None for turn in turns)
    days = (turns[-1].at - turns[0].at).days + 1
    said = sum(len(turn.text) for turn in turns) // 4 // len(turns)
    answered = sum(len(turn.reply) for turn in turns) // 4 // len(turns)
    return (
        f"{len(turns):,} turns over {days} days, {tools:,} with a tool call; {len(conversation.facts)} facts; a "
        f"message of the person has {said} tokens, an answer {answered}, on average; a window of {window:,} tokens"
    )


if __name__ == "__main__":
    sys.exit(main())
