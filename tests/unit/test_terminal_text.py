"""What reaches a terminal, and what is taken from one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.cli.output import clean_for_terminal, clean_line, fold_line, require_utf8
from assistant.core.errors import UsageError
from assistant.core.text import drop_unfinished_word
from tests.support.command_line import run_in_process


@given(st.text(alphabet=st.characters()))
def test_no_control_character_but_line_breaks_and_tabs_reaches_the_terminal(text: str) -> None:
    left = clean_for_terminal(text)
    assert not [c for c in left if (ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]
    left.encode("utf-8")


@pytest.mark.parametrize(
    "attack",
    [
        "\x1b[2J\x1b[H",
        "\x1b]52;c;ZXZpbA==\x07",
        "\x1b]8;;https://evil.example\x1b\\bank.example\x1b]8;;\x1b\\",
        "\x9b2J",
        "safe\rmalicious",
        "a\x08b",
        "user\u202etxt.exe",
    ],
)
def test_an_escape_sequence_is_shown_instead_of_obeyed(attack: str) -> None:
    assert not set(clean_for_terminal(attack)) & set("\x1b\x07\x08\x0d\x9b\u202e")


def test_words_of_every_script_are_left_alone() -> None:
    text = "é 日本語 עברית 🙂‍↔️\tand\nlines"
    assert clean_for_terminal(text) == text


def test_windows_line_ends_become_line_breaks() -> None:
    assert clean_for_terminal("a\r\nb") == "a\nb"


def test_one_line_is_short_and_says_when_something_is_left_out() -> None:
    assert clean_line("a\n b\x1b") == "a b␛"
    assert clean_line("x" * 500, 10) == "x" * 9 + "…"
    assert len(clean_line("x " * 10_000, 50)) == 50


def test_arguments_that_are_no_utf8_are_refused() -> None:
    assert require_utf8("grüße", "The message") == "grüße"
    with pytest.raises(UsageError, match="The message is not valid UTF-8"):
        require_utf8(b"\xff\xfe".decode("utf-8", "surrogateescape"), "The message")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("the fish mar", "the fish"),
        ("the fish ", "the fish"),
        ("On", "On"),
        ("a\n\nb", "a"),
        ("日 " + "本" * 50, None),
    ],
)
def test_of_what_is_being_written_whole_words_are_shown(written: str, shown: str | None) -> None:
    assert drop_unfinished_word(written) == (written if shown is None else shown)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("short enough", "short enough"),
        ("  - one two three four five", "  - one two three\n  four five"),
        ("in /home/a-long-folder/of-mine/b", "in\n/home/a-long-folder/of-mine/b"),
        ("", ""),
    ],
)
def test_a_long_line_is_broken_between_words(line: str, shown: str) -> None:
    assert fold_line(line, 20) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["backup", "verify", "x" * 100_000],
        ["config", "get", "(" * 16_000],
        ["config", "secret", "remove", "\n" * 1_000],
        ["contacts", "find", "--page", "\n" * 1_000],
        ["people", "unlink", "-", "-", "\x1b]0;evil\x07\x1b[31m"],
        ["memory", "list", "--session", "word " * 20_000],
        ["sessions", "show", "\udcff" * 3_000],
        ["archive", "restore", "main", "9" * 30],
        ["import", "show", "9" * 30],
    ],
)
def test_an_error_quotes_what_is_huge_or_hostile_briefly(tmp_path: Path, arguments: list[str]) -> None:
    done = run_in_process(tmp_path / "home", *arguments)
    assert done.returncode in (1, 2) and done.err.count("Error: ") == 1
    assert len(done.err) < 4_500 and done.err.count("\n") < 50 and not {*"\x1b\x07\x00"} & {*done.err}


def test_an_import_of_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        done = run_in_process(tmp_path / "home", "import", "file", str(path))
        assert done.returncode == 2 and "is neither a file nor a folder. Nothing was imported." in done.err
