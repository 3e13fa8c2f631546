"""Settings of every wrong kind: each key of config.toml with values of each type, at and beyond every end, written
while a daemon's settings are watched.

What is refused is told in a few short lines that name the file, the key and what is allowed; nothing raises, nothing
takes long, no control character is passed on, and the settings that the daemon was started with stay. What is accepted
can be shown.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from structlog.testing import capture_logs

from assistant.settings.home import Home
from assistant.settings.sections import SETTING_FIELDS
from assistant.settings.settings import Settings, describe_settings, load_settings
from assistant.settings.watch import SettingsWatch, is_live_setting
from tests.attack.tally import Tally
from tests.crash.homes import scratch

KIND = "settings"
CASES = 10_000
_MOST_LINES, _MOST_CHARACTERS, _MOST_SECONDS = 12, 700, 1.0
# Of the ends that two settings have together, the line says what they come to.
_SAYS_WHAT = ("allowed", "has to be below", "set it", "set both", "takes a longer one", "; set web.")
_VALUES = {
    "a truth": "true",
    "a small number": "7",
    "a negative number": "-1",
    "zero": "0",
    "64 bits": "9223372036854775808",
    "400 digits": f"1{'0' * 400}",
    "a fraction": "0.5",
    "no number": "nan",
    "infinity": "-inf",
    "the largest fraction": "1.7e308",
    "no text": '""',
    "blanks": '"   "',
    "a word": '"zz"',
    "a NUL": '"a\\u0000b"',
    "an escape": '"\\u001b[31m\\u202e"',
    "two lines": '"a\\nb"',
    "a long text": f'"{"x" * 100_000}"',
    "other digits": '"٠٣:٣٠"',
    "a time": '"25:00"',
    "half an address": '"http://[::1"',
    "an address with a password": '"https://me:hunter2hunter2@h/"',
    "nobody's path": '"~nobody-at-all/x"',
    "no list": "[]",
    "a list of numbers": "[1]",
    "a list of words": '["a", "a"]',
    "a list of all": '[1, "a", true, {}]',
    "a list of lists": "[[[]]]",
    "a long list": f"[{'1, ' * 5_000}]",
    "a long list of words": f"[{chr(34)}a{chr(34)}{f', {chr(34)}a{chr(34)}' * 5_000}]",
    "a table": "{a = 1}",
    "an empty table": "{}",
    "tables": '{"\\u001b[31m\\n" = {"x" = {y = 1}}}',
    "a list of tables": '[{name = "a"}, {name = "\\u0000", zz = 1}]',
    "a day": "1979-05-27",
    "a moment": "1979-05-27T00:32:00.999999-07:00",
    "an hour": "07:32:00",
}


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    combinations = list(itertools.product(SETTING_FIELDS, _VALUES))
    Random(seed).shuffle(combinations)
    tried, failures = 0, []
    with TemporaryDirectory(dir=scratch()) as folder, capture_logs():
        home = Home(Path(folder))
        started = load_settings(home, {}, ring=None)
        for case in range(min(cases, len(combinations))) if only is None else [only]:
            if time.monotonic() >= until:
                break
            key, value = combinations[case]
            tried += 1
            if problems := list(_try(home, started, key, _VALUES[value])):
                failures.append(f"case {case} (`{key}` is {value}): {'; '.join(problems)}")
    return Tally(KIND, tried, tuple(failures))


def _try(home: Home, started: Settings, key: str, value: str) -> Iterator[str]:
    """What did not hold."""
    section, _, name = key.partition(".")
    home.config.write_text(f"[{section}]\n{name} = {value}\n", encoding="utf-8")
    # As if it had another stamp: two of these files may be written within the same moment.
    watch = SettingsWatch(
        replace(started, file_stamps=(None, None)), lambda: load_settings(home, {}, ring=None), lambda settings: None
    )
    begun = time.thread_time()
    try:
        watch.check_files()
        lines = watch.problems()
        if not lines:
            describe_settings(load_settings(home, {}, ring=None))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is a failure of this case
        yield repr(error)[:300]
        return
    if (seconds := time.thread_time() - begun) > _MOST_SECONDS:
        yield f"it took {seconds:.1f} s"
    if lines and watch.settings.values != started.values:
        yield "the settings changed, though they are refused"
    if not lines and not is_live_setting(key) and watch.settings.values != started.values:
        yield "it holds before the next start"
    if len(lines) > _MOST_LINES:
        yield f"{len(lines)} lines tell of it"
    for line in lines:
        if len(line) > _MOST_CHARACTERS or not line.isprintable():
            yield f"a line of {len(line)} characters: {line[:200]!r}"
        if "hunter2" in line:
            yield "a password is repeated"
    if lines and not (
        key in lines[0] and str(home.config) in lines[0] and any(word in lines[0] for word in _SAYS_WHAT)
    ):
        yield f"it is told without its place, its key or what is allowed: {lines[0][:300]}"
